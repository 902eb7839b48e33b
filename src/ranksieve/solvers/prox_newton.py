"""Proximal Newton with working sets, for convex penalties and, by reweighting, for concave ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve.data.feature_matrix import StepFeatures
from ranksieve.kernels.linear import minimise_quadratic
from ranksieve.objective import Objective, Point
from ranksieve.penalties.base import Slopes, duality_gap
from ranksieve.penalties.l1 import L1
from ranksieve.solvers.base import (
    OBJECTIVE_ROUNDING,
    Loop,
    Problem,
    Solver,
    first_decrease,
    minimum_of_sample,
)

STEP_JOIN_SHARE = 0.95  # of step columns, because neighbours of a step have nearly its gradient
JOIN_SHARE = 0.8  # a feature joins the working set if its gradient reaches this fraction of its slope
PREPARE_SHARE = 0.6  # from this fraction on, its values are copied, because it may join soon
MIN_SET_LIMIT, MAX_SET_LIMIT = 256, 1000  # range of the size limit of working sets
STEP_SET_LIMIT = 128  # of working sets of step columns
MODEL_TOL = 1e-3  # share of the initial violation of the optimality conditions that may remain in a step
MAX_SWEEPS = 1000  # of coordinate descent, per step
MAX_STALLED_STEPS = 5  # stop after this many steps whose decrease is rounding noise


@dataclass(frozen=True)
class ProxNewton(Solver):
    """Minimise f(w) + penalty(w) until the duality gap is at most ``tol`` times the objective.

    Each step minimises the second-order model of f plus the penalty by coordinate descent over the working
    set (nonzero weights, and features whose gradient is close to their slope), followed by a line search for
    a sufficient decrease of the objective. The squared hinge is piecewise quadratic, so the full step is
    exact as soon as the active pairs stop changing.
    """

    name: ClassVar[str] = "prox_newton"
    needs: ClassVar[frozenset[str]] = frozenset({"hessian", "slopes"})

    def run(self, problem: Problem, start: FloatArray | Point | None, loop: Loop) -> None:
        slopes, stalled = problem.penalty.slopes(problem.n_features), 0
        point = problem.start(minimum_of_sample(problem, self) if start is None else start)
        negligible = JOIN_SHARE * np.minimum(
            slopes.up, slopes.down
        )  # smaller gradients matter neither here nor in the gap
        while True:
            g = problem.gradient_where_large(point, negligible)
            primal, gap = duality_gap(problem.objective, slopes, point, g)
            if loop.ends(point.w, primal, gap, point=point):
                return
            if loop.n_iter and loop.trace.objective[-2] - primal <= OBJECTIVE_ROUNDING * primal:
                stalled += 1
            moved = None if stalled == MAX_STALLED_STEPS else _step(problem, slopes, point, g, primal)
            if moved is None:
                return
            point = moved


def _step(problem: Problem, slopes: Slopes, point: Point, g: FloatArray, primal: float) -> Point | None:
    """One Newton step; None if rounding prevents a decrease."""
    objective, limit = problem.objective, working_set_limit(problem.objective)
    share = STEP_JOIN_SHARE if isinstance(objective.features, StepFeatures) else JOIN_SHARE
    columns = working_set(slopes, point.w, g, share, limit, problem.usable)
    if not objective.features.keeps(columns):
        objective.features.keep(working_set(slopes, point.w, g, PREPARE_SHARE, 2 * limit))
    target = point.w.copy()
    if (products := objective.hessian_products(point, columns)) is None:
        target[columns] = model_minimum(objective.hessian(point, columns), slopes, point.w, g, columns)
    else:
        tol = MODEL_TOL * float(np.max(slopes.violation(point.w, g)[columns], initial=0.0))
        block = slopes.restricted(columns)
        arguments = products.product, products.scale(), block, point.w[columns], g[columns], tol
        target[columns] = minimum_by_products(*arguments)
    direction = target - point.w
    decrease = float(g @ direction) + slopes.value(target) - slopes.value(point.w)
    if not np.any(direction) or decrease > OBJECTIVE_ROUNDING * primal:
        return None
    return first_decrease(objective, slopes.value, point, direction, decrease, primal)


def working_set_limit(objective: Objective) -> int:
    """Maximum size of a working set: an ℓ1 optimum needs at most one feature per document.

    Neighbouring steps of a curve are nearly the same, so a few of them suffice.
    """
    if isinstance(objective.features, StepFeatures):
        return STEP_SET_LIMIT
    return int(np.clip(objective.loss.queries.n_rows, MIN_SET_LIMIT, MAX_SET_LIMIT))


def working_set(
    slopes: Slopes,
    w: FloatArray,
    g: FloatArray,
    threshold: float,
    limit: int,
    usable: BoolArray | None = None,
) -> IntArray:
    """Features with nonzero weight, and features whose gradient is at least ``threshold`` times their slope.

    If these are more than ``limit`` and more than twice the nonzero weights, only those with the largest
    gradient relative to their slope, so that the Hessian stays small for any number of features.
    """
    facing = slopes.facing(g)
    chosen = np.flatnonzero((w != 0) | (np.abs(g) >= threshold * facing))
    if usable is not None:
        chosen = chosen[usable[chosen]]  # features with slope 0 pass the test above
    share = np.full(len(chosen), np.inf)
    np.divide(np.abs(g[chosen]), facing[chosen], out=share, where=(w[chosen] == 0) & (facing[chosen] > 0))
    return steepest(chosen, share, max(limit, 2 * int(np.count_nonzero(w))))


def steepest(columns: IntArray, share: FloatArray, limit: int) -> IntArray:
    """The ``limit`` columns with the largest share, in column order."""
    if len(columns) <= limit:
        return columns
    return np.sort(columns[np.argsort(-share, kind="stable")[:limit]])


def model_minimum(
    hessian: FloatArray, slopes: Slopes, w: FloatArray, g: FloatArray, columns: IntArray
) -> FloatArray:
    """argmin_z of g·(z − w) + ½(z − w)ᵀH(z − w) + penalty(z) over the working set."""
    violation = float(np.max(slopes.violation(w, g)[columns], initial=0.0))
    block_slopes = slopes.restricted(columns)
    start, slope = w[columns], g[columns]
    z = minimise_quadratic(
        hessian,
        slope,
        start,
        block_slopes.up,
        block_slopes.down,
        block_slopes.ridge,
        MODEL_TOL * violation,
        MAX_SWEEPS,
    )
    return _polish(hessian, block_slopes, start, slope, np.asarray(z))


def _polish(hessian: FloatArray, slopes: Slopes, w: FloatArray, g: FloatArray, z: FloatArray) -> FloatArray:
    """The exact minimum for the signs of ``z``, if it has these signs and is not worse; else ``z``.

    Coordinate descent finds the signs fast but the last digits slowly; one linear system gives the digits.
    """
    used = np.flatnonzero(z)
    sign = np.sign(z[used])
    block = hessian[np.ix_(used, used)] + slopes.ridge * np.eye(len(used))
    slope = np.where(sign > 0, slopes.up[used], -slopes.down[used])
    unit = 1.0 / np.sqrt(np.where(block.diagonal() > 0, block.diagonal(), 1.0))  # scales the features
    try:
        exact = unit * np.linalg.solve(
            unit[:, None] * block * unit, unit * (hessian[used] @ w - g[used] - slope)
        )
    except np.linalg.LinAlgError:
        return z
    if not np.all(exact * sign > 0):
        return z
    polished = np.zeros_like(z)
    polished[used] = exact

    def model(v: FloatArray) -> float:
        return float(g @ v) + 0.5 * float((v - w) @ hessian @ (v - w)) + slopes.value(v)

    size = float(np.abs(g) @ np.abs(z)) + slopes.value(z)  # size of the terms, for the tolerance
    return polished if model(polished) <= model(z) + 10.0 * OBJECTIVE_ROUNDING * size else z


MAX_ROUNDS = 100  # of a gradient step followed by conjugate gradients
POWER_STEPS = 8  # to estimate the largest eigenvalue
MAX_CG_STEPS = 200  # per round
CG_TOL = 0.1  # share of the residual that may remain, per round
SHORTER = (1.0, 0.5, 0.25, 0.125, 0.0625)  # shares of a step by conjugate gradients


def minimum_by_products(
    product: Callable[[FloatArray], FloatArray],
    scale: FloatArray,
    slopes: Slopes,
    w: FloatArray,
    g: FloatArray,
    tol: float,
) -> FloatArray:
    """argmin_z of g·(z − w) + ½(z − w)ᵀH(z − w) + penalty(z) by products with H, up to a violation ``tol``.

    A proximal gradient step chooses the nonzero weights and their signs, conjugate gradients minimise over
    these, and weights that change their sign become 0. ``scale`` approximates the diagonal of H.
    """
    curved = scale + slopes.ridge > 0
    unit = np.where(scale > 0, scale, 1.0)
    z, r = w.copy(), g.copy()  # r = g + H(z − w)
    largest = _largest_eigenvalue(product, unit)
    for _ in range(MAX_ROUNDS):
        if np.max(slopes.violation(z, r), initial=0.0, where=curved) <= tol:
            break
        step = 1.0 / (largest * unit)
        moved = np.where(curved, slopes.prox(z - step * r, step), z)
        change = product(moved - z)
        if (moved - z) @ change > largest * float(unit @ (moved - z) ** 2):
            largest *= 2.0  # the estimate was too small
            continue
        z, r = _minimum_of_signs(product, unit, slopes, moved, r + change, curved, tol)
    return z


def _largest_eigenvalue(product: Callable[[FloatArray], FloatArray], unit: FloatArray) -> float:
    """About the largest eigenvalue of U^(−½)HU^(−½), U = diag(unit), and at least 1, by the power method."""
    root, largest = np.sqrt(unit), 1.0
    v = np.ones(len(unit))
    for _ in range(POWER_STEPS):
        v /= np.linalg.norm(v)
        u = product(v / root) / root
        largest = max(largest, float(v @ u))
        if not u.any():
            break
        v = u
    return largest


def _minimum_of_signs(
    product: Callable[[FloatArray], FloatArray],
    unit: FloatArray,
    slopes: Slopes,
    z: FloatArray,
    r: FloatArray,
    curved: BoolArray,
    tol: float,
) -> tuple[FloatArray, FloatArray]:
    """(weights with a lower model value than z and no other signs, r there)."""
    sign, used = np.sign(z), curved & (z != 0)
    slope = np.where(sign > 0, slopes.up, np.where(used, -slopes.down, 0.0))
    downhill = np.where(used, -(r + slope + slopes.ridge * z), 0.0)
    direction, turn = _conjugate_gradients(product, unit, used, slopes.ridge, downhill, tol)
    ahead = sign * direction < 0
    first_zero = float(np.min(-z[ahead] / direction[ahead], initial=1.0))
    for share in (*SHORTER, first_zero):
        moved = z + share * direction
        crossed = sign * moved < 0
        moved[crossed] = 0.0
        step = moved - z
        change = product(step) if crossed.any() else share * turn
        size = float(step @ change) + slopes.ridge * float(step @ step)
        if 0.5 * size <= float(downhill @ step):
            return moved, r + change
    return z, r


def _conjugate_gradients(
    product: Callable[[FloatArray], FloatArray],
    unit: FloatArray,
    used: BoolArray,
    ridge: float,
    b: FloatArray,
    tol: float,
) -> tuple[FloatArray, FloatArray]:
    """(x, Hx) with (H + ridge)x ≈ b on the ``used`` variables, scaled by ``unit``."""
    x, curved, residual = np.zeros_like(b), np.zeros_like(b), b.copy()
    enough = max(CG_TOL * float(np.max(np.abs(b), initial=0.0)), 0.5 * tol)
    scaled = residual / (unit + ridge)
    p, size = scaled.copy(), float(residual @ scaled)
    for _ in range(MAX_CG_STEPS):
        if np.max(np.abs(residual), initial=0.0) <= enough:
            break
        hp = product(p)
        curvature = float(p @ hp) + ridge * float(p @ p)
        if curvature <= 0.0:
            break
        step = size / curvature
        x += step * p
        curved += step * hp
        residual -= step * np.where(used, hp + ridge * p, 0.0)
        scaled = residual / (unit + ridge)
        previous, size = size, float(residual @ scaled)
        p = scaled + (size / previous) * p
    return x, curved


MIN_L1_WEIGHT = 1e-6  # keeps the dual point of every round away from zero, where its gap would be useless


@dataclass(frozen=True)
class Reweighted(Solver):
    """Minimise f(w) + α Σ g(|w_j|) by repeated weighted ℓ1 with v_j = g′(|w_j|) of the previous solution.

    g lies below its tangent, so each solution lowers the true objective. The first weights are those of the
    start, or 1 without a start (plain ℓ1, whose objective may exceed that at w = 0). Stops when the relative
    decrease of the objective is at most ``tol``; a round that raises it by rounding is discarded. The result
    has the true objective and the gap of the last weighted ℓ1 problem, so w is near a stationary point.
    ``inner`` solves the weighted problems.
    """

    max_iter: int = 50
    inner: Solver = field(default_factory=ProxNewton)
    name: ClassVar[str] = "reweighted"
    needs: ClassVar[frozenset[str]] = frozenset({"concave"})

    def check(self, problem: Problem) -> None:
        super().check(problem)
        self.inner.check(replace(problem, penalty=L1()))

    def run(self, problem: Problem, start: FloatArray | Point | None, loop: Loop) -> None:
        penalty, point = problem.penalty, problem.start(start)
        weights = np.ones(problem.n_features) if start is None else penalty.weights(point.w)
        if loop.ends(point.w, problem.value(point), np.inf, np.inf, point):
            return
        lowest = np.inf if start is None else problem.value(point)
        while True:
            weighted = replace(problem, penalty=L1(penalty.alpha, np.maximum(weights, MIN_L1_WEIGHT)))
            solved = self.inner.solve(weighted, point.w)
            value = problem.value(solved.point)
            decrease, gap = lowest - value, solved.gap
            if decrease >= 0.0:
                point, lowest = solved.point, value
            else:
                gap = weighted.gap(point)
            small = decrease <= self.tol * abs(value)
            if loop.ends(point.w, lowest, gap, 0.0 if small and solved.converged else np.inf, point) or small:
                return
            weights = penalty.weights(point.w)
