"""CS-ListMLE: cost-sensitive ListMLE without a penalty."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any

from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.estimators.parameters import Count, Positive, one_of
from ranksieve.estimators.solved import SolvedRanker
from ranksieve.estimators.sparse_listmle import FIRST_SHARE, PENALISED_SOLVERS, squared_radii
from ranksieve.losses import CostSensitiveListMLE
from ranksieve.objective import make_objective
from ranksieve.penalties import NoPenalty
from ranksieve.solvers import Problem, Solver


@dataclass(eq=False, repr=False)
class CSListMLE(SolvedRanker):
    """min_w (1/q) Σ_queries (1/DCG@k) Σ_j β_j log2(1 + Σ_{t: y_t<y_j} (α_jt/β_j) e^{s_t − s_j}), s = Xw.

    :class:`SparseListMLE` with ``alpha=0``: the dense ranker that it is compared with. Features that are
    constant within every query change no ranking; their weights are 0.

    Parameters
    ----------
    k : int
        The loss aims at NDCG@k.
    solver : "proximal" or "accelerated"
        Gradient descent with the adaptive L of :class:`SparseListMLE`, or the same with Nesterov's momentum.
    max_iter : int
        Most iterations; an early end is the only regulariser.
    tol : float
        Share of the gradient's norm at w = 0 at which to stop.
    warm_start : bool
        Start from the previous fit's weights.

    Attributes
    ----------
    gap_ : float
        NaN: without a penalty nothing is proven.

    References
    ----------
    M. Lu, M. Xie, Y. Wang, J. Liu, Y. Huang: Cost-Sensitive Listwise Ranking Approach, PAKDD 2010.
    """

    stops_early = True

    k: Count = 10
    _: KW_ONLY
    solver: Annotated[str, one_of(("proximal", "accelerated"))] = "proximal"
    max_iter: Count = 1000
    tol: Positive = 1e-4
    warm_start: bool = False

    def _problem(self, data: Dataset, query_weight: FloatArray | None) -> Problem:
        objective = make_objective(data, CostSensitiveListMLE(self.k), query_weight)
        self._lipschitz = FIRST_SHARE * objective.loss.lipschitz_bound(squared_radii(data))
        return Problem(objective, NoPenalty(), objective.varies)

    def _solver(self, problem: Problem) -> Solver:
        return PENALISED_SOLVERS[self.solver](self.tol, self.max_iter, self._lipschitz)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags
