"""Proximal Newton with working sets: the fast way to a certified sparse optimum."""

from __future__ import annotations

import numpy as np

from ranksieve._parallel import single_threaded_blas
from ranksieve._types import FloatArray, IntArray
from ranksieve.kernels.coordinate_descent import minimise_quadratic
from ranksieve.objective import Objective, Point
from ranksieve.penalties.base import SlopedPenalty, Slopes
from ranksieve.solvers.certificate import gap_with_slopes
from ranksieve.solvers.result import Callback, Result, Trace

NEAR = 0.8  # a feature whose gradient reaches this share of its slope joins the working set
SUFFICIENT = 1e-4  # share of the model's decrease that a step must reach
MAX_SWEEPS = 1000  # of coordinate descent a step
STALLED = 5  # steps without a change that can be told from none end the iteration
ROUNDING = 1e-15  # a change of the objective below this share of it cannot be told from none


def prox_newton(
    objective: Objective,
    penalty: SlopedPenalty,
    start: Point | None = None,
    *,
    tol: float = 1e-6,
    max_iter: int = 100,
    callback: Callback | None = None,
) -> Result:
    """Minimise f(w) + penalty(w) until the duality gap is at most ``tol`` times the objective.

    Each step minimises the second-order model of f plus the penalty over the working set (nonzero weights and
    features whose gradient nears its slope) by coordinate descent, then searches the segment to that minimum
    for a sufficient decrease of the true objective. The squared hinge is piecewise quadratic, so the full
    step is exact as soon as the active pairs stop changing.
    """
    with single_threaded_blas():
        return newton_steps(objective, penalty, start or objective.at_zero, tol, max_iter, callback)[0]


def newton_steps(
    objective: Objective,
    penalty: SlopedPenalty,
    point: Point,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
) -> tuple[Result, Point]:
    """The iteration of :func:`prox_newton`; also returns the final point, the next problem's warm start."""
    slopes, trace, stalled = penalty.slopes(objective.n_features), Trace(), 0
    for n_iter in range(max_iter + 1):
        g = objective.gradient(point)
        primal, gap = gap_with_slopes(objective, slopes, point, g)
        trace.record(primal, gap, point.w)
        if callback is not None:
            callback(n_iter, point.w, primal, gap)
        converged = gap <= tol * primal
        if n_iter and trace.objective[-2] - primal <= ROUNDING * primal:
            stalled += 1
        moved = (
            None
            if converged or n_iter == max_iter or stalled == STALLED
            else _step(objective, slopes, point, g, primal)
        )
        if moved is None:
            break
        point = moved
    return Result(point.w, primal, gap, n_iter, converged, trace), point


def _step(objective: Objective, slopes: Slopes, point: Point, g: FloatArray, primal: float) -> Point | None:
    """One Newton step, or None when rounding leaves no decrease to be had."""
    columns = working_set(slopes, point.w, g)
    target = point.w.copy()
    target[columns] = _model_minimum(objective.hessian(point, columns), slopes, point.w, g, columns)
    direction = target - point.w
    decrease = float(g @ direction) + slopes.value(target) - slopes.value(point.w)
    if not np.any(direction) or decrease > ROUNDING * primal:
        return None
    slide = objective.scores(direction)
    step = 1.0
    while step > 1e-10:
        w = target if step == 1.0 else point.w + step * direction
        moved = objective.evaluate_scores(w, point.scores + step * slide)
        if moved.value + slopes.value(w) <= primal * (1.0 + ROUNDING) + SUFFICIENT * step * decrease:
            return moved
        step *= 0.5
    return None


def working_set(slopes: Slopes, w: FloatArray, g: FloatArray) -> IntArray:
    """Features in use, and those whose gradient is near the slope that would bring them in."""
    bound = np.where(g < 0, slopes.up, slopes.down)
    return np.flatnonzero((w != 0) | (np.abs(g) >= NEAR * bound))


def _model_minimum(
    hessian: FloatArray, slopes: Slopes, w: FloatArray, g: FloatArray, columns: IntArray
) -> FloatArray:
    """argmin_z of g·(z − w) + ½(z − w)ᵀH(z − w) + penalty(z) over the working set."""
    violation = float(np.max(slopes.violation(w, g)[columns], initial=0.0))
    here = Slopes(slopes.up[columns], slopes.down[columns], slopes.ridge)
    start, slope = w[columns], g[columns]
    z = minimise_quadratic(
        hessian, slope, start, here.up, here.down, here.ridge, 1e-3 * violation, MAX_SWEEPS
    )
    return _polished(hessian, here, start, slope, np.asarray(z))


def _polished(hessian: FloatArray, slopes: Slopes, w: FloatArray, g: FloatArray, z: FloatArray) -> FloatArray:
    """The exact minimum with the signs of ``z``, if it has those signs and is no worse; else ``z``.

    Coordinate descent finds the signs fast and the last digits slowly; these come from one linear system.
    """
    used = np.flatnonzero(z)
    sign = np.sign(z[used])
    block = hessian[np.ix_(used, used)] + slopes.ridge * np.eye(len(used))
    slope = np.where(sign > 0, slopes.up[used], -slopes.down[used])
    unit = 1.0 / np.sqrt(np.where(block.diagonal() > 0, block.diagonal(), 1.0))  # features of any scale
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

    return polished if model(polished) <= model(z) else z
