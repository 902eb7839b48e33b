"""The pairwise modified Huber loss with a weight per pair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranksieve._parallel import map_blocks
from ranksieve._types import FloatArray, IntArray
from ranksieve.baselines.kernels import HuberPairs, huber_curvature, huber_pairs
from ranksieve.data.queries import Queries
from ranksieve.errors import DataError, ParameterError
from ranksieve.losses.base import Curvature, ScoreValue
from ranksieve.losses.squared_hinge import PairLoss

ALL_PAIRS_WEIGHT_ZERO = (
    "every pair has weight 0: no two documents of a query with different labels differ in both gain and "
    "discount; use longer lists or a discount that decreases at every rank"
)


@dataclass(frozen=True, eq=False)
class ModifiedHuber:
    """f(s) = (1/Ω) Σ_{(i,j)} ω_ij ψ(s_i − s_j) over pairs of one query with y_i > y_j, Ω = Σ ω_ij.

    ψ(t) = max(0, 1 − t)² for t ≥ −1 and −4t below: the squared hinge, but linear for badly misordered pairs,
    so that outliers do not dominate. ω_ij is the query weight times both document weights times
    |gain_i − gain_j|·|discount_i − discount_j|: with gains divided by the query's ideal DCG and the discounts
    of the documents' ranks, the change of NDCG when i and j are swapped.

    Parameters
    ----------
    gain, discount : array, optional
        One number per document, in input order; if omitted, the factor is 1.
    pair_weighting : str
        As in :class:`ranksieve.losses.SquaredHinge`, with P without gains and discounts.
    """

    gain: FloatArray | None = None
    discount: FloatArray | None = None
    pair_weighting: str = "pairs"
    name: ClassVar[str] = "modified_huber"

    def bind(
        self,
        y: FloatArray,
        queries: Queries,
        query_weight: FloatArray | None = None,
        document_weight: FloatArray | None = None,
    ) -> BoundModifiedHuber:
        return BoundModifiedHuber(
            y, queries, self.gain, self.discount, query_weight, document_weight, self.pair_weighting
        )


class BoundModifiedHuber(PairLoss):
    """The loss of one data set: value, gradient and curvature in one pass over all pairs."""

    name: ClassVar[str] = "modified_huber"
    offers: ClassVar[frozenset[str]] = frozenset({"hessian"})

    def __init__(
        self,
        y: FloatArray,
        queries: Queries,
        gain: FloatArray | None,
        discount: FloatArray | None,
        query_weight: FloatArray | None,
        document_weight: FloatArray | None,
        pair_weighting: str = "pairs",
    ) -> None:
        super().__init__(y, queries, query_weight, document_weight, pair_weighting=pair_weighting)
        self._by_level = np.lexsort((self.level, queries.query_of_grouped))  # within each query
        self._weight_of_query = np.repeat(self.query_weight, queries.sizes)  # per document
        level_start = _level_starts(self.level[self._by_level], queries)
        gains = _per_document("gain", gain, queries)[self._by_level]
        discounts = _per_document("discount", discount, queries)[self._by_level]
        weight = None if self.document_weight is None else self.document_weight[self._by_level]
        floors = float(gain is None), float(discount is None)
        self._pairs = HuberPairs(level_start, weight, gains, discounts, *floors)
        self.normaliser = self.evaluate(np.zeros(queries.n_rows)).value  # ψ(0) = 1
        if not self.normaliser > 0:
            raise DataError(None, None, ALL_PAIRS_WEIGHT_ZERO)

    def evaluate(self, s: FloatArray) -> ScoreValue:
        by_level, sums, gradient = s[self._by_level], np.zeros(len(s)), np.empty(len(s))
        value, slack = np.empty(self.queries.n_queries), np.empty(self.queries.n_queries)

        def work(first: int, last: int) -> None:
            huber_pairs(self._pairs, by_level, self.queries.offsets, first, last, value, slack, sums)

        map_blocks(work, self.cuts)
        gradient[self._by_level] = self._weight_of_query * sums
        value, slack = self.query_weight * value, self.query_weight * slack
        return ScoreValue(float(np.sum(value)), gradient, float(np.sum(slack)), by_level)

    def curvature_of(self, at: ScoreValue, first: int, last: int, V: FloatArray) -> Curvature:
        start, stop = self.queries.offsets[first], self.queries.offsets[last]
        rows = self._by_level[start:stop] - start
        sums, R = np.zeros_like(V), np.empty_like(V)
        huber_curvature(self._pairs, at.state, self.queries.offsets, first, last, V[rows], sums)
        R[rows] = self._weight_of_query[start:stop, None] * sums
        return Curvature(None, V, R)

    @staticmethod
    def dual(value: float, slack: float, scale: float) -> float:
        """D = c·(1/Ω) Σ ω(2h − h²), h = −ψ′/2, a lower bound of the dual value −f*(c∇f).

        ψ*(−2h) = h² − 2h for 0 ≤ h ≤ 2, so the dual value is (1/Ω) Σ ω(2ch − c²h²), and c² ≤ c.
        """
        return scale * slack


def _level_starts(level: IntArray, queries: Queries) -> IntArray:
    """Return for each document the index of the first document of its query and level.

    Documents are sorted by ascending level within each query.
    """
    starts = np.ones(len(level), dtype=bool)
    starts[1:] = (level[1:] != level[:-1]) | (np.diff(queries.query_of_grouped) > 0)
    return np.asarray(np.flatnonzero(starts)[np.cumsum(starts) - 1])


def _per_document(name: str, values: FloatArray | None, queries: Queries) -> FloatArray:
    """Return one finite number per document, in grouped order; zeros if ``values`` is None."""
    if values is None:
        return np.zeros(queries.n_rows)
    values = np.asarray(values, dtype=np.float64)
    if values.shape != (queries.n_rows,) or not np.isfinite(values).all():
        reason = f"must be one finite number for each of {queries.n_rows} documents, got shape {values.shape}"
        raise ParameterError(name, values, reason)
    return np.asarray(queries.group(values))
