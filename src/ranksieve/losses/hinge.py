"""The pairwise hinge, as a mean over pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranksieve._parallel import map_blocks, split_blocks
from ranksieve._types import FloatArray
from ranksieve.data.queries import Queries
from ranksieve.kernels.ordering import centre_and_sort
from ranksieve.kernels.pairs import active_partners
from ranksieve.losses.base import ScoreValue
from ranksieve.losses.levels import NO_PAIRS, checked_query_weight, local_levels, pairs_per_query

NO_LEVEL_WEIGHTS = np.empty((0, 0))


@dataclass(frozen=True)
class Hinge:
    """f(s) = (1/p) Σ_{(i,j)} ω_ij max(0, 1 − (s_i − s_j)) over pairs of one query with y_i > y_j.

    ω_ij is the query's weight and p = Σ ω_ij. Where a pair stands at exactly 1 the loss has a kink, and the
    gradient is the subgradient that leaves the pair out.
    """

    name: ClassVar[str] = "hinge"

    def bind(self, y: FloatArray, queries: Queries, query_weight: FloatArray | None = None) -> BoundHinge:
        return BoundHinge(y, queries, query_weight)


class BoundHinge:
    """The hinge of one data set: O(n log n) value and subgradient."""

    def __init__(self, y: FloatArray, queries: Queries, query_weight: FloatArray | None) -> None:
        self.queries = queries
        self._level = local_levels(queries.group(y), queries)
        weight = checked_query_weight(query_weight, queries.n_queries)
        self._row_weight = np.repeat(weight, queries.sizes)
        self.normaliser = float(pairs_per_query(self._level, queries) @ weight)
        if self.normaliser <= 0:
            raise ValueError(NO_PAIRS)
        self.cuts = split_blocks(queries.offsets)
        self._order = np.arange(queries.n_rows)

    def evaluate(self, s: FloatArray) -> ScoreValue:
        """Σ ωξ; each active pair pulls its upper document up by ω and its lower one down."""
        t, order = np.empty(len(s)), self._order.copy()
        up_count, up_slack, low_count, low_slack = (np.empty(len(s)) for _ in range(4))

        def work(first: int, last: int) -> None:
            offsets = self.queries.offsets
            centre_and_sort(s, t, order, offsets, first, last)
            active_partners(
                t, self._level, order, offsets, first, last, NO_LEVEL_WEIGHTS,
                up_count, up_slack, low_count, low_slack,
            )  # fmt: skip

        map_blocks(work, self.cuts)
        self._order = order  # the next scores are near these: sorting from here is nearly free
        value, active = (float(np.sum(self._row_weight * a)) for a in (up_slack, up_count))
        return ScoreValue(value, self._row_weight * (low_count - up_count), active)

    def half_curvature(self, at: ScoreValue, first: int, last: int, V: FloatArray) -> FloatArray:
        """0: between its kinks the loss is linear."""
        return np.zeros_like(V)

    def dual(self, value: float, slack: float, scale: float) -> float:
        """D = c·(1/p)Σ_active ω for the dual point that gives every active pair c ≤ 1."""
        return scale * slack
