"""Proximal gradient with a Lipschitz constant found on the way: plain, or accelerated (FISTA)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.objective import Objective, Point
from ranksieve.solvers.base import ROUNDING, Loop, Problem, Solver, relative

STILL, LAST_BITS = 5, 1e-14  # steps in a row that change no weight by more than this share: they lead nowhere
TOO_LARGE = "no step makes the objective fall, because its values are not finite; scale the features down"


@dataclass(frozen=True)
class ProximalGradient(Solver):
    """Minimise smooth(x) + simple(x) by x ← prox(z − ∇smooth(z)/L).

    L starts at ``lipschitz`` and is multiplied by ``growth`` until
    smooth(x) ≤ smooth(z) + ⟨∇, x − z⟩ + (L/2)‖x − z‖²; it never falls. Plain: z = x. Accelerated: z runs
    ahead by (a_t − 1)/a_{t+1} times the last change, a_{t+1} = (1 + √(1 + 4a_t²))/2; with ``restart``, a
    returns to 1 whenever the objective rises.

    Parameters
    ----------
    stop : "gap", "change" or "mapping"
        What ``tol`` bounds: the duality gap as a share of the objective; the last change of the objective as
        a share of it; or the norm of the proximal gradient mapping L(z − x) as a share of that at x = 0.
    mapping_tol : float
        Stop also when the mapping is at most this share of ‖∇f(0)‖, which the gap of features with next to
        no penalty may never show.
    lipschitz : float, optional
        Where the search for L starts; default the curvature along the first gradient, a lower bound.
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
        at_z, a, before, objective = point, 1.0, x, problem.value(point)
        search = _Search(self.lipschitz or curvature_along_gradient(problem.objective), self.growth)
        at_zero = self._mapping_at_zero(problem)
        previous, still = np.inf, 0
        while True:
            gap = problem.gap(point) if self.stop == "gap" else np.nan
            mapped = self.mapping_tol > 0.0 and mapping <= self.mapping_tol * at_zero
            distance = {
                "gap": 0.0 if mapped else relative(gap, objective),
                "change": relative(abs(objective - previous), abs(previous)),
                "mapping": mapping / at_zero if at_zero > 0 else 0.0 * mapping,
            }[self.stop]
            if loop.ends(point.w, objective, gap, distance, point) or (still == STILL and self.stop == "gap"):
                return
            if loop.n_iter and self.accelerated and not (self.restart and _rises(objective, previous)):
                a, before_a = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * a * a)), a
                z = x + (before_a - 1.0) / a * (x - before)
                at_z = problem.evaluate(z)
            else:
                z, at_z, a = x, point, 1.0
            before, previous = x, objective
            x, point, mapping = search.step(problem, z, at_z)
            objective = problem.value(point)
            still = still + 1 if np.all(np.abs(x - before) <= LAST_BITS * np.abs(x)) else 0

    def _mapping_at_zero(self, problem: Problem) -> float:
        """What ``tol`` or ``mapping_tol`` takes the mapping as a share of."""
        if self.stop == "change" or (self.stop == "gap" and self.mapping_tol == 0.0):
            return 0.0
        g = problem.gradient(problem.start(None))
        return float(np.linalg.norm(g if self.stop == "gap" else problem.prox(-g, 1.0)))


def _rises(objective: float, previous: float) -> bool:
    """Whether the objective is higher than before by more than rounding makes it."""
    return objective > previous + 10.0 * ROUNDING * abs(previous)


@dataclass(frozen=True)
class Fista(ProximalGradient):
    """Accelerated forward–backward splitting with backtracking, restarted when the objective rises.

    Σ‖x_i − x_j‖² as Lipschitz constant would be too large by orders of magnitude.
    """

    accelerated: bool = True
    name: ClassVar[str] = "fista"


@dataclass
class _Search:
    """Backtracking for the Lipschitz constant."""

    lipschitz: float
    growth: float

    def step(self, problem: Problem, z: FloatArray, at_z: Any) -> tuple[FloatArray, Any, float]:
        """(x, the point there, norm of the gradient mapping)."""
        g = problem.gradient(at_z)
        while np.isfinite(self.lipschitz):
            x = problem.prox(z - g / self.lipschitz, 1.0 / self.lipschitz)
            at_x, change = problem.evaluate(x), x - z
            model = at_z.value + float(g @ change) + 0.5 * self.lipschitz * float(change @ change)
            if at_x.value <= model + ROUNDING * abs(at_z.value):
                return x, at_x, self.lipschitz * float(np.linalg.norm(change))
            self.lipschitz *= self.growth
        raise ValueError(TOO_LARGE)


def curvature_along_gradient(objective: Objective) -> float:
    """⟨g, Hg⟩/⟨g, g⟩ at w = 0: at most ‖H‖, for the price of one evaluation; 1 where it is 0."""
    start = objective.at_zero
    g = objective.gradient(start)
    size = float(np.linalg.norm(g))
    along = objective.curvature_along(start, objective.scores(g / size)) if size > 0.0 else 0.0
    return along or 1.0  # where no feature varies any constant will do
