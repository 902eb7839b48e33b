"""ℓ1 with optional weights and signs per feature, elastic net, ℓ1 ball, ridge and other quadratics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ranksieve._types import FloatArray
from ranksieve.errors import ParameterError
from ranksieve.penalties.base import Sloped, Slopes


@dataclass(frozen=True, eq=False)
class L1(Sloped):
    """α Σ_j v_j |w_j| over the w with sign_j·w_j ≥ 0, infinite elsewhere.

    v = ``weights`` (default 1): infinity excludes a feature, 0 leaves it unpenalised. ``signs`` is +1 for
    features with w_j ≥ 0, −1 for w_j ≤ 0, else 0; a single number applies to all features.
    """

    weights: FloatArray | None = None
    signs: ArrayLike | None = None
    name: ClassVar[str] = "l1"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weights is not None:
            object.__setattr__(self, "weights", _checked_weights(self.weights))
        if self.signs is not None:
            object.__setattr__(self, "signs", _checked_signs(self.signs))

    def alpha_max(self, g: FloatArray) -> float:
        """max_j |g_j|/v_j over the features whose sign allows a step along −g_j; infinite if v_j is 0."""
        nonzero = g != 0
        facing = self._with_signs(self._weights(len(g))).facing(g)[nonzero]
        with np.errstate(divide="ignore"):
            return float(np.max(np.abs(g[nonzero]) / facing, initial=0.0))

    def slopes(self, n_features: int) -> Slopes:
        return self._with_signs(_scale(self._weights(n_features), self.alpha))

    def _with_signs(self, slope: FloatArray) -> Slopes:
        if self.signs is None:
            return Slopes(slope, slope)
        signs = np.asarray(self.signs)
        if signs.ndim and len(signs) != len(slope):
            raise ParameterError("signs", signs, f"got {len(signs)} signs for {len(slope)} features")
        return Slopes(np.where(signs < 0, np.inf, slope), np.where(signs > 0, np.inf, slope))

    def _weights(self, n_features: int) -> FloatArray:
        if self.weights is None:
            return np.ones(n_features)
        if len(self.weights) != n_features:
            n_weights = len(self.weights)
            raise ParameterError(
                "weights", self.weights, f"got {n_weights} weights for {n_features} features"
            )
        return self.weights


@dataclass(frozen=True, eq=False)
class ElasticNet(L1):
    """α [ρ Σ_j v_j|w_j| + ½(1 − ρ)‖w‖²], ρ = ``l1_ratio``, v = ``weights`` and ``signs`` as in :class:`L1`.

    With ρ = 0 it is ridge, for which no α makes all weights zero. The ridge also applies to unpenalised
    features.
    """

    l1_ratio: float = 0.5
    name: ClassVar[str] = "elastic_net"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.l1_ratio <= 1:
            raise ParameterError("l1_ratio", self.l1_ratio, "must be in [0, 1]")

    def alpha_max(self, g: FloatArray) -> float:
        return super().alpha_max(g) / self.l1_ratio if self.l1_ratio > 0 else np.inf

    def slopes(self, n_features: int) -> Slopes:
        lasso = super().slopes(n_features)
        up, down = _scale(lasso.up, self.l1_ratio), _scale(lasso.down, self.l1_ratio)
        return Slopes(up, down, self.alpha * (1.0 - self.l1_ratio))


def _scale(slope: FloatArray, factor: float) -> FloatArray:
    """factor·slope; infinite slopes stay infinite, even for factor 0."""
    return np.multiply(slope, factor, out=slope.copy(), where=np.isfinite(slope))


def _checked_weights(weights: FloatArray) -> FloatArray:
    weights = np.asarray(weights, dtype=np.float64)
    if weights.ndim != 1 or np.isnan(weights).any() or np.any(weights < 0):
        reason = "must be one number ≥ 0 per feature (0: unpenalised, infinity: excluded)"
        raise ParameterError("weights", weights, reason)
    return weights


def _checked_signs(signs: ArrayLike) -> FloatArray:
    checked = np.asarray(signs, dtype=np.float64)
    if checked.ndim > 1 or not np.isin(checked, (-1.0, 0.0, 1.0)).all():
        raise ParameterError("signs", signs, "must be +1, −1 or 0 for each feature")
    return checked


@dataclass(frozen=True)
class L1Ball:
    """‖w‖₁ ≤ ``radius``: value 0 inside, infinite outside."""

    radius: float = 1.0
    name: ClassVar[str] = "l1_ball"
    offers: ClassVar[frozenset[str]] = frozenset({"prox", "ball"})

    def __post_init__(self) -> None:
        if not (np.isfinite(self.radius) and self.radius > 0):
            raise ParameterError("radius", self.radius, "must be a finite number > 0")

    def value(self, w: FloatArray) -> float:
        return 0.0 if float(np.sum(np.abs(w))) <= self.radius * (1.0 + 1e-12) else np.inf

    def prox(self, w: FloatArray, step: float) -> FloatArray:
        """Euclidean projection: soft thresholding such that ‖z‖₁ = radius."""
        size = np.abs(w)
        if size.sum() <= self.radius:
            return w.copy()
        descending = np.sort(size)[::-1]
        excess = (np.cumsum(descending) - self.radius) / np.arange(1, len(w) + 1)
        level = excess[np.flatnonzero(descending > excess)[-1]]
        return np.asarray(np.sign(w) * np.maximum(size - level, 0.0))

    def gap(self, objective: Any, point: Any, g: FloatArray) -> float:
        """f(w) − min f ≤ max_{‖v‖₁ ≤ r} ⟨g, w − v⟩ = r‖g‖_∞ + ⟨g, w⟩, plus bounds on rounding errors."""
        exact = float(np.maximum(0.0, self.radius * np.max(np.abs(g)) + g @ point.w))
        error = self.radius * float(np.max(objective.gradient_error(point)))
        return exact + error + float(objective.value_error(point))


@dataclass(frozen=True, eq=False)
class Ridge(Sloped):
    """½ α ‖w‖²."""

    name: ClassVar[str] = "ridge"
    offers: ClassVar[frozenset[str]] = frozenset({"prox", "slopes", "quadratic"})

    def alpha_max(self, g: FloatArray) -> float:
        """Infinite: no finite strength makes all weights zero, unless the gradient is zero."""
        return np.inf if np.any(g) else 0.0

    def slopes(self, n_features: int) -> Slopes:
        return Slopes(np.zeros(n_features), np.zeros(n_features), self.alpha)

    def times(self, w: FloatArray) -> FloatArray:
        """The gradient of the penalty."""
        return self.alpha * w

    def matrix(self, n_features: int) -> FloatArray:
        """The Hessian of the penalty."""
        return self.alpha * np.eye(n_features)


@dataclass(frozen=True, eq=False)
class NoPenalty(Ridge):
    """No penalty; the gap is unknown."""

    alpha: float = 0.0
    name: ClassVar[str] = "none"

    def gap(self, objective: Any, point: Any, g: FloatArray) -> float:
        return np.nan


@dataclass(frozen=True, eq=False)
class Quadratic:
    """½ wᵀAw for a symmetric positive semidefinite A."""

    A: FloatArray
    name: ClassVar[str] = "quadratic"
    offers: ClassVar[frozenset[str]] = frozenset({"quadratic"})

    def value(self, w: FloatArray) -> float:
        return 0.5 * float(w @ self.times(w))

    def times(self, w: FloatArray) -> FloatArray:
        """The gradient of the penalty."""
        return np.asarray(self.A @ w)

    def matrix(self, n_features: int) -> FloatArray:
        """The Hessian of the penalty."""
        return self.A

    def gap(self, objective: Any, point: Any, g: FloatArray) -> float:
        return np.nan
