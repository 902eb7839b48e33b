"""Forward selection with swaps: a good set of features for each number of features, fitted without ℓ1.

min_w f(w) + ½μ‖w‖² over the weights of k features. Each step adds the feature that lowers the second-order
model of the objective most; then single features are swapped as long as that lowers the objective.
Near-copies of a selected feature gain almost nothing, so they are not selected.

With feature costs, :meth:`ForwardSearch.sets_by_cost` selects sets for each number of features and cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve.choice.folds import SecondOrder
from ranksieve.data.budget import COST_ROUNDING, Budget
from ranksieve.objective import Objective, Point
from ranksieve.path import Progress
from ranksieve.penalties import ElasticNet
from ranksieve.penalties.base import Slopes
from ranksieve.solvers import Problem, ProxNewton, Result

FORWARD_RIDGE_SHARE = 1e-3  # μ as a share of the mean curvature of a feature at w = 0
SHORTLIST = 20  # features outside the set in a second-order model: those with the steepest gradient
MAX_SWAPS = 10  # per size
LEAST_DEPTH = (
    13  # size at which a pass backward begins at least, so that small sets do not depend on the budget
)
FIRST_FEATURES, FIRST_TRIES = 3, 5  # fit the five best candidates for each of the first three features
MIN_SWAP_GAIN = 1e-6  # predicted decrease that a swap needs, as a share of the objective
COLLINEAR_SHARE = 1e-6  # largest unexplained share of the curvature of a linear combination
COLLINEAR_RIDGE = 1e-9  # share of the curvature added so that a collinear set can be inverted
MIN_COST_GAIN = 0.02  # share by which a more expensive set must lower the objective
MAX_GAIN_FACTOR = 2.0  # true over predicted gain, at most: the curvature falls as pairs leave the hinge
MAX_ITER = 100
SetKey = tuple[int, ...]
ModelKey = tuple[SetKey, bytes]
"""Key of a second-order model: the set whose fit it is around, and the features it can afford in addition."""
EMPTY_SET: SetKey = ()


@dataclass(frozen=True, eq=False)
class Minimum:
    """Minimum of a quadratic ½vᵀHv + … over the weights v of a set S of columns, ignoring sign constraints.

    ``inverse`` is (H_SS)⁻¹, ``shares`` H_·S (H_SS)⁻¹, ``slope`` the gradient at the minimum, and
    ``unexplained`` the part of each column's curvature that S does not explain: H_jj − H_jS (H_SS)⁻¹ H_Sj.
    """

    weights: FloatArray
    inverse: FloatArray
    shares: FloatArray
    slope: FloatArray
    unexplained: FloatArray

    @property
    def gains(self) -> FloatArray:
        """Decrease of the minimum if each column is added."""
        return np.asarray(self.slope**2 / (2.0 * self.unexplained))

    def after_removal(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(increase of the minimum, slopes, gains) after removal of each column of S (columns × removed)."""
        spread = np.diag(self.inverse)
        increase = self.weights**2 / (2.0 * spread)
        slopes = self.slope[:, None] - self.shares * (self.weights / spread)
        gains = slopes**2 / (2.0 * (self.unexplained[:, None] + self.shares**2 / spread))
        return increase, slopes, gains


@dataclass(frozen=True, eq=False)
class SetQuadratic:
    """Second-order model of f + ½μ‖w‖² as a function of the weights of ``model.columns``."""

    model: SecondOrder
    ridge: float
    budget: Budget

    def best_additions(self, chosen: Sequence[int], most: int = 1) -> list[int]:
        """At most ``most`` features, those that lower the objective most if added."""
        gains = self._gains(chosen)
        best = np.argsort(-gains, kind="stable")[:most]
        return [int(j) for j in best if gains[j] > 0]

    def best_per_cost_unit(self, chosen: Sequence[int]) -> list[tuple[int, float]]:
        """For each unit of cost, the feature that lowers the objective most if added, and the decrease."""
        gains = self._gains(chosen)
        order = np.argsort(-gains, kind="stable")[: np.count_nonzero(gains)]
        _, first = np.unique(self.budget.units[order], return_index=True)
        return [(int(j), float(gains[j])) for j in order[first]]

    def _gains(self, chosen: Sequence[int]) -> FloatArray:
        """Decrease of the minimum if each feature is added; 0 for features that must not be added."""
        at = self._minimum(chosen)
        allowed = self.budget.may_add(self._for_all_features(at.slope), chosen)
        return np.where(allowed, self._for_all_features(at.gains), 0.0)

    def best_swap(self, chosen: Sequence[int]) -> tuple[float, list[int]]:
        """(decrease of the objective, new set) of the best swap of one feature; (0, ``chosen``) if none."""
        if not len(chosen):
            return 0.0, []
        columns = self.model.columns
        increase, slopes, gains = self._minimum(chosen).after_removal()
        fixed = self.budget.fixed
        decrease = np.where([j in fixed for j in chosen], -np.inf, gains - increase)
        allowed = self.budget.may_replace(self._for_all_features(slopes), chosen)[columns]
        decrease[~allowed] = -np.inf
        j, i = (int(k) for k in np.unravel_index(int(np.argmax(decrease)), decrease.shape))
        if not decrease[j, i] > 0:
            return 0.0, list(chosen)
        return float(decrease[j, i]), [*chosen[:i], *chosen[i + 1 :], int(columns[j])]

    def best_removal(self, chosen: Sequence[int]) -> list[int]:
        """The set without the feature whose removal raises the objective least; fixed features stay."""
        increase, _, _ = self._minimum(chosen).after_removal()
        increase[[j in self.budget.fixed for j in chosen]] = np.inf
        i = int(np.argmin(increase))
        return [*chosen[:i], *chosen[i + 1 :]]

    def weights(self, chosen: Sequence[int]) -> FloatArray:
        """Optimal weights of a set within the sign constraints, for all features (0 outside the set)."""
        up, w = np.full(len(self.model.w), np.inf), np.zeros(len(self.model.w))
        up[list(chosen)], w[list(chosen)] = 0.0, self.model.w[list(chosen)]
        down, columns, gradient = up.copy(), self.model.columns, self.model.gradient.copy()
        if self.budget.signs is not None:
            up[self.budget.signs < 0], down[self.budget.signs > 0] = np.inf, np.inf
        gradient[columns] += self.model.hessian @ (w - self.model.w)[columns]
        return replace(self.model, w=w, gradient=gradient).minimum(Slopes(up, down, self.ridge))

    def _minimum(self, chosen: Sequence[int]) -> Minimum:
        H, constant = self._system
        inside = self._position[list(chosen)]
        inverse = inverse_of(H[np.ix_(inside, inside)])
        shares = H[:, inside] @ inverse
        weights = -inverse @ constant[inside]
        unexplained = H.diagonal() - np.einsum("ij,ij->i", shares, H[:, inside])
        unexplained[(unexplained <= COLLINEAR_SHARE * H.diagonal()) | self._collinear(inside)] = np.inf
        return Minimum(weights, inverse, shares, constant + H[:, inside] @ weights, unexplained)

    def _collinear(self, inside: IntArray) -> BoolArray:
        """Columns that are linear combinations of a set, found without the ridge.

        With the ridge they seem useful, because sharing a weight lowers ½μ‖w‖².
        """
        size = np.sqrt(np.maximum(self.model.hessian.diagonal(), np.finfo(np.float64).tiny))
        correlation = self.model.hessian[inside] / size[inside, None] / size
        block = correlation[:, inside] + COLLINEAR_RIDGE * np.eye(len(inside))
        explained = np.einsum("ij,ij->j", correlation, np.linalg.solve(block, correlation))
        return np.asarray(explained >= 1.0 - COLLINEAR_SHARE)

    @cached_property
    def _system(self) -> tuple[FloatArray, FloatArray]:
        """(Hessian plus ridge, gradient of the model at w = 0) on the columns."""
        columns = self.model.columns
        H = self.model.hessian + self.ridge * np.eye(len(columns))
        return H, self.model.gradient[columns] - self.model.hessian @ self.model.w[columns]

    @cached_property
    def _position(self) -> IntArray:
        """Position of each feature in ``model.columns``; −1: not there."""
        position = np.full(len(self.model.w), -1)
        position[self.model.columns] = np.arange(len(self.model.columns))
        return position

    def _for_all_features(self, values: FloatArray) -> FloatArray:
        """Values of the columns, and 0 for all other features."""
        result = np.zeros((len(self.model.w), *values.shape[1:]))
        result[self.model.columns] = values
        return result


Step: TypeAlias = tuple[Result, list[int], SetQuadratic]
"""A fitted set: its fit, its features, and the second-order model around the fit."""


def inverse_of(H: FloatArray) -> FloatArray:
    """Inverse of a Hessian with ridge, or its pseudo-inverse if rounding makes it singular.

    The pseudo-inverse uses the Hessian scaled to a diagonal of 1, because features may have different units.
    """
    with suppress(np.linalg.LinAlgError):
        inverse = np.linalg.inv(H)
        if (inverse.diagonal() > 0).all():
            return np.asarray(inverse, dtype=np.float64)
    unit = 1.0 / np.sqrt(H.diagonal())
    scaled = unit[:, None] * H * unit
    return np.asarray(unit[:, None] * np.linalg.pinv(scaled, hermitian=True) * unit, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class CostedSet:
    """A set of features with its cost, its fit, and the second-order model around the fit."""

    chosen: list[int]
    cost: float
    result: Result
    quadratic: SetQuadratic


class ForwardSearch:
    """Forward selection with swaps for one objective; searches with different budgets share fits and models.

    ``ridge`` is μ of all fits; ``first_tries`` candidates for each of the first features are fitted.
    """

    def __init__(
        self,
        objective: Objective,
        usable: BoolArray,
        tol: float = 1e-6,
        ridge: float | None = None,
        first_tries: int = FIRST_TRIES,
    ) -> None:
        self.objective, self.tol, self._first_tries = objective, tol, first_tries
        curvature = objective.curvatures(objective.at_zero)
        self.ridge = FORWARD_RIDGE_SHARE * mean_curvature(curvature, usable) if ridge is None else ridge
        self._size = np.sqrt(np.maximum(curvature, np.finfo(np.float64).tiny))
        self._fits: dict[SetKey, Result] = {}
        self._models: dict[ModelKey, SecondOrder] = {}
        self._latest: tuple[SetKey, Point] | None = None

    def path(
        self,
        max_features: int,
        budget: Budget,
        progress: Progress | None = None,
    ) -> list[Result]:
        """Fits of 1 to ``max_features`` features; the first fit has the fixed features, or one feature.

        A pass forward adds features, to at least ``LEAST_DEPTH``; a pass backward removes them again, and a
        second one forward adds to the sets that became better. The best set of each size is kept: features
        that are good together need not be good one by one.
        """
        steps: list[Step] = []
        chosen, quadratic = budget.fixed, self._quadratic_at_zero(budget.fixed, budget)
        for size in range(max(1, len(chosen)), max(max_features, LEAST_DEPTH) + 1):
            if len(chosen) < size:
                larger = self._add_feature(chosen, quadratic, budget)
                if larger is None:
                    break
                chosen = larger
            steps.append(self._fit_and_swap(chosen, quadratic, budget))
            _, chosen, quadratic = steps[-1]
            if progress is not None:
                progress(min(size, max_features), max_features)
        better = [False] * len(steps)
        for k in range(len(steps) - 2, -1, -1):
            _, chosen, quadratic = steps[k + 1]
            better[k] = self._improve(steps, k, quadratic.best_removal(chosen), quadratic, budget)
        for k in range(1, len(steps)):
            _, chosen, quadratic = steps[k - 1]
            if better[k - 1] and (larger := self._add_feature(chosen, quadratic, budget)) is not None:
                better[k] |= self._improve(steps, k, larger, quadratic, budget)
        return [result for result, chosen, _ in steps if len(chosen) <= max_features]

    def grow(self, chosen: Sequence[int], size: int, budget: Budget) -> list[int]:
        """Swap features of a set and add others up to ``size``, as in :meth:`path`."""
        at_zero = self._quadratic_at_zero(chosen, budget)
        _, chosen, quadratic = self._fit_and_swap(list(chosen), at_zero, budget)
        while len(chosen) < size and (larger := self._add_feature(chosen, quadratic, budget)) is not None:
            _, chosen, quadratic = self._fit_and_swap(larger, quadratic, budget)
        return chosen

    def sets_by_cost(
        self, max_features: int, budget: Budget, limit: float, progress: Progress | None = None
    ) -> list[list[CostedSet]]:
        """For each number of features, sets by ascending cost up to ``limit``.

        Each set of the previous size is extended by one feature of every unit of cost. In order of cost, an
        extended set is selected if its objective is lower than that of all cheaper sets with fewer features,
        and by the share MIN_COST_GAIN lower than that of all cheaper sets of its size; swaps do not change
        the cost. So a set depends only on sets that cost no more, and a higher limit gives a superset.
        """
        budget, chosen = replace(budget, max_cost=None, same_cost=True), budget.fixed
        quadratic = self._quadratic_at_zero(chosen, budget)
        extensions = [(chosen, -np.inf, quadratic)] if chosen else _extensions([], 0.0, quadratic)
        by_size: list[list[CostedSet]] = []
        while extensions and len(extensions[0][0]) <= max_features:
            costs = [budget.cost(one) for one, _, _ in extensions]
            selected: list[CostedSet] = []
            for k in np.lexsort(([estimate for _, estimate, _ in extensions], costs)):
                (chosen, estimate, quadratic), cost = extensions[k], costs[k]
                smaller = [one.result.objective for sets in by_size for one in sets if one.cost <= cost]
                same_size = [(1.0 - MIN_COST_GAIN) * one.result.objective for one in selected[-1:]]
                target = min([*smaller, *same_size, np.inf])
                if (
                    cost <= limit * (1.0 + COST_ROUNDING)
                    and estimate < target
                    and self.fit(chosen, quadratic.weights(chosen), budget).objective < target
                ):
                    result, chosen, quadratic = self._fit_and_swap(chosen, quadratic, budget)
                    selected.append(CostedSet(chosen, cost, result, quadratic))
            extensions = [
                extension
                for one in selected
                for extension in _extensions(one.chosen, one.result.objective, one.quadratic)
            ]
            by_size.append(selected)
            if progress is not None:
                progress(len(by_size), max_features)
        return by_size

    def _add_feature(self, chosen: list[int], quadratic: SetQuadratic, budget: Budget) -> list[int] | None:
        """The set with one more feature; None if no feature lowers the objective.

        The second-order model is least accurate for the first features, so several of them are fitted.
        """
        tries = self._first_tries if len(chosen) < FIRST_FEATURES else 1
        sets = [[*chosen, j] for j in quadratic.best_additions(chosen, tries)]
        if len(sets) < 2:
            return sets[0] if sets else None
        return min(sets, key=lambda larger: self.fit(larger, quadratic.weights(larger), budget).objective)

    def _fit_and_swap(self, chosen: list[int], previous: SetQuadratic, budget: Budget) -> Step:
        """Fit a set and swap features while that lowers the objective: (fit, set, model around the fit)."""
        result, quadratic = self._fit_with_quadratic(chosen, previous.weights(chosen), budget)
        for _ in range(MAX_SWAPS):
            decrease, swapped = quadratic.best_swap(chosen)
            if decrease <= MIN_SWAP_GAIN * result.objective:
                break
            new_result, new_quadratic = self._fit_with_quadratic(swapped, quadratic.weights(swapped), budget)
            if new_result.objective >= result.objective:
                break
            result, chosen, quadratic = new_result, swapped, new_quadratic
        return result, chosen, quadratic

    def _improve(
        self, steps: list[Step], k: int, chosen: list[int], previous: SetQuadratic, budget: Budget
    ) -> bool:
        """Replace ``steps[k]`` by a fit of ``chosen``, with swaps, if its objective is lower."""
        step = self._fit_and_swap(chosen, previous, budget)
        lower = step[0].objective < steps[k][0].objective
        if lower:
            steps[k] = step
        return lower

    def _quadratic_at_zero(self, chosen: Sequence[int], budget: Budget) -> SetQuadratic:
        return SetQuadratic(self.model_at_zero(chosen, budget), self.ridge, budget)

    def _fit_with_quadratic(
        self, chosen: list[int], start: FloatArray, budget: Budget
    ) -> tuple[Result, SetQuadratic]:
        quadratic = SetQuadratic(self.model_at_fit(chosen, start, budget), self.ridge, budget)
        return self.fit(chosen, start, budget), quadratic

    def fit(self, chosen: Sequence[int], start: FloatArray, budget: Budget) -> Result:
        key = set_key(chosen)
        if key not in self._fits:
            result = fit_set(self.objective, chosen, start, self.ridge, budget.signs, self.tol)
            self._fits[key], self._latest = replace(result, point=None), (key, result.point)
        return self._fits[key]

    def model_at_fit(self, chosen: Sequence[int], start: FloatArray, budget: Budget) -> SecondOrder:
        if (key := (set_key(chosen), budget.affordable_key(chosen))) not in self._models:
            self.fit(chosen, start, budget)
            self._models[key] = self._model(key, self._fit_point(chosen, start), chosen, budget)
        return self._models[key]

    def model_at_zero(self, chosen: Sequence[int], budget: Budget) -> SecondOrder:
        if (key := (EMPTY_SET, budget.affordable_key(chosen))) not in self._models:
            self._models[key] = self._model(key, self.objective.at_zero, chosen, budget)
        return self._models[key]

    def _fit_point(self, chosen: Sequence[int], start: FloatArray) -> Point:
        """The point of the fit of a set, or of ``start`` if the set has not been fitted."""
        key = set_key(chosen)
        if self._latest is not None and self._latest[0] == key:
            return self._latest[1]
        return self.objective.evaluate(self._fits[key].w if key in self._fits else start)

    def _model(self, key: ModelKey, point: Point, chosen: Sequence[int], budget: Budget) -> SecondOrder:
        """Second-order model around a point, on the columns of a set and those that may be added."""
        g = self.objective.gradient(point)
        columns = self._columns(g, chosen, budget)
        return SecondOrder(point.w, g, self.objective.hessian(point, columns), columns)

    def _columns(self, g: FloatArray, chosen: Sequence[int], budget: Budget) -> IntArray:
        """The columns of a set, and those with the steepest gradient g that may be added."""
        steepest = np.where(budget.may_add(g, chosen), np.abs(g) / self._size, -1.0)
        short = np.argsort(-steepest, kind="stable")[:SHORTLIST]
        if budget.same_cost:
            worth = budget.per_cost(np.sign(steepest) * steepest**2, chosen)
            short = np.union1d(short, np.argsort(-worth, kind="stable")[:SHORTLIST])
        return np.union1d(short[steepest[short] >= 0], np.array(chosen, dtype=np.int64))


def _extensions(
    chosen: list[int], objective: float, quadratic: SetQuadratic
) -> list[tuple[list[int], float, SetQuadratic]]:
    """(set with one more feature, lower estimate of its objective, ``quadratic``) for each unit of cost."""
    additions = quadratic.best_per_cost_unit(chosen)
    return [([*chosen, j], objective - MAX_GAIN_FACTOR * gain, quadratic) for j, gain in additions]


def set_key(chosen: Sequence[int]) -> SetKey:
    return tuple(sorted(chosen))


def mean_curvature(curvature: FloatArray, usable: BoolArray) -> float:
    """Mean over the usable features."""
    return float(np.sum(curvature[usable])) / max(1, int(np.count_nonzero(usable)))


def fit_set(
    objective: Objective,
    chosen: Sequence[int],
    start: FloatArray,
    ridge: float,
    signs: FloatArray | None,
    tol: float,
) -> Result:
    """Minimise f + ½μ‖w‖² with μ = ``ridge`` over the weights of a set of features; all others are 0."""
    columns = np.array(chosen, dtype=np.int64)
    penalty = ElasticNet(ridge, signs=None if signs is None else signs[columns], l1_ratio=0.0)
    problem = Problem(objective.restricted(columns), penalty)
    result = ProxNewton(tol, MAX_ITER).solve(problem, start[columns])
    w = np.zeros(objective.n_features)
    w[columns] = result.w
    return replace(result, w=w, point=replace(result.point, w=w))
