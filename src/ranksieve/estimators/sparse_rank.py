"""SparseRank: the mean squared hinge with ℓ1, by plain proximal gradient descent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.data.describe import varying_columns
from ranksieve.estimators.checks import check_at_least, check_not_negative, check_positive
from ranksieve.estimators.direct import DirectRanker
from ranksieve.objective import Objective, Point
from ranksieve.path import make_objective
from ranksieve.penalties.l1 import L1
from ranksieve.solvers.certificate import duality_gap
from ranksieve.solvers.fista import curvature_along_gradient
from ranksieve.solvers.proximal import proximal_gradient, small_gap
from ranksieve.solvers.result import Callback, Result


class SparseRank(DirectRanker):
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

    def __init__(
        self,
        alpha: float = 1e-2,
        *,
        tol: float = 1e-4,
        max_iter: int = 1000,
        warm_start: bool = False,
    ) -> None:
        self.alpha = alpha
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
        check_not_negative("alpha", self.alpha)
        check_positive("tol", self.tol)
        check_at_least("max_iter", self.max_iter, 1)
        objective = make_objective(data, query_weight)
        result = plain_descent(
            objective, L1(self.alpha), start, tol=self.tol, max_iter=self.max_iter, callback=callback
        )
        return replace(result, w=np.where(varying_columns(data), result.w, 0.0))


def plain_descent(
    objective: Objective,
    penalty: L1,
    start: FloatArray | None,
    *,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
) -> Result:
    """Proximal gradient without momentum, stopped by the duality gap."""

    def gap(point: Point) -> float:
        return duality_gap(objective, penalty, point, objective.gradient(point))[1]

    return proximal_gradient(
        objective,
        penalty,
        start,
        lipschitz=curvature_along_gradient(objective),
        stop=small_gap(gap, tol),
        max_iter=max_iter,
        callback=callback,
    )
