"""RankSVM-Struct: the hinge over pairs with ℓ2, by 1-slack cutting planes."""

from __future__ import annotations

from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.data.describe import varying_columns
from ranksieve.estimators.checks import check_at_least, check_positive
from ranksieve.estimators.direct import DirectRanker
from ranksieve.losses import Hinge
from ranksieve.objective import Objective
from ranksieve.penalties.ridge import Ridge
from ranksieve.solvers.cutting_plane import cutting_plane
from ranksieve.solvers.result import Callback, Result


class RankSVMStruct(DirectRanker):
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

    def __init__(
        self, C: float = 100.0, epsilon: float = 1e-3, *, max_iter: int = 1000, warm_start: bool = False
    ) -> None:
        self.C = C
        self.epsilon = epsilon
        self.max_iter = max_iter
        self.warm_start = warm_start

    def _solve(
        self,
        data: Dataset,
        start: FloatArray | None,
        query_weight: FloatArray | None,
        callback: Callback | None,
    ) -> Result:
        check_positive("C", self.C)
        check_positive("epsilon", self.epsilon)
        check_at_least("max_iter", self.max_iter, 1)
        return cutting_plane(
            Objective(data.X, Hinge().bind(data.y, data.queries, query_weight)),
            Ridge(1.0 / self.C),
            start,
            usable=varying_columns(data),
            tol=self.epsilon,
            max_iter=self.max_iter,
            callback=callback,
        )
