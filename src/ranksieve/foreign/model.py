"""Others' models behind the interface of ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ranksieve._types import FloatArray, Matrix
from ranksieve.data.dataset import Dataset, as_matrix
from ranksieve.data.matrix import value_blocks
from ranksieve.foreign.parts import Features, Part
from ranksieve.model import LinearModel, Term
from ranksieve.preparation import MissingPolicy, Preparation

ROWS_AT_ONCE = 4096
ZERO = MissingPolicy("zero")


class Scorer(Protocol):
    """Anything that scores documents: a model of this package or of another program."""

    @property
    def n_features(self) -> int: ...
    @property
    def method(self) -> str: ...
    @property
    def missing(self) -> MissingPolicy | None: ...

    def predict(self, X: Dataset | Matrix, /) -> FloatArray: ...


@dataclass(frozen=True, eq=False)
class ForeignModel:
    """A model of another program that is not linear; columns are taken by position.

    Features are read as float32, as RankLib and fastrank do: a threshold that equals a feature value then
    splits as it did in training. What is missing counts 0, as there.
    """

    part: Part
    method: str
    n_features: int
    missing: MissingPolicy = ZERO

    def predict(self, X: Dataset | Matrix, qid: Any = None) -> FloatArray:
        """Scores in row order."""
        matrix = X.X if isinstance(X, Dataset) else as_matrix(X)[0]
        if matrix.shape[1] < self.part.n_features:
            raise ValueError(
                f"the {self.method} model uses feature {self.part.n_features} but the data have only "
                f"{matrix.shape[1]}; give the features that it was trained on, in the same order"
            )
        scores, columns = np.empty(matrix.shape[0]), np.arange(self.part.n_features)
        for rows, values, _ in value_blocks(matrix, columns, ROWS_AT_ONCE, own=True):
            scores[rows] = self.part.scores(_without_missing(values))
        return scores


def linear_model(
    weights: FloatArray, method: str, names: Sequence[str] | None, intercept: float = 0.0
) -> LinearModel:
    """A LinearModel of the weights of columns 0, 1, … with these names; default f1, f2, …, without an end."""
    n_features, names = max(len(weights), len(names or ())), names or ()
    numbered = all(name == f"f{j}" for j, name in enumerate(names, start=1))
    used = np.flatnonzero(weights).tolist()
    if used and used[-1] >= len(names) and not numbered:
        raise ValueError(
            f"the {method} model uses feature {used[-1] + 1} but the data have only {len(names)}; "
            "give the features that it was trained on, in the same order"
        )
    terms = tuple(Term(f"f{j + 1}" if numbered else names[j], j, float(weights[j])) for j in used)
    return LinearModel(terms, n_features, intercept=intercept, method=method, preparation=Preparation(ZERO))


def _without_missing(values: FloatArray) -> Features:
    return np.nan_to_num(values.astype(np.float32), nan=0.0, posinf=np.inf, neginf=-np.inf)
