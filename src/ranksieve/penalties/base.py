"""The interface of penalties, and duality gaps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve.errors import ParameterError


@dataclass(frozen=True)
class Slopes:
    """A separable convex penalty Σ_j up_j·w_j⁺ + down_j·w_j⁻ + ½·ridge·w_j².

    ``up`` and ``down`` are the slopes on either side of zero: equal for ℓ1, infinite where that sign (or the
    feature) is forbidden.
    """

    up: FloatArray
    down: FloatArray
    ridge: float = 0.0

    def value(self, w: FloatArray) -> float:
        """The penalty at ``w``."""
        used = np.flatnonzero(w)  # a slope may be infinite where the weight is zero
        at = w[used]
        slope = np.where(at > 0, self.up[used], self.down[used])
        return float(slope @ np.abs(at)) + 0.5 * self.ridge * float(at @ at)

    def restricted(self, columns: IntArray) -> Slopes:
        """The penalty on some weights."""
        return Slopes(self.up[columns], self.down[columns], self.ridge)

    def prox(self, w: FloatArray, step: float | FloatArray) -> FloatArray:
        """argmin_z ½‖z − w‖² + step·penalty(z); with one step per weight, the norm has the weights 1/step."""
        above, below = np.maximum(w - step * self.up, 0.0), np.maximum(-w - step * self.down, 0.0)
        return np.asarray((above - below) / (1.0 + step * self.ridge))

    def facing(self, g: FloatArray) -> FloatArray:
        """Slope of the penalty at zero in the direction −g: up where g < 0, else down."""
        return np.where(g < 0, self.up, self.down)

    def violation(self, w: FloatArray, g: FloatArray) -> FloatArray:
        """Distance of 0 from g_j + ∂penalty_j(w_j) per feature; 0 at the optimum."""
        at_zero = np.maximum(0.0, np.maximum(-g - self.up, g - self.down))
        inside = np.abs(g + np.where(w > 0, self.up, -self.down) + self.ridge * w)
        return np.where(w == 0, at_zero, inside)

    def dual_scale(self, g: FloatArray, error: FloatArray | float = 0.0) -> float:
        """Largest c in [0, 1] with −up ≤ c·g ≤ down for every g within ``error``: a feasible dual point."""
        scale = 1.0
        for size, bound in ((g + error, self.down), (error - g, self.up)):
            too_large = size > bound
            scale = float(np.min(bound[too_large] / size[too_large], initial=scale))
        return scale

    def excess(self, g: FloatArray, error: FloatArray | float = 0.0) -> float:
        """Σ_j max(0, |g_j| − slope_j)², the cost of the ridge term in the dual; g has the given ``error``."""
        over = np.maximum(g + error - self.down, error - g - self.up)
        return float(np.sum(np.maximum(0.0, over) ** 2))

    def undecided(self, g: FloatArray, error: FloatArray) -> BoolArray:
        """Unpenalised features (slope 0) whose gradient is 0 up to ``error``, but not proven to be 0."""
        return np.asarray((np.minimum(self.up, self.down) == 0) & (np.abs(g) <= error) & (error > 0))

    def without_penalty_on(self, columns: BoolArray) -> Slopes:
        """Slopes for which any gradient of these features is feasible."""
        return replace(self, up=np.where(columns, np.inf, self.up), down=np.where(columns, np.inf, self.down))


class Penalty(Protocol):
    """A penalty on weights, or a constraint set.

    ``offers`` names the capabilities that solvers may need: "prox", "slopes", "quadratic" (a matrix), "ball"
    (a constraint set with vertices), "concave" (weights of the tangent ℓ1 penalty).
    """

    @property
    def name(self) -> str: ...

    @property
    def offers(self) -> frozenset[str]: ...

    def value(self, w: FloatArray) -> float:
        """The penalty at ``w``."""

    def gap(self, objective: Any, point: Any, g: FloatArray) -> float:
        """Upper bound on f + penalty minus its minimum, g the gradient of f at the point; NaN if unknown."""


class ScaledPenalty(Penalty, Protocol):
    """A penalty with a strength ``alpha``."""

    @property
    def alpha(self) -> float: ...

    def scaled(self, alpha: float) -> Self:
        """The same penalty with another strength."""


class SlopedPenalty(ScaledPenalty, Protocol):
    """A penalty for the proximal Newton solver and the path."""

    def prox(self, w: FloatArray, step: float) -> FloatArray:
        """argmin_z ½‖z − w‖² + step·penalty(z)."""

    def slopes(self, n_features: int) -> Slopes:
        """Slopes at zero, and ridge."""

    def alpha_max(self, g: FloatArray) -> float:
        """The smallest strength at which w = 0 is optimal, given the gradient ``g`` there."""


@dataclass(frozen=True, eq=False)
class Sloped:
    """A penalty defined by its slopes and ridge."""

    alpha: float = 1.0
    offers: ClassVar[frozenset[str]] = frozenset({"prox", "slopes"})

    def __post_init__(self) -> None:
        check_alpha(self.alpha)

    def slopes(self, n_features: int) -> Slopes:
        raise NotImplementedError

    def value(self, w: FloatArray) -> float:
        return self.slopes(len(w)).value(w)

    def prox(self, w: FloatArray, step: float) -> FloatArray:
        return self.slopes(len(w)).prox(w, step)

    def scaled(self, alpha: float) -> Self:
        return replace(self, alpha=alpha)

    def gap(self, objective: Any, point: Any, g: FloatArray) -> float:
        return duality_gap(objective, self.slopes(len(g)), point, g)[1]


def duality_gap(objective: Any, slopes: Slopes, point: Any, g: FloatArray) -> tuple[float, float]:
    """(F, F − D) for F = f(w) + penalty(w) and g the gradient of f: a proven bound on F minus its minimum.

    The dual point is given by the current hinge values, scaled by c ≤ 1 such that |c·g_j| ≤ slope_j for every
    feature. With a ridge μ, the point with c = 1 is feasible too, at the cost Σ_j max(0, |g_j| −
    slope_j)²/(2μ).

    Every |g_j| is increased by its rounding error, and the gap includes the rounding error of the objective,
    so the bound holds in spite of rounding. Without a ridge, an unpenalised feature (slope 0) needs g_j = 0,
    which rounding hides: c·|g_j| times a bound on its optimal weight is added instead.
    """
    primal, error = point.value + slopes.value(point.w), objective.gradient_error(point)
    dual = objective.dual(point, slopes.dual_scale(g, error))
    if slopes.ridge > 0:
        dual = max(dual, objective.dual(point, 1.0) - slopes.excess(g, error) / (2.0 * slopes.ridge))
    elif (free := slopes.undecided(g, error)).any():
        others = slopes.without_penalty_on(free)
        if (scale := others.dual_scale(g, error)) > 0:
            largest = np.abs(point.w[free]) + _largest_moves(objective, others, point, primal, free)
            paid = scale * float((np.abs(g[free]) + error[free]) @ largest)
            dual = max(dual, objective.dual(point, scale) - paid)
    return primal, float(np.maximum(0.0, primal - dual)) + objective.value_error(point)


CUT_STEP = 2.0**-10  # size of a step for a cut, relative to √(F·curvature)


def _largest_moves(objective: Any, others: Slopes, point: Any, primal: float, free: BoolArray) -> FloatArray:
    """Upper bound on |w*_j − w_j| for each free feature j and every optimum w*; infinite if none is proven.

    Any point u gives a cut: F(w) ≥ F(w*) ≥ D(u, c) + c·∇f(u)_free·w*_free, where c makes the gradient of the
    ``others`` feasible. Newton steps that change the gradient of one free feature at a time, in both
    directions, give cuts whose normals are almost the axes; if each normal is dominated by its own entry,
    they bound a box. Features that are almost copies of each other have no such cuts.
    """
    columns = np.flatnonzero(free)
    unknown = np.full(len(columns), np.inf)
    if "hessian" not in objective.offers:
        return unknown
    hessian = objective.hessian(point, columns)
    if not (np.diagonal(hessian) > 0).all():
        return unknown
    unit = np.sqrt(np.diagonal(hessian))
    try:
        steps = CUT_STEP * np.sqrt(primal) * np.linalg.solve(hessian, np.diag(unit))
    except np.linalg.LinAlgError:
        return unknown
    if not np.isfinite(steps).all():
        return unknown
    half_width = 0.0  # of the box, times ``unit``
    for k in range(len(columns)):
        for sign in (1.0, -1.0):
            w = point.w.copy()
            w[columns] += sign * steps[:, k]
            cut = objective.evaluate(w)
            if not np.isfinite(cut.value):
                return unknown
            g, error = objective.gradient(cut), objective.gradient_error(cut)
            scale = others.dual_scale(g, error)
            normal, off = scale * sign * g[columns] / unit, scale * error[columns] / unit
            # the entry of feature k minus the others:
            dominance = normal[k] + np.abs(normal[k]) - np.sum(np.abs(normal) + off)
            if not dominance > 0:
                return unknown
            slack = primal - objective.dual(cut, scale) - sign * float(normal @ (unit * point.w[columns]))
            slack += objective.value_error(point) + objective.value_error(cut)
            slack += float(off @ (unit * np.abs(point.w[columns])))
            half_width = max(half_width, slack / dominance)
    return np.asarray(half_width / unit)


def check_alpha(alpha: float) -> None:
    if not (np.isfinite(alpha) and alpha >= 0):
        raise ParameterError("alpha", alpha, "must be a finite number ≥ 0")
