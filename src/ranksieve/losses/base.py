"""What every loss gives: a function of scores, bound to the labels and weights of one data set."""

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

Weights: TypeAlias = FloatArray | None
"""One number ≥ 0 per query or per document; None: all are 1."""

NO_PAIRS = (
    "there is no pair to learn from: in every query all documents have the same label; "
    "at least one query needs two documents with different labels"
)


@dataclass(frozen=True)
class ScoreValue:
    """A loss at one score vector: the sum, its gradient, and what its dual and its Hessian need.

    ``by_query`` has the share of each query in the sum, where a loss keeps it. ``terms`` are the sizes of the
    terms of gradient and sum, where these may cancel almost to 0.
    """

    value: float
    gradient: FloatArray
    slack: float = 0.0
    state: Any = None
    by_query: Any = None
    terms: tuple[float, float] | None = None

    @cached_property
    def size(self) -> float:
        """Σ |gradient|."""
        return float(np.sum(np.abs(self.gradient)))


@dataclass(frozen=True)
class Curvature:
    """VᵀSV as AᵀA + UᵀN + NᵀU, S the (generalised) Hessian in scores of some queries: (A or None, U, N)."""

    squares: FloatArray | None
    left: FloatArray
    right: FloatArray

    def block(self) -> FloatArray:
        """VᵀSV."""
        half = self.left.T @ self.right
        block = half + half.T
        return np.asarray(block if self.squares is None else block + self.squares.T @ self.squares)

    def diagonal(self) -> FloatArray:
        """The diagonal of VᵀSV."""
        diagonal = 2.0 * np.einsum("ij,ij->j", self.left, self.right)
        if self.squares is None:
            return np.asarray(diagonal)
        return np.asarray(diagonal + np.einsum("ij,ij->j", self.squares, self.squares))

    def times(self, factor: float) -> Curvature:
        """That of a loss which is so many times as large."""
        squares = None if self.squares is None else np.sqrt(factor) * self.squares
        return Curvature(squares, self.left, factor * self.right)


class BoundLoss(Protocol):
    """A loss bound to labels.

    ``offers`` names what solvers may ask for beside value and gradient: "hessian" if ``curvature_of`` is
    that of a smooth loss, "hessian_product" if ``curvature(at, first, last, v)`` gives Sv, "places" if
    ``curvature_of`` takes wider rows and the places of the columns of V in them, "largest_at_zero" if the
    Hessian is nowhere larger than where all scores are 0, "rows" if ``level``, ``weight`` and ``mass`` (the
    documents' weights, or None) tell all there is to know of a query's pairs.
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
        """VᵀSV in parts, S the (generalised) Hessian in scores of the queries first..last."""

    def dual(self, value: float, slack: float, scale: float) -> float:
        """The dual value at ``scale`` times the dual point that belongs to the scores (means, not sums)."""


class Loss(Protocol):
    """A family of losses: parameters only, no data."""

    @property
    def name(self) -> str: ...

    def bind(
        self, y: FloatArray, queries: Queries, query_weight: Weights = None, document_weight: Weights = None
    ) -> BoundLoss:
        """Bind to labels (in input order) and optional weights per query and per document (in input order).

        A loss that cannot weigh documents says so in one sentence.
        """


def grouped_weights(document_weight: Weights, queries: Queries) -> FloatArray | None:
    """One finite weight ≥ 0 per document, in grouped order; None if there are none, or if all are 1."""
    weights = as_document_weight(document_weight, queries.n_rows)
    return None if weights is None or np.all(weights == 1.0) else queries.group(weights)


class ListLoss:
    """A bound loss that is a mean over queries, with the labels and levels of documents that count.

    A query whose documents are all absent is absent too: it has weight 0, and its documents have any. Other
    documents of weight 0 have a label that their query has without them.
    """

    def __init__(
        self, y: FloatArray, queries: Queries, query_weight: Weights, document_weight: Weights
    ) -> None:
        self.queries, self.cuts = queries, split_blocks(queries.offsets)
        self._weight = checked_query_weight(query_weight, queries.n_queries)
        self._mass, self._labels = grouped_weights(document_weight, queries), queries.group(y)
        if self._mass is not None:
            starts, sizes = queries.offsets[:-1], queries.sizes
            empty = np.maximum.reduceat(self._mass, starts) == 0
            self._weight = np.where(empty, 0.0, self._weight)
            self._mass = mass = np.where(np.repeat(empty, sizes), 1.0, self._mass)
            highest = np.maximum.reduceat(np.where(mass > 0, self._labels, -np.inf), starts)
            self._labels = np.where(mass > 0, self._labels, np.repeat(highest, sizes))
        self._level = local_levels(self._labels, queries)
        self.normaliser = float(self._weight.sum())
