"""Losses used only by baselines, and their table."""

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
from ranksieve.kernels.pairs import Ranking
from ranksieve.losses.base import NO_PAIRS, Curvature, ListLoss, Loss, ScoreValue
from ranksieve.losses.squared_hinge import PairLoss, SortedLoss

NO_DOCUMENT_WEIGHTS = (
    "the loss average_precision does not support document weights; omit them, or use a loss over pairs such "
    "as squared_hinge"
)
NO_RELEVANT_PAIRS = (
    "there is no pair to learn from: no query has both a relevant and an irrelevant document; "
    "set `relevant_from` to the lowest label that counts as relevant"
)


@dataclass(frozen=True)
class AveragePrecisionHinge:
    """f(s) = (1/m) Σ_q max_π [1 − AP(π) + ⟨c(π), s⟩] over the rankings π of each query.

    c(π) are the coefficients of Ψ(π) − Ψ(π*), Ψ(π) = (1/RI) Σ_{i relevant, j not} ±(x_i − x_j) with + where
    π ranks i above j; π* ranks all R relevant documents above the I irrelevant ones; m is the total weight of
    the queries that have both kinds. f is an upper bound of 1 − MAP. Document weights are not supported.

    Parameters
    ----------
    relevant_from : float, optional
        The lowest label that counts as relevant. Default: 1, or any label above the lowest one if 1 would
        make all documents relevant or none.
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
            raise ParameterError("document_weight", document_weight, NO_DOCUMENT_WEIGHTS)
        return BoundAveragePrecisionHinge(self.relevant(y), queries, query_weight)

    def relevant(self, y: FloatArray) -> BoolArray:
        """Return the mask of relevant documents."""
        relevant = y >= (1.0 if self.relevant_from is None else self.relevant_from)
        all_same = relevant.all() or not relevant.any()
        return np.asarray(y > y.min() if self.relevant_from is None and all_same else relevant)


class BoundAveragePrecisionHinge(SortedLoss):
    """The loss of one data set; the dual point gives the most violated rankings the weight c ≤ 1."""

    name: ClassVar[str] = "average_precision"
    offers: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, relevant: BoolArray, queries: Queries, query_weight: FloatArray | None = None) -> None:
        super().__init__(queries, query_weight)
        self._relevant = queries.group(relevant)
        n_relevant = np.add.reduceat(self._relevant.astype(np.int64), queries.offsets[:-1])
        self.normaliser = float(((n_relevant > 0) & (n_relevant < queries.sizes)) @ self.query_weight)
        if self.normaliser <= 0:
            raise DataError(None, None, NO_RELEVANT_PAIRS)

    def evaluate(self, s: FloatArray) -> ScoreValue:
        """Value and subgradient from the most violated rankings; ``slack`` is their Σ (1 − AP)."""
        gradient = np.empty(len(s))
        ap_loss, value = np.empty(self.queries.n_queries), np.empty(self.queries.n_queries)

        def sweep(ranking: Ranking, first: int, last: int) -> None:
            violated_rankings(
                ranking, self._relevant, self.queries.offsets, first, last, gradient, ap_loss, value
            )

        self._sweep(s, sweep)
        gradient *= self._row_weight
        return ScoreValue(float(value @ self.query_weight), gradient, float(ap_loss @ self.query_weight))


@dataclass(frozen=True)
class Hinge:
    """f(s) = (1/p) Σ_{(i,j)} ω_ij max(0, 1 − (s_i − s_j)) over pairs of one query with y_i > y_j.

    ω_ij is the query weight times both document weights, and p = Σ ω_ij; ``pair_weighting`` as in
    :class:`ranksieve.losses.SquaredHinge`. The loss has a kink where s_i − s_j = 1; the gradient is the
    subgradient without such pairs.
    """

    pair_weighting: str = "pairs"
    name: ClassVar[str] = "hinge"

    def bind(
        self,
        y: FloatArray,
        queries: Queries,
        query_weight: FloatArray | None = None,
        document_weight: FloatArray | None = None,
    ) -> BoundHinge:
        return BoundHinge(y, queries, query_weight, document_weight, pair_weighting=self.pair_weighting)


class BoundHinge(PairLoss):
    """The hinge of one data set: O(n log n) value and subgradient.

    The dual point gives every active pair the weight c ≤ 1: D = c·(1/p)Σ_active ω.
    """

    name: ClassVar[str] = "hinge"
    offers: ClassVar[frozenset[str]] = frozenset()

    def evaluate(self, s: FloatArray) -> ScoreValue:
        """Σ ωξ; each active pair adds −ω to the gradient of its better document and ω to the other."""
        _, (better_count, better_slack, worse_count, _) = self._active(s)
        value, active = (float(np.sum(self._row_weight * a)) for a in (better_slack, better_count))
        return ScoreValue(value, self._row_weight * (worse_count - better_count), active)


@dataclass(frozen=True)
class ListNetLoss:
    """Mean over queries of Σ_j P_j log(P_j/Q_j), P = softmax(y), Q = softmax(s).

    This is the cross entropy −Σ P_j log Q_j minus the entropy of P, which does not depend on the scores: at
    least 0, and 0 exactly where the scores are the labels plus a constant. P_j is the probability that
    document j is ranked first in the Plackett–Luce model whose scores are the labels. If all labels of a
    query are equal, the loss is 0 for equal scores. A query with weight 2 counts like two copies.

    With document weights v, P_j = v_j e^{y_j} / Σ_i v_i e^{y_i} and Q_j = v_j e^{s_j} / Σ_i v_i e^{s_i}: the
    probability that one of v_j copies of j is ranked first.
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
    """The loss of one data set: O(n) value and gradient, O(n·c) curvature for c columns."""

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
        if not np.maximum.reduceat(self._level, queries.offsets[:-1]) @ self._query_weight > 0:
            raise DataError(None, None, NO_PAIRS)
        self._row_weight = np.repeat(self._query_weight, queries.sizes)
        self._log_target = self._log_softmax(self._labels)
        self._target = self._probability(self._log_target)

    def evaluate(self, s: FloatArray) -> ScoreValue:
        log_softmax = self._log_softmax(s)
        softmax = self._probability(log_softmax)
        value = self._total(self._target * (self._log_target - log_softmax))
        # f − ⟨s, ∇f⟩ is the entropy of the softmax weights minus that of the target.
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
        """L0 ≥ ‖∇²f‖₂ everywhere: the mean over queries of ρ², ρ the radius of a ball around their documents.

        The Hessian of a query is the covariance of its documents under the softmax weights; a distribution in
        a ball of radius ρ has variance at most ρ² in every direction.
        """
        return float(np.sum(squared_radius * self._query_weight)) / self.normaliser

    def _total(self, values: FloatArray) -> float:
        return float(np.sum(self._row_weight * values))

    def _log_softmax(self, s: FloatArray) -> FloatArray:
        """Return the log probability that a document (one copy of it, if weighted) is ranked first."""
        starts, sizes = self.queries.offsets[:-1], self.queries.sizes
        with_weight = s if self._document_weight is None else np.where(self._document_weight > 0, s, -np.inf)
        t = s - np.repeat(np.maximum.reduceat(with_weight, starts), sizes)
        if self._document_weight is not None:
            t = np.minimum(t, 0.0)  # only documents with weight 0 can be above the maximum
        return np.asarray(t - np.repeat(np.log(np.add.reduceat(self._probability(t), starts)), sizes))

    def _probability(self, log_probability: FloatArray) -> FloatArray:
        """Return the probability of all copies of each document from the log probability of one copy."""
        of_copy = np.exp(log_probability)
        return of_copy if self._document_weight is None else self._document_weight * of_copy


BASELINE_LOSSES: dict[str, Callable[[], Loss]] = {
    "hinge": Hinge,
    "average_precision": AveragePrecisionHinge,
    "modified_huber": ModifiedHuber,
    "listnet": ListNetLoss,
}
