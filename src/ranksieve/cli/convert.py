"""ranksieve convert: data in another format."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import ranksieve as rs
from ranksieve.cli.app import command
from ranksieve.cli.options import DATA_HELP, Missing, ReadingOptions, beside, check_inputs, check_outputs
from ranksieve.cli.output import progress, words
from ranksieve.errors import DataError, ParameterError


@command(
    "ranksieve convert train.txt train.parquet",
    "ranksieve convert part1.txt.gz part2.txt.gz train.ranksieve --dtype float32",
    "ranksieve convert log.json train.parquet --judgements judgements.txt",
    "ranksieve convert clicks.csv train.txt --qid-column query --ignore 'user_*'",
)
def convert(
    *,
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="IN",
            help=f"{DATA_HELP} Or a feature log (.json, .jsonl, also .gz). Several files of text, or of "
            "parquet for a folder, make one data set.",
        ),
    ],
    target: Annotated[
        str,
        typer.Argument(
            metavar="OUT",
            help="A folder if the name ends in / or .ranksieve; else a .parquet, .csv or .tsv file, or LETOR "
            "text; also .gz.",
        ),
    ],
    judgements: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Grades for a feature log: qrels, CSV, or 4 qid:1 # 7555 lines."),
    ] = None,
    unjudged: Annotated[
        str | None,
        typer.Option(metavar="RULE", help="Logged documents without a grade: drop (default) or zero."),
    ] = None,
    entry: Annotated[
        str | None, typer.Option(metavar="NAME", help="The log entry to take; default: all of them.")
    ] = None,
    dtype: Annotated[
        str | None,
        typer.Option(
            metavar="TYPE",
            help="Type of the features in a folder: float64 or float32; default: float64 for text, that of "
            "the columns for parquet.",
        ),
    ] = None,
    n_features: Annotated[
        int | None,
        typer.Option(metavar="D", help="Columns of LETOR text in a folder; default: the largest index."),
    ] = None,
    missing: Missing = "keep",
    reading: ReadingOptions,
) -> None:
    """Convert data between LETOR text, CSV, parquet, folders and logs.

    The name of the output tells its format. The names of features go into a file beside LETOR text,
    OUT.names, where other commands find them. A folder is for data that outgrow memory: it is written in one
    pass, in little memory whatever the size of the input, every command takes it, and what a command does
    not need is not read. Missing values are kept unless a policy is given. A feature log holds search
    responses of Elasticsearch or OpenSearch with _ltrlog fields.
    """
    from ranksieve.io.folder import means_folder
    from ranksieve.io.load import format_of

    log_options = {"judgements": judgements, "unjudged": unjudged, "entry": entry}
    given: dict[str, Any] = {name: value for name, value in log_options.items() if value is not None}
    if given and any(format_of(source).read is not rs.read_ltr_log for source in sources):
        name, value = next(iter(given.items()))
        raise ParameterError(name, value, f"needs a feature log (.json), which {', '.join(sources)} is not")
    given |= reading.arguments
    if means_folder(target):
        if reading.queries is not None:
            raise ParameterError(
                "queries",
                reading.queries,
                f"is not for folders such as {target}; write a .parquet file with the texts first",
            )
        check_inputs(*sources)
        with progress(f"converting {', '.join(sources)}") as bar:
            data = rs.convert_dataset(
                sources, target, progress=bar, dtype=dtype, n_features=n_features, missing=missing, **given
            )
    else:
        if dtype is not None or n_features is not None:
            name, value = ("dtype", dtype) if dtype is not None else ("n_features", n_features)
            raise ParameterError(
                name, value, f"is for folders, but {target} is a file; end its name in .ranksieve"
            )
        check_inputs(*sources)
        check_outputs([target], [*sources, judgements, reading.names, reading.queries])
        if len(sources) > 1 and any(format_of(source).read is not rs.read_letor for source in sources):
            reason = "inputs that are not all LETOR text can only become a folder; call it NAME.ranksieve"
            raise DataError(target, None, reason)
        with progress(f"reading {', '.join(sources)}"):
            path = sources[0] if len(sources) == 1 else sources
            data = reading.with_texts(rs.read_dataset(path, missing=missing, **given))
        rs.write_dataset(data, target)
    with beside(target):
        words(f"Wrote {data.n_docs} documents of {data.n_queries} queries to {target}.")
