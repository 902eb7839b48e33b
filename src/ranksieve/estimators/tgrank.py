"""TGRank: the mean squared hinge with ℓ1, by truncated gradient descent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.data.describe import varying_columns
from ranksieve.estimators.checks import check_at_least, check_not_negative, check_positive
from ranksieve.estimators.direct import DirectRanker
from ranksieve.path import make_objective
from ranksieve.penalties.l1 import L1
from ranksieve.solvers.result import Callback, Result
from ranksieve.solvers.truncated_gradient import curvature_at_zero, truncated_gradient


class TGRank(DirectRanker):
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
        One entry a truncation.

    References
    ----------
    H. Lai, Y. Pan, C. Liu, L. Lin, J. Wu: Sparse Learning-to-Rank via an Efficient Primal-Dual Algorithm,
    IEEE Transactions on Computers 62(6), 2013, which compares FenchelRank with it (§8.5.1) and gives neither
    K nor the rates. Truncation: J. Langford, L. Li, T. Zhang: Sparse Online Learning via Truncated Gradient,
    Journal of Machine Learning Research 10, 2009, with θ = ∞ and all pairs in each gradient.
    """

    stops_early = True

    def __init__(
        self,
        alpha: float = 1e-2,
        *,
        step: float = 1.0,
        decay: float = 0.0,
        truncate_every: int = 10,
        tol: float = 1e-4,
        max_iter: int = 1000,
        warm_start: bool = False,
    ) -> None:
        self.alpha = alpha
        self.step = step
        self.decay = decay
        self.truncate_every = truncate_every
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start

    def _solve(
        self,
        data: Dataset,
        start: FloatArray | None,
        query_weight: FloatArray | None,
        callback: Callback | None,
    ) -> Result:
        self._check()
        objective = make_objective(data, query_weight)
        result = truncated_gradient(
            objective,
            L1(self.alpha),
            start,
            rate=self.step / (curvature_at_zero(objective) or 1.0),  # 0 if no feature varies
            decay=self.decay,
            every=int(self.truncate_every),
            tol=self.tol,
            max_iter=self.max_iter,
            callback=callback,
        )
        return replace(result, w=np.where(varying_columns(data), result.w, 0.0))

    def _check(self) -> None:
        check_not_negative("alpha", self.alpha)
        if not 0 < self.step <= 1:
            raise ValueError(f"step must be above 0 and at most 1 (in units of 1/L), got {self.step}")
        check_not_negative("decay", self.decay)
        check_at_least("truncate_every", self.truncate_every, 1)
        check_positive("tol", self.tol)
        check_at_least("max_iter", self.max_iter, 1)
