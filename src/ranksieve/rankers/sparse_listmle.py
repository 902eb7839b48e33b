"""Sparse cost-sensitive ListMLE: a listwise loss aimed at NDCG@k plus ℓ1, by proximal gradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np

from ranksieve._types import FloatArray, Matrix
from ranksieve.data.dataset import Dataset
from ranksieve.data.parts import for_queries
from ranksieve.errors import ParameterError
from ranksieve.losses import CostSensitiveListMLE
from ranksieve.objective import make_objective
from ranksieve.penalties import L1, NoPenalty
from ranksieve.rankers.base import SolvedRanker
from ranksieve.rankers.parameters import Count, NotNegative, Positive, one_of
from ranksieve.solvers import Problem, ProximalGradient, ProxNewton, Solver

FIRST_SHARE = 2.0**-8  # of the Lipschitz bound: where the search for L starts


@dataclass(eq=False, repr=False)
class SparseListMLE(SolvedRanker):
    """min_w (1/q) Σ_queries (1/DCG@k) Σ_j β_j log2(1 + Σ_{t: y_t<y_j} (α_jt/β_j) e^{s_t − s_j}) + α‖w‖₁.

    s = Xw; α_jt and β_j say how much DCG@k suffers when document j slips below document t, or below all that
    are worse (:class:`ranksieve.losses.CostSensitiveListMLE`). ``alpha=0`` is CS-ListMLE, the dense ranker.

    The paper's iteration is w ← prox(w − ∇f(w)/L). L starts at L0/2⁸, L0 the bound of Theorem 1, and doubles
    whenever f(w) lies above its quadratic model. It stops when the proximal gradient mapping, L times the
    step, has fallen to ``tol`` times its norm at w = 0.

    Parameters
    ----------
    alpha : float
        ℓ1 weight λ on the mean loss, ≥ 0. The paper chooses it among 1e-7, 1e-6, …, 1e-1 on validation data;
        the loss at w = 0 is Σ_j β_j / DCG@k, often far above 1, so larger values are worth trying.
    k : int
        The loss aims at NDCG@k. The paper uses 1, 3, 5, 8 and 10.
    solver : "proximal", "accelerated" or "newton"
        The paper's iteration; the same with Nesterov's momentum, restarted when the objective rises; or
        proximal Newton, which reaches the optimum in few steps and needs ``alpha`` > 0.
    max_iter : int
        Most iterations. The paper's iteration often ends here, and then stops short of the optimum: ``gap_``
        tells how far.
    tol : float
        Share of the first gradient mapping at which to stop; for "newton" the largest ``gap_`` as a share of
        the objective.
    warm_start : bool
        Start from the previous fit's weights.

    Attributes
    ----------
    gap_ : float
        F(w) − c(f(w) − ⟨g, w⟩) with g = ∇f(w), c = min(1, α/‖g‖_∞): F(w) is at most this far above the
        minimum, because f is convex and not negative. NaN for ``alpha=0``, where nothing is proven.
    trace_ : Trace
        One entry an iteration, the start included; the gap is NaN before the last, except with "newton".

    References
    ----------
    F. Zhou et al.: Cost-Sensitive ListMLE Ranking Approach Based on Sparse Representation. The dense loss:
    M. Lu, M. Xie, Y. Wang, J. Liu, Y. Huang: Cost-Sensitive Listwise Ranking Approach, PAKDD 2010.
    Sums over t = j+1, … take documents as sorted by label. Theorem 1 lacks the 1/ln 2 of log2 and holds for
    feature ranges, not for largest values. A stopping rule on ‖∇f(w)‖ cannot hold at an ℓ1 optimum, where
    ∇f does not vanish; hence the mapping. L0/γᵖ, p the number of iterations, cannot be the start of L;
    hence 2⁸.
    """

    works_in_parts = True

    alpha: NotNegative = 1e-3
    k: Count = 10
    _: KW_ONLY
    solver: Annotated[str, one_of(("proximal", "accelerated", "newton"))] = "proximal"
    max_iter: Count = 1000
    tol: Positive = 1e-4
    warm_start: bool = False

    def _problem(self, data: Dataset, query_weight: FloatArray | None) -> Problem:
        if self.solver == "newton" and self.alpha == 0:
            reason = "`solver='newton'` needs alpha > 0; use `solver='proximal'` or `solver='accelerated'`"
            raise ParameterError("alpha", self.alpha, reason)
        objective = make_objective(data, CostSensitiveListMLE(self.k), query_weight)
        self._lipschitz = FIRST_SHARE * objective.loss.lipschitz_bound(squared_radii(data))
        return Problem(objective, L1(self.alpha) if self.alpha > 0 else NoPenalty())

    def _solver(self, problem: Problem) -> Solver:
        return PENALISED_SOLVERS[self.solver](self.tol, self.max_iter, self._lipschitz)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


def by_mapping(accelerated: bool, tol: float, max_iter: int, lipschitz: float) -> Solver:
    """Proximal gradient until the gradient mapping has fallen to ``tol`` of that at w = 0."""
    first = lipschitz or 1.0  # 0 if no feature varies: any L will do
    return ProximalGradient(tol, max_iter, accelerated, stop="mapping", lipschitz=first)


def by_gap(tol: float, max_iter: int, lipschitz: float) -> Solver:
    """Proximal Newton, which needs no Lipschitz constant."""
    return ProxNewton(tol, max_iter)


PENALISED_SOLVERS: dict[str, Callable[[float, int, float], Solver]] = {
    "proximal": partial(by_mapping, False),
    "accelerated": partial(by_mapping, True),
    "newton": by_gap,
}


def squared_radii(data: Dataset) -> FloatArray:
    """Per query ¼ Σ_f (max − min of feature f)²: the ball around the middle that holds all its documents."""
    return for_queries(data, _squared_radii)


def _squared_radii(data: Dataset) -> FloatArray:
    queries = data.queries
    rows_of_query = np.split(queries.order, queries.offsets[1:-1])
    return np.array([_squared_diameter(data.X[rows]) / 4.0 for rows in rows_of_query])


def _squared_diameter(X: Matrix) -> float:
    ranges = (X.max(axis=0) - X.min(axis=0)).astype(np.float64)
    return float((ranges * ranges).sum())
