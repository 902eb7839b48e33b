"""S(F): what a set of features is worth to FBPCRank, over all weights or along those of a ranker."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksieve._types import FloatArray, IntArray
from ranksieve.data.dataset import Dataset
from ranksieve.objective import Objective, Point
from ranksieve.penalties import Quadratic
from ranksieve.selection.base import fit_on, fresh_base
from ranksieve.solvers import DenseNewton, Problem

CONVERGED = 1e-12  # share of S that a Newton step may still gain
MAX_STEPS = 100
FLAT = 1e-10  # what is below this share of the largest may be 0


@dataclass(frozen=True, eq=False)
class Subset:
    """A set of features with its S, the weights there and what is known of the loss there."""

    columns: tuple[int, ...]
    w: FloatArray
    value: float
    point: Point


@dataclass(frozen=True, eq=False)
class Criterion(ABC):
    """S(F) = min over some w of C·L(w) + ½ wᵀA_F w, for forward and backward steps."""

    objective: Objective
    C: float
    similarity: FloatArray

    @property
    def empty(self) -> Subset:
        """No feature."""
        zero = self.objective.at_zero
        return Subset((), np.empty(0), self.C * zero.value, zero)

    @abstractmethod
    def grow(self, subset: Subset, j: int) -> Subset:
        """With feature j, which comes last."""

    @abstractmethod
    def shrink(self, subset: Subset, j: int) -> Subset:
        """Without feature j."""

    @abstractmethod
    def most_gain(self, subset: Subset) -> FloatArray:
        """For each feature, a number that S cannot fall by more than when it joins."""

    @abstractmethod
    def least_rise(self, subset: Subset) -> FloatArray:
        """For each feature of the subset, a number that S cannot rise by less than when it leaves."""


@dataclass(frozen=True, eq=False)
class JointMinimum(Criterion):
    """The minimum over all weights, for a convex loss L and a positive semidefinite A."""

    def grow(self, subset: Subset, j: int) -> Subset:
        return self._minimum((*subset.columns, j), np.append(subset.w, 0.0))

    def shrink(self, subset: Subset, j: int) -> Subset:
        kept = [column != j for column in subset.columns]
        return self._minimum(without(subset, j), subset.w[kept])

    def most_gain(self, subset: Subset) -> FloatArray:
        """r_j²/(2σ_j), r = C∇L + A_{·F}w and σ_j = A_jj − A_jF A_FF⁻¹ A_Fj.

        L lies above its tangent at the minimum over F. With the tangent in place of L the minimum over F ∪ j
        is a quadratic one, and lies r_j²/(2σ_j) below S(F). Where σ_j may be 0 this is no bound: infinity.
        """
        F, diagonal = list(subset.columns), np.diag(self.similarity)
        across, inverse = self.similarity[F], _inverse(self.similarity[np.ix_(F, F)])
        bound = np.full(len(diagonal), np.inf)
        if inverse is not None:
            residual = self.C * self.objective.gradient(subset.point) + subset.w @ across
            unexplained = diagonal - np.einsum("ij,ij->j", across, inverse @ across)
            usable = unexplained > FLAT * np.max(diagonal)
            np.divide(residual**2, 2.0 * unexplained, out=bound, where=usable)
        return bound

    def least_rise(self, subset: Subset) -> FloatArray:
        """w_j²/(2 (A_FF⁻¹)_jj), the least value of ½ (v − w)ᵀA_FF(v − w) over v with v_j = 0.

        That is what the quadratic term alone adds to S(F) away from its minimum w.
        """
        inverse = _inverse(self.similarity[np.ix_(subset.columns, subset.columns)])
        return np.zeros_like(subset.w) if inverse is None else subset.w**2 / (2.0 * np.diag(inverse))

    def _minimum(self, columns: tuple[int, ...], start: FloatArray) -> Subset:
        if not columns:
            return self.empty
        X = np.column_stack([self.objective.features.column(j) for j in columns])
        A = self.similarity[np.ix_(columns, columns)]
        point, value = minimise(Objective(X, self.objective.loss), self.C, A, start)
        return Subset(columns, point.w, value, point)


@dataclass(frozen=True, eq=False)
class AlongBase(Criterion):
    """S(F) = min_{t ≥ 0} C·L(tw) + ½ t² wᵀA_F w, w the weights that ``base`` learns on F.

    A ranker's weights have no scale of their own, hence the t.
    """

    base: Any
    data: Dataset
    query_weight: FloatArray | None

    def grow(self, subset: Subset, j: int) -> Subset:
        return self._fit((*subset.columns, j))

    def shrink(self, subset: Subset, j: int) -> Subset:
        return self._fit(without(subset, j))

    def most_gain(self, subset: Subset) -> FloatArray:
        return np.full(len(self.similarity), np.inf)

    def least_rise(self, subset: Subset) -> FloatArray:
        return np.full(len(subset.columns), -np.inf)  # a ranker may do better with fewer features

    def _fit(self, columns: tuple[int, ...]) -> Subset:
        if not columns:
            return self.empty
        order: IntArray = np.sort(columns)
        base = fit_on(fresh_base(self.base), self.data, order, self.query_weight)
        w = base.coef_[np.searchsorted(order, columns)]
        scores = sum(weight * self.objective.features.column(j) for weight, j in zip(w, columns, strict=True))
        line = Objective(np.reshape(scores, (-1, 1)), self.objective.loss)
        size = w @ self.similarity[np.ix_(columns, columns)] @ w
        point, value = minimise(line, self.C, np.array([[size]]), np.zeros(1))
        scale = point.w[0]
        return Subset(columns, scale * w, value if scale > 0 else self.empty.value, point)


def without(subset: Subset, j: int) -> tuple[int, ...]:
    """Its columns but j."""
    return tuple(column for column in subset.columns if column != j)


def minimise(part: Objective, C: float, A: FloatArray, start: FloatArray) -> tuple[Point, float]:
    """min_w C·L(w) + ½ wᵀAw: the point and the value."""
    result = DenseNewton(CONVERGED, MAX_STEPS).solve(Problem(part, Quadratic(A / C)), start)
    return result.point, C * result.objective


def _inverse(A: FloatArray) -> FloatArray | None:
    """A⁻¹, or None if A may be singular."""
    values = np.linalg.eigvalsh(A)
    if np.any(values <= FLAT * np.max(values, initial=0.0)):
        return None
    return np.asarray(np.linalg.inv(A), dtype=np.float64)
