"""The squared hinge over pairs, and what losses share that sort documents by score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any, ClassVar

import numpy as np

from ranksieve._parallel import map_blocks, map_shares, split_blocks
from ranksieve._types import FloatArray, IntArray
from ranksieve.data.dataset import checked_query_weight
from ranksieve.data.queries import Queries, local_levels, pair_weights
from ranksieve.errors import DataError, ParameterError
from ranksieve.kernels import sorted_pairs
from ranksieve.kernels.pairs import (
    Documents,
    Ranked,
    active_partners,
    centre_and_sort,
    degree_less,
    partner_rows,
)
from ranksieve.kernels.sorted_pairs import Arrays, Near, Parts
from ranksieve.losses.base import NO_PAIRS, Curvature, ScoreValue, Weights, grouped_weights

LOWER, UPPER = 1, -1  # the side on which partners are looked for


class SortedLoss:
    """A bound loss whose value comes from sweeps over each query's documents in score order."""

    def __init__(self, queries: Queries, query_weight: Weights, document_weight: Weights = None) -> None:
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

    def _sweep(self, s: FloatArray, sweep: Callable[[Ranked, int, int], None]) -> Ranked:
        """Centre and sort the scores of each query, then ``sweep`` the queries first..last of each block."""
        ranked = Ranked(np.empty(len(s)), self._order.copy())

        def work(first: int, last: int) -> None:
            centre_and_sort(s, self.queries.offsets, first, last, ranked)
            sweep(ranked, first, last)

        map_blocks(work, self.cuts)
        self._order = ranked.order  # the next scores are near these: sorting from here is nearly free
        return ranked

    def curvature_of(self, at: ScoreValue, first: int, last: int, V: FloatArray) -> Curvature:
        """0: a hinge is linear between its kinks."""
        return Curvature(None, V[:0], V[:0])

    @staticmethod
    def dual(value: float, slack: float, scale: float) -> float:
        """D = c·slack for a share c ≤ 1 of the active linear pieces, whose constants sum to ``slack``."""
        return scale * slack


class PairLoss(SortedLoss):
    """A sum over the active pairs of each query, which weigh as much as their query and both documents.

    With a ``table``, pairs weigh table[level of a document, level of its partner] times as much; labels are
    then whole numbers from 0.
    """

    def __init__(
        self,
        y: FloatArray,
        queries: Queries,
        query_weight: Weights,
        document_weight: Weights = None,
        table: FloatArray | None = None,
    ) -> None:
        super().__init__(queries, query_weight, document_weight)
        self._table, labels = table, queries.group(y)
        self.level = local_levels(labels, queries) if table is None else checked_levels(labels, len(table))
        self.normaliser = float(self._n_pairs() @ self.weight)
        if self.normaliser <= 0:
            raise DataError(None, None, NO_PAIRS)

    def _n_pairs(self) -> FloatArray:
        """The weight of the pairs of each query."""
        if self._table is None:
            return pair_weights(self.level, self.queries, self.mass)
        counts = np.zeros((self.queries.n_queries, len(self._table)))
        mass = 1.0 if self.mass is None else self.mass
        np.add.at(counts, (self.queries.query_of_grouped, self.level), mass)
        return np.asarray(np.einsum("qa,ab,qb->q", counts, np.tril(self._table), counts))

    @cached_property
    def _documents(self) -> Documents:
        return Documents(self.queries.offsets, self.level, self.weight, self.mass)

    def _active(self, s: FloatArray) -> tuple[Ranked, list[FloatArray]]:
        """(centred scores and order, [mass, Σξ as the upper, mass, Σξ as the lower document of pairs])."""
        sums = [np.empty(len(s)) for _ in range(4)]

        def sweep(ranked: Ranked, first: int, last: int) -> None:
            for side, (count, slack) in ((LOWER, sums[:2]), (UPPER, sums[2:])):
                active_partners(self._documents, ranked, first, last, side, self._table, count, slack)

        return self._sweep(s, sweep), sums


MANY_DOCUMENTS = 2**18  # from here on arrays are kept of the latest scores alone
FEW_LABELS = 8  # with more, lists of the documents above each level take more time than sorting all


@dataclass(frozen=True, eq=False)
class SquaredHinge:
    """f(s) = (1/p) Σ_{(i,j)} ω_ij max(0, 1 − (s_i − s_j))² over pairs of one query with y_i > y_j.

    ω_ij is the query's weight times the weights of both documents times ``level_weights[y_i, y_j]`` (each 1
    without), and p = Σ ω_ij: giving a query or a document weight 2 is the same as having it twice.
    """

    level_weights: FloatArray | None = None
    name: ClassVar[str] = "squared_hinge"

    @property
    def abilities(self) -> tuple[str, ...]:
        """What rankers with this loss can do (:meth:`ranksieve.rankers.Ranker.can`)."""
        return ("document_weight",) if self.level_weights is not None else ("document_weight", "distributed")

    def bind(
        self, y: FloatArray, queries: Queries, query_weight: Weights = None, document_weight: Weights = None
    ) -> FewLabels | ManyLabels:
        if self.level_weights is not None:
            lower = np.tril(checked_table(self.level_weights), -1)
            return WeightedLabels(y, queries, query_weight, document_weight, lower + lower.T)
        few = len(np.unique(y)) <= FEW_LABELS
        return (FewLabels if few else ManyLabels)(y, queries, query_weight, document_weight)

    def normaliser_without_pairs(
        self, queries: Queries, query_weight: Weights, document_weight: Weights
    ) -> float:
        """What documents without pairs add to the normaliser of data that they are a part of."""
        return 0.0


class BoundSquaredHinge(PairLoss):
    """The squared hinge of one data set: O(n log n) value and gradient."""

    name: ClassVar[str] = "squared_hinge"

    def part(self, queries: Queries, rows: IntArray, chosen: IntArray) -> BoundSquaredHinge:
        """The loss of some queries: ``rows`` of the documents in grouped order, ``chosen`` of the queries."""
        mass = None if self.mass is None else self.mass[rows]
        return type(self)(self.level[rows].astype(np.float64), queries, self.weight[chosen], mass)

    @staticmethod
    def dual(value: float, slack: float, scale: float) -> float:
        """D = 2c·(1/p)Σξ − c²·(1/p)Σξ² for the dual point 2cξ."""
        return 2.0 * scale * slack - scale**2 * value


class LatestArrays:
    """The arrays of one score vector at a time, for data of many documents.

    Arrays of all points would take more memory than there is: other scores take the place of the latest.
    ``evaluate`` puts those of some scores into the arrays.
    """

    def __init__(self, arrays: Arrays, evaluate: Callable[[FloatArray, Arrays], ScoreValue]) -> None:
        self._arrays, self._evaluate, self._lock = arrays, evaluate, Lock()
        self._s: FloatArray | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None, "_s": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= {**state, "_lock": Lock()}

    def value(self, s: FloatArray) -> LatestValue:
        """The loss at the scores s."""
        with self._lock:
            at, self._s = self._evaluate(s, self._arrays), s
        return LatestValue(at.value, at.slack, at.by_query, at.terms, s, self)

    def at(self, s: FloatArray) -> Arrays:
        """The arrays of the scores s, computed again unless they are the latest."""
        with self._lock:
            if self._s is not s:
                self._evaluate(s, self._arrays)
                self._s = s
            return self._arrays


@dataclass(frozen=True, eq=False)
class LatestValue:
    """As :class:`ScoreValue`; gradient and state are good until those of other scores are asked for."""

    value: float
    slack: float
    by_query: FloatArray
    terms: tuple[float, float] | None
    s: FloatArray
    latest: LatestArrays

    @property
    def gradient(self) -> FloatArray:
        return self.state.gradient

    @property
    def state(self) -> Arrays:
        return self.latest.at(self.s)

    @cached_property
    def size(self) -> float:
        """Σ |gradient|."""
        return float(np.sum(np.abs(self.gradient)))


class FewLabels(BoundSquaredHinge):
    """By sorted lists of the documents above each level: O(n·k) curvature of k columns."""

    offers: ClassVar[frozenset[str]] = frozenset(
        {"hessian", "hessian_product", "largest_at_zero", "line", "part", "places", "rows"}
    )

    def __init__(
        self, y: FloatArray, queries: Queries, query_weight: Weights, document_weight: Weights = None
    ) -> None:
        super().__init__(y, queries, query_weight, document_weight)
        self.level = self.level.astype(np.int8)
        self._lists, uppers = sorted_pairs.make_lists(self.level, queries.offsets)
        self._near = Near(uppers, np.zeros(queries.n_rows, dtype=np.int32))  # of the latest scores
        self._latest: LatestArrays | None = None
        if queries.n_rows > MANY_DOCUMENTS:
            self._latest = LatestArrays(self._room(self._near), self._evaluate)

    def evaluate(self, s: FloatArray) -> Any:
        """Sum and gradient: a ScoreValue, of many documents a LatestValue."""
        if self._latest is not None:
            return self._latest.value(s)
        at = self._evaluate(s, self._room(_copied(self._near)))
        self._near = Near(at.state.uppers, at.state.above)
        return at

    def _room(self, near: Near) -> Arrays:
        n = self.queries.n_rows
        return Arrays(*near, np.empty(n, dtype=np.int32 if self.mass is None else np.float64), np.empty(n))

    def _evaluate(self, s: FloatArray, arrays: Arrays) -> ScoreValue:
        """The loss at the scores s; the arrays, of other scores before, are then those of s."""
        sums = np.empty((self.queries.n_queries, 4))

        def work(first: int, last: int) -> None:
            sorted_pairs.squared_hinge(self._documents, self._lists, s, first, last, arrays, sums)

        map_shares(work, self.cuts)
        slack, value, *terms = sums.sum(axis=0).tolist()
        sizes = (terms[0], terms[1])
        return ScoreValue(_not_negative(value), arrays.gradient, slack, arrays, sums[:, 1], sizes)

    def line(self, at: ScoreValue, s: FloatArray, d: FloatArray) -> Callable[[float], tuple[float, float]]:
        """A function of μ: both derivatives of the loss along d at s + μd; ``at`` is the loss at s."""
        near, slopes = _copied(at.state), np.empty((self.queries.n_queries, 2))

        def along(step: float) -> tuple[float, float]:
            def work(first: int, last: int) -> None:
                sorted_pairs.squared_hinge_along(
                    self._documents, self._lists, s, d, step, first, last, near, slopes
                )

            map_shares(work, self.cuts)
            if self._latest is None:
                self._near = _copied(near)  # where the next evaluation will be
            slope, curvature = slopes.sum(axis=0).tolist()
            return slope, curvature

        return along

    def curvature_of(
        self, at: ScoreValue, first: int, last: int, V: FloatArray, places: IntArray | None = None
    ) -> Curvature:
        """VᵀSV = 2Vᵀ(D − A)V, D the documents' active pairs and A those between documents."""
        places = np.arange(V.shape[1]) if places is None else places
        parts = Parts(*(np.empty((len(V), len(places))) for _ in range(3)))
        n_scaled, n_upper = sorted_pairs.hessian_parts(
            self._documents, self._lists, at.state, first, last, V, places, parts
        )
        return Curvature(parts.scaled[:n_scaled], parts.upper[:n_upper], parts.sums[:n_upper])

    def curvature(self, at: ScoreValue, first: int, last: int, v: FloatArray) -> FloatArray:
        """Sv = 2(deg·v − n), n_i the sum of v over all of i's active partners."""
        product = np.empty(len(v))
        sorted_pairs.hessian_product(self._documents, self._lists, at.state, first, last, v, product)
        return product


def _copied(near: Near | Arrays) -> Near:
    return Near(near.uppers.copy(), near.above.copy())


@dataclass(frozen=True)
class OrderState:
    """Scores with their order, and every document's weight of active pairs."""

    ranked: Ranked
    degree: FloatArray


class ManyLabels(BoundSquaredHinge):
    """By the order of all documents, for any number of labels: O(n log n) curvature of a column."""

    offers: ClassVar[frozenset[str]] = frozenset(
        {"hessian", "hessian_product", "largest_at_zero", "part", "rows"}
    )

    def evaluate(self, s: FloatArray) -> ScoreValue:
        ranked, (up_count, up_slack, low_count, low_slack) = self._active(s)
        t, weight = ranked.t, self._row_weight
        gradient = weight * (2.0 * (low_slack - up_slack))
        degree, slack = weight * (up_count + low_count), float(np.sum(weight * up_slack))
        value = slack + 0.5 * float(np.sum(t * gradient))  # Σ ξ² = Σ ξ − Σ ξ(t_i − t_j)
        shares = weight * up_slack + 0.5 * t * gradient
        by_query = np.add.reduceat(shares, self.queries.offsets[:-1])
        size = 1.0 + np.abs(t)
        terms = float(degree @ size), float(degree @ size**2)
        state = OrderState(ranked, degree)
        return ScoreValue(_not_negative(value), gradient, slack, state, by_query, terms)

    def curvature_of(self, at: ScoreValue, first: int, last: int, V: FloatArray) -> Curvature:
        """VᵀSV = VᵀN + NᵀV with N = deg·V − 2M, M_i the sum of V over i's active lower partners."""
        return Curvature(None, V, self._less_partners(at.state, first, last, V, (LOWER,), 2.0))

    def curvature(self, at: ScoreValue, first: int, last: int, v: FloatArray) -> FloatArray:
        """Sv = 2(deg·v − n), n_i the sum of v over all of i's active partners."""
        product = self._less_partners(at.state, first, last, v[:, None], (LOWER, UPPER), 1.0)
        return np.asarray(2.0 * product[:, 0])

    def _less_partners(
        self,
        state: OrderState,
        first: int,
        last: int,
        V: FloatArray,
        sides: tuple[int, ...],
        times: float,
    ) -> FloatArray:
        """deg·V − times·(sums of V over active partners on some sides), with all weights of documents."""
        rows = slice(self.queries.offsets[first], self.queries.offsets[last])
        sums, counted = np.zeros_like(V), V if self.mass is None else self.mass[rows, None] * V
        for side in sides:
            partner_rows(self._documents, state.ranked, first, last, side, self._table, counted, sums)
        degree_less(state.degree[rows], V, times * self._row_weight[rows], sums)
        return sums


class WeightedLabels(ManyLabels):
    """With a weight per pair of labels; it cannot be parted."""

    offers: ClassVar[frozenset[str]] = ManyLabels.offers - {"part"}


def _not_negative(value: float) -> float:
    """A sum of squares without its rounding errors; NaN where it overflowed."""
    return float(np.maximum(0.0, value))


def checked_levels(y: FloatArray, n: int) -> IntArray:
    """Labels as rows of a table of n level weights."""
    levels = y.astype(np.int64)
    if np.any(levels != y) or levels.min() < 0 or levels.max() >= n:
        raise DataError(
            None,
            None,
            f"level weights of shape {n}×{n} need integer labels 0 to {n - 1}, "
            f"but labels run from {y.min():g} to {y.max():g}",
        )
    return levels


def checked_table(level_weights: FloatArray) -> FloatArray:
    """A square table of weights, finite and not negative."""
    table = np.array(level_weights, dtype=np.float64)
    if table.ndim != 2 or table.shape[0] != table.shape[1]:
        raise ParameterError("level_weights", table, f"must be a square table, got shape {table.shape}")
    if not np.isfinite(table).all() or np.any(np.tril(table, -1) < 0):
        raise ParameterError("level_weights", table, "must be finite and not negative")
    return table
