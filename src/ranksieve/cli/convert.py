"""ranksieve convert: data in another format."""

from __future__ import annotations

from typing import Annotated

import typer

import ranksieve as rs
from ranksieve.cli.app import command
from ranksieve.cli.files import beside, check_outputs
from ranksieve.cli.options import DATA_HELP, Missing
from ranksieve.cli.output import progress, words


@command(
    "ranksieve convert train.txt train.parquet",
    "ranksieve convert log.json train.parquet --judgements judgements.txt",
)
def convert(
    *,
    source: Annotated[
        str, typer.Argument(metavar="IN", help=f"{DATA_HELP} Or a feature log (.json, .jsonl).")
    ],
    target: Annotated[str, typer.Argument(metavar="OUT", help="A .parquet or .gz file, or LETOR text.")],
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
    missing: Missing = "keep",
) -> None:
    """Convert data between LETOR text and parquet, also feature logs.

    The name of the output tells its format. Missing values are kept unless a policy is given. A feature
    log holds search responses of Elasticsearch or OpenSearch with _ltrlog fields.
    """
    from ranksieve.formats.load import format_of

    log_options = {"judgements": judgements, "unjudged": unjudged, "entry": entry}
    given = {name: value for name, value in log_options.items() if value is not None}
    if given and format_of(source).read is not rs.read_ltr_log:
        raise ValueError(f"--{next(iter(given))} belongs to feature logs (.json), but {source} is none")
    check_outputs([target], [source, judgements])
    with progress(f"reading {source}"):
        data = rs.read_dataset(source, missing=missing, **given)
    rs.write_dataset(data, target)
    with beside(target):
        words(f"Wrote {data.n_docs} documents of {data.n_queries} queries to {target}.")
