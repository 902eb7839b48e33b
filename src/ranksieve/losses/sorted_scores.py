"""Losses that see the documents of each query in the order of their scores."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from ranksieve._parallel import map_blocks, split_blocks
from ranksieve._types import FloatArray, IntArray
from ranksieve.data.queries import Queries, local_levels, pairs_per_query
from ranksieve.kernels.ordering import centre_and_sort
from ranksieve.kernels.pairs import active_partners
from ranksieve.losses.base import NO_PAIRS, Curvature, ScoreValue, checked_query_weight

LOWER, UPPER = 1, -1  # the side on which partners are looked for
Sweep = Callable[[FloatArray, IntArray, int, int], None]
"""(centred scores, order by score, first, last query): what is done with some sorted queries."""


class SortedLoss:
    """A bound loss whose value comes from sweeps over each query's documents in score order."""

    def __init__(self, queries: Queries, query_weight: FloatArray | None) -> None:
        self.queries = queries
        self.cuts = split_blocks(queries.offsets)
        self.weight = checked_query_weight(query_weight, queries.n_queries)

    @cached_property
    def _row_weight(self) -> FloatArray:
        """Each document's query weight, in grouped order."""
        return np.repeat(self.weight, self.queries.sizes)

    @cached_property
    def _order(self) -> IntArray:
        """Each query's documents, in the order of the latest scores."""
        return np.arange(self.queries.n_rows)

    def _sweep(self, s: FloatArray, sweep: Sweep) -> tuple[FloatArray, IntArray]:
        """Centre and sort the scores of each query, then ``sweep`` them; (centred scores, order)."""
        t, order = np.empty(len(s)), self._order.copy()

        def work(first: int, last: int) -> None:
            centre_and_sort(s, t, order, self.queries.offsets, first, last)
            sweep(t, order, first, last)

        map_blocks(work, self.cuts)
        self._order = order  # the next scores are near these: sorting from here is nearly free
        return t, order

    def curvature_of(self, at: ScoreValue, first: int, last: int, V: FloatArray) -> Curvature:
        """0: a hinge is linear between its kinks."""
        return Curvature(None, V[:0], V[:0])

    def dual(self, value: float, slack: float, scale: float) -> float:
        """D = c·slack for a share c ≤ 1 of the active linear pieces, whose constants sum to ``slack``."""
        return scale * slack


class PairLoss(SortedLoss):
    """A sum over the active pairs of each query, pairs by pairs of equal weight."""

    def __init__(self, y: FloatArray, queries: Queries, query_weight: FloatArray | None) -> None:
        super().__init__(queries, query_weight)
        self.level = self._levels(queries.group(y))
        self.normaliser = float(self._n_pairs() @ self.weight)
        if self.normaliser <= 0:
            raise ValueError(NO_PAIRS)

    def _levels(self, y: FloatArray) -> IntArray:
        return local_levels(y, self.queries)

    def _n_pairs(self) -> FloatArray:
        """The weight of the pairs of each query."""
        return pairs_per_query(self.level, self.queries).astype(np.float64)

    def _partners(
        self, t: FloatArray, order: IntArray, first: int, last: int, side: int, out: list[FloatArray]
    ) -> None:
        """Write to ``out`` the number of active partners on one side, and Σ ξ over them, per document."""
        active_partners(t, self.level, order, self.queries.offsets, first, last, side, *out)

    def _active(self, s: FloatArray) -> tuple[FloatArray, IntArray, list[FloatArray]]:
        """(centred scores, order, [count, Σξ as the upper, count, Σξ as the lower document of pairs])."""
        found = [np.empty(len(s)) for _ in range(4)]

        def sweep(t: FloatArray, order: IntArray, first: int, last: int) -> None:
            self._partners(t, order, first, last, LOWER, found[:2])
            self._partners(t, order, first, last, UPPER, found[2:])

        t, order = self._sweep(s, sweep)
        return t, order, found
