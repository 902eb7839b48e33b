"""Boosted models: sums of steps or trees."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import msgspec
import numpy as np

from ranksieve._types import AnyArray, FloatArray, IntArray, Matrix
from ranksieve._util.files import Finite, atomic_write, convert_to, to_plain
from ranksieve._version import __version__
from ranksieve.data.dataset import Dataset
from ranksieve.data.parts import RemoteData
from ranksieve.errors import DataError, lookup
from ranksieve.model.lightgbm_text import LightGBMModel, parse_lightgbm
from ranksieve.model.linear import (
    BOOSTED_FORMAT,
    ModelInputs,
    check_entries,
    check_features,
    input_blocks,
)
from ranksieve.model.score_functions import LEAF, WeightedSum
from ranksieve.prepare import (
    KEEP_MISSING,
    NO_PREPARATION,
    NOT_NORMALISED,
    MissingPolicy,
    Normalisation,
    Preparation,
)
from ranksieve.show.fit import feature_columns, fit_line, fit_parts
from ranksieve.show.result import Part, Shown


@dataclass(frozen=True)
class Steps:
    """Σ_t weights_t · [x_{inputs_t} > thresholds_t]; inputs count from 0."""

    kind: ClassVar[str] = "steps"
    inputs: tuple[int, ...]
    thresholds: tuple[Finite, ...]
    weights: tuple[Finite, ...]

    @property
    def size_text(self) -> str:
        return f"{len(self.inputs)} step{'' if len(self.inputs) == 1 else 's'}"

    def scores(self, values: AnyArray) -> FloatArray:
        return self.scores_of_columns(values.T, len(values))

    def scores_of_columns(self, columns: Iterable[AnyArray], n_rows: int) -> FloatArray:
        """Scores from columns; the steps of a column are one lookup in the sums of their weights."""
        inputs, thresholds, weights = (
            np.array(part) for part in (self.inputs, self.thresholds, self.weights)
        )
        scores = np.zeros(n_rows)
        for j, column in enumerate(columns):
            of_column = np.flatnonzero(inputs == j)
            of_column = of_column[np.argsort(thresholds[of_column], kind="stable")]
            steps = np.concatenate(([0.0], np.cumsum(weights[of_column])))
            scores += steps[np.searchsorted(thresholds[of_column], column, side="left")]
        return scores

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {name: list(values) for name, values in asdict(self).items()}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Steps:
        """The inverse of :meth:`to_dict`."""
        steps = convert_to(content, cls, "ensemble")
        lengths = {name: len(part) for name, part in asdict(steps).items()}
        if len(set(lengths.values())) > 1:
            counts = ", ".join(f"{length} {name}" for name, length in lengths.items())
            raise DataError(None, None, f"the ensemble has {counts}; expected the same number of each")
        return steps

    def check(self, n_features: int) -> None:
        """Raise DataError if a step uses a feature that the model does not have."""
        if any(not 0 <= j < n_features for j in self.inputs):
            raise DataError(
                None,
                None,
                f"a step uses an input outside 0..{n_features - 1}",
            )


class TreesEntry(msgspec.Struct, forbid_unknown_fields=True):
    inputs: tuple[int, ...]
    text: list[str]


@dataclass(frozen=True)
class Trees:
    """A sum of trees; ``inputs`` are the booster's columns of the model's features, the only ones it uses."""

    kind: ClassVar[str] = "lightgbm"
    inputs: tuple[int, ...]
    text: str

    @classmethod
    def of(cls, booster: Any, inputs: IntArray) -> Trees:
        """Make the trees of a LightGBM booster that splits only on the columns ``inputs``."""
        return cls(tuple(inputs.tolist()), booster.model_to_string())

    @property
    def size_text(self) -> str:
        n_trees = len(self._model.trees)
        return f"{n_trees} tree{'' if n_trees == 1 else 's'}"

    def scores(self, values: AnyArray) -> FloatArray:
        """Scores of rows; ``values`` are the model's features."""
        return self._function.scores(values)

    @cached_property
    def _model(self) -> LightGBMModel:
        return parse_lightgbm(self.text)

    @cached_property
    def _function(self) -> WeightedSum:
        """The trees as functions of the model's features instead of the booster's columns."""
        index = np.full(len(self._model.names) + 1, LEAF)  # the last entry, index −1, is for leaves
        index[list(self.inputs)] = np.arange(len(self.inputs))
        return WeightedSum.plain([replace(tree, feature=index[tree.feature]) for tree in self._model.trees])

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, the text as a list of lines."""
        return {"inputs": list(self.inputs), "text": self.text.split("\n")}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Trees:
        """The inverse of :meth:`to_dict`."""
        parts = convert_to(content, TreesEntry, "ensemble")
        return cls(parts.inputs, "\n".join(parts.text))

    def check(self, n_features: int) -> None:
        """Raise DataError if the trees are damaged or split on columns other than the model's features."""
        if len(self.inputs) != n_features or len(set(self.inputs)) != n_features:
            raise DataError(
                None, None, f"inputs has {len(set(self.inputs))} different columns for {n_features} features"
            )
        if any(not 0 <= j < len(self._model.names) for j in self.inputs):
            raise DataError(None, None, "inputs has a column that the trees do not have")
        used = np.unique([j for tree in self._model.trees for j in tree.feature])
        if not np.isin(used, [LEAF, *self.inputs]).all():
            raise DataError(None, None, "the trees split on a column that is not among the inputs")


BOOSTED_FORMAT_VERSION = 1
COMMON_ENTRIES = ("features", "n_features", "method", "parameters", "data", "version")
ENSEMBLES: dict[str, Callable[[dict[str, Any]], Steps | Trees]] = {
    Steps.kind: Steps.from_dict,
    Trees.kind: Trees.from_dict,
}


@dataclass(frozen=True)
class Feature:
    """A feature in use: its name, its column in the training data (from 0)."""

    name: str
    index: int


class BoostedModelFile(msgspec.Struct, forbid_unknown_fields=True):
    """Entries of a model file, in the order in which they are written."""

    format: str
    format_version: int
    features: tuple[Feature, ...]
    n_features: int
    ensemble: dict[str, Any]
    normalisation: Normalisation | None
    missing: MissingPolicy | None
    method: str
    parameters: dict[str, Any]
    data: dict[str, str]
    version: str


@dataclass(frozen=True, repr=False)
class BoostedModel(Shown, ModelInputs):
    """score(x) = a sum of steps or trees over the features in use, with the provenance of the model.

    ``preparation`` defines how missing values are replaced and features normalised, ``data`` holds the
    fingerprints of the data of the fit, ``version`` the release that wrote the model.
    """

    features: tuple[Feature, ...]
    n_features: int
    ensemble: Steps | Trees
    preparation: Preparation = NO_PREPARATION
    method: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)
    version: str = __version__
    chosen_by: None = None

    def _line(self) -> str:
        return fit_line(self)

    def shown(self) -> Sequence[Part]:
        """Its size and the number of features in use."""
        return list(fit_parts(None, self))

    def frame_columns(self) -> Mapping[str, Sequence[Any]]:
        """Features in use."""
        return feature_columns(None, self)

    @property
    def names(self) -> list[str]:
        """Names of the features in use."""
        return [feature.name for feature in self.features]

    @property
    def columns(self) -> list[int]:
        """Columns of the features in use in the training data, from 0."""
        return [feature.index for feature in self.features]

    def predict(self, X: Dataset | Matrix, qid: Any = None) -> FloatArray:
        """Scores in row order; columns are matched by name in a Dataset or frame, by position in an array.

        ``qid`` is required if X is not a Dataset and features are prepared within each query.
        """
        if isinstance(X, RemoteData):
            return X.predict_parts(self.predict)  # type: ignore[no-any-return]
        matrix, columns = self.locate(X)
        prepare, rows_at_once = self._prepare(X, qid, matrix.shape[0])
        scores = np.zeros(matrix.shape[0])
        for rows, values, positions in input_blocks(matrix, columns, prepare, rows_at_once):
            features = values[:, positions]
            if self.preparation.missing.policy == "error" and np.isnan(features).any():
                scores[rows] = features.sum(axis=1)
                self._refuse_missing(scores, matrix, columns)
            scores[rows] = self.ensemble.scores(features)
        return scores

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        entries = {
            "format": BOOSTED_FORMAT,
            "format_version": BOOSTED_FORMAT_VERSION,
            **{name: getattr(self, name) for name in COMMON_ENTRIES},
            **self.preparation.to_dict(),
            "features": [asdict(feature) for feature in self.features],
            "parameters": to_plain(self.parameters),
            "ensemble": {"kind": self.ensemble.kind, **self.ensemble.to_dict()},
        }
        return {name: entries[name] for name in BoostedModelFile.__struct_fields__}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as JSON, atomically."""
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)
        with atomic_write(path) as file:
            file.write(text + "\n")


def is_boosted(content: Any) -> bool:
    """Whether a JSON value has the format of a boosted model."""
    return isinstance(content, dict) and content.get("format") == BOOSTED_FORMAT


def boosted_from_dict(content: dict[str, Any], source: str | None = None) -> BoostedModel:
    """The inverse of :meth:`BoostedModel.to_dict`."""
    if content.get("format_version") != BOOSTED_FORMAT_VERSION:
        reason = (
            f"has model format version {content.get('format_version')!r}; this ranksieve reads "
            f"{BOOSTED_FORMAT_VERSION}"
        )
        raise DataError(source, None, reason)
    try:
        model = _model(convert_to(content, BoostedModelFile))
        check_entries(content, model.to_dict())
        return model
    except ValueError as error:
        raise DataError(source, None, f"damaged model file ({error})") from None


def _model(file: BoostedModelFile) -> BoostedModel:
    kind = convert_to(file.ensemble.pop("kind", ""), str, "ensemble.kind")
    model = BoostedModel(
        ensemble=lookup(ENSEMBLES, kind, "kind")(file.ensemble),
        preparation=Preparation(file.missing or KEEP_MISSING, file.normalisation or NOT_NORMALISED),
        **{name: getattr(file, name) for name in COMMON_ENTRIES},
    )
    check_features(model, model.names)
    model.ensemble.check(len(model.features))
    return model
