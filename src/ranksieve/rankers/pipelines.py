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
from ranksieve.model.linear import LinearModel, Term, refuse_curves
from ranksieve.prepare import NOT_NORMALISED, MissingPolicy, Normalisation, Preparation
from ranksieve.rankers.base import StandardisedWarning

PER_COLUMN = "StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, SimpleImputer, feature selectors"


def to_model(estimator: Any) -> LinearModel:
    """The model of a fitted ranker, or of a whole pipeline that ends in one.

    ``ranker.to_model()`` of a ranker in a pipeline expects features as the previous steps transform them. The
    model of the pipeline expects the pipeline's input: scalers (StandardScaler, MinMaxScaler, MaxAbsScaler,
    RobustScaler), SimpleImputer, feature selectors and ColumnTransformers of these become part of its
    normalisation and of its replacements of missing values. Any other step, such as one that combines
    features or is not linear, is an error.
    """
    if not hasattr(estimator, "steps"):
        return _ranker_model(estimator)
    *transformers, (_, ranker) = estimator.steps
    columns = _input_columns(*transformers[0]) if transformers else None
    for name, step in transformers:
        columns = _apply_step(name, step, columns)  # type: ignore[arg-type]
    model = _ranker_model(ranker)
    if columns is None:
        return model
    refuse_curves(model, "a pipeline with transformers")
    names = getattr(estimator, "feature_names_in_", None)
    return _compose(model, columns, numbered_names(columns.width) if names is None else names)


def _ranker_model(ranker: Any) -> LinearModel:
    if not hasattr(ranker, "to_model"):
        reason = "must be a fitted ranker, or a pipeline that ends in one"
        raise ParameterError("estimator", ranker, reason)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StandardisedWarning)
        model = ranker.to_model()
    if not isinstance(model, LinearModel):
        reason = "is not linear, so its model cannot include scalers; fit it without a pipeline"
        raise ParameterError("estimator", ranker, reason)
    return model


@dataclass(frozen=True)
class PipelineColumns:
    """Output columns of a pipeline step: each is (x − centre) / scale, x the input column ``source``.

    The pipeline has ``width`` input columns. ``fill`` replaces a missing x; NaN: not replaced.
    """

    width: int
    source: IntArray
    centre: FloatArray
    scale: FloatArray
    fill: FloatArray

    def select(self, index: Any) -> PipelineColumns:
        fields = (self.source[index], self.centre[index], self.scale[index], self.fill[index])
        return PipelineColumns(self.width, *fields)

    def rescale(self, centre: Any, scale: Any) -> PipelineColumns:
        """Apply x → (x − centre) / scale to each column."""
        centre = np.zeros(len(self.source)) if centre is None else np.asarray(centre, dtype=np.float64)
        scale = np.ones(len(self.source)) if scale is None else np.asarray(scale, dtype=np.float64)
        return replace(self, centre=self.centre + self.scale * centre, scale=self.scale * scale)

    def fill_with(self, values: FloatArray) -> PipelineColumns:
        """Set the replacements of columns that have none; ``values`` are on the scale of the output."""
        fill = np.where(np.isnan(self.fill), self.centre + self.scale * values, self.fill)
        return replace(self, fill=fill)


def _input_columns(name: str, first: Any) -> PipelineColumns:
    if isinstance(first, str) or first is None:
        raise ParameterError(name, first, "does not record the number of features; remove this first step")
    if not hasattr(first, "n_features_in_"):
        raise ParameterError(name, first, "is not fitted; fit the pipeline first")
    n = int(first.n_features_in_)
    return PipelineColumns(n, np.arange(n), np.zeros(n), np.ones(n), np.full(n, np.nan))


def _apply_step(name: str, step: Any, columns: PipelineColumns) -> PipelineColumns:
    if step is None or step == "passthrough":
        return columns
    if hasattr(step, "steps"):
        for inner_name, inner in step.steps:
            columns = _apply_step(inner_name, inner, columns)
        return columns
    for kind in (base.__name__ for base in type(step).__mro__):
        if kind in SCALERS:
            _refuse_option(name, step, "clip")
            return columns.rescale(*SCALERS[kind](step))
        if kind in OTHER_STEPS:
            return OTHER_STEPS[kind](name, step, columns)
    if hasattr(step, "get_support"):
        return columns.select(np.flatnonzero(step.get_support()))
    raise ParameterError(
        name,
        step,
        "a linear model can contain only steps that shift and scale each feature: "
        f"{PER_COLUMN} and ColumnTransformers of these",
    )


def _refuse_option(name: str, step: Any, option: str) -> None:
    if getattr(step, option, False):
        raise ParameterError(f"{name}__{option}", True, "not supported in a model; set it to False")


SCALERS: dict[str, Callable[[Any], tuple[Any, Any]]] = {  # centre and scale
    "StandardScaler": lambda step: (step.mean_ if step.with_mean else None, step.scale_),
    "MinMaxScaler": lambda step: (-step.min_ / step.scale_, 1.0 / step.scale_),
    "MaxAbsScaler": lambda step: (None, step.scale_),
    "RobustScaler": lambda step: (step.center_, step.scale_),
}


def _imputer(name: str, step: Any, columns: PipelineColumns) -> PipelineColumns:
    _refuse_option(name, step, "add_indicator")
    missing = step.missing_values
    if not (isinstance(missing, float) and np.isnan(missing)):
        raise ParameterError(f"{name}__missing_values", missing, "must be NaN: a model replaces only NaN")
    values = np.asarray(step.statistics_, dtype=np.float64)
    present = np.flatnonzero(~np.isnan(values))  # SimpleImputer drops columns without values
    return columns.select(present).fill_with(values[present])


def _function(name: str, step: Any, columns: PipelineColumns) -> PipelineColumns:
    if step.func is not None:
        raise ParameterError(
            f"{name}__func", step.func, "must be None: a linear model cannot contain a function"
        )
    return columns


def _by_columns(name: str, step: Any, columns: PipelineColumns) -> PipelineColumns:
    """A ColumnTransformer: concatenate the columns of its transformers."""
    names, n = list(getattr(step, "feature_names_in_", ())), len(columns.source)
    parts = [
        _apply_step(inner_name, inner, columns.select(_column_indices(selection, names, n)))
        for inner_name, inner, selection in step.transformers_
        if inner != "drop"
    ]
    fields = ("source", "centre", "scale", "fill")
    joined = (np.concatenate([getattr(part, field) for part in parts]) for field in fields)
    return PipelineColumns(columns.width, *joined)


def _column_indices(selection: Any, names: Sequence[str], n: int) -> IntArray:
    """Indices of the columns that a ColumnTransformer selects for one of its transformers."""
    if isinstance(selection, slice) and not isinstance(selection.start or selection.stop or 0, str):
        return np.arange(n)[selection]
    if isinstance(selection, slice):
        first = 0 if selection.start is None else names.index(selection.start)
        return np.arange(first, n if selection.stop is None else names.index(selection.stop) + 1)
    items: list[Any] = [selection] if isinstance(selection, str | int | np.integer) else list(selection)
    if items and all(isinstance(one, bool | np.bool_) for one in items):
        return np.flatnonzero(items)
    return np.array([names.index(one) if isinstance(one, str) else int(one) for one in items], dtype=np.int64)


OTHER_STEPS: dict[str, Callable[[str, Any, PipelineColumns], PipelineColumns]] = {
    "SimpleImputer": _imputer,
    "FunctionTransformer": _function,
    "ColumnTransformer": _by_columns,
}


def _compose(model: LinearModel, columns: PipelineColumns, names: Sequence[str]) -> LinearModel:
    """Turn a model of the output columns of the steps into a model of the input columns ``names``."""
    indicators = model.preparation.missing.indicators
    used = columns.select([term.index for term in model.terms])
    sources = [str(names[j]) for j in used.source]
    is_indicator = [term.name in indicators for term in model.terms]
    new_names = [
        f"{name} is missing" if flag else name for name, flag in zip(sources, is_indicator, strict=True)
    ]
    repeated = sorted({name for name in new_names if new_names.count(name) > 1})
    if repeated:
        reason = f"the pipeline passes {', '.join(repeated)} to the ranker more than once"
        raise DataError(None, None, f"{reason}; pass each feature once")
    terms = (
        Term(name, int(source), term.weight)
        for name, source, term in zip(new_names, used.source, model.terms, strict=True)
    )
    preparation = Preparation(
        _missing_policy(model, used, new_names, sources, is_indicator),
        _normalisation(model, used, new_names, is_indicator),
    )
    return replace(
        model, terms=tuple(terms), n_features=columns.width, preparation=preparation, data={}, card=None
    )


def _normalisation(
    model: LinearModel, used: PipelineColumns, names: Sequence[str], is_indicator: Sequence[bool]
) -> Normalisation:
    normalisation = model.preparation.normalisation
    if normalisation.per_query:
        return normalisation  # shifting and scaling a whole column does not change it
    flags = np.array(is_indicator, dtype=bool)
    centre, scale = np.where(flags, 0.0, used.centre), np.where(flags, 1.0, used.scale)
    if normalisation.learns:
        centre = centre + scale * np.array(normalisation.centre)
        scale = scale * np.array(normalisation.scale)
    if not centre.any() and (scale == 1.0).all():
        return NOT_NORMALISED
    return Normalisation("z", tuple(names), tuple(centre.tolist()), tuple(scale.tolist()))


def _missing_policy(
    model: LinearModel,
    used: PipelineColumns,
    names: Sequence[str],
    sources: Sequence[str],
    is_indicator: Sequence[bool],
) -> MissingPolicy:
    policy, filled = model.preparation.missing, ~np.isnan(used.fill)
    if filled.all() and len(names):
        return MissingPolicy("column_mean", tuple(names), tuple(used.fill.tolist()))
    if filled.any():
        not_filled = [name for name, has_fill in zip(sources, filled, strict=True) if not has_fill]
        reason = f"the pipeline imputes some features in use but not {', '.join(not_filled[:10])}; impute all"
        raise DataError(None, None, reason)
    if policy.policy == "zero":
        return MissingPolicy("column_mean", tuple(names), tuple(used.centre.tolist()))
    if not policy.features:
        return policy
    means = np.where(is_indicator, 0.0, used.centre + used.scale * np.array(policy.means))
    indicates = tuple(name if flag else "" for name, flag in zip(sources, is_indicator, strict=True))
    return replace(
        policy,
        features=tuple(names),
        means=tuple(means.tolist()),
        indicates=indicates if policy.indicates else (),
    )
