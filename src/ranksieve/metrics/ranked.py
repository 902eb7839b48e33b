"""Rankings of judged documents, all queries at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ranksieve._types import AnyArray, BoolArray, FloatArray, IntArray
from ranksieve.data.queries import Queries
from ranksieve.errors import DataError
from ranksieve.metrics.profiles import Profile


@dataclass(frozen=True, eq=False)
class Judged:
    """Labels grouped by query: all that metrics need besides a ranking.

    Query q owns the slots ``offsets[q] … offsets[q + 1] − 1``, and slot ``offsets[q] + i − 1`` holds its
    rank i in every ranking. So ranks serve all rankings, and what depends on labels alone is computed once.
    """

    labels: FloatArray
    queries: Queries
    _memo: dict[Hashable, FloatArray] = field(default_factory=dict, repr=False)

    @cached_property
    def ranks(self) -> IntArray:
        """The 1-based rank of each slot."""
        return np.arange(1, len(self.labels) + 1) - np.repeat(self.queries.offsets[:-1], self.queries.sizes)

    @cached_property
    def ideal(self) -> Ranked:
        """The ranking by descending label."""
        return self.rank(self.labels)

    def once(self, key: Hashable, compute: Callable[[], FloatArray]) -> FloatArray:
        """``compute()``, remembered under ``key``."""
        if key not in self._memo:
            self._memo[key] = compute()
        return self._memo[key]

    def within(self, k: int | None) -> BoolArray:
        """Whether a slot's rank is at most k."""
        return self.ranks <= (len(self.labels) if k is None else k)

    def total(self, values: FloatArray) -> FloatArray:
        """Sum over each query's slots."""
        return np.add.reduceat(values, self.queries.offsets[:-1])

    def running(self, values: FloatArray) -> FloatArray:
        """Sum over a query's slots down to each slot."""
        sums = np.cumsum(values)
        starts = self.queries.offsets[:-1]
        return sums - np.repeat(sums[starts] - values[starts], self.queries.sizes)

    def refuse(self, bad: BoolArray, reason: str) -> None:
        """Raise for the first input row whose label is marked ``bad``."""
        if bad.any():
            rows = self.queries.order[bad]
            row = int(rows.min())
            label = self.labels[bad][int(np.argmin(rows))]
            raise DataError(None, None, f"the label of row {row} is {label:g}; {reason}")

    def gains(self, profile: Profile) -> FloatArray:
        """The gain of each document, in grouped order."""
        return self.once(profile.gain, lambda: self._gains(profile))

    def _gains(self, profile: Profile) -> FloatArray:
        with np.errstate(over="ignore"):
            gains = np.asarray(profile.gain(self.labels), dtype=np.float64)
        advice = f"its gain in the {profile.name} profile must be a finite number of at least 0"
        self.refuse(~(gains >= 0.0), f"{advice}: shift the labels so that the lowest is 0, or use map")
        # No sum of gains may overflow either.
        self.refuse(~(gains <= np.finfo(np.float64).max / len(gains)), f"{advice}: use smaller labels")
        return gains

    def rank(self, scores: FloatArray) -> Ranked:
        """Each query's documents by descending score; ties keep their order. Scores in grouped order."""
        keys = np.append(-scores, np.inf)
        order = np.empty(len(scores), dtype=np.int64)
        for slots, real in self._blocks:
            by_score = np.argsort(keys[slots], axis=1, kind="stable")
            order[slots[real]] = np.take_along_axis(slots, by_score, axis=1)[real]
        return Ranked(order, self)

    @cached_property
    def _blocks(self) -> list[tuple[IntArray, BoolArray]]:
        """Slots of queries of similar length as tables (query × rank), and which cells are real.

        Widths are powers of two, so at most half the cells are padding (slot n, which sorts last); sorting
        short rows is several times faster than sorting all documents at once.
        """
        starts, sizes = self.queries.offsets[:-1], self.queries.sizes
        widths = np.exp2(np.ceil(np.log2(sizes))).astype(np.int64)
        blocks = []
        for width in np.unique(widths):
            columns, mine = np.arange(width), widths == width
            real = columns < sizes[mine, None]
            blocks.append((np.where(real, starts[mine, None] + columns, len(self.labels)), real))
        return blocks


@dataclass(frozen=True, eq=False)
class Ranked:
    """A ranking: slot i holds the document ``order[i]`` (a number in grouped order)."""

    order: IntArray
    judged: Judged

    @cached_property
    def labels(self) -> FloatArray:
        """Labels in rank order."""
        return self.judged.labels[self.order]

    def gains(self, profile: Profile) -> FloatArray:
        """Gains in rank order."""
        return self.judged.gains(profile)[self.order]

    def relevant(self, profile: Profile) -> FloatArray:
        """1 for relevant, 0 for other documents, in rank order."""
        return (self.labels >= profile.relevant_from).astype(np.float64)


def ratio(numerator: AnyArray, denominator: AnyArray) -> FloatArray:
    """Quotients; NaN, the mark of an empty query, where the denominator is 0."""
    quotients = np.full(len(denominator), np.nan)
    np.divide(numerator, denominator, out=quotients, where=denominator > 0)
    return quotients
