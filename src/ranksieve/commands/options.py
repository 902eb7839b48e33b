"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

FORMATS = "LETOR text (also .gz), parquet, or - for stdin."
Train = Annotated[str, typer.Argument(metavar="TRAIN", help=FORMATS)]
Data = Annotated[str, typer.Argument(metavar="DATA", help=FORMATS)]
Missing = Annotated[
    str,
    typer.Option(metavar="POLICY", help="Missing values: error, zero, query_min, column_mean or keep."),
]
FitMissing = Annotated[
    str | None,
    typer.Option(
        "--missing",
        metavar="POLICY",
        help="Missing values: error, zero, query_min or column_mean; kept in the model.",
    ),
]
StoredMissing = Annotated[
    str | None,
    typer.Option(
        "--missing",
        metavar="POLICY",
        help="Missing values: error, zero, query_min, column_mean or keep; default: as the model says.",
    ),
]
Profile = Annotated[
    str, typer.Option(metavar="NAME", help="Metric conventions: letor, mslr, standard or trec.")
]
Metrics = Annotated[
    list[str], typer.Option("--metric", metavar="NAME", help="Such as ndcg@10 or map; may be repeated.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of words.")]


def listed(text: str) -> list[str]:
    """The names of an option that takes several: A,B,…"""
    return [name.strip() for name in text.split(",") if name.strip()]


DEFAULT_METRICS = ["ndcg@10", "map"]
