"""What the models of other programs are made of: functions of a float32 feature matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ranksieve._types import FloatArray, IntArray

Features = NDArray[np.float32]
LEAF = -1


class Part(Protocol):
    """Scores of rows, and how many columns they need."""

    @property
    def n_features(self) -> int: ...

    def scores(self, X: Features) -> FloatArray: ...


@dataclass(frozen=True, eq=False)
class Tree:
    """A regression tree: at node i go left if x[feature_i] ≤ threshold_i, else right; a leaf has a value.

    Node 0 is the root; a leaf has the feature −1.
    """

    feature: IntArray
    threshold: FloatArray
    left: IntArray
    right: IntArray
    value: FloatArray

    @property
    def n_features(self) -> int:
        return int(self.feature.max()) + 1

    def scores(self, X: Features) -> FloatArray:
        node = np.zeros(len(X), dtype=np.int64)
        rows = np.flatnonzero(self.feature[node] != LEAF)
        while len(rows):
            here = node[rows]
            goes_left = X[rows, self.feature[here]] <= self.threshold[here]
            node[rows] = np.where(goes_left, self.left[here], self.right[here])
            rows = rows[self.feature[node[rows]] != LEAF]
        return self.value[node]


@dataclass(frozen=True, eq=False)
class Stumps:
    """Σ_t weight_t · [x[feature_t] > threshold_t]."""

    feature: IntArray
    threshold: FloatArray
    weight: FloatArray

    @property
    def n_features(self) -> int:
        return int(self.feature.max()) + 1

    def scores(self, X: Features) -> FloatArray:
        total = np.zeros(len(X))
        for feature, threshold, weight in zip(self.feature, self.threshold, self.weight, strict=True):
            total += weight * (X[:, feature] > threshold)
        return total


@dataclass(frozen=True, eq=False)
class Linear:
    """Σ_j weight_j · x_j."""

    weight: FloatArray

    @property
    def n_features(self) -> int:
        return len(self.weight)

    def scores(self, X: Features) -> FloatArray:
        total = np.zeros(len(X))
        for column, weight in zip(X.T, self.weight, strict=False):
            total += weight * column.astype(np.float64)
        return total


@dataclass(frozen=True, eq=False)
class Network:
    """Layers of logistic neurons: σ(input · weights + bias), the inputs being the columns ``feature``."""

    feature: IntArray
    weights: tuple[FloatArray, ...]
    biases: tuple[FloatArray, ...]

    @property
    def n_features(self) -> int:
        return int(self.feature.max()) + 1

    def scores(self, X: Features) -> FloatArray:
        from scipy.special import expit

        signal = X[:, self.feature].astype(np.float64)
        for weights, bias in zip(self.weights, self.biases, strict=True):
            signal = expit((signal[:, :, None] * weights).sum(axis=1) + bias)
        return signal[:, 0]


@dataclass(frozen=True, eq=False)
class WeightedSum:
    """(Σ_m weight_m · part_m) / divisor, rounded to ``dtype`` after each addition."""

    parts: tuple[Part, ...]
    weights: tuple[float, ...]
    dtype: type[np.floating] = np.float64
    divisor: float = 1.0

    @property
    def n_features(self) -> int:
        return max(part.n_features for part in self.parts)

    def scores(self, X: Features) -> FloatArray:
        total = np.zeros(len(X), dtype=self.dtype)
        for part, weight in zip(self.parts, self.weights, strict=True):
            total = (total + part.scores(X) * weight).astype(self.dtype)
        return total.astype(np.float64) / self.divisor
