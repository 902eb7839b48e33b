"""ListNet: the cross entropy of the probabilities to come first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranksieve._parallel import split_blocks
from ranksieve._types import FloatArray
from ranksieve.data.queries import Queries, local_levels
from ranksieve.errors import DataError
from ranksieve.losses.base import NO_PAIRS, Curvature, ScoreValue
from ranksieve.losses.document_weights import counted_labels, list_weights


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


class BoundListNet:
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
        weight, self._mass = list_weights(queries, query_weight, document_weight)
        labels = counted_labels(y, self._mass, queries)
        levels = local_levels(labels, queries)
        if not np.maximum.reduceat(levels, queries.offsets[:-1]) @ weight > 0:
            raise DataError(None, None, NO_PAIRS)
        self.queries = queries
        self.normaliser = float(weight.sum())
        self.cuts = split_blocks(queries.offsets)
        self._row_weight = np.repeat(weight, queries.sizes)
        self._log_target = self._log_softmax(labels)
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
        weight = self._row_weight[self.queries.offsets[:-1]]
        return float(np.sum(squared_radius * weight)) / self.normaliser

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
