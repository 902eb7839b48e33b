"""The smooth objective f(Xw): what solvers ask of it, and that of data in memory or on disk."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from ranksieve._parallel import fold_blocks, map_blocks, sum_blocks
from ranksieve._types import BoolArray, FloatArray, IntArray, Matrix
from ranksieve.data.dataset import Dataset, QueryWeight, check_finite, query_weights
from ranksieve.data.feature_matrix import FeatureMatrix, Read, chosen_columns, feature_matrix, ordered_sum
from ranksieve.data.matrix import is_streamed
from ranksieve.data.parts import RemoteRows
from ranksieve.data.queries import Queries, few_queries
from ranksieve.errors import DataError, lookup
from ranksieve.losses import LOSSES
from ranksieve.losses.base import BoundLoss, Curvature, Loss, ScoreValue

NEAR_CELLS = 2**17  # of X, a quarter of a megabyte: what a core keeps at hand
KEPT_DOCUMENTS = 2**18  # with more, what is known at w = 0 takes less time to find again than memory to keep
ROUNDING = 16.0 * float(np.finfo(np.float64).eps)  # of a sum, as a share of the sum of its terms' sizes
CANCELLED = ROUNDING / 4.0  # of a sum over pairs, as a share of its terms, which are counted one by one

REUSED_BLOCK = 31 * 2**20  # bytes; glibc takes no larger block as an example


@cache
def keep_freed_blocks() -> None:
    """Let freed arrays of up to 31 MB be used again instead of going back to the system, page by page.

    glibc returns a block to the system at once unless it has seen one as large freed before, so it is shown
    one here, which is never touched: a path takes a sixth less time. Other C libraries do as they like.
    """
    np.empty(REUSED_BLOCK, dtype=np.uint8)


@dataclass(frozen=True)
class Point:
    """Weights with everything known of the loss there; ``value`` and ``slack`` are means.

    ``scores`` and ``at`` (in memory a ScoreValue) are of the kind that the objective works with.
    """

    w: FloatArray
    scores: Any
    value: float
    slack: float
    at: Any


@dataclass(frozen=True, eq=False)
class HessianBlock:
    """The Hessian on some columns, of which blocks on fewer can be taken."""

    columns: IntArray
    values: FloatArray

    def on(self, columns: IntArray) -> FloatArray | None:
        """The block on some columns, if they are among those of this one."""
        place = {j: k for k, j in enumerate(self.columns.tolist())}
        try:
            places = [place[j] for j in columns.tolist()]
        except KeyError:
            return None
        return np.ascontiguousarray(self.values[np.ix_(places, places)])


class Objective(ABC):
    """f(w) = loss(Xw) / normaliser, its gradient and blocks of its (generalised) Hessian.

    Scores are an array in input order, or what stands for it where the documents are: they can be added and
    multiplied by numbers. Solvers ask ``features`` for ``varies`` and ``reach``, to ``keep`` columns that
    will be wanted, and for a ``column``: what one unit of its weight adds to the scores. The ``loss`` has at
    least ``name``, ``normaliser``, ``queries`` and ``dual``; its ``offers`` lists the optional methods.
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
        """What solvers may ask for beside value and gradient."""
        return frozenset(self.loss.offers)

    @property
    def at_zero(self) -> Point:
        """The loss at w = 0."""
        if self._at_zero is not None:
            return self._at_zero
        point = self.evaluate(np.zeros(self.n_features))
        if self.loss.queries.n_rows <= KEPT_DOCUMENTS:
            self._at_zero = point
        return point

    def evaluate(self, w: FloatArray) -> Point:
        """Loss at the weights ``w``."""
        return self.evaluate_scores(w, self.scores(w))

    def scores(self, w: FloatArray) -> Any:
        """Xw."""
        return self.features.scores(w)

    @abstractmethod
    def evaluate_scores(self, w: FloatArray, scores: Any) -> Point:
        """Loss at weights whose scores are known already; infinite where a score is not finite."""

    @abstractmethod
    def gradient(self, point: Point) -> FloatArray:
        """Xᵀ∇loss / normaliser; 0, and no rounding error, for a feature that does not vary within queries."""

    def gradient_where_large(self, point: Point, least: FloatArray) -> FloatArray:
        """The gradient; of an entry that is certainly smaller than ``least`` perhaps a bound of its size."""
        return self.gradient(point)

    @abstractmethod
    def hessian(self, point: Point, columns: IntArray) -> FloatArray:
        """The block of the Hessian on ``columns``: X_Aᵀ S X_A / normaliser."""

    @abstractmethod
    def curvatures(self, point: Point) -> FloatArray:
        """The diagonal of the Hessian."""

    @abstractmethod
    def hessian_product(self, point: Point, v: FloatArray) -> FloatArray:
        """The Hessian times ``v``, without forming it: Xᵀ S X v / normaliser."""

    @abstractmethod
    def values(self, point: Point, cuts: IntArray) -> FloatArray:
        """What the queries between each two cuts add to the loss, as a sum."""

    @abstractmethod
    def gradients(self, point: Point, cuts: IntArray) -> FloatArray:
        """What the queries between each two cuts add to the gradient, as a sum; rows are grouped by query."""

    @abstractmethod
    def hessians(self, point: Point, columns: IntArray, cuts: IntArray) -> FloatArray:
        """What the queries between each two cuts add to the Hessian block, as a sum."""

    @abstractmethod
    def slope_along(self, point: Point, direction_scores: Any) -> float:
        """Derivative of the loss when the scores move along ``direction_scores`` = X·direction."""

    @abstractmethod
    def curvature_along(self, point: Point, direction_scores: Any) -> float:
        """Second derivative of the loss when the scores move along ``direction_scores``."""

    @abstractmethod
    def slopes_along(self, point: Point, direction_scores: Any) -> Callable[[float], tuple[float, float]]:
        """A function of μ: both derivatives of the loss when the scores move by μ·direction_scores."""

    @abstractmethod
    def restricted(self, columns: IntArray) -> Objective:
        """The same loss as a function of the weights of some columns."""

    @abstractmethod
    def sample(self, every: int) -> Objective | None:
        """The mean loss of one query in ``every``; None if the loss cannot be split or they have no pairs."""

    def dual(self, point: Point, scale: float) -> float:
        """Dual value of the loss at ``scale`` times the point's own dual variables."""
        return float(self.loss.dual(point.value, point.slack, scale))

    def gradient_error(self, point: Point) -> FloatArray:
        """How far rounding may have moved each entry of the gradient; a constant feature's is exactly 0.

        Scores are rounded, and so are sums over pairs, whose terms may cancel almost to 0.
        """
        reach = np.where(self.varies, self.features.reach, 0.0)
        of_scores = ROUNDING * self._size(point) * (1.0 + self._extent(point))
        return np.asarray((of_scores + CANCELLED * self._terms(point)[0]) * reach)

    def value_error(self, point: Point) -> float:
        """How far rounding may have moved the loss; a score may also have moved a pair across its kink."""
        extent = self._extent(point)
        of_scores, across = ROUNDING * (point.value + self._size(point) * extent), ROUNDING * (1.0 + extent)
        return of_scores + across * across + CANCELLED * self._terms(point)[1]

    def _terms(self, point: Point) -> tuple[float, float]:
        """The sizes of the terms of gradient and loss; weights of pairs add up to 1, two documents each."""
        if (terms := getattr(point.at, "terms", None)) is not None:
            return terms[0] / self.loss.normaliser, terms[1] / self.loss.normaliser
        largest = 1.0 + self._extent(point)
        return 2.0 * largest, 2.0 * largest * largest

    def _size(self, point: Point) -> float:
        """Σ_i |∂f/∂s_i|."""
        return float(point.at.size / self.loss.normaliser)

    def _extent(self, point: Point) -> float:
        """Σ_j |w_j|·reach_j: no score is larger."""
        return float(np.abs(point.w) @ self.features.reach)


class DocumentObjective(Objective):
    """Formulas for documents that this process reads, in memory, on disk or on a GPU."""

    def __init__(self, features: Any, loss: Any) -> None:
        super().__init__(features, loss)
        self._gradient: tuple[Any, FloatArray] | None = None  # the last one, and where
        self._gradient_at_zero: FloatArray | None = None
        self._hessian: tuple[Any, HessianBlock] | None = None  # where hessians was called last, their mean

    def gradient(self, point: Point) -> FloatArray:
        known = self._gradient  # read once: another thread may put its own there
        if known is None or known[0] is not point.at:
            known = self._gradient = (point.at, self._new_gradient(point))
        return known[1].copy()

    def _new_gradient(self, point: Point) -> FloatArray:
        if self._gradient_at_zero is not None and not point.w.any():
            return self._gradient_at_zero
        total = self._transposed(point.at.gradient) / self.loss.normaliser
        gradient = np.where(self.varies, total, 0.0)
        if not point.w.any():
            self._gradient_at_zero = gradient
        return gradient

    def _transposed(self, grouped: Any) -> FloatArray:
        """Xᵀ times one number per document, in grouped order."""
        return np.asarray(self.features.transposed(self.loss.queries.restore(grouped)))

    def values(self, point: Point, cuts: IntArray) -> FloatArray:
        return np.array([point.at.by_query[a:b].sum() for a, b in pairwise(cuts.tolist())])

    def gradients(self, point: Point, cuts: IntArray) -> FloatArray:
        g = self.loss.queries.restore(point.at.gradient)
        return np.asarray(self.features.transposed_parts(g, self.loss.queries.offsets[cuts]))

    def slopes_along(self, point: Point, direction_scores: Any) -> Callable[[float], tuple[float, float]]:
        """If the loss offers a "line", this takes less than a whole evaluation."""
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
        """Without the rounding errors of features that are constant within every query."""
        constant = ~self.varies[columns]
        hessian[..., constant, :] = 0.0
        hessian[..., constant] = 0.0
        return hessian

    def _known_hessian(self, point: Point, columns: IntArray) -> FloatArray | None:
        """The block, if ``hessians`` has just computed it at the same point."""
        known = self._hessian
        return None if known is None or known[0] is not point.at else known[1].on(columns)


class LocalObjective(DocumentObjective):
    """An objective of features in memory, or as :class:`StreamedObjective` on disk."""

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
        if (known := self._known_hessian(point, columns)) is not None:
            return known
        read = self.features.reader(columns)
        total = sum_blocks(lambda a, b: self._block(point, read, a, b, len(columns)), self.loss.cuts)
        total /= self.loss.normaliser
        return self._without_constants(total, columns)

    def hessians(self, point: Point, columns: IntArray, cuts: IntArray) -> FloatArray:
        read, hessians = self.features.reader(columns), np.zeros((len(cuts) - 1, len(columns), len(columns)))

        def work(first: int, last: int) -> list[tuple[int, FloatArray]]:
            bounds = np.clip(cuts, first, last)
            return [
                (k, self._block(point, read, int(bounds[k]), int(bounds[k + 1]), len(columns)))
                for k in np.flatnonzero(np.diff(bounds)).tolist()
            ]

        def add(shares: list[tuple[int, FloatArray]]) -> None:
            for k, block in shares:
                hessians[k] += block

        fold_blocks(work, self.loss.cuts, add)
        self._without_constants(hessians, columns)
        mean = ordered_sum(list(hessians)) / self.loss.normaliser
        self._hessian = (point.at, HessianBlock(columns, mean))
        return hessians

    def curvatures(self, point: Point) -> FloatArray:
        read = self.features.reader(np.arange(self.n_features))

        def work(first: int, last: int) -> FloatArray:
            parts = self._few_queries(first, last, self.n_features)
            return ordered_sum(self._curvature(point, read, a, b).diagonal() for a, b in parts)

        diagonal = sum_blocks(work, self.loss.cuts) / self.loss.normaliser
        return np.where(self.varies, diagonal, 0.0)

    def _few_queries(self, first: int, last: int, width: int) -> Iterator[tuple[int, int]]:
        """The queries first..last, a few at a time: as many as a core's cache holds in ``width`` columns."""
        return few_queries(self.loss.queries.offsets, first, last, NEAR_CELLS // max(width, 1))

    def _block(self, point: Point, read: Read, first: int, last: int, width: int) -> FloatArray:
        """The share of the queries first..last in the Hessian block, a few of them at a time."""
        parts = self._few_queries(first, last, width)
        return ordered_sum(self._curvature(point, read, a, b).block() for a, b in parts)

    def _curvature(self, point: Point, read: Read, first: int, last: int) -> Curvature:
        """The share of the queries first..last in the Hessian block, as a sum."""
        offsets = self.loss.queries.offsets
        values, places = read(int(offsets[first]), int(offsets[last]))
        if "places" in self.loss.offers:
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
        """Xᵀ S X v, a few queries at a time, so that their rows are still at hand for the second product."""
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
        among = Queries(queries.ids[chosen], None, np.concatenate(([0], np.cumsum(queries.sizes[chosen]))))
        given = rows if queries.given_order is None else queries.given_order[rows]
        try:
            return LocalObjective(self.features.X[given], self.loss.part(among, rows, chosen))
        except ValueError:
            return None


NOWHERE = ScoreValue(np.nan, np.empty(0))  # in place of what takes memory
SHARE = 4  # a gradient is read whole if more than one entry in so many is needed
WORTHWHILE = 4  # whole gradients after which the bounds of others are worth a pass over the data


@dataclass(frozen=True, eq=False)
class Bounded:
    """A gradient at one point: entries that were ``read``, and numbers that the others do not exceed."""

    at: ScoreValue
    values: FloatArray
    read: BoolArray


class StreamedObjective(LocalObjective):
    """An objective of features on disk, which reads only those entries of a gradient that may be large.

    The Hessian is nowhere larger than at w = 0, so from one point to another, δ away,
    |g_j′ − g_j| ≤ √(H_jj(0) · ⟨g′ − g, δ⟩), and the last product comes from scores. So a whole gradient
    bounds those that follow, until one entry in four may have come too near what it must stay below.
    """

    def __init__(
        self, X: Matrix | FeatureMatrix, loss: BoundLoss, names: Sequence[str] | None = None
    ) -> None:
        super().__init__(X, loss, names)
        self._whole: tuple[Point, FloatArray] | None = None  # the last whole gradient, after where it is
        self._bounded: Bounded | None = None  # the latest one that is not whole
        self._deviations: FloatArray | None = None  # √H_jj(0)
        self._n_whole = 0

    def gradient_where_large(self, point: Point, least: FloatArray) -> FloatArray:
        known = self._gradient
        if known is not None and known[0] is point.at:
            return known[1].copy()
        bounded = self._bounded if self._bounded and self._bounded.at is point.at else self._bounds(point)
        if bounded is not None:
            needed = bounded.read | (point.w != 0) | (np.abs(bounded.values) >= least)
            if SHARE * np.count_nonzero(needed) <= self.n_features:
                self._bounded = self._read(bounded, np.flatnonzero(needed & ~bounded.read))
                return self._bounded.values.copy()
        g = self.gradient(point)
        self._whole, self._n_whole = (replace(point, at=NOWHERE), g), self._n_whole + 1
        return g

    def _read(self, bounded: Bounded, columns: IntArray) -> Bounded:
        """With some more entries read."""
        if not len(columns):
            return bounded
        g, values, read = bounded.at.gradient, bounded.values.copy(), bounded.read.copy()
        found = self.features.transposed_columns(self.loss.queries.restore(g), columns)
        values[columns] = np.where(self.varies[columns], found / self.loss.normaliser, 0.0)
        read[columns] = True
        return Bounded(bounded.at, values, read)

    def _bounds(self, point: Point) -> Bounded | None:
        """What is known of a gradient before it is read; None as long as that is too little."""
        if "largest_at_zero" not in self.loss.offers or self._whole is None or self._n_whole < WORTHWHILE:
            return None
        if self._deviations is None:
            self._deviations = np.sqrt(self.curvatures(self.at_zero))
        there, g = self._whole
        slopes = self.slope_along(point, point.scores - there.scores), float(g @ (point.w - there.w))
        rise = slopes[0] - slopes[1] + ROUNDING * (abs(slopes[0]) + abs(slopes[1]))
        bounds = g + np.where(g < 0, -1.0, 1.0) * self._deviations * np.sqrt(max(0.0, rise))
        return Bounded(point.at, np.where(self.varies, bounds, 0.0), np.zeros(len(g), dtype=bool))


def make_objective(
    data: Dataset, loss: str | Loss = "squared_hinge", query_weight: QueryWeight | None = None
) -> Objective:
    """The mean loss of a data set with its document weights; a loss by its name in LOSSES, or as it is."""
    check_finite(data)
    family = lookup(LOSSES, loss, "loss")() if isinstance(loss, str) else loss
    weight = query_weights(query_weight, data)
    if isinstance(data, RemoteRows):
        return data.objective(family, weight)  # type: ignore[no-any-return]
    if is_streamed(data.X) and (own := data.X.objective(data, family, weight)) is not None:
        return own  # type: ignore[no-any-return]
    bound = family.bind(data.y, data.queries, weight, data.document_weight)
    kind = StreamedObjective if is_streamed(data.X) else LocalObjective
    return kind(data.X, bound, data.feature_names)
