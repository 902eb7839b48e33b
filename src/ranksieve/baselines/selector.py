"""Base class of feature selectors, which choose features and then fit a linear ranker on them."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from sklearn.base import clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ranksieve._parallel import single_threaded_blas
from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve.data.dataset import Dataset, QueryWeight
from ranksieve.data.describe import varying_columns
from ranksieve.errors import DataError, ParameterError, warn_caller
from ranksieve.prepare.missing import INDICATOR
from ranksieve.prepare.scaling import ScaleWarning
from ranksieve.rankers import RankSVM
from ranksieve.rankers.base import Attributes, Ranker, Task
from ranksieve.rankers.parameters import check_parameters
from ranksieve.solvers import Problem, Trace

NO_VARYING_FEATURE = (
    "none of the {n} features varies within a query with different labels, so there is nothing to select"
)

Selection: TypeAlias = tuple[IntArray, Attributes]
"""Selected columns in order of selection, and further fitted attributes."""
TIE_DIGITS = 9  # digits of a relative value that are free of rounding errors


class FeatureSelector(SelectorMixin, Ranker):  # type: ignore[misc]
    """A scikit-learn selector that is also a ranker: ``base``, fitted on the selected features.

    ``transform`` keeps the selected columns, ``predict`` scores with the weights of the base. Features that
    are constant within every query are never selected. Subclasses have a parameter ``base`` and define
    ``_select``.

    Attributes
    ----------
    selected_ : array
        Selected columns, in order of selection. ``support_`` holds those with a nonzero weight in the base.
    base_ : ranker or None
        The base, fitted on the selected columns in ascending order; None if no feature was selected.
    coef_ : array
        Weights of the base, one per column of X; 0 for columns that were not selected.
    choice_seconds_ : float
        Seconds spent on selection, without the fit of the base.
    """

    refit_parameters: ClassVar[frozenset[str]] = frozenset({"base"})  # those that may change before ``refit``

    base: Any
    selected_: IntArray
    base_: Any
    choice_seconds_: float
    _choice: Attributes  # the fitted attributes that ``refit`` keeps

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any = None,
        qid: Any = None,
        *,
        query_weight: QueryWeight | None = None,
        document_weight: Any = None,
        **others: Any,
    ) -> Self:
        """Select features and fit the base on them; arguments as in :meth:`ranksieve.RankSVM.fit`."""
        return self._learn(X, y, qid, query_weight=query_weight, document_weight=document_weight, **others)

    def _task(self, X: Any, y: Any = None, qid: Any = None, **options: Any) -> Task:
        if self.missing == INDICATOR:
            reason = f"{type(self).__name__} cannot add columns; use for example `missing='column_mean'`"
            raise ParameterError("missing", self.missing, reason)
        return super()._task(X, y, qid, **options)

    def _fit(self, task: Task) -> Attributes:
        base, start = self._make_base(), time.perf_counter()
        selected, attributes = self._select(task.data, usable_features(task.data), task.query_weight)
        seconds = time.perf_counter() - start
        choice = {"selected_": selected, **attributes, "choice_seconds_": seconds}
        return self._all_attributes(base, task, choice)

    def refit(
        self, X: Any, y: Any = None, qid: Any = None, *, query_weight: Any = None, document_weight: Any = None
    ) -> Self:
        """Fit ``base``, which may have changed, on the features that are already selected.

        The arguments are those of :meth:`fit`. The result equals that of :meth:`fit` on the same data if the
        selection does not depend on the changed parameters (:meth:`chooses_like`).
        """
        check_is_fitted(self)
        check_parameters(self)
        with single_threaded_blas():
            task = self._task(X, y, qid, query_weight=query_weight, document_weight=document_weight)
            if task.source.n_features != self.n_features_in_:
                reason = f"X has {task.source.n_features} features, but {type(self).__name__} was fitted with"
                advice = "use the data of its fit, or call fit to select features again"
                raise DataError(None, None, f"{reason} {self.n_features_in_}; {advice}")
            choice = {**self._choice, **self._update_selection(usable_features(task.data))}
            fitted = self._all_attributes(self._make_base(), task, choice)
        self._set(task.origin, fitted)
        return self

    def _update_selection(self, usable: IntArray) -> Attributes:
        """Return the attributes that depend on ``refit_parameters``, such as ``selected_``."""
        return {}

    def chooses_like(self, other: FeatureSelector) -> bool:
        """Return True if both selectors differ at most in ``refit_parameters``, such as the base."""
        if type(self) is not type(other):
            return False
        ours, theirs = (
            {k: v for k, v in selector._stated_parameters().items() if k not in self.refit_parameters}
            for selector in (self, other)
        )
        return ours == theirs

    @abstractmethod
    def _select(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> Selection:
        """Select features among the ``usable`` columns."""

    def _make_base(self) -> Any:
        """Return an unfitted copy of ``base``; RankSVM if it is None."""
        return make_base(self.base)

    def _all_attributes(self, base: Any, task: Task, choice: Attributes) -> Attributes:
        """Fit the base on the selected columns; return the attributes of the selection and of the base."""
        if len(choice["selected_"]):
            fitted = self._fit_base(base, task.data, task.query_weight, choice)
        else:
            warn_caller(
                f"{type(self).__name__} selected no feature, so every score is 0; {self._advice(choice)}"
            )
            fitted = {**base_attributes(None, np.zeros(task.data.n_features)), "n_iter_": 0}
        return {"_choice": choice, **choice, **fitted}

    def _fit_base(
        self, base: Any, data: Dataset, query_weight: FloatArray | None, choice: Attributes
    ) -> Attributes:
        """Fit the base on the selected columns and return its attributes; ``coef_`` covers all columns."""
        columns, coef = np.sort(choice["selected_"]), np.zeros(data.n_features)
        fitted = fit_on(base, data, columns, query_weight)
        coef[columns] = fitted.coef_
        return base_attributes(fitted, coef)

    def transform(self, X: Any) -> Any:
        """Return the selected columns of X in ascending order; as a Dataset if X is one."""
        if not isinstance(X, Dataset):
            return super().transform(X)
        check_is_fitted(self)
        data = self._in_training_order(X)
        selected = self._transform(self._checked_features(data))
        return data.replace_features(
            selected, [data.feature_names[j] for j in self.get_support(indices=True)]
        )

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.selected_] = True
        return mask

    def _certificate(self) -> dict[str, Any]:
        """Return the certificate of the base, with the names of its features."""
        names = self.coef_names_
        features = {"features": [names[j] for j in np.sort(self.selected_)]} if len(self.selected_) else {}
        return super()._certificate() | features

    def stated_problem(
        self, data: Dataset, query_weight: FloatArray | None, certificate: Mapping[str, Any]
    ) -> Problem | None:
        base = self._make_base()
        return base.stated_problem(data, query_weight, certificate) if isinstance(base, Ranker) else None

    def _stated_parameters(self) -> dict[str, Any]:
        """Return the parameters, with those of the base if it is a ranker of this package."""
        stated = super()._stated_parameters()
        if isinstance(self.base, Ranker):
            stated["base"] = {
                "method": type(self.base).__name__,
                "parameters": self.base._stated_parameters(),
            }
        return stated

    def _advice(self, choice: Attributes) -> str:
        """Return advice for the warning that no feature was selected."""
        return "select more features"


def base_attributes(base: Any, coef: FloatArray) -> Attributes:
    """Return the fitted attributes of a base; ``coef`` has one weight per column of X."""
    return {
        "base_": base,
        "coef_": coef,
        "objective_": float(getattr(base, "objective_", np.nan)),
        "gap_": float(getattr(base, "gap_", np.nan)),
        "n_iter_": int(getattr(base, "n_iter_", 1)),
        "trace_": getattr(base, "trace_", Trace()),
    }


def usable_features(data: Dataset) -> IntArray:
    """Return the columns that vary within some query; raise an error if there are none."""
    usable = np.flatnonzero(varying_columns(data))
    if not len(usable):
        raise DataError(None, None, NO_VARYING_FEATURE.format(n=data.n_features))
    return usable


def make_base(base: Any) -> Any:
    """Return an unfitted copy of the second-stage ranker; RankSVM if it is None."""
    if base is None:
        return RankSVM()
    if isinstance(base, type):
        raise ParameterError("base", base, f"must be a ranker, not a class; use {base.__name__}()")
    missing = [method for method in ("fit", "get_params") if not hasattr(base, method)]
    if missing:
        reason = f"must be a linear ranker such as RankSVM(), but has no {' and no '.join(missing)}"
        raise ParameterError("base", base, reason)
    return _without_preparation(base) if isinstance(base, Ranker) else clone(base)


def _without_preparation(base: Ranker) -> Any:
    """Return a copy that uses features unchanged, because the selector has already prepared them."""
    changed = " and ".join(
        f"{name}={getattr(base, name)!r}"
        for name in ("normalise", "missing")
        if getattr(base, name) != getattr(type(base), name)
    )
    if changed:
        reason = f"the selector prepares the features; set {changed} on the selector instead of the base"
        raise ParameterError("base", base, reason)
    return clone(base).set_params(normalise="none", missing="error")


def fit_on(base: Any, data: Dataset, columns: IntArray, query_weight: FloatArray | None) -> Any:
    """Fit ``base`` on some columns and return it; raise an error if it is not a linear ranker."""
    with warnings.catch_warnings():  # the selector has already warned
        warnings.simplefilter("ignore", ScaleWarning)
        base.fit(data.select_features(columns), **query_weight_argument(base, query_weight))
    if np.shape(getattr(base, "coef_", ())) != (len(columns),):
        raise ParameterError(
            "base",
            base,
            "must be a linear ranker, with one weight per feature in coef_; put the selector before "
            f"{type(base).__name__} in a Pipeline instead",
        )
    return base


def query_weight_argument(base: Any, query_weight: FloatArray | None) -> dict[str, Any]:
    """Return the keyword argument of ``base.fit`` for query weights; empty if there are none."""
    if query_weight is None:
        return {}
    if not has_fit_parameter(base, "query_weight"):
        raise ParameterError("base", base, "does not support query weights; omit `query_weight`")
    return {"query_weight": query_weight}


def check_size(size: int, usable: IntArray, data: Dataset, name: str = "max_features") -> None:
    """Raise an error if more features are to be selected than vary within a query."""
    if size > len(usable):
        reason = f"only {len(usable)} of the {data.n_features} features vary within a query"
        raise ParameterError(name, size, f"{reason}; use at most {len(usable)}")


def round_to_ties(values: FloatArray) -> FloatArray:
    """Divide by the largest absolute value and round, so that values equal up to rounding errors are ties."""
    largest_size = max(float(np.max(np.abs(values))), np.finfo(np.float64).tiny)
    return np.round(values / largest_size, TIE_DIGITS)


def largest(values: FloatArray, columns: IntArray, k: int) -> IntArray:
    """Return the k of ``columns`` with the largest values, largest first, ties broken by column order."""
    return columns[np.argsort(-values[columns], kind="stable")[:k]]
