"""The problems for the comparison of solvers: an objective that is the same for all, and its optimum.

F(w) = (1/p) Σ_{pairs} max(0, 1 − ⟨w, x_i − x_j⟩)² + penalty(w), where the penalty is α‖w‖₁ or ‖w‖²/(2·C·p);
the latter is RankSVM's ½‖w‖² + C Σ max(0, ·)², divided by C·p.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.objective import Objective, make_objective
from ranksieve.path import path_grid
from ranksieve.penalties import L1, Ridge
from ranksieve.solvers import Problem, ProxNewton, TruncatedNewton

L2_STRENGTHS = (100, 10_000)  # C·p
POINT = 39  # of the 100-point path: the 40th
OPTIMUM_TOL = 1e-10


@dataclass(frozen=True, eq=False)
class BenchmarkProblem:
    """A problem on a data set; ``kind``: "l1" or "l2"; ``strength``: α for ℓ1, C·p for ℓ2."""

    name: str
    kind: str
    strength: float
    objective: Objective

    @property
    def n_pairs(self) -> int:
        return round(float(self.objective.loss.normaliser))

    @property
    def C(self) -> float:
        """The weight of the sum over pairs, as in LIBLINEAR."""
        return (self.strength if self.kind == "l2" else 1.0 / self.strength) / self.n_pairs

    @property
    def penalty(self) -> Any:
        return L1(self.strength) if self.kind == "l1" else Ridge(1.0 / self.strength)

    def value(self, w: FloatArray) -> float:
        """F at the weights."""
        w = np.asarray(w, dtype=np.float64)
        return self.objective.evaluate(w).value + float(self.penalty.value(w))

    @cached_property
    def optimum(self) -> float:
        """The minimum of F, to a relative duality gap of 1e-10."""
        return float(solve(self.objective, self, OPTIMUM_TOL).objective)

    def distance(self, w: FloatArray) -> float:
        """Relative distance of F from its minimum."""
        return self.value(w) / self.optimum - 1.0


def solve(objective: Objective, problem: BenchmarkProblem, tol: float) -> Any:
    """Solve a problem with ranksieve, in the same way as `RankSVM` and `sparse_path`."""
    if problem.kind == "l1":
        return ProxNewton(tol).solve(Problem(objective, problem.penalty))
    return TruncatedNewton(tol).solve(Problem(objective, problem.penalty, objective.varies))


def problems(data: Dataset) -> list[BenchmarkProblem]:
    """ℓ2 problems with two strengths, and the ℓ1 problem of the 40th point of the 100-point path."""
    objective = make_objective(data)
    alpha = float(path_grid(objective, L1(1.0), 100)[1][POINT])
    ridges = [BenchmarkProblem(f"l2, C·p = {s:,}", "l2", float(s), objective) for s in L2_STRENGTHS]
    return [*ridges, BenchmarkProblem("l1, 40th α", "l1", alpha, objective)]
