"""Truncated Newton for a smooth loss with a ridge: conjugate gradients on implicit Hessian products."""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from ranksieve._parallel import single_threaded_blas
from ranksieve._types import BoolArray, FloatArray
from ranksieve.objective import CurvedObjective, Point
from ranksieve.penalties.ridge import Ridge
from ranksieve.solvers.certificate import duality_gap
from ranksieve.solvers.result import Callback, Result, Trace

SUFFICIENT = 1e-4  # share of the slope's promise that a step must keep
ROUNDING = 1e-15  # a change of the objective below this share of it cannot be told from none
LOOSEST = 0.1  # largest residual of a Newton system, as a share of the gradient


def newton(
    objective: CurvedObjective,
    ridge: Ridge,
    start: FloatArray | None = None,
    *,
    usable: BoolArray | None = None,
    tol: float = 1e-6,
    max_iter: int = 100,
    callback: Callback | None = None,
) -> Result:
    """Minimise F(w) = f(w) + ½μ‖w‖² until the duality gap is at most ``tol`` times F.

    Each step solves (H + μI)d = −∇F by conjugate gradients, to a residual that falls with the gradient, and
    halves d until F falls enough. The squared hinge is piecewise quadratic, so the full step is exact as
    soon as the active pairs stop changing; its gap is ‖∇F‖²/(2μ), or F itself where that is less.

    Features outside ``usable`` keep the weight 0: one that is constant within every query has a gradient of
    zero, but only up to rounding.
    """
    free = np.ones(objective.n_features, dtype=bool) if usable is None else usable
    with single_threaded_blas():
        point = objective.at_zero if start is None else objective.evaluate(np.where(free, start, 0.0))
        return _iterate(objective, ridge, point, free, tol, max_iter, callback)


def _iterate(
    objective: CurvedObjective,
    ridge: Ridge,
    point: Point,
    free: BoolArray,
    tol: float,
    max_iter: int,
    callback: Callback | None,
) -> Result:
    trace, first = Trace(), 0.0
    for n_iter in range(max_iter + 1):
        g = np.where(free, objective.gradient(point), 0.0)
        primal, gap = duality_gap(objective, ridge, point, g)
        trace.record(primal, gap, point.w)
        if callback is not None:
            callback(n_iter, point.w, primal, gap)
        # With a strong ridge w = 0 may be near enough, but it ranks nothing, and one step gives a direction.
        converged = gap <= tol * primal and bool(np.any(point.w) or not np.any(g))
        if converged or n_iter == max_iter:
            break
        total = g + ridge.alpha * point.w
        first = first or float(np.linalg.norm(total))
        residual = min(LOOSEST, float(np.sqrt(np.linalg.norm(total) / first)))
        direction = _direction(objective, ridge, point, free, total, residual)
        moved = _search(objective, ridge, point, direction, float(total @ direction), primal)
        if moved is None:
            break
        point = moved
    return Result(point.w, primal, gap, n_iter, converged, trace)


def _direction(
    objective: CurvedObjective,
    ridge: Ridge,
    point: Point,
    free: BoolArray,
    total: FloatArray,
    residual: float,
) -> FloatArray:
    """d with ‖(H + μI)d + ∇F‖ ≤ residual·‖∇F‖; a descent direction however early it stops."""

    def product(v: FloatArray) -> FloatArray:
        return np.where(free, objective.hessian_product(point, v), 0.0) + ridge.alpha * v

    size = objective.n_features
    operator = LinearOperator((size, size), matvec=product, dtype=np.float64)
    return np.asarray(cg(operator, -total, rtol=residual, atol=0.0, maxiter=2 * size + 20)[0])


def _search(
    objective: CurvedObjective,
    ridge: Ridge,
    point: Point,
    direction: FloatArray,
    slope: float,
    primal: float,
) -> Point | None:
    """The first of the steps 1, ½, ¼ … with a sufficient decrease; None when rounding leaves none."""
    slide, step = objective.scores(direction), 1.0
    while slope < 0.0 and step > 1e-10:
        w = point.w + step * direction
        moved = objective.evaluate_scores(w, point.scores + step * slide)
        if moved.value + ridge.value(w) <= primal * (1.0 + ROUNDING) + SUFFICIENT * step * slope:
            return moved
        step *= 0.5
    return None
