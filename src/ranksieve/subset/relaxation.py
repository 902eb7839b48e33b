"""Bounds on sets of features by the perspective relaxation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve.choice.forward import inverse_of
from ranksieve.kernels.linear import descend
from ranksieve.objective import Objective, Point
from ranksieve.subset.allowed import AllowedSets, Region

SWEEPS = 200  # of coordinate descent
TURNS = 50  # for the price of a place, and for the price of money
SETTLED = 1e-3  # share of the threshold that coordinate descent may leave
OPTIMAL = 1e-6  # share of it, and of a place, that an exact solution may be off by
JITTER = 1e-12  # share of a diagonal
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Perspective:
    """min over w and u in [0, 1] of ½wᵀHw + bᵀw + ½μ Σ_j w_j²/u_j; u is 1 ``inside``, and Σ u ≤ ``places``
    over the other, free features.

    With a price κ of a place, u leaves the line t|w| up to |w| = t/μ, t = √(2μκ), and the ridge beyond. The
    threshold t is such that Σ u = places.
    """

    H: FloatArray
    b: FloatArray
    ridge: float
    inside: BoolArray
    signs: FloatArray
    places: int

    def within(
        self, w: FloatArray, threshold: float, price: FloatArray, money: float
    ) -> tuple[FloatArray, float]:
        """The minimum with Σ price·u ≤ money over the free features, and the threshold where price is 0."""
        w, nu = self._within_places(w, threshold, 0.0 * price)
        if not np.isfinite(money) or self._cost(w, nu, price, 0.0) <= money:
            return w, nu

        def too_dear(lam: float) -> bool:
            nonlocal w, nu
            w, nu = self._within_places(w, nu, lam * price)
            return self._cost(w, nu, price, lam) > money

        a = self.b**2 / (2.0 * self.ridge)
        high = float(np.max(a[price > 0] / price[price > 0], initial=np.finfo(float).tiny))
        _bisect(too_dear, high * 1e-9, high)
        return w, nu

    def _cost(self, w: FloatArray, threshold: float, price: FloatArray, lam: float) -> float:
        return float(np.sum(price * self._shares(w, self._thresholds(threshold, lam * price))))

    def _thresholds(self, threshold: float, extra: FloatArray) -> FloatArray:
        """t_j = √(2μκ_j): κ_j is the price of a place, t²/2μ, and what the feature costs."""
        return np.sqrt(threshold**2 + 2.0 * self.ridge * extra)

    def _shares(self, w: FloatArray, t: FloatArray) -> FloatArray:
        """u of the free features."""
        shares = np.minimum(1.0, self.ridge * np.abs(w) / np.maximum(t, np.finfo(float).tiny))
        return np.where(self.inside, 0.0, shares)

    def _within_places(
        self, start: FloatArray, threshold: float, extra: FloatArray
    ) -> tuple[FloatArray, float]:
        """The minimum with Σ u ≤ places, free features at the price of a place and ``extra``."""
        w, slope = start.copy(), self.H @ start + self.b
        largest = float(np.max(np.abs(self.b), initial=0.0)) + float(np.max(np.abs(slope), initial=0.0))

        def settle(t: float) -> float:
            each = self._thresholds(t, extra)
            tol = SETTLED * max(t, ROUNDING * largest)
            descend(self.H, slope, w, each, self.ridge, self.inside, self.signs, tol, SWEEPS)
            return float(np.sum(self._shares(w, each)))

        low, high, t = 0.0, 2.0 * largest, min(max(threshold, ROUNDING * largest), 2.0 * largest)
        for turn in range(TURNS):
            used = settle(t)
            exact = None if extra.any() else self._exact(w, t)
            if exact is not None and self._is_minimum(*exact):
                return exact
            low, high = (t, high) if used > self.places else (low, t)
            if abs(used - self.places) <= ROUNDING or high <= ROUNDING * largest:
                break
            inside = exact is not None and low < exact[1] < high and turn % 3 < 2
            t = exact[1] if exact is not None and inside else 0.5 * (low + high)
        return w, t

    def _exact(self, w: FloatArray, t: float) -> tuple[FloatArray, float] | None:
        """The minimum and its threshold if each weight stays on its piece of ρ: a linear system in both."""
        used = np.flatnonzero((w != 0) | (self.inside & (self.signs == 0)))
        m, inside = len(used), self.inside[used]
        round_ = inside | (np.abs(w[used]) * self.ridge >= t)  # where the penalty is the parabola
        sign = np.where(round_, 0.0, np.sign(w[used]))
        whole = int(np.count_nonzero(round_ & ~inside))
        system, right = np.zeros((m + 1, m + 1)), np.append(-self.b[used], 0.0)
        system[:m, :m] = self.H[np.ix_(used, used)]
        diagonal = np.arange(m)
        system[diagonal, diagonal] += np.where(round_, self.ridge, 0.0) + JITTER * system[diagonal, diagonal]
        system[:m, m], system[m, :m], system[m, m] = sign, self.ridge * sign, whole - self.places
        if round_.all():  # then the threshold is free
            system[m, m], right[m] = 1.0, t
        try:
            solution = np.linalg.solve(system, right)
        except np.linalg.LinAlgError:
            return None
        exact = np.zeros_like(w)
        exact[used] = solution[:m]
        return (exact, float(solution[m])) if solution[m] > 0 else None

    def _is_minimum(self, w: FloatArray, t: float) -> bool:
        """Whether the conditions of optimality hold."""
        slope, room = self.H @ w + self.b, t * (1.0 + OPTIMAL)
        follows = np.where(self.signs * slope > 0, 0.0, np.abs(slope))
        size, free = np.abs(w), ~self.inside
        expected = np.where(self.inside | (size * self.ridge > t), self.ridge * size, t)
        at_zero = np.where(free, follows <= room, follows <= ROUNDING * room)
        away = np.abs(slope + np.sign(w) * expected) <= OPTIMAL * np.maximum(expected, t)
        stationary = np.where(w == 0, at_zero, away)
        allowed = self.signs * w >= 0
        full = abs(float(np.sum(self._shares(w, np.full(len(w), t)))) - self.places) <= OPTIMAL
        return bool(np.all(stationary & allowed) and (full or not free.any()))


def _bisect(above: Callable[[float], bool], low: float, high: float) -> None:
    """Halve the logarithmic interval at whose upper end ``above`` is false; it is called there last."""
    for _ in range(TURNS):
        if high <= low * (1.0 + 1e-4):
            break
        middle = (low * high) ** 0.5
        low, high = (middle, high) if above(middle) else (low, middle)
    above(high)


MAX_STEPS = 8  # Newton steps per region
LEAST_RISE = 0.02  # share of the distance to the best set known that a step must close for another one
INHERITED_STEPS = 3  # with the Hessian of the region around this one
NEAR = 0.8  # a feature whose gradient reaches this share of the threshold takes part in a step
MOST_COLUMNS = 1000  # of the Hessian: the features of the steepest gradient
WHOLE_HESSIAN = 150  # columns up to which a Hessian is computed whole, for the regions within this one too
LEAST_SHARE = 1e-3  # of the largest weight: as much of a unit's price falls on a feature without weight


@dataclass(frozen=True, eq=False)
class Bounds:
    """Lower bounds over the allowed sets of a region: of all, of those with each feature, without each."""

    least: float
    joined: FloatArray
    left: FloatArray

    def at_least(self, bound: float) -> Bounds:
        """These bounds, where another one is known too."""
        raised = np.maximum(self.joined, bound), np.maximum(self.left, bound)
        return Bounds(max(self.least, bound), *raised)

    def over(self, region: Region) -> Bounds:
        """These bounds for a region within theirs: its sets hold no feature outside and lack none inside."""
        joined = np.where(region.inside | region.free, self.joined, np.inf)
        return Bounds(self.least, joined, np.where(region.inside, np.inf, self.left))


@dataclass(frozen=True, eq=False)
class Relaxed:
    """The best bounds found for a region, the weights that prove them, and how much of each feature they use.

    ``threshold`` and ``hessian`` are a warm start for regions within this one.
    """

    bounds: Bounds
    point: Point
    gradient: FloatArray
    shares: FloatArray
    threshold: float
    hessian: FloatArray


@dataclass(frozen=True, eq=False)
class Relaxation:
    """Bounds for one objective, ridge and allowed sets; ``columns`` are those that the Hessian knows."""

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
        """The relaxation of the sets of a region."""
        signs = np.zeros(objective.n_features) if signs is None else signs
        steep = np.abs(objective.gradient(objective.at_zero))
        known = np.where(region.inside, np.inf, np.where(region.free, steep, -1.0))
        first = np.argsort(-known, kind="stable")[:MOST_COLUMNS]
        return cls(objective, ridge, signs, allowed, np.sort(first[known[first] >= 0]))

    def bounds(self, point: Point, region: Region, g: FloatArray | None = None) -> Bounds:
        """What a point proves; rounding counts against it, and numbers that are not finite prove nothing."""
        g = self.objective.gradient(point) if g is None else g
        off = self.objective.gradient_error(point)
        a = np.where(self.signs * g > off, 0.0, (np.abs(g) + off) ** 2) / (2.0 * self.ridge)
        error = self.objective.value_error(point)
        slack, value = max(0.0, point.slack - error), point.value + error
        if not np.isfinite([*a, slack**2, value]).all():
            a, slack, value = np.zeros(len(a)), 0.0, 1.0
        most = self.allowed.most(a, region)

        def bound(total: FloatArray) -> FloatArray:
            below = np.full(len(total), np.inf)
            possible = total != -np.inf
            below[possible] = slack**2 / (value + np.maximum(total[possible], 0.0) + np.finfo(float).tiny)
            return np.where(np.isnan(below), 0.0, below)

        return Bounds(float(bound(np.array([most.total]))[0]), bound(most.joined), bound(most.left))

    def hessian(self, point: Point) -> FloatArray:
        """The Hessian on ``columns``."""
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
        """Newton steps towards the best bound of a narrowed region; ``upper`` is the best objective known.

        Each step bounds the region by the dual point of w, and ends the iteration if the best bound is
        ``enough`` or the bound hardly rose; then w becomes the minimum of the relaxation with f to second
        order. The first steps take the given ``hessian``, that of the region around this one, as long as
        the bound rises; later ones compute it at w, of all columns if these are few, else of those in use.
        """
        best: Relaxed | None = None
        usable, previous, inherited = region.inside | region.free, -np.inf, True
        point = self.objective.evaluate(np.where(usable, w, 0.0))
        for step in range(MAX_STEPS):
            g = self.objective.gradient(point)
            bounds = self.bounds(point, region, g)
            if best is None or bounds.least > best.bounds.least:
                shares = self._shares(region, point.w, threshold)
                best = Relaxed(bounds, point, g, shares, threshold, hessian)
            rise, previous = bounds.least - previous, bounds.least
            if best.bounds.least >= enough or 0 <= rise < LEAST_RISE * (upper - best.bounds.least):
                break
            near = region.inside | (point.w != 0) | (np.abs(g) >= NEAR * threshold)
            places = np.flatnonzero((usable & near)[self.columns])
            columns = self.columns[places]
            inherited = inherited and step < INHERITED_STEPS and rise >= 0
            if inherited:
                H = hessian[np.ix_(places, places)]
            elif len(self.columns) <= WHOLE_HESSIAN:
                hessian = self.hessian(point)
                best, H = replace(best, hessian=hessian), hessian[np.ix_(places, places)]
            else:
                H = self.objective.hessian(point, columns)
            w = np.zeros_like(point.w)
            w[columns], threshold = self._model_minimum(H, g, point.w, region, columns, threshold)
            point = self.objective.evaluate(w)
            if not np.isfinite(point.value):  # a step that the ridge hardly bounds
                break
        assert best is not None
        return best

    def step(self, relaxed: Relaxed, chosen: IntArray, enough: float) -> float:
        """The objective of a set, one Newton step from a relaxation; ∞ if the Hessian lacks a feature of it.

        Where the step predicts more than ``enough``, the prediction will do.
        """
        places, w = np.searchsorted(self.columns, chosen), relaxed.point.w
        if not np.isin(chosen, self.columns).all():
            return np.inf
        here, g = w[self.columns], relaxed.gradient[self.columns]
        slope = g - relaxed.hessian @ here
        H = relaxed.hessian[np.ix_(places, places)] + self.ridge * np.eye(len(chosen))
        try:
            v = -np.linalg.solve(H, slope[places])
        except np.linalg.LinAlgError:
            v = -inverse_of(H) @ slope[places]
        predicted = relaxed.point.value - float((g + slope) @ here) / 2.0 + float(slope[places] @ v) / 2.0
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
        """(minimum of the relaxation with f to second order, threshold of a feature without a price)."""
        w = w[columns]
        b = g[columns] - H @ w
        if self.allowed.all_fit(region):
            region = region.holding(region.free)
        inside, places = region.inside[columns], self.allowed.places(region)
        model = Perspective(H, b, self.ridge, inside, self.signs[columns], places if region.free.any() else 0)
        money, price = self.allowed.money(region), self.allowed.prices(region)[columns]
        if self.allowed.budget.costs is not None:  # a unit is paid once: its features share its price
            unit = self.allowed.budget.costs.unit[columns]
            size = np.where(region.free[columns], np.abs(w), 0.0)
            size += LEAST_SHARE * float(np.max(size, initial=0.0)) or 1.0
            price = price * size / np.bincount(unit, size)[unit]
        return model.within(w, threshold, price, money)
