"""The problems that solvers race for: the same objective for all, and its optimum.

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
EXACT = 1e-10


@dataclass(frozen=True, eq=False)
class BenchmarkProblem:
    """One problem of one data set; ``kind`` is "l1" or "l2", ``strength`` is α, or C·p."""

    name: str
    kind: str
    strength: float
    objective: Objective

    @property
    def n_pairs(self) -> int:
        return round(float(self.objective.loss.normaliser))

    @property
    def C(self) -> float:
        """The weight of the sum over pairs, as LIBLINEAR and its kin take it."""
        return (self.strength if self.kind == "l2" else 1.0 / self.strength) / self.n_pairs

    @property
    def penalty(self) -> Any:
        return L1(self.strength) if self.kind == "l1" else Ridge(1.0 / self.strength)

    def value(self, w: FloatArray) -> float:
        """F at any weights."""
        w = np.asarray(w, dtype=np.float64)
        return self.objective.evaluate(w).value + float(self.penalty.value(w))

    @cached_property
    def optimum(self) -> float:
        """F at its minimum, to a relative duality gap of 1e-10."""
        return float(solve(self.objective, self, EXACT).objective)

    def distance(self, w: FloatArray) -> float:
        """How far F is above its minimum, as a share of it."""
        return self.value(w) / self.optimum - 1.0


def solve(objective: Objective, stated: BenchmarkProblem, tol: float) -> Any:
    """Our solver of a problem; as `RankSVM` and `sparse_path` call it."""
    if stated.kind == "l1":
        return ProxNewton(tol).solve(Problem(objective, stated.penalty))
    return TruncatedNewton(tol).solve(Problem(objective, stated.penalty, objective.varies))


def problems(data: Dataset) -> list[BenchmarkProblem]:
    """ℓ2 at two strengths, and ℓ1 at the 40th α of the 100-point path."""
    objective = make_objective(data)
    alpha = float(path_grid(objective, L1(1.0), 100)[1][POINT])
    ridges = [BenchmarkProblem(f"l2, C·p = {s:,}", "l2", float(s), objective) for s in L2_STRENGTHS]
    return [*ridges, BenchmarkProblem("l1, 40th α", "l1", alpha, objective)]
