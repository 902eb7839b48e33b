"""Models of scikit-learn pipelines: scalers, imputers and selectors become part of the preparation."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ranksieve._types import FloatArray, IntArray
from ranksieve.data.inputs import numbered_names
from ranksieve.errors import DataError, ParameterError
from ranksieve.model.linear import LinearModel, Term
from ranksieve.prepare import NOT_NORMALISED, MissingPolicy, Normalisation, Preparation
from ranksieve.rankers.base import StandardisedWarning

PER_COLUMN = "StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, SimpleImputer, feature selectors"


def to_model(estimator: Any) -> LinearModel:
    """The model of a fitted ranker, or of a pipeline that ends in one, for the features as they are given.

    In a pipeline the ranker sees scaled features, and so does the model that it makes itself. Here scalers
    (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler), SimpleImputer, feature selectors and
    ColumnTransformers of these become part of the model's normalisation and of what it puts for missing
    values. A step that mixes or bends features is refused.
    """
    if not hasattr(estimator, "steps"):
        return _own_model(estimator)
    *before, (_, ranker) = estimator.steps
    columns = _input(*before[0]) if before else None
    for name, step in before:
        columns = _after(name, step, columns)  # type: ignore[arg-type]
    model = _own_model(ranker)
    if columns is None:
        return model
    names = getattr(estimator, "feature_names_in_", None)
    return _composed(model, columns, numbered_names(columns.width) if names is None else names)


def _own_model(ranker: Any) -> LinearModel:
    if not hasattr(ranker, "to_model"):
        reason = "has no model; give a fitted ranker, or a pipeline that ends in one"
        raise ParameterError("estimator", ranker, reason)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StandardisedWarning)
        model = ranker.to_model()
    if not isinstance(model, LinearModel):
        reason = "is not linear, so its model cannot include scalers; fit it without a pipeline"
        raise ParameterError("estimator", ranker, reason)
    return model


@dataclass(frozen=True)
class Columns:
    """Columns behind some steps: each is (x − centre) / scale of one of ``width`` given columns (``source``).

    ``fill`` replaces a missing x; NaN where nothing does.
    """

    width: int
    source: IntArray
    centre: FloatArray
    scale: FloatArray
    fill: FloatArray

    def chosen(self, places: Any) -> Columns:
        """Some of the columns."""
        parts = (self.source[places], self.centre[places], self.scale[places], self.fill[places])
        return Columns(self.width, *parts)

    def scaled(self, centre: Any, scale: Any) -> Columns:
        """Columns x → (x − centre) / scale of these."""
        centre = np.zeros(len(self.source)) if centre is None else np.asarray(centre, dtype=np.float64)
        scale = np.ones(len(self.source)) if scale is None else np.asarray(scale, dtype=np.float64)
        return replace(self, centre=self.centre + self.scale * centre, scale=self.scale * scale)

    def filled(self, values: FloatArray) -> Columns:
        """Columns with values for what is still missing."""
        fill = np.where(np.isnan(self.fill), self.centre + self.scale * values, self.fill)
        return replace(self, fill=fill)


def _input(name: str, first: Any) -> Columns:
    if isinstance(first, str) or first is None:
        raise ParameterError(name, first, "the first step must know the features; leave this one out")
    if not hasattr(first, "n_features_in_"):
        raise ParameterError(name, first, "is not fitted; fit the pipeline first")
    n = int(first.n_features_in_)
    return Columns(n, np.arange(n), np.zeros(n), np.ones(n), np.full(n, np.nan))


def _after(name: str, step: Any, columns: Columns) -> Columns:
    """The columns behind one more step."""
    if step is None or step == "passthrough":
        return columns
    if hasattr(step, "steps"):
        for inner, part in step.steps:
            columns = _after(inner, part, columns)
        return columns
    for kind in (base.__name__ for base in type(step).__mro__):
        if kind in SCALERS:
            _refuse_option(name, step, "clip")
            return columns.scaled(*SCALERS[kind](step))
        if kind in STEPS:
            return STEPS[kind](name, step, columns)
    if hasattr(step, "get_support"):
        return columns.chosen(np.flatnonzero(step.get_support()))
    raise ParameterError(
        name,
        step,
        "a linear model file holds only steps that shift and scale each feature: "
        f"{PER_COLUMN} and ColumnTransformers of these",
    )


def _refuse_option(name: str, step: Any, option: str) -> None:
    if getattr(step, option, False):
        raise ParameterError(f"{name}__{option}", True, "a model file cannot hold this")


SCALERS: dict[str, Callable[[Any], tuple[Any, Any]]] = {  # centre and scale
    "StandardScaler": lambda step: (step.mean_ if step.with_mean else None, step.scale_),
    "MinMaxScaler": lambda step: (-step.min_ / step.scale_, 1.0 / step.scale_),
    "MaxAbsScaler": lambda step: (None, step.scale_),
    "RobustScaler": lambda step: (step.center_, step.scale_),
}


def _imputer(name: str, step: Any, columns: Columns) -> Columns:
    _refuse_option(name, step, "add_indicator")
    missing = step.missing_values
    if not (isinstance(missing, float) and np.isnan(missing)):
        raise ParameterError(f"{name}__missing_values", missing, "a model file can replace only NaN")
    values = np.asarray(step.statistics_, dtype=np.float64)
    kept = np.flatnonzero(~np.isnan(values))  # what is missing everywhere is left out
    return columns.chosen(kept).filled(values[kept])


def _function(name: str, step: Any, columns: Columns) -> Columns:
    if step.func is not None:
        raise ParameterError(f"{name}__func", step.func, "a linear model file cannot hold a function")
    return columns


def _by_columns(name: str, step: Any, columns: Columns) -> Columns:
    """A ColumnTransformer: the parts side by side."""
    names, n = list(getattr(step, "feature_names_in_", ())), len(columns.source)
    parts = [
        _after(inner, part, columns.chosen(_places(chosen, names, n)))
        for inner, part, chosen in step.transformers_
        if part != "drop"
    ]
    fields = ("source", "centre", "scale", "fill")
    joined = (np.concatenate([getattr(part, field) for part in parts]) for field in fields)
    return Columns(columns.width, *joined)


def _places(chosen: Any, names: Sequence[str], n: int) -> IntArray:
    """The columns that a ColumnTransformer gives to one of its parts, as numbers."""
    if isinstance(chosen, slice) and not isinstance(chosen.start or chosen.stop or 0, str):
        return np.arange(n)[chosen]
    if isinstance(chosen, slice):
        first = 0 if chosen.start is None else names.index(chosen.start)
        return np.arange(first, n if chosen.stop is None else names.index(chosen.stop) + 1)
    given: list[Any] = [chosen] if isinstance(chosen, str | int | np.integer) else list(chosen)
    if given and all(isinstance(one, bool | np.bool_) for one in given):
        return np.flatnonzero(given)
    return np.array([names.index(one) if isinstance(one, str) else int(one) for one in given], dtype=np.int64)


STEPS: dict[str, Callable[[str, Any, Columns], Columns]] = {
    "SimpleImputer": _imputer,
    "FunctionTransformer": _function,
    "ColumnTransformer": _by_columns,
}


# --- One model of both -----------------------------------------------------------------------------------


def _composed(model: LinearModel, columns: Columns, names: Sequence[str]) -> LinearModel:
    """The model of columns behind steps, as a model of the given columns."""
    about = model.preparation.missing.indicators
    used = columns.chosen([term.index for term in model.terms])
    given = [str(names[j]) for j in used.source]
    marks = [term.name in about for term in model.terms]
    new = [f"{name} is missing" if mark else name for name, mark in zip(given, marks, strict=True)]
    twice = sorted({name for name in new if new.count(name) > 1})
    if twice:
        raise DataError(None, None, f"the pipeline gives the ranker {', '.join(twice)} more than once")
    terms = (
        Term(name, int(source), term.weight)
        for name, source, term in zip(new, used.source, model.terms, strict=True)
    )
    preparation = Preparation(
        _missing(model, used, new, given, marks), _normalisation(model, used, new, marks)
    )
    return replace(
        model, terms=tuple(terms), n_features=columns.width, preparation=preparation, data={}, card=None
    )


def _normalisation(
    model: LinearModel, used: Columns, names: Sequence[str], marks: Sequence[bool]
) -> Normalisation:
    own = model.preparation.normalisation
    if own.per_query:
        return own  # within queries a shift and a scale that are the same for all change nothing
    marked = np.array(marks, dtype=bool)
    centre, scale = np.where(marked, 0.0, used.centre), np.where(marked, 1.0, used.scale)
    if own.learns:
        centre, scale = centre + scale * np.array(own.centre), scale * np.array(own.scale)
    if not centre.any() and (scale == 1.0).all():
        return NOT_NORMALISED
    return Normalisation("z", tuple(names), tuple(centre.tolist()), tuple(scale.tolist()))


def _missing(
    model: LinearModel, used: Columns, names: Sequence[str], given: Sequence[str], marks: Sequence[bool]
) -> MissingPolicy:
    own, filled = model.preparation.missing, ~np.isnan(used.fill)
    if filled.all() and len(names):
        return MissingPolicy("column_mean", tuple(names), tuple(used.fill.tolist()))
    if filled.any():
        lacking = [name for name, has in zip(given, filled, strict=True) if not has]
        reason = f"the pipeline imputes some features in use but not {', '.join(lacking[:10])}; impute all"
        raise DataError(None, None, reason)
    if own.policy == "zero":
        return MissingPolicy("column_mean", tuple(names), tuple(used.centre.tolist()))
    if not own.features:
        return own
    means = np.where(marks, 0.0, used.centre + used.scale * np.array(own.means))
    indicates = tuple(name if mark else "" for name, mark in zip(given, marks, strict=True))
    return replace(
        own, features=tuple(names), means=tuple(means.tolist()), indicates=indicates if own.indicates else ()
    )
