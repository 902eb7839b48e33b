"""A sum of steps, Σ weight · [x > threshold]: what RankBoost learns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ranksieve._types import AnyArray, FloatArray
from ranksieve._util.json_values import checked
from ranksieve.errors import DataError

SHAPE = {"inputs": [int], "thresholds": [float], "weights": [float]}


@dataclass(frozen=True)
class Steps:
    """Σ_t weights_t · [x_{inputs_t} > thresholds_t]; inputs count from 0."""

    kind: ClassVar[str] = "steps"
    inputs: tuple[int, ...]
    thresholds: tuple[float, ...]
    weights: tuple[float, ...]

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
        return {name: list(getattr(self, name)) for name in SHAPE}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Steps:
        """The inverse of :meth:`to_dict`."""
        parts = checked(content, SHAPE, "the ensemble")
        if len({len(part) for part in parts.values()}) > 1:
            lengths = ", ".join(f"{len(part)} {name}" for name, part in parts.items())
            raise DataError(None, None, f"the ensemble has {lengths}; expected as many of each")
        return cls(**{name: tuple(part) for name, part in parts.items()})

    def check(self, n_features: int) -> None:
        """Refuse steps of features that the model does not have."""
        if any(not 0 <= j < n_features for j in self.inputs):
            raise DataError(None, None, f"a step is about feature {max(self.inputs)} of {n_features}")
