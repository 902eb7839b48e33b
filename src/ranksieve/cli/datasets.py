"""Commands on data alone: inspect, convert."""

from __future__ import annotations

from typing import Annotated

import typer

from ranksieve.cli.app import command
from ranksieve.commands.options import FORMATS, Data, Json, Missing


@command("ranksieve inspect train.txt")
def inspect(data: Data, as_json: Json = False) -> None:
    """Show what a data set holds.

    Counts queries, labels and pairs, and names constant, duplicate and missing features.
    """
    from ranksieve.commands.datasets import inspect_data

    inspect_data(data, as_json=as_json)


@command(
    "ranksieve convert train.txt train.parquet",
    "ranksieve convert log.json train.parquet --judgements judgements.txt",
)
def convert(
    source: Annotated[str, typer.Argument(metavar="IN", help=f"{FORMATS} Or a feature log (.json, .jsonl).")],
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
    from ranksieve.commands.datasets import convert_data

    log = {"judgements": judgements, "unjudged": unjudged, "entry": entry}
    convert_data(source, target, missing=missing, log=log)
