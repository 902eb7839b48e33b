"""The sortable table of features, as plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ranksieve.report.words import signed

MAX_ROWS = 300  # of the widest data only what matters most


@dataclass(frozen=True)
class Column:
    """A column of numbers: its key, its heading, how a value is written, and what it means."""

    key: str
    title: str
    write: Callable[[float], str]
    words: str


@dataclass(frozen=True)
class FeatureRows:
    """One row a feature with a value for each column (None: no value).

    ``methods`` holds, for a page where the method can be chosen, its values of the columns that depend on it.
    """

    columns: Sequence[Column]
    rows: Sequence[tuple[str, Mapping[str, float | None]]]
    n_features: int
    methods: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)

    @property
    def heaviest(self) -> float:
        """The largest weight, for the bars."""
        return max((abs(values.get("weight") or 0.0) for _, values in self.rows), default=0.0) or 1.0


def weight_text(value: float) -> str:
    """Five significant digits."""
    return f"{value:+.5g}".replace("-", "−") if value else "0"


def share_text(value: float) -> str:
    """A weight as a part of 1."""
    return signed(value) if value else "0"


def percent_text(value: float) -> str:
    return f"{100.0 * value:.0f} %"


def metric_text(value: float) -> str:
    return f"{value:.4f}"


def make_rows(columns: Sequence[Column], names: Sequence[str], values: Mapping[str, Any]) -> FeatureRows:
    """Rows by falling |weight|, then by the other columns, at most ``MAX_ROWS``; one array a column.

    A column without values is left out.
    """
    kept = [column for column in columns if column.key in values]
    rows = [
        (name, {column.key: float(values[column.key][j]) for column in kept}) for j, name in enumerate(names)
    ]
    rows.sort(key=lambda row: [-abs(value) for value in row[1].values()])
    return FeatureRows(kept, rows[:MAX_ROWS], len(names))
