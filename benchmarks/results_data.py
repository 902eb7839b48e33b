"""Files of results: one per measure, with one row per data set, competitor and measurement.

A row has ``data, competitor, what, unit, median, low, high, n, versions`` and further fields of the measure,
or ``skipped`` with the reason. Rows of competitors have ``ours_over_theirs``: the median of ranksieve divided
by theirs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from benchmarks import harness
from benchmarks.competitors import RANKSIEVE

Row = dict[str, Any]


def read_rows(measure: str) -> list[Row]:
    """The stored rows of a measure."""
    path = harness.RESULTS / f"{measure}.json"
    rows: list[Row] = json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else []
    return rows


def save_rows(measure: str, rows: Sequence[Row]) -> None:
    """Store the rows of a measure in a fixed order, with new ratios."""
    ordered = sorted(
        rows, key=lambda row: (row["data"], row["what"], row["competitor"] != RANKSIEVE, row["competitor"])
    )
    harness.save_result(measure, {"rows": add_ratios(ordered)}, quiet=True)


def add_ratios(rows: Sequence[Row]) -> list[Row]:
    """Add ``ours_over_theirs`` to the rows of competitors for which both medians exist."""
    medians = {_key(row): row["median"] for row in rows if row["competitor"] == RANKSIEVE and "median" in row}
    return [_add_ratio(row, medians.get(_key(row))) for row in rows]


def _add_ratio(row: Row, our_median: float | None) -> Row:
    row = {name: value for name, value in row.items() if name != "ours_over_theirs"}
    if our_median is not None and row["competitor"] != RANKSIEVE and row.get("median"):
        row["ours_over_theirs"] = our_median / row["median"]
    return row


def _key(row: Row) -> tuple[str, str]:
    return row["data"], row["what"]


def is_part(row: Row, data: str, competitor: str) -> bool:
    """Whether a row belongs to this data set and competitor."""
    return bool(row["data"] == data and row["competitor"] == competitor)


def is_current(rows: Sequence[Row], data: str, competitor: str, version: str, mode: str) -> bool:
    """Whether the rows of this part have the same version and processor, and at least the same mode.

    Failed measurements are repeated; those that exceeded the time limit are not.
    """
    part = [row for row in rows if is_part(row, data, competitor)]
    return bool(part) and all(
        row["versions"].get(competitor) == version
        and not row.get("skipped", "").startswith("failed")
        and row["processor"] == harness.machine()["processor"]
        and ("full", "quick").index(row["how"]) <= ("full", "quick").index(mode)
        for row in part
    )
