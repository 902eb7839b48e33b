"""Rankers that are solver results: a declaration of loss, penalty and solver."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.estimators.base import PlainFit
from ranksieve.estimators.linear import LinearRanker
from ranksieve.solvers.base import Callback, Problem, Result, Solver, warn_of_tolerance


class IterativeRanker(PlainFit, LinearRanker):
    """A linear ranker whose weights are a solver's result.

    With a parameter ``warm_start`` the previous weights are the start of the next fit. With ``stops_early``
    an early end is part of the method, and no warning tells of it.
    """

    stops_early: ClassVar[bool] = False
    converged_: bool

    def _adopt(self, result: Result, data: Dataset) -> None:
        self.coef_, self.objective_, self.gap_ = result.w, float(result.objective), float(result.gap)
        self.n_iter_, self.converged_, self.trace_ = result.n_iter, result.converged, result.trace
        self._weight_names = data.feature_names
        if not (result.converged or self.stops_early):
            name = "tol" if "tol" in self.get_params(deep=False) else "epsilon"
            warn_of_tolerance(
                f"{type(self).__name__} did not reach `{name}={getattr(self, name):g}` in {result.n_iter} "
                f"iterations (gap {result.gap:.2g} of the objective {result.objective:.4g}); raise "
                f"`max_iter` or `{name}`, or normalise the features"
            )

    def _start(self, data: Dataset) -> FloatArray | None:
        """The weights of the previous fit, found by the names of their features."""
        previous = getattr(self, "coef_", None)
        if not getattr(self, "warm_start", False) or previous is None:
            return None
        place = {name: j for j, name in enumerate(getattr(self, "_weight_names", data.feature_names))}
        if len(previous) != data.n_features or not place.keys() >= set(data.feature_names):
            return None
        return np.array([previous[place[name]] for name in data.feature_names])


class SolvedRanker(IterativeRanker):
    """A ranker whose ``fit`` solves one problem: a declaration of loss, penalty and solver."""

    weighs_documents = True

    @abstractmethod
    def _problem(self, data: Dataset, query_weight: FloatArray | None) -> Problem:
        """What is minimised: a loss and a penalty."""

    @abstractmethod
    def _solver(self, problem: Problem) -> Solver:
        """What minimises it."""

    def stated_problem(
        self, data: Dataset, query_weight: FloatArray | None, certificate: Mapping[str, Any]
    ) -> Problem | None:
        return self._problem(data, query_weight)

    def _learn(self, data: Dataset, query_weight: FloatArray | None, callback: Callback | None) -> None:
        problem = self._problem(data, query_weight)
        self._adopt(self._solver(problem).solve(problem, self._start(data), callback), data)
