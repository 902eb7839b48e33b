"""A part's share of an objective: what a worker computes of the sums that the client adds up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranksieve._parallel import split_blocks
from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve.data.dataset import Dataset
from ranksieve.data.matrix import spread_and_largest
from ranksieve.data.queries import Queries
from ranksieve.losses.base import NO_PAIRS, BoundLoss, Loss
from ranksieve.objective import Objective, Point

KEPT_VIEWS = 2  # objectives of some columns, and points: the last ones may be asked for again
KEPT_POINTS = 2


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


def facts_of(part: Dataset, weight: FloatArray | None, loss: Loss) -> Facts:
    """What a part alone says; parts are merged by sum and maximum."""
    spread, largest = spread_and_largest(part.X, part.queries, split_blocks(part.queries.offsets))
    bound = bind(part, weight, loss)
    normaliser = _silent_normaliser(part, weight, loss) if bound is None else bound.normaliser
    return Facts(normaliser, spread, largest)


def bind(part: Dataset, weight: FloatArray | None, loss: Loss) -> BoundLoss | None:
    """The loss of a part; None if it has no pairs, which only all parts together need."""
    try:
        return loss.bind(part.y, part.queries, weight, part.document_weight)
    except ValueError as error:
        if str(error) != NO_PAIRS:
            raise
        return None


def _silent_normaliser(part: Dataset, weight: FloatArray | None, loss: Loss) -> float:
    """The normaliser of a part without pairs, which no loss can be bound to alone.

    It is that with one more query, of two documents, less that of this query.
    """
    extra, ones = np.array([0.0, 1.0]), np.ones(1)
    n, queries = part.n_docs, part.queries
    more = Queries(
        np.arange(queries.n_queries + 1),
        np.append(queries.order, [n, n + 1]),
        np.append(queries.offsets, n + 2),
    )
    weights = np.append(np.ones(queries.n_queries) if weight is None else weight, 1.0)
    documents = part.document_weight
    if documents is not None:
        documents = np.append(documents, [1.0, 1.0])
    with_extra = loss.bind(np.append(part.y, extra), more, weights, documents)
    alone = loss.bind(extra, Queries(np.zeros(1), np.arange(2), np.array([0, 2])), ones)
    return with_extra.normaliser - alone.normaliser


class Share:
    """The loss of a part's rows, divided by the normaliser of all parts.

    Every answer is a function of the part and the arguments alone. What is kept of the last arguments only
    saves time.
    """

    def __init__(
        self, part: Dataset, numbers: IntArray, weight: FloatArray | None, loss: Loss, facts: Facts
    ) -> None:
        self._numbers, self._n_features = numbers, part.n_features
        self._whole: Objective | None = None
        if (bound := bind(part, weight, loss)) is not None:
            bound.normaliser = facts.normaliser
            extremes = (facts.spread.copy(), facts.largest.copy())
            self._whole = Objective(part.X, bound, part.feature_names, extremes)
        self._views: dict[bytes, Objective] = {}
        self._kept: dict[bytes, bytes] = {}
        self._points: dict[tuple[bytes, bytes], Point] = {}

    def columns(self) -> tuple[BoolArray, FloatArray] | None:
        """(Whether features vary within queries, how far they reach), for all parts; None without pairs."""
        return None if self._whole is None else (self._whole.varies, self._whole.features.reach)

    def look(
        self, w: FloatArray, view: IntArray | None, hint: IntArray, along: FloatArray | None = None
    ) -> Seen:
        """The loss at ``w`` as a function of the columns ``view`` (None: all), its Hessian on ``hint``."""
        width = self._n_features if view is None else len(view)
        objective, point = self._at(w, view, hint)
        if objective is None or point is None:
            return Seen(0.0, 0.0, 0.0, np.zeros(width), np.zeros((len(hint), len(hint))), 0.0)
        if not np.isfinite(point.value):
            nothing = np.full(width, np.nan)
            return Seen(point.value, np.nan, np.nan, nothing, np.full((len(hint), len(hint)), np.nan), np.nan)
        hessian, curvature = np.empty((0, 0)), 0.0
        if len(hint):
            hessian = objective.hessian(point, hint)
        if along is not None:
            direction = along if view is None else along[view]
            curvature = objective.curvature_along(point, objective.scores(direction))
        gradient = objective.gradient(point)
        at = point.at
        return Seen(point.value, point.slack, at.size, gradient, hessian, curvature, at.terms)

    def block(self, w: FloatArray, view: IntArray | None, hint: IntArray, columns: IntArray) -> FloatArray:
        """The Hessian block on some columns."""
        objective, point = self._at(w, view, hint)
        if objective is None or point is None:
            return np.zeros((len(columns), len(columns)))
        return objective.hessian(point, columns)

    def diagonal(self, w: FloatArray, view: IntArray | None, hint: IntArray) -> FloatArray:
        """The diagonal of the Hessian."""
        objective, point = self._at(w, view, hint)
        if objective is None or point is None:
            return np.zeros(self._n_features if view is None else len(view))
        return objective.curvatures(point)

    def product(self, w: FloatArray, view: IntArray | None, hint: IntArray, v: FloatArray) -> FloatArray:
        """The Hessian times ``v``."""
        objective, point = self._at(w, view, hint)
        return np.zeros(len(v)) if objective is None or point is None else objective.hessian_product(point, v)

    def values(self, w: FloatArray, view: IntArray | None, hint: IntArray, cuts: IntArray) -> FloatArray:
        """What the part's queries between each two cuts (in the order of all queries) add to the loss."""
        objective, point = self._at(w, view, hint)
        sums = np.zeros(len(cuts) - 1)
        if objective is not None and point is not None:
            here, met = self._cuts(cuts)
            sums[met] = objective.values(point, here)
        return sums

    def gradients(self, w: FloatArray, view: IntArray | None, hint: IntArray, cuts: IntArray) -> FloatArray:
        """What the part's queries between each two cuts (in the order of all queries) add to the gradient."""
        objective, point = self._at(w, view, hint)
        if objective is None or point is None:
            return np.zeros((len(cuts) - 1, self._n_features if view is None else len(view)))
        here, met = self._cuts(cuts)
        sums = np.zeros((len(cuts) - 1, objective.n_features))
        sums[met] = objective.gradients(point, here)
        return sums

    def hessians(
        self, w: FloatArray, view: IntArray | None, hint: IntArray, columns: IntArray, cuts: IntArray
    ) -> FloatArray:
        """What the part's queries between each two cuts add to the Hessian block."""
        objective, point = self._at(w, view, hint)
        blocks = np.zeros((len(cuts) - 1, len(columns), len(columns)))
        if objective is not None and point is not None:
            here, met = self._cuts(cuts)
            blocks[met] = objective.hessians(point, columns, here)
        return blocks

    def lipschitz(self, squared_radius: FloatArray) -> float:
        """The part's share of the loss's own bound of the Hessian; the radii are of all queries."""
        if self._whole is None:
            return 0.0
        return float(self._whole.loss.lipschitz_bound(squared_radius[self._numbers]))

    def _cuts(self, cuts: IntArray) -> tuple[IntArray, IntArray]:
        """The cuts among the part's own queries, and which runs between cuts have any."""
        here = np.searchsorted(self._numbers, cuts)
        met = np.flatnonzero(np.diff(here))
        return np.append(here[met], here[-1]), met

    def _at(
        self, w: FloatArray, view: IntArray | None, hint: IntArray
    ) -> tuple[Objective | None, Point | None]:
        """The objective of some columns and the loss at ``w``; None without pairs."""
        if self._whole is None:
            return None, None
        key = b"" if view is None else view.tobytes()
        objective = self._objective(key, view)
        if self._kept.get(key) != hint.tobytes():  # what is kept decides about the last bits
            objective.features.keep(hint)
            self._kept[key] = hint.tobytes()
        place = (key, w.tobytes())
        if place not in self._points:
            point = objective.evaluate(w if view is None else w[view])
            self._points = dict([*list(self._points.items())[1 - KEPT_POINTS :], (place, point)])
        return objective, self._points[place]

    def _objective(self, key: bytes, view: IntArray | None) -> Objective:
        whole = self._whole
        assert whole is not None
        if view is None:
            return whole
        if key not in self._views:
            kept = list(self._views.items())[1 - KEPT_VIEWS :]
            self._kept = {k: hint for k, hint in self._kept.items() if k in (b"", *dict(kept))}
            self._views = dict([*kept, (key, whole.restricted(view))])
        return self._views[key]
