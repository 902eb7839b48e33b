"""Results of the quality benchmark: one CSV file per method with one row per data set and split."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks import harness
from ranksieve._util.files import atomic_write


class Row(NamedTuple):
    """One method on one split: metric on the test queries, features in use, seconds, version of ranksieve."""

    data: str
    split: int
    value: float
    n_features: int
    seconds: float
    version: str


Rows = Mapping[tuple[str, int], Row]
"""The rows of a method by data set and split."""


def file_of(method: str) -> Path:
    return harness.RESULTS / "quality" / f"{re.sub('[^a-z0-9.]+', '-', method.lower().replace('ℓ', 'l'))}.csv"


def read_rows(method: str) -> dict[tuple[str, int], Row]:
    """The stored rows of a method; empty if there is no file."""
    path = file_of(method)
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.reader(file))[1:]
    rows = [
        Row(data, int(k), float(value), int(n), float(s), version) for data, k, value, n, s, version in lines
    ]
    return {(row.data, row.split): row for row in rows}


def save_rows(method: str, rows: Rows) -> None:
    """Store the rows of a method, by data set and split."""
    path = file_of(method)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Row._fields)
        writer.writerows(rows[key] for key in sorted(rows))
