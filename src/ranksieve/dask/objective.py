"""The objective of distributed data: workers evaluate their parts, the client adds up the results."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from ranksieve._parallel import split_blocks
from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve.dask.dataset import DistributedDataset
from ranksieve.data.dataset import Dataset
from ranksieve.data.feature_matrix import NO_COLUMNS, ordered_sum
from ranksieve.data.matrix import spread_and_largest
from ranksieve.data.parts import PartObjects
from ranksieve.errors import DataError, ParameterError
from ranksieve.losses import LOSSES
from ranksieve.losses.base import NO_PAIRS, BoundLoss, Loss
from ranksieve.objective import HessianBlock, LocalObjective, Objective, Point

WORKER_VIEWS = 2  # objectives of some columns, and points, that a worker keeps for the next request
WORKER_POINTS = 2
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # from glibc's malloc.h
MAX_REUSED_BLOCK = 31 * 2**20  # bytes
MAX_UNUSED_MEMORY = 4 * MAX_REUSED_BLOCK


@cache
def reuse_freed_memory() -> None:
    """Let malloc reuse freed arrays; Dask's settings return them to the system at once.

    This saves a third of the time to evaluate a loss. It has no effect with C libraries other than glibc.
    """
    if os.name == "posix" and "MALLOC_TRIM_THRESHOLD_" in os.environ:
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:
            mallopt(M_MMAP_THRESHOLD, MAX_REUSED_BLOCK)
            mallopt(M_TRIM_THRESHOLD, MAX_UNUSED_MEMORY)


@dataclass(frozen=True)
class DataStatistics:
    """Normaliser of the loss, and each feature's spread within queries and largest value."""

    normaliser: float
    spread: FloatArray
    largest: FloatArray


@dataclass(frozen=True)
class PartEvaluation:
    """A part's share of the mean loss at some weights, and sums over its documents: Σ|∂|, sizes of terms.

    ``curvature`` is the second derivative along a direction.
    """

    value: float
    slack: float
    size: float
    gradient: FloatArray
    hessian: FloatArray
    curvature: float
    terms: tuple[float, float] | None = (0.0, 0.0)


def statistics_of(part: Dataset, weight: FloatArray | None, loss: Any) -> DataStatistics:
    """Statistics of one part; ``merge_statistics`` combines parts by sum and maximum."""
    spread, largest = spread_and_largest(part.X, part.queries, split_blocks(part.queries.offsets))
    bound = bind(part, weight, loss)
    if bound is not None:
        return DataStatistics(bound.normaliser, spread, largest)
    normaliser = loss.normaliser_without_pairs(part.queries, weight, part.document_weight)
    return DataStatistics(normaliser, spread, largest)


def bind(part: Dataset, weight: FloatArray | None, loss: Loss) -> BoundLoss | None:
    """The loss of a part; None if the part has no pairs, which is allowed if another part has some."""
    try:
        return loss.bind(part.y, part.queries, weight, part.document_weight)
    except ValueError as error:
        if str(error) != NO_PAIRS:
            raise
        return None


PointMethod = Callable[..., FloatArray]
"""A method of an objective whose first argument is a point."""


class LossShare:
    """The loss of a part's rows, divided by the normaliser of all parts.

    Methods return None (or 0) for a part without pairs. Results depend only on the part and the arguments;
    the caches only save time.
    """

    def __init__(
        self,
        part: Dataset,
        numbers: IntArray,
        weight: FloatArray | None,
        loss: Loss,
        statistics: DataStatistics,
    ) -> None:
        reuse_freed_memory()
        self._numbers = numbers
        self._whole: LocalObjective | None = None
        if (bound := bind(part, weight, loss)) is not None:
            bound.normaliser = statistics.normaliser
            extremes = (statistics.spread.copy(), statistics.largest.copy())
            self._whole = LocalObjective(part.X, bound, part.feature_names, extremes)
        self._views: dict[bytes, LocalObjective] = {}
        self._hints: dict[bytes, bytes] = {}
        self._points: dict[tuple[bytes, bytes], Point] = {}

    def columns(self) -> tuple[Any, BoolArray, FloatArray] | None:
        """Over all parts: class of the loss, whether features vary within queries, largest magnitudes."""
        whole = self._whole
        return None if whole is None else (type(whole.loss), whole.varies, whole.features.max_abs)

    def evaluate(
        self, w: FloatArray, view: IntArray | None, hint: IntArray, along: FloatArray | None = None
    ) -> PartEvaluation | None:
        """Evaluate the loss at ``w`` over the columns ``view`` (None: all), its Hessian on ``hint``."""
        if self._whole is None:
            return None
        objective, point = self._at(self._whole, w, view, hint)
        if not np.isfinite(point.value):
            undefined = np.full(objective.n_features, np.nan)
            no_hessian = np.full((len(hint), len(hint)), np.nan)
            return PartEvaluation(point.value, np.nan, np.nan, undefined, no_hessian, np.nan)
        hessian, curvature = np.empty((0, 0)), 0.0
        if len(hint):
            hessian = objective.hessian(point, hint)
        if along is not None:
            direction = along if view is None else along[view]
            curvature = objective.curvature_along(point, objective.scores(direction))
        gradient, at = objective.gradient(point), point.at
        return PartEvaluation(point.value, point.slack, at.size, gradient, hessian, curvature, at.terms)

    def call(
        self, w: FloatArray, view: IntArray | None, hint: IntArray, function: PointMethod, *args: Any
    ) -> FloatArray | None:
        """The result of ``function(objective, point, *args)``."""
        return None if self._whole is None else function(*self._at(self._whole, w, view, hint), *args)

    def between(
        self,
        w: FloatArray,
        view: IntArray | None,
        hint: IntArray,
        cuts: IntArray,
        function: PointMethod,
        *args: Any,
    ) -> FloatArray | None:
        """Results of ``function(objective, point, *args, cuts)`` for the part's queries between cuts.

        The cuts refer to the order of all queries; the part may have no queries between some of them.
        """
        part_cuts = np.searchsorted(self._numbers, cuts)
        nonempty = np.flatnonzero(np.diff(part_cuts))
        shares = self.call(w, view, hint, function, *args, np.append(part_cuts[nonempty], part_cuts[-1]))
        if shares is None:
            return None
        sums = np.zeros((len(cuts) - 1, *shares.shape[1:]))
        sums[nonempty] = shares
        return sums

    def lipschitz(self, squared_radius: FloatArray) -> float:
        """The part's share of the loss's bound on the Hessian; the radii are those of all queries."""
        if self._whole is None:
            return 0.0
        return float(self._whole.loss.lipschitz_bound(squared_radius[self._numbers]))

    def _at(
        self, whole: LocalObjective, w: FloatArray, view: IntArray | None, hint: IntArray
    ) -> tuple[LocalObjective, Point]:
        """The objective of the columns ``view``, and the point ``w``."""
        key = b"" if view is None else view.tobytes()
        objective = whole if view is None else self._view(whole, key, view)
        if self._hints.get(key) != hint.tobytes():  # the kept columns affect the rounding
            objective.features.keep(hint)
            self._hints[key] = hint.tobytes()
        point_key = (key, w.tobytes())
        if point_key not in self._points:
            point = objective.evaluate(w if view is None else w[view])
            self._points = dict([*list(self._points.items())[1 - WORKER_POINTS :], (point_key, point)])
        return objective, self._points[point_key]

    def _view(self, whole: LocalObjective, key: bytes, view: IntArray) -> LocalObjective:
        if key not in self._views:
            recent = list(self._views.items())[1 - WORKER_VIEWS :]
            self._hints = {k: hint for k, hint in self._hints.items() if k in (b"", *dict(recent))}
            self._views = dict([*recent, (key, whole.restricted(view))])
        return self._views[key]


MAX_HESSIAN_COLUMNS = 64  # with at most this many columns, evaluations include the Hessian
CLIENT_POINTS = 4  # kept evaluations


class LinearScores:
    """The scores Xw of documents on workers, represented by the weights w of all features."""

    __array_ufunc__ = None  # NumPy scalars defer to __rmul__

    def __init__(self, w: FloatArray) -> None:
        self.w = w

    def __add__(self, other: LinearScores) -> LinearScores:
        return LinearScores(self.w + other.w)

    def __sub__(self, other: LinearScores) -> LinearScores:
        return LinearScores(self.w - other.w)

    def __mul__(self, factor: float) -> LinearScores:
        return LinearScores(factor * self.w)

    __rmul__ = __mul__


@dataclass
class PartSums:
    """The sums over all parts at some weights, as functions of the features ``view``."""

    view: bytes
    value: float
    slack: float
    size: float
    gradient: FloatArray
    hessian: HessianBlock
    terms: tuple[float, float] | None


class PartedFeatures:
    """The features as solvers need them: number, magnitudes, and the columns of the requested Hessian."""

    def __init__(self, varies: BoolArray, max_abs: FloatArray, view: IntArray | None, width: int) -> None:
        self.varies, self.max_abs, self.n_features = varies, max_abs, len(varies)
        self.hint = NO_COLUMNS
        self.view, self._width = view, width

    def keep(self, columns: IntArray) -> None:
        """Include the Hessian on these columns in every evaluation; workers keep the columns in memory."""
        self.hint = np.sort(columns)

    def keeps(self, columns: IntArray) -> bool:
        return bool(np.isin(columns, self.hint).all())

    def column(self, j: int) -> LinearScores:
        """The change of the scores per unit of the weight of feature ``j``."""
        return LinearScores(self.widened(np.eye(1, self.n_features, j)[0]))

    def widened(self, w: FloatArray) -> FloatArray:
        """Turn weights of these features into weights of all features."""
        if self.view is None:
            return w
        wide = np.zeros(self._width)
        wide[self.view] = w
        return wide

    def narrowed(self, w: FloatArray) -> FloatArray:
        """Select the weights of these features from those of all features."""
        return w if self.view is None else w[self.view]

    def restricted(self, columns: IntArray) -> PartedFeatures:
        view = columns if self.view is None else self.view[columns]
        return PartedFeatures(self.varies[columns], self.max_abs[columns], view, self._width)


@dataclass(frozen=True)
class RowCounts:
    n_rows: int
    n_queries: int


@dataclass(frozen=True, eq=False)
class PartedLoss:
    """The loss as solvers need it; ``kind`` is the class of the bound loss in the parts."""

    family: Loss
    kind: Any
    normaliser: float
    queries: RowCounts
    shares: PartObjects[LossShare]

    @property
    def name(self) -> str:
        return self.family.name

    @property
    def offers(self) -> frozenset[str]:
        return frozenset(self.kind.offers) - {"rows"}

    def dual(self, value: float, slack: float, scale: float) -> float:
        """The dual value, computed from sums over the parts."""
        return float(self.kind.dual(value, slack, scale))

    def lipschitz_bound(self, squared_radius: FloatArray) -> float:
        """The loss's bound on the norm of its Hessian."""
        return float(sum(self.shares.map(LossShare.lipschitz, squared_radius)))


def parted_objective(
    data: DistributedDataset, loss: Loss, query_weight: FloatArray | None = None
) -> PartedObjective:
    """The objective of distributed data, for losses that support parts without pairs."""
    if not hasattr(loss, "normaliser_without_pairs"):
        supported = [name for name, kind in LOSSES.items() if hasattr(kind, "normaliser_without_pairs")]
        reason = f"needs the data in memory; on distributed data use {' or '.join(supported)}"
        raise ParameterError("loss", loss.name, reason)
    statistics = merge_statistics(data.map_parts(partial(statistics_of, loss=loss), query_weight))
    if not statistics.normaliser > 0:
        raise DataError(None, None, NO_PAIRS)
    shares: PartObjects[LossShare] = data.make_parts(
        partial(LossShare, loss=loss, statistics=statistics), np.arange(data.n_queries), query_weight
    )
    columns = [one for one in shares.map(LossShare.columns) if one is not None]
    if not columns:
        raise DataError(None, None, NO_PAIRS)
    kind, varies, max_abs = columns[0]
    parted = PartedLoss(loss, kind, statistics.normaliser, RowCounts(data.n_docs, data.n_queries), shares)
    features = PartedFeatures(varies, max_abs, None, data.n_features)
    return PartedObjective(data, query_weight, features, parted)


class PartedObjective(Objective):
    """f(w) = loss(Xw) / normaliser, its gradient and blocks of its Hessian, as sums over parts on workers.

    Scores stay on the workers; the client represents a score vector by its weights. One round of messages
    evaluates the loss, its gradient and its Hessian on the columns given to ``features.keep``.
    """

    features: PartedFeatures
    loss: PartedLoss

    def __init__(
        self,
        data: DistributedDataset,
        query_weight: FloatArray | None,
        features: PartedFeatures,
        loss: PartedLoss,
    ) -> None:
        super().__init__(features, loss)
        self._data, self._weight, self._view = data, query_weight, features.view
        self._points: dict[bytes, PartSums] = {}

    def scores(self, w: FloatArray) -> LinearScores:
        return LinearScores(self.features.widened(w))

    def evaluate_scores(self, w: FloatArray, scores: LinearScores) -> Point:
        at = self._points.get(scores.w.tobytes()) or self._evaluate_parts(scores.w)[0]
        return Point(w, scores, at.value, at.slack, at)

    def gradient(self, point: Point) -> FloatArray:
        return np.array(self._sums_at(point).gradient)

    def hessian(self, point: Point, columns: IntArray) -> FloatArray:
        at = self._sums_at(point)
        if (block := at.hessian.on(columns)) is None:
            block = self._sum(LossShare.call, point, LocalObjective.hessian, columns)
            at.hessian = HessianBlock(columns, block)
            if len(columns) == self.n_features:
                self.features.keep(columns)  # a caller that needs the full Hessian will need it again
        return block

    def gradients(self, point: Point, cuts: IntArray) -> FloatArray:
        return self._sum(LossShare.between, point, cuts, LocalObjective.gradients)

    def hessians(self, point: Point, columns: IntArray, cuts: IntArray) -> FloatArray:
        blocks = self._sum(LossShare.between, point, cuts, LocalObjective.hessians, columns)
        self._sums_at(point).hessian = HessianBlock(columns, ordered_sum(list(blocks)) / self.loss.normaliser)
        return blocks

    def curvatures(self, point: Point) -> FloatArray:
        return self._sum(LossShare.call, point, LocalObjective.curvatures)

    def hessian_product(self, point: Point, v: FloatArray) -> FloatArray:
        return self._sum(LossShare.call, point, LocalObjective.hessian_product, v)

    def restricted(self, columns: IntArray) -> PartedObjective:
        features = self.features.restricted(columns)
        if len(columns) <= MAX_HESSIAN_COLUMNS:
            features.keep(np.arange(len(columns)))
        return PartedObjective(self._data, self._weight, features, self.loss)

    def sample(self, every: int) -> PartedObjective | None:
        if "part" not in self.loss.offers:
            return None
        chosen = np.arange(0, self._data.n_queries, every)
        weight = None if self._weight is None else self._weight[chosen]
        try:
            return parted_objective(self._data.in_query_order(chosen), self.loss.family, weight)
        except ValueError:
            return None

    def slopes_along(
        self, point: Point, direction_scores: LinearScores
    ) -> Callable[[float], tuple[float, float]]:
        def along(step: float) -> tuple[float, float]:
            moved = point.scores + step * direction_scores if step else point.scores
            at, curvature = self._evaluate_parts(moved.w, direction_scores.w)
            return float(at.gradient @ self.features.narrowed(direction_scores.w)), curvature

        return along

    def slope_along(self, point: Point, direction_scores: LinearScores) -> float:
        return float(self._sums_at(point).gradient @ self.features.narrowed(direction_scores.w))

    def curvature_along(self, point: Point, direction_scores: LinearScores) -> float:
        return self._evaluate_parts(point.scores.w, direction_scores.w)[1]

    def _evaluate_parts(self, w: FloatArray, along: FloatArray | None = None) -> tuple[PartSums, float]:
        """Evaluate the sums at some weights, and the second derivative along a direction."""
        hint = self.features.hint
        answers = self.loss.shares.map(LossShare.evaluate, w, self._view, hint, along)
        evaluations = [one for one in answers if one is not None]
        terms = [one.terms for one in evaluations if one.terms is not None]
        at = PartSums(
            self._key,
            float(sum(one.value for one in evaluations)),
            float(sum(one.slack for one in evaluations)),
            float(sum(one.size for one in evaluations)),
            ordered_sum([one.gradient for one in evaluations]),
            HessianBlock(hint, ordered_sum([one.hessian for one in evaluations])),
            (sum(one for one, _ in terms), sum(one for _, one in terms))
            if len(terms) == len(evaluations)
            else None,
        )
        self._points = dict([*list(self._points.items())[1 - CLIENT_POINTS :], (w.tobytes(), at)])
        return at, float(sum(one.curvature for one in evaluations))

    @property
    def _key(self) -> bytes:
        """Key of the features: empty for all of them."""
        return b"" if self._view is None else self._view.tobytes()

    def _sums_at(self, point: Point) -> PartSums:
        """The sums at a point; evaluates them again if the point comes from another view of the objective."""
        at: PartSums = point.at
        if at.view == self._key:
            return at
        w = point.scores.w
        return self._points.get(w.tobytes()) or self._evaluate_parts(w)[0]

    def _sum(self, function: Callable[..., FloatArray | None], point: Point, *args: Any) -> FloatArray:
        """Σ over the parts of the results of ``function`` at a point."""
        shares = self.loss.shares.map(function, point.scores.w, self._view, self.features.hint, *args)
        return ordered_sum(share for share in shares if share is not None)


def merge_statistics(statistics: list[DataStatistics]) -> DataStatistics:
    """Combine the statistics of all parts."""
    return DataStatistics(
        float(sum(one.normaliser for one in statistics)),
        np.max(np.array([one.spread for one in statistics]), axis=0),
        np.max(np.array([one.largest for one in statistics]), axis=0),
    )
