"""Regression trees of LightGBM, kept as its own text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ranksieve._types import AnyArray, FloatArray, IntArray
from ranksieve._util.json_values import checked
from ranksieve.boosted.lightgbm_text import CELLS_AT_ONCE, TextModel, booster_of, booster_scores, read_text
from ranksieve.errors import DataError

SHAPE = {"inputs": [int], "text": [str]}


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
        return f"{self._checked.n_trees} tree{'' if self._checked.n_trees == 1 else 's'}"

    def scores(self, values: AnyArray) -> FloatArray:
        """Scores of rows, of which the model's features are given."""
        scores, width = np.empty(len(values)), len(self._checked.names)
        step = max(1, CELLS_AT_ONCE // width)
        for first in range(0, len(values), step):
            part = values[first : first + step]
            rows = np.zeros((len(part), width))
            rows[:, list(self.inputs)] = part
            scores[first : first + step] = booster_scores(self._booster, rows)
        return scores

    @cached_property
    def _checked(self) -> TextModel:
        return read_text(self.text)

    @cached_property
    def _booster(self) -> Any:
        return booster_of(self._checked.text, "a model of trees")

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, line by line."""
        return {"inputs": list(self.inputs), "text": self.text.split("\n")}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Trees:
        """The inverse of :meth:`to_dict`."""
        parts = checked(content, SHAPE, "the ensemble")
        return cls(tuple(parts["inputs"]), "\n".join(parts["text"]))

    def check(self, n_features: int) -> None:
        """Refuse trees that are damaged or split on columns that are none of the model's features."""
        if len(self.inputs) != n_features or len(set(self.inputs)) != n_features:
            raise DataError(
                None, None, f"inputs has {len(set(self.inputs))} columns for {n_features} features"
            )
        if any(not 0 <= j < len(self._checked.names) for j in self.inputs):
            raise DataError(None, None, "inputs name a column that the trees do not have")
        if not self._checked.used <= set(self.inputs):
            raise DataError(None, None, "the trees split on a column that is not among the inputs")
