"""The smooth objective f(Xw): the interface for solvers, and objectives of data in memory and on disk."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from ranksieve._parallel import fold_blocks, map_blocks, sum_blocks
from ranksieve._types import BoolArray, FloatArray, IntArray, Matrix
from ranksieve.data.dataset import Dataset, QueryWeight, check_finite, query_weights
from ranksieve.data.feature_matrix import (
    ColumnReader,
    FeatureMatrix,
    chosen_columns,
    feature_matrix,
    ordered_sum,
)
from ranksieve.data.matrix import is_streamed, take_matrix_rows
from ranksieve.data.parts import RemoteData
from ranksieve.data.queries import Queries, query_ranges
from ranksieve.data.steps import StepMatrix
from ranksieve.errors import DataError, lookup
from ranksieve.kernels.linear import StoredRows, stored_column_sums, stored_products
from ranksieve.losses import LOSSES
from ranksieve.losses.base import BoundLoss, Curvature, Loss, ScoreValue

CACHE_BYTES = 2**20  # of X processed at a time, so that they stay in the cache of a core
MAX_FORMED_COLUMNS = 1500  # of a Hessian of sparse columns; with more, it is not formed but multiplied
MAX_ZERO_POINT_DOCUMENTS = 2**18  # for larger data the point at w = 0 is recomputed instead of kept in memory
SUM_ROUNDING = 16.0 * float(np.finfo(np.float64).eps)  # error of a sum, relative to the sum of |terms|
PAIR_ROUNDING = SUM_ROUNDING / 4.0  # error of a sum over pairs, relative to the sum over every |term|
REUSED_BLOCK = 31 * 2**20  # bytes; larger blocks do not raise the threshold of glibc


@cache
def keep_freed_blocks() -> None:
    """Make glibc reuse freed arrays of up to 31 MB instead of returning them to the operating system.

    Allocating and freeing one block of that size raises the threshold; its pages are never touched. A path
    takes a sixth less time. Other C libraries are not affected.
    """
    np.empty(REUSED_BLOCK, dtype=np.uint8)


@dataclass(frozen=True)
class Point:
    """Weights with the loss evaluated there; ``value`` and ``slack`` are means.

    The types of ``scores`` and ``at`` (for data in memory, ScoreValue) depend on the objective.
    """

    w: FloatArray
    scores: Any
    value: float
    slack: float
    at: Any


@dataclass(frozen=True, eq=False)
class HessianBlock:
    """The Hessian on some columns."""

    columns: IntArray
    values: FloatArray

    def on(self, columns: IntArray) -> FloatArray | None:
        """The block on a subset of the columns; None if it is not a subset."""
        position = {j: k for k, j in enumerate(self.columns.tolist())}
        try:
            positions = [position[j] for j in columns.tolist()]
        except KeyError:
            return None
        return np.ascontiguousarray(self.values[np.ix_(positions, positions)])


@dataclass(frozen=True, eq=False)
class HessianProducts:
    """Products with the Hessian on some columns, for working sets too large to form it.

    ``rows`` are the entries of these columns in grouped order, ``degrees`` the diagonal of the Hessian in
    scores. A ``factor`` per document multiplies the Hessian of its query.
    """

    rows: StoredRows
    degrees: FloatArray
    n_columns: int
    loss: Any
    at: Any

    def product(self, v: FloatArray, factor: FloatArray | None = None) -> FloatArray:
        """The Hessian times ``v``."""
        offsets = self.loss.queries.offsets

        def work(first: int, last: int) -> FloatArray:
            a, b = offsets[[first, last]].tolist()
            scores, sums = np.empty(b - a), np.zeros((1, self.n_columns))
            stored_products(self.rows, v, a, b, scores)
            curved = self.loss.curvature(self.at, first, last, scores)
            curved = curved if factor is None else curved * factor[a:b]
            stored_column_sums(self.rows, curved, np.array([a, b]), sums)
            return np.asarray(sums[0])

        return np.asarray(sum_blocks(work, self.loss.cuts) / self.loss.normaliser)

    def scale(self, factor: FloatArray | None = None) -> FloatArray:
        """Σ_i S_ii·x_ij² of each column: near the diagonal of the Hessian if few documents share columns."""
        values, columns, starts = self.rows
        degrees = np.repeat(self.degrees if factor is None else self.degrees * factor, np.diff(starts))
        sums = np.bincount(columns, degrees * values.astype(np.float64) ** 2, minlength=self.n_columns)
        return np.asarray(sums / self.loss.normaliser)


class Objective(ABC):
    """f(w) = loss(Xw) / normaliser, its gradient and blocks of its (generalised) Hessian.

    Scores are an array in input order, or an object for scores elsewhere that can be added and multiplied by
    numbers. Solvers use ``varies`` and ``max_abs`` of ``features``, ``keep`` for columns that they will need,
    and ``column``: the scores of one column with weight 1. The ``loss`` has at least ``name``,
    ``normaliser``, ``queries`` and ``dual``; its ``offers`` lists the optional methods.
    """

    def __init__(self, features: Any, loss: Any) -> None:
        self.features, self.loss = features, loss
        self._at_zero: Point | None = None

    @property
    def n_features(self) -> int:
        return int(self.features.n_features)

    @property
    def varies(self) -> BoolArray:
        """Features that are not constant within every query."""
        return np.asarray(self.features.varies)

    @property
    def offers(self) -> frozenset[str]:
        """Names of the optional methods of the loss."""
        return frozenset(self.loss.offers)

    @property
    def at_zero(self) -> Point:
        """The loss at w = 0."""
        if self._at_zero is not None:
            return self._at_zero
        point = self.evaluate(np.zeros(self.n_features))
        if self.loss.queries.n_rows <= MAX_ZERO_POINT_DOCUMENTS:
            self._at_zero = point
        return point

    def evaluate(self, w: FloatArray) -> Point:
        """The loss at the weights ``w``."""
        return self.evaluate_scores(w, self.scores(w))

    def scores(self, w: FloatArray) -> Any:
        """Xw."""
        return self.features.scores(w)

    @abstractmethod
    def evaluate_scores(self, w: FloatArray, scores: Any) -> Point:
        """The loss at weights whose scores are already computed; infinite if a score is not finite."""

    @abstractmethod
    def gradient(self, point: Point) -> FloatArray:
        """Xᵀ∇loss / normaliser; exactly 0 for a feature that does not vary within queries."""

    def gradient_where_large(self, point: Point, least: FloatArray) -> FloatArray:
        """The gradient; entries of size below ``least`` may be replaced by upper bounds below ``least``."""
        return self.gradient(point)

    @abstractmethod
    def hessian(self, point: Point, columns: IntArray) -> FloatArray:
        """The Hessian on ``columns``: X_Aᵀ S X_A / normaliser."""

    @abstractmethod
    def curvatures(self, point: Point) -> FloatArray:
        """The diagonal of the Hessian."""

    @abstractmethod
    def hessian_product(self, point: Point, v: FloatArray) -> FloatArray:
        """The Hessian times ``v``, without forming it: Xᵀ S X v / normaliser."""

    def hessian_products(self, point: Point, columns: IntArray) -> HessianProducts | None:
        """Products with the Hessian on ``columns``; None if forming it is better."""
        return None

    @abstractmethod
    def gradients(self, point: Point, cuts: IntArray) -> FloatArray:
        """Sums of the gradient over the queries between consecutive cuts; rows are grouped by query."""

    @abstractmethod
    def hessians(self, point: Point, columns: IntArray, cuts: IntArray) -> FloatArray:
        """Sums of the Hessian on ``columns`` over the queries between consecutive cuts."""

    @abstractmethod
    def slope_along(self, point: Point, direction_scores: Any) -> float:
        """Derivative of the loss along ``direction_scores`` = X·direction."""

    @abstractmethod
    def curvature_along(self, point: Point, direction_scores: Any) -> float:
        """Second derivative of the loss along ``direction_scores``."""

    @abstractmethod
    def slopes_along(self, point: Point, direction_scores: Any) -> Callable[[float], tuple[float, float]]:
        """Function of a step μ that returns both derivatives at the scores plus μ·direction_scores."""

    @abstractmethod
    def restricted(self, columns: IntArray) -> Objective:
        """The objective as a function of the weights of some columns."""

    @abstractmethod
    def sample(self, every: int) -> Objective | None:
        """Mean loss of every ``every``-th query; None if the loss cannot be split or they have no pairs."""

    def dual(self, point: Point, scale: float) -> float:
        """Dual value of the loss at ``scale`` times the dual variables of the point."""
        return float(self.loss.dual(point.value, point.slack, scale))

    def gradient_error(self, point: Point) -> FloatArray:
        """Bound on the rounding error of each entry of the gradient; 0 for a feature that does not vary.

        Scores are rounded, and so are sums over pairs, whose terms may nearly cancel.
        """
        max_abs = np.where(self.varies, self.features.max_abs, 0.0)
        of_scores = SUM_ROUNDING * self._size(point) * (1.0 + self._extent(point))
        return np.asarray((of_scores + PAIR_ROUNDING * self._terms(point)[0]) * max_abs)

    def value_error(self, point: Point) -> float:
        """Bound on the rounding error of the loss; rounded scores may also move a pair across its kink."""
        extent = self._extent(point)
        of_scores = SUM_ROUNDING * (point.value + self._size(point) * extent)
        across = SUM_ROUNDING * (1.0 + extent)
        return of_scores + across * across + PAIR_ROUNDING * self._terms(point)[1]

    def _terms(self, point: Point) -> tuple[float, float]:
        """Sums of |terms| of the gradient and of the loss; pair weights sum to 1, with two documents each."""
        if (terms := getattr(point.at, "terms", None)) is not None:
            return terms[0] / self.loss.normaliser, terms[1] / self.loss.normaliser
        largest = 1.0 + self._extent(point)
        return 2.0 * largest, 2.0 * largest * largest

    def _size(self, point: Point) -> float:
        """Σ_i |∂f/∂s_i|."""
        return float(point.at.size / self.loss.normaliser)

    def _extent(self, point: Point) -> float:
        """Σ_j |w_j|·reach_j: no score is larger."""
        return float(np.abs(point.w) @ self.features.max_abs)


class DocumentObjective(Objective):
    """Objective of documents that this process reads: in memory, on disk or on a GPU."""

    def __init__(self, features: Any, loss: Any) -> None:
        super().__init__(features, loss)
        self._gradient: tuple[Any, FloatArray] | None = None  # (Point.at, the latest gradient)
        self._gradient_at_zero: FloatArray | None = None
        self._hessian: tuple[Any, HessianBlock] | None = None  # (Point.at, mean of the latest hessians)

    def gradient(self, point: Point) -> FloatArray:
        cached = self._gradient  # read once: another thread may replace it
        if cached is None or cached[0] is not point.at:
            cached = self._gradient = (point.at, self._compute_gradient(point))
        return cached[1].copy()

    def _compute_gradient(self, point: Point) -> FloatArray:
        if self._gradient_at_zero is not None and not point.w.any():
            return self._gradient_at_zero
        total = self._transposed(point.at.gradient) / self.loss.normaliser
        gradient = np.where(self.varies, total, 0.0)
        if not point.w.any():
            self._gradient_at_zero = gradient
        return gradient

    def _transposed(self, grouped: Any) -> FloatArray:
        """Xᵀ times one number per document; documents are grouped by query."""
        return np.asarray(self.features.transposed(self.loss.queries.restore(grouped)))

    def gradients(self, point: Point, cuts: IntArray) -> FloatArray:
        g = self.loss.queries.restore(point.at.gradient)
        return np.asarray(self.features.transposed_parts(g, self.loss.queries.offsets[cuts]))

    def slopes_along(self, point: Point, direction_scores: Any) -> Callable[[float], tuple[float, float]]:
        """If the loss offers "line", a step costs less than an evaluation of the loss."""
        queries, normaliser = self.loss.queries, self.loss.normaliser
        if "line" in self.loss.offers:
            slopes = self.loss.line(point.at, queries.group(point.scores), queries.group(direction_scores))

            def along(step: float) -> tuple[float, float]:
                slope, curvature = slopes(step)
                return slope / normaliser, curvature / normaliser

            return along

        def evaluated(step: float) -> tuple[float, float]:
            at = self.evaluate_scores(point.w, point.scores + step * direction_scores) if step else point
            return self.slope_along(at, direction_scores), self.curvature_along(at, direction_scores)

        return evaluated

    def _without_constants(self, hessian: FloatArray, columns: IntArray) -> FloatArray:
        """Set rows and columns of features that are constant within every query to exactly 0."""
        constant = ~self.varies[columns]
        hessian[..., constant, :] = 0.0
        hessian[..., constant] = 0.0
        return hessian

    def _cached_hessian(self, point: Point, columns: IntArray) -> FloatArray | None:
        """The Hessian, if the latest call of ``hessians`` computed it at the same point."""
        cached = self._hessian
        return None if cached is None or cached[0] is not point.at else cached[1].on(columns)


class LocalObjective(DocumentObjective):
    """Objective of features in memory, or on disk as :class:`StreamedObjective`."""

    features: FeatureMatrix

    def __init__(
        self,
        X: Matrix | FeatureMatrix,
        loss: BoundLoss,
        feature_names: Sequence[str] | None = None,
        extremes: tuple[FloatArray, FloatArray] | None = None,
    ) -> None:
        keep_freed_blocks()
        if isinstance(X, FeatureMatrix):
            super().__init__(X, loss)
            return
        if X.shape[0] != loss.queries.n_rows:
            reason = f"X has {X.shape[0]} rows but the labels have {loss.queries.n_rows}"
            raise DataError(None, None, reason)
        super().__init__(feature_matrix(X, loss.queries, loss.cuts, feature_names, extremes), loss)

    def evaluate_scores(self, w: FloatArray, scores: FloatArray) -> Point:
        if not np.isfinite(scores).all():
            return Point(w, scores, np.inf, np.nan, ScoreValue(np.inf, np.full(len(scores), np.nan), np.nan))
        at = self.loss.evaluate(self.loss.queries.group(scores))
        return Point(w, scores, at.value / self.loss.normaliser, at.slack / self.loss.normaliser, at)

    def hessian(self, point: Point, columns: IntArray) -> FloatArray:
        if (cached := self._cached_hessian(point, columns)) is not None:
            return cached
        total = sum_blocks(self._blocks(point, columns), self.loss.cuts)
        total /= self.loss.normaliser
        return self._without_constants(total, columns)

    def hessians(self, point: Point, columns: IntArray, cuts: IntArray) -> FloatArray:
        block, hessians = self._blocks(point, columns), np.zeros((len(cuts) - 1, len(columns), len(columns)))

        def work(first: int, last: int) -> list[tuple[int, FloatArray]]:
            bounds = np.clip(cuts, first, last)
            return [
                (k, block(int(bounds[k]), int(bounds[k + 1])))
                for k in np.flatnonzero(np.diff(bounds)).tolist()
            ]

        def add(shares: list[tuple[int, FloatArray]]) -> None:
            for k, hessian in shares:
                hessians[k] += hessian

        fold_blocks(work, self.loss.cuts, add)
        self._without_constants(hessians, columns)
        mean = ordered_sum(list(hessians)) / self.loss.normaliser
        self._hessian = (point.at, HessianBlock(columns, mean))
        return hessians

    def hessian_products(self, point: Point, columns: IntArray) -> HessianProducts | None:
        if len(columns) <= MAX_FORMED_COLUMNS or "stored_rows" not in self.loss.offers:
            return None
        rows = self.features.stored_rows(columns)
        if rows is None:
            return None
        return HessianProducts(rows, self.loss.degrees(point.at), len(columns), self.loss, point.at)

    def curvatures(self, point: Point) -> FloatArray:
        read = self.features.reader(np.arange(self.n_features))

        def work(first: int, last: int) -> FloatArray:
            parts = self._few_queries(first, last, self.n_features)
            return ordered_sum(self._curvature(point, read, a, b).diagonal() for a, b in parts)

        diagonal = sum_blocks(work, self.loss.cuts) / self.loss.normaliser
        return np.where(self.varies, diagonal, 0.0)

    def _few_queries(self, first: int, last: int, width: int) -> Iterator[tuple[int, int]]:
        """Ranges of the queries first..last whose rows fit into the cache of a core in ``width`` columns."""
        n_rows = CACHE_BYTES // (self.features.cell_bytes * max(width, 1))
        return query_ranges(self.loss.queries.offsets, first, last, n_rows)

    def _blocks(self, point: Point, columns: IntArray) -> Callable[[int, int], FloatArray]:
        """Function (first, last) → sum of the Hessian on ``columns`` over the queries first..last."""
        offsets, n_columns = self.loss.queries.offsets, len(columns)
        stored = self.features.stored_reader(columns) if "stored_rows" in self.loss.offers else None
        if stored is not None:
            return lambda first, last: self.loss.block_of_rows(
                point.at, first, last, *stored(int(offsets[first]), int(offsets[last])), n_columns
            )
        read = self.features.reader(columns)
        return lambda first, last: ordered_sum(
            self._curvature(point, read, a, b).block() for a, b in self._few_queries(first, last, n_columns)
        )

    def _curvature(self, point: Point, read: ColumnReader, first: int, last: int) -> Curvature:
        """Curvature of the queries first..last in the columns of ``read``."""
        offsets = self.loss.queries.offsets
        values, places = read(int(offsets[first]), int(offsets[last]))
        if "columns" in self.loss.offers:
            parts: Curvature = self.loss.curvature_of(point.at, first, last, values, places)
        else:
            parts = self.loss.curvature_of(point.at, first, last, chosen_columns(values, places))
        return parts

    def hessian_product(self, point: Point, v: FloatArray) -> FloatArray:
        if self.loss.queries.contiguous:
            return np.asarray(self._product_by_parts(point, v) / self.loss.normaliser)
        grouped, offsets = self.loss.queries.group(self.scores(v)), self.loss.queries.offsets

        def work(first: int, last: int) -> FloatArray:
            part = grouped[offsets[first] : offsets[last]]
            return np.asarray(self.loss.curvature(point.at, first, last, part))

        products = np.concatenate(map_blocks(work, self.loss.cuts))
        return np.asarray(self._transposed(products) / self.loss.normaliser)

    def _product_by_parts(self, point: Point, v: FloatArray) -> FloatArray:
        """Xᵀ S X v, a few queries at a time, so that their rows are still cached for the second product."""
        offsets = self.loss.queries.offsets

        def work(first: int, last: int) -> FloatArray:
            total = np.zeros(self.n_features)
            for begin, end in self._few_queries(first, last, self.n_features):
                rows = offsets[[begin, end]].tolist()
                product = self.loss.curvature(point.at, begin, end, self.features.scores_of(v, *rows))
                total += self.features.transposed_of(product, *rows)
            return total

        return sum_blocks(work, self.loss.cuts)

    def slope_along(self, point: Point, direction_scores: FloatArray) -> float:
        gradient = self.loss.queries.restore(point.at.gradient)
        return float(np.einsum("i,i->", gradient, direction_scores) / self.loss.normaliser)

    def curvature_along(self, point: Point, direction_scores: FloatArray) -> float:
        grouped, offsets = self.loss.queries.group(direction_scores), self.loss.queries.offsets

        def work(first: int, last: int) -> float:
            V = grouped[offsets[first] : offsets[last], None]
            return float(self.loss.curvature_of(point.at, first, last, V).diagonal()[0])

        return float(sum(map_blocks(work, self.loss.cuts)) / self.loss.normaliser)

    def restricted(self, columns: IntArray) -> LocalObjective:
        return type(self)(self.features.restricted(columns), self.loss)

    def sample(self, every: int) -> LocalObjective | None:
        if "part" not in self.loss.offers:
            return None
        queries, chosen = self.loss.queries, np.arange(0, self.loss.queries.n_queries, every)
        rows = np.flatnonzero(np.repeat(np.arange(queries.n_queries) % every == 0, queries.sizes))
        sampled = Queries(queries.ids[chosen], None, np.concatenate(([0], np.cumsum(queries.sizes[chosen]))))
        in_input = rows if queries.row_order is None else queries.row_order[rows]
        try:
            return LocalObjective(
                take_matrix_rows(self.features.X, in_input), self.loss.part(sampled, rows, chosen)
            )
        except ValueError:
            return None


NO_SCORE_VALUE = ScoreValue(np.nan, np.empty(0))  # replaces Point.at to save memory
FULL_GRADIENT_SHARE = 4  # the full gradient is computed if more than one entry in four is needed
MIN_FULL_GRADIENTS = 4  # full gradients before the bounds of later ones justify a pass over the data


@dataclass(frozen=True, eq=False)
class BoundedGradient:
    """A gradient at one point: exact entries where ``read``, else upper bounds of their absolute values."""

    at: ScoreValue
    values: FloatArray
    read: BoolArray


class StreamedObjective(LocalObjective):
    """Objective of features on disk, which reads only those columns whose gradient may be large.

    The Hessian is largest at w = 0, so |g_j′ − g_j| ≤ √(H_jj(0) · ⟨g′ − g, δ⟩) for two points at distance δ,
    where the inner product is computed from scores. So a full gradient bounds the following ones, until more
    than one entry in four may exceed its limit.
    """

    def __init__(
        self, X: Matrix | FeatureMatrix, loss: BoundLoss, names: Sequence[str] | None = None
    ) -> None:
        super().__init__(X, loss, names)
        self._full: tuple[Point, FloatArray] | None = None  # (point, the latest full gradient)
        self._bounded: BoundedGradient | None = None  # the latest one
        self._deviations: FloatArray | None = None  # √H_jj(0)
        self._n_full = 0

    def gradient_where_large(self, point: Point, least: FloatArray) -> FloatArray:
        cached = self._gradient
        if cached is not None and cached[0] is point.at:
            return cached[1].copy()
        bounded = self._bounded if self._bounded and self._bounded.at is point.at else self._bounds(point)
        if bounded is not None:
            needed = bounded.read | (point.w != 0) | (np.abs(bounded.values) >= least)
            if FULL_GRADIENT_SHARE * np.count_nonzero(needed) <= self.n_features:
                self._bounded = self._read(bounded, np.flatnonzero(needed & ~bounded.read))
                return self._bounded.values.copy()
        g = self.gradient(point)
        self._full, self._n_full = (replace(point, at=NO_SCORE_VALUE), g), self._n_full + 1
        return g

    def _read(self, bounded: BoundedGradient, columns: IntArray) -> BoundedGradient:
        """The gradient after reading more columns."""
        if not len(columns):
            return bounded
        g, values, read = bounded.at.gradient, bounded.values.copy(), bounded.read.copy()
        entries = self.features.transposed_columns(self.loss.queries.restore(g), columns)
        values[columns] = np.where(self.varies[columns], entries / self.loss.normaliser, 0.0)
        read[columns] = True
        return BoundedGradient(bounded.at, values, read)

    def _bounds(self, point: Point) -> BoundedGradient | None:
        """Bounds of a gradient before any column is read; None if there is no recent full gradient."""
        if (
            "largest_at_zero" not in self.loss.offers
            or self._full is None
            or self._n_full < MIN_FULL_GRADIENTS
        ):
            return None
        if self._deviations is None:
            self._deviations = np.sqrt(self.curvatures(self.at_zero))
        previous, g = self._full
        slopes = self.slope_along(point, point.scores - previous.scores), float(g @ (point.w - previous.w))
        rise = slopes[0] - slopes[1] + SUM_ROUNDING * (abs(slopes[0]) + abs(slopes[1]))
        bounds = g + np.where(g < 0, -1.0, 1.0) * self._deviations * np.sqrt(max(0.0, rise))
        return BoundedGradient(point.at, np.where(self.varies, bounds, 0.0), np.zeros(len(g), dtype=bool))


def make_objective(
    data: Dataset, loss: str | Loss = "squared_hinge", query_weight: QueryWeight | None = None
) -> Objective:
    """Mean loss of a data set with its document weights; ``loss`` is a name in LOSSES or a Loss."""
    check_finite(data)
    family = lookup(LOSSES, loss, "loss")() if isinstance(loss, str) else loss
    weight = query_weights(query_weight, data)
    if isinstance(data, RemoteData):
        return data.objective(family, weight)  # type: ignore[no-any-return]
    if is_streamed(data.X) and (objective := data.X.objective(data, family, weight)) is not None:
        return objective  # type: ignore[no-any-return]
    bound = family.bind(data.y, data.queries, weight, data.document_weight)
    on_disk = is_streamed(data.X) and not isinstance(data.X, StepMatrix)
    return (StreamedObjective if on_disk else LocalObjective)(data.X, bound, data.feature_names)
