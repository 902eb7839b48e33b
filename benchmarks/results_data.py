"""Results as data: one file per measure, one row per data set, competitor and thing measured.

A row has ``data, competitor, what, unit, median, low, high, n, versions`` and what else the measure tells, or
``skipped`` and why. Beside others' rows stands ``ours_over_theirs``: our median divided by theirs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from benchmarks import harness
from benchmarks.competitors import RANKSIEVE

Row = dict[str, Any]


def read_rows(measure: str) -> list[Row]:
    """The rows kept of a measure."""
    path = harness.RESULTS / f"{measure}.json"
    rows: list[Row] = json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else []
    return rows


def save_rows(measure: str, rows: Sequence[Row]) -> None:
    """Write them, in a fixed order, with ratios made anew."""
    ordered = sorted(
        rows, key=lambda row: (row["data"], row["what"], row["competitor"] != RANKSIEVE, row["competitor"])
    )
    harness.save_result(measure, {"rows": add_ratios(ordered)}, quiet=True)


def add_ratios(rows: Sequence[Row]) -> list[Row]:
    """Each row of another with our median over theirs, where both are known."""
    ours = {_key(row): row["median"] for row in rows if row["competitor"] == RANKSIEVE and "median" in row}
    return [_with_ratio(row, ours.get(_key(row))) for row in rows]


def _with_ratio(row: Row, ours: float | None) -> Row:
    row = {name: value for name, value in row.items() if name != "ours_over_theirs"}
    if ours is not None and row["competitor"] != RANKSIEVE and row.get("median"):
        row["ours_over_theirs"] = ours / row["median"]
    return row


def _key(row: Row) -> tuple[str, str]:
    return row["data"], row["what"]


def is_part(row: Row, data: str, competitor: str) -> bool:
    """Whether a row is of this data set and competitor."""
    return bool(row["data"] == data and row["competitor"] == competitor)


def is_current(rows: Sequence[Row], data: str, competitor: str, version: str, how: str) -> bool:
    """Whether this part was measured with the same version, on this processor, as fully as asked for.

    What failed is tried again; what took too long is not.
    """
    part = [row for row in rows if is_part(row, data, competitor)]
    return bool(part) and all(
        row["versions"].get(competitor) == version
        and not row.get("skipped", "").startswith("failed")
        and row["processor"] == harness.machine()["processor"]
        and ("full", "quick").index(row["how"]) <= ("full", "quick").index(how)
        for row in part
    )
