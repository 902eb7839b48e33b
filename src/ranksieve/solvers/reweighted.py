"""Reweighted ℓ1: minimise a concave penalty by a sequence of weighted ℓ1 problems."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.objective import Point
from ranksieve.penalties.l1 import L1
from ranksieve.solvers.base import Loop, Problem, Solver
from ranksieve.solvers.prox_newton import ProxNewton

LEAST_WEIGHT = 1e-6  # keeps the dual point of every round away from zero, so that its gap says something


@dataclass(frozen=True)
class Reweighted(Solver):
    """Minimise f(w) + α Σ g(|w_j|): solve with weights v_j = g′(|w_j|) of the last solution, again and again.

    g lies below its tangent, so each solution lowers the true objective. The first weights are those of the
    start, or 1 without one (plain ℓ1, which may raise the objective from that at w = 0). Stops when the
    objective falls by at most ``tol`` times itself; a round that raises it by its own error changes nothing.
    The result's objective is the true one; its gap is that of the last weighted ℓ1 problem, so w is near a
    stationary point. ``inner`` solves the weighted problems.
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
        least = np.inf if start is None else problem.value(point)
        while True:
            weighted = replace(problem, penalty=L1(penalty.alpha, np.maximum(weights, LEAST_WEIGHT)))
            solved = self.inner.solve(weighted, point.w)
            value = problem.value(solved.point)
            fall, gap = least - value, solved.gap
            if fall >= 0.0:
                point, least = solved.point, value
            else:
                gap = weighted.gap(point)
            small = fall <= self.tol * abs(value)
            if loop.ends(point.w, least, gap, 0.0 if small and solved.converged else np.inf, point) or small:
                return
            weights = penalty.weights(point.w)
