"""The pairwise squared hinge, as a mean over pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranksieve._parallel import map_blocks
from ranksieve._types import FloatArray, IntArray
from ranksieve.data.queries import Queries
from ranksieve.kernels.pairs import (
    degree_less,
    hessian_parts,
    partner_rows,
    squared_hinge,
    squared_hinge_along,
    weighted_partner_rows,
    weighted_partners,
)
from ranksieve.losses.base import Curvature, ScoreValue
from ranksieve.losses.sorted_scores import LOWER, UPPER, PairLoss


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
        if self.level_weights is None:
            return BoundSquaredHinge(y, queries, query_weight)
        return WeightedSquaredHinge(y, queries, query_weight, self.level_weights)


@dataclass(frozen=True)
class PairState:
    """Centred scores, each query's order by score, and every document's weight of active pairs."""

    t: FloatArray
    order: IntArray
    degree: FloatArray


class BoundSquaredHinge(PairLoss):
    """The squared hinge of one data set: O(n log n) value and gradient, O(n·k) curvature of k columns."""

    name: ClassVar[str] = "squared_hinge"
    offers: ClassVar[frozenset[str]] = frozenset({"hessian", "hessian_product", "line", "part", "rows"})

    def evaluate(self, s: FloatArray) -> ScoreValue:
        t, degree, gradient = (np.empty(len(s)) for _ in range(3))
        order = self._order.copy()

        def work(first: int, last: int) -> float:
            offsets = self.queries.offsets
            return float(
                squared_hinge(s, self.level, self.weight, offsets, first, last, t, order, degree, gradient)
            )

        slack = float(sum(map_blocks(work, self.cuts)))
        self._order = order  # the next scores are near these: sorting from here is nearly free
        return self._value(slack, gradient, PairState(t, order, degree))

    def _value(self, slack: float, gradient: FloatArray, state: PairState) -> ScoreValue:
        # Σ ξ² = Σ ξ − Σ ξ(s_i − s_j), and the last sum is −½⟨s, ∇⟩.
        value = float(np.maximum(0.0, slack + 0.5 * np.sum(state.t * gradient)))  # NaN where it overflows
        return ScoreValue(value, gradient, slack, state)

    def line(self, s: FloatArray, d: FloatArray) -> Callable[[float], tuple[float, float]]:
        """A function of μ: first and second derivative of the loss at s + μd, along d."""
        queries, key, order = self.queries, np.empty(len(s)), self._order.copy()
        s, d = queries.centred(s), queries.centred(d)
        by_order = (s[order], d[order], self.level[order])

        def slopes(step: float) -> tuple[float, float]:
            def work(first: int, last: int) -> tuple[float, float]:
                slope, curvature = squared_hinge_along(
                    s, d, self.level, step, self.weight, queries.offsets, first, last, order, key, by_order
                )
                return slope, curvature

            found = map_blocks(work, self.cuts)
            self._order = order.copy()  # where the next evaluation will be; the line goes on
            return sum(slope for slope, _ in found), sum(curvature for _, curvature in found)

        return slopes

    def curvature_of(self, at: ScoreValue, first: int, last: int, V: FloatArray) -> Curvature:
        """VᵀSV = 2Vᵀ(D − A)V, D the documents' active pairs and A those between documents."""
        scaled, upper, sums = (np.empty(V.shape) for _ in range(3))
        state: PairState = at.state
        n_scaled, n_upper = hessian_parts(
            state.t, self.level, state.order, self.queries.offsets, first, last, self.weight, state.degree,
            V, scaled, upper, sums,
        )  # fmt: skip
        return Curvature(scaled[:n_scaled], upper[:n_upper], sums[:n_upper])

    def curvature(self, at: ScoreValue, first: int, last: int, V: FloatArray) -> FloatArray:
        """S·V = 2LV = 2(deg·V − N), N_i the sum of V over all of i's active partners."""
        sums = np.zeros_like(V)
        for side in (LOWER, UPPER):
            self._partner_rows(at.state, first, last, side, V, sums)
        return 2.0 * self._degree_less(at.state, first, last, V, sums, 1.0)

    def part(self, queries: Queries, rows: IntArray, chosen: IntArray) -> BoundSquaredHinge:
        """The loss of some queries: ``rows`` of the documents in grouped order, ``chosen`` of the queries."""
        return BoundSquaredHinge(self.level[rows].astype(np.float64), queries, self.weight[chosen])

    def dual(self, value: float, slack: float, scale: float) -> float:
        """D = 2c·(1/p)Σξ − c²·(1/p)Σξ² for the dual point 2cξ."""
        return 2.0 * scale * slack - scale**2 * value

    def _partner_rows(
        self, state: PairState, first: int, last: int, side: int, V: FloatArray, sums: FloatArray
    ) -> None:
        """Add to ``sums`` the rows of V of each document's active partners on one side."""
        partner_rows(state.t, self.level, state.order, self.queries.offsets, first, last, side, V, sums)

    def _degree_less(
        self, state: PairState, first: int, last: int, V: FloatArray, sums: FloatArray, times: float
    ) -> FloatArray:
        """deg·V − times·sums, the sums times their query's weight (which the degree holds already)."""
        rows = slice(self.queries.offsets[first], self.queries.offsets[last])
        degree_less(state.degree[rows], V, times * self._row_weight[rows], sums)
        return sums


class WeightedSquaredHinge(BoundSquaredHinge):
    """The squared hinge with a weight per pair of labels, which are whole numbers from 0."""

    offers: ClassVar[frozenset[str]] = BoundSquaredHinge.offers - {"line", "part"}

    def __init__(
        self, y: FloatArray, queries: Queries, query_weight: FloatArray | None, level_weights: FloatArray
    ) -> None:
        table = np.tril(_checked_table(level_weights), -1)
        self._table = table + table.T  # [level of a document, level of its partner]
        super().__init__(y, queries, query_weight)

    def evaluate(self, s: FloatArray) -> ScoreValue:
        t, order, (up_count, up_slack, low_count, low_slack) = self._active(s)
        gradient = self._row_weight * (2.0 * (low_slack - up_slack))
        degree, slack = self._row_weight * (up_count + low_count), float(np.sum(self._row_weight * up_slack))
        return self._value(slack, gradient, PairState(t, order, degree))

    def curvature_of(self, at: ScoreValue, first: int, last: int, V: FloatArray) -> Curvature:
        """N = deg·V − 2M, M_i the sum of V over i's active lower partners."""
        sums = np.zeros_like(V)
        self._partner_rows(at.state, first, last, LOWER, V, sums)
        return Curvature(None, V, self._degree_less(at.state, first, last, V, sums, 2.0))

    def _levels(self, y: FloatArray) -> IntArray:
        levels, n = y.astype(np.int64), len(self._table)
        if np.any(levels != y) or levels.min() < 0 or levels.max() >= n:
            raise ValueError(
                f"level weights of shape {n}×{n} need integer labels 0 to {n - 1}, "
                f"but labels run from {y.min():g} to {y.max():g}"
            )
        return levels

    def _n_pairs(self) -> FloatArray:
        counts = np.zeros((self.queries.n_queries, len(self._table)))
        np.add.at(counts, (self.queries.query_of_grouped, self.level), 1.0)
        return np.asarray(np.einsum("qa,ab,qb->q", counts, np.tril(self._table), counts))

    def _partners(
        self, t: FloatArray, order: IntArray, first: int, last: int, side: int, out: list[FloatArray]
    ) -> None:
        offsets = self.queries.offsets
        weighted_partners(t, self.level, order, offsets, first, last, side, self._table, *out)

    def _partner_rows(
        self, state: PairState, first: int, last: int, side: int, V: FloatArray, sums: FloatArray
    ) -> None:
        weighted_partner_rows(
            state.t, self.level, state.order, self.queries.offsets, first, last, side, self._table, V, sums
        )


def _checked_table(level_weights: FloatArray) -> FloatArray:
    table = np.array(level_weights, dtype=np.float64)
    if table.ndim != 2 or table.shape[0] != table.shape[1]:
        raise ValueError(f"level_weights must be a square table, got shape {table.shape}")
    if not np.isfinite(table).all() or np.any(np.tril(table, -1) < 0):
        raise ValueError("level_weights must be finite and not negative")
    return table
