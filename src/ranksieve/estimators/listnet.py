"""ListNet: the cross entropy of the probabilities to come first, with or without ℓ1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Annotated

from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.errors import ParameterError
from ranksieve.estimators.parameters import Count, NotNegative, Positive, one_of
from ranksieve.estimators.solved import SolvedRanker
from ranksieve.estimators.sparse_listmle import FIRST_SHARE, PENALISED_SOLVERS, squared_radii
from ranksieve.objective import make_objective
from ranksieve.penalties import L1, NoPenalty
from ranksieve.solvers import LBFGS, Problem, Solver


@dataclass(eq=False, repr=False)
class ListNet(SolvedRanker):
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

    stops_early = True

    alpha: NotNegative = 0.0
    _: KW_ONLY
    solver: Annotated[str, one_of(("gradient", "lbfgs", "newton"))] = "gradient"
    max_iter: Count = 1000
    tol: Positive = 1e-4
    warm_start: bool = False

    def _problem(self, data: Dataset, query_weight: FloatArray | None) -> Problem:
        needed = NEEDS_ALPHA.get(self.solver)
        if needed is not None and needed != (self.alpha > 0):
            reason = f"`solver={self.solver!r}` needs {'alpha > 0' if needed else '`alpha=0`'}"
            raise ParameterError("alpha", self.alpha, f"{reason}; `solver='gradient'` accepts any")
        objective = make_objective(data, "listnet", query_weight)
        self._lipschitz = FIRST_SHARE * objective.loss.lipschitz_bound(squared_radii(data))
        return Problem(objective, L1(self.alpha) if self.alpha > 0 else NoPenalty(), objective.varies)

    def _solver(self, problem: Problem) -> Solver:
        return LISTNET_SOLVERS[self.solver](self.tol, self.max_iter, self._lipschitz)


def _lbfgs(tol: float, max_iter: int, lipschitz: float) -> Solver:
    return LBFGS(tol, max_iter)


LISTNET_SOLVERS: dict[str, Callable[[float, int, float], Solver]] = {
    "gradient": PENALISED_SOLVERS["proximal"],
    "lbfgs": _lbfgs,
    "newton": PENALISED_SOLVERS["newton"],
}
NEEDS_ALPHA = {"lbfgs": False, "newton": True}
