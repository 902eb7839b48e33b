"""The objective of distributed data: workers compute the shares of each part, the client adds them up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ranksieve._parallel import split_blocks
from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve.dask.dataset import DistributedDataset
from ranksieve.data.dataset import Dataset
from ranksieve.data.feature_matrix import ordered_sum
from ranksieve.data.matrix import spread_and_largest
from ranksieve.data.queries import Queries, one_query
from ranksieve.errors import DataError, ParameterError
from ranksieve.losses.base import NO_PAIRS, BoundLoss, Loss
from ranksieve.objective import Objective, Point

KEPT_VIEWS = 2  # objectives of some columns, and points: the last ones may be asked for again
SHARED_POINTS = 2


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
            self._points = dict([*list(self._points.items())[1 - SHARED_POINTS :], (place, point)])
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


IN_PARTS = ("squared_hinge", "cost_sensitive_listmle")  # losses whose parts without pairs add nothing
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
    """The sums of all parts at some weights, as functions of the features ``view``.

    ``hessian`` is the block on ``columns``.
    """

    view: bytes
    value: float
    slack: float
    size: float
    gradient: FloatArray
    columns: IntArray
    hessian: FloatArray
    terms: tuple[float, float] | None

    def block(self, columns: IntArray) -> FloatArray | None:
        """The Hessian on some columns, if it is known."""
        place = {j: k for k, j in enumerate(self.columns.tolist())}
        try:
            places = [place[j] for j in columns.tolist()]
        except KeyError:
            return None
        return np.ascontiguousarray(self.hessian[np.ix_(places, places)])


class PartedFeatures:
    """What solvers ask of the features: how many, how large, and which will be wanted."""

    def __init__(self, varies: BoolArray, reach: FloatArray, view: IntArray | None, width: int) -> None:
        self.varies, self.reach, self.n_features = varies, reach, len(varies)
        self.hint = NONE
        self._view, self._width = view, width

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
        if self._view is None:
            return w
        wide = np.zeros(self._width)
        wide[self._view] = w
        return wide

    def narrowed(self, w: FloatArray) -> FloatArray:
        """Of weights of all features those of these."""
        return w if self._view is None else w[self._view]


class Counts:
    """How many rows and queries there are."""

    def __init__(self, n_rows: int, n_queries: int) -> None:
        self.n_rows, self.n_queries = n_rows, n_queries


class PartedLoss:
    """What solvers ask of the loss; formulas of sums are those of the loss itself, bound to two documents."""

    def __init__(self, loss: Loss, normaliser: float, counts: Counts, shares: Any) -> None:
        self._toy: Any = loss.bind(np.array([0.0, 1.0]), one_query(2), None)
        self.name, self.dual = loss.name, self._toy.dual
        self.offers = frozenset(self._toy.offers) - {"rows"}
        self.normaliser, self.queries, self._shares = normaliser, counts, shares

    def lipschitz_bound(self, squared_radius: FloatArray) -> float:
        """The loss's own bound of the norm of its Hessian."""
        return float(sum(self._shares.ask(Share.lipschitz, squared_radius)))


class PartedObjective(Objective):
    """f(w) = loss(Xw) / normaliser, its gradient and blocks of its Hessian, as sums over parts on workers.

    Scores stay there: the client's name for a score vector is its weights. One round of messages evaluates
    the loss and brings gradient and, on the columns that ``features.keep`` named, the Hessian.
    """

    def __init__(self, data: DistributedDataset, loss: Loss, query_weight: FloatArray | None = None) -> None:
        if loss.name not in IN_PARTS:
            reason = f"needs the data in memory; on distributed data use {' or '.join(IN_PARTS)}"
            raise ParameterError("loss", loss.name, reason)
        self._data, self._family, self._weight = data, loss, query_weight
        facts = merged(data.in_parts(partial(facts_of, loss=loss), query_weight))
        if not facts.normaliser > 0:
            raise DataError(None, None, NO_PAIRS)
        self._shares: Any = data.parts(
            partial(Share, loss=loss, facts=facts), np.arange(data.n_queries), query_weight
        )
        known = [one for one in self._shares.ask(Share.columns) if one is not None]
        if not known:
            raise DataError(None, None, NO_PAIRS)
        varies, reach = known[0]
        self.features: Any = PartedFeatures(varies, reach, None, data.n_features)
        self.loss: Any = PartedLoss(loss, facts.normaliser, Counts(data.n_docs, data.n_queries), self._shares)
        self._view: IntArray | None = None
        self._forget()

    def _forget(self) -> None:
        self._at_zero = None
        self._points: dict[bytes, Total] = {}

    def scores(self, w: FloatArray) -> Any:
        return LinearScores(self.features.widened(w))

    def evaluate_scores(self, w: FloatArray, scores: Any) -> Point:
        at: Any = self._points.get(scores.w.tobytes()) or self._look(scores.w)[0]
        return Point(w, scores, at.value, at.slack, at)

    def gradient(self, point: Point) -> FloatArray:
        return np.array(self._total(point).gradient)

    def hessian(self, point: Point, columns: IntArray) -> FloatArray:
        at = self._total(point)
        if (known := at.block(columns)) is None:
            known = self._sum(Share.block, point, columns)
            at.columns, at.hessian = columns, known
            if len(columns) == self.n_features:
                self.features.keep(columns)  # whoever wants all of it will want it again
        return known

    def values(self, point: Point, cuts: IntArray) -> FloatArray:
        return self._sum(Share.values, point, cuts)

    def gradients(self, point: Point, cuts: IntArray) -> FloatArray:
        return self._sum(Share.gradients, point, cuts)

    def hessians(self, point: Point, columns: IntArray, cuts: IntArray) -> FloatArray:
        blocks = self._sum(Share.hessians, point, columns, cuts)
        at = self._total(point)
        at.columns, at.hessian = columns, ordered_sum(list(blocks)) / self.loss.normaliser
        return blocks

    def curvatures(self, point: Point) -> FloatArray:
        return self._sum(Share.diagonal, point)

    def restricted(self, columns: IntArray) -> PartedObjective:
        part = object.__new__(PartedObjective)
        part.__dict__ |= self.__dict__
        part._view = columns if self._view is None else self._view[columns]
        part.features = PartedFeatures(
            self.varies[columns], self.features.reach[columns], part._view, self._data.n_features
        )
        if len(columns) <= FEW:
            part.features.keep(np.arange(len(columns)))
        part._forget()
        return part

    def sample(self, every: int) -> Objective | None:
        if "part" not in self.loss.offers:
            return None
        chosen = np.arange(0, self._data.n_queries, every)
        some: Any = self._data.in_query_order(chosen)
        try:
            return PartedObjective(some, self._family, None if self._weight is None else self._weight[chosen])
        except ValueError:
            return None

    def hessian_product(self, point: Point, v: FloatArray) -> FloatArray:
        return self._sum(Share.product, point, v)

    def slopes_along(self, point: Point, direction_scores: Any) -> Callable[[float], tuple[float, float]]:
        def along(step: float) -> tuple[float, float]:
            moved = (point.scores + step * direction_scores).w if step else point.scores.w  # type: ignore[attr-defined]
            at, curvature = self._look(moved, direction_scores.w)
            return float(at.gradient @ self.features.narrowed(direction_scores.w)), curvature

        return along

    def slope_along(self, point: Point, direction_scores: Any) -> float:
        return float(self._total(point).gradient @ self.features.narrowed(direction_scores.w))

    def curvature_along(self, point: Point, direction_scores: Any) -> float:
        return self._look(point.scores.w, direction_scores.w)[1]  # type: ignore[attr-defined]

    def _look(self, w: FloatArray, along: FloatArray | None = None) -> tuple[Total, float]:
        """The sums at some weights, kept for a while, and the second derivative along a direction."""
        hint, view = self.features.hint, self._view
        seen = self._shares.ask(Share.look, w, view, hint, along)
        terms = [one.terms for one in seen]
        at = Total(
            self._key,
            float(sum(one.value for one in seen)),
            float(sum(one.slack for one in seen)),
            float(sum(one.size for one in seen)),
            ordered_sum([one.gradient for one in seen]),
            hint,
            ordered_sum([one.hessian for one in seen]),
            None if None in terms else (sum(one for one, _ in terms), sum(one for _, one in terms)),
        )
        self._points = dict([*list(self._points.items())[1 - KEPT_POINTS :], (w.tobytes(), at)])
        return at, float(sum(one.curvature for one in seen))

    @property
    def _key(self) -> bytes:
        """Whose gradients these are: of all features, or of some."""
        return b"" if self._view is None else self._view.tobytes()

    def _total(self, point: Point) -> Total:
        """The sums at a point, which another view of the same objective may have evaluated."""
        at: Any = point.at
        if at.view == self._key:
            return at  # type: ignore[no-any-return]
        w = point.scores.w  # type: ignore[attr-defined]
        return self._points.get(w.tobytes()) or self._look(w)[0]

    def _sum(self, find: Callable[..., FloatArray], point: Point, *args: Any) -> FloatArray:
        """Σ over the parts of what they find at a point."""
        w = point.scores.w  # type: ignore[attr-defined]
        return ordered_sum(self._shares.ask(find, w, self._view, self.features.hint, *args))


def merged(facts: list[Facts]) -> Facts:
    """What all parts together say."""
    return Facts(
        float(sum(one.normaliser for one in facts)),
        np.max(np.array([one.spread for one in facts]), axis=0),
        np.max(np.array([one.largest for one in facts]), axis=0),
    )
