"""ranksieve convert: write data in another format."""

from __future__ import annotations

from typing import Annotated, Any

import ranksieve as rs
from ranksieve.cli import options as opt
from ranksieve.cli.app import command
from ranksieve.cli.output import print_text, progress
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
        opt.argument(
            "IN", f"{opt.DATA_HELP} Or a feature log (.json, .jsonl). Several files are concatenated."
        ),
    ],
    target: Annotated[
        str,
        opt.argument(
            "OUT", "A folder (name ends in / or .ranksieve), .parquet, .csv, .tsv or LETOR text; also .gz."
        ),
    ],
    judgements: Annotated[
        opt.Text, opt.value("Data", "FILE", 'Labels of a feature log: qrels, CSV, or lines "4 qid:1 # 7555".')
    ] = None,
    unjudged: Annotated[
        opt.Text, opt.value("Data", "RULE", "Documents without a label: drop or zero.", "drop")
    ] = None,
    entry: Annotated[opt.Text, opt.value("Data", "NAME", "The log entry to read.", "all entries")] = None,
    missing: Annotated[str, opt.value("Data", "POLICY", opt.FILLS_HELP)] = "keep",
    reading: opt.ReadingOptions,
    dtype: Annotated[
        opt.Text,
        opt.value(
            "Output",
            "TYPE",
            "Number type in a folder: float64 or float32.",
            "float64, or as in the parquet file",
        ),
    ] = None,
    n_features: Annotated[
        int | None,
        opt.value("Output", "D", "Number of features of LETOR text in a folder.", "the largest index"),
    ] = None,
) -> None:
    """Convert data to LETOR text, CSV, parquet or a folder.

    The name of OUT determines the format. For LETOR text, feature names are written to OUT.names, where other
    commands look for them. Use a folder for data larger than memory: it is written in one pass with little
    memory, and commands read only what they need. A feature log contains search responses of Elasticsearch
    or OpenSearch with _ltrlog fields.
    """
    from ranksieve.io.folder import means_folder
    from ranksieve.io.load import format_of

    log_options = {"judgements": judgements, "unjudged": unjudged, "entry": entry}
    arguments: dict[str, Any] = {name: value for name, value in log_options.items() if value is not None}
    if arguments and any(format_of(source).read is not rs.io.read_ltr_log for source in sources):
        name, value = next(iter(arguments.items()))
        raise ParameterError(name, value, f"needs a feature log (.json), not {', '.join(sources)}")
    arguments |= reading.arguments
    if means_folder(target):
        if reading.queries is not None:
            reason = (
                f"cannot be used for a folder such as {target}; write a .parquet file with the texts first"
            )
            raise ParameterError("queries", reading.queries, reason)
        data = _to_folder(sources, target, dtype=dtype, n_features=n_features, missing=missing, **arguments)
    else:
        if dtype is not None or n_features is not None:
            name, value = ("dtype", dtype) if dtype is not None else ("n_features", n_features)
            reason = (
                f"applies only to folders, not to the file {target}; for a folder, use the suffix .ranksieve"
            )
            raise ParameterError(name, value, reason)
        inputs = [*sources, judgements, *reading.files]
        data = _to_file(sources, target, inputs, reading, missing=missing, **arguments)
    with opt.keep_stdout_for(target):
        print_text(f"Wrote {data.n_docs} documents of {data.n_queries} queries to {target}.")


def _to_folder(sources: list[str], target: str, **options: Any) -> rs.Dataset:
    opt.check_files(sources)
    with progress(f"converting {', '.join(sources)}") as bar:
        return rs.io.convert_dataset(sources, target, progress=bar, **options)


def _to_file(
    sources: list[str], target: str, inputs: list[str | None], reading: opt.ReadingOptions, **options: Any
) -> rs.Dataset:
    from ranksieve.io.load import format_of

    opt.check_files(inputs, target)
    if len(sources) > 1 and any(format_of(source).read is not rs.io.read_letor for source in sources):
        reason = (
            "several inputs in other formats than LETOR text need a folder as output; name it NAME.ranksieve"
        )
        raise DataError(target, None, reason)
    with progress(f"reading {', '.join(sources)}"):
        data = reading.with_texts(rs.read_dataset(sources[0] if len(sources) == 1 else sources, **options))
    rs.write_dataset(data, target)
    return data
