"""RankSVM-Struct: the hinge over pairs with ℓ2, by 1-slack cutting planes."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.estimators.parameters import Count, Positive
from ranksieve.estimators.solved import SolvedRanker
from ranksieve.objective import make_objective
from ranksieve.penalties import Ridge
from ranksieve.solvers import CuttingPlane, Problem, Solver


@dataclass(eq=False, repr=False)
class RankSVMStruct(SolvedRanker):
    """min_w ½‖w‖² + (C/p) Σ_{pairs} max(0, 1 − ⟨w, x_i − x_j⟩).

    The 1-slack formulation has one constraint for every subset of the p pairs. The most violated one collects
    all active pairs, found in O(n log n); each iteration adds it and solves a quadratic programme with one
    variable a constraint.

    Parameters
    ----------
    C : float
        Weight of the mean over pairs; the C of a sum over pairs is C/p.
    epsilon : float
        Largest amount by which a constraint may be violated, which is the largest gap.
    max_iter : int
        Most constraints.
    warm_start : bool
        Start from the previous fit's weights.

    Notes
    -----
    ``objective_`` and ``gap_`` are on the scale of the mean loss: the formula above divided by C. The gap is
    the objective less the minimum under the constraints so far, a proven lower bound, and ends ≤ epsilon
    unless ``max_iter`` ends the iteration first. With weights per query, p is the sum of the pairs' weights.

    References
    ----------
    T. Joachims: Training Linear SVMs in Linear Time, KDD 2006. LETOR's RankSVM-Struct is its tool SVM-rank.
    """

    C: Positive = 100.0
    epsilon: Positive = 1e-3
    _: KW_ONLY
    max_iter: Count = 1000
    warm_start: bool = False

    def _problem(self, data: Dataset, query_weight: FloatArray | None) -> Problem:
        objective = make_objective(data, "hinge", query_weight)
        return Problem(objective, Ridge(1.0 / self.C), objective.varies)

    def _solver(self, problem: Problem) -> Solver:
        return CuttingPlane(self.epsilon, self.max_iter)
