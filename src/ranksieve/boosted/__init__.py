"""BoostedModel: a ranker that is not linear, as a file: its features, their preparation, steps or trees."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ranksieve._types import FloatArray, Matrix
from ranksieve._util.atomic import atomic_write
from ranksieve._util.json_values import checked, plain
from ranksieve._util.messages import lookup
from ranksieve._version import __version__
from ranksieve.boosted.steps import Steps
from ranksieve.boosted.trees import Trees
from ranksieve.data.dataset import Dataset
from ranksieve.data.remote import RemoteDataset
from ranksieve.errors import DataError
from ranksieve.model import BOOSTED_FORMAT, MISSING, MOST_FEATURES, NORMALISATION
from ranksieve.model_inputs import ModelInputs, input_blocks
from ranksieve.preparation import UNPREPARED, Preparation

__all__ = ["BoostedModel", "Feature", "Steps", "Trees", "boosted_from_dict", "is_boosted"]

FORMAT_VERSION = 1
SHAPE = {
    "format": str,
    "format_version": int,
    "features": [{"name": str, "index": int}],
    "n_features": int,
    "ensemble": dict,
    "normalisation": (NORMALISATION, None),
    "missing": (MISSING, None),
    "method": str,
    "parameters": dict,
    "data": dict,
    "version": str,
}
ENSEMBLES: dict[str, Callable[[dict[str, Any]], Steps | Trees]] = {
    Steps.kind: Steps.from_dict,
    Trees.kind: Trees.from_dict,
}


@dataclass(frozen=True)
class Feature:
    """A feature in use: its name, its column in the training data (from 0)."""

    name: str
    index: int


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
        if isinstance(X, RemoteDataset):
            return X.predicted(self.predict)  # type: ignore[no-any-return]
        matrix, columns = self._located(X)
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
            **{name: getattr(self, name) for name in ("n_features", "method", "data", "version")},
            **self.preparation.to_dict(),
            "features": [asdict(feature) for feature in self.features],
            "parameters": plain(self.parameters),
            "ensemble": {"kind": self.ensemble.kind, **self.ensemble.to_dict()},
        }
        return {name: entries[name] for name in SHAPE}

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
        return _model(checked(content, SHAPE, "the model"))
    except ValueError as error:
        raise DataError(source, None, f"damaged model file ({error})") from None


def _model(content: dict[str, Any]) -> BoostedModel:
    described = dict(content["ensemble"])
    kind = checked(described.pop("kind", ""), str, "kind of the ensemble")
    model = BoostedModel(
        features=tuple(Feature(**feature) for feature in content["features"]),
        ensemble=lookup(ENSEMBLES, kind, "kind")(described),
        preparation=Preparation.from_dict(content),
        **{name: content[name] for name in ("n_features", "method", "parameters", "data", "version")},
    )
    _check(model)
    return model


def _check(model: BoostedModel) -> None:
    checked(list(model.data.values()), [str], "data")
    if not 0 < model.n_features <= MOST_FEATURES:
        raise DataError(None, None, f"n_features is {model.n_features}; expected 1 to {MOST_FEATURES}")
    if any(not 0 <= index < model.n_features for index in model.columns):
        raise DataError(None, None, f"a feature index is outside 0..{model.n_features - 1}")
    if len(set(model.names)) < len(model.names):
        raise DataError(None, None, "a feature occurs twice")
    for what in ("normalisation", "missing"):
        step = getattr(model.preparation, what)
        if list(step.features) != (model.names if step.learns else []):
            raise DataError(None, None, f"{what} is not that of the model's features")
    model.ensemble.check(len(model.features))
