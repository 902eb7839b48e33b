"""Solvers that only baselines use, and their table: cutting planes and first-order methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy  # which loads its parts when they are first used

from ranksieve._types import FloatArray, IntArray
from ranksieve.errors import ParameterError
from ranksieve.objective import Objective, Point
from ranksieve.penalties.base import Slopes, duality_gap
from ranksieve.solvers.base import Loop, Problem, Solver

QP_SHARE = 0.01  # error of the quadratic programme, as a share of the gap asked for
TINY = 1e-12  # ridge of the quadratic programme, as a share of its largest diagonal entry


@dataclass(frozen=True)
class CuttingPlane(Solver):
    """Minimise F(w) = f(w) + ½μ‖w‖² for a convex loss f ≥ 0 until the gap is at most ``tol``.

    Every point w_k gives a plane below the loss, f(w) ≥ b_k + ⟨g_k, w⟩; for the hinge it is the most violated
    constraint of the 1-slack formulation, the one that collects all active pairs. The next point minimises
    ½μ‖w‖² + max_k (b_k + ⟨g_k, w⟩), and that minimum is a lower bound of F: the gap is the least F seen
    less the bound.
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
        planes, point, mu = Planes.none(problem.n_features), problem.start(start), problem.penalty.alpha
        best, least, bound = point, np.inf, 0.0
        while True:
            value = problem.value(point)
            if value <= least or not np.isfinite(value):  # of equals the later one: w = 0 ranks nothing
                best, least = point, value
            gap = float(np.maximum(0.0, least - bound)) + problem.objective.value_error(best)
            if loop.ends(best.w, least, gap, gap, best):
                return
            if point.value - planes.value(point.w) <= problem.objective.value_error(point):
                return  # no plane at this point lies above those that are known
            g = problem.gradient(point)
            planes = planes.with_one(g, point.value - float(g @ point.w), mu, QP_SHARE * self.tol)
            bound = max(bound, planes.bound(mu))  # an inexact programme may let it fall
            point = problem.objective.evaluate(planes.minimiser(mu))


@dataclass(frozen=True)
class Planes:
    """Planes b_k + ⟨g_k, w⟩ below a loss, their products ⟨g_k, g_l⟩, and the share of each in the minimum."""

    slopes: FloatArray
    offsets: FloatArray
    products: FloatArray
    shares: FloatArray

    @classmethod
    def none(cls, n_features: int) -> Planes:
        """The plane 0 alone."""
        return cls(np.zeros((1, n_features)), np.zeros(1), np.zeros((1, 1)), np.ones(1))

    def with_one(self, g: FloatArray, offset: float, mu: float, tol: float) -> Planes:
        """One plane more, and the shares that go with it."""
        slopes, offsets = np.vstack([self.slopes, g]), np.append(self.offsets, offset)
        row = slopes @ g
        products = np.block([[self.products, row[:-1, None]], [row]])
        shares = minimise_on_simplex(products / mu, offsets, np.append(self.shares, 0.0), tol)
        return Planes(slopes, offsets, products, shares)

    def value(self, w: FloatArray) -> float:
        """max_k (b_k + ⟨g_k, w⟩): no more than the loss."""
        return float(np.max(self.offsets + self.slopes @ w))

    def minimiser(self, mu: float) -> FloatArray:
        """argmin_w ½μ‖w‖² + max_k (b_k + ⟨g_k, w⟩) = −Σ_k share_k g_k / μ."""
        return np.asarray(-(self.shares @ self.slopes) / mu)

    def bound(self, mu: float) -> float:
        """Σ share_k b_k − ‖Σ share_k g_k‖²/(2μ): below the minimum for any shares."""
        mean = self.shares @ self.slopes
        return float(self.shares @ self.offsets) - float(mean @ mean) / (2.0 * mu)


def minimise_on_simplex(Q: FloatArray, b: FloatArray, start: FloatArray, tol: float) -> FloatArray:
    """argmin ½βᵀQβ − bᵀβ over β ≥ 0, Σβ = 1, to within ``tol``, for a positive semidefinite Q.

    Active sets: move to the minimum on the face of the simplex in use; where the move would leave the
    simplex, stop at its border and drop the coordinate; at the face's minimum, take in the coordinate with
    the least r_k = (Qβ − b)_k, until ⟨r, β⟩ − min r ≤ ``tol``, which bounds the error.
    """
    beta, face = start.copy(), np.flatnonzero(start > 0)
    for _ in range(20 * len(b) + 100):
        move = _face_minimum(Q, b, face) - beta[face]
        shrinking = move < 0
        room = np.where(shrinking, beta[face] / np.where(shrinking, -move, 1.0), np.inf)
        if room.min() < 1.0:
            beta[face] += room.min() * move
            beta[face[np.argmin(room)]] = 0.0
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
    """The minimum with Σβ = 1 over the coordinates in ``face``, of either sign.

    The first coordinate is what the others leave of 1. A tiny ridge keeps planes that depend on one another
    from leaving the system singular.
    """
    first, others = face[0], face[1:]
    along = Q[others] - Q[first]  # Q times the moves from the first coordinate to each of the others
    system, moment = along[:, others] - along[:, [first]], b[others] - b[first] - along[:, first]
    scale = float(np.max(np.abs(system), initial=0.0)) or 1.0
    system = system / scale + TINY * np.eye(len(others))
    rest = np.linalg.lstsq(system, moment / scale, rcond=None)[0]
    return np.append(1.0 - rest.sum(), rest)


POWER_STEPS = 30


@dataclass(frozen=True)
class Subgradient(Solver):
    """Minimise f(w) + penalty(w) by w ← w − (step/√t)(∇f + penalty′), penalty′ = 0 where w_j = 0.

    The objective falls like 1/√t and not in every step. A weight that would take a forbidden sign is 0. The
    trace tells each step's own objective and gap; the result is the step with the least objective, and no
    weight in it is exactly zero but by chance.
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
    """Minimise f(w) + penalty(w) by w ← w − η_t∇f(w) and, every ``every`` steps, w ← prox(w, Σ η of them).

    η_t = (``step``/L)/√(1 + ``decay``·t), t = 0, 1, …, L the largest eigenvalue of the Hessian at w = 0.
    For ℓ1 the prox is the truncation T(w, Σηα, θ = ∞) of Langford, Li and Zhang, a soft threshold by the
    gravity of the steps since the last one. With ``every`` 1 and no decay it is proximal gradient descent;
    with more, w circles at a distance of the order of η from the optimum, to which it comes only if η falls.
    A loss that bends more elsewhere than at w = 0 may need a ``step`` below 1.

    An iteration is a truncation with the gradient steps before it; ``max_iter`` counts gradient steps.
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
        rate = self.step / (curvature_at_zero(objective) or 1.0)  # 0 if no feature varies
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
    """The largest eigenvalue of the Hessian at w = 0, nearly and from below, by the power method.

    For the squared hinge and the modified Huber loss no pair bends more than at score difference 0, so this
    is the Lipschitz constant of ∇f. The product Hv is a difference of gradients, exact where no pair leaves
    its parabola: up to score differences of 1.
    """
    g = objective.gradient(objective.at_zero)
    v, size = g, float(np.linalg.norm(g))
    for _ in range(POWER_STEPS):
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
    """L-BFGS on a smooth loss with a quadratic penalty.

    Stops when the largest entry of the gradient has fallen to ``tol`` times that at w = 0.
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

        def take(w: FloatArray) -> None:
            if w.tobytes() not in points:
                value_and_gradient(w)
            point, total = points[w.tobytes()]
            points.clear()
            distance = float(np.max(np.abs(total), initial=0.0)) / steepest
            if loop.ends(point.w, problem.value(point), np.nan, distance, point):
                raise StopIteration

        def each(intermediate_result: Any) -> None:
            take(intermediate_result.x)

        first = problem.start(start).w
        try:
            take(first)
        except StopIteration:
            return
        options = {"maxiter": self.max_iter, "maxfun": 20 * self.max_iter, "gtol": 0.0, "ftol": 0.0}
        scipy.optimize.minimize(
            value_and_gradient, first, jac=True, method="L-BFGS-B", callback=each, options=options
        )


BASELINE_SOLVERS: dict[str, Callable[..., Solver]] = {
    "cutting_plane": CuttingPlane,
    "lbfgs": LBFGS,
    "subgradient": Subgradient,
    "truncated_gradient": TruncatedGradient,
}
