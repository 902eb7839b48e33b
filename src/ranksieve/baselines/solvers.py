"""Solvers used only by baselines, and their table: cutting planes and first-order methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy  # loads its submodules on first use

from ranksieve._types import FloatArray, IntArray
from ranksieve.errors import ParameterError
from ranksieve.objective import Objective, Point
from ranksieve.penalties.base import Slopes, duality_gap
from ranksieve.solvers.base import Loop, Problem, Solver

QP_TOL_SHARE = 0.01  # tolerance of the quadratic programme, relative to the tolerance of the solver
QP_RIDGE_SHARE = 1e-12  # ridge of the quadratic programme, relative to its largest entry


@dataclass(frozen=True)
class CuttingPlane(Solver):
    """Minimise F(w) = f(w) + ½μ‖w‖² for a convex loss f ≥ 0 until the gap is at most ``tol``.

    Every point w_k gives a plane below the loss, f(w) ≥ b_k + ⟨g_k, w⟩; for the hinge it is the most violated
    constraint of the 1-slack formulation, which contains all active pairs. The next point minimises
    ½μ‖w‖² + max_k (b_k + ⟨g_k, w⟩), and that minimum is a lower bound of F: the gap is the smallest F so far
    minus the bound.
    """

    tol: float = 1e-3
    max_iter: int = 1000
    name: ClassVar[str] = "cutting_plane"
    needs: ClassVar[frozenset[str]] = frozenset({"quadratic", "slopes"})

    def check(self, problem: Problem) -> None:
        super().check(problem)
        if not problem.penalty.alpha > 0:
            raise ParameterError("alpha", problem.penalty.alpha, "the solver cutting_plane needs a ridge > 0")

    def run(self, problem: Problem, start: FloatArray | Point | None, loop: Loop) -> None:
        planes, point, mu = Planes.initial(problem.n_features), problem.start(start), problem.penalty.alpha
        best, least, bound = point, np.inf, 0.0
        while True:
            value = problem.value(point)
            if value <= least or not np.isfinite(value):  # ties go to the later point: w = 0 does not rank
                best, least = point, value
            gap = float(np.maximum(0.0, least - bound)) + problem.objective.value_error(best)
            if loop.ends(best.w, least, gap, gap, best):
                return
            if point.value - planes.value(point.w) <= problem.objective.value_error(point):
                return  # the plane at this point would not lie above the previous ones
            g = problem.gradient(point)
            planes = planes.append(g, point.value - float(g @ point.w), mu, QP_TOL_SHARE * self.tol)
            bound = max(bound, planes.bound(mu))  # an inexact quadratic programme may lower the bound
            point = problem.objective.evaluate(planes.minimiser(mu))


@dataclass(frozen=True)
class Planes:
    """Planes b_k + ⟨g_k, w⟩ below a loss, their products ⟨g_k, g_l⟩, and their dual weights (``shares``)."""

    slopes: FloatArray
    offsets: FloatArray
    products: FloatArray
    shares: FloatArray

    @classmethod
    def initial(cls, n_features: int) -> Planes:
        """Return the plane 0, a lower bound of every loss."""
        return cls(np.zeros((1, n_features)), np.zeros(1), np.zeros((1, 1)), np.ones(1))

    def append(self, g: FloatArray, offset: float, mu: float, tol: float) -> Planes:
        """Return the planes with one more, and the new dual weights."""
        slopes, offsets = np.vstack([self.slopes, g]), np.append(self.offsets, offset)
        row = slopes @ g
        products = np.block([[self.products, row[:-1, None]], [row]])
        shares = minimise_on_simplex(products / mu, offsets, np.append(self.shares, 0.0), tol)
        return Planes(slopes, offsets, products, shares)

    def value(self, w: FloatArray) -> float:
        """Return max_k (b_k + ⟨g_k, w⟩), a lower bound of the loss."""
        return float(np.max(self.offsets + self.slopes @ w))

    def minimiser(self, mu: float) -> FloatArray:
        """argmin_w ½μ‖w‖² + max_k (b_k + ⟨g_k, w⟩) = −Σ_k share_k g_k / μ."""
        return np.asarray(-(self.shares @ self.slopes) / mu)

    def bound(self, mu: float) -> float:
        """Return Σ share_k b_k − ‖Σ share_k g_k‖²/(2μ), a lower bound of the minimum for any shares."""
        mean = self.shares @ self.slopes
        return float(self.shares @ self.offsets) - float(mean @ mean) / (2.0 * mu)


def minimise_on_simplex(Q: FloatArray, b: FloatArray, start: FloatArray, tol: float) -> FloatArray:
    """Minimise ½βᵀQβ − bᵀβ over β ≥ 0, Σβ = 1, up to ``tol``, for a positive semidefinite Q.

    Active-set method: move to the minimum on the current face of the simplex. If the move would leave the
    simplex, stop at the boundary and drop that coordinate. At the minimum of the face, add the coordinate
    with the smallest r_k = (Qβ − b)_k, until ⟨r, β⟩ − min r ≤ ``tol``, which bounds the error.
    """
    beta, face = start.copy(), np.flatnonzero(start > 0)
    for _ in range(20 * len(b) + 100):
        move = _face_minimum(Q, b, face) - beta[face]
        shrinking = move < 0
        max_step = np.where(shrinking, beta[face] / np.where(shrinking, -move, 1.0), np.inf)
        if max_step.min() < 1.0:
            beta[face] += max_step.min() * move
            beta[face[np.argmin(max_step)]] = 0.0
            face = face[beta[face] > 0]
            continue
        beta[face] += move
        r = Q @ beta - b
        entering = int(np.argmin(r))
        if r @ beta - r[entering] <= tol or entering in face:
            break
        face = np.append(face, entering)
    beta = np.maximum(beta, 0.0)
    return np.asarray(beta / beta.sum())


def _face_minimum(Q: FloatArray, b: FloatArray, face: IntArray) -> FloatArray:
    """Return the minimum with Σβ = 1 over the coordinates in ``face``, without sign constraints.

    The first coordinate is 1 minus the sum of the others. A tiny ridge keeps the system regular if planes are
    linearly dependent.
    """
    first, others = face[0], face[1:]
    along = Q[others] - Q[first]  # Q times the directions from the first coordinate to each of the others
    system, moment = along[:, others] - along[:, [first]], b[others] - b[first] - along[:, first]
    scale = float(np.max(np.abs(system), initial=0.0)) or 1.0
    system = system / scale + QP_RIDGE_SHARE * np.eye(len(others))
    rest = np.linalg.lstsq(system, moment / scale, rcond=None)[0]
    return np.append(1.0 - rest.sum(), rest)


POWER_ITERATIONS = 30


@dataclass(frozen=True)
class Subgradient(Solver):
    """Minimise f(w) + penalty(w) by w ← w − (step/√t)(∇f + penalty′), penalty′ = 0 where w_j = 0.

    The objective converges like 1/√t, not monotonically. A weight that would get a forbidden sign is set to
    0. The trace has the objective and gap of each step; the result is the step with the smallest objective.
    Its weights are generally not exactly zero.
    """

    max_iter: int = 1000
    step: float = 1.0
    name: ClassVar[str] = "subgradient"
    needs: ClassVar[frozenset[str]] = frozenset({"slopes"})
    keep_best: ClassVar[bool] = True

    def run(self, problem: Problem, start: FloatArray | Point | None, loop: Loop) -> None:
        slopes, point = problem.penalty.slopes(problem.n_features), problem.start(start)
        low = np.where(np.isinf(slopes.down), 0.0, -np.inf)
        high = np.where(np.isinf(slopes.up), 0.0, np.inf)
        while True:
            g = problem.gradient(point)
            primal, gap = duality_gap(problem.objective, slopes, point, g)
            if loop.ends(point.w, primal, gap, point=point):
                return
            rate = self.step / np.sqrt(len(loop.trace))
            w = point.w - rate * (g + _penalty_slope(slopes, point.w))
            point = problem.objective.evaluate(np.clip(w, low, high))


def _penalty_slope(slopes: Slopes, w: FloatArray) -> FloatArray:
    side = np.where(w > 0, slopes.up, -slopes.down)
    return np.where(w == 0, 0.0, side) + slopes.ridge * w


@dataclass(frozen=True)
class TruncatedGradient(Solver):
    """Minimise f(w) + penalty(w) by w ← w − η_t∇f(w) and, every ``every`` steps, w ← prox(w, Σ of their η).

    η_t = (``step``/L)/√(1 + ``decay``·t), t = 0, 1, …, L the largest eigenvalue of the Hessian at w = 0. For
    ℓ1 the prox is the truncation T(w, Σηα, θ = ∞) of Langford, Li and Zhang: soft thresholding by the
    accumulated gravity. With ``every`` = 1 and no decay this is proximal gradient descent. With larger
    values, w stays at a distance of order η from the optimum and converges only if η decreases. A loss with
    larger curvature elsewhere than at w = 0 may need a ``step`` below 1.

    An iteration is a truncation and the gradient steps before it; ``max_iter`` counts gradient steps.
    """

    tol: float = 1e-4
    max_iter: int = 1000
    step: float = 1.0
    decay: float = 0.0
    every: int = 1
    name: ClassVar[str] = "truncated_gradient"
    needs: ClassVar[frozenset[str]] = frozenset({"hessian", "prox", "slopes"})
    stops_early: ClassVar[bool] = True

    def run(self, problem: Problem, start: FloatArray | Point | None, loop: Loop) -> None:
        objective, point, done = problem.objective, problem.start(start), 0
        rate = self.step / (curvature_at_zero(objective) or 1.0)  # the curvature is 0 if no feature varies
        while True:
            g = problem.gradient(point)
            if loop.ends(point.w, problem.value(point), problem.gap(point, g), point=point):
                return
            steps, gravity, w = min(self.every, self.max_iter - done), 0.0, point.w
            for k in range(steps):
                eta = rate / np.sqrt(1.0 + self.decay * (done + k))
                w, gravity = w - eta * g, gravity + eta
                if k < steps - 1:
                    g = problem.gradient(objective.evaluate(w))
            if not steps:
                return
            done += steps
            point = objective.evaluate(problem.prox(w, gravity))


def curvature_at_zero(objective: Objective) -> float:
    """Estimate the largest eigenvalue of the Hessian at w = 0 from below, by the power method.

    For the squared hinge and the modified Huber loss the curvature of a pair is largest at score difference
    0, so this is the Lipschitz constant of ∇f. The product Hv is a difference of gradients, which is exact
    for score differences up to 1, where every pair stays on its parabola.
    """
    g = objective.gradient(objective.at_zero)
    v, size = g, float(np.linalg.norm(g))
    for _ in range(POWER_ITERATIONS):
        largest = float(np.max(np.abs(objective.scores(v)), initial=0.0))
        if largest == 0.0:
            return 0.0
        v = v / (4.0 * largest)
        change = objective.gradient(objective.evaluate(v)) - g
        size = float(np.linalg.norm(change)) / float(np.linalg.norm(v))
        v = change
    return size


@dataclass(frozen=True)
class LBFGS(Solver):
    """L-BFGS for a smooth loss with a quadratic penalty.

    Stops when the largest entry of the gradient is at most ``tol`` times that at w = 0.
    """

    tol: float = 1e-4
    max_iter: int = 1000
    name: ClassVar[str] = "lbfgs"
    needs: ClassVar[frozenset[str]] = frozenset({"hessian", "quadratic"})

    def run(self, problem: Problem, start: FloatArray | Point | None, loop: Loop) -> None:
        points: dict[bytes, tuple[Point, FloatArray]] = {}

        def value_and_gradient(w: FloatArray) -> tuple[float, FloatArray]:
            point = problem.objective.evaluate(w.copy())
            total = problem.gradient(point) + problem.penalty.times(w)
            points[w.tobytes()] = point, total
            return problem.value(point), total

        steepest = float(np.max(np.abs(problem.gradient(problem.objective.at_zero)), initial=0.0)) or 1.0

        def record(w: FloatArray) -> None:
            if w.tobytes() not in points:
                value_and_gradient(w)
            point, total = points[w.tobytes()]
            points.clear()
            distance = float(np.max(np.abs(total), initial=0.0)) / steepest
            if loop.ends(point.w, problem.value(point), np.nan, distance, point):
                raise StopIteration

        def callback(intermediate_result: Any) -> None:
            record(intermediate_result.x)

        first = problem.start(start).w
        try:
            record(first)
        except StopIteration:
            return
        options = {"maxiter": self.max_iter, "maxfun": 20 * self.max_iter, "gtol": 0.0, "ftol": 0.0}
        scipy.optimize.minimize(
            value_and_gradient, first, jac=True, method="L-BFGS-B", callback=callback, options=options
        )


BASELINE_SOLVERS: dict[str, Callable[..., Solver]] = {
    "cutting_plane": CuttingPlane,
    "lbfgs": LBFGS,
    "subgradient": Subgradient,
    "truncated_gradient": TruncatedGradient,
}
