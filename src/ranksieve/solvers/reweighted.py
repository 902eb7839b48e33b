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

    g lies below its tangent, so each solution lowers the true objective. The first weights are 1 (plain ℓ1),
    or those of the start. Stops when the objective falls by at most ``tol`` times itself. The result's
    objective is the true one; its gap certifies the last weighted ℓ1 problem, so w is near a stationary
    point. ``inner`` solves the weighted problems.
    """

    max_iter: int = 50
    inner: Solver = field(default_factory=ProxNewton)
    name: ClassVar[str] = "reweighted"
    needs: ClassVar[frozenset[str]] = frozenset({"concave"})
    keep_best: ClassVar[bool] = True

    def check(self, problem: Problem) -> None:
        super().check(problem)
        self.inner.check(replace(problem, penalty=L1()))

    def run(self, problem: Problem, start: FloatArray | Point | None, loop: Loop) -> None:
        penalty, point = problem.penalty, problem.start(start)
        weights = np.ones(problem.n_features) if start is None else penalty.weights(point.w)
        value = problem.value(point)
        if loop.ends(point.w, value, np.inf, np.inf, point):
            return
        least = np.inf  # the start does not count: the first round may raise the objective
        while True:
            l1 = L1(penalty.alpha, np.maximum(weights, LEAST_WEIGHT))
            solved = self.inner.solve(replace(problem, penalty=l1), point.w)
            point, before = solved.point, least
            value = problem.value(point)
            least = min(least, value)
            fall = before - value
            distance = fall / abs(value) if np.isfinite(before) and value else fall
            if loop.ends(point.w, value, solved.gap, distance if solved.converged else np.inf, point):
                return
            if fall <= self.tol * abs(value):
                return
            weights = penalty.weights(point.w)
