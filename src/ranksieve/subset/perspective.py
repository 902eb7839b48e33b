"""A quadratic with the perspective of a ridge: the second-order model of a relaxation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ranksieve._types import BoolArray, FloatArray
from ranksieve.kernels.perspective import descend

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
