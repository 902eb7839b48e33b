"""Rankers that solve one problem: loss, penalty and solver with the parameters in their constructor."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.estimators.base import LinearRanker, PlainFit
from ranksieve.solvers.result import Callback, Result, warn_of_tolerance


class DirectRanker(PlainFit, LinearRanker):
    """A ranker whose ``fit`` is one call of a solver.

    Subclasses implement ``_solve(data, start, query_weight, callback)``; with a parameter ``warm_start`` the
    previous weights are the start of the next fit. With ``stops_early`` an early end is part of the method:
    no warning tells of it.
    """

    stops_early: ClassVar[bool] = False

    def _learn(self, data: Dataset, query_weight: FloatArray | None, callback: Callback | None) -> None:
        result = self._solve(data, self._start(data.n_features), query_weight, callback)
        if not (result.converged or self.stops_early):
            name, tol = ("tol", self.tol) if hasattr(self, "tol") else ("epsilon", self.epsilon)
            warn_of_tolerance(
                f"{type(self).__name__} did not reach {name}={tol:g} in {result.n_iter} iterations (gap "
                f"{result.gap:.2g} of the objective {result.objective:.4g}); raise max_iter or {name}, or "
                "normalise the features",
                stacklevel=3,
            )
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
