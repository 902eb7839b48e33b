"""Models of other programs: what they compute, behind the interface of ours."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ranksieve._types import FloatArray, IntArray, Matrix
from ranksieve.data.dataset import Dataset
from ranksieve.data.inputs import as_matrix
from ranksieve.data.matrix import value_blocks
from ranksieve.errors import DataError
from ranksieve.model.linear import LinearModel, Term
from ranksieve.prepare import MissingPolicy, Preparation

Features = NDArray[np.float32]
ROWS_AT_ONCE = 4096
ZERO = MissingPolicy("zero")
LEAF = -1
SAME = "give the features that it was trained on, in the same order"


class Scorer(Protocol):
    """Anything that scores documents: a model of this package or of another program."""

    @property
    def n_features(self) -> int: ...
    @property
    def method(self) -> str: ...
    @property
    def missing(self) -> MissingPolicy | None: ...
    @property
    def chosen_by(self) -> Mapping[str, str] | None: ...

    def predict(self, X: Dataset | Matrix, /) -> FloatArray: ...


@dataclass(frozen=True, eq=False)
class ForeignModel:
    """A model of another program that is not linear; columns are taken by position.

    Features are read as float32, as RankLib and fastrank do: a threshold that equals a feature value then
    splits as it did in training. What is missing counts 0, as in those programs.
    """

    function: ScoreFunction
    method: str
    n_features: int
    missing: MissingPolicy = ZERO
    chosen_by: None = None

    def predict(self, X: Dataset | Matrix, qid: Any = None) -> FloatArray:
        """Scores in row order."""
        matrix = X.X if isinstance(X, Dataset) else as_matrix(X)[0]
        if matrix.shape[1] < self.function.n_features:
            reason = (
                f"the {self.method} model uses feature {self.function.n_features}, but the data have only "
                f"{matrix.shape[1]}; {SAME}"
            )
            raise DataError(None, None, reason)
        scores, columns = np.empty(matrix.shape[0]), np.arange(self.function.n_features)
        for rows, values, _ in value_blocks(matrix, columns, ROWS_AT_ONCE, own=True):
            scores[rows] = self.function.scores(_without_missing(values))
        return scores


def linear_model(
    weights: FloatArray, method: str, names: Sequence[str] | None, intercept: float = 0.0
) -> LinearModel:
    """A LinearModel of the weights of columns 0, 1, … with these names; by default f1, f2, …"""
    n_features, names = max(len(weights), len(names or ())), names or ()
    numbered = all(name == f"f{j}" for j, name in enumerate(names, start=1))
    used = np.flatnonzero(weights).tolist()
    if used and used[-1] >= len(names) and not numbered:
        reason = (
            f"the {method} model uses feature {used[-1] + 1}, but the data have only {len(names)}; {SAME}"
        )
        raise DataError(None, None, reason)
    terms = tuple(Term(f"f{j + 1}" if numbered else names[j], j, float(weights[j])) for j in used)
    return LinearModel(terms, n_features, intercept=intercept, method=method, preparation=Preparation(ZERO))


def _without_missing(values: FloatArray) -> Features:
    return np.nan_to_num(values.astype(np.float32), nan=0.0, posinf=np.inf, neginf=-np.inf)


class ScoreFunction(Protocol):
    """What a model computes: the scores of rows, from the first ``n_features`` columns."""

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
        signal = X[:, self.feature].astype(np.float64)
        for weights, bias in zip(self.weights, self.biases, strict=True):
            signal = expit((signal[:, :, None] * weights).sum(axis=1) + bias)
        return signal[:, 0]


@dataclass(frozen=True, eq=False)
class WeightedSum:
    """(Σ_m weight_m · function_m) / divisor, rounded to ``dtype`` after each addition."""

    functions: tuple[ScoreFunction, ...]
    weights: tuple[float, ...]
    dtype: type[np.floating] = np.float64
    divisor: float = 1.0

    @property
    def n_features(self) -> int:
        return max(function.n_features for function in self.functions)

    def scores(self, X: Features) -> FloatArray:
        total = np.zeros(len(X), dtype=self.dtype)
        for function, weight in zip(self.functions, self.weights, strict=True):
            total = (total + function.scores(X) * weight).astype(self.dtype)
        return total.astype(np.float64) / self.divisor


@dataclass
class TreeBuilder:
    """Nodes in the order they are added; the first is the root."""

    feature: list[int] = field(default_factory=list)
    number: list[float] = field(default_factory=list)
    children: list[list[int]] = field(default_factory=list)

    def node(self, parent: int | None) -> int:
        """Add a node below ``parent``, left before right."""
        self.feature.append(LEAF)
        self.number.append(math.nan)
        self.children.append([])
        if parent is not None:
            self.children[parent].append(len(self.feature) - 1)
        return len(self.feature) - 1

    def tree(self) -> Tree:
        """The finished tree: ``number`` is the threshold of a split and the value of a leaf."""
        number = np.array(self.number)
        pairs = np.array([children or [0, 0] for children in self.children], dtype=np.int64)
        return Tree(np.array(self.feature), number, pairs[:, 0], pairs[:, 1], number)
