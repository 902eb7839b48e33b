"""The objective of distributed data: workers compute the shares of each part, the client adds them up."""

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
from ranksieve.data.feature_matrix import ordered_sum
from ranksieve.data.matrix import spread_and_largest
from ranksieve.data.parts import Parts
from ranksieve.errors import DataError, ParameterError
from ranksieve.losses import LOSSES
from ranksieve.losses.base import NO_PAIRS, BoundLoss, Loss
from ranksieve.objective import HessianBlock, LocalObjective, Objective, Point

KEPT_VIEWS = 2  # objectives of some columns, and points: the last ones may be asked for again
SHARED_POINTS = 2
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # names that glibc's malloc.h has for what mallopt sets
BLOCK = 31 * 2**20  # bytes of the largest block that is used again, and of all that may lie unused
UNUSED = 4 * BLOCK


@cache
def reuse_freed_memory() -> None:
    """Let freed arrays be used again where Dask has them go back to the system at once, page by page.

    Evaluating a loss takes a third less time so. Other C libraries than glibc do as they like.
    """
    if os.name == "posix" and "MALLOC_TRIM_THRESHOLD_" in os.environ:
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:
            mallopt(M_MMAP_THRESHOLD, BLOCK)
            mallopt(M_TRIM_THRESHOLD, UNUSED)


@dataclass(frozen=True)
class Facts:
    """What parts must agree on: normaliser, and each feature's spread within queries and largest value."""

    normaliser: float
    spread: FloatArray
    largest: FloatArray


@dataclass(frozen=True)
class Seen:
    """A part's shares in the mean loss at some weights, and sums over its documents: Σ|∂|, sizes of terms.

    ``curvature`` is the second derivative along a direction.
    """

    value: float
    slack: float
    size: float
    gradient: FloatArray
    hessian: FloatArray
    curvature: float
    terms: tuple[float, float] | None = (0.0, 0.0)


def facts_of(part: Dataset, weight: FloatArray | None, loss: Any) -> Facts:
    """What a part alone says; parts are merged by sum and maximum."""
    spread, largest = spread_and_largest(part.X, part.queries, split_blocks(part.queries.offsets))
    bound = bind(part, weight, loss)
    if bound is not None:
        return Facts(bound.normaliser, spread, largest)
    normaliser = loss.normaliser_without_pairs(part.queries, weight, part.document_weight)
    return Facts(normaliser, spread, largest)


def bind(part: Dataset, weight: FloatArray | None, loss: Loss) -> BoundLoss | None:
    """The loss of a part; None if it has no pairs, which only all parts together need."""
    try:
        return loss.bind(part.y, part.queries, weight, part.document_weight)
    except ValueError as error:
        if str(error) != NO_PAIRS:
            raise
        return None


Find = Callable[..., FloatArray]
"""A method of an objective, which gets a point."""


class Share:
    """The loss of a part's rows, divided by the normaliser of all parts; None of a part without pairs.

    Every answer is a function of the part and the arguments alone. What is kept of the last arguments only
    saves time.
    """

    def __init__(
        self, part: Dataset, numbers: IntArray, weight: FloatArray | None, loss: Loss, facts: Facts
    ) -> None:
        reuse_freed_memory()
        self._numbers = numbers
        self._whole: LocalObjective | None = None
        if (bound := bind(part, weight, loss)) is not None:
            bound.normaliser = facts.normaliser
            extremes = (facts.spread.copy(), facts.largest.copy())
            self._whole = LocalObjective(part.X, bound, part.feature_names, extremes)
        self._views: dict[bytes, LocalObjective] = {}
        self._kept: dict[bytes, bytes] = {}
        self._points: dict[tuple[bytes, bytes], Point] = {}

    def columns(self) -> tuple[Any, BoolArray, FloatArray] | None:
        """(Class of the loss, whether features vary within queries, how far they reach), for all parts."""
        whole = self._whole
        return None if whole is None else (type(whole.loss), whole.varies, whole.features.reach)

    def look(
        self, w: FloatArray, view: IntArray | None, hint: IntArray, along: FloatArray | None = None
    ) -> Seen | None:
        """The loss at ``w`` as a function of the columns ``view`` (None: all), its Hessian on ``hint``."""
        if self._whole is None:
            return None
        objective, point = self._at(self._whole, w, view, hint)
        if not np.isfinite(point.value):
            nothing = np.full(objective.n_features, np.nan)
            return Seen(point.value, np.nan, np.nan, nothing, np.full((len(hint), len(hint)), np.nan), np.nan)
        hessian, curvature = np.empty((0, 0)), 0.0
        if len(hint):
            hessian = objective.hessian(point, hint)
        if along is not None:
            direction = along if view is None else along[view]
            curvature = objective.curvature_along(point, objective.scores(direction))
        gradient, at = objective.gradient(point), point.at
        return Seen(point.value, point.slack, at.size, gradient, hessian, curvature, at.terms)

    def ask(
        self, w: FloatArray, view: IntArray | None, hint: IntArray, find: Find, *args: Any
    ) -> FloatArray | None:
        """What ``find(objective, point, *args)`` gives."""
        return None if self._whole is None else find(*self._at(self._whole, w, view, hint), *args)

    def between(
        self, w: FloatArray, view: IntArray | None, hint: IntArray, cuts: IntArray, find: Find, *args: Any
    ) -> FloatArray | None:
        """What ``find(objective, point, *args, cuts)`` gives for the part's queries between each two cuts.

        Cuts are in the order of all queries; some may have none of the part's own between them.
        """
        own = np.searchsorted(self._numbers, cuts)
        met = np.flatnonzero(np.diff(own))
        shares = self.ask(w, view, hint, find, *args, np.append(own[met], own[-1]))
        if shares is None:
            return None
        sums = np.zeros((len(cuts) - 1, *shares.shape[1:]))
        sums[met] = shares
        return sums

    def lipschitz(self, squared_radius: FloatArray) -> float:
        """The part's share of the loss's own bound of the Hessian; the radii are of all queries."""
        if self._whole is None:
            return 0.0
        return float(self._whole.loss.lipschitz_bound(squared_radius[self._numbers]))

    def _at(
        self, whole: LocalObjective, w: FloatArray, view: IntArray | None, hint: IntArray
    ) -> tuple[LocalObjective, Point]:
        """The objective of some columns and the loss at ``w``."""
        key = b"" if view is None else view.tobytes()
        objective = whole if view is None else self._view(whole, key, view)
        if self._kept.get(key) != hint.tobytes():  # what is kept decides about the last bits
            objective.features.keep(hint)
            self._kept[key] = hint.tobytes()
        place = (key, w.tobytes())
        if place not in self._points:
            point = objective.evaluate(w if view is None else w[view])
            self._points = dict([*list(self._points.items())[1 - SHARED_POINTS :], (place, point)])
        return objective, self._points[place]

    def _view(self, whole: LocalObjective, key: bytes, view: IntArray) -> LocalObjective:
        if key not in self._views:
            kept = list(self._views.items())[1 - KEPT_VIEWS :]
            self._kept = {k: hint for k, hint in self._kept.items() if k in (b"", *dict(kept))}
            self._views = dict([*kept, (key, whole.restricted(view))])
        return self._views[key]


FEW = 64  # columns of a restricted objective up to which its whole Hessian comes with every evaluation
KEPT_POINTS = 4
NONE = np.empty(0, dtype=np.int64)


class LinearScores:
    """The scores Xw of documents that are elsewhere, as a function of them: the weights w, in full width."""

    __array_ufunc__ = None  # NumPy's numbers leave products with these to this class

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
class Total:
    """The sums of all parts at some weights, as functions of the features ``view``."""

    view: bytes
    value: float
    slack: float
    size: float
    gradient: FloatArray
    hessian: HessianBlock
    terms: tuple[float, float] | None


class PartedFeatures:
    """What solvers ask of the features: how many, how large, and which will be wanted."""

    def __init__(self, varies: BoolArray, reach: FloatArray, view: IntArray | None, width: int) -> None:
        self.varies, self.reach, self.n_features = varies, reach, len(varies)
        self.hint = NONE
        self.view, self._width = view, width

    def keep(self, columns: IntArray) -> None:
        """Let the Hessian on these columns come with every evaluation, and workers keep them at hand."""
        self.hint = np.sort(columns)

    def keeps(self, columns: IntArray) -> bool:
        return bool(np.isin(columns, self.hint).all())

    def column(self, j: int) -> LinearScores:
        """What one unit of the weight of feature ``j`` adds to the scores."""
        return LinearScores(self.widened(np.eye(1, self.n_features, j)[0]))

    def widened(self, w: FloatArray) -> FloatArray:
        """Weights of these features as weights of all."""
        if self.view is None:
            return w
        wide = np.zeros(self._width)
        wide[self.view] = w
        return wide

    def narrowed(self, w: FloatArray) -> FloatArray:
        """Of weights of all features those of these."""
        return w if self.view is None else w[self.view]

    def restricted(self, columns: IntArray) -> PartedFeatures:
        view = columns if self.view is None else self.view[columns]
        return PartedFeatures(self.varies[columns], self.reach[columns], view, self._width)


@dataclass(frozen=True)
class Counts:
    """How many rows and queries there are."""

    n_rows: int
    n_queries: int


@dataclass(frozen=True, eq=False)
class PartedLoss:
    """What solvers ask of the loss; ``kind`` is the class that it has in the parts."""

    family: Loss
    kind: Any
    normaliser: float
    queries: Counts
    shares: Parts[Share]

    @property
    def name(self) -> str:
        return self.family.name

    @property
    def offers(self) -> frozenset[str]:
        return frozenset(self.kind.offers) - {"rows"}

    def dual(self, value: float, slack: float, scale: float) -> float:
        """The dual value, a formula of sums."""
        return float(self.kind.dual(value, slack, scale))

    def lipschitz_bound(self, squared_radius: FloatArray) -> float:
        """The loss's own bound of the norm of its Hessian."""
        return float(sum(self.shares.ask(Share.lipschitz, squared_radius)))


def parted_objective(
    data: DistributedDataset, loss: Loss, query_weight: FloatArray | None = None
) -> PartedObjective:
    """The objective of distributed data; of losses that know what parts without pairs add."""
    if not hasattr(loss, "normaliser_without_pairs"):
        able = [name for name, kind in LOSSES.items() if hasattr(kind, "normaliser_without_pairs")]
        reason = f"needs the data in memory; on distributed data use {' or '.join(able)}"
        raise ParameterError("loss", loss.name, reason)
    facts = merged(data.in_parts(partial(facts_of, loss=loss), query_weight))
    if not facts.normaliser > 0:
        raise DataError(None, None, NO_PAIRS)
    shares: Parts[Share] = data.parts(
        partial(Share, loss=loss, facts=facts), np.arange(data.n_queries), query_weight
    )
    known = [one for one in shares.ask(Share.columns) if one is not None]
    if not known:
        raise DataError(None, None, NO_PAIRS)
    kind, varies, reach = known[0]
    parted = PartedLoss(loss, kind, facts.normaliser, Counts(data.n_docs, data.n_queries), shares)
    features = PartedFeatures(varies, reach, None, data.n_features)
    return PartedObjective(data, query_weight, features, parted)


class PartedObjective(Objective):
    """f(w) = loss(Xw) / normaliser, its gradient and blocks of its Hessian, as sums over parts on workers.

    Scores stay there: the client's name for a score vector is its weights. One round of messages evaluates
    the loss and brings gradient and, on the columns that ``features.keep`` named, the Hessian.
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
        self._points: dict[bytes, Total] = {}

    def scores(self, w: FloatArray) -> LinearScores:
        return LinearScores(self.features.widened(w))

    def evaluate_scores(self, w: FloatArray, scores: LinearScores) -> Point:
        at = self._points.get(scores.w.tobytes()) or self._look(scores.w)[0]
        return Point(w, scores, at.value, at.slack, at)

    def gradient(self, point: Point) -> FloatArray:
        return np.array(self._total(point).gradient)

    def hessian(self, point: Point, columns: IntArray) -> FloatArray:
        at = self._total(point)
        if (known := at.hessian.on(columns)) is None:
            known = self._sum(Share.ask, point, LocalObjective.hessian, columns)
            at.hessian = HessianBlock(columns, known)
            if len(columns) == self.n_features:
                self.features.keep(columns)  # whoever wants all of it will want it again
        return known

    def values(self, point: Point, cuts: IntArray) -> FloatArray:
        return self._sum(Share.between, point, cuts, LocalObjective.values)

    def gradients(self, point: Point, cuts: IntArray) -> FloatArray:
        return self._sum(Share.between, point, cuts, LocalObjective.gradients)

    def hessians(self, point: Point, columns: IntArray, cuts: IntArray) -> FloatArray:
        blocks = self._sum(Share.between, point, cuts, LocalObjective.hessians, columns)
        self._total(point).hessian = HessianBlock(columns, ordered_sum(list(blocks)) / self.loss.normaliser)
        return blocks

    def curvatures(self, point: Point) -> FloatArray:
        return self._sum(Share.ask, point, LocalObjective.curvatures)

    def hessian_product(self, point: Point, v: FloatArray) -> FloatArray:
        return self._sum(Share.ask, point, LocalObjective.hessian_product, v)

    def restricted(self, columns: IntArray) -> PartedObjective:
        features = self.features.restricted(columns)
        if len(columns) <= FEW:
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
            at, curvature = self._look(moved.w, direction_scores.w)
            return float(at.gradient @ self.features.narrowed(direction_scores.w)), curvature

        return along

    def slope_along(self, point: Point, direction_scores: LinearScores) -> float:
        return float(self._total(point).gradient @ self.features.narrowed(direction_scores.w))

    def curvature_along(self, point: Point, direction_scores: LinearScores) -> float:
        return self._look(point.scores.w, direction_scores.w)[1]

    def _look(self, w: FloatArray, along: FloatArray | None = None) -> tuple[Total, float]:
        """The sums at some weights, kept for a while, and the second derivative along a direction."""
        hint = self.features.hint
        answers = self.loss.shares.ask(Share.look, w, self._view, hint, along)
        seen = [one for one in answers if one is not None]
        terms = [one.terms for one in seen if one.terms is not None]
        at = Total(
            self._key,
            float(sum(one.value for one in seen)),
            float(sum(one.slack for one in seen)),
            float(sum(one.size for one in seen)),
            ordered_sum([one.gradient for one in seen]),
            HessianBlock(hint, ordered_sum([one.hessian for one in seen])),
            (sum(one for one, _ in terms), sum(one for _, one in terms)) if len(terms) == len(seen) else None,
        )
        self._points = dict([*list(self._points.items())[1 - KEPT_POINTS :], (w.tobytes(), at)])
        return at, float(sum(one.curvature for one in seen))

    @property
    def _key(self) -> bytes:
        """Whose gradients these are: of all features, or of some."""
        return b"" if self._view is None else self._view.tobytes()

    def _total(self, point: Point) -> Total:
        """The sums at a point, which another view of the same objective may have evaluated."""
        at: Total = point.at
        if at.view == self._key:
            return at
        w = point.scores.w
        return self._points.get(w.tobytes()) or self._look(w)[0]

    def _sum(self, find: Callable[..., FloatArray | None], point: Point, *args: Any) -> FloatArray:
        """Σ over the parts of what they find at a point."""
        shares = self.loss.shares.ask(find, point.scores.w, self._view, self.features.hint, *args)
        return ordered_sum(share for share in shares if share is not None)


def merged(facts: list[Facts]) -> Facts:
    """What all parts together say."""
    return Facts(
        float(sum(one.normaliser for one in facts)),
        np.max(np.array([one.spread for one in facts]), axis=0),
        np.max(np.array([one.largest for one in facts]), axis=0),
    )
