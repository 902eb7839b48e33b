"""Losses that see the documents of each query in the order of their scores."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from ranksieve._parallel import map_blocks, split_blocks
from ranksieve._types import FloatArray, IntArray
from ranksieve.data.queries import Queries, local_levels, pair_weights
from ranksieve.data.query_weights import checked_query_weight
from ranksieve.errors import DataError
from ranksieve.kernels.ordering import centre_and_sort
from ranksieve.kernels.pairs import active_partners
from ranksieve.losses.base import NO_PAIRS, Curvature, ScoreValue
from ranksieve.losses.document_weights import grouped_weights

LOWER, UPPER = 1, -1  # the side on which partners are looked for
Sweep = Callable[[FloatArray, IntArray, int, int], None]
"""(centred scores, order by score, first, last query): what is done with some sorted queries."""


class SortedLoss:
    """A bound loss whose value comes from sweeps over each query's documents in score order."""

    def __init__(
        self, queries: Queries, query_weight: FloatArray | None, document_weight: FloatArray | None = None
    ) -> None:
        self.queries = queries
        self.cuts = split_blocks(queries.offsets)
        self.weight = checked_query_weight(query_weight, queries.n_queries)
        self.mass = grouped_weights(document_weight, queries)

    @cached_property
    def _row_weight(self) -> FloatArray:
        """Each document's query weight times its own, in grouped order."""
        of_query = np.repeat(self.weight, self.queries.sizes)
        return of_query if self.mass is None else of_query * self.mass

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
    """A sum over the active pairs of each query, which weigh as much as their query and both documents."""

    def __init__(
        self,
        y: FloatArray,
        queries: Queries,
        query_weight: FloatArray | None,
        document_weight: FloatArray | None = None,
    ) -> None:
        super().__init__(queries, query_weight, document_weight)
        self.level = self._levels(queries.group(y))
        self.normaliser = float(self._n_pairs() @ self.weight)
        if self.normaliser <= 0:
            raise DataError(None, None, NO_PAIRS)

    def _levels(self, y: FloatArray) -> IntArray:
        return local_levels(y, self.queries)

    def _n_pairs(self) -> FloatArray:
        """The weight of the pairs of each query."""
        return pair_weights(self.level, self.queries, self.mass)

    def _partners(
        self, t: FloatArray, order: IntArray, first: int, last: int, side: int, out: list[FloatArray]
    ) -> None:
        """Write to ``out`` the mass of active partners on one side, and Σ ξ over them, per document."""
        active_partners(t, self.level, order, self.queries.offsets, first, last, side, self.mass, *out)

    def _active(self, s: FloatArray) -> tuple[FloatArray, IntArray, list[FloatArray]]:
        """(centred scores, order, [mass, Σξ as the upper, mass, Σξ as the lower document of pairs])."""
        found = [np.empty(len(s)) for _ in range(4)]

        def sweep(t: FloatArray, order: IntArray, first: int, last: int) -> None:
            self._partners(t, order, first, last, LOWER, found[:2])
            self._partners(t, order, first, last, UPPER, found[2:])

        t, order = self._sweep(s, sweep)
        return t, order, found
