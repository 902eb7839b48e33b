"""TGRank: the mean squared hinge with ℓ1, by truncated gradient descent."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from numbers import Real
from typing import Annotated

from ranksieve._types import FloatArray
from ranksieve._util.constraints import Interval
from ranksieve.data.dataset import Dataset
from ranksieve.estimators.parameters import Count, NotNegative, Positive
from ranksieve.estimators.solved import SolvedRanker
from ranksieve.objective import make_objective
from ranksieve.penalties import L1
from ranksieve.solvers import Problem, Result, Solver, TruncatedGradient


@dataclass(eq=False, repr=False)
class TGRank(SolvedRanker):
    """min_w (1/p) Σ_{pairs} max(0, 1 − ⟨w, x_i − x_j⟩)² + α‖w‖₁.

    Each iteration is a gradient step w ← w − η_t∇f(w). After every K of them, all weights are truncated:
    |w_j| falls by α times the sum of the last K rates η, and stops at 0. The rates are
    η_t = (step/L)/√(1 + decay·t), t = 0, 1, …, L the largest eigenvalue of the Hessian at w = 0, which is the
    Lipschitz constant of ∇f.

    Parameters
    ----------
    alpha : float
        ℓ1 weight on the mean loss, ≥ 0: the gravity of a unit step. The C of eq. (2) is 1/α.
    step : float
        The first rate, in units of 1/L: between 0 and 1.
    decay : float
        How fast rates fall; 0 keeps them.
    truncate_every : int
        K. With 1 and no decay this is proximal gradient descent and goes to the optimum. With more, weights
        end at a distance from it that grows with K·step; ``gap_`` tells how far. 10 is a choice of ours.
    tol : float
        Largest duality gap at a truncation, as a share of the objective.
    max_iter : int
        Most gradient steps.
    warm_start : bool
        Start from the previous fit's weights.

    Attributes
    ----------
    gap_ : float
        Duality gap: the objective is at most this far above the minimum.
    trace_ : Trace
        One entry per truncation, after that of the start.

    References
    ----------
    H. Lai, Y. Pan, C. Liu, L. Lin, J. Wu: Sparse Learning-to-Rank via an Efficient Primal-Dual Algorithm,
    IEEE Transactions on Computers 62(6), 2013, which compares FenchelRank with it (§8.5.1) and gives neither
    K nor the rates. Truncation: J. Langford, L. Li, T. Zhang: Sparse Online Learning via Truncated Gradient,
    Journal of Machine Learning Research 10, 2009, with θ = ∞ and all pairs in each gradient.
    """

    stops_early = True

    alpha: NotNegative = 1e-2
    _: KW_ONLY
    step: Annotated[float, Interval(Real, 0, 1, closed="right")] = 1.0
    decay: NotNegative = 0.0
    truncate_every: Count = 10
    tol: Positive = 1e-4
    max_iter: Count = 1000
    warm_start: bool = False

    def _problem(self, data: Dataset, query_weight: FloatArray | None) -> Problem:
        objective = make_objective(data, "squared_hinge", query_weight)
        return Problem(objective, L1(self.alpha), objective.varies)

    def _solver(self, problem: Problem) -> Solver:
        return TruncatedGradient(self.tol, self.max_iter, self.step, self.decay, self.truncate_every)

    def _adopt(self, result: Result, data: Dataset) -> None:
        """Iterations are gradient steps, of which the solver takes some per truncation."""
        n_iter = min(result.n_iter * self.truncate_every, self.max_iter)
        super()._adopt(replace(result, n_iter=n_iter), data)
