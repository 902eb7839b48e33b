"""LinearModel: the finished ranker, as a file that everything downstream reads."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ranksieve._types import FloatArray, IntArray, Matrix
from ranksieve._version import __version__
from ranksieve.data.atomic import atomic_write
from ranksieve.data.dataset import Dataset, as_matrix

FORMAT = "ranksieve-linear-model"
FORMAT_VERSION = 1
ROWS_AT_ONCE = 8192


@dataclass(frozen=True)
class Term:
    """One feature in use: its name, its column in the training data (from 0), its weight."""

    name: str
    index: int
    weight: float


@dataclass(frozen=True)
class LinearModel:
    """score(x) = intercept + Σ_j weight_j · x_j over the few features in use, with where it came from.

    ``certificate`` holds the objective and the duality gap of the fit, ``metrics`` what was measured,
    ``fingerprint`` the content of the training data, ``version`` the release that wrote it.
    """

    terms: tuple[Term, ...]
    n_features: int
    intercept: float = 0.0
    normalisation: Mapping[str, Any] | None = None
    method: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    certificate: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    fingerprint: str = ""
    version: str = __version__

    @property
    def names(self) -> list[str]:
        """Names of the features in use."""
        return [term.name for term in self.terms]

    @property
    def weights(self) -> FloatArray:
        """Weights of the features in use."""
        return np.array([term.weight for term in self.terms], dtype=np.float64)

    @property
    def coef(self) -> FloatArray:
        """Weights of all features of the training data, zeros included."""
        w = np.zeros(self.n_features)
        w[[term.index for term in self.terms]] = self.weights
        return w

    def predict(self, X: Dataset | Matrix) -> FloatArray:
        """Scores in row order; only the columns in use are read.

        Columns are found by name in a Dataset or frame, by position in a bare array.
        """
        names: tuple[str, ...] | list[str] | None
        matrix, names = (X.X, X.feature_names) if isinstance(X, Dataset) else as_matrix(X)
        if not self.terms:
            return np.full(matrix.shape[0], self.intercept)
        columns = self._columns(matrix.shape[1], names)
        return linear_scores(matrix, columns, self.weights) + self.intercept

    def _columns(self, width: int, names: tuple[str, ...] | list[str] | None) -> IntArray:
        if names is None:
            if width != self.n_features:
                raise ValueError(f"the model was trained on {self.n_features} features but X has {width}")
            return np.array([term.index for term in self.terms])
        place = {name: column for column, name in enumerate(names)}
        missing = [name for name in self.names if name not in place]
        if missing:
            raise ValueError(
                f"the data lack {len(missing)} of the model's features: {', '.join(missing[:10])}"
            )
        return np.array([place[name] for name in self.names])

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"format": FORMAT, "format_version": FORMAT_VERSION, **asdict(self)}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as JSON, atomically."""
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)
        with atomic_write(path) as file:
            file.write(text + "\n")


def linear_scores(X: Matrix, columns: IntArray, weights: FloatArray) -> FloatArray:
    """Σ_j weight_j · x_j over the given columns, added in their order.

    Equal rows get equal scores to the last bit, wherever they stand (a BLAS product does not promise that),
    so that ties stay ties.
    """
    scores = np.zeros(X.shape[0])
    for start in range(0, len(scores), ROWS_AT_ONCE):
        block = X[start : start + ROWS_AT_ONCE][:, columns]
        dense = block.toarray() if sp.issparse(block) else block
        for column, weight in zip(dense.T, weights, strict=True):
            scores[start : start + ROWS_AT_ONCE] += np.multiply(column, weight, dtype=np.float64)
    return scores


def load_model(path: str | os.PathLike[str]) -> LinearModel:
    """Read a model file; a damaged file or an unknown version is a ValueError."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: not a model file (damaged JSON: {error})") from None
    return model_from_dict(content, str(path))


def model_from_dict(content: Any, source: str = "model") -> LinearModel:
    """The inverse of :meth:`LinearModel.to_dict`."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f'{source}: not a ranksieve model (no "format": "{FORMAT}")')
    if content.get("format_version") != FORMAT_VERSION:
        raise ValueError(
            f"{source}: model format version {content.get('format_version')!r}, "
            f"but this ranksieve reads version {FORMAT_VERSION}"
        )
    try:
        fields = {k: v for k, v in content.items() if k not in ("format", "format_version", "terms")}
        model = LinearModel(terms=tuple(_term(t) for t in content["terms"]), **fields)
        _check(model)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{source}: damaged model file ({error})") from None
    return model


def _term(content: Mapping[str, Any]) -> Term:
    return Term(str(content["name"]), int(content["index"]), float(content["weight"]))


def _check(model: LinearModel) -> None:
    indices = [term.index for term in model.terms]
    if len(set(indices)) < len(indices) or len(set(model.names)) < len(indices):
        raise ValueError("a feature occurs twice")
    if any(not 0 <= index < model.n_features for index in indices):
        raise ValueError(f"a feature index is outside 0..{model.n_features - 1}")
    if not np.isfinite([*model.weights, model.intercept]).all():
        raise ValueError("a weight is not a finite number")
