"""Steps of features: columns 1[x ≥ t] and 1[x is missing], read from one byte per value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ranksieve._types import AnyArray, BoolArray, FloatArray, IntArray
from ranksieve.data.features import column_indices
from ranksieve.data.matrix import StreamedMatrix
from ranksieve.kernels.steps import MAX_THRESHOLDS, MISSING, add_levels, put_steps

__all__ = ["MAX_THRESHOLDS", "MISSING", "StepColumns", "StepMatrix", "codes_of", "features_in_use"]


@dataclass(frozen=True, eq=False)
class StepColumns:
    """Columns made of ``features`` (names): column c is slot ``slot[c]`` of feature ``feature[c]``.

    Slot b from 1 is 1 where x ≥ the b-th threshold, slot ``MISSING`` where x is missing, else 0.
    """

    feature: IntArray
    slot: IntArray
    features: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.feature)

    @property
    def n_features(self) -> int:
        return len(self.features)

    def __getitem__(self, index: Any) -> StepColumns:
        return StepColumns(self.feature[index], self.slot[index], self.features)

    @property
    def is_missing(self) -> BoolArray:
        return np.asarray(self.slot == MISSING)

    def levels(self, w: FloatArray, used: IntArray) -> FloatArray:
        """Level of each of the ``used`` features (ascending) by code: the sum of the weights of its steps."""
        levels, some = np.zeros((len(used), MISSING + 1)), np.isin(self.feature, used)
        levels[np.searchsorted(used, self.feature[some]), self.slot[some]] = w[some]
        levels[:, :MISSING] = np.cumsum(levels[:, :MISSING], axis=1)
        return levels

    def of(self, names: Iterable[str]) -> IntArray:
        """Columns of some features."""
        return np.flatnonzero(np.isin(self.feature, column_indices(names, self.features, "features")))

    def variation(self, w: FloatArray) -> FloatArray:
        """Σ|w| over the columns of the same feature, one entry per column."""
        return np.asarray(np.bincount(self.feature, np.abs(w))[self.feature])

    def used(self, w: FloatArray) -> IntArray:
        """Features with a nonzero weight, ascending."""
        return np.unique(self.feature[w != 0])

    def l1_weights(self, of_features: FloatArray) -> FloatArray:
        """ℓ1 weights of the columns; of a feature with weight 0 only the middle step is without penalty.

        So the feature is in every model, and its other steps have the weight of any other feature.
        """
        weights = of_features[self.feature]
        for j in np.intersect1d(np.flatnonzero(of_features == 0.0), self.feature):
            own = np.flatnonzero(self.feature == j)
            weights[np.delete(own, np.count_nonzero(~self.is_missing[own]) // 2)] = 1.0
        return weights


def features_in_use(coefs: FloatArray, columns: StepColumns | None) -> BoolArray:
    """Which features each model (row) uses; without step columns, each weight is that of one feature."""
    if columns is None:
        return np.asarray(coefs != 0)
    in_use = np.zeros((len(coefs), columns.n_features), dtype=bool)
    model, column = np.nonzero(coefs)
    in_use[model, columns.feature[column]] = True
    return in_use


def codes_of(values: FloatArray, thresholds: FloatArray) -> AnyArray:
    """Number of thresholds ≤ x, ``MISSING`` for NaN."""
    codes = np.searchsorted(thresholds, values, side="right")
    return np.where(np.isnan(values), MISSING, codes).astype(np.uint8)


class StepMatrix(StreamedMatrix):
    """A matrix of step columns, which are computed on demand from ``codes`` (features × rows)."""

    def __init__(self, codes: AnyArray, columns: StepColumns) -> None:
        super().__init__(np.array([0, codes.shape[1]]), len(columns), np.dtype(np.uint8))
        self.codes, self.columns = codes, columns

    def read(self, first: int, last: int, columns: IntArray) -> AnyArray:
        return np.asfortranarray(self.block(np.arange(first, last), columns))

    def read_ahead(self, first: int, last: int, columns: IntArray) -> None:
        """All codes are in memory."""

    def block(self, rows: IntArray, columns: IntArray) -> AnyArray:
        """Values of some rows and columns."""
        block = np.empty((len(rows), len(columns)), np.uint8)
        put_steps(self.codes, self.columns.feature[columns], self.columns.slot[columns], rows, block)
        return block

    def take_rows(self, rows: IntArray) -> StepMatrix:
        return StepMatrix(np.ascontiguousarray(self.codes[:, rows]), self.columns)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, tuple) and isinstance(index[0], slice) and index[0] == slice(None):
            columns = np.arange(self.shape[1])[index[1]]
            if columns.ndim:
                return StepMatrix(self.codes, self.columns[columns])
        return super().__getitem__(index)

    @cached_property
    def value_range(self) -> tuple[float, float]:
        return 0.0, 1.0

    def scores_of_models(self, coefs: FloatArray) -> FloatArray:
        """Scores (documents × models); the bits are those of a model with the same levels."""
        scores = np.zeros((len(coefs), self.shape[0]))
        for w, part in zip(coefs, scores, strict=True):
            used = self.columns.used(w)
            add_levels(self.codes, used, self.columns.levels(w, used), 0, len(part), part)
        return scores.T
