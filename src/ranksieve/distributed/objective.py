"""The objective of distributed data: sums, in part order, of what the workers compute of their parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve.data.feature_matrix import ordered_sum
from ranksieve.data.queries import one_query
from ranksieve.distributed.dataset import DistributedDataset
from ranksieve.distributed.share import Facts, Share, facts_of
from ranksieve.errors import DataError, ParameterError
from ranksieve.losses.base import NO_PAIRS, Loss
from ranksieve.objective import Objective, Point

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
