"""Simple first-order methods that faster ones are compared with: subgradient, truncated gradient, L-BFGS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy  # which loads its parts when they are first used

from ranksieve._types import FloatArray
from ranksieve.objective import Objective, Point
from ranksieve.penalties.base import Slopes, duality_gap
from ranksieve.solvers.base import Loop, Problem, Solver

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
