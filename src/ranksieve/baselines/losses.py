"""Losses that only baselines use, and their table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranksieve._types import BoolArray, FloatArray
from ranksieve.baselines.kernels import violated_rankings
from ranksieve.baselines.modified_huber import ModifiedHuber
from ranksieve.data.queries import Queries
from ranksieve.errors import DataError, ParameterError
from ranksieve.kernels.pairs import Ranked
from ranksieve.losses.base import NO_PAIRS, Curvature, ListLoss, Loss, ScoreValue
from ranksieve.losses.squared_hinge import PairLoss, SortedLoss

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
    abilities: ClassVar[tuple[str, ...]] = ()

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

        def sweep(ranked: Ranked, first: int, last: int) -> None:
            violated_rankings(
                ranked, self._relevant, self.queries.offsets, first, last, gradient, missed, value
            )

        self._sweep(s, sweep)
        gradient *= self._row_weight
        return ScoreValue(float(value @ self.weight), gradient, float(missed @ self.weight))


@dataclass(frozen=True)
class Hinge:
    """f(s) = (1/p) Σ_{(i,j)} ω_ij max(0, 1 − (s_i − s_j)) over pairs of one query with y_i > y_j.

    ω_ij is the query's weight times the weights of both documents, and p = Σ ω_ij. Where a pair stands at
    exactly 1 the loss has a kink, and the gradient is the subgradient that leaves the pair out.
    """

    name: ClassVar[str] = "hinge"

    def bind(
        self,
        y: FloatArray,
        queries: Queries,
        query_weight: FloatArray | None = None,
        document_weight: FloatArray | None = None,
    ) -> BoundHinge:
        return BoundHinge(y, queries, query_weight, document_weight)


class BoundHinge(PairLoss):
    """The hinge of one data set: O(n log n) value and subgradient.

    The dual point gives every active pair c ≤ 1: D = c·(1/p)Σ_active ω.
    """

    name: ClassVar[str] = "hinge"
    offers: ClassVar[frozenset[str]] = frozenset()

    def evaluate(self, s: FloatArray) -> ScoreValue:
        """Σ ωξ; each active pair moves its upper document up by ω and its lower one down."""
        _, (up_count, up_slack, low_count, _) = self._active(s)
        value, active = (float(np.sum(self._row_weight * a)) for a in (up_slack, up_count))
        return ScoreValue(value, self._row_weight * (low_count - up_count), active)


@dataclass(frozen=True)
class ListNetLoss:
    """Mean over queries of Σ_j P_j log(P_j/Q_j), P = softmax(y), Q = softmax(s).

    This is the cross entropy −Σ P_j log Q_j less the entropy of P, which no score changes: at least 0, and 0
    exactly where the scores are the labels plus a constant. P_j is the probability that document j comes
    first in the Plackett–Luce model whose scores are the labels. A query whose labels are all equal asks for
    equal scores. Giving a query weight 2 is the same as having it twice.

    With weights v of documents, P_j = v_j e^{y_j} / Σ_i v_i e^{y_i} and Q_j = v_j e^{s_j} / Σ_i v_i e^{s_i}:
    the probability that one of the copies of j comes first, so weight 2 is the same as having it twice.
    """

    name: ClassVar[str] = "listnet"

    def bind(
        self,
        y: FloatArray,
        queries: Queries,
        query_weight: FloatArray | None = None,
        document_weight: FloatArray | None = None,
    ) -> BoundListNet:
        return BoundListNet(y, queries, query_weight, document_weight)


class BoundListNet(ListLoss):
    """The loss of one data set: O(n) value and gradient, O(n·c) curvature of c columns."""

    name: ClassVar[str] = "listnet"
    offers: ClassVar[frozenset[str]] = frozenset({"hessian"})

    def __init__(
        self,
        y: FloatArray,
        queries: Queries,
        query_weight: FloatArray | None,
        document_weight: FloatArray | None,
    ) -> None:
        super().__init__(y, queries, query_weight, document_weight)
        if not np.maximum.reduceat(self._level, queries.offsets[:-1]) @ self._weight > 0:
            raise DataError(None, None, NO_PAIRS)
        self._row_weight = np.repeat(self._weight, queries.sizes)
        self._log_target = self._log_softmax(self._labels)
        self._target = self._share(self._log_target)

    def evaluate(self, s: FloatArray) -> ScoreValue:
        log_softmax = self._log_softmax(s)
        softmax = self._share(log_softmax)
        value = self._total(self._target * (self._log_target - log_softmax))
        # f − ⟨s, ∇f⟩ is the entropy of the softmax weights less that of the target.
        slack = self._total(self._target * self._log_target - softmax * log_softmax)
        gradient = self._row_weight * (softmax - self._target)
        return ScoreValue(float(np.maximum(0.0, value)), gradient, slack, softmax)

    def curvature_of(self, at: ScoreValue, first: int, last: int, V: FloatArray) -> Curvature:
        """N = ½(Q∘V − Q·mean), mean = Σ_j Q_j V_j of the query: the Hessian is the softmax's covariance."""
        offsets = self.queries.offsets[first : last + 1]
        rows = slice(offsets[0], offsets[-1])
        softmax = at.state[rows, None]
        means = np.add.reduceat(softmax * V, offsets[:-1] - offsets[0])
        centred = V - np.repeat(means, np.diff(offsets), axis=0)
        return Curvature(None, V, 0.5 * self._row_weight[rows, None] * softmax * centred)

    def dual(self, value: float, slack: float, scale: float) -> float:
        """D = max(0, c·(f − ⟨s, ∇f⟩)), a lower bound of the dual value −f*(c′∇f) for the best c′ in [0, c].

        f*(∇f) = ⟨s, ∇f⟩ − f, f*(0) = −min f = 0, and f* is convex.
        """
        return float(np.maximum(0.0, scale * slack))

    def lipschitz_bound(self, squared_radius: float | FloatArray) -> float:
        """L0 ≥ ‖∇²f‖₂ everywhere: the mean over queries of ρ², ρ the radius of a ball around the documents.

        The Hessian of a query is the covariance of its documents under the softmax weights; a distribution in
        a ball of radius ρ has variance at most ρ² in every direction.
        """
        return float(np.sum(squared_radius * self._weight)) / self.normaliser

    def _total(self, values: FloatArray) -> float:
        return float(np.sum(self._row_weight * values))

    def _log_softmax(self, s: FloatArray) -> FloatArray:
        """The logarithm of the probability that a document, or one copy of it, comes first."""
        starts, sizes = self.queries.offsets[:-1], self.queries.sizes
        counted = s if self._mass is None else np.where(self._mass > 0, s, -np.inf)
        t = s - np.repeat(np.maximum.reduceat(counted, starts), sizes)
        if self._mass is not None:
            t = np.minimum(t, 0.0)  # only documents that do not count are above
        return np.asarray(t - np.repeat(np.log(np.add.reduceat(self._share(t), starts)), sizes))

    def _share(self, log_of_copy: FloatArray) -> FloatArray:
        """Of each document, all copies together."""
        of_copy = np.exp(log_of_copy)
        return of_copy if self._mass is None else self._mass * of_copy


BASELINE_LOSSES: dict[str, Callable[[], Loss]] = {
    "hinge": Hinge,
    "average_precision": AveragePrecisionHinge,
    "modified_huber": ModifiedHuber,
    "listnet": ListNetLoss,
}
