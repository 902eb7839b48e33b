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

    def _warn_of_tolerance(self, result: Result) -> None:
        """No warning: an early end is the regulariser."""

    def _abilities(self) -> Collection[str]:
        return ("linear", "scale", "document_weight", "grades")


@dataclass(eq=False, repr=False)
class ListNet(Ranker):
    """min_w (1/q) Σ_queries Σ_j P_j log(P_j/Q_j) + α‖w‖₁, P = softmax(y), Q = softmax(Xw) over the query.

    The cross entropy between the probabilities of each document to come first, by labels and by scores, less
    the entropy of P, which does not depend on w (:class:`ranksieve.losses.ListNetLoss`). P takes the label
    itself as score, like the original. Features that are constant within every query change no ranking;
    their weights are 0.

    Parameters
    ----------
    alpha : float
        ℓ1 weight on the mean loss, ≥ 0; 0 is ListNet.
    solver : "lbfgs", "gradient" or "newton"
        L-BFGS, for ``alpha=0`` only; gradient descent with an adaptive rate 1/L, each step followed by the
        soft threshold; or proximal Newton, for ``alpha`` > 0 only.
    max_iter : int
        Most iterations. Few are an early stop, the regulariser of the original, worth choosing on validation
        data.
    tol : float
        Stop when the largest entry of the gradient has fallen to this share of that at w = 0; for "gradient"
        the norm of the proximal gradient mapping, for "newton" ``gap_`` as a share of the objective.
    warm_start : bool
        Start from the previous fit's weights.

    Attributes
    ----------
    gap_ : float
        F(w) − max(0, c(f(w) − ⟨g, w⟩)) with g = ∇f(w), c = min(1, α/‖g‖_∞): F(w) is at most this far above
        the minimum, because f is convex with minimum ≥ 0. NaN for ``alpha=0``, where nothing is proven.

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
        needed = NEEDS_ALPHA.get(self.solver)
        if needed is not None and needed != (self.alpha > 0):
            reason = f"`solver={self.solver!r}` needs {'alpha > 0' if needed else '`alpha=0`'}"
            raise ParameterError("alpha", self.alpha, f"{reason}; `solver='gradient'` accepts any")
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

    def _warn_of_tolerance(self, result: Result) -> None:
        """No warning: an early end is the regulariser."""


NEEDS_ALPHA = {"lbfgs": False, "newton": True}


def first_lipschitz(problem: Problem, data: Dataset) -> float:
    """Where the search for L starts; any will do if no feature varies."""
    return FIRST_LIPSCHITZ_SHARE * problem.objective.loss.lipschitz_bound(squared_radii(data)) or 1.0
