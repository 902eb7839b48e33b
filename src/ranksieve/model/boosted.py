"""Models that are sums of steps or trees."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import msgspec
import numpy as np

from ranksieve._types import AnyArray, FloatArray, IntArray, Matrix
from ranksieve._util.files import Finite, atomic_write, converted, plain
from ranksieve._version import __version__
from ranksieve.data.dataset import Dataset
from ranksieve.data.parts import RemoteRows
from ranksieve.errors import DataError, lookup
from ranksieve.model.lightgbm_text import TextModel, read_text
from ranksieve.model.linear import (
    BOOSTED_FORMAT,
    ModelInputs,
    check_entries,
    check_features,
    input_blocks,
)
from ranksieve.model.score_functions import LEAF, WeightedSum
from ranksieve.prepare import (
    KEPT,
    NOT_NORMALISED,
    UNPREPARED,
    MissingPolicy,
    Normalisation,
    Preparation,
)


@dataclass(frozen=True)
class Steps:
    """Σ_t weights_t · [x_{inputs_t} > thresholds_t]; inputs count from 0."""

    kind: ClassVar[str] = "steps"
    inputs: tuple[int, ...]
    thresholds: tuple[Finite, ...]
    weights: tuple[Finite, ...]

    @property
    def words(self) -> str:
        """How many there are."""
        return f"{len(self.inputs)} step{'' if len(self.inputs) == 1 else 's'}"

    def scores(self, values: AnyArray) -> FloatArray:
        """Scores of rows."""
        return self.scores_of_columns(values.T, len(values))

    def scores_of_columns(self, columns: Iterable[AnyArray], n_rows: int) -> FloatArray:
        """A column's steps are one function: weights summed over the thresholds below the value."""
        inputs, thresholds, weights = (
            np.array(part) for part in (self.inputs, self.thresholds, self.weights)
        )
        scores = np.zeros(n_rows)
        for j, column in enumerate(columns):
            mine = np.flatnonzero(inputs == j)
            mine = mine[np.argsort(thresholds[mine], kind="stable")]
            steps = np.concatenate(([0.0], np.cumsum(weights[mine])))
            scores += steps[np.searchsorted(thresholds[mine], column, side="left")]
        return scores

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {name: list(values) for name, values in asdict(self).items()}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Steps:
        """The inverse of :meth:`to_dict`."""
        steps = converted(content, cls, "ensemble")
        lengths = {name: len(part) for name, part in asdict(steps).items()}
        if len(set(lengths.values())) > 1:
            counts = ", ".join(f"{length} {name}" for name, length in lengths.items())
            raise DataError(None, None, f"the ensemble has {counts}; expected as many of each")
        return steps

    def check(self, n_features: int) -> None:
        """Refuse steps of features that the model does not have."""
        if any(not 0 <= j < n_features for j in self.inputs):
            raise DataError(None, None, f"a step is about feature {max(self.inputs)} of {n_features}")


class TreesEntry(msgspec.Struct, forbid_unknown_fields=True):
    inputs: tuple[int, ...]
    text: list[str]


@dataclass(frozen=True)
class Trees:
    """The sum of trees; ``inputs`` are the booster's columns of the model's features: no others count."""

    kind: ClassVar[str] = "lightgbm"
    inputs: tuple[int, ...]
    text: str

    @classmethod
    def of(cls, booster: Any, inputs: IntArray) -> Trees:
        """The trees of a booster that splits on some columns."""
        return cls(tuple(inputs.tolist()), booster.model_to_string())

    @property
    def words(self) -> str:
        """How many there are."""
        n_trees = len(self._model.trees)
        return f"{n_trees} tree{'' if n_trees == 1 else 's'}"

    def scores(self, values: AnyArray) -> FloatArray:
        """Scores of rows, of which the model's features are given."""
        return self._function.scores(values)

    @cached_property
    def _model(self) -> TextModel:
        return read_text(self.text)

    @cached_property
    def _function(self) -> WeightedSum:
        """The trees as functions of the model's features in place of the booster's columns."""
        place = np.full(len(self._model.names) + 1, LEAF)  # the last one for leaves
        place[list(self.inputs)] = np.arange(len(self.inputs))
        return WeightedSum.plain([replace(tree, feature=place[tree.feature]) for tree in self._model.trees])

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, line by line."""
        return {"inputs": list(self.inputs), "text": self.text.split("\n")}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Trees:
        """The inverse of :meth:`to_dict`."""
        parts = converted(content, TreesEntry, "ensemble")
        return cls(parts.inputs, "\n".join(parts.text))

    def check(self, n_features: int) -> None:
        """Refuse trees that are damaged or split on columns that are none of the model's features."""
        if len(self.inputs) != n_features or len(set(self.inputs)) != n_features:
            raise DataError(
                None, None, f"inputs has {len(set(self.inputs))} columns for {n_features} features"
            )
        if any(not 0 <= j < len(self._model.names) for j in self.inputs):
            raise DataError(None, None, "inputs name a column that the trees do not have")
        used = np.unique([j for tree in self._model.trees for j in tree.feature])
        if not np.isin(used, [LEAF, *self.inputs]).all():
            raise DataError(None, None, "the trees split on a column that is not among the inputs")


FORMAT_VERSION = 1
OWN_ENTRIES = ("features", "n_features", "method", "parameters", "data", "version")
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
    """The content of a model file, in the order in which it is written."""

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


@dataclass(frozen=True)
class BoostedModel(ModelInputs):
    """score(x) = a sum of steps or trees over the features in use, with where it came from.

    ``preparation`` says what replaces a missing feature and how it is normalised, ``data`` has short names
    for the exact content of what it learned from, ``version`` is the release that wrote it.
    """

    features: tuple[Feature, ...]
    n_features: int
    ensemble: Steps | Trees
    preparation: Preparation = UNPREPARED
    method: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)
    version: str = __version__
    chosen_by: None = None

    @property
    def names(self) -> list[str]:
        """Names of the features in use."""
        return [feature.name for feature in self.features]

    @property
    def columns(self) -> list[int]:
        """Columns of the features in use in the training data, from 0."""
        return [feature.index for feature in self.features]

    def predict(self, X: Dataset | Matrix, qid: Any = None) -> FloatArray:
        """Scores in row order; columns are found by name in a Dataset or frame, by position in an array.

        ``qid`` is needed if X is not a Dataset and features are prepared within each query.
        """
        if isinstance(X, RemoteRows):
            return X.predicted(self.predict)  # type: ignore[no-any-return]
        matrix, columns = self.located(X)
        prepare, rows_at_once = self._prepare(X, qid, matrix.shape[0])
        scores = np.zeros(matrix.shape[0])
        for rows, values, places in input_blocks(matrix, columns, prepare, rows_at_once):
            mine = values[:, places]
            if self.preparation.missing.policy == "error" and np.isnan(mine).any():
                scores[rows] = mine.sum(axis=1)
                self._refuse_missing(scores, matrix, columns)
            scores[rows] = self.ensemble.scores(mine)
        return scores

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        entries = {
            "format": BOOSTED_FORMAT,
            "format_version": FORMAT_VERSION,
            **{name: getattr(self, name) for name in OWN_ENTRIES},
            **self.preparation.to_dict(),
            "features": [asdict(feature) for feature in self.features],
            "parameters": plain(self.parameters),
            "ensemble": {"kind": self.ensemble.kind, **self.ensemble.to_dict()},
        }
        return {name: entries[name] for name in BoostedModelFile.__struct_fields__}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as JSON, atomically."""
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)
        with atomic_write(path) as file:
            file.write(text + "\n")


def is_boosted(content: Any) -> bool:
    """Whether a JSON value says that it is such a model."""
    return isinstance(content, dict) and content.get("format") == BOOSTED_FORMAT


def boosted_from_dict(content: dict[str, Any], source: str | None = None) -> BoostedModel:
    """The inverse of :meth:`BoostedModel.to_dict`."""
    if content.get("format_version") != FORMAT_VERSION:
        reason = (
            f"has model format version {content.get('format_version')!r}; this ranksieve reads "
            f"{FORMAT_VERSION}"
        )
        raise DataError(source, None, reason)
    try:
        model = _model(converted(content, BoostedModelFile))
        check_entries(content, model.to_dict())
        return model
    except ValueError as error:
        raise DataError(source, None, f"damaged model file ({error})") from None


def _model(file: BoostedModelFile) -> BoostedModel:
    kind = converted(file.ensemble.pop("kind", ""), str, "ensemble.kind")
    model = BoostedModel(
        ensemble=lookup(ENSEMBLES, kind, "kind")(file.ensemble),
        preparation=Preparation(file.missing or KEPT, file.normalisation or NOT_NORMALISED),
        **{name: getattr(file, name) for name in OWN_ENTRIES},
    )
    check_features(model, model.names)
    model.ensemble.check(len(model.features))
    return model
