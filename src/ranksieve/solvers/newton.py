"""Newton's method for smooth problems, dense or truncated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.objective import Point
from ranksieve.solvers.base import Loop, Problem, Solver, first_decrease, minimum_of_sample, relative

MAX_HESSIAN_FEATURES = 100  # up to here, forming the Hessian is faster than products with it
MAX_RESIDUAL = 0.1  # of a Newton system, relative to the gradient


@dataclass(frozen=True)
class TruncatedNewton(Solver):
    """Minimise F(w) = f(w) + ½wᵀAw until the duality gap is at most ``tol`` times F.

    Each step solves (H + A)d = −∇F and halves d until F decreases sufficiently. Up to 100 features, H is
    formed and factorised; with more, conjugate gradients use Hessian products, to a residual that decreases
    with the gradient. The squared hinge is piecewise quadratic, so the full step is exact as soon as the
    active pairs stop changing; with a ridge μ its gap is min(‖∇F‖²/(2μ), F).
    """

    name: ClassVar[str] = "truncated_newton"
    needs: ClassVar[frozenset[str]] = frozenset({"hessian_product", "quadratic", "slopes"})

    def run(self, problem: Problem, start: FloatArray | Point | None, loop: Loop) -> None:
        point, first = problem.start(minimum_of_sample(problem, self) if start is None else start), 0.0
        while True:
            g = problem.gradient(point)
            primal, gap = problem.value(point), problem.gap(point, g)
            # With a strong ridge w = 0 may meet the tolerance, but it ranks nothing, so take one step.
            ranks = bool(np.any(point.w) or not np.any(g))
            if loop.ends(point.w, primal, gap, relative(gap, primal) if ranks else np.inf, point):
                return
            total = g + problem.penalty.times(point.w)
            if not np.any(total):
                return
            first = first or float(np.linalg.norm(total))
            residual = min(MAX_RESIDUAL, float(np.sqrt(np.linalg.norm(total) / first)))
            direction = _exact_direction(problem, point, total)
            if direction is None:
                direction = _direction(problem, point, total, residual)
            slope = float(total @ direction)
            moved = None
            if slope < 0.0:
                moved = first_decrease(
                    problem.objective, problem.penalty.value, point, direction, slope, primal
                )
            if moved is None:
                return
            point = moved


def _exact_direction(problem: Problem, point: Point, total: FloatArray) -> FloatArray | None:
    """d with (H + A)d = −∇F; None if Hessian products are faster or H + A is singular."""
    d = problem.n_features
    if d > MAX_HESSIAN_FEATURES or "hessian" not in problem.offers:
        return None
    columns = np.arange(d)
    system = problem.objective.hessian(point, columns) + problem.penalty.matrix(d)
    usable = columns if problem.usable is None else np.flatnonzero(problem.usable)
    direction = np.zeros(d)
    try:
        factor = np.linalg.cholesky(system[np.ix_(usable, usable)])
    except np.linalg.LinAlgError:
        return None
    direction[usable] = -np.linalg.solve(factor.T, np.linalg.solve(factor, total[usable]))
    return direction


def _direction(problem: Problem, point: Point, total: FloatArray, residual: float) -> FloatArray:
    """d with ‖(H + A)d + ∇F‖ ≤ residual·‖∇F‖; a descent direction even if stopped early."""
    from scipy.sparse.linalg import LinearOperator, cg  # slow import

    size = problem.n_features
    usable = np.ones(size, dtype=bool) if problem.usable is None else problem.usable

    def product(v: FloatArray) -> FloatArray:
        curved = np.where(usable, problem.objective.hessian_product(point, v), 0.0)
        return np.asarray(curved + problem.penalty.times(v))

    operator = LinearOperator((size, size), matvec=product, dtype=np.float64)
    return np.asarray(cg(operator, -total, rtol=residual, atol=0.0, maxiter=2 * size + 20)[0])


@dataclass(frozen=True)
class DenseNewton(Solver):
    """Minimise F(w) = f(w) + ½wᵀAw over few features, by damped Newton steps with the full Hessian.

    Stops when the predicted relative decrease of F is at most ``tol``. For a piecewise quadratic loss the
    last step is exact.
    """

    tol: float = 1e-12
    name: ClassVar[str] = "dense_newton"
    needs: ClassVar[frozenset[str]] = frozenset({"hessian", "quadratic"})

    def run(self, problem: Problem, start: FloatArray | Point | None, loop: Loop) -> None:
        point, columns = problem.start(start), np.arange(problem.n_features)
        A = problem.penalty.matrix(problem.n_features)
        while True:
            primal, total = problem.value(point), problem.gradient(point) + A @ point.w
            hessian = problem.objective.hessian(point, columns) + A
            direction = -np.linalg.lstsq(hessian, total, rcond=None)[0]
            slope = float(total @ direction)
            if loop.ends(point.w, primal, np.nan, relative(-slope, primal), point):
                return
            moved = first_decrease(problem.objective, problem.penalty.value, point, direction, slope, primal)
            if moved is None:
                return
            point = moved
