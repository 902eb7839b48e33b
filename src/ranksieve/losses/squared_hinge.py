"""The pairwise squared hinge, as a mean over pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranksieve._parallel import map_blocks, split_blocks
from ranksieve._types import FloatArray, IntArray
from ranksieve.data.queries import Queries
from ranksieve.kernels.ordering import centre_and_sort
from ranksieve.kernels.pairs import active_partners, lower_partner_sums
from ranksieve.losses.base import ScoreValue
from ranksieve.losses.levels import (
    NO_PAIRS,
    checked_query_weight,
    integer_levels,
    local_levels,
    pairs_per_query,
    weighted_pairs_per_query,
)


@dataclass(frozen=True, eq=False)
class SquaredHinge:
    """f(s) = (1/p) Σ_{(i,j)} ω_ij max(0, 1 − (s_i − s_j))² over pairs of one query with y_i > y_j.

    ω_ij is the query's weight times ``level_weights[y_i, y_j]`` (1 without), and p = Σ ω_ij: giving a query
    weight 2 is the same as having it twice.
    """

    level_weights: FloatArray | None = None
    name: ClassVar[str] = "squared_hinge"

    def bind(
        self, y: FloatArray, queries: Queries, query_weight: FloatArray | None = None
    ) -> BoundSquaredHinge:
        return BoundSquaredHinge(y, queries, self.level_weights, query_weight)


@dataclass(frozen=True)
class PairState:
    """Centred scores, each query's order by score, and every document's weight of active pairs."""

    t: FloatArray
    order: IntArray
    degree: FloatArray


class BoundSquaredHinge:
    """The squared hinge of one data set: O(n log n) value and gradient, O(n·k) curvature of k columns."""

    def __init__(
        self,
        y: FloatArray,
        queries: Queries,
        level_weights: FloatArray | None,
        query_weight: FloatArray | None,
    ) -> None:
        self.queries = queries
        grouped = queries.group(y)
        if level_weights is None:
            self._weights = np.empty((0, 0))
            self._level = local_levels(grouped, queries)
            pairs = pairs_per_query(self._level, queries)
        else:
            self._weights = _checked_table(level_weights)
            self._level = integer_levels(grouped, len(self._weights))
            pairs = weighted_pairs_per_query(self._level, queries, self._weights)
        weight = checked_query_weight(query_weight, queries.n_queries)
        self._row_weight = None if query_weight is None else np.repeat(weight, queries.sizes)
        self.normaliser = float(pairs @ weight)
        if self.normaliser <= 0:
            raise ValueError(NO_PAIRS)
        self.cuts = split_blocks(queries.offsets)
        self._order = np.arange(queries.n_rows)

    def evaluate(self, s: FloatArray) -> ScoreValue:
        n = len(s)
        t, order = np.empty(n), self._order.copy()
        up_count, up_slack, low_count, low_slack = np.empty(n), np.empty(n), np.empty(n), np.empty(n)

        def work(first: int, last: int) -> None:
            offsets = self.queries.offsets
            centre_and_sort(s, t, order, offsets, first, last)
            active_partners(
                t, self._level, order, offsets, first, last, self._weights,
                up_count, up_slack, low_count, low_slack,
            )  # fmt: skip

        map_blocks(work, self.cuts)
        self._order = order  # the next scores are near these: sorting from here is nearly free
        gradient, degree = 2.0 * (low_slack - up_slack), up_count + low_count
        if self._row_weight is not None:
            gradient, degree, up_slack = (self._row_weight * a for a in (gradient, degree, up_slack))
        slack = float(np.sum(up_slack))
        # Σ ξ² = Σ ξ − Σ ξ(s_i − s_j), and the last sum is −½⟨s, ∇⟩.
        value = max(0.0, slack + 0.5 * float(np.sum(t * gradient)))
        return ScoreValue(value, gradient, slack, PairState(t, order, degree))

    def half_curvature(self, at: ScoreValue, first: int, last: int, V: FloatArray) -> FloatArray:
        """R = deg·V − 2N, N_i the sum of V over i's active lower partners: VᵀR + RᵀV = 2 VᵀLV."""
        sums = np.zeros_like(V)
        self._add_partners(at.state, first, last, V, sums, upper=False)
        return self._degree_less(at.state, first, last, V, 2.0 * sums)

    def curvature(self, at: ScoreValue, first: int, last: int, V: FloatArray) -> FloatArray:
        """S·V = 2LV = 2(deg·V − N), N_i the sum of V over all of i's active partners."""
        sums = np.zeros_like(V)
        for upper in (False, True):
            self._add_partners(at.state, first, last, V, sums, upper)
        return 2.0 * self._degree_less(at.state, first, last, V, sums)

    def _add_partners(
        self, state: PairState, first: int, last: int, V: FloatArray, sums: FloatArray, upper: bool
    ) -> None:
        offsets = self.queries.offsets
        lower_partner_sums(
            state.t, self._level, state.order, offsets, first, last, self._weights, V, sums, upper
        )  # fmt: skip

    def _degree_less(
        self, state: PairState, first: int, last: int, V: FloatArray, sums: FloatArray
    ) -> FloatArray:
        """deg·V − sums, the sums times their query's weight (which the degree holds already)."""
        rows = slice(self.queries.offsets[first], self.queries.offsets[last])
        if self._row_weight is not None:
            sums *= self._row_weight[rows, None]
        return np.asarray(state.degree[rows, None] * V - sums)

    def dual(self, value: float, slack: float, scale: float) -> float:
        """D = 2c·(1/p)Σξ − c²·(1/p)Σξ² for the dual point 2cξ."""
        return 2.0 * scale * slack - scale**2 * value


def _checked_table(level_weights: FloatArray) -> FloatArray:
    table = np.array(level_weights, dtype=np.float64)
    if table.ndim != 2 or table.shape[0] != table.shape[1]:
        raise ValueError(f"level_weights must be a square table, got shape {table.shape}")
    if not np.isfinite(table).all() or np.any(np.tril(table, -1) < 0):
        raise ValueError("level_weights must be finite and not negative")
    return table
