"""The structural hinge on average precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve.data.queries import Queries
from ranksieve.errors import DataError, ParameterError
from ranksieve.kernels.violated_ranking import violated_rankings
from ranksieve.losses.base import ScoreValue
from ranksieve.losses.sorted_scores import SortedLoss

UNWEIGHTED = (
    "the loss average_precision cannot weigh documents, because a document has one rank whatever it weighs; "
    "leave it out, or use a loss over pairs such as squared_hinge"
)
NO_CONTRAST = (
    "there is no pair to learn from: no query has both a relevant document and another one; "
    "set `relevant_from` to the lowest label that counts as relevant"
)


@dataclass(frozen=True)
class AveragePrecisionHinge:
    """f(s) = (1/m) Σ_q max_π [1 − AP(π) + ⟨c(π), s⟩] over the rankings π of each query.

    c(π) holds the coefficients of Ψ(π) − Ψ(π*), Ψ(π) = (1/RI) Σ_{i relevant, j not} ±(x_i − x_j) with + where
    π puts i above j, and π* puts all R relevant documents above the I others; m is the weight of the queries
    that have both kinds. f is an upper bound of 1 − MAP. Weights of documents are refused.

    Parameters
    ----------
    relevant_from : float, optional
        The lowest label that counts as relevant. By default 1; if that makes all documents alike, any label
        above the lowest one.
    """

    relevant_from: float | None = None
    name: ClassVar[str] = "average_precision"

    def bind(
        self,
        y: FloatArray,
        queries: Queries,
        query_weight: FloatArray | None = None,
        document_weight: FloatArray | None = None,
    ) -> BoundAveragePrecisionHinge:
        if document_weight is not None:
            raise ParameterError("document_weight", document_weight, UNWEIGHTED)
        return BoundAveragePrecisionHinge(self.relevant(y), queries, query_weight)

    def relevant(self, y: FloatArray) -> BoolArray:
        """Which documents are relevant."""
        relevant = y >= (1.0 if self.relevant_from is None else self.relevant_from)
        alike = relevant.all() or not relevant.any()
        return np.asarray(y > y.min() if self.relevant_from is None and alike else relevant)


class BoundAveragePrecisionHinge(SortedLoss):
    """The loss of one data set; the dual value is that of a share c ≤ 1 of the most violated rankings."""

    name: ClassVar[str] = "average_precision"
    offers: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, relevant: BoolArray, queries: Queries, query_weight: FloatArray | None = None) -> None:
        super().__init__(queries, query_weight)
        self._relevant = queries.group(relevant)
        n_relevant = np.add.reduceat(self._relevant.astype(np.int64), queries.offsets[:-1])
        self.normaliser = float(((n_relevant > 0) & (n_relevant < queries.sizes)) @ self.weight)
        if self.normaliser <= 0:
            raise DataError(None, None, NO_CONTRAST)

    def evaluate(self, s: FloatArray) -> ScoreValue:
        """Value and subgradient from the most violated rankings; ``slack`` is Σ (1 − AP) of these."""
        gradient = np.empty(len(s))
        missed, value = np.empty(self.queries.n_queries), np.empty(self.queries.n_queries)

        def sweep(t: FloatArray, order: IntArray, first: int, last: int) -> None:
            offsets = self.queries.offsets
            violated_rankings(t, self._relevant, order, offsets, first, last, gradient, missed, value)

        self._sweep(s, sweep)
        gradient *= self._row_weight
        return ScoreValue(float(value @ self.weight), gradient, float(missed @ self.weight))
