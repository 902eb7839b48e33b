"""Rankers from outside the package: a class with ``fit`` and ``predict`` becomes a ranker."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from ranksieve._types import FloatArray, IntArray, Matrix
from ranksieve._util.files import to_plain
from ranksieve.data.dataset import Dataset
from ranksieve.data.matrix import as_plain
from ranksieve.errors import DataError, ParameterError
from ranksieve.model.linear import LinearModel
from ranksieve.rankers.base import Attributes, Ranker, Task, as_dataset
from ranksieve.show.result import Summary

NO_WEIGHTS = (
    "{} has no `coef_`, one weight per feature, from which its scores could be computed; only evaluate and "
    "bench accept it"
)
LINEAR_TOL = 1e-8  # of the largest score: above the rounding of another order of the sum


@dataclass(eq=False, repr=False)
class OwnRanker(Ranker):
    """A ranker around an object with ``fit`` and ``predict``, such as a regressor of scikit-learn.

    ``fit`` gets dense or CSR features and labels, and the queries by the argument that it has: ``qid`` (one
    id per row), ``group`` (numbers of rows) or ``groups`` (ids); without one, it learns without queries.
    ``predict`` gets features. The ranker is linear if ``coef_`` has one weight per feature and explains the
    scores up to a constant.

    Parameters
    ----------
    estimator : object
        It is copied, not fitted.
    normalise, missing
        As in :class:`ranksieve.RankSVM`.

    Attributes
    ----------
    estimator_ : object
        The fitted copy.
    coef_ : array
        Its weights, if it is linear.
    """

    estimator_: Any = field(init=False)

    estimator: Any = None
    _: KW_ONLY

    def _fit(self, task: Task) -> Attributes:
        if task.query_weight is not None:
            reason = f"{self._model_name} does not support them; omit them"
            raise ParameterError("query_weight", task.query_weight, reason)
        data, estimator = task.data, deepcopy(self.estimator)
        order = data.queries.order  # rows of a query one after the other, as `group` requires
        X = as_plain(data.select_rows(order).X)
        estimator.fit(X, data.y[order], **self._queries(estimator, data, order))
        scores = np.asarray(estimator.predict(X), dtype=np.float64)
        if scores.shape != (data.n_docs,):
            reason = f"predict of {self._model_name} must return one score per row, got shape {scores.shape}"
            raise DataError(None, None, reason)
        coef = _explaining_weights(getattr(estimator, "coef_", None), X, scores)
        nothing = {"objective_": np.nan, "gap_": np.nan, "n_iter_": 1}
        return {"estimator_": estimator, **({} if coef is None else {"coef_": coef, **nothing})}

    def _queries(self, estimator: Any, data: Dataset, order: IntArray) -> dict[str, Any]:
        takes = inspect.signature(estimator.fit).parameters
        ids = data.queries.query_of_grouped
        if "group" in takes:
            return {"group": data.queries.sizes}
        return {name: ids for name in ("qid", "groups") if name in takes}

    @property
    def _model_name(self) -> str:
        return type(self.estimator).__name__

    def _abilities(self) -> Collection[str]:
        unknown = not hasattr(self, "estimator_")
        return ("linear",) if unknown or hasattr(self, "coef_") else ()

    def _scores(self, X: Matrix, qid: Any) -> FloatArray:
        if self.can("linear"):
            return super()._scores(X, qid)
        if self.preparation_.changes_features:
            ids = qid if self.preparation_.per_query else None
            X = self.preparation_.apply(as_dataset(X, np.zeros(X.shape[0]), ids, self._origin.names)).X
        return np.asarray(self.estimator_.predict(as_plain(X)), dtype=np.float64)

    def _columns_read(self) -> IntArray:
        return super()._columns_read() if self.can("linear") else np.arange(self.n_features_in_)

    def _linear_model(self) -> LinearModel:
        if not self.can("linear"):
            raise DataError(None, None, NO_WEIGHTS.format(self._model_name))
        return super()._linear_model()

    def summary(self, scaled: bool = False) -> Summary:
        """Held-out metric, features with their weights; only the name if it is not linear."""
        if self.can("linear"):
            return super().summary(scaled)
        return Summary([f"{self._model_name} has no weights to show."])

    def _certificate(self) -> dict[str, Any]:
        return {}

    def _stated_parameters(self) -> dict[str, Any]:
        return {
            **to_plain(parameters_of(self.estimator)),
            "normalise": self.normalise,
            "missing": self.missing,
        }


def parameters_of(estimator: Any) -> dict[str, Any]:
    """Parameters of an object or the defaults of a class: by ``get_params``, else by its constructor."""
    if hasattr(estimator, "get_params") and not isinstance(estimator, type):
        return dict(estimator.get_params(deep=False))
    kind = estimator if isinstance(estimator, type) else type(estimator)
    accepted = [one for one in inspect.signature(kind).parameters.values() if one.kind in NAMED]
    return {one.name: getattr(estimator, one.name, _default(one)) for one in accepted}


NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def _default(parameter: inspect.Parameter) -> Any:
    return None if parameter.default is inspect.Parameter.empty else parameter.default


def with_parameters(estimator: Any, parameters: Mapping[str, Any]) -> Any:
    """An object of a class with these parameters, or a copy of an object in which they are set."""
    if isinstance(estimator, type):
        return estimator(**parameters)
    return (
        type(estimator)(**{**parameters_of(estimator), **parameters}) if parameters else deepcopy(estimator)
    )


def _explaining_weights(coef: Any, X: Matrix, scores: FloatArray) -> FloatArray | None:
    """``coef_`` as one weight per feature, if the scores are its products with the rows and a constant."""
    weights = np.ravel(np.asarray(coef, dtype=np.float64)) if coef is not None else np.empty(0)
    if len(weights) != X.shape[1] or not np.isfinite(weights).all():
        return None
    constant = scores - X @ weights
    return weights if np.ptp(constant) <= LINEAR_TOL * max(np.abs(scores).max(), 1.0) else None
