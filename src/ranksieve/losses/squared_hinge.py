"""The squared hinge over pairs, and what losses share that sort documents by score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ranksieve._parallel import map_blocks, map_shares, split_blocks
from ranksieve._types import AnyArray, FloatArray, IntArray
from ranksieve.data.dataset import checked_query_weight
from ranksieve.data.queries import Queries, local_levels, pair_weights
from ranksieve.errors import DataError, ParameterError
from ranksieve.kernels import sorted_pairs as kernels
from ranksieve.kernels import sorted_pairs as upper_hessians
from ranksieve.kernels.pairs import (
    active_partners,
    centre_and_sort,
    degree_less,
    partner_rows,
    weighted_partner_rows,
    weighted_partners,
)
from ranksieve.losses.base import NO_PAIRS, Curvature, ScoreValue, grouped_weights

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

    @staticmethod
    def dual(value: float, slack: float, scale: float) -> float:
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

    def bind(
        self,
        y: FloatArray,
        queries: Queries,
        query_weight: FloatArray | None = None,
        document_weight: FloatArray | None = None,
    ) -> BoundSquaredHinge:
        if self.level_weights is not None:
            return WeightedSquaredHinge(y, queries, query_weight, document_weight, self.level_weights)
        kind = BoundSquaredHinge if len(np.unique(y)) <= FEW_LABELS else ManyLabels
        return kind(y, queries, query_weight, document_weight)

    def normaliser_without_pairs(
        self, queries: Queries, query_weight: FloatArray | None, document_weight: FloatArray | None
    ) -> float:
        """What documents without pairs add to the normaliser of data that they are a part of."""
        return 0.0


@dataclass(frozen=True)
class ListState:
    """Sorted lists of upper documents, and of every document the number of active ones among them (``above``)
    and that (with weights of documents, the weight) of all its active pairs."""

    uppers: AnyArray
    above: AnyArray
    active: AnyArray


class Arrays(NamedTuple):
    """What an evaluation leaves of every document."""

    uppers: AnyArray
    above: AnyArray
    active: AnyArray
    gradient: FloatArray


class Sums(NamedTuple):
    """Σ ωξ, Σ ωξ², the latter of each query, and the sizes of the terms of these sums."""

    slack: float
    value: float
    by_query: FloatArray
    terms: tuple[float, float]


class LatestValue(ScoreValue):
    """The loss at some scores, whose arrays are there as long as no other scores are evaluated.

    After that they are computed again when they are asked for: of many documents, arrays of all points would
    take more memory than there is.
    """

    _loss: BoundSquaredHinge
    _s: FloatArray

    def __init__(self, loss: BoundSquaredHinge, s: FloatArray, sums: Sums) -> None:
        known = {**sums._asdict(), "_loss": loss, "_s": s}
        for name, given in known.items():
            object.__setattr__(self, name, given)

    @property
    def gradient(self) -> FloatArray:
        return self._arrays.gradient

    @property
    def state(self) -> ListState:
        uppers, above, active, _ = self._arrays
        return ListState(uppers, above, active)

    @property
    def _arrays(self) -> Arrays:
        return self._loss.arrays_of(self, self._s)


class BoundSquaredHinge(PairLoss):
    """The squared hinge of one data set: O(n log n) value and gradient, O(n·k) curvature of k columns."""

    name: ClassVar[str] = "squared_hinge"
    offers: ClassVar[frozenset[str]] = frozenset(
        {"hessian", "hessian_product", "largest_at_zero", "line", "part", "places", "rows"}
    )

    def __init__(
        self,
        y: FloatArray,
        queries: Queries,
        query_weight: FloatArray | None,
        document_weight: FloatArray | None = None,
    ) -> None:
        super().__init__(y, queries, query_weight, document_weight)
        self.level = self.level.astype(np.int8)
        self._lists, uppers = kernels.make_lists(self.level, queries.offsets)
        self._near = (uppers, np.zeros(queries.n_rows, dtype=np.int32))  # of the latest scores
        self._latest: tuple[ScoreValue, Arrays] | None = None  # of many documents
        self._lock = Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None, "_latest": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= {**state, "_lock": Lock()}

    def evaluate(self, s: FloatArray) -> ScoreValue:
        if len(s) > MANY_DOCUMENTS:
            with self._lock:
                return self._evaluate_in_place(s)
        arrays = self._room(self._near[0].copy(), self._near[1].copy())
        sums = self._sums(s, arrays)
        self._near = (arrays.uppers, arrays.above)
        return ScoreValue(gradient=arrays.gradient, state=ListState(*arrays[:3]), **sums._asdict())

    def arrays_of(self, at: ScoreValue, s: FloatArray) -> Arrays:
        """The arrays of a value of many documents, at the scores s."""
        with self._lock:
            if self._latest is None or self._latest[0] is not at:
                self._latest = (at, self._arrays_at(s)[0])
            return self._latest[1]

    def _evaluate_in_place(self, s: FloatArray) -> ScoreValue:
        arrays, sums = self._arrays_at(s)
        at = LatestValue(self, s, sums)
        self._latest = (at, arrays)
        return at

    def _arrays_at(self, s: FloatArray) -> tuple[Arrays, Sums]:
        """The one set of arrays, with what belongs to the scores s; and the sums there."""
        arrays = self._latest[1] if self._latest is not None else self._room(*self._near)
        self._near = (arrays.uppers, arrays.above)
        return arrays, self._sums(s, arrays)

    def _room(self, uppers: AnyArray, above: AnyArray) -> Arrays:
        n = self.queries.n_rows
        active = np.empty(n, dtype=np.int32 if self.mass is None else np.float64)
        return Arrays(uppers, above, active, np.empty(n))

    def _sums(self, s: FloatArray, arrays: Arrays) -> Sums:
        """The sums at the scores s; the arrays, of other scores before, are then those of s."""
        sums = np.empty((self.queries.n_queries, 4))

        def work(first: int, last: int) -> None:
            kernels.squared_hinge(
                s, self.level, self.weight, self.mass, self.queries.offsets, first, last, self._lists,
                *arrays, sums,
            )  # fmt: skip

        map_shares(work, self.cuts)
        slack, value, *terms = sums.sum(axis=0).tolist()
        return Sums(slack, _not_negative(value), sums[:, 1], (terms[0], terms[1]))

    def line(self, at: ScoreValue, s: FloatArray, d: FloatArray) -> Callable[[float], tuple[float, float]]:
        """A function of μ: both derivatives of the loss along d at s + μd; ``at`` is the loss at s."""
        queries, uppers, above = self.queries, at.state.uppers.copy(), at.state.above.copy()
        slopes = np.empty((queries.n_queries, 2))

        def along(step: float) -> tuple[float, float]:
            def work(first: int, last: int) -> None:
                kernels.squared_hinge_along(
                    s, d, self.level, step, self.weight, self.mass, queries.offsets, first, last, self._lists,
                    uppers, above, slopes,
                )  # fmt: skip

            map_shares(work, self.cuts)
            if self._latest is None:
                self._near = (uppers.copy(), above.copy())  # where the next evaluation will be
            slope, curvature = slopes.sum(axis=0).tolist()
            return slope, curvature

        return along

    def curvature_of(
        self, at: ScoreValue, first: int, last: int, V: FloatArray, places: IntArray | None = None
    ) -> Curvature:
        """VᵀSV = 2Vᵀ(D − A)V, D the documents' active pairs and A those between documents."""
        state, places = at.state, np.arange(V.shape[1]) if places is None else places
        scaled, upper, sums = (np.empty((len(V), len(places))) for _ in range(3))
        n_scaled, n_upper = upper_hessians.hessian_parts(
            self.level, self.queries.offsets, first, last, self._lists, state.uppers, state.above,
            self.weight, self.mass, state.active, V, places, scaled, upper, sums,
        )  # fmt: skip
        return Curvature(scaled[:n_scaled], upper[:n_upper], sums[:n_upper])

    def curvature(self, at: ScoreValue, first: int, last: int, v: FloatArray) -> FloatArray:
        """Sv = 2(deg·v − n), n_i the sum of v over all of i's active partners."""
        product, state = np.empty(len(v)), at.state
        upper_hessians.hessian_product(
            self.queries.offsets, first, last, self._lists, state.uppers, state.above, self.weight, self.mass,
            state.active, v, product,
        )  # fmt: skip
        return product

    def part(self, queries: Queries, rows: IntArray, chosen: IntArray) -> BoundSquaredHinge:
        """The loss of some queries: ``rows`` of the documents in grouped order, ``chosen`` of the queries."""
        mass = None if self.mass is None else self.mass[rows]
        return type(self)(self.level[rows].astype(np.float64), queries, self.weight[chosen], mass)

    @staticmethod
    def dual(value: float, slack: float, scale: float) -> float:
        """D = 2c·(1/p)Σξ − c²·(1/p)Σξ² for the dual point 2cξ."""
        return 2.0 * scale * slack - scale**2 * value


@dataclass(frozen=True)
class OrderState:
    """Centred scores, each query's order by score, and every document's weight of active pairs."""

    t: FloatArray
    order: IntArray
    degree: FloatArray


class ManyLabels(BoundSquaredHinge):
    """The same in O(n log n) for any number of labels, from the order of all documents."""

    offers: ClassVar[frozenset[str]] = BoundSquaredHinge.offers - {"line", "places"}

    def __init__(
        self,
        y: FloatArray,
        queries: Queries,
        query_weight: FloatArray | None,
        document_weight: FloatArray | None = None,
    ) -> None:
        PairLoss.__init__(self, y, queries, query_weight, document_weight)

    def evaluate(self, s: FloatArray) -> ScoreValue:
        t, order, (up_count, up_slack, low_count, low_slack) = self._active(s)
        gradient = self._row_weight * (2.0 * (low_slack - up_slack))
        degree, slack = self._row_weight * (up_count + low_count), float(np.sum(self._row_weight * up_slack))
        value = slack + 0.5 * float(np.sum(t * gradient))  # Σ ξ² = Σ ξ − Σ ξ(t_i − t_j)
        shares = self._row_weight * up_slack + 0.5 * t * gradient
        by_query = np.add.reduceat(shares, self.queries.offsets[:-1])
        state, size = OrderState(t, order, degree), 1.0 + np.abs(t)
        terms = float(degree @ size), float(degree @ size**2)
        return ScoreValue(_not_negative(value), gradient, slack, state, by_query, terms)

    def curvature_of(
        self, at: ScoreValue, first: int, last: int, V: FloatArray, places: IntArray | None = None
    ) -> Curvature:
        """VᵀSV = VᵀN + NᵀV with N = deg·V − 2M, M_i the sum of V over i's active lower partners."""
        sums, counted = np.zeros_like(V), self._counted(first, last, V)
        self._partner_rows(at.state, first, last, LOWER, counted, sums)
        return Curvature(None, V, self._degree_less(at.state, first, last, V, sums, 2.0))

    def curvature(self, at: ScoreValue, first: int, last: int, v: FloatArray) -> FloatArray:
        V = v[:, None]
        sums, counted = np.zeros_like(V), self._counted(first, last, V)
        for side in (LOWER, UPPER):
            self._partner_rows(at.state, first, last, side, counted, sums)
        return np.asarray(2.0 * self._degree_less(at.state, first, last, V, sums, 1.0)[:, 0])

    def _counted(self, first: int, last: int, V: FloatArray) -> FloatArray:
        """Rows of documents times their weights."""
        if self.mass is None:
            return V
        return self.mass[self.queries.offsets[first] : self.queries.offsets[last], None] * V

    def _partner_rows(
        self, state: OrderState, first: int, last: int, side: int, V: FloatArray, sums: FloatArray
    ) -> None:
        """Add to ``sums`` the rows of V of each document's active partners on one side."""
        partner_rows(state.t, self.level, state.order, self.queries.offsets, first, last, side, V, sums)

    def _degree_less(
        self, state: OrderState, first: int, last: int, V: FloatArray, sums: FloatArray, times: float
    ) -> FloatArray:
        """deg·V − times·sums, the sums times their document's weight (which the degree holds already)."""
        rows = slice(self.queries.offsets[first], self.queries.offsets[last])
        degree_less(state.degree[rows], V, times * self._row_weight[rows], sums)
        return sums


class WeightedSquaredHinge(ManyLabels):
    """The squared hinge with a weight per pair of labels, which are whole numbers from 0."""

    offers: ClassVar[frozenset[str]] = ManyLabels.offers - {"part"}

    def __init__(
        self,
        y: FloatArray,
        queries: Queries,
        query_weight: FloatArray | None,
        document_weight: FloatArray | None,
        level_weights: FloatArray,
    ) -> None:
        table = np.tril(checked_table(level_weights), -1)
        self._table = table + table.T  # [level of a document, level of its partner]
        super().__init__(y, queries, query_weight, document_weight)

    def _levels(self, y: FloatArray) -> IntArray:
        return checked_levels(y, len(self._table))

    def _n_pairs(self) -> FloatArray:
        counts = np.zeros((self.queries.n_queries, len(self._table)))
        mass = 1.0 if self.mass is None else self.mass
        np.add.at(counts, (self.queries.query_of_grouped, self.level), mass)
        return np.asarray(np.einsum("qa,ab,qb->q", counts, np.tril(self._table), counts))

    def _partners(
        self, t: FloatArray, order: IntArray, first: int, last: int, side: int, out: list[FloatArray]
    ) -> None:
        offsets = self.queries.offsets
        weighted_partners(t, self.level, order, offsets, first, last, side, self.mass, self._table, *out)

    def _partner_rows(
        self, state: OrderState, first: int, last: int, side: int, V: FloatArray, sums: FloatArray
    ) -> None:
        weighted_partner_rows(
            state.t, self.level, state.order, self.queries.offsets, first, last, side, self._table, V, sums
        )


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
