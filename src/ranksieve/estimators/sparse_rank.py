"""SparseRank: the mean squared hinge with ℓ1, by plain proximal gradient descent."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.estimators.parameters import Count, NotNegative, Positive
from ranksieve.estimators.solved import SolvedRanker
from ranksieve.objective import make_objective
from ranksieve.penalties import L1
from ranksieve.solvers import Problem, ProximalGradient, Solver


@dataclass(eq=False, repr=False)
class SparseRank(SolvedRanker):
    """min_w (1/p) Σ_{pairs} max(0, 1 − ⟨w, x_i − x_j⟩)² + α‖w‖₁.

    w ← prox(w − ∇f(w)/L), a gradient step and a soft threshold by α/L, without momentum. L starts at the
    curvature along the first gradient, a lower bound of the Lipschitz constant of ∇f, and doubles whenever
    f(w) lies above its quadratic model; so the objective falls in every iteration.

    Parameters
    ----------
    alpha : float
        ℓ1 weight on the mean loss, ≥ 0.
    tol : float
        Largest duality gap, as a share of the objective.
    max_iter : int
        Most iterations.
    warm_start : bool
        Start from the previous fit's weights.

    Attributes
    ----------
    gap_ : float
        Duality gap: the objective is at most this far above the minimum. With ``alpha=0`` nothing better than
        the objective itself is proven, and the fit ends with ``max_iter``.

    References
    ----------
    H. Lai, Y. Pan, Y. Tang, N. Liu: Efficient Gradient Descent Algorithm for Sparse Models with Application
    in Learning-to-Rank, Knowledge-Based Systems 49, 2013. The search for L is that of Algorithm 1 in
    F. Zhou et al.: Cost-Sensitive ListMLE Ranking Approach Based on Sparse Representation.
    """

    alpha: NotNegative = 1e-2
    _: KW_ONLY
    tol: Positive = 1e-4
    max_iter: Count = 1000
    warm_start: bool = False

    def _problem(self, data: Dataset, query_weight: FloatArray | None) -> Problem:
        objective = make_objective(data, "squared_hinge", query_weight)
        return Problem(objective, L1(self.alpha), objective.varies)

    def _solver(self, problem: Problem) -> Solver:
        return ProximalGradient(self.tol, self.max_iter)
