"""What every selector shares: features are chosen, then a linear ranker is fitted on them."""

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

NOTHING_TO_CHOOSE = (
    "none of the {n} features tells two documents of a query apart, so there is nothing to choose"
)

Selection: TypeAlias = tuple[IntArray, Attributes]
"""Chosen columns, in the order of choice, and further fitted attributes."""
DIGITS = 9  # of a share that rounding errors do not reach


class FeatureSelector(SelectorMixin, Ranker):  # type: ignore[misc]
    """A scikit-learn selector that is also the ranker ``base``, fitted on the chosen features.

    ``transform`` keeps the chosen columns, ``predict`` scores with the base's weights. Features that are
    constant within every query are never chosen. Subclasses have a parameter ``base`` and define ``_select``.

    Attributes
    ----------
    selected_ : array
        Chosen columns, in the order of choice. ``support_`` holds those of them to which the base gave a
        nonzero weight.
    base_ : ranker or None
        The base, fitted on the chosen columns in ascending order; None if no feature was chosen.
    coef_ : array
        Its weights, in full width.
    choice_seconds_ : float
        How long the choice took; the rest of the fit is the base's.
    """

    decided_last: ClassVar[frozenset[str]] = frozenset({"base"})  # parameters that ``refit`` may see changed

    base: Any
    selected_: IntArray
    base_: Any
    choice_seconds_: float
    _choice: Attributes  # of the fitted attributes those that ``refit`` keeps

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any = None,
        qid: Any = None,
        *,
        query_weight: QueryWeight | None = None,
        document_weight: Any = None,
    ) -> Self:
        """Choose features and fit the base on them; arguments are those of :meth:`ranksieve.RankSVM.fit`."""
        return self._learn(X, y, qid, query_weight=query_weight, document_weight=document_weight)

    def _task(self, X: Any, y: Any = None, qid: Any = None, **options: Any) -> Task:
        if self.missing == INDICATOR:
            reason = f"{type(self).__name__} cannot add columns; choose for example `missing='column_mean'`"
            raise ParameterError("missing", self.missing, reason)
        return super()._task(X, y, qid, **options)

    def _fit(self, task: Task) -> Attributes:
        base, began = self._second_stage(), time.perf_counter()
        selected, found = self._select(task.data, usable_features(task.data), task.query_weight)
        seconds = time.perf_counter() - began
        return self._with_base(base, task, {"selected_": selected, **found, "choice_seconds_": seconds})

    def refit(
        self, X: Any, y: Any = None, qid: Any = None, *, query_weight: Any = None, document_weight: Any = None
    ) -> Self:
        """Fit ``base``, which may be another one by now, on the features that were chosen already.

        The arguments are those of :meth:`fit`. The result is that of a whole fit to the same data, as long as
        the choice does not depend on what changed (:meth:`chooses_like`).
        """
        check_is_fitted(self)
        check_parameters(self)
        with single_threaded_blas():
            task = self._task(X, y, qid, query_weight=query_weight, document_weight=document_weight)
            if task.source.n_features != self.n_features_in_:
                reason = f"X has {task.source.n_features} features, but {type(self).__name__} chose among"
                advice = "give the data of its fit, or call fit to choose again"
                raise DataError(None, None, f"{reason} {self.n_features_in_}; {advice}")
            choice = {**self._choice, **self._select_again(usable_features(task.data))}
            fitted = self._with_base(self._second_stage(), task, choice)
        self._set(task.origin, fitted)
        return self

    def _select_again(self, usable: IntArray) -> Attributes:
        """What a changed parameter of ``decided_last`` changes in the choice, ``selected_`` included."""
        return {}

    def chooses_like(self, other: FeatureSelector) -> bool:
        """Whether what one learned of the features is what the other would, whatever their bases."""
        if type(self) is not type(other):
            return False
        ours, theirs = (
            {k: v for k, v in selector._stated_parameters().items() if k not in self.decided_last}
            for selector in (self, other)
        )
        return ours == theirs

    @abstractmethod
    def _select(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> Selection:
        """Choose among the ``usable`` columns."""

    def _second_stage(self) -> Any:
        """A copy of ``base``, ready to be fitted; RankSVM without one."""
        return fresh_base(self.base)

    def _with_base(self, base: Any, task: Task, choice: Attributes) -> Attributes:
        """All fitted attributes: those of the choice, and those of the base on the chosen columns."""
        if len(choice["selected_"]):
            fitted = self._fit_base(base, task.data, task.query_weight, choice)
        else:
            warn_caller(
                f"{type(self).__name__} chose no feature, so every score is 0; {self._advice(choice)}"
            )
            fitted = {**of_base(None, np.zeros(task.data.n_features)), "n_iter_": 0}
        return {"_choice": choice, **choice, **fitted}

    def _fit_base(
        self, base: Any, data: Dataset, query_weight: FloatArray | None, choice: Attributes
    ) -> Attributes:
        """The fitted attributes of the base on the chosen columns, its weights in full width."""
        columns, coef = np.sort(choice["selected_"]), np.zeros(data.n_features)
        fitted = fit_on(base, data, columns, query_weight)
        coef[columns] = fitted.coef_
        return of_base(fitted, coef)

    def transform(self, X: Any) -> Any:
        """The chosen columns of X, in ascending order; a Dataset gives a Dataset."""
        if not isinstance(X, Dataset):
            return super().transform(X)
        check_is_fitted(self)
        data = self._in_training_order(X)
        chosen = self._transform(self._checked_features(data))
        return data.replace_features(chosen, [data.feature_names[j] for j in self.get_support(indices=True)])

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.selected_] = True
        return mask

    def _certificate(self) -> dict[str, Any]:
        """That of the base; ``features`` are those it was fitted on."""
        names = self.coef_names_
        chosen = {"features": [names[j] for j in np.sort(self.selected_)]} if len(self.selected_) else {}
        return super()._certificate() | chosen

    def stated_problem(
        self, data: Dataset, query_weight: FloatArray | None, certificate: Mapping[str, Any]
    ) -> Problem | None:
        base = self._second_stage()
        return base.stated_problem(data, query_weight, certificate) if isinstance(base, Ranker) else None

    def _stated_parameters(self) -> dict[str, Any]:
        """With the parameters of a base of ours."""
        stated = super()._stated_parameters()
        if isinstance(self.base, Ranker):
            stated["base"] = {
                "method": type(self.base).__name__,
                "parameters": self.base._stated_parameters(),
            }
        return stated

    def _advice(self, choice: Attributes) -> str:
        """What to change when no feature was chosen."""
        return "ask for more features"


def of_base(base: Any, coef: FloatArray) -> Attributes:
    """The fitted attributes of a base, and weights in full width."""
    return {
        "base_": base,
        "coef_": coef,
        "objective_": float(getattr(base, "objective_", np.nan)),
        "gap_": float(getattr(base, "gap_", np.nan)),
        "n_iter_": int(getattr(base, "n_iter_", 1)),
        "trace_": getattr(base, "trace_", Trace()),
    }


def usable_features(data: Dataset) -> IntArray:
    """Columns that vary within a query; at least one."""
    usable = np.flatnonzero(varying_columns(data))
    if not len(usable):
        raise DataError(None, None, NOTHING_TO_CHOOSE.format(n=data.n_features))
    return usable


def fresh_base(base: Any) -> Any:
    """A copy of the second stage's ranker, RankSVM without one."""
    if base is None:
        return RankSVM()
    if isinstance(base, type):
        raise ParameterError("base", base, f"must be a ranker, not a class; give {base.__name__}()")
    missing = [method for method in ("fit", "get_params") if not hasattr(base, method)]
    if missing:
        reason = f"must be a linear ranker such as RankSVM(), but has no {' and no '.join(missing)}"
        raise ParameterError("base", base, reason)
    return _unprepared(base) if isinstance(base, Ranker) else clone(base)


def _unprepared(base: Ranker) -> Any:
    """A copy that takes features as they are: the selector has prepared them, once for the choice and it."""
    asked = " and ".join(
        f"{name}={getattr(base, name)!r}"
        for name in ("normalise", "missing")
        if getattr(base, name) != getattr(type(base), name)
    )
    if asked:
        reason = f"the selector prepares the features; give {asked} to it instead of the base"
        raise ParameterError("base", base, reason)
    return clone(base).set_params(normalise="none", missing="error")


def fit_on(base: Any, data: Dataset, columns: IntArray, query_weight: FloatArray | None) -> Any:
    """``base``, fitted on some columns."""
    with warnings.catch_warnings():  # the selector has said it
        warnings.simplefilter("ignore", ScaleWarning)
        base.fit(data.select_features(columns), **weighted(base, query_weight))
    if np.shape(getattr(base, "coef_", ())) != (len(columns),):
        raise ParameterError(
            "base",
            base,
            "must be a linear ranker, with one weight per feature in coef_; use the selector before "
            f"{type(base).__name__} in a Pipeline instead",
        )
    return base


def weighted(base: Any, query_weight: FloatArray | None) -> dict[str, Any]:
    """The argument of ``base.fit`` for weights of queries; none without them."""
    if query_weight is None:
        return {}
    if not has_fit_parameter(base, "query_weight"):
        raise ParameterError("base", base, "cannot weigh queries; leave out `query_weight`")
    return {"query_weight": query_weight}


def check_size(size: int, usable: IntArray, data: Dataset, name: str = "max_features") -> None:
    """Refuse to choose more features than vary within a query."""
    if size > len(usable):
        reason = f"only {len(usable)} of the {data.n_features} features vary within a query"
        raise ParameterError(name, size, f"{reason}; give at most {len(usable)}")


def levelled(values: FloatArray) -> FloatArray:
    """As shares of the largest, rounded: equal where only rounding errors differ."""
    largest_size = max(float(np.max(np.abs(values))), np.finfo(np.float64).tiny)
    return np.round(values / largest_size, DIGITS)


def largest(values: FloatArray, among: IntArray, k: int) -> IntArray:
    """The k columns of ``among`` with the largest values, best first; of equals the earlier column."""
    return among[np.argsort(-values[among], kind="stable")[:k]]
