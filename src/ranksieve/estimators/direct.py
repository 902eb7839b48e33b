"""Rankers that solve one problem: loss, penalty and solver with the parameters in their constructor."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.estimators.base import LinearRanker
from ranksieve.solvers.result import Callback, Result


class DirectRanker(LinearRanker):
    """A ranker whose ``fit`` is one call of a solver.

    Subclasses implement ``_solve(data, start, query_weight, callback)``; with a parameter ``warm_start`` the
    previous weights are the start of the next fit.
    """

    def fit(
        self,
        X: Any,
        y: Any = None,
        qid: Any = None,
        *,
        query_weight: FloatArray | None = None,
        callback: Callback | None = None,
    ) -> Self:
        """Learn the weights.

        Parameters
        ----------
        X : Dataset, array, CSR matrix or frame
        y, qid : arrays
            Labels and query ids, unless X is a Dataset.
        query_weight : array, optional
            One weight a query, in order of first appearance.
        callback : callable, optional
            Called once an iteration with (iteration, weights, objective, gap).
        """
        data = self._training_data(X, y, qid)
        result = self._solve(data, self._start(data.n_features), query_weight, callback)
        self.coef_ = result.w
        self.objective_, self.gap_ = float(result.objective), float(result.gap)
        self.n_iter_, self.converged_, self.trace_ = result.n_iter, result.converged, result.trace
        return self

    def _solve(
        self,
        data: Dataset,
        start: FloatArray | None,
        query_weight: FloatArray | None,
        callback: Callback | None,
    ) -> Result:
        raise NotImplementedError

    def _start(self, n_features: int) -> FloatArray | None:
        previous = getattr(self, "coef_", None)
        if not getattr(self, "warm_start", False) or previous is None or len(previous) != n_features:
            return None
        return np.asarray(previous)
