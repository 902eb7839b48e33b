"""ranksieve inspect: what a data set holds."""

from __future__ import annotations

from typing import Any

import ranksieve as rs
from ranksieve._util.messages import shortened
from ranksieve.cli.app import command
from ranksieve.cli.options import Data, Json, ReadingOptions
from ranksieve.cli.output import emit_json, table

SHOWN_NAMES = 12
HEADINGS = {
    "missing": "features with missing values",
    "n_missing": "missing values",
    "n_infinite": "infinite values",
}


@command("ranksieve inspect train.txt")
def inspect(*, data: Data, reading: ReadingOptions, as_json: Json = False) -> None:
    """Show what a data set holds.

    Counts queries, labels and pairs, and names constant, duplicate and missing features.
    """
    figures = rs.describe(reading.data(data)).to_dict()
    if as_json:
        emit_json(figures)
    else:
        table(["", data], [(_heading(name), _in_words(value)) for name, value in figures.items()])


def _heading(name: str) -> str:
    """n_docs -> documents, n_queries_without_pairs -> queries without pairs."""
    return HEADINGS.get(name) or name.removeprefix("n_").replace("_", " ").replace("docs", "documents")


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return shortened([f"{key}: {count}" for key, count in value.items()], SHOWN_NAMES) or "none"
    if isinstance(value, list | tuple):
        parts = [" = ".join(part) if isinstance(part, list | tuple) else str(part) for part in value]
        return shortened(parts, SHOWN_NAMES) or "none"
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}"
