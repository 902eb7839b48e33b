"""Score functions of models of other programs, with the interface of our own models."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ranksieve._types import AnyArray, BoolArray, FloatArray, IntArray, Matrix
from ranksieve.data.dataset import Dataset
from ranksieve.data.inputs import as_matrix, numbered_names
from ranksieve.data.matrix import value_blocks
from ranksieve.errors import DataError, short_list
from ranksieve.model.linear import LinearModel, Term
from ranksieve.prepare import MissingPolicy, Preparation

Features: TypeAlias = NDArray[np.floating[Any]]
ZERO = MissingPolicy("zero")
LEAF = -1
LARGEST_ZERO = 1e-35  # LightGBM treats smaller values as 0
SAME_FEATURES = "pass the features that it was trained on, in the same order"


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
    """A nonlinear model of another program; columns are matched by position.

    Features are read as float32, as in RankLib and fastrank, so that a value equal to a threshold goes to the
    same side as in training. Missing values are 0, as in those programs.
    """

    function: ScoreFunction
    method: str
    n_features: int
    missing: MissingPolicy | None = ZERO
    chosen_by: None = None
    dtype: type[np.floating] = np.float32

    def predict(self, X: Dataset | Matrix, qid: Any = None) -> FloatArray:
        """Scores in row order."""
        matrix, names = (X.X, X.feature_names) if isinstance(X, Dataset) else as_matrix(X)
        scores, columns = np.empty(matrix.shape[0]), self._columns(matrix.shape[1], names)
        for rows, values, _ in value_blocks(matrix, columns, 4096, copy=True):
            with np.errstate(over="ignore", invalid="ignore"):
                features = values.astype(self.dtype)
                if self.missing is not None:
                    features = np.nan_to_num(features, nan=0.0, posinf=np.inf, neginf=-np.inf)
                scores[rows] = self.function.scores(features)
        return scores

    def _columns(self, width: int, names: Sequence[str] | None) -> IntArray:
        """Columns of the model's features in the data, in the order of the model."""
        needed = self.function.n_features
        if width < needed:
            reason = (
                f"the {self.method} model uses feature {needed}, but the data have only {width}; "
                f"{SAME_FEATURES}"
            )
            raise DataError(None, None, reason)
        return np.arange(needed)


@dataclass(frozen=True, eq=False)
class BoosterModel(ForeignModel):
    """A LightGBM or XGBoost model, whose splits have a default direction for missing values (NaN).

    ``names`` are the features that it was trained on, empty if the model has no names. Columns are matched by
    name, or by position if the model or the data have no names.
    """

    missing: None = None
    names: tuple[str, ...] = ()

    def _columns(self, width: int, names: Sequence[str] | None) -> IntArray:
        index = {name.replace(" ", "_"): column for column, name in enumerate(names or ())}  # as in LightGBM
        index |= {name: column for column, name in enumerate(names or ())}
        lacking = [name for name in self.names if name not in index]
        if self.names and not lacking:
            return np.array([index[name] for name in self.names])
        if self.names and names is not None and tuple(names) != numbered_names(width):
            reason = (
                f"the data lack {len(lacking)} of the features of the {self.method} model: "
                f"{short_list(lacking, 10)}; use the same feature names in both"
            )
            raise DataError(None, None, reason)
        if width != self.n_features:
            reason = (
                f"the {self.method} model was trained on {self.n_features} features, but the data have "
                f"{width}; {SAME_FEATURES}"
            )
            raise DataError(None, None, reason)
        return np.arange(width)


def linear_model_from_weights(
    weights: FloatArray, method: str, names: Sequence[str] | None, intercept: float = 0.0
) -> LinearModel:
    """Make a LinearModel from the weights of columns 0, 1, …, by default named f1, f2, …"""
    n_features, names = max(len(weights), len(names or ())), names or ()
    numbered = all(name == f"f{j}" for j, name in enumerate(names, start=1))
    used = np.flatnonzero(weights).tolist()
    if used and used[-1] >= len(names) and not numbered:
        reason = (
            f"the {method} model uses feature {used[-1] + 1}, but the data have only {len(names)}; "
            f"{SAME_FEATURES}"
        )
        raise DataError(None, None, reason)
    terms = tuple(Term(f"f{j + 1}" if numbered else names[j], j, float(weights[j])) for j in used)
    return LinearModel(terms, n_features, intercept=intercept, method=method, preparation=Preparation(ZERO))


class ScoreFunction(Protocol):
    """Computes the scores of rows from their first ``n_features`` columns."""

    @property
    def n_features(self) -> int: ...

    def scores(self, X: Features) -> FloatArray: ...


@dataclass(frozen=True, eq=False)
class Tree:
    """A regression tree: at node i go left if x[feature_i] ≤ threshold_i, else right; a leaf has a value.

    Node 0 is the root; a leaf has the feature −1. ``nan_left`` and ``zero_left`` are the directions of
    missing values and zeros at each split, if not given by the threshold; ``categories`` holds the values
    that go left at categorical splits.
    """

    feature: IntArray
    threshold: AnyArray
    left: IntArray
    right: IntArray
    value: AnyArray
    nan_left: BoolArray | None = None
    zero_left: BoolArray | None = None
    categories: Mapping[int, Sequence[int]] = field(default_factory=dict)

    @classmethod
    def leaf(cls, value: float) -> Tree:
        none = np.zeros(1, dtype=np.int64)
        return cls(none + LEAF, np.zeros(1), none, none, np.array([value]))

    @property
    def n_features(self) -> int:
        return int(self.feature.max()) + 1

    def scores(self, X: Features) -> FloatArray:
        node = np.zeros(len(X), dtype=np.int64)
        rows = np.flatnonzero(self.feature[node] != LEAF)
        while len(rows):
            current = node[rows]
            x = X[rows, self.feature[current]]
            node[rows] = np.where(self._goes_left(x, current), self.left[current], self.right[current])
            rows = rows[self.feature[node[rows]] != LEAF]
        return np.asarray(self.value[node])

    def _goes_left(self, x: AnyArray, node: IntArray) -> BoolArray:
        goes_left = x <= self.threshold[node]
        if self.zero_left is not None:
            zero = np.abs(x) <= LARGEST_ZERO
            goes_left[zero] = self.zero_left[node[zero]]
        if self.nan_left is not None:
            missing = np.isnan(x)
            goes_left[missing] = self.nan_left[node[missing]]
        for split, members in self.categories.items():
            goes_left = np.where(node == split, np.isin(np.trunc(x), members), goes_left)
        return np.asarray(goes_left)


@dataclass(frozen=True, eq=False)
class StumpSum:
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
    """Layers of logistic neurons, σ(input · weights + bias); the inputs are the columns ``feature``."""

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

    @classmethod
    def plain(
        cls, functions: Sequence[ScoreFunction], dtype: type[np.floating] = np.float64, divisor: float = 1.0
    ) -> WeightedSum:
        """Σ_m function_m / divisor."""
        return cls(tuple(functions), (1.0,) * len(functions), dtype, divisor)

    @property
    def n_features(self) -> int:
        return max((function.n_features for function in self.functions), default=0)

    def scores(self, X: Features) -> FloatArray:
        total = np.zeros(len(X), dtype=self.dtype)
        for function, weight in zip(self.functions, self.weights, strict=True):
            total = (total + function.scores(X) * weight).astype(self.dtype)
        return total.astype(np.float64) / self.divisor


@dataclass
class TreeBuilder:
    """Collects the nodes of a tree; the first one added is the root."""

    feature: list[int] = field(default_factory=list)
    number: list[float] = field(default_factory=list)
    children: list[list[int]] = field(default_factory=list)

    def node(self, parent: int | None) -> int:
        """Add a child of ``parent``, the left one first, and return its index."""
        self.feature.append(LEAF)
        self.number.append(math.nan)
        self.children.append([])
        if parent is not None:
            self.children[parent].append(len(self.feature) - 1)
        return len(self.feature) - 1

    def tree(self) -> Tree:
        """Build the tree; ``number`` is the threshold of a split or the value of a leaf."""
        number = np.array(self.number)
        pairs = np.array([children or [0, 0] for children in self.children], dtype=np.int64)
        return Tree(np.array(self.feature), number, pairs[:, 0], pairs[:, 1], number)
