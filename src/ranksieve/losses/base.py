"""What every loss gives: a function of scores, bound to the labels of one data set.

All arrays of one value a document are in grouped order (:class:`ranksieve.data.queries.Queries`). Values are
sums; divided by the fixed ``normaliser`` they become the mean the objective uses, so parts of a data set
(blocks, partitions, machines) add up exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from ranksieve._types import FloatArray, IntArray
from ranksieve.data.queries import Queries


@dataclass(frozen=True)
class ScoreValue:
    """A loss at one score vector: the sum, its gradient, and what its dual and its Hessian need."""

    value: float
    gradient: FloatArray
    slack: float = 0.0
    state: Any = None


class BoundLoss(Protocol):
    """A loss bound to labels."""

    queries: Queries
    normaliser: float
    cuts: IntArray

    def evaluate(self, s: FloatArray) -> ScoreValue:
        """Sum and gradient at the scores ``s``."""

    def half_curvature(self, at: ScoreValue, first: int, last: int, V: FloatArray) -> FloatArray:
        """R with VᵀR + RᵀV = VᵀSV, S the (generalised) Hessian in scores of the queries first..last."""

    def dual(self, value: float, slack: float, scale: float) -> float:
        """The dual value at ``scale`` times the dual point that belongs to the scores (means, not sums)."""


class CurvedLoss(BoundLoss, Protocol):
    """A bound loss that can be multiplied by its whole Hessian, as truncated Newton steps need."""

    def curvature(self, at: ScoreValue, first: int, last: int, V: FloatArray) -> FloatArray:
        """S·V, S the (generalised) Hessian in scores of the queries first..last."""


class Loss(Protocol):
    """A family of losses: parameters only, no data."""

    @property
    def name(self) -> str: ...

    def bind(self, y: FloatArray, queries: Queries, query_weight: FloatArray | None = None) -> BoundLoss:
        """Bind to labels (in input order) and optional weights per query."""
