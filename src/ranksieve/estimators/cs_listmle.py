"""CS-ListMLE: cost-sensitive ListMLE without a penalty."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.data.describe import varying_columns
from ranksieve.estimators.sparse_listmle import SparseListMLE
from ranksieve.solvers.result import Callback, Result


class CSListMLE(SparseListMLE):
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

    alpha = 0.0
    stops_early = True

    def __init__(
        self,
        k: int = 10,
        *,
        solver: str = "proximal",
        max_iter: int = 1000,
        tol: float = 1e-4,
        warm_start: bool = False,
    ) -> None:
        self.k = k
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start

    def _solve(
        self,
        data: Dataset,
        start: FloatArray | None,
        query_weight: FloatArray | None,
        callback: Callback | None,
    ) -> Result:
        result = super()._solve(data, start, query_weight, callback)
        return replace(result, w=np.where(varying_columns(data), result.w, 0.0))
