"""Cost-sensitive ListMLE: a listwise likelihood with weights derived from NDCG@k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranksieve._parallel import map_blocks
from ranksieve._types import FloatArray
from ranksieve.data.queries import Queries
from ranksieve.errors import DataError, ParameterError
from ranksieve.kernels.listmle import ListMLEData, ListMLEState, level_costs, list_costs, list_curvature
from ranksieve.losses.base import NO_PAIRS, Curvature, ListLoss, ScoreValue, Weights


@dataclass(frozen=True)
class CostSensitiveListMLE:
    """Mean over queries of (1/DCG@k) Σ_j β_j log2(1 + Σ_{t: y_t<y_j} (α_jt/α_jj) e^{s_t − s_j}).

    With position ĝ(j) = 1 + #{i: y_i > y_j}, gain a = 2^y − 1, b(r) = 1/log2(1 + r) and
    ∇b(r) = −ln2/((1 + r) ln²(1 + r)) for r ≤ k, 0 beyond: α_jt = a(t)∇b(ĝ(t)) − a(j)∇b(ĝ(j)),
    β_j = α_jj = Σ_{t: y_t<y_j} α_jt and DCG@k = Σ_{j: ĝ(j)≤k} a(j) b(ĝ(j)).

    If y_t < y_j, neither a nor |∇b(ĝ)| is larger at t than at j. So no α_jt is negative, even if only t is
    beyond position k, and the loss is convex; a document beyond k has weights 0. As Σ_t α_jt/α_jj = 1, the
    loss at equal scores is Σ_j β_j / DCG@k.

    A query whose labels are all equal, or whose DCG is 0, contributes 0 and stays in the mean; a query weight
    of 2 is equivalent to having the query twice. Labels are any numbers ≥ 0.

    With document weights v, every sum over documents is weighted by v: ĝ(j) = 1 + Σ_{i: y_i>y_j} v_i, β_j =
    Σ_{t: y_t<y_j} v_t α_jt, DCG@k = Σ_{j: ĝ(j)≤k} v_j a(j) b(ĝ(j)), and the loss of a query is (1/DCG@k) Σ_j
    v_j β_j log2(1 + Σ_{t: y_t<y_j} v_t (α_jt/α_jj) e^{s_t − s_j}). So weight 2 is equivalent to having the
    document twice. Positions are sums of weights, so the scale of the weights matters: if all are 10, only
    the highest label is within the first 10 positions. Use weights of about 1.
    """

    k: int = 10
    name: ClassVar[str] = "cost_sensitive_listmle"
    abilities: ClassVar[tuple[str, ...]] = ("document_weight", "distributed")

    def __post_init__(self) -> None:
        if self.k != int(self.k) or self.k < 1:
            raise ParameterError("k", self.k, "must be an integer ≥ 1")

    def bind(
        self, y: FloatArray, queries: Queries, query_weight: Weights = None, document_weight: Weights = None
    ) -> BoundCostSensitiveListMLE:
        return BoundCostSensitiveListMLE(y, queries, int(self.k), query_weight, document_weight)

    def normaliser_without_pairs(
        self, queries: Queries, query_weight: Weights, document_weight: Weights
    ) -> float:
        """Contribution of documents without pairs to the normaliser: the weight of their queries."""
        labels = np.zeros(queries.n_rows)
        return ListLoss(labels, queries, query_weight, document_weight).normaliser


class BoundCostSensitiveListMLE(ListLoss):
    """The loss of one data set: O(n) value and gradient, O(n·c) curvature for c columns."""

    name: ClassVar[str] = "cost_sensitive_listmle"
    offers: ClassVar[frozenset[str]] = frozenset({"hessian"})

    def __init__(
        self, y: FloatArray, queries: Queries, k: int, query_weight: Weights, document_weight: Weights
    ) -> None:
        _check_labels(y)
        super().__init__(y, queries, query_weight, document_weight)
        level, grouped_weight = self._level, self._document_weight
        n_levels = np.maximum.reduceat(level, queries.offsets[:-1]) + 1
        level_offsets = np.concatenate(([0], np.cumsum(n_levels)))
        slot = np.repeat(level_offsets[:-1], queries.sizes) + level
        count, gain = np.bincount(slot, grouped_weight), np.empty(level_offsets[-1])
        gain[slot] = _gains(self._labels, queries)
        log_rise, log_beta, cost = (np.empty(len(gain)) for _ in range(3))
        level_costs(gain, count, level_offsets, k, log_rise, log_beta, cost)
        cost *= np.repeat(self._query_weight, n_levels) / np.log(2.0)
        self._query_cost = np.add.reduceat(cost * count, level_offsets[:-1])
        if not self._query_cost.any():
            raise DataError(None, None, NO_PAIRS)
        self._lists = ListMLEData(
            queries.offsets, level, grouped_weight, level_offsets, log_rise, log_beta, cost
        )

    def evaluate(self, s: FloatArray) -> ScoreValue:
        n_levels, gradient = len(self._lists.cost), np.empty(len(s))
        value, slack = (np.empty(self.queries.n_queries) for _ in range(2))
        state = ListMLEState(
            *(np.empty(shape) for shape in (len(s), len(s), n_levels, n_levels, (4, n_levels)))
        )

        def work(first: int, last: int) -> None:
            list_costs(self._lists, s, first, last, value, slack, gradient, state)

        map_blocks(work, self.cuts)
        return ScoreValue(float(np.sum(value)), gradient, float(np.sum(slack)), state)

    def curvature_of(self, at: ScoreValue, first: int, last: int, V: FloatArray) -> Curvature:
        R = np.empty_like(V)
        list_curvature(self._lists, at.state, first, last, V, R)
        return Curvature(None, V, R)

    @staticmethod
    def dual(value: float, slack: float, scale: float) -> float:
        """D = c·(f − ⟨s, ∇f⟩), a lower bound on the dual value −f*(c∇f).

        f*(∇f) = ⟨s, ∇f⟩ − f, f*(0) = −inf f ≤ 0, and f* is convex: f*(c∇f) ≤ c·f*(∇f) for 0 ≤ c ≤ 1.
        """
        return scale * slack

    def lipschitz_bound(self, squared_radius: float | FloatArray) -> float:
        """L0 ≥ ‖∇²f‖₂ everywhere: the mean over queries of ρ² Σ_j β_j / (DCG@k · ln 2).

        ρ, one number or one per query, is the radius of a ball that contains the query's feature vectors. The
        Hessian of log(1 + Σ r_t e^{⟨w, x_t − x_j⟩}) is the covariance of x_j and the x_t under the softmax
        weights, and a distribution in a ball of radius ρ has variance at most ρ² in every direction.

        Theorem 1 of the paper states RᵀR Σ_j β_j / (4 DCG@k) with ‖x‖_∞ ≤ R. The factor 1/ln 2 of log2 is
        missing, and the 1/4 belongs to the squared diameter: the bound holds if R is the vector of the
        features' ranges within a query, not of their largest absolute values.
        """
        return float(np.sum(squared_radius * self._query_cost)) / self.normaliser


def _gains(y: FloatArray, queries: Queries) -> FloatArray:
    """(2^y − 1)/2^{max y of the query}: only ratios of gains matter, and these do not overflow."""
    highest = np.maximum.reduceat(y, queries.offsets[:-1])
    return np.asarray(np.exp2(y - np.repeat(highest, queries.sizes)) * -np.expm1(-y * np.log(2.0)))


def _check_labels(y: FloatArray) -> None:
    if np.any(y < 0):
        row = int(np.argmax(y < 0))
        raise DataError(
            None,
            None,
            f"the label of row {row} is {y[row]:g}, but the gain 2^y − 1 of cost-sensitive ListMLE needs "
            "labels ≥ 0; add a constant to all labels",
        )
