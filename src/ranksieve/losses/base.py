"""The interface of losses: functions of scores, bound to the labels and weights of a data set."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np

from ranksieve._parallel import split_blocks
from ranksieve._types import FloatArray, IntArray
from ranksieve.data.dataset import checked_query_weight
from ranksieve.data.inputs import as_document_weight
from ranksieve.data.queries import Queries, local_levels
from ranksieve.errors import lookup

Weights: TypeAlias = FloatArray | None
"""One number ≥ 0 per query or per document; None: all are 1."""

PAIR_WEIGHTINGS = {"pairs": 0.0, "sqrt": 0.5, "queries": 1.0}
"""Exponent p of a pairwise loss by name: a query has the weight P^(−p), P the total weight of its pairs."""

NO_PAIRS = (
    "there is no pair to learn from: in every query all documents have the same label; "
    "at least one query needs two documents with different labels"
)


def query_factors(pairs: FloatArray, pair_weighting: str) -> FloatArray:
    """P^(−p) for each query, P the total weight of its pairs; 0 for a query without pairs."""
    power = lookup(PAIR_WEIGHTINGS, pair_weighting, "pair_weighting")
    return np.divide(1.0, pairs**power, out=np.zeros(len(pairs)), where=pairs > 0)


@dataclass(frozen=True)
class ScoreValue:
    """A loss at one score vector: sum, gradient, ``slack`` for the dual, and ``state`` for the Hessian.

    ``terms`` are the sizes of the terms of gradient and sum, if these may cancel almost to 0.
    """

    value: float
    gradient: FloatArray
    slack: float = 0.0
    state: Any = None
    terms: tuple[float, float] | None = None

    @cached_property
    def size(self) -> float:
        """Σ |gradient|."""
        return float(np.sum(np.abs(self.gradient)))


@dataclass(frozen=True)
class Curvature:
    """VᵀSV = AᵀA + UᵀN + NᵀU, S the (generalised) Hessian in scores of some queries: (A or None, U, N)."""

    squares: FloatArray | None
    left: FloatArray
    right: FloatArray

    def block(self) -> FloatArray:
        half = self.left.T @ self.right
        block = half + half.T
        return np.asarray(block if self.squares is None else block + self.squares.T @ self.squares)

    def diagonal(self) -> FloatArray:
        diagonal = 2.0 * np.einsum("ij,ij->j", self.left, self.right)
        if self.squares is None:
            return np.asarray(diagonal)
        return np.asarray(diagonal + np.einsum("ij,ij->j", self.squares, self.squares))

    def times(self, factor: float) -> Curvature:
        """Curvature of ``factor`` times the loss."""
        squares = None if self.squares is None else np.sqrt(factor) * self.squares
        return Curvature(squares, self.left, factor * self.right)


class BoundLoss(Protocol):
    """A loss bound to labels.

    ``offers`` names the capabilities besides value and gradient: "hessian" if the loss is smooth and
    ``curvature_of`` is its Hessian, "hessian_product" if ``curvature(at, first, last, v)`` returns Sv,
    "columns" if ``curvature_of`` takes a wider matrix and the indices of the columns of V in it,
    "largest_at_zero" if the Hessian is largest where all scores are 0, "rows" if ``level``, ``query_weight``
    and ``document_weight`` (or None) define the pairs of a query completely.
    """

    queries: Queries
    normaliser: float
    cuts: IntArray

    @property
    def name(self) -> str: ...

    @property
    def offers(self) -> frozenset[str]: ...

    def evaluate(self, s: FloatArray) -> ScoreValue:
        """Sum and gradient at the scores ``s``."""

    def curvature_of(self, at: ScoreValue, first: int, last: int, V: FloatArray) -> Curvature:
        """VᵀSV, S the (generalised) Hessian in scores of the queries first..last."""

    def dual(self, value: float, slack: float, scale: float) -> float:
        """Dual value at ``scale`` times the dual point of the scores; all values are means, not sums."""


class Loss(Protocol):
    """A loss with its parameters, not bound to data."""

    @property
    def name(self) -> str: ...

    def bind(
        self, y: FloatArray, queries: Queries, query_weight: Weights = None, document_weight: Weights = None
    ) -> BoundLoss:
        """Bind to labels (in input order) and optional weights per query and per document (in input order).

        A loss without document weights raises an error if they are given.
        """


def grouped_weights(document_weight: Weights, queries: Queries) -> FloatArray | None:
    """Document weights in grouped order, finite and ≥ 0; None if there are none or if all are 1."""
    weights = as_document_weight(document_weight, queries.n_rows)
    return None if weights is None or np.all(weights == 1.0) else queries.group(weights)


class ListLoss:
    """A bound loss that is a mean over queries, with labels and levels of documents of positive weight.

    If all documents of a query have weight 0, the query gets weight 0 and its documents weight 1. Other
    documents of weight 0 get a label that occurs in their query without them.
    """

    def __init__(
        self, y: FloatArray, queries: Queries, query_weight: Weights, document_weight: Weights
    ) -> None:
        self.queries, self.cuts = queries, split_blocks(queries.offsets)
        self._query_weight = checked_query_weight(query_weight, queries.n_queries)
        self._document_weight, self._labels = grouped_weights(document_weight, queries), queries.group(y)
        if self._document_weight is not None:
            starts, sizes = queries.offsets[:-1], queries.sizes
            empty = np.maximum.reduceat(self._document_weight, starts) == 0
            self._query_weight = np.where(empty, 0.0, self._query_weight)
            self._document_weight = weight = np.where(np.repeat(empty, sizes), 1.0, self._document_weight)
            highest = np.maximum.reduceat(np.where(weight > 0, self._labels, -np.inf), starts)
            self._labels = np.where(weight > 0, self._labels, np.repeat(highest, sizes))
        self._level = local_levels(self._labels, queries)
        self.normaliser = float(self._query_weight.sum())
