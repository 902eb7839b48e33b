"""Rankers that solve one problem: loss, penalty and solver with the parameters in their constructor."""

from __future__ import annotations

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.estimators.base import LinearRanker, PlainFit
from ranksieve.solvers.result import Callback, Result


class DirectRanker(PlainFit, LinearRanker):
    """A ranker whose ``fit`` is one call of a solver.

    Subclasses implement ``_solve(data, start, query_weight, callback)``; with a parameter ``warm_start`` the
    previous weights are the start of the next fit.
    """

    def _learn(self, data: Dataset, query_weight: FloatArray | None, callback: Callback | None) -> None:
        result = self._solve(data, self._start(data.n_features), query_weight, callback)
        self.coef_ = result.w
        self.objective_, self.gap_ = float(result.objective), float(result.gap)
        self.n_iter_, self.converged_, self.trace_ = result.n_iter, result.converged, result.trace

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
