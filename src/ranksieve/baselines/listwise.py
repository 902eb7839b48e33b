"""ListNet and CS-ListMLE: dense listwise rankers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import KW_ONLY, dataclass
from typing import Annotated

from ranksieve._types import FloatArray
from ranksieve.baselines.losses import ListNetLoss
from ranksieve.baselines.solvers import LBFGS
from ranksieve.data.dataset import Dataset
from ranksieve.errors import ParameterError
from ranksieve.losses import CostSensitiveListMLE, Loss
from ranksieve.objective import Objective, make_objective
from ranksieve.penalties import L1, NoPenalty, Penalty
from ranksieve.rankers.base import Ranker
from ranksieve.rankers.linear import FIRST_LIPSCHITZ_SHARE, squared_radii
from ranksieve.rankers.parameters import Count, NotNegative, Positive, one_of
from ranksieve.solvers import Problem, ProximalGradient, ProxNewton, Result, Solver


@dataclass(eq=False, repr=False)
class CSListMLE(Ranker):
    """min_w (1/q) Σ_queries (1/DCG@k) Σ_j β_j log2(1 + Σ_{t: y_t<y_j} (α_jt/β_j) e^{s_t − s_j}), s = Xw.

    This is :class:`SparseListMLE` with ``alpha=0``, the dense ranker it is compared with. Features that are
    constant within every query do not affect the ranking; their weights are 0.

    Parameters
    ----------
    k : int
        Cutoff of the NDCG@k that the loss approximates.
    solver : "proximal" or "accelerated"
        Gradient descent with the adaptive L of :class:`SparseListMLE`, without or with Nesterov's momentum.
    max_iter : int
        Maximum number of iterations; early stopping is the only regularisation.
    tol : float
        Stop when the norm of the gradient is at most ``tol`` times its norm at w = 0.
    warm_start : bool
        Start from the previous fit's weights.

    Attributes
    ----------
    gap_ : float
        NaN: without a penalty there is no bound.

    References
    ----------
    M. Lu, M. Xie, Y. Wang, J. Liu, Y. Huang: Cost-Sensitive Listwise Ranking Approach, PAKDD 2010.
    """

    k: Count = 10
    _: KW_ONLY
    solver: Annotated[str, one_of(("proximal", "accelerated"))] = "proximal"
    max_iter: Count = 1000
    tol: Positive = 1e-4
    warm_start: bool = False

    def _loss(self) -> Loss:
        return CostSensitiveListMLE(self.k)

    def _penalty(self, objective: Objective) -> Penalty:
        return NoPenalty()

    def _problem(self, data: Dataset, query_weight: FloatArray | None) -> Problem:
        objective = make_objective(data, self._loss(), query_weight)
        return Problem(objective, self._penalty(objective), objective.varies)

    def _solver(self, problem: Problem, data: Dataset) -> Solver:
        first, accelerated = first_lipschitz(problem, data), self.solver == "accelerated"
        return ProximalGradient(self.tol, self.max_iter, accelerated, stop="mapping", lipschitz=first)

    def _warn_not_converged(self, result: Result) -> None:
        """Do not warn: early stopping is the regularisation."""

    def _abilities(self) -> Collection[str]:
        return ("linear", "scale", "document_weight", "grades")


@dataclass(eq=False, repr=False)
class ListNet(Ranker):
    """min_w (1/q) Σ_queries Σ_j P_j log(P_j/Q_j) + α‖w‖₁, P = softmax(y), Q = softmax(Xw) over the query.

    The loss is the cross entropy between the top-one probabilities by labels and by scores, minus the entropy
    of P, which does not depend on w. As in the original, the label itself is the score in P. Features that
    are constant within every query do not affect the ranking; their weights are 0.

    Parameters
    ----------
    alpha : float
        ℓ1 weight on the mean loss, ≥ 0; 0 is ListNet.
    solver : "lbfgs", "gradient" or "newton"
        L-BFGS, only for ``alpha=0``; gradient descent with an adaptive rate 1/L, each step followed by soft
        thresholding; or proximal Newton, only for ``alpha`` > 0.
    max_iter : int
        Maximum number of iterations. A small number means early stopping, the regularisation of the original;
        select it on validation data.
    tol : float
        "lbfgs": stop when the largest entry of the gradient is at most ``tol`` times that at w = 0.
        "gradient": the same for the norm of the proximal gradient mapping. "newton": largest ``gap_``
        relative to the objective.
    warm_start : bool
        Start from the previous fit's weights.

    Attributes
    ----------
    gap_ : float
        F(w) − max(0, c(f(w) − ⟨g, w⟩)) with g = ∇f(w), c = min(1, α/‖g‖_∞): F(w) is at most this far above
        the minimum, because f is convex with minimum ≥ 0. NaN for ``alpha=0``: there is no bound.

    References
    ----------
    Z. Cao, T. Qin, T.-Y. Liu, M.-F. Tsai, H. Li: Learning to Rank: From Pairwise Approach to Listwise
    Approach, ICML 2007, with a linear scoring function and top-one probabilities.
    """

    alpha: NotNegative = 0.0
    _: KW_ONLY
    solver: Annotated[str, one_of(("gradient", "lbfgs", "newton"))] = "gradient"
    max_iter: Count = 1000
    tol: Positive = 1e-4
    warm_start: bool = False

    def _loss(self) -> Loss:
        return ListNetLoss()

    def _penalty(self, objective: Objective) -> Penalty:
        needs_alpha = NEEDS_ALPHA.get(self.solver)
        if needs_alpha is not None and needs_alpha != (self.alpha > 0):
            reason = f"`solver={self.solver!r}` needs {'alpha > 0' if needs_alpha else '`alpha=0`'}"
            raise ParameterError("alpha", self.alpha, f"{reason}; `solver='gradient'` accepts any alpha")
        return L1(self.alpha) if self.alpha > 0 else NoPenalty()

    def _problem(self, data: Dataset, query_weight: FloatArray | None) -> Problem:
        objective = make_objective(data, self._loss(), query_weight)
        return Problem(objective, self._penalty(objective), objective.varies)

    def _solver(self, problem: Problem, data: Dataset) -> Solver:
        if self.solver == "newton":
            return ProxNewton(self.tol, self.max_iter)
        if self.solver == "lbfgs":
            return LBFGS(self.tol, self.max_iter)
        first = first_lipschitz(problem, data)
        return ProximalGradient(self.tol, self.max_iter, stop="mapping", lipschitz=first)

    def _warn_not_converged(self, result: Result) -> None:
        """Do not warn: early stopping is the regularisation."""


NEEDS_ALPHA = {"lbfgs": False, "newton": True}


def first_lipschitz(problem: Problem, data: Dataset) -> float:
    """Return the initial L of the search; arbitrary (1) if no feature varies."""
    return FIRST_LIPSCHITZ_SHARE * problem.objective.loss.lipschitz_bound(squared_radii(data)) or 1.0
