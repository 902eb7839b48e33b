"""Models that are sums over features: terms, curves, scorecards, preparation, and the model file."""

from __future__ import annotations

import json
import operator
import os
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, NotRequired, Protocol, TypedDict

import msgspec
import numpy as np

from ranksieve._types import AnyArray, FloatArray, IntArray, Matrix, PathLike
from ranksieve._util.files import Finite, atomic_write, convert_to, decode_json, to_plain
from ranksieve._version import __version__
from ranksieve.data.dataset import Dataset
from ranksieve.data.inputs import as_matrix, frame_columns, frame_names, is_frame, names_advice
from ranksieve.data.matrix import dense_block, value_blocks
from ranksieve.data.parts import RemoteData
from ranksieve.data.queries import Queries, group_queries, one_query
from ranksieve.errors import DataError, ParameterError
from ranksieve.gpu.scoring import scorer_on_gpu
from ranksieve.kernels.linear import weighted_sums, weighted_sums_of_models
from ranksieve.prepare import (
    KEEP_MISSING,
    NO_PREPARATION,
    NOT_NORMALISED,
    MissingPolicy,
    Normalisation,
    Preparation,
    Steps,
)
from ranksieve.prepare.steps import missing_name, step_name
from ranksieve.show.card import model_card
from ranksieve.show.explain import card_parts
from ranksieve.show.fit import feature_columns, fit_line, fit_parts
from ranksieve.show.result import Part, Shown
from ranksieve.show.upwards import Drawn, report_function

MAX_CARD_LEVELS = 99


@dataclass(frozen=True)
class Card:
    """score = Σ_j points_j · (x_j / unit_j); points are integers from −levels to levels, never 0.

    With curves, j are their steps, whose unit is 1.
    """

    levels: int
    points: Mapping[str, int]
    units: Mapping[str, float]

    def __post_init__(self) -> None:
        check_levels(self.levels)
        if set(self.points) != set(self.units):
            raise ParameterError("units", self.units, "must have one entry for each feature with `points`")
        for name, points in self.points.items():
            if not _is_integer(points) or not 1 <= abs(points) <= self.levels:
                reason = (
                    f"the points of {name} must be a nonzero integer from -{self.levels} to {self.levels}"
                )
                raise ParameterError("points", points, reason)
        object.__setattr__(self, "levels", int(self.levels))
        object.__setattr__(self, "points", {name: int(points) for name, points in self.points.items()})
        object.__setattr__(self, "units", {name: as_unit(unit, name) for name, unit in self.units.items()})

    def weight(self, name: str) -> float:
        return float(exact_weight(self.points[name], self.units[name]))

    def check(self, weights: Mapping[str, float]) -> None:
        """Raise DataError unless the weights equal those of the card exactly."""
        if set(self.points) != set(weights):
            raise DataError(None, None, "the card and the model have different features")
        for name, weight in weights.items():
            if weight != self.weight(name):
                points = f"{self.points[name]} points per {self.units[name]:g} give {self.weight(name)!r}"
                raise DataError(None, None, f"the weight of {name} is {weight!r}, but {points}")


def exact_weight(points: int, unit: float) -> Fraction:
    """points/unit, taking the unit as the decimal number that is written: 3 per 0.2 is exactly 15."""
    return points / Fraction(repr(unit))


def check_levels(levels: Any) -> None:
    if not _is_integer(levels) or not 1 <= levels <= MAX_CARD_LEVELS:
        raise ParameterError("levels", levels, f"must be an integer from 1 to {MAX_CARD_LEVELS}")


def as_unit(unit: Any, name: str) -> float:
    """Return the unit as a float; raise ParameterError if values cannot be divided by it."""
    if isinstance(unit, bool) or not isinstance(unit, Real) or not 1e-100 <= float(unit) <= 1e100:
        raise ParameterError("units", unit, f"the unit of {name} must be a number from 1e-100 to 1e100")
    return float(unit)


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


SCORING_BLOCK_ROWS = 8192
Prepare = Callable[[FloatArray], FloatArray]


class ModelInputs:
    """The inputs of a model: feature names, columns in the training data, and preparation.

    The column of a missing-value indicator is that of the feature it indicates.
    """

    n_features: int
    preparation: Preparation

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """Names of the features in use."""

    @property
    @abstractmethod
    def columns(self) -> list[int]:
        """Columns of the features in use in the training data, from 0."""

    @property
    def per_query(self) -> bool:
        """Whether a score depends on the other documents of the query."""
        return self.preparation.per_query

    @property
    def missing(self) -> MissingPolicy | None:
        """Policy for missing values; None if they are neither replaced nor refused."""
        return None if self.preparation.missing.policy == "keep" else self.preparation.missing

    def inputs(self, X: Dataset | Matrix, qid: Any = None) -> FloatArray:
        """Prepared values: one row per document, one column per feature in use."""
        matrix, columns = self.locate(X)
        prepare, _ = self._prepare(X, qid, matrix.shape[0])
        values = dense_block(matrix, slice(None), columns)
        return values if prepare is None else prepare(values)

    def locate(self, X: Dataset | Matrix) -> tuple[Matrix, IntArray]:
        """Return a matrix that contains the features in use, and their columns in it."""
        if is_frame(X):  # the other columns may contain anything
            indices = self._column_indices(len(frame_names(X)), frame_names(X))
            return frame_columns(X, indices), np.arange(len(indices))
        matrix = X.X if isinstance(X, Dataset) else as_matrix(X)[0]
        names = X.feature_names if isinstance(X, Dataset) else None
        return matrix, self._column_indices(matrix.shape[1], names)

    def _prepare(self, X: Any, qid: Any, n_rows: int) -> tuple[Prepare | None, int]:
        """Return the function that prepares values for scoring, and the rows to pass to it at once."""
        if not (self.names and self._changes_features):
            return None, SCORING_BLOCK_ROWS
        if self.per_query:
            queries = self._queries(X, qid, n_rows)
            return lambda values: self._transform(values, queries), n_rows
        return lambda values: self._transform(values, one_query(len(values))), SCORING_BLOCK_ROWS

    @property
    def _changes_features(self) -> bool:
        return self.preparation.changes_features

    def _transform(self, values: FloatArray, queries: Queries) -> FloatArray:
        return self.preparation.transform(values, queries)

    def _queries(self, X: Any, qid: Any, n_rows: int) -> Queries:
        if isinstance(X, Dataset):
            return X.queries
        if qid is None:
            reason = (
                "is required, because the model prepares features within each query; pass one query id per "
                "row, or a Dataset"
            )
            raise ParameterError("qid", None, reason)
        queries = group_queries(qid)
        if queries.n_rows != n_rows:
            raise ParameterError("qid", qid, f"has {queries.n_rows} entries, but X has {n_rows} rows")
        return queries

    def _refuse_missing(self, scores: FloatArray, matrix: Matrix, columns: IntArray) -> None:
        for row in np.flatnonzero(np.isnan(scores)):
            holes = np.flatnonzero(np.isnan(dense_block(matrix, slice(row, row + 1), columns)[0]))
            if len(holes):
                reason = (
                    f"feature {self.names[holes[0]]} of row {row} is missing, and the model has no value for "
                    "it, because none was missing in training or it was fitted with `missing='error'`; fill "
                    "missing values first, or fit with `missing='column_mean'`, `missing='zero'` or "
                    "`missing='query_min'`"
                )
                raise DataError(None, None, reason)

    def _column_indices(self, width: int, names: Sequence[str] | None) -> IntArray:
        if not self.names:
            return np.empty(0, dtype=np.int64)
        if names is None:
            if width != self.n_features:
                raise DataError(
                    None, None, f"the model was trained on {self.n_features} features, but X has {width}"
                )
            return np.array(self.columns)
        index = {name: column for column, name in enumerate(names)}
        indicators = self.preparation.missing.indicators
        sources = [indicators.get(name, name) for name in self.names]
        missing = [name for name in dict.fromkeys(sources) if name not in index]
        if missing:
            reason = (
                f"the data lack {len(missing)} of the model's features: "
                f"{', '.join(missing[:10])}{names_advice(names, missing)}"
            )
            raise DataError(None, None, reason)
        return np.array([index[name] for name in sources])


def input_blocks(
    X: Matrix, columns: IntArray, prepare: Prepare | None, rows_at_once: int
) -> Iterator[tuple[slice, AnyArray, IntArray]]:
    """Yield blocks of rows: the rows, an array with their prepared values, and the columns in that array."""
    prepared = prepare is not None  # then arrays are copies, which may be changed
    for rows, values, positions in value_blocks(X, columns, rows_at_once, prepared):
        yield rows, values if prepare is None else prepare(values), positions


LINEAR_FORMAT = "ranksieve-linear-model"
BOOSTED_FORMAT = "ranksieve-boosted-model"
LINEAR_FORMAT_VERSION = 4
CURVES_FORMAT_VERSION = 5  # of models with curves
CERTIFICATE_KINDS = ("", "subset", "scorecard")
MAX_COLUMNS = 2**31 - 1  # column indices of a CSR matrix are int32


@dataclass(frozen=True)
class Curve:
    """A step function: ``levels[k]`` where k of the ascending ``thresholds`` are ≤ x.

    Below the first threshold it is ``levels[0]``, from the last one on ``levels[-1]``. Where x is missing it
    is ``missing``, which is 0 if no training value was missing.
    """

    thresholds: tuple[Finite, ...]
    levels: tuple[Finite, ...]
    missing: Finite = 0.0

    def __post_init__(self) -> None:
        thresholds, levels = tuple(map(float, self.thresholds)), tuple(map(float, self.levels))
        _set(self, thresholds=thresholds, levels=levels, missing=float(self.missing))
        if len(levels) != len(thresholds) + 1:
            reason = f"must have one entry more than the {len(thresholds)} thresholds, got {len(levels)}"
            raise ParameterError("levels", levels, reason)
        if any(not low < high for low, high in pairwise(thresholds)):
            raise ParameterError("thresholds", thresholds, "must be in ascending order")

    @classmethod
    def of_steps(cls, thresholds: Sequence[float], steps: FloatArray, missing: float) -> Curve:
        """The curve that is 0 and rises by ``steps`` at the thresholds; steps of 0 are left out."""
        used = np.flatnonzero(steps)
        levels = np.concatenate([[0.0], np.cumsum(steps)[used]])
        return cls(tuple(thresholds[k] for k in used.tolist()), tuple(levels.tolist()), missing)

    @property
    def steps(self) -> FloatArray:
        """Rise at each threshold."""
        return np.diff(self.levels)

    @property
    def range(self) -> float:
        """Highest minus lowest level; ``missing`` is one of the levels unless it is 0."""
        levels = (*self.levels, self.missing or self.levels[0])
        return max(levels) - min(levels)

    def times(self, weight: float) -> Curve:
        """The curve with all levels multiplied by a weight."""
        return Curve(self.thresholds, tuple(weight * one for one in self.levels), weight * self.missing)

    def next_steps(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The next threshold above each value, and the rise there; NaN where there is none."""
        k = np.searchsorted(self.thresholds, values, side="right")  # NaN is above all thresholds
        return np.append(self.thresholds, np.nan)[k], np.append(self.steps, np.nan)[k]

    def __call__(self, values: FloatArray) -> FloatArray:
        """Levels of values; ``missing`` for NaN."""
        levels = np.array(self.levels)[np.searchsorted(self.thresholds, values, side="right")]
        return np.where(np.isnan(values), self.missing, levels)


@dataclass(frozen=True)
class Term:
    """One feature in use: its name, its column in the training data (from 0), its weight.

    The column of a missing-value indicator is that of the feature it indicates. With a ``curve``, the weight
    (1 in models that are fitted) multiplies the curve of the feature instead of its value.
    """

    name: str
    index: int
    weight: Finite
    curve: Curve | None = None

    def __post_init__(self) -> None:
        _set(self, name=str(self.name), index=operator.index(self.index), weight=float(self.weight))


@dataclass(frozen=True, repr=False)
class LinearModel(Drawn, Shown, ModelInputs):
    """score(x) = intercept + Σ_j weight_j · x_j over the features in use, with the provenance of the model.

    A term with a curve adds weight_j · curve_j(x_j) instead.

    ``preparation`` defines how a missing x_j is replaced (by default it is not, and the score is NaN) and how
    x_j is normalised; it covers only the features in use.
    ``certificate`` holds the objective and the duality gap of the fit, and those parts of the optimisation
    problem that the fit determined: ``alpha`` or ``ridge``, ℓ1 ``weights`` other than 1, ``features`` if the
    problem was restricted to these. Its ``kind``, if present, means that the gap is the distance from another
    minimum: "subset", "scorecard". ``metrics`` holds the measured metrics, ``data`` the fingerprints of the
    data of the fit (``train``, ``valid``, ``query_weight``), ``version`` the release that wrote the model.
    ``chosen_by`` names the ``metric``, the ``profile`` (its conventions) and the treatment of ``ties`` by
    which the model was selected, None if there was no model selection. ``card`` holds the weights as points
    per unit if the model is a scorecard.
    """

    terms: tuple[Term, ...]
    n_features: int
    intercept: float = 0.0
    preparation: Preparation = NO_PREPARATION
    method: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    certificate: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)
    version: str = __version__
    chosen_by: Mapping[str, str] | None = None
    card: Card | None = None

    def __post_init__(self) -> None:
        """Convert NumPy numbers to Python numbers, so that files do not contain their types."""
        _set(
            self,
            terms=tuple(self.terms),
            n_features=operator.index(self.n_features),
            intercept=float(self.intercept),
            parameters=to_plain(self.parameters),
            certificate=to_plain(self.certificate),
            metrics=_python_numbers(self.metrics),
        )

    @classmethod
    def of(
        cls, names: Sequence[str], columns: IntArray, weights: FloatArray, preparation: Preparation
    ) -> LinearModel:
        """Make a model from the weights of columns of prepared data.

        ``names`` are the feature names before preparation; missing-value indicators follow them.
        """
        indicators = preparation.missing.indicators
        all_names = [*map(str, names), *indicators]
        index = {name: j for j, name in enumerate(all_names)} if indicators else {}
        used = [all_names[j] for j in columns]
        sources = [
            index[indicators[name]] if name in indicators else j
            for name, j in zip(used, columns.tolist(), strict=True)
        ]
        terms = tuple(map(Term, used, sources, weights.tolist()))
        return cls(terms, len(names), preparation=preparation.of(used))

    @classmethod
    def of_curves(cls, steps: Steps, coef: FloatArray) -> LinearModel:
        """Make a model from the weights of step columns."""
        terms, columns = [], steps.columns
        for j in steps.used(coef).tolist():
            of_j = columns.feature == j
            on_missing, rises = coef[of_j & columns.is_missing], coef[of_j & ~columns.is_missing]
            missing = float(on_missing[0]) if len(on_missing) else 0.0
            curve = Curve.of_steps(steps.thresholds[j], rises, missing)
            terms.append(Term(steps.features[j], j, 1.0, curve))
        return cls(tuple(terms), len(steps.features))

    def _line(self) -> str:
        return fit_line(self)

    def shown(self) -> Sequence[Part]:
        """Held-out metric, features with their weights or points, and what is proven."""
        parts = list(fit_parts(None, self))
        return parts if self.card is None else [*card_parts(self), *parts[-1:]]

    def frame_columns(self) -> Mapping[str, Sequence[Any]]:
        """Features with their weights."""
        return feature_columns(None, self)

    def report(self, path: PathLike, **shown: Any) -> None:
        """Write the page of the model, such as a scorecard; ``test`` data and a ``title`` may be given."""
        report_function("calls.report_model")(self, path, **shown)

    def model_card(self, test: Dataset | None = None) -> str:
        """Markdown for a model registry: data, metric with its interval, features, proof and limits.

        ``test`` data, used neither for fitting nor for selection, add their metric with its interval.
        """
        tested = (
            ""
            if test is None
            else report_function("calls.evaluate_test")("the test data", test, self).sentence
        )
        return model_card(self, tested=tested)

    def report_explanation(self, path: PathLike, data: Dataset, **shown: Any) -> None:
        """Write the page that ``ranksieve explain --report`` writes.

        ``queries``, ``feature_costs``, ``metric`` and ``title`` may be given; by default, it explains the
        three worst queries.
        """
        report_function("calls.report_explanation")(self, path, data, **shown)

    @property
    def has_curves(self) -> bool:
        """Whether a term is a curve; then ``weights`` and ``coef`` do not determine the scores."""
        return any(term.curve is not None for term in self.terms)

    @property
    def curves(self) -> dict[str, Curve]:
        """What each feature with a curve adds to the score: its curve times its weight, by name."""
        return {term.name: term.curve.times(term.weight) for term in self.terms if term.curve is not None}

    @property
    def _changes_features(self) -> bool:
        return self.has_curves or super()._changes_features

    def _transform(self, values: FloatArray, queries: Queries) -> FloatArray:
        values = super()._transform(values, queries)
        for k, term in enumerate(self.terms):
            if term.curve is not None:
                values[:, k] = term.curve(values[:, k])
        return values

    @property
    def names(self) -> list[str]:
        """Names of the features in use."""
        return [term.name for term in self.terms]

    @property
    def columns(self) -> list[int]:
        """Columns of the features in use in the training data, from 0."""
        return [term.index for term in self.terms]

    @property
    def weights(self) -> FloatArray:
        """Weights of the features in use."""
        return np.array([term.weight for term in self.terms], dtype=np.float64)

    @property
    def weights_by_name(self) -> dict[str, float]:
        """Weight of each column that the model is a sum of: of features, and of the steps of curves."""
        weights: dict[str, float] = {}
        for term in self.terms:
            if (curve := term.curve) is None:
                weights[term.name] = term.weight
                continue
            for threshold, step in zip(curve.thresholds, curve.steps.tolist(), strict=True):
                weights[step_name(term.name, threshold)] = term.weight * step
            if curve.missing:
                weights[missing_name(term.name)] = term.weight * curve.missing
        return weights

    @property
    def coef(self) -> FloatArray:
        """Weights of all features of the training data, including zeros; indicators are left out."""
        w, indicators = np.zeros(self.n_features), self.preparation.missing.indicators
        terms = [term for term in self.terms if term.name not in indicators]
        w[[term.index for term in terms]] = [term.weight for term in terms]
        return w

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the training data, empty if unknown."""
        return self.data.get("train", "")

    @property
    def normalisation(self) -> Normalisation | None:
        """Normalisation of the features; None if there is none."""
        return None if self.preparation.normalisation.kind == "none" else self.preparation.normalisation

    def predict(self, X: Dataset | Matrix, qid: Any = None, *, device: str = "cpu") -> FloatArray:
        """Scores in row order; only the columns in use are read.

        Columns are matched by name in a Dataset or frame, by position in an array. ``qid`` is required if
        X is not a Dataset and the model normalises, or fills missing values, within each query. ``device``
        selects the device; features that are on a GPU are scored there.
        """
        if isinstance(X, RemoteData):
            return X.predict_parts(self.predict)  # type: ignore[no-any-return]
        matrix, columns = self.locate(X)
        on_gpu = None if self.has_curves else scorer_on_gpu(self.preparation, matrix, columns, device)
        if on_gpu is not None:
            scores = on_gpu(self.weights) + self.intercept
        else:
            prepare, rows_at_once = self._prepare(X, qid, matrix.shape[0])
            scores = linear_scores(matrix, columns, self.weights, prepare, rows_at_once) + self.intercept
        if self.preparation.missing.policy == "error":
            self._refuse_missing(scores, matrix, columns)
        return scores

    def predict_with(self, weights: FloatArray, X: Dataset | Matrix, qid: Any = None) -> FloatArray:
        """Scores (documents × models) of this model with other ``weights`` (models × terms).

        Bit-identical to ``predict`` of a model with the terms whose weight is not 0.
        """
        matrix, columns = self.locate(X)
        prepare, rows_at_once = self._prepare(X, qid, matrix.shape[0])
        return _sums_of_models(matrix, columns, weights, prepare, rows_at_once) + self.intercept

    def folded(self) -> LinearModel:
        """Equivalent model without normalisation: weights w/scale, intercept minus Σ w·centre/scale."""
        normalisation = self.preparation.normalisation
        if normalisation.kind == "none" or self.has_curves:
            return self
        if normalisation.per_query:
            reason = (
                f"normalisation {normalisation.kind!r} scales each query differently, so it cannot be folded "
                "into the weights; fit with `normalise='z'` or `normalise='min_max'`"
            )
            raise DataError(None, None, reason)
        with np.errstate(over="ignore", invalid="ignore"):
            weights = self.weights / np.array(normalisation.scale)
            offset = float(np.sum(weights * np.array(normalisation.centre)))
        if not np.isfinite([*weights, offset]).all():
            raise DataError(None, None, "a weight divided by its scale overflows; rescale the feature")
        terms = (replace(term, weight=float(w)) for term, w in zip(self.terms, weights, strict=True))
        preparation = replace(self.preparation, normalisation=NOT_NORMALISED)
        return replace(self, terms=tuple(terms), intercept=self.intercept - offset, preparation=preparation)

    def without_indicators(self) -> LinearModel:
        """Equivalent model without the indicators of features in use, whose fill values change instead.

        In w·(x − c)/s with x filled by m, plus u·(i − d)/t with i = 1 where x is missing, else 0, the second
        term adds u/t where x is missing, as a fill of m + (u/t)·(s/w) does, and −u·d/t everywhere.
        """
        missing, normalisation = self.preparation.missing, self.preparation.normalisation
        index, weights = {name: j for j, name in enumerate(self.names)}, self.weights
        folded = {
            name: source
            for name, source in missing.indicators.items()
            if source in index and weights[index[source]]
        }
        if not folded:
            return self
        centre, scale = (
            (np.array(normalisation.centre), np.array(normalisation.scale))
            if normalisation.learns
            else (np.zeros(len(self.terms)), np.ones(len(self.terms)))
        )
        fills, per_unit, intercept = list(missing.means), weights / scale, self.intercept
        for name, source in folded.items():
            i, j = index[name], index[source]
            fills[j] += float(per_unit[i] / per_unit[j])
            intercept -= float(per_unit[i] * centre[i])
        terms = tuple(term for term in self.terms if term.name not in folded)
        preparation = replace(self.preparation, missing=replace(missing, means=tuple(fills)))
        preparation = preparation.of([term.name for term in terms])
        return replace(self, terms=terms, intercept=intercept, preparation=preparation, card=None)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        version = CURVES_FORMAT_VERSION if self.has_curves else LINEAR_FORMAT_VERSION
        entries = {"format": LINEAR_FORMAT, "format_version": version, **asdict(self)}
        for term in entries["terms"]:
            if term["curve"] is None:
                del term["curve"]
        entries |= self.preparation.to_dict()
        if self.card is None:
            del entries["card"]
        return {name: entries[name] for name in LinearModelFile.__struct_fields__ if name in entries}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as JSON, atomically."""
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)
        with atomic_write(path) as file:
            file.write(text + "\n")


def _set(frozen: Curve | Term | LinearModel, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(frozen, name, value)


def _python_numbers(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: v.item() if isinstance(v, np.generic) else v for name, v in values.items()}


def linear_scores(
    X: Matrix,
    columns: IntArray,
    weights: FloatArray,
    prepare: Prepare | None = None,
    rows_at_once: int = SCORING_BLOCK_ROWS,
) -> FloatArray:
    """Σ_j weight_j · x_j over ``columns``, summed in their order, after ``prepare``.

    Equal rows get bit-identical scores wherever they are, so that ties stay ties; a BLAS product does not
    guarantee that.
    """
    scores = np.empty(X.shape[0])
    for rows, values, positions in input_blocks(X, columns, prepare, rows_at_once):
        weighted_sums(values, positions, weights, scores[rows])
    return scores


def linear_scores_of_models(X: Matrix, coefs: FloatArray) -> FloatArray:
    """Scores (documents × models) of models with weights ``coefs`` (models × columns).

    Bit-identical to :func:`linear_scores` with the columns whose weight is not 0.
    """
    used = np.flatnonzero(coefs.any(axis=0))
    return _sums_of_models(X, used, coefs[:, used], None, SCORING_BLOCK_ROWS)


def _sums_of_models(
    X: Matrix, columns: IntArray, weights: FloatArray, prepare: Prepare | None, rows_at_once: int
) -> FloatArray:
    model, used = (np.ascontiguousarray(part) for part in np.nonzero(weights))
    starts = np.searchsorted(model, np.arange(len(weights) + 1))
    scores = np.empty((len(weights), X.shape[0]))
    for rows, values, positions in input_blocks(X, columns, prepare, rows_at_once):
        weighted_sums_of_models(values, positions, starts, used, weights[model, used], scores[:, rows])
    return scores.T


INFINITIES = {repr(number): number for number in (np.inf, -np.inf)}  # strings in JSON


def restore_infinities(value: Any) -> Any:
    """Convert the strings that stand for infinities in model files back to numbers."""
    if isinstance(value, dict):
        return {name: restore_infinities(one) for name, one in value.items()}
    if isinstance(value, list):
        return [restore_infinities(one) for one in value]
    return INFINITIES.get(value, value) if isinstance(value, str) else value


class FittedRanker(Protocol):
    """A fitted ranker, which can be converted to a model."""

    def to_model(self) -> Any: ...


def model_of(fitted: Any) -> Any:
    """Return the model of a fitted ranker, and any other object unchanged; refuse a pipeline."""
    if hasattr(fitted, "steps"):
        reason = (
            f"a {type(fitted).__name__} transforms features before its ranker gets them; pass "
            "rs.to_model(pipeline)"
        )
        raise DataError(None, None, reason)
    return fitted.to_model() if hasattr(fitted, "to_model") and not isinstance(fitted, type) else fitted


def refuse_curves(model: LinearModel, what: str) -> None:
    """Raise DataError if a term is a curve; ``what`` is the operation that supports lines alone."""
    if isinstance(model, LinearModel) and model.has_curves:
        raise DataError(None, None, f"{what} supports linear models only; fit with `shape='linear'`")


def refuse_lines(model: LinearModel, what: str) -> None:
    """Raise DataError for a linear model; ``what`` is the operation that supports curves alone."""
    if not model.has_curves:
        raise DataError(None, None, f"{what} supports curves only; fit with `shape='curves'`")


def as_linear_model(fitted: Any, reason: str) -> LinearModel:
    """Return a linear model, or that of a fitted ranker; ``reason`` completes the error message otherwise."""
    model = model_of(fitted)
    if not isinstance(model, LinearModel):
        kind = getattr(model, "method", "") or type(model).__name__
        raise DataError(None, None, f"{kind} is not a linear model, {reason}")
    return model


class SelectionRecord(TypedDict):
    metric: str
    profile: str
    ties: NotRequired[Literal["order", "mean", "worst"]]


class LinearModelFile(msgspec.Struct, forbid_unknown_fields=True):
    """Entries of a model file, in the order in which they are written."""

    format: str
    format_version: int
    terms: tuple[Term, ...]
    n_features: int
    intercept: Finite
    normalisation: Normalisation | None
    method: str
    parameters: dict[str, Any]
    certificate: dict[str, Any]
    metrics: dict[str, Finite]
    data: dict[str, str]
    version: str
    missing: MissingPolicy | None
    chosen_by: SelectionRecord | None
    card: Card | None = None


class CertificateTexts(msgspec.Struct):
    """Non-numeric entries of a certificate; "inf" is the ℓ1 weight of a forbidden feature."""

    kind: str = ""
    family: str = ""
    shape: str = ""
    features: list[str] = []
    weights: dict[str, Finite | Literal["inf"]] = {}
    proof: list[str] = []


def load_model(path: str | os.PathLike[str]) -> LinearModel:
    """Read the file of a linear model; raise ValueError if it is damaged or of an unknown version."""
    try:
        content = decode_json(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataError(path, None, f"not a model file (damaged JSON: {error})") from None
    return model_from_dict(content, str(path))


def model_from_dict(content: Any, source: str | None = None) -> LinearModel:
    """The inverse of :meth:`LinearModel.to_dict`."""
    if isinstance(content, dict) and content.get("format") == BOOSTED_FORMAT:
        reason = (
            f"{content.get('method') or 'the model'} is not linear, so it has no weight per feature; "
            "evaluate, compare and rank accept it, and read_model reads it"
        )
        raise DataError(source, None, reason)
    if not isinstance(content, dict) or content.get("format") != LINEAR_FORMAT:
        raise DataError(source, None, f'not a ranksieve model (no "format": "{LINEAR_FORMAT}")')
    version = content.get("format_version")
    if version not in (LINEAR_FORMAT_VERSION, CURVES_FORMAT_VERSION):
        known = f"{LINEAR_FORMAT_VERSION} and {CURVES_FORMAT_VERSION}"
        reason = f"has model format version {version!r}; this ranksieve reads {known}"
        raise DataError(source, None, reason)
    try:
        entries = msgspec.structs.asdict(convert_to(content, LinearModelFile))
        del entries["format"], entries["format_version"]
        missing, normalisation = entries.pop("missing") or KEEP_MISSING, entries.pop("normalisation")
        preparation = Preparation(missing, normalisation or NOT_NORMALISED)
        model = LinearModel(**entries, preparation=preparation)
        written = model.to_dict()
        if written["format_version"] != version:
            raise DataError(
                None, None, f"files with curves, and only these, have version {CURVES_FORMAT_VERSION}"
            )
        check_entries(content, written)
        _check(model)
    except RecursionError:
        raise DataError(source, None, "damaged model file (nested too deeply)") from None
    except ValueError as error:
        raise DataError(source, None, f"damaged model file ({error})") from None
    return model


def _check(model: LinearModel) -> None:
    _check_certificate(model.certificate)
    check_features(model, {(t.index, t.name in model.preparation.missing.indicators) for t in model.terms})
    if model.card is not None:
        model.card.check(model.weights_by_name)
        if model.intercept or model.preparation.normalisation.learns:
            raise DataError(None, None, "a card has neither an intercept nor scales besides its units")


def check_entries(content: Mapping[str, Any], written: Mapping[str, Any]) -> None:
    """Raise DataError if an object in the file has other entries than those written for its model."""
    for name, value in to_plain(written).items():
        stated = to_plain(content[name])
        if stated == value:
            continue
        entries = [set(one) if isinstance(one, dict) else set() for one in (stated, value)]
        for entry in sorted(entries[0] ^ entries[1]):
            what = "unknown" if entry in entries[0] else "missing"
            raise DataError(None, None, f"{name}: the entry {entry!r} is {what}")
        raise DataError(None, None, f"{name}: an entry is missing or unknown")


def check_features(model: ModelInputs, columns: Collection[Any]) -> None:
    """Raise DataError for invalid or repeated features; ``columns`` identify the columns in use."""
    if not 0 < model.n_features <= MAX_COLUMNS:
        raise DataError(None, None, f"n_features is {model.n_features}; expected 1 to {MAX_COLUMNS}")
    if any(not 0 <= index < model.n_features for index in model.columns):
        raise DataError(None, None, f"a feature index is outside 0..{model.n_features - 1}")
    if len(set(columns)) < len(model.columns) or len(set(model.names)) < len(model.names):
        raise DataError(None, None, "a feature occurs twice")
    for what in ("normalisation", "missing"):
        step = getattr(model.preparation, what)
        if list(step.features) != (model.names if step.learns else []):
            raise DataError(None, None, f"{what} has other features than the model")


def _check_certificate(certificate: Mapping[str, Any]) -> None:
    texts = convert_to(certificate, CertificateTexts, "certificate")
    if texts.kind in CERTIFICATE_KINDS:
        numbers = {n: value for n, value in certificate.items() if n not in texts.__struct_fields__}
        convert_to(numbers, dict[str, Finite], "certificate")


def nonzero_weights(coef: FloatArray, names: Sequence[str]) -> dict[str, float]:
    """Nonzero weights by feature name."""
    return {names[j]: float(coef[j]) for j in np.flatnonzero(coef).tolist()}
