"""Proximal gradient with backtracking for the Lipschitz constant: plain, or accelerated (FISTA)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.objective import Objective, Point
from ranksieve.solvers.base import OBJECTIVE_ROUNDING, Loop, Problem, Solver, relative

MAX_UNCHANGED_STEPS, UNCHANGED = 5, 1e-14  # stop after 5 steps without a larger relative change of any weight
TOO_LARGE = "no step lowers the objective, because its values are not finite; scale the features down"


@dataclass(frozen=True)
class ProximalGradient(Solver):
    """Minimise smooth(x) + simple(x) by x ← prox(z − ∇smooth(z)/L).

    L starts at ``lipschitz`` and is multiplied by ``growth`` until smooth(x) ≤ smooth(z) + ⟨∇, x − z⟩ +
    (L/2)‖x − z‖²; it never decreases. Plain: z = x. Accelerated: z = x + (a_t − 1)/a_{t+1} times the last
    change of x, a_{t+1} = (1 + √(1 + 4a_t²))/2; with ``restart``, a is reset to 1 whenever the objective
    rises.

    Parameters
    ----------
    stop : "gap", "change" or "mapping"
        Quantity that ``tol`` bounds: the relative duality gap; the last relative change of the objective; or
        the norm of the proximal gradient mapping L(z − x), relative to its norm at x = 0.
    mapping_tol : float
        Stop also if the norm of the mapping is at most this fraction of ‖∇f(0)‖; with almost unpenalised
        features the gap may never become small.
    lipschitz : float, optional
        First value of L; default: the curvature along the first gradient, a lower bound.
    """

    max_iter: int = 10_000
    accelerated: bool = False
    restart: bool = True
    stop: Literal["gap", "change", "mapping"] = "gap"
    mapping_tol: float = 0.0
    lipschitz: float | None = None
    growth: float = 2.0
    name: ClassVar[str] = "proximal_gradient"
    needs: ClassVar[frozenset[str]] = frozenset({"hessian", "prox"})

    def run(self, problem: Problem, start: FloatArray | Point | None, loop: Loop) -> None:
        point, mapping = problem.start(start), np.inf
        x = z = problem.variables(point)
        at_z, a, previous_x, objective = point, 1.0, x, problem.value(point)
        backtracking = _Backtracking(
            self.lipschitz or curvature_along_gradient(problem.objective), self.growth
        )
        at_zero = self._mapping_at_zero(problem)
        previous_objective, n_unchanged = np.inf, 0
        while True:
            gap = problem.gap(point) if self.stop == "gap" else np.nan
            mapping_is_small = self.mapping_tol > 0.0 and mapping <= self.mapping_tol * at_zero
            distance = {
                "gap": 0.0 if mapping_is_small else relative(gap, objective),
                "change": relative(abs(objective - previous_objective), abs(previous_objective)),
                "mapping": mapping / at_zero if at_zero > 0 else 0.0 * mapping,
            }[self.stop]
            if loop.ends(point.w, objective, gap, distance, point) or (
                n_unchanged == MAX_UNCHANGED_STEPS and self.stop == "gap"
            ):
                return
            if (
                loop.n_iter
                and self.accelerated
                and not (self.restart and _rises(objective, previous_objective))
            ):
                a, previous_a = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * a * a)), a
                z = x + (previous_a - 1.0) / a * (x - previous_x)
                at_z = problem.evaluate(z)
            else:
                z, at_z, a = x, point, 1.0
            previous_x, previous_objective = x, objective
            x, point, mapping = backtracking.step(problem, z, at_z)
            objective = problem.value(point)
            n_unchanged = n_unchanged + 1 if np.all(np.abs(x - previous_x) <= UNCHANGED * np.abs(x)) else 0

    def _mapping_at_zero(self, problem: Problem) -> float:
        """The norm that ``tol`` or ``mapping_tol`` is relative to; 0 if not needed."""
        if self.stop == "change" or (self.stop == "gap" and self.mapping_tol == 0.0):
            return 0.0
        g = problem.gradient(problem.start(None))
        return float(np.linalg.norm(g if self.stop == "gap" else problem.prox(-g, 1.0)))


def _rises(objective: float, previous: float) -> bool:
    """Return True if the objective rises by more than rounding errors."""
    return objective > previous + 10.0 * OBJECTIVE_ROUNDING * abs(previous)


@dataclass(frozen=True)
class Fista(ProximalGradient):
    """Accelerated forward–backward splitting with backtracking, restarted when the objective rises.

    The global bound Σ‖x_i − x_j‖² on the Lipschitz constant is too large by orders of magnitude.
    """

    accelerated: bool = True
    name: ClassVar[str] = "fista"


@dataclass
class _Backtracking:
    """Backtracking for the Lipschitz constant."""

    lipschitz: float
    growth: float

    def step(self, problem: Problem, z: FloatArray, at_z: Any) -> tuple[FloatArray, Any, float]:
        """Return (x, the point at x, norm of the gradient mapping)."""
        g = problem.gradient(at_z)
        while np.isfinite(self.lipschitz):
            x = problem.prox(z - g / self.lipschitz, 1.0 / self.lipschitz)
            at_x, change = problem.evaluate(x), x - z
            model = at_z.value + float(g @ change) + 0.5 * self.lipschitz * float(change @ change)
            if at_x.value <= model + OBJECTIVE_ROUNDING * abs(at_z.value):
                return x, at_x, self.lipschitz * float(np.linalg.norm(change))
            self.lipschitz *= self.growth
        raise ValueError(TOO_LARGE)


def curvature_along_gradient(objective: Objective) -> float:
    """⟨g, Hg⟩/⟨g, g⟩ ≤ ‖H‖ at w = 0, for the cost of one evaluation; 1 if it is 0."""
    start = objective.at_zero
    g = objective.gradient(start)
    size = float(np.linalg.norm(g))
    along = objective.curvature_along(start, objective.scores(g / size)) if size > 0.0 else 0.0
    return along or 1.0  # if all features are constant, any value works
