"""Forward selection with swaps: for each number of features a good set of them, fitted without ℓ1.

min_w f(w) + ½μ‖w‖² over the weights of k features. A set grows by the feature that lowers the second-order
model of the objective most; then features are swapped, one for one, as long as that lowers the objective.
Near-copies of a feature add nothing once it is in, so they do not fill the places.

Where features have prices, :meth:`Search.purchases` finds for each number of features a set for every cost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve.choice.folds import SecondOrder
from ranksieve.data.budget import COST_ROUNDING, Budget
from ranksieve.objective import Objective, Point
from ranksieve.path import Progress
from ranksieve.penalties import ElasticNet
from ranksieve.penalties.base import Slopes
from ranksieve.solvers import Problem, ProxNewton, Result

RIDGE_SHARE = 1e-3  # of the mean curvature of a feature at w = 0
SHORTLIST = 20  # features beside those of the set whose curvature is computed: those of the steepest gradient
MAX_SWAPS = 10  # per size
FEW, TRIES = 3, 5  # of the first three features, five candidates each are fitted
LEAST_GAIN = 1e-6  # share of the objective that a swap must promise
ALIKE = 1e-6  # a feature of which the set leaves no more unexplained than this share is a combination of it
BOUNDED = 1e-9  # share of the curvature that is added where a set may hold combinations of itself
STEP = 0.02  # share by which a dearer set must lower the objective
SHORT_OF = (
    2.0  # how far gains may exceed those of second-order models, whose curvature falls as pairs are won
)
MAX_ITER = 100
SetKey = tuple[int, ...]
Place = tuple[SetKey, bytes]
"""Where a second-order model is taken: at the fit of a set, beside the features that it leaves money for."""
NONE_FITTED: SetKey = ()


@dataclass(frozen=True, eq=False)
class Minimum:
    """The minimum of a quadratic ½vᵀHv + … over the weights v of a set of columns, signs aside.

    ``inverse`` is (H_SS)⁻¹, ``shares`` H_·S (H_SS)⁻¹, ``slope`` the gradient there, and ``left`` what the set
    leaves unexplained of each column's curvature: H_jj − H_jS (H_SS)⁻¹ H_Sj.
    """

    weights: FloatArray
    inverse: FloatArray
    shares: FloatArray
    slope: FloatArray
    left: FloatArray

    @property
    def gains(self) -> FloatArray:
        """How far the minimum falls when each column joins."""
        return np.asarray(self.slope**2 / (2.0 * self.left))

    def after_leaving(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What holds when each column of the set has left (columns × leaving): rise, slopes, gains."""
        spread = np.diag(self.inverse)
        rise = self.weights**2 / (2.0 * spread)
        slopes = self.slope[:, None] - self.shares * (self.weights / spread)
        gains = slopes**2 / (2.0 * (self.left[:, None] + self.shares**2 / spread))
        return rise, slopes, gains


@dataclass(frozen=True, eq=False)
class Quadratic:
    """f + ½μ‖w‖² near some weights, as a function of the weights of the columns that the model knows."""

    model: SecondOrder
    ridge: float
    budget: Budget

    def joining(self, chosen: Sequence[int], most: int = 1) -> list[int]:
        """The ``most`` features whose joining lowers the objective most."""
        gains = self._gains(chosen)
        best = np.argsort(-gains, kind="stable")[:most]
        return [int(j) for j in best if gains[j] > 0]

    def offers(self, chosen: Sequence[int]) -> list[tuple[int, float]]:
        """Of each unit of cost the feature whose joining lowers the objective most, and by how much."""
        gains = self._gains(chosen)
        order = np.argsort(-gains, kind="stable")[: np.count_nonzero(gains)]
        _, first = np.unique(self.budget.units[order], return_index=True)
        return [(int(j), float(gains[j])) for j in order[first]]

    def _gains(self, chosen: Sequence[int]) -> FloatArray:
        """How far the minimum falls when each feature joins; 0 for those that must not."""
        at = self._minimum(chosen)
        allowed = self.budget.may_join(self._wide(at.slope), chosen)
        return np.where(allowed, self._wide(at.gains), 0.0)

    def best_swap(self, chosen: Sequence[int]) -> tuple[float, list[int]]:
        """(fall of the objective, the set after it) of the best swap of one feature; (0, the set) if none."""
        if not len(chosen):
            return 0.0, []
        columns = self.model.columns
        rise, slopes, gains = self._minimum(chosen).after_leaving()
        fixed = self.budget.fixed
        falls = np.where([j in fixed for j in chosen], -np.inf, gains - rise)
        allowed = self.budget.may_replace(self._wide(slopes), chosen)[columns]
        falls[~allowed] = -np.inf
        j, i = (int(place) for place in np.unravel_index(int(np.argmax(falls)), falls.shape))
        if not falls[j, i] > 0:
            return 0.0, list(chosen)
        return float(falls[j, i]), [*chosen[:i], *chosen[i + 1 :], int(columns[j])]

    def weights(self, chosen: Sequence[int]) -> FloatArray:
        """The minimum over the weights of a set, in full width, each of the sign it must have."""
        up, w = np.full(len(self.model.w), np.inf), np.zeros(len(self.model.w))
        up[list(chosen)], w[list(chosen)] = 0.0, self.model.w[list(chosen)]
        down, columns, gradient = up.copy(), self.model.columns, self.model.gradient.copy()
        if self.budget.signs is not None:
            up[self.budget.signs < 0], down[self.budget.signs > 0] = np.inf, np.inf
        gradient[columns] += self.model.hessian @ (w - self.model.w)[columns]
        return replace(self.model, w=w, gradient=gradient).minimum(Slopes(up, down, self.ridge))

    def _minimum(self, chosen: Sequence[int]) -> Minimum:
        H, constant = self._ridged
        inside = self._place[list(chosen)]
        inverse = inverse_of(H[np.ix_(inside, inside)])
        shares = H[:, inside] @ inverse
        weights = -inverse @ constant[inside]
        left = H.diagonal() - np.einsum("ij,ij->i", shares, H[:, inside])
        left[(left <= ALIKE * H.diagonal()) | self._explained(inside)] = np.inf
        return Minimum(weights, inverse, shares, constant + H[:, inside] @ weights, left)

    def _explained(self, inside: IntArray) -> BoolArray:
        """Columns that are combinations of a set; a ridge would hide it, as it gains by sharing a weight."""
        size = np.sqrt(np.maximum(self.model.hessian.diagonal(), np.finfo(np.float64).tiny))
        alike = self.model.hessian[inside] / size[inside, None] / size
        block = alike[:, inside] + BOUNDED * np.eye(len(inside))
        explained = np.einsum("ij,ij->j", alike, np.linalg.solve(block, alike))
        return np.asarray(explained >= 1.0 - ALIKE)

    @cached_property
    def _ridged(self) -> tuple[FloatArray, FloatArray]:
        """Hessian with the ridge, and the gradient that the model has where all weights are 0."""
        columns = self.model.columns
        H = self.model.hessian + self.ridge * np.eye(len(columns))
        return H, self.model.gradient[columns] - self.model.hessian @ self.model.w[columns]

    @cached_property
    def _place(self) -> IntArray:
        """Where each feature is among the columns."""
        place = np.full(len(self.model.w), -1)
        place[self.model.columns] = np.arange(len(self.model.columns))
        return place

    def _wide(self, values: FloatArray) -> FloatArray:
        """Values of the columns in full width, 0 elsewhere."""
        wide = np.zeros((len(self.model.w), *values.shape[1:]))
        wide[self.model.columns] = values
        return wide


def inverse_of(H: FloatArray) -> FloatArray:
    """The inverse of a Hessian with its ridge; where rounding makes that singular, the pseudo-inverse.

    It is taken of the Hessian scaled to a diagonal of 1, because features may have very different units.
    """
    with suppress(np.linalg.LinAlgError):
        inverse = np.linalg.inv(H)
        if (inverse.diagonal() > 0).all():
            return np.asarray(inverse, dtype=np.float64)
    unit = 1.0 / np.sqrt(H.diagonal())
    scaled = unit[:, None] * H * unit
    return np.asarray(unit[:, None] * np.linalg.pinv(scaled, hermitian=True) * unit, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Purchase:
    """A set of features with its cost, its fit, and the objective near it."""

    chosen: list[int]
    cost: float
    result: Result
    near: Quadratic


class Search(ABC):
    """Forward selection with swaps; where fits and second-order models come from is up to subclasses.

    ``ridge`` is μ of all fits.
    """

    ridge: float

    @abstractmethod
    def fitted(self, chosen: Sequence[int], start: FloatArray, budget: Budget) -> Result:
        """The fit of a set, from weights near it."""

    @abstractmethod
    def near(self, chosen: Sequence[int], start: FloatArray, budget: Budget) -> SecondOrder:
        """The second-order model around the fit of a set, in its columns and those that may join it."""

    @abstractmethod
    def near_zero(self, chosen: Sequence[int], budget: Budget) -> SecondOrder:
        """The second-order model where all weights are 0."""

    def path(
        self,
        max_features: int,
        budget: Budget,
        progress: Progress | None = None,
    ) -> list[Result]:
        """Fits of 1 to ``max_features`` features; the first has the fixed features, or one."""
        chosen, results = budget.fixed, []
        near = self._at_zero(chosen, budget)
        for size in range(max(1, len(chosen)), max_features + 1):
            if len(chosen) < size:
                grown = self._grown(chosen, near, budget)
                if grown is None:
                    break
                chosen = grown
            result, chosen, near = self._settle(chosen, near, budget)
            results.append(result)
            if progress is not None:
                progress(size, max_features)
        return results

    def grown(self, chosen: Sequence[int], size: int, budget: Budget) -> list[int]:
        """A set with more features, grown and swapped as in :meth:`path`."""
        _, chosen, near = self._settle(list(chosen), self._at_zero(chosen, budget), budget)
        while len(chosen) < size and (larger := self._grown(chosen, near, budget)) is not None:
            _, chosen, near = self._settle(larger, near, budget)
        return chosen

    def purchases(
        self, max_features: int, budget: Budget, limit: float, progress: Progress | None = None
    ) -> list[list[Purchase]]:
        """For each number of features, sets by rising cost up to ``limit``.

        Each set of the size before is offered one feature of every unit of cost. By rising cost, an offer is
        taken if it lowers the objective of all cheaper sets of its size by the share STEP, and of all cheaper
        sets of fewer features at all; swaps keep the cost. So a set depends only on sets that cost no more,
        and a higher limit finds all sets of a lower one.
        """
        budget, chosen = replace(budget, max_cost=None, same_cost=True), budget.fixed
        near = self._at_zero(chosen, budget)
        offers = [(chosen, -np.inf, near)] if chosen else _offers([], 0.0, near)
        sizes: list[list[Purchase]] = []
        while offers and len(offers[0][0]) <= max_features:
            costs = [budget.cost(one) for one, _, _ in offers]
            taken: list[Purchase] = []
            for k in np.lexsort(([estimate for _, estimate, _ in offers], costs)):
                (chosen, estimate, near), cost = offers[k], costs[k]
                smaller = [one.result.objective for size in sizes for one in size if one.cost <= cost]
                below = min([*smaller, *((1.0 - STEP) * one.result.objective for one in taken[-1:]), np.inf])
                if (
                    cost <= limit * (1.0 + COST_ROUNDING)
                    and estimate < below
                    and self.fitted(chosen, near.weights(chosen), budget).objective < below
                ):
                    result, chosen, near = self._settle(chosen, near, budget)
                    taken.append(Purchase(chosen, cost, result, near))
            offers = [offer for one in taken for offer in _offers(one.chosen, one.result.objective, one.near)]
            sizes.append(taken)
            if progress is not None:
                progress(len(sizes), max_features)
        return sizes

    def _grown(self, chosen: list[int], near: Quadratic, budget: Budget) -> list[int] | None:
        """The set with one feature more; None if none can lower the objective.

        The first features change the loss most, and a second-order model tells least of it: so several are
        tried.
        """
        tries = TRIES if len(chosen) < FEW else 1
        sets = [[*chosen, j] for j in near.joining(chosen, tries)]
        if len(sets) < 2:
            return sets[0] if sets else None
        return min(sets, key=lambda larger: self.fitted(larger, near.weights(larger), budget).objective)

    def _settle(
        self, chosen: list[int], before: Quadratic, budget: Budget
    ) -> tuple[Result, list[int], Quadratic]:
        """Fit a set and swap its features while that lowers the objective: (fit, set, model around it)."""
        result, near = self._fit(chosen, before.weights(chosen), budget)
        for _ in range(MAX_SWAPS):
            fall, after = near.best_swap(chosen)
            if fall <= LEAST_GAIN * result.objective:
                break
            other, around = self._fit(after, near.weights(after), budget)
            if other.objective >= result.objective:
                break
            result, chosen, near = other, after, around
        return result, chosen, near

    def _at_zero(self, chosen: Sequence[int], budget: Budget) -> Quadratic:
        return Quadratic(self.near_zero(chosen, budget), self.ridge, budget)

    def _fit(self, chosen: list[int], start: FloatArray, budget: Budget) -> tuple[Result, Quadratic]:
        near = Quadratic(self.near(chosen, start, budget), self.ridge, budget)
        return self.fitted(chosen, start, budget), near


class ForwardSearch(Search):
    """Sets of features of one objective, fitted as searches under different budget come upon them."""

    def __init__(
        self, objective: Objective, usable: BoolArray, tol: float = 1e-6, ridge: float | None = None
    ) -> None:
        self.objective, self.tol = objective, tol
        curvature = objective.curvatures(objective.at_zero)
        self.ridge = RIDGE_SHARE * mean_curvature(curvature, usable) if ridge is None else ridge
        self._size = np.sqrt(np.maximum(curvature, np.finfo(np.float64).tiny))
        self._fits: dict[SetKey, Result] = {}
        self._models: dict[Place, SecondOrder] = {}
        self._latest: tuple[SetKey, Point] | None = None

    def fitted(self, chosen: Sequence[int], start: FloatArray, budget: Budget) -> Result:
        """The fit of a set, once for all searches."""
        key = set_key(chosen)
        if key not in self._fits:
            result = fit_set(self.objective, chosen, start, self.ridge, budget.signs, self.tol)
            self._fits[key], self._latest = replace(result, point=None), (key, result.point)
        return self._fits[key]

    def near(self, chosen: Sequence[int], start: FloatArray, budget: Budget) -> SecondOrder:
        """The second-order model around the fit of a set, once for all searches."""
        if (place := (set_key(chosen), budget.affordable(chosen))) not in self._models:
            self.fitted(chosen, start, budget)
            self._models[place] = self._model(place, self._fit_point(chosen, start), chosen, budget)
        return self._models[place]

    def near_zero(self, chosen: Sequence[int], budget: Budget) -> SecondOrder:
        """The second-order model where all weights are 0, once for all searches."""
        if (place := (NONE_FITTED, budget.affordable(chosen))) not in self._models:
            self._models[place] = self._model(place, self.objective.at_zero, chosen, budget)
        return self._models[place]

    def _fit_point(self, chosen: Sequence[int], start: FloatArray) -> Point:
        """What is known of the loss at the fit of a set; at ``start`` if it has not been fitted."""
        key = set_key(chosen)
        if self._latest is not None and self._latest[0] == key:
            return self._latest[1]
        return self.objective.evaluate(self._fits[key].w if key in self._fits else start)

    def _model(self, place: Place, point: Point, chosen: Sequence[int], budget: Budget) -> SecondOrder:
        """The second-order model at a point, in the columns of a set and those that may join it."""
        g = self.objective.gradient(point)
        columns = self._columns(g, chosen, budget)
        return SecondOrder(point.w, g, self.objective.hessian(point, columns), columns)

    def _columns(self, g: FloatArray, chosen: Sequence[int], budget: Budget) -> IntArray:
        """The columns of a set and those of the steepest gradient g that may join it."""
        steepest = np.where(budget.may_join(g, chosen), np.abs(g) / self._size, -1.0)
        short = np.argsort(-steepest, kind="stable")[:SHORTLIST]
        if budget.same_cost:
            worth = budget.per_cost(np.sign(steepest) * steepest**2, chosen)
            short = np.union1d(short, np.argsort(-worth, kind="stable")[:SHORTLIST])
        return np.union1d(short[steepest[short] >= 0], np.array(chosen, dtype=np.int64))


def _offers(chosen: list[int], objective: float, near: Quadratic) -> list[tuple[list[int], float, Quadratic]]:
    """Sets with one feature more: (set, what its objective may fall to, the model that says so)."""
    return [([*chosen, j], objective - SHORT_OF * gain, near) for j, gain in near.offers(chosen)]


def set_key(chosen: Sequence[int]) -> SetKey:
    """A set of features, in whatever order it was found."""
    return tuple(sorted(chosen))


def mean_curvature(curvature: FloatArray, usable: BoolArray) -> float:
    """The mean over usable features: the scale of a ridge."""
    return float(np.sum(curvature[usable])) / max(1, int(np.count_nonzero(usable)))


def fit_set(
    objective: Objective,
    chosen: Sequence[int],
    start: FloatArray,
    ridge: float,
    signs: FloatArray | None,
    tol: float,
) -> Result:
    """min f + ½μ‖w‖² over the weights of a set of features, in full width; μ = ``ridge``."""
    columns = np.array(chosen, dtype=np.int64)
    penalty = ElasticNet(ridge, signs=None if signs is None else signs[columns], l1_ratio=0.0)
    problem = Problem(objective.restricted(columns), penalty)
    result = ProxNewton(tol, MAX_ITER).solve(problem, start[columns])
    w = np.zeros(objective.n_features)
    w[columns] = result.w
    return replace(result, w=w, point=replace(result.point, w=w))
