"""Forward selection without each fold, around the fits of all data.

A set that one fold comes upon is mostly a set of others too, and nearly optimal weights of all data are near
those without a fold. So one look at the data, at such weights, gives the second-order models of the loss
without every fold; selection, swaps and weights without a fold come from these.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranksieve._types import BoolArray, FloatArray
from ranksieve.forward import (
    NONE_FITTED,
    ForwardSearch,
    Place,
    Quadratic,
    Rules,
    Search,
    SetKey,
    set_key,
)
from ranksieve.leave_out import Folds, SecondOrder
from ranksieve.objective import Point
from ranksieve.solvers import Result
from ranksieve.solvers.base import Trace


class FoldedSearch(ForwardSearch):
    """The search on all data, which keeps the second-order models without each fold of the first dealing.

    A set that it has fitted is looked at there; another, which only folds came upon, where the second-order
    model of its predecessor has its minimum.
    """

    def __init__(
        self, folds: Folds, usable: BoolArray, tol: float = 1e-6, ridge: float | None = None
    ) -> None:
        super().__init__(folds.objective, usable, tol, ridge)
        self._folds = folds
        self._without: dict[Place, list[SecondOrder]] = {}
        self._first: dict[SetKey, list[SecondOrder]] = {}

    def without(self, chosen: Sequence[int], start: FloatArray, rules: Rules) -> list[SecondOrder]:
        """The models around a set, in its columns and those that may join it."""
        if (place := (set_key(chosen), rules.affordable(chosen))) not in self._without:
            self._model(place, self._fit_point(chosen, start), chosen, rules)
        return self._without[place]

    def without_of(self, chosen: Sequence[int], start: FloatArray) -> list[SecondOrder]:
        """The models around a set, in its columns at least."""
        if (key := set_key(chosen)) not in self._first:
            point = self._fit_point(chosen, start)
            shares = self._folds.gradient_shares(point)
            self._first[key] = self._folds.near_first(point, np.array(key, dtype=np.int64), shares)
        return self._first[key]

    def without_at_zero(self, chosen: Sequence[int], rules: Rules) -> list[SecondOrder]:
        """The models where all weights are 0."""
        self.near_zero(chosen, rules)
        return self._without[NONE_FITTED, rules.affordable(chosen)]

    def _model(self, place: Place, point: Point, chosen: Sequence[int], rules: Rules) -> SecondOrder:
        shares = self._folds.gradient_shares(point)
        g = np.where(self.objective.varies, shares.sum(axis=0), 0.0) / self.objective.loss.normaliser
        columns = self._columns(g, chosen, rules)
        self._without[place] = self._folds.near_first(point, columns, shares)
        self._first.setdefault(place[0], self._without[place])
        return SecondOrder(point.w, g, self.objective.hessian(point, columns), columns)


class WithoutFold(Search):
    """The search without one fold; the objective of a fit is that of the second-order model."""

    def __init__(self, whole: FoldedSearch, fold: int) -> None:
        self._whole, self._fold, self.ridge = whole, fold, whole.ridge
        self._fits: dict[SetKey, Result] = {}

    def fitted(self, chosen: Sequence[int], start: FloatArray, rules: Rules) -> Result:
        key = set_key(chosen)
        if key not in self._fits:
            model = self._whole.without_of(chosen, start)[self._fold]
            w = Quadratic(model, self.ridge, rules).weights(chosen)
            objective = model.at(w) + 0.5 * self.ridge * float(w @ w)
            self._fits[key] = Result(w, objective, np.nan, 1, True, Trace(seconds=[0.0]))
        return self._fits[key]

    def near(self, chosen: Sequence[int], start: FloatArray, rules: Rules) -> SecondOrder:
        return self._whole.without(chosen, start, rules)[self._fold]

    def near_zero(self, chosen: Sequence[int], rules: Rules) -> SecondOrder:
        return self._whole.without_at_zero(chosen, rules)[self._fold]
