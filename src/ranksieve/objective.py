"""The smooth objective f(Xw): the only owner of the feature matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ranksieve._parallel import map_blocks, split_blocks
from ranksieve._types import FloatArray, IntArray, Matrix
from ranksieve.data.dataset import Dataset, check_finite
from ranksieve.data.matrix import (
    dense_block,
    is_float64_in_place,
    is_sparse,
    rows_to_multiply,
    spread_and_largest,
    with_columns,
)
from ranksieve.data.queries import Queries
from ranksieve.losses import LOSSES
from ranksieve.losses.base import BoundLoss, Curvature, Loss, ScoreValue

FAR = 32.0  # times the spread of a feature: from here on an offset costs digits of its differences
NOISY = 2.0**20  # times the least spread: a constant so large could pass for a feature by its rounding errors
LARGEST = 1e150  # a feature whose square still fits into a float64
KEPT_CELLS = 2**25  # of columns kept side by side: 256 MB
NEAR_CELLS = 2**15  # of X, a quarter of a megabyte: what a core keeps at hand
ROUNDING = 16.0 * float(np.finfo(np.float64).eps)  # of a sum, as a share of the sum of its terms' sizes


Read: TypeAlias = Callable[[int, int], FloatArray]
"""The values of some columns in the rows first..last."""


@dataclass(frozen=True)
class Point:
    """Weights with everything known of the loss there; ``value`` and ``slack`` are means."""

    w: FloatArray
    scores: FloatArray
    value: float
    slack: float
    at: ScoreValue


class Objective:
    """f(w) = loss(Xw) / normaliser, its gradient and blocks of its Hessian.

    ``X`` may be dense float32/float64 (also memory-mapped) or CSR; it is read in fixed blocks of rows, turned
    into float64 a block at a time, and never copied whole. Partial sums are added in block order, so results
    do not depend on the number of threads.

    Only differences within a query count. A feature whose values lie far from zero for their spread is
    therefore read less the value of the query's first document, so that its differences keep their digits.

    Attributes
    ----------
    reach : array
        max |x_j| of each feature as it is read.
    varies : array of bool
        Features that are not constant within every query.
    """

    def __init__(self, X: Matrix, loss: BoundLoss, feature_names: Sequence[str] | None = None) -> None:
        if X.shape[0] != loss.queries.n_rows:
            raise ValueError(f"X has {X.shape[0]} rows but the labels have {loss.queries.n_rows}")
        self.X = X
        self.loss: Any = loss  # what more than a BoundLoss it gives, ``offers`` says
        self.n_features = int(X.shape[1])
        self._cuts = split_blocks(np.arange(X.shape[0] + 1))
        self._at_zero: Point | None = None
        self._latest: tuple[ScoreValue, IntArray, FloatArray] | None = None  # of hessians: at, columns, sum
        self._gradient: tuple[ScoreValue, FloatArray] | None = None  # the last one, and where
        self._kept: tuple[IntArray, FloatArray] | None = None  # columns side by side, in grouped order
        spread, largest = spread_and_largest(X, loss.queries, loss.cuts)
        self.varies = spread > 0
        self._far = np.flatnonzero(largest > np.where(self.varies, FAR * spread, NOISY * _least(spread)))
        self.reach = largest
        self.reach[self._far] = spread[self._far]
        _check_size(self.reach, feature_names)
        self._centre_far()

    def evaluate(self, w: FloatArray) -> Point:
        """Loss at the weights ``w``."""
        return self.evaluate_scores(w, self.scores(w))

    def evaluate_scores(self, w: FloatArray, scores: FloatArray) -> Point:
        """Loss at weights whose scores are known already; infinite where a score is not finite."""
        if not np.isfinite(scores).all():
            return Point(w, scores, np.inf, np.nan, ScoreValue(np.inf, np.full(len(scores), np.nan), np.nan))
        at = self.loss.evaluate(self.loss.queries.group(scores))
        return Point(w, scores, at.value / self.loss.normaliser, at.slack / self.loss.normaliser, at)

    def scores(self, w: FloatArray) -> FloatArray:
        """Xw, in input order."""
        if (kept := self._kept) is not None and _holds(kept[0], np.flatnonzero(w)):
            columns, values = kept
            parts = map_blocks(lambda a, b: values[a:b] @ w[columns], self._cuts)
            return np.asarray(self.loss.queries.restore(np.concatenate(parts)))
        return np.concatenate(map_blocks(lambda a, b: self._rows(a, b) @ w, self._cuts))

    def keep(self, columns: IntArray) -> None:
        """Copy some columns side by side, for scores and Hessians of these; less is read of X then."""
        room = len(columns) * self.loss.queries.n_rows <= KEPT_CELLS and 2 * len(columns) <= self.n_features
        if not room:
            self._kept = None
            return
        kept = np.sort(columns)
        blocks = map_blocks(lambda a, b: self._grouped_columns(a, b, kept), self._cuts)
        self._kept = (kept, np.concatenate(blocks))

    def keeps(self, columns: IntArray) -> bool:
        """Whether these columns are kept side by side."""
        kept = self._kept
        return kept is not None and _holds(kept[0], columns)

    def gradient(self, point: Point) -> FloatArray:
        """Xᵀ∇loss / normaliser; 0, and no rounding error, for a feature that does not vary within queries."""
        known = self._gradient  # read once: another thread may put its own there
        if known is None or known[0] is not point.at:
            total = self._transposed(point.at.gradient) / self.loss.normaliser
            known = self._gradient = (point.at, np.where(self.varies, total, 0.0))
        return known[1].copy()

    def hessian(self, point: Point, columns: IntArray) -> FloatArray:
        """The block of the (generalised) Hessian on ``columns``: X_Aᵀ S X_A / normaliser."""
        if (known := self._known_hessian(point, columns)) is not None:
            return known
        read = self._reader(columns)

        def work(first: int, last: int) -> FloatArray:
            parts = self._few_queries(first, last, len(columns))
            return _ordered_sum([self._curvature(point, read, a, b).block() for a, b in parts])

        total = _ordered_sum(map_blocks(work, self.loss.cuts))
        return np.asarray(self._cleared(total, columns) / self.loss.normaliser)

    def _cleared(self, hessian: FloatArray, columns: IntArray) -> FloatArray:
        """Without the rounding errors of features that are constant within every query."""
        constant = ~self.varies[columns]
        hessian[..., constant, :] = 0.0
        hessian[..., constant] = 0.0
        return hessian

    def _curvature(self, point: Point, read: Read, first: int, last: int) -> Curvature:
        """The share of the queries first..last in the Hessian block, as a sum."""
        offsets = self.loss.queries.offsets
        V = read(int(offsets[first]), int(offsets[last]))
        parts: Curvature = self.loss.curvature_of(point.at, first, last, V)
        return parts

    def _reader(self, columns: IntArray) -> Read:
        """Reads some columns of rows that are counted in grouped order; not to be written to."""
        if (kept := self._kept) is not None and _holds(kept[0], columns):
            held, values = kept
            if np.array_equal(held, columns):
                return lambda a, b: values[a:b]
            place = np.searchsorted(held, columns)
            return lambda a, b: np.ascontiguousarray(values[a:b, place])
        whole = len(columns) == self.n_features and bool(np.array_equal(columns, np.arange(self.n_features)))
        X = self.X
        if whole and not len(self._far) and self.loss.queries.contiguous and is_float64_in_place(X):
            return lambda a, b: np.asarray(X[a:b])
        return lambda a, b: self._grouped_columns(a, b, columns)

    def gradients(self, point: Point, cuts: IntArray) -> FloatArray:
        """What the queries between each two cuts add to the gradient, as a sum."""
        g, offsets = self.loss.queries.restore(point.at.gradient), self.loss.queries.offsets

        def work(first: int, last: int) -> FloatArray:
            start, stop = int(offsets[first]), int(offsets[last])
            return np.asarray(self._rows(start, stop).T @ g[start:stop])

        return np.array(map_blocks(work, cuts))

    def hessians(self, point: Point, columns: IntArray, cuts: IntArray) -> FloatArray:
        """What the queries between each two cuts add to the Hessian block, as a sum."""
        read, hessians = self._reader(columns), np.zeros((len(cuts) - 1, len(columns), len(columns)))

        def work(first: int, last: int) -> list[tuple[int, FloatArray]]:
            bounds = np.clip(cuts, first, last)
            met = np.flatnonzero(np.diff(bounds)).tolist()
            parts = ((k, self._few_queries(int(bounds[k]), int(bounds[k + 1]), len(columns))) for k in met)
            return [(k, self._curvature(point, read, a, b).block()) for k, few in parts for a, b in few]

        for shares in map_blocks(work, self.loss.cuts):
            for k, block in shares:
                hessians[k] += block
        self._cleared(hessians, columns)
        self._latest = (point.at, columns, _ordered_sum(list(hessians)) / self.loss.normaliser)
        return hessians

    def _known_hessian(self, point: Point, columns: IntArray) -> FloatArray | None:
        """The block, if :meth:`hessians` has just computed it at the same point."""
        latest = self._latest
        if latest is None or latest[0] is not point.at:
            return None
        _, known, hessian = latest
        place = np.searchsorted(known, columns)
        if len(known) == 0 or not np.array_equal(known[np.minimum(place, len(known) - 1)], columns):
            return None
        return np.ascontiguousarray(hessian[np.ix_(place, place)])

    def curvatures(self, point: Point) -> FloatArray:
        """The diagonal of the (generalised) Hessian."""
        read = self._reader(np.arange(self.n_features))

        def work(first: int, last: int) -> FloatArray:
            parts = self._few_queries(first, last, self.n_features)
            return _ordered_sum([self._curvature(point, read, a, b).diagonal() for a, b in parts])

        diagonal = _ordered_sum(map_blocks(work, self.loss.cuts)) / self.loss.normaliser
        return np.where(self.varies, diagonal, 0.0)

    def restricted(self, columns: IntArray) -> Objective:
        """The same loss as a function of the weights of some columns."""
        part = object.__new__(Objective)
        part.__dict__ |= self.__dict__
        part.X, part.n_features = self.X[:, columns], len(columns)
        part._at_zero, part._latest, part._gradient, part._kept = None, None, None, None
        part.varies, part.reach = self.varies[columns], self.reach[columns]
        _, part._far, among = np.intersect1d(columns, self._far, return_indices=True)
        if len(self._far):
            part._first = self._first[:, among]
        return part

    def sample(self, every: int) -> Objective | None:
        """The mean loss of every so many queries; None if it cannot be parted, or if they have no pairs."""
        if "part" not in self.loss.offers:
            return None
        queries, chosen = self.loss.queries, np.arange(0, self.loss.queries.n_queries, every)
        rows = np.flatnonzero(np.isin(queries.query_of_grouped, chosen))
        offsets = np.concatenate(([0], np.cumsum(queries.sizes[chosen])))
        among = Queries(queries.ids[chosen], np.arange(len(rows)), offsets)
        try:
            return Objective(self.X[queries.order[rows]], self.loss.part(among, rows, chosen))
        except ValueError:
            return None

    def hessian_product(self, point: Point, v: FloatArray) -> FloatArray:
        """The (generalised) Hessian times ``v``, without forming it: Xᵀ S X v / normaliser."""
        if self.loss.queries.contiguous:
            return np.asarray(self._product_by_parts(point, v) / self.loss.normaliser)
        grouped, offsets = self.loss.queries.group(self.scores(v)), self.loss.queries.offsets

        def work(first: int, last: int) -> FloatArray:
            V = grouped[offsets[first] : offsets[last], None]
            return np.asarray(self.loss.curvature(point.at, first, last, V)[:, 0])

        products = np.concatenate(map_blocks(work, self.loss.cuts))
        return np.asarray(self._transposed(products) / self.loss.normaliser)

    def _few_queries(self, first: int, last: int, width: int) -> Iterator[tuple[int, int]]:
        """The queries first..last, a few at a time: as many as a core keeps at hand in so many columns."""
        offsets, most = self.loss.queries.offsets, NEAR_CELLS // max(width, 1)
        while first < last:
            end = int(np.searchsorted(offsets, offsets[first] + most, side="right")) - 1
            end = min(max(end, first + 1), last)
            yield first, end
            first = end

    def _product_by_parts(self, point: Point, v: FloatArray) -> FloatArray:
        """Xᵀ S X v, a few queries at a time, so that their rows are still at hand for the second product."""
        offsets = self.loss.queries.offsets

        def work(first: int, last: int) -> FloatArray:
            total = np.zeros(self.n_features)
            for begin, end in self._few_queries(first, last, self.n_features):
                rows = self._rows(int(offsets[begin]), int(offsets[end]))
                product = self.loss.curvature(point.at, begin, end, (rows @ v)[:, None])
                total += rows.T @ product[:, 0]
            return total

        return _ordered_sum(map_blocks(work, self.loss.cuts))

    def slopes_along(
        self, point: Point, direction_scores: FloatArray
    ) -> Callable[[float], tuple[float, float]]:
        """A function of μ: both derivatives of the loss when the scores move by μ·direction_scores.

        If the loss offers a "line", this takes less than a whole evaluation.
        """
        queries, normaliser = self.loss.queries, self.loss.normaliser
        if "line" in self.loss.offers:
            slopes = self.loss.line(queries.group(point.scores), queries.group(direction_scores))

            def along(step: float) -> tuple[float, float]:
                slope, curvature = slopes(step)
                return slope / normaliser, curvature / normaliser

            return along

        def evaluated(step: float) -> tuple[float, float]:
            at = self.evaluate_scores(point.w, point.scores + step * direction_scores) if step else point
            return self.slope_along(at, direction_scores), self.curvature_along(at, direction_scores)

        return evaluated

    def slope_along(self, point: Point, direction_scores: FloatArray) -> float:
        """Derivative of the loss when the scores move along ``direction_scores`` = X·direction."""
        gradient = self.loss.queries.restore(point.at.gradient)
        return float(np.sum(gradient * direction_scores) / self.loss.normaliser)

    def curvature_along(self, point: Point, direction_scores: FloatArray) -> float:
        """Second derivative of the loss when the scores move along ``direction_scores``."""
        grouped, offsets = self.loss.queries.group(direction_scores), self.loss.queries.offsets

        def work(first: int, last: int) -> float:
            V = grouped[offsets[first] : offsets[last], None]
            return float(self.loss.curvature_of(point.at, first, last, V).diagonal()[0])

        return float(sum(map_blocks(work, self.loss.cuts)) / self.loss.normaliser)

    def column(self, j: int) -> FloatArray:
        """Feature ``j`` of every document, in input order: what one unit of its weight adds to the scores."""
        rows = self._grouped_columns(0, self.loss.queries.n_rows, np.array([j]))
        return np.asarray(self.loss.queries.restore(rows[:, 0]))

    def dual(self, point: Point, scale: float) -> float:
        """Dual value of the loss at ``scale`` times the point's own dual variables."""
        return float(self.loss.dual(point.value, point.slack, scale))

    @property
    def offers(self) -> frozenset[str]:
        """What solvers may ask for beside value and gradient."""
        return frozenset(self.loss.offers)

    @property
    def at_zero(self) -> Point:
        """The loss at w = 0."""
        if self._at_zero is None:
            self._at_zero = self.evaluate(np.zeros(self.n_features))
        return self._at_zero

    def _transposed(self, grouped: FloatArray) -> FloatArray:
        """Xᵀ times one number per document, given in grouped order."""
        g = self.loss.queries.restore(grouped)
        return _ordered_sum(map_blocks(lambda a, b: self._rows(a, b).T @ g[a:b], self._cuts))

    def gradient_error(self, point: Point) -> FloatArray:
        """How far rounding may have moved each entry of the gradient."""
        return ROUNDING * self._size(point) * (1.0 + self._extent(point)) * self.reach

    def value_error(self, point: Point) -> float:
        """How far rounding may have moved the loss."""
        return ROUNDING * (point.value + self._size(point) * self._extent(point))

    def _size(self, point: Point) -> float:
        """Σ_i |∂f/∂s_i|."""
        return float(np.sum(np.abs(point.at.gradient)) / self.loss.normaliser)

    def _extent(self, point: Point) -> float:
        """Σ_j |w_j|·reach_j: no score is larger."""
        return float(np.abs(point.w) @ self.reach)

    def _centre_far(self) -> None:
        """Keep the first value of each query in the far columns; a sparse matrix is centred here."""
        if not len(self._far):
            return
        queries = self.loss.queries
        self._query = queries.restore(queries.query_of_grouped)
        values = dense_block(self.X, slice(None), self._far)
        self._first = values[queries.order[queries.offsets[:-1]]]
        if is_sparse(self.X):
            self.X = with_columns(self.X, self._far, values - self._first[self._query])
            self._far = self._far[:0]

    def _rows(self, start: int, stop: int) -> Matrix:
        block = rows_to_multiply(self.X, start, stop)
        if not len(self._far):
            return block
        block = block.copy() if np.may_share_memory(block, self.X) else block
        block[:, self._far] -= self._first[self._query[start:stop]]
        return block

    def _grouped_columns(self, start: int, stop: int, columns: IntArray) -> FloatArray:
        """Some columns of rows that are counted in grouped order."""
        queries = self.loss.queries
        rows = slice(start, stop) if queries.contiguous else queries.order[start:stop]
        block = dense_block(self.X, rows, columns)
        if len(self._far):
            _, among, far = np.intersect1d(columns, self._far, return_indices=True)
            query = queries.query_of_grouped[start:stop]
            block[:, among] -= self._first[query][:, far]
        return block


def make_objective(
    data: Dataset, loss: str | Loss = "squared_hinge", query_weight: FloatArray | None = None
) -> Objective:
    """The mean loss of a data set; a loss by its name in LOSSES, or as it is."""
    check_finite(data)
    family = LOSSES[loss]() if isinstance(loss, str) else loss
    return Objective(data.X, family.bind(data.y, data.queries, query_weight), data.feature_names)


def _holds(kept: IntArray, columns: IntArray) -> bool:
    return set(kept.tolist()) >= set(columns.tolist())


def _least(spread: FloatArray) -> float:
    """The smallest spread of a feature that varies: the scale on which a constant must not make noise."""
    return float(np.min(spread[spread > 0], initial=np.inf))


def _check_size(reach: FloatArray, names: Sequence[str] | None) -> None:
    if len(reach) and not reach.max() <= LARGEST:
        j = int(np.argmax(reach))
        name = f"the feature in column {j}" if names is None else f"feature {names[j]}"
        raise ValueError(
            f"{name} has values as large as {reach[j]:.3g}, whose square overflows; "
            "divide it by a power of ten, or fit with normalise='min_max'"
        )


def _ordered_sum(parts: list[FloatArray]) -> FloatArray:
    total = np.array(parts[0], dtype=np.float64)
    for part in parts[1:]:
        total += part
    return total
