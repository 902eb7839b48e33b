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


@command("ranksieve convert train.txt train.parquet", "ranksieve convert train.parquet train.txt.gz")
def convert(
    source: Annotated[str, typer.Argument(metavar="IN", help=FORMATS)],
    target: Annotated[str, typer.Argument(metavar="OUT", help="A .parquet or .gz file, or LETOR text.")],
    missing: Missing = "keep",
) -> None:
    """Convert between LETOR text, gzip and parquet.

    The name of the output tells its format. Missing values are kept unless a policy is given.
    """
    from ranksieve.commands.datasets import convert_data

    convert_data(source, target, missing=missing)
