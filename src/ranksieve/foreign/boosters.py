"""Models whose scores another package computes, with its own treatment of missing values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksieve._types import FloatArray, IntArray, Matrix
from ranksieve._util.messages import shortened
from ranksieve.data.dataset import Dataset
from ranksieve.data.inputs import as_matrix, numbered_names
from ranksieve.data.matrix import value_blocks
from ranksieve.errors import DataError
from ranksieve.foreign.model import SAME

CELLS_AT_ONCE = 2**22


@dataclass(frozen=True, eq=False)
class BoosterModel:
    """A model of LightGBM or XGBoost, which get the values as they are, NaN where one is missing.

    ``names`` are the features that it was trained on, empty if it does not name them. They are found by
    name in the data; where either has no names of its own, by position.
    """

    method: str
    n_features: int
    names: tuple[str, ...]
    scores: Callable[[FloatArray], FloatArray]
    missing: None = None
    chosen_by: None = None

    def predict(self, X: Dataset | Matrix, qid: Any = None) -> FloatArray:
        """Scores in row order."""
        matrix, names = (X.X, X.feature_names) if isinstance(X, Dataset) else as_matrix(X)
        columns = self._places(matrix.shape[1], names)
        scores, rows_at_once = np.empty(matrix.shape[0]), max(1, CELLS_AT_ONCE // max(1, len(columns)))
        for rows, values, _ in value_blocks(matrix, columns, rows_at_once, own=True):
            scores[rows] = self.scores(values)
        return scores

    def _places(self, width: int, given: Sequence[str] | None) -> IntArray:
        """The columns of the data that are the model's features, in its order."""
        place = {name.replace(" ", "_"): column for column, name in enumerate(given or ())}  # LightGBM's way
        place |= {name: column for column, name in enumerate(given or ())}
        lacking = [name for name in self.names if name not in place]
        if self.names and not lacking:
            return np.array([place[name] for name in self.names])
        if self.names and given is not None and tuple(given) != numbered_names(width):
            reason = (
                f"the data lack {len(lacking)} of the features of the {self.method} model: "
                f"{shortened(lacking, 10)}; give both the same feature names"
            )
            raise DataError(None, None, reason)
        if width != self.n_features:
            reason = (
                f"the {self.method} model was trained on {self.n_features} features, but the data have "
                f"{width}; {SAME}"
            )
            raise DataError(None, None, reason)
        return np.arange(width)
