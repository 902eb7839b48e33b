"""SVM-MAP: the structural SVM for mean average precision, by cutting planes."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.estimators.parameters import Count, Positive
from ranksieve.estimators.solved import SolvedRanker
from ranksieve.losses import AveragePrecisionHinge
from ranksieve.objective import make_objective
from ranksieve.penalties import Ridge
from ranksieve.solvers import CuttingPlane, Problem, Solver


@dataclass(eq=False, repr=False)
class SVMMAP(SolvedRanker):
    """min_w (1/2C)‖w‖² + (1/m) Σ_q max_π [1 − AP(π) − ⟨w, Ψ(π*) − Ψ(π)⟩] over the rankings π of each query.

    Ψ(π) = (1/RI) Σ_{i relevant, j not} ±(x_i − x_j), + where π puts i above j; π* puts all R relevant
    documents above the I others; m counts the queries that have both kinds. The inner maximum, an
    upper bound of 1 − AP, is found exactly: both kinds sorted by score, then one place for each irrelevant
    document. 1-slack cutting planes stop when the duality gap is at most ``epsilon``.

    Parameters
    ----------
    C : float
        Weight of the loss; times C this is the paper's ½‖w‖² + (C/m) Σ ξ_q.
    epsilon : float
        Largest duality gap (absolute; the loss at w = 0 is at most 1).
    relevant_from : float, optional
        The lowest label that counts as relevant. By default 1; if that makes all documents alike, any label
        above the lowest one.
    max_iter : int
        Most planes.
    warm_start : bool
        Start from the previous fit's weights.

    Attributes
    ----------
    gap_ : float
        The objective is at most this far above its minimum.

    References
    ----------
    Y. Yue, T. Finley, F. Radlinski, T. Joachims: A Support Vector Method for Optimizing Average Precision,
    SIGIR 2007. The planes: T. Joachims, T. Finley, C.-N. J. Yu: Cutting-Plane Training of Structural SVMs,
    Machine Learning 77, 2009.
    """

    weighs_documents = False

    C: Positive = 10.0
    _: KW_ONLY
    epsilon: Positive = 1e-3
    relevant_from: float | None = None
    max_iter: Count = 1000
    warm_start: bool = False

    def _problem(self, data: Dataset, query_weight: FloatArray | None) -> Problem:
        objective = make_objective(data, AveragePrecisionHinge(self.relevant_from), query_weight)
        return Problem(objective, Ridge(1.0 / self.C), objective.varies)

    def _solver(self, problem: Problem) -> Solver:
        return CuttingPlane(self.epsilon, self.max_iter)
