"""Lower bounds over sets of features by the perspective relaxation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve.choice.forward import inverse_of
from ranksieve.kernels.linear import descend
from ranksieve.objective import Objective, Point
from ranksieve.subset.allowed import AllowedSets, Region

DESCENT_SWEEPS = 200  # of coordinate descent
MAX_BISECTIONS = 50  # for the multiplier of the size, and for that of the cost
DESCENT_TOL = 1e-3  # violation after coordinate descent, as a share of the threshold
OPTIMALITY_TOL = 1e-6  # violation of an exact solution, as a share of the threshold, and error of Σ u
JITTER = 1e-12  # added to a diagonal, as a share of it
THRESHOLD_ROUNDING = 1e-9  # share of the largest gradient, and error of Σ u


@dataclass(frozen=True, eq=False)
class Perspective:
    """min over w and u in [0, 1] of ½wᵀHw + bᵀw + ½μ Σ_j w_j²/u_j; u is 1 ``inside``, and Σ u ≤ ``slots``
    over the other, free features.

    With a multiplier κ of Σ u, the minimum over u is t|w| up to |w| = t/μ, t = √(2μκ), and the ridge beyond.
    The threshold t is such that Σ u = slots.
    """

    H: FloatArray
    b: FloatArray
    ridge: float
    inside: BoolArray
    signs: FloatArray
    slots: int

    def minimise(
        self, w: FloatArray, threshold: float, cost: FloatArray, max_cost: float
    ) -> tuple[FloatArray, float]:
        """(minimum with Σ cost·u ≤ max_cost over the free features, threshold of a feature of cost 0)."""
        w, nu = self._minimise_within_slots(w, threshold, 0.0 * cost)
        if not np.isfinite(max_cost) or self._cost(w, nu, cost, 0.0) <= max_cost:
            return w, nu

        def too_expensive(lam: float) -> bool:
            nonlocal w, nu
            w, nu = self._minimise_within_slots(w, nu, lam * cost)
            return self._cost(w, nu, cost, lam) > max_cost

        a = self.b**2 / (2.0 * self.ridge)
        high = float(np.max(a[cost > 0] / cost[cost > 0], initial=np.finfo(float).tiny))
        _bisect(too_expensive, high * 1e-9, high)
        return w, nu

    def _cost(self, w: FloatArray, threshold: float, cost: FloatArray, lam: float) -> float:
        return float(np.sum(cost * self._shares(w, self._thresholds(threshold, lam * cost))))

    def _thresholds(self, threshold: float, extra: FloatArray) -> FloatArray:
        """t_j = √(2μκ_j), where κ_j is the multiplier of the size, t²/2μ, plus ``extra``."""
        return np.sqrt(threshold**2 + 2.0 * self.ridge * extra)

    def _shares(self, w: FloatArray, t: FloatArray) -> FloatArray:
        """u of the free features."""
        shares = np.minimum(1.0, self.ridge * np.abs(w) / np.maximum(t, np.finfo(float).tiny))
        return np.where(self.inside, 0.0, shares)

    def _minimise_within_slots(
        self, start: FloatArray, threshold: float, extra: FloatArray
    ) -> tuple[FloatArray, float]:
        """(minimum with Σ u ≤ slots and ``extra`` added to the multiplier of each feature, its threshold)."""
        w, slope = start.copy(), self.H @ start + self.b
        largest = float(np.max(np.abs(self.b), initial=0.0)) + float(np.max(np.abs(slope), initial=0.0))
        smallest = THRESHOLD_ROUNDING * largest

        def minimise_at(t: float) -> float:
            thresholds = self._thresholds(t, extra)
            tol = DESCENT_TOL * max(t, smallest)
            descend(self.H, slope, w, thresholds, self.ridge, self.inside, self.signs, tol, DESCENT_SWEEPS)
            return float(np.sum(self._shares(w, thresholds)))

        low, high, t = 0.0, 2.0 * largest, min(max(threshold, smallest), 2.0 * largest)
        for iteration in range(MAX_BISECTIONS):
            used = minimise_at(t)
            exact = None if extra.any() else self._exact(w, t)
            if exact is not None and self._is_minimum(*exact):
                return exact
            low, high = (t, high) if used > self.slots else (low, t)
            if abs(used - self.slots) <= THRESHOLD_ROUNDING or high <= smallest:
                break
            between = exact is not None and low < exact[1] < high and iteration % 3 < 2
            t = exact[1] if exact is not None and between else 0.5 * (low + high)
        return w, t

    def _exact(self, w: FloatArray, t: float) -> tuple[FloatArray, float] | None:
        """(minimum, threshold) if each weight stays on its piece of the penalty: one linear system."""
        used = np.flatnonzero((w != 0) | (self.inside & (self.signs == 0)))
        m, inside = len(used), self.inside[used]
        quadratic = inside | (np.abs(w[used]) * self.ridge >= t)  # where the penalty is the ridge, u = 1
        sign = np.where(quadratic, 0.0, np.sign(w[used]))
        n_full = int(np.count_nonzero(quadratic & ~inside))
        system, right = np.zeros((m + 1, m + 1)), np.append(-self.b[used], 0.0)
        system[:m, :m] = self.H[np.ix_(used, used)]
        diagonal = np.arange(m)
        jitter = JITTER * system[diagonal, diagonal]
        system[diagonal, diagonal] += np.where(quadratic, self.ridge, 0.0) + jitter
        system[:m, m], system[m, :m], system[m, m] = sign, self.ridge * sign, n_full - self.slots
        if quadratic.all():  # any threshold is optimal: keep t
            system[m, m], right[m] = 1.0, t
        try:
            solution = np.linalg.solve(system, right)
        except np.linalg.LinAlgError:
            return None
        exact = np.zeros_like(w)
        exact[used] = solution[:m]
        return (exact, float(solution[m])) if solution[m] > 0 else None

    def _is_minimum(self, w: FloatArray, t: float) -> bool:
        """Whether the optimality conditions hold."""
        slope, limit = self.H @ w + self.b, t * (1.0 + OPTIMALITY_TOL)
        follows = np.where(self.signs * slope > 0, 0.0, np.abs(slope))
        size, free = np.abs(w), ~self.inside
        expected = np.where(self.inside | (size * self.ridge > t), self.ridge * size, t)
        at_zero = np.where(free, follows <= limit, follows <= THRESHOLD_ROUNDING * limit)
        nonzero = np.abs(slope + np.sign(w) * expected) <= OPTIMALITY_TOL * np.maximum(expected, t)
        stationary = np.where(w == 0, at_zero, nonzero)
        allowed = self.signs * w >= 0
        full = abs(float(np.sum(self._shares(w, np.full(len(w), t)))) - self.slots) <= OPTIMALITY_TOL
        return bool(np.all(stationary & allowed) and (full or not free.any()))


def _bisect(above: Callable[[float], bool], low: float, high: float) -> None:
    """Bisect log x in [low, high] for the point where ``above`` becomes false; the last call is there."""
    for _ in range(MAX_BISECTIONS):
        if high <= low * (1.0 + 1e-4):
            break
        middle = (low * high) ** 0.5
        low, high = (middle, high) if above(middle) else (low, middle)
    above(high)


MAX_REGION_STEPS = 8  # per region
MIN_RISE = 0.02  # required rise of the bound per step, as a share of its distance to the best objective
INHERITED_STEPS = 3  # with the Hessian of the parent region
REGION_WORKING_SET_SHARE = 0.8  # add features whose gradient is at least this share of the threshold
MOST_COLUMNS = 1000  # of the Hessian: the features with the steepest gradient
MAX_FULL_HESSIAN = 150  # columns up to which the full Hessian is computed, for the child regions too
ZERO_WEIGHT_SHARE = 1e-3  # a feature with weight 0 pays as if its weight were this share of the largest one


@dataclass(frozen=True, eq=False)
class Bounds:
    """Lower bounds over the allowed sets of a region: all, those with each feature, those without each."""

    least: float
    with_each: FloatArray
    without_each: FloatArray

    def at_least(self, bound: float) -> Bounds:
        """These bounds combined with another bound over the whole region."""
        raised = np.maximum(self.with_each, bound), np.maximum(self.without_each, bound)
        return Bounds(max(self.least, bound), *raised)

    def over(self, region: Region) -> Bounds:
        """These bounds for a part of their region; ∞ where it has no such set."""
        with_each = np.where(region.inside | region.free, self.with_each, np.inf)
        return Bounds(self.least, with_each, np.where(region.inside, np.inf, self.without_each))


@dataclass(frozen=True, eq=False)
class Relaxed:
    """The best bounds found for a region, the weights that prove them, and the share u of each feature.

    ``threshold`` and ``hessian`` are a warm start for the child regions.
    """

    bounds: Bounds
    point: Point
    gradient: FloatArray
    shares: FloatArray
    threshold: float
    hessian: FloatArray


@dataclass(frozen=True, eq=False)
class Relaxation:
    """Bounds for one objective, ridge and allowed sets; ``columns`` are those of the Hessian."""

    objective: Objective
    ridge: float
    signs: FloatArray
    allowed: AllowedSets
    columns: IntArray

    @classmethod
    def of(
        cls,
        objective: Objective,
        ridge: float,
        signs: FloatArray | None,
        allowed: AllowedSets,
        region: Region,
    ) -> Relaxation:
        """Relaxation over the sets of a region."""
        signs = np.zeros(objective.n_features) if signs is None else signs
        steepness = np.abs(objective.gradient(objective.at_zero))
        priority = np.where(region.inside, np.inf, np.where(region.free, steepness, -1.0))
        first = np.argsort(-priority, kind="stable")[:MOST_COLUMNS]
        return cls(objective, ridge, signs, allowed, np.sort(first[priority[first] >= 0]))

    def bounds(self, point: Point, region: Region, g: FloatArray | None = None) -> Bounds:
        """Bounds that a point proves, minus rounding errors; 0 if a value is not finite."""
        g = self.objective.gradient(point) if g is None else g
        g_error = self.objective.gradient_error(point)
        a = np.where(self.signs * g > g_error, 0.0, (np.abs(g) + g_error) ** 2) / (2.0 * self.ridge)
        error = self.objective.value_error(point)
        slack, value = max(0.0, point.slack - error), point.value + error
        if not np.isfinite([*a, slack**2, value]).all():
            a, slack, value = np.zeros(len(a)), 0.0, 1.0
        sums = self.allowed.max_sums(a, region)

        def bound(total: FloatArray) -> FloatArray:
            lower = np.full(len(total), np.inf)
            feasible = total != -np.inf
            lower[feasible] = slack**2 / (value + np.maximum(total[feasible], 0.0) + np.finfo(float).tiny)
            return np.where(np.isnan(lower), 0.0, lower)

        least = float(bound(np.array([sums.total]))[0])
        return Bounds(least, bound(sums.with_each), bound(sums.without_each))

    def hessian(self, point: Point) -> FloatArray:
        return self.objective.hessian(point, self.columns)

    def solve(
        self,
        region: Region,
        w: FloatArray,
        threshold: float,
        hessian: FloatArray,
        enough: float,
        upper: float,
    ) -> Relaxed:
        """Newton steps towards the best bound of a narrowed region; ``upper`` is the best objective so far.

        Each step bounds the region by the dual point of w, and stops if the best bound is at least ``enough``
        or the bound hardly rose; otherwise w becomes the minimum of the relaxation of the second-order model.
        The first steps use the given ``hessian`` of the parent region as long as the bound rises; later ones
        compute it at w, on all columns if there are few, else on the working set.
        """
        best: Relaxed | None = None
        usable, previous, inherited = region.inside | region.free, -np.inf, True
        point = self.objective.evaluate(np.where(usable, w, 0.0))
        for step in range(MAX_REGION_STEPS):
            g = self.objective.gradient(point)
            bounds = self.bounds(point, region, g)
            if best is None or bounds.least > best.bounds.least:
                shares = self._shares(region, point.w, threshold)
                best = Relaxed(bounds, point, g, shares, threshold, hessian)
            rise, previous = bounds.least - previous, bounds.least
            if best.bounds.least >= enough or 0 <= rise < MIN_RISE * (upper - best.bounds.least):
                break
            active = region.inside | (point.w != 0) | (np.abs(g) >= REGION_WORKING_SET_SHARE * threshold)
            positions = np.flatnonzero((usable & active)[self.columns])
            columns = self.columns[positions]
            inherited = inherited and step < INHERITED_STEPS and rise >= 0
            if inherited:
                H = hessian[np.ix_(positions, positions)]
            elif len(self.columns) <= MAX_FULL_HESSIAN:
                hessian = self.hessian(point)
                best, H = replace(best, hessian=hessian), hessian[np.ix_(positions, positions)]
            else:
                H = self.objective.hessian(point, columns)
            w = np.zeros_like(point.w)
            w[columns], threshold = self._model_minimum(H, g, point.w, region, columns, threshold)
            point = self.objective.evaluate(w)
            if not np.isfinite(point.value):  # the ridge is too small to bound the step
                break
        assert best is not None
        return best

    def step(self, relaxed: Relaxed, chosen: IntArray, enough: float) -> float:
        """Objective of a set after one Newton step from a relaxation; ∞ if the Hessian lacks a feature of it.

        If the second-order model predicts more than ``enough``, the prediction is returned.
        """
        positions, w = np.searchsorted(self.columns, chosen), relaxed.point.w
        if not np.isin(chosen, self.columns).all():
            return np.inf
        v_now, g = w[self.columns], relaxed.gradient[self.columns]
        slope = g - relaxed.hessian @ v_now
        H = relaxed.hessian[np.ix_(positions, positions)] + self.ridge * np.eye(len(chosen))
        try:
            v = -np.linalg.solve(H, slope[positions])
        except np.linalg.LinAlgError:
            v = -inverse_of(H) @ slope[positions]
        predicted = relaxed.point.value - float((g + slope) @ v_now) / 2.0 + float(slope[positions] @ v) / 2.0
        if predicted > enough:
            return predicted
        full = np.zeros_like(w)
        full[chosen] = np.where(self.signs[chosen] * v < 0, 0.0, v)
        return self.objective.evaluate(full).value + 0.5 * self.ridge * float(full @ full)

    def _shares(self, region: Region, w: FloatArray, threshold: float) -> FloatArray:
        """u: 1 inside, min(1, μ|w|/t) for free features."""
        free = np.minimum(1.0, self.ridge * np.abs(w) / max(threshold, np.finfo(float).tiny))
        return np.where(region.inside, 1.0, np.where(region.free, free, 0.0))

    def _model_minimum(
        self, H: FloatArray, g: FloatArray, w: FloatArray, region: Region, columns: IntArray, threshold: float
    ) -> tuple[FloatArray, float]:
        """(minimum of the relaxation of the second-order model, threshold of a feature of cost 0)."""
        w = w[columns]
        b = g[columns] - H @ w
        if self.allowed.all_fit(region):
            region = region.with_features(region.free)
        inside, slots = region.inside[columns], self.allowed.slots(region)
        model = Perspective(H, b, self.ridge, inside, self.signs[columns], slots if region.free.any() else 0)
        max_cost, cost = self.allowed.remaining_cost(region), self.allowed.added_costs(region)[columns]
        if self.allowed.budget.costs is not None:  # a unit is paid once: its features share its cost
            unit = self.allowed.budget.costs.unit[columns]
            size = np.where(region.free[columns], np.abs(w), 0.0)
            size += ZERO_WEIGHT_SHARE * float(np.max(size, initial=0.0)) or 1.0
            cost = cost * size / np.bincount(unit, size)[unit]
        return model.minimise(w, threshold, cost, max_cost)
