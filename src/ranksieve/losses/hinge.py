"""The pairwise hinge, as a mean over pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.data.queries import Queries
from ranksieve.losses.base import ScoreValue
from ranksieve.losses.sorted_scores import PairLoss


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
        _, _, (up_count, up_slack, low_count, _) = self._active(s)
        value, active = (float(np.sum(self._row_weight * a)) for a in (up_slack, up_count))
        return ScoreValue(value, self._row_weight * (low_count - up_count), active)
