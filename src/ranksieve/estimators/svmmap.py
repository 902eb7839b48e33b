"""SVM-MAP: the structural SVM for mean average precision, by cutting planes."""

from __future__ import annotations

import numpy as np

from ranksieve._parallel import map_blocks, split_blocks
from ranksieve._types import BoolArray, FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.data.describe import varying_columns
from ranksieve.data.queries import Queries
from ranksieve.estimators.checks import check_at_least, check_positive
from ranksieve.estimators.direct import DirectRanker
from ranksieve.kernels.ordering import centre_and_sort
from ranksieve.kernels.violated_ranking import violated_rankings
from ranksieve.losses.base import ScoreValue, checked_query_weight
from ranksieve.objective import Objective
from ranksieve.penalties.ridge import Ridge
from ranksieve.solvers.cutting_plane import cutting_plane
from ranksieve.solvers.result import Callback, Result

NO_PAIRS = (
    "there is no pair to learn from: no query has both a relevant document and another one; "
    "set relevant_from to the lowest label that counts as relevant"
)


class SVMMAP(DirectRanker):
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

    def __init__(
        self,
        C: float = 10.0,
        *,
        epsilon: float = 1e-3,
        relevant_from: float | None = None,
        max_iter: int = 1000,
        warm_start: bool = False,
    ) -> None:
        self.C = C
        self.epsilon = epsilon
        self.relevant_from = relevant_from
        self.max_iter = max_iter
        self.warm_start = warm_start

    def _solve(
        self,
        data: Dataset,
        start: FloatArray | None,
        query_weight: FloatArray | None,
        callback: Callback | None,
    ) -> Result:
        check_positive("C", self.C)
        check_positive("epsilon", self.epsilon)
        check_at_least("max_iter", self.max_iter, 1)
        relevant = relevant_documents(data.y, self.relevant_from)
        return cutting_plane(
            Objective(data.X, AveragePrecisionHinge(relevant, data.queries, query_weight)),
            Ridge(1.0 / self.C),
            start,
            usable=varying_columns(data),
            tol=self.epsilon,
            max_iter=self.max_iter,
            callback=callback,
        )


def relevant_documents(y: FloatArray, relevant_from: float | None) -> BoolArray:
    """Which documents are relevant."""
    relevant = y >= (1.0 if relevant_from is None else relevant_from)
    alike = relevant.all() or not relevant.any()
    return np.asarray(y > y.min() if relevant_from is None and alike else relevant)


class AveragePrecisionHinge:
    """(1/m) Σ_q max_π [1 − AP(π) + ⟨c(π), s⟩] in scores s, c(π) the coefficients of Ψ(π) − Ψ(π*)."""

    def __init__(self, relevant: BoolArray, queries: Queries, query_weight: FloatArray | None = None) -> None:
        self.queries = queries
        self._relevant = queries.group(relevant)
        n_relevant = np.add.reduceat(self._relevant.astype(np.int64), queries.offsets[:-1])
        both = (n_relevant > 0) & (n_relevant < queries.sizes)
        self._weight = checked_query_weight(query_weight, queries.n_queries)
        self.normaliser = float(both @ self._weight)
        if self.normaliser <= 0:
            raise ValueError(NO_PAIRS)
        self.cuts = split_blocks(queries.offsets)
        self._order = np.arange(queries.n_rows)

    def evaluate(self, s: FloatArray) -> ScoreValue:
        """Value and subgradient from the most violated rankings; ``slack`` is Σ (1 − AP) of these."""
        t, gradient, order = np.empty(len(s)), np.empty(len(s)), self._order.copy()
        missed, value = np.empty(self.queries.n_queries), np.empty(self.queries.n_queries)

        def work(first: int, last: int) -> None:
            offsets = self.queries.offsets
            centre_and_sort(s, t, order, offsets, first, last)
            violated_rankings(t, self._relevant, order, offsets, first, last, gradient, missed, value)

        map_blocks(work, self.cuts)
        self._order = order  # the next scores are near these: sorting from here is nearly free
        gradient *= np.repeat(self._weight, self.queries.sizes)
        return ScoreValue(float(value @ self._weight), gradient, float(missed @ self._weight))

    def half_curvature(self, at: ScoreValue, first: int, last: int, V: FloatArray) -> FloatArray:
        """0: between its kinks the loss is linear."""
        return np.zeros_like(V)

    def dual(self, value: float, slack: float, scale: float) -> float:
        """D = c·(1/m)Σ(1 − AP) for a share c ≤ 1 of the violated rankings, the rest on the perfect one."""
        return scale * slack
