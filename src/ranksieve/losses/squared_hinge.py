"""The squared hinge over pairs, and base classes of losses that sort documents by score."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from ranksieve.kernels.linear import StoredRows
from ranksieve.kernels.pairs import (
    GroupedDocuments,
    Ranking,
    active_partners,
    centre_and_sort,
    degree_minus_partners,
    partner_rows,
)
from ranksieve.kernels.sorted_pairs import HessianParts, HingeArrays, SortedLists
from ranksieve.losses.base import NO_PAIRS, Curvature, ScoreValue, Weights, grouped_weights, query_factors

WORSE, BETTER = 1, -1  # side of the partners: less or more relevant documents


class SortedLoss:
    """A bound loss whose value comes from sweeps over each query's documents in score order."""

    def __init__(self, queries: Queries, query_weight: Weights, document_weight: Weights = None) -> None:
        self.queries = queries
        self.cuts = split_blocks(queries.offsets)
        self.query_weight = checked_query_weight(query_weight, queries.n_queries)
        self.document_weight = grouped_weights(document_weight, queries)

    @cached_property
    def _row_weight(self) -> FloatArray:
        """Query weight times document weight of each document, in grouped order."""
        of_query = np.repeat(self.query_weight, self.queries.sizes)
        return of_query if self.document_weight is None else of_query * self.document_weight

    @cached_property
    def _order(self) -> IntArray:
        """Each query's documents, sorted by the latest scores."""
        return np.arange(self.queries.n_rows)

    def _sweep(self, s: FloatArray, sweep: Callable[[Ranking, int, int], None]) -> Ranking:
        """Centre and sort the scores of each query, then call ``sweep`` for each block of queries."""
        ranking = Ranking(np.empty(len(s)), self._order.copy())

        def work(first: int, last: int) -> None:
            centre_and_sort(s, self.queries.offsets, first, last, ranking)
            sweep(ranking, first, last)

        map_blocks(work, self.cuts)
        self._order = ranking.order  # sorting similar scores from this order takes linear time
        return ranking

    def curvature_of(self, at: ScoreValue, first: int, last: int, V: FloatArray) -> Curvature:
        """0, because a hinge is piecewise linear."""
        return Curvature(None, V[:0], V[:0])

    @staticmethod
    def dual(value: float, slack: float, scale: float) -> float:
        """D = c·slack for c ≤ 1 times the active linear pieces, whose constants sum to ``slack``."""
        return scale * slack


class PairLoss(SortedLoss):
    """A sum over the active pairs of each query, weighted by the query and both documents.

    With a ``table``, pairs are also weighted by table[level of a document, level of its partner]; labels must
    then be integers from 0. ``query_weight`` becomes the query weights times the factors of
    ``pair_weighting``.
    """

    def __init__(
        self,
        y: FloatArray,
        queries: Queries,
        query_weight: Weights,
        document_weight: Weights = None,
        table: FloatArray | None = None,
        pair_weighting: str = "pairs",
    ) -> None:
        super().__init__(queries, query_weight, document_weight)
        self._table, labels = table, queries.group(y)
        self.level = local_levels(labels, queries) if table is None else checked_levels(labels, len(table))
        pairs = self._pairs_per_query()
        self.query_weight = self.query_weight * query_factors(pairs, pair_weighting)
        self.normaliser = float(pairs @ self.query_weight)
        if self.normaliser <= 0:
            raise DataError(None, None, NO_PAIRS)

    def _pairs_per_query(self) -> FloatArray:
        """Total weight of the pairs of each query, without the query weight."""
        if self._table is None:
            return pair_weights(self.level, self.queries, self.document_weight)
        return table_pairs(self.level, self.queries, self.document_weight, self._table)

    @cached_property
    def _documents(self) -> GroupedDocuments:
        return GroupedDocuments(self.queries.offsets, self.level, self.query_weight, self.document_weight)

    def _active(self, s: FloatArray) -> tuple[Ranking, list[FloatArray]]:
        """(ranking, [weight of active pairs and Σξ as the better document, then as the worse document])."""
        sums = [np.empty(len(s)) for _ in range(4)]

        def sweep(ranking: Ranking, first: int, last: int) -> None:
            for side, (count, slack) in ((WORSE, sums[:2]), (BETTER, sums[2:])):
                active_partners(self._documents, ranking, first, last, side, self._table, count, slack)

        return self._sweep(s, sweep), sums


def table_pairs(
    level: IntArray, queries: Queries, document_weight: FloatArray | None, table: FloatArray
) -> FloatArray:
    """Total weight of the pairs of each query with a ``table``; documents are grouped by query."""
    counts = np.zeros((queries.n_queries, len(table)))
    np.add.at(counts, (queries.query_of_grouped, level), 1.0 if document_weight is None else document_weight)
    return np.asarray(np.einsum("qa,ab,qb->q", counts, np.tril(table, -1), counts))


MAX_CACHED_DOCUMENTS = 2**18  # with more, only the arrays of the latest scores are stored
MAX_LIST_LABELS = 8  # with more, lists for each level are slower than sorting all documents


@dataclass(frozen=True, eq=False)
class SquaredHinge:
    """f(s) = (1/p) Σ_{(i,j)} ω_ij max(0, 1 − (s_i − s_j))² over pairs of one query with y_i > y_j.

    ω_ij is the query's weight times the weights of both documents times ``level_weights[y_i, y_j]`` (1 by
    default), and p = Σ ω_ij: weight 2 is equivalent to having the query or document twice. ``pair_weighting``
    also weights each query by a power of P, the total weight of its pairs: "pairs" by 1, so that all pairs
    count equally, "sqrt" by 1/√P, "queries" by 1/P, so that all queries count equally.
    """

    level_weights: FloatArray | None = None
    pair_weighting: str = "pairs"
    name: ClassVar[str] = "squared_hinge"

    @property
    def abilities(self) -> tuple[str, ...]:
        """Abilities of rankers with this loss (:meth:`ranksieve.rankers.Ranker.can`)."""
        return ("document_weight",) if self.level_weights is not None else ("document_weight", "distributed")

    def bind(
        self, y: FloatArray, queries: Queries, query_weight: Weights = None, document_weight: Weights = None
    ) -> FewLabels | ManyLabels:
        if self.level_weights is not None:
            below_diagonal = np.tril(checked_table(self.level_weights), -1)
            return WeightedLabels(
                y,
                queries,
                query_weight,
                document_weight,
                below_diagonal + below_diagonal.T,
                self.pair_weighting,
            )
        kind = FewLabels if len(np.unique(y)) <= MAX_LIST_LABELS else ManyLabels
        return kind(y, queries, query_weight, document_weight, pair_weighting=self.pair_weighting)

    def normaliser_without_pairs(
        self, queries: Queries, query_weight: Weights, document_weight: Weights
    ) -> float:
        """Contribution of documents without pairs to the normaliser."""
        return 0.0


def stated_loss(parameters: Mapping[str, Any]) -> SquaredHinge:
    """The squared hinge with the pair weighting in a model's parameters (default: "pairs")."""
    return SquaredHinge(pair_weighting=parameters.get("pair_weighting", "pairs"))


class BoundSquaredHinge(PairLoss):
    """The squared hinge of one data set: O(n log n) value and gradient."""

    name: ClassVar[str] = "squared_hinge"

    def part(self, queries: Queries, rows: IntArray, chosen: IntArray) -> BoundSquaredHinge:
        """The loss of the ``chosen`` queries, whose documents are ``rows`` in grouped order."""
        document_weight = None if self.document_weight is None else self.document_weight[rows]
        return type(self)(
            self.level[rows].astype(np.float64), queries, self.query_weight[chosen], document_weight
        )

    @staticmethod
    def dual(value: float, slack: float, scale: float) -> float:
        """D = 2c·(1/p)Σξ − c²·(1/p)Σξ² for the dual point 2cξ."""
        return 2.0 * scale * slack - scale**2 * value


class LatestArrays:
    """The arrays of the latest score vector, for data with many documents.

    Arrays for every point would need too much memory, so each evaluation overwrites them. ``evaluate(s,
    arrays)`` fills the arrays for the scores s.
    """

    def __init__(
        self, arrays: HingeArrays, evaluate: Callable[[FloatArray, HingeArrays], ScoreValue]
    ) -> None:
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
        return LatestValue(at.value, at.slack, at.terms, s, self)

    def at(self, s: FloatArray) -> HingeArrays:
        """The arrays for the scores s, recomputed if s are not the latest scores."""
        with self._lock:
            if self._s is not s:
                self._evaluate(s, self._arrays)
                self._s = s
            return self._arrays


@dataclass(frozen=True, eq=False)
class LatestValue:
    """Like :class:`ScoreValue`, but gradient and state are valid only until other scores are evaluated."""

    value: float
    slack: float
    terms: tuple[float, float] | None
    s: FloatArray
    latest: LatestArrays

    @property
    def gradient(self) -> FloatArray:
        return self.state.gradient

    @property
    def state(self) -> HingeArrays:
        return self.latest.at(self.s)

    @cached_property
    def size(self) -> float:
        """Σ |gradient|."""
        return float(np.sum(np.abs(self.gradient)))


class FewLabels(BoundSquaredHinge):
    """The squared hinge by sorted lists for each level (few labels): O(n·k) curvature for k columns."""

    offers: ClassVar[frozenset[str]] = frozenset(
        {"hessian", "hessian_product", "largest_at_zero", "line", "part", "columns", "rows", "stored_rows"}
    )

    def __init__(
        self,
        y: FloatArray,
        queries: Queries,
        query_weight: Weights,
        document_weight: Weights = None,
        pair_weighting: str = "pairs",
    ) -> None:
        super().__init__(y, queries, query_weight, document_weight, pair_weighting=pair_weighting)
        self.level = self.level.astype(np.int8)
        self._lists, better = sorted_pairs.make_lists(self.level, queries.offsets)
        # sorted by the latest scores
        self._sorted_lists = SortedLists(better, np.zeros(queries.n_rows, dtype=np.int32))
        self._latest: LatestArrays | None = None
        if queries.n_rows > MAX_CACHED_DOCUMENTS:
            self._latest = LatestArrays(self._new_arrays(self._sorted_lists), self._evaluate)

    def evaluate(self, s: FloatArray) -> Any:
        """Sum and gradient: a ScoreValue, or a LatestValue for many documents."""
        if self._latest is not None:
            return self._latest.value(s)
        at = self._evaluate(s, self._new_arrays(_copy_lists(self._sorted_lists)))
        self._sorted_lists = SortedLists(at.state.better, at.state.active_better)
        return at

    def _new_arrays(self, lists: SortedLists) -> HingeArrays:
        n = self.queries.n_rows
        return HingeArrays(
            *lists, np.empty(n, dtype=np.int32 if self.document_weight is None else np.float64), np.empty(n)
        )

    def _evaluate(self, s: FloatArray, arrays: HingeArrays) -> ScoreValue:
        """The loss at the scores s; overwrites the arrays, which may belong to other scores."""
        sums = np.empty((self.queries.n_queries, 4))

        def work(first: int, last: int) -> None:
            sorted_pairs.squared_hinge(self._documents, self._lists, s, first, last, arrays, sums)

        map_shares(work, self.cuts)
        slack, value, *terms = sums.sum(axis=0).tolist()
        sizes = (terms[0], terms[1])
        return ScoreValue(_not_negative(value), arrays.gradient, slack, arrays, sizes)

    def line(self, at: ScoreValue, s: FloatArray, d: FloatArray) -> Callable[[float], tuple[float, float]]:
        """Function that returns both derivatives of the loss along d at s + μd; ``at`` is the loss at s."""
        lists, slopes = _copy_lists(at.state), np.empty((self.queries.n_queries, 2))

        def along(step: float) -> tuple[float, float]:
            def work(first: int, last: int) -> None:
                sorted_pairs.squared_hinge_along(
                    self._documents, self._lists, s, d, step, first, last, lists, slopes
                )

            map_shares(work, self.cuts)
            if self._latest is None:
                self._sorted_lists = _copy_lists(lists)  # the next evaluation is probably close
            slope, curvature = slopes.sum(axis=0).tolist()
            return slope, curvature

        return along

    def curvature_of(
        self, at: ScoreValue, first: int, last: int, V: FloatArray, columns: IntArray | None = None
    ) -> Curvature:
        """VᵀSV = 2Vᵀ(D − A)V, A the weights of active pairs and D = diag(A·1)."""
        columns = np.arange(V.shape[1]) if columns is None else columns
        dtype = np.float32 if V.dtype == np.uint8 else np.float64
        parts = HessianParts(*(np.empty((len(V), len(columns)), dtype) for _ in range(3)))
        n_scaled, n_better = sorted_pairs.hessian_parts(
            self._documents, self._lists, at.state, first, last, V, columns, parts
        )
        return Curvature(parts.scaled[:n_scaled], parts.better_rows[:n_better], parts.sums[:n_better])

    def block_of_rows(
        self, at: ScoreValue, first: int, last: int, rows: StoredRows, position: IntArray, n_columns: int
    ) -> FloatArray:
        """VᵀSV for CSR rows: column j of V is the one with position j."""
        half = np.zeros((n_columns, n_columns))
        sorted_pairs.sparse_hessian(self._documents, self._lists, at.state, first, last, rows, position, half)
        return half + half.T

    def degrees(self, at: ScoreValue) -> FloatArray:
        """The diagonal of S."""
        return np.asarray(2.0 * np.repeat(self.query_weight, self.queries.sizes) * at.state.active_pairs)

    def curvature(self, at: ScoreValue, first: int, last: int, v: FloatArray) -> FloatArray:
        """Sv = 2(deg·v − n), n_i the sum of v over all of i's active partners."""
        product = np.empty(len(v))
        sorted_pairs.hessian_product(self._documents, self._lists, at.state, first, last, v, product)
        return product


def _copy_lists(lists: SortedLists | HingeArrays) -> SortedLists:
    return SortedLists(lists.better.copy(), lists.active_better.copy())


@dataclass(frozen=True)
class OrderState:
    """Scores with their order, and the total weight of the active pairs of each document."""

    ranking: Ranking
    degree: FloatArray


class ManyLabels(BoundSquaredHinge):
    """The squared hinge by sorting all documents (any number of labels): O(n log n) curvature per column."""

    offers: ClassVar[frozenset[str]] = frozenset(
        {"hessian", "hessian_product", "largest_at_zero", "part", "rows"}
    )

    def evaluate(self, s: FloatArray) -> ScoreValue:
        ranking, (better_count, better_slack, worse_count, worse_slack) = self._active(s)
        t, weight = ranking.t, self._row_weight
        gradient = weight * (2.0 * (worse_slack - better_slack))
        degree, slack = weight * (better_count + worse_count), float(np.sum(weight * better_slack))
        value = slack + 0.5 * float(np.sum(t * gradient))  # Σ ξ² = Σ ξ − Σ ξ(t_i − t_j)
        size = 1.0 + np.abs(t)
        terms = float(degree @ size), float(degree @ size**2)
        state = OrderState(ranking, degree)
        return ScoreValue(_not_negative(value), gradient, slack, state, terms)

    def curvature_of(self, at: ScoreValue, first: int, last: int, V: FloatArray) -> Curvature:
        """VᵀSV = VᵀN + NᵀV with N = deg·V − 2M, M_i the sum of V over i's active worse partners."""
        return Curvature(None, V, self._degree_minus_partners(at.state, first, last, V, (WORSE,), 2.0))

    def curvature(self, at: ScoreValue, first: int, last: int, v: FloatArray) -> FloatArray:
        """Sv = 2(deg·v − n), n_i the sum of v over all of i's active partners."""
        product = self._degree_minus_partners(at.state, first, last, v[:, None], (WORSE, BETTER), 1.0)
        return np.asarray(2.0 * product[:, 0])

    def _degree_minus_partners(
        self,
        state: OrderState,
        first: int,
        last: int,
        V: FloatArray,
        sides: tuple[int, ...],
        times: float,
    ) -> FloatArray:
        """deg·V − times·(weighted sums of V over the active partners on ``sides``)."""
        rows = slice(self.queries.offsets[first], self.queries.offsets[last])
        sums, weighted = (
            np.zeros_like(V),
            V if self.document_weight is None else self.document_weight[rows, None] * V,
        )
        for side in sides:
            partner_rows(self._documents, state.ranking, first, last, side, self._table, weighted, sums)
        degree_minus_partners(state.degree[rows], V, times * self._row_weight[rows], sums)
        return sums


class WeightedLabels(ManyLabels):
    """The squared hinge with a weight per pair of labels; it does not support :meth:`part`."""

    offers: ClassVar[frozenset[str]] = ManyLabels.offers - {"part"}


def _not_negative(value: float) -> float:
    """Clip the rounding error of a sum of squares at 0; NaN (overflow) stays NaN."""
    return float(np.maximum(0.0, value))


def checked_levels(y: FloatArray, n: int) -> IntArray:
    """Labels as indices into a table of n level weights."""
    levels = y.astype(np.int64)
    if np.any(levels != y) or levels.min() < 0 or levels.max() >= n:
        raise DataError(
            None,
            None,
            f"level weights of shape {n}×{n} need integer labels 0 to {n - 1}, "
            f"but the labels are between {y.min():g} and {y.max():g}",
        )
    return levels


def checked_table(level_weights: FloatArray) -> FloatArray:
    """Level weights as an array; raises an error if they are not square, finite and ≥ 0."""
    table = np.array(level_weights, dtype=np.float64)
    if table.ndim != 2 or table.shape[0] != table.shape[1]:
        raise ParameterError("level_weights", table, f"must be a square table, got shape {table.shape}")
    if not np.isfinite(table).all() or np.any(np.tril(table, -1) < 0):
        raise ParameterError("level_weights", table, "must be finite and not negative")
    return table
