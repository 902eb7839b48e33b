"""What every linear ranker adds: weights, its model, and the proof about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ranksieve._types import FloatArray, IntArray, Matrix
from ranksieve._util.messages import warn_caller
from ranksieve.data.dataset import Dataset
from ranksieve.estimators.base import Ranker
from ranksieve.estimators.base_class import check_is_fitted
from ranksieve.model import LinearModel, Term
from ranksieve.solvers.base import Problem, Trace, relative

STANDARDISED = (
    "the features had mean 0 and deviation 1 when the ranker saw them, so its model is for features that are "
    "scaled already; the model of a pipeline, for features as they are, is ranksieve.to_model(pipeline)"
)


class StandardisedWarning(UserWarning):
    """A model is for features that were standardised before the ranker saw them."""


class LinearRanker(Ranker):
    """A ranker with score(x) = ⟨coef_, x⟩. Its ``fit`` sets the attributes below.

    x is filled and normalised as ``missing`` and ``normalise`` say; ``preparation_`` holds what was learned
    for that, and the model keeps it.
    """

    coef_: FloatArray
    objective_: float
    gap_: float
    n_iter_: int
    trace_: Trace

    def _normalised(self, filled: Dataset) -> Dataset:
        """As far as differences of scores go, which are all that linear rankers learn from."""
        return self.normalisation_.for_learning(filled)

    def _columns_read(self) -> IntArray:
        return np.unique([term.index for term in self._linear_model().terms]).astype(np.int64)

    def _scores_in_queries(self, X: Matrix, qid: Any) -> FloatArray:
        return self._linear_model().predict(X, qid, device=self.device)

    def _scores(self, X: Matrix) -> FloatArray:
        return self._scores_in_queries(X, None)

    def _scorer(self) -> Callable[[Dataset], FloatArray]:
        return self._linear_model().predict  # it is sent to the workers, so it holds no more than it needs

    @property
    def support_(self) -> IntArray:
        """Columns with a nonzero weight, ascending."""
        return np.flatnonzero(self.coef_)

    def to_model(self) -> LinearModel:
        """The fitted ranker as a model that can be saved, exported and explained."""
        check_is_fitted(self)
        if self._standardised:
            warn_caller(STANDARDISED, StandardisedWarning)
        return replace(
            self._linear_model(),
            method=type(self).__name__,
            parameters=self._learned_with,
            certificate={k: v for k, v in self._certificate().items() if not _unknown(v)},
            metrics=self._measured(),
            chosen_by=self._chosen_by(),
            data=self._learned_from,
        )

    def _linear_model(self) -> LinearModel:
        """What is needed to score."""
        return self._model_of(self.support_, self.coef_[self.support_])

    def _scores_with(self, coefs: FloatArray, data: Dataset) -> FloatArray:
        """Scores (documents × models) with other weights, one row per model: the bits of ``predict``."""
        used = np.flatnonzero(coefs.any(axis=0))
        return self._model_of(used, np.ones(len(used))).predict_with(coefs[:, used], data.X, data.qid)

    def _model_of(self, columns: IntArray, weights: FloatArray) -> LinearModel:
        names, sources = self._features_of(columns)
        return LinearModel(
            terms=tuple(map(Term, names, sources, weights.tolist())),
            n_features=self.n_features_in_,
            preparation=self.preparation_.of(names),
        )

    def _certificate(self) -> dict[str, Any]:
        gap = relative(self.gap_, self.objective_)
        return {"objective": float(self.objective_), "gap": float(self.gap_), "relative_gap": float(gap)}

    def stated_problem(
        self, data: Dataset, query_weight: FloatArray | None, certificate: Mapping[str, Any]
    ) -> Problem | None:
        """The problem of which a certificate gives objective and gap; None if only the fit knows it.

        The data are prepared and have the features that the certificate is about.
        """
        return None

    def _measured(self) -> dict[str, float]:
        return {}

    def _chosen_by(self) -> dict[str, str] | None:
        """The metric and the profile that the ranker chose its model by, if it did."""
        return None


def _unknown(value: Any) -> bool:
    return isinstance(value, float) and not np.isfinite(value)
