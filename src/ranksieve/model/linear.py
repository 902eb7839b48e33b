"""Linear models: terms, scorecards, how features are found and prepared, and the model file."""

from __future__ import annotations

import json
import operator
import os
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, Protocol, TypedDict

import msgspec
import numpy as np

from ranksieve._types import AnyArray, FloatArray, IntArray, Matrix
from ranksieve._util.files import Finite, atomic_write, converted, decode_json, plain
from ranksieve._version import __version__
from ranksieve.data.dataset import Dataset
from ranksieve.data.inputs import as_matrix, frame_columns, frame_names, is_frame, names_advice
from ranksieve.data.matrix import dense_block, value_blocks
from ranksieve.data.parts import RemoteRows
from ranksieve.data.queries import Queries, group_queries, one_query
from ranksieve.errors import DataError, ParameterError
from ranksieve.gpu.scoring import scorer_on_gpu
from ranksieve.kernels.linear import weighted_sums, weighted_sums_of_models
from ranksieve.prepare import KEPT, NOT_NORMALISED, UNPREPARED, MissingPolicy, Normalisation, Preparation

MOST_LEVELS = 99


@dataclass(frozen=True)
class Card:
    """score = Σ_j points_j · (x_j / unit_j); points are whole numbers from −levels to levels, and not 0."""

    levels: int
    points: Mapping[str, int]
    units: Mapping[str, float]

    def __post_init__(self) -> None:
        check_levels(self.levels)
        if set(self.points) != set(self.units):
            raise ParameterError("units", self.units, "must be one for each of the features with `points`")
        for name, points in self.points.items():
            if not _is_whole(points) or not 1 <= abs(points) <= self.levels:
                reason = f"those of {name} must be an integer from 1 to {self.levels}, or its negative"
                raise ParameterError("points", points, reason)
        object.__setattr__(self, "levels", int(self.levels))
        object.__setattr__(self, "points", {name: int(points) for name, points in self.points.items()})
        object.__setattr__(self, "units", {name: as_unit(unit, name) for name, unit in self.units.items()})

    def weight(self, name: str) -> float:
        """The weight of a feature."""
        return float(exact_weight(self.points[name], self.units[name]))

    def check(self, weights: Mapping[str, float]) -> None:
        """Refuse weights of features that are not those of the card, to the last bit."""
        if set(self.points) != set(weights):
            raise DataError(None, None, "the card is not that of the model's features")
        for name, weight in weights.items():
            if weight != self.weight(name):
                points = f"its {self.points[name]} points per {self.units[name]:g} make {self.weight(name)!r}"
                raise DataError(None, None, f"the weight of {name} is {weight!r}, but {points}")


def exact_weight(points: int, unit: float) -> Fraction:
    """points/unit with the unit as its decimals say it: 3 per 0.2 is 15, though no float is exactly 0.2."""
    return points / Fraction(repr(unit))


def check_levels(levels: Any) -> None:
    """Refuse what is no greatest number of points."""
    if not _is_whole(levels) or not 1 <= levels <= MOST_LEVELS:
        raise ParameterError("levels", levels, f"must be an integer from 1 to {MOST_LEVELS}")


def as_unit(unit: Any, name: str) -> float:
    """A unit as a number, refused if no value can be divided by it."""
    if isinstance(unit, bool) or not isinstance(unit, Real) or not 1e-100 <= float(unit) <= 1e100:
        raise ParameterError("units", unit, f"that of {name} must be a number from 1e-100 to 1e100")
    return float(unit)


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


ROWS_AT_ONCE = 8192
Prepare = Callable[[FloatArray], FloatArray]


class ModelInputs:
    """A model of some features: their names, their columns in the training data, how they are prepared.

    The column of an indicator is that of the feature whose absence it tells.
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
        """What replaces missing features; None if nothing does and they are not refused either."""
        return None if self.preparation.missing.policy == "keep" else self.preparation.missing

    def inputs(self, X: Dataset | Matrix, qid: Any = None) -> FloatArray:
        """What a score is made of: one row per document, one column per feature in use, prepared."""
        matrix, columns = self.located(X)
        prepare, _ = self._prepare(X, qid, matrix.shape[0])
        values = dense_block(matrix, slice(None), columns)
        return values if prepare is None else prepare(values)

    def located(self, X: Dataset | Matrix) -> tuple[Matrix, IntArray]:
        """A matrix that holds the features in use, and their columns there."""
        if is_frame(X):  # what the other columns hold does not matter
            names = frame_names(X)
            places = self._places(len(names), names)
            return frame_columns(X, places), np.arange(len(places))
        matrix = X.X if isinstance(X, Dataset) else as_matrix(X)[0]
        return matrix, self._places(matrix.shape[1], X.feature_names if isinstance(X, Dataset) else None)

    def _prepare(self, X: Any, qid: Any, n_rows: int) -> tuple[Prepare | None, int]:
        """What is done to the values before they are scored, and to how many rows at a time."""
        if not (self.names and self.preparation.changes_features):
            return None, ROWS_AT_ONCE
        if self.per_query:
            queries = self._queries(X, qid, n_rows)
            return lambda values: self.preparation.transform(values, queries), n_rows
        return lambda values: self.preparation.transform(values, one_query(len(values))), ROWS_AT_ONCE

    def _queries(self, X: Any, qid: Any, n_rows: int) -> Queries:
        if isinstance(X, Dataset):
            return X.queries
        if qid is None:
            reason = (
                "is needed, because the model prepares features within each query; give one query id per "
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

    def _places(self, width: int, names: Sequence[str] | None) -> IntArray:
        if not self.names:
            return np.empty(0, dtype=np.int64)
        if names is None:
            if width != self.n_features:
                raise DataError(
                    None, None, f"the model was trained on {self.n_features} features, but X has {width}"
                )
            return np.array(self.columns)
        place = {name: column for column, name in enumerate(names)}
        about = self.preparation.missing.indicators
        read = [about.get(name, name) for name in self.names]
        missing = [name for name in dict.fromkeys(read) if name not in place]
        if missing:
            reason = (
                f"the data lack {len(missing)} of the model's features: "
                f"{', '.join(missing[:10])}{names_advice(names, missing)}"
            )
            raise DataError(None, None, reason)
        return np.array([place[name] for name in read])


def input_blocks(
    X: Matrix, columns: IntArray, prepare: Prepare | None, rows_at_once: int
) -> Iterator[tuple[slice, AnyArray, IntArray]]:
    """Some rows at a time: which, an array with their prepared values, and where in it the columns are."""
    own = prepare is not None
    for rows, values, places in value_blocks(X, columns, rows_at_once, own):
        yield rows, values if prepare is None else prepare(values), places


FORMAT = "ranksieve-linear-model"
BOOSTED_FORMAT = "ranksieve-boosted-model"  # of rankers that are not linear
FORMAT_VERSION = 4
KINDS = ("", "subset", "scorecard")  # of certificates
MOST_FEATURES = 2**31 - 1  # as many columns as a CSR matrix can number


@dataclass(frozen=True)
class Term:
    """One feature in use: its name, its column in the training data (from 0), its weight.

    The column of an indicator is that of the feature whose absence it tells.
    """

    name: str
    index: int
    weight: Finite

    def __post_init__(self) -> None:
        _set(self, name=str(self.name), index=operator.index(self.index), weight=float(self.weight))


@dataclass(frozen=True)
class LinearModel(ModelInputs):
    """score(x) = intercept + Σ_j weight_j · x_j over the few features in use, with where it came from.

    ``preparation`` says what replaces a missing x_j (by default nothing, and the score is NaN) and how x_j is
    normalised; it holds what the features in use need and no more.
    ``certificate`` holds the objective and the duality gap of the fit, and what of its problem the parameters
    do not say: ``alpha`` or ``ridge``, ``weights`` of the ℓ1 that are not 1, ``features`` if no others had a
    part in it; its ``kind``, if any, says that the gap is the distance from another minimum: "subset",
    "scorecard". ``metrics`` holds what was measured, ``data`` short names for the exact content of what it
    learned from (``train``, ``valid``, ``query_weight``), ``version`` the release that wrote it.
    ``chosen_by`` names the ``metric`` and the ``profile`` (its conventions) that the model was chosen by,
    None if it was not chosen among others. ``card`` says how to write the weights as points per unit, if the
    model is a scorecard.
    """

    terms: tuple[Term, ...]
    n_features: int
    intercept: float = 0.0
    preparation: Preparation = UNPREPARED
    method: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    certificate: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)
    version: str = __version__
    chosen_by: Mapping[str, str] | None = None
    card: Card | None = None

    def __post_init__(self) -> None:
        """Python's own numbers instead of NumPy's, which files would show by their types."""
        _set(
            self,
            terms=tuple(self.terms),
            n_features=operator.index(self.n_features),
            intercept=float(self.intercept),
            parameters=plain(self.parameters),
            certificate=plain(self.certificate),
            metrics=_python_numbers(self.metrics),
        )

    @classmethod
    def of(
        cls, names: Sequence[str], columns: IntArray, weights: FloatArray, preparation: Preparation
    ) -> LinearModel:
        """A model that scores with the weights of some columns of prepared data.

        ``names`` are those of the features before preparation; indicators of missing values come after them.
        """
        about = preparation.missing.indicators
        all_names = [*map(str, names), *about]
        place = {name: j for j, name in enumerate(all_names)} if about else {}
        used = [all_names[j] for j in columns]
        sources = [
            place[about[name]] if name in about else j for name, j in zip(used, columns.tolist(), strict=True)
        ]
        terms = tuple(map(Term, used, sources, weights.tolist()))
        return cls(terms, len(names), preparation=preparation.of(used))

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
    def coef(self) -> FloatArray:
        """Weights of all features of the training data, zeros included; without those of indicators."""
        w, about = np.zeros(self.n_features), self.preparation.missing.indicators
        terms = [term for term in self.terms if term.name not in about]
        w[[term.index for term in terms]] = [term.weight for term in terms]
        return w

    @property
    def fingerprint(self) -> str:
        """The short name of the training data, empty if it is unknown."""
        return self.data.get("train", "")

    @property
    def normalisation(self) -> Normalisation | None:
        """How features are normalised; None if they are not."""
        return None if self.preparation.normalisation.kind == "none" else self.preparation.normalisation

    def predict(self, X: Dataset | Matrix, qid: Any = None, *, device: str = "cpu") -> FloatArray:
        """Scores in row order; only the columns in use are read.

        Columns are found by name in a Dataset or frame, by position in a bare array. ``qid`` is needed if
        X is not a Dataset and the model normalises, or fills missing values, within each query. ``device``
        says where to score; features that are on a GPU are scored there.
        """
        if isinstance(X, RemoteRows):
            return X.predicted(self.predict)  # type: ignore[no-any-return]
        matrix, columns = self.located(X)
        on_gpu = scorer_on_gpu(self.preparation, matrix, columns, device)
        if on_gpu is not None:
            scores = on_gpu(self.weights) + self.intercept
        else:
            prepare, rows_at_once = self._prepare(X, qid, matrix.shape[0])
            scores = linear_scores(matrix, columns, self.weights, prepare, rows_at_once) + self.intercept
        if self.preparation.missing.policy == "error":
            self._refuse_missing(scores, matrix, columns)
        return scores

    def predict_with(self, weights: FloatArray, X: Dataset | Matrix, qid: Any = None) -> FloatArray:
        """Scores (documents × models) of models that have other weights (models × terms) than this one.

        The bits are those of ``predict`` for a model of the terms whose weight is not 0.
        """
        matrix, columns = self.located(X)
        prepare, rows_at_once = self._prepare(X, qid, matrix.shape[0])
        return _sums_of_models(matrix, columns, weights, prepare, rows_at_once) + self.intercept

    def folded(self) -> LinearModel:
        """The same scores without normalisation: weights w/scale, and Σ w·centre/scale off the intercept."""
        normalisation = self.preparation.normalisation
        if normalisation.kind == "none":
            return self
        if normalisation.per_query:
            reason = (
                f"normalisation {normalisation.kind!r} has its own scales for each query, which no weights "
                "can express; fit with `normalise='z'` or `normalise='min_max'`"
            )
            raise DataError(None, None, reason)
        with np.errstate(over="ignore", invalid="ignore"):
            weights = self.weights / np.array(normalisation.scale)
            offset = float(np.sum(weights * np.array(normalisation.centre)))
        if not np.isfinite([*weights, offset]).all():
            raise DataError(
                None, None, "a weight divided by its scale is too large for a number; rescale the feature"
            )
        terms = (replace(term, weight=float(w)) for term, w in zip(self.terms, weights, strict=True))
        filling = replace(self.preparation, normalisation=NOT_NORMALISED)
        return replace(self, terms=tuple(terms), intercept=self.intercept - offset, preparation=filling)

    def without_indicators(self) -> LinearModel:
        """The same scores without the indicators whose features are in use: these get other fills.

        w·(x − c)/s with x filled by m, and u·(i − d)/t with i = 1 where x is missing, else 0: the second adds
        u/t where x is missing, as a fill of m + (u/t)·(s/w) does, and −u·d/t everywhere.
        """
        missing, normalisation = self.preparation.missing, self.preparation.normalisation
        place, weights = {name: j for j, name in enumerate(self.names)}, self.weights
        folded = {i: of for i, of in missing.indicators.items() if of in place and weights[place[of]]}
        if not folded:
            return self
        centre, scale = (
            (np.array(normalisation.centre), np.array(normalisation.scale))
            if normalisation.learns
            else (np.zeros(len(self.terms)), np.ones(len(self.terms)))
        )
        fills, per_unit, intercept = list(missing.means), weights / scale, self.intercept
        for name, source in folded.items():
            i, j = place[name], place[source]
            fills[j] += float(per_unit[i] / per_unit[j])
            intercept -= float(per_unit[i] * centre[i])
        terms = tuple(term for term in self.terms if term.name not in folded)
        filling = replace(self.preparation, missing=replace(missing, means=tuple(fills)))
        preparation = filling.of([term.name for term in terms])
        return replace(self, terms=terms, intercept=intercept, preparation=preparation, card=None)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        entries = {"format": FORMAT, "format_version": FORMAT_VERSION, **asdict(self)}
        entries |= self.preparation.to_dict()
        if self.card is None:
            del entries["card"]
        return {name: entries[name] for name in LinearModelFile.__struct_fields__ if name in entries}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as JSON, atomically."""
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)
        with atomic_write(path) as file:
            file.write(text + "\n")


def _set(frozen: Term | LinearModel, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(frozen, name, value)


def _python_numbers(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: v.item() if isinstance(v, np.generic) else v for name, v in values.items()}


def linear_scores(
    X: Matrix,
    columns: IntArray,
    weights: FloatArray,
    prepare: Prepare | None = None,
    rows_at_once: int = ROWS_AT_ONCE,
) -> FloatArray:
    """Σ_j weight_j · x_j over the given columns, added in their order, after ``prepare`` changed them.

    Equal rows get equal scores to the last bit, wherever they are (a BLAS product does not promise that),
    so that ties stay ties.
    """
    scores = np.empty(X.shape[0])
    for rows, values, places in input_blocks(X, columns, prepare, rows_at_once):
        weighted_sums(values, places, weights, scores[rows])
    return scores


def linear_scores_of_models(X: Matrix, coefs: FloatArray) -> FloatArray:
    """Scores (documents × models) of many models at once, given their weights (models × columns).

    A model's scores have the bits of :func:`linear_scores` with the columns whose weight is not 0.
    """
    used = np.flatnonzero(coefs.any(axis=0))
    return _sums_of_models(X, used, coefs[:, used], None, ROWS_AT_ONCE)


def _sums_of_models(
    X: Matrix, columns: IntArray, weights: FloatArray, prepare: Prepare | None, rows_at_once: int
) -> FloatArray:
    model, used = (np.ascontiguousarray(part) for part in np.nonzero(weights))
    starts = np.searchsorted(model, np.arange(len(weights) + 1))
    scores = np.empty((len(weights), X.shape[0]))
    for rows, values, places in input_blocks(X, columns, prepare, rows_at_once):
        weighted_sums_of_models(values, places, starts, used, weights[model, used], scores[:, rows])
    return scores.T


INFINITIES = {repr(number): number for number in (np.inf, -np.inf)}  # which JSON holds as text


def as_settings(value: Any) -> Any:
    """Parameters of a model as rankers take them: infinities are numbers again, not text."""
    if isinstance(value, dict):
        return {name: as_settings(one) for name, one in value.items()}
    if isinstance(value, list):
        return [as_settings(one) for one in value]
    return INFINITIES.get(value, value) if isinstance(value, str) else value


class FittedRanker(Protocol):
    """A ranker that can say what it learned."""

    def to_model(self) -> Any: ...


def model_of(given: Any) -> Any:
    """The model of a fitted ranker; anything else as it is, except a pipeline."""
    if hasattr(given, "steps"):
        reason = (
            f"a {type(given).__name__} changes features before its ranker gets them; give "
            "rs.to_model(pipeline)"
        )
        raise DataError(None, None, reason)
    return given.to_model() if hasattr(given, "to_model") and not isinstance(given, type) else given


def linear_model(given: Any, reason: str) -> LinearModel:
    """A linear model, or that of a fitted ranker; ``reason`` ends the sentence that refuses another one."""
    model = model_of(given)
    if not isinstance(model, LinearModel):
        kind = getattr(model, "method", "") or type(model).__name__
        raise DataError(None, None, f"{kind} is not a linear model, {reason}")
    return model


class Choice(TypedDict):
    metric: str
    profile: str


class LinearModelFile(msgspec.Struct, forbid_unknown_fields=True):
    """The content of a model file, in the order in which it is written."""

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
    chosen_by: Choice | None
    card: Card | None = None


class CertificateTexts(msgspec.Struct):
    """The entries of a certificate that are not numbers; "inf" is the ℓ1 weight of a forbidden feature."""

    kind: str = ""
    family: str = ""
    features: list[str] = []
    weights: dict[str, Finite | Literal["inf"]] = {}
    proof: list[str] = []


def load_model(path: str | os.PathLike[str]) -> LinearModel:
    """Read a file of a linear model; a damaged file or an unknown version is a ValueError."""
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
            "evaluate, compare and rank take it, and read_model reads it"
        )
        raise DataError(source, None, reason)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise DataError(source, None, f'not a ranksieve model (no "format": "{FORMAT}")')
    if content.get("format_version") != FORMAT_VERSION:
        version = content.get("format_version")
        reason = f"has model format version {version!r}; this ranksieve reads {FORMAT_VERSION}"
        raise DataError(source, None, reason)
    try:
        entries = msgspec.structs.asdict(converted(content, LinearModelFile))
        del entries["format"], entries["format_version"]
        missing, normalisation = entries.pop("missing") or KEPT, entries.pop("normalisation")
        preparation = Preparation(missing, normalisation or NOT_NORMALISED)
        model = LinearModel(**entries, preparation=preparation)
        check_entries(content, model.to_dict())
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
        model.card.check(dict(zip(model.names, model.weights.tolist(), strict=True)))
        if model.intercept or model.preparation.normalisation.learns:
            raise DataError(None, None, "a card has no intercept and no scales beside its units")


def check_entries(content: Mapping[str, Any], written: Mapping[str, Any]) -> None:
    """Refuse a file whose objects have other entries than those that are written for its model."""
    for name, value in plain(written).items():
        stated = plain(content[name])
        if stated == value:
            continue
        entries = [set(one) if isinstance(one, dict) else set() for one in (stated, value)]
        for entry in sorted(entries[0] ^ entries[1]):
            what = "unknown" if entry in entries[0] else "missing"
            raise DataError(None, None, f"{name}: the entry {entry!r} is {what}")
        raise DataError(None, None, f"{name}: an entry is missing or unknown")


def check_features(model: ModelInputs, columns: Collection[Any]) -> None:
    """Refuse features that a model of its width cannot have; ``columns`` must be as many as its features."""
    if not 0 < model.n_features <= MOST_FEATURES:
        raise DataError(None, None, f"n_features is {model.n_features}; expected 1 to {MOST_FEATURES}")
    if any(not 0 <= index < model.n_features for index in model.columns):
        raise DataError(None, None, f"a feature index is outside 0..{model.n_features - 1}")
    if len(set(columns)) < len(model.columns) or len(set(model.names)) < len(model.names):
        raise DataError(None, None, "a feature occurs twice")
    for what in ("normalisation", "missing"):
        step = getattr(model.preparation, what)
        if list(step.features) != (model.names if step.learns else []):
            raise DataError(None, None, f"{what} is not that of the model's features")


def _check_certificate(certificate: Mapping[str, Any]) -> None:
    texts = converted(certificate, CertificateTexts, "certificate")
    if texts.kind in KINDS:
        numbers = {n: value for n, value in certificate.items() if n not in texts.__struct_fields__}
        converted(numbers, dict[str, Finite], "certificate")


def nonzero_weights(coef: FloatArray, names: Sequence[str]) -> dict[str, float]:
    """Nonzero weights by feature name, as files of results and pages hold them."""
    return {names[j]: float(coef[j]) for j in np.flatnonzero(coef).tolist()}
