"""Choices on vali: the best fit of a grid, and the points that further seeds of a method choose among."""

from __future__ import annotations

from collections.abc import Sequence

from ranksieve.experiment.journal import Entry

SHORTLIST = 10  # points that further seeds are fitted at


def best_on_vali(fits: Sequence[Entry], select: str) -> Entry:
    """The fit that is best on vali by a metric, the earlier of equals."""
    return _in_order(fits, select)[0]


def shortlist(fits: Sequence[Entry], select: str, first: int | None) -> list[Entry]:
    """The fits with the first seed that are best on vali by a metric."""
    return _in_order([row for row in fits if row["random_state"] == first], select)[:SHORTLIST]


def candidates(
    fits: Sequence[Entry], select: str, seeds: Sequence[int | None], seed: int | None
) -> list[Entry]:
    """What a metric chooses among with a seed: the whole grid with the first, then the short list."""
    own = [row for row in fits if row["random_state"] == seed]
    if seed == seeds[0]:
        return own
    points = {row["point"] for row in shortlist(fits, select, seeds[0])}
    return [row for row in own if row["point"] in points]


def _in_order(fits: Sequence[Entry], select: str) -> list[Entry]:
    return sorted(fits, key=lambda row: (-float(row["validation"][select]), int(row["point"])))
