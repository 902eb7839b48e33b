"""ℓ1, plain or with a weight per feature, and the elastic net."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.penalties.base import Slopes, check_alpha


@dataclass(frozen=True, eq=False)
class L1:
    """α Σ_j v_j |w_j|, v = ``weights`` (1 without); a weight of infinity forbids the feature."""

    alpha: float = 1.0
    weights: FloatArray | None = None
    name: ClassVar[str] = "l1"

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        if self.weights is not None:
            object.__setattr__(self, "weights", _checked_weights(self.weights))

    def value(self, w: FloatArray) -> float:
        return self.slopes(len(w)).value(w)

    def prox(self, w: FloatArray, step: float) -> FloatArray:
        slopes = self.slopes(len(w))
        shrunk = np.maximum(np.abs(w) - step * slopes.up, 0.0)
        return np.asarray(np.sign(w) * shrunk / (1.0 + step * slopes.ridge))

    def scaled(self, alpha: float) -> Self:
        return replace(self, alpha=alpha)

    def alpha_max(self, g: FloatArray) -> float:
        return float(np.max(np.abs(g) / self._weights(len(g))))

    def slopes(self, n_features: int) -> Slopes:
        slope = self._weights(n_features).copy()
        slope[np.isfinite(slope)] *= self.alpha  # a forbidden feature stays forbidden at α = 0
        return Slopes(slope, slope)

    def _weights(self, n_features: int) -> FloatArray:
        if self.weights is None:
            return np.ones(n_features)
        if len(self.weights) != n_features:
            raise ValueError(f"{len(self.weights)} penalty weights were given for {n_features} features")
        return self.weights


@dataclass(frozen=True, eq=False)
class ElasticNet(L1):
    """α [ρ Σ_j v_j|w_j| + ½(1 − ρ)‖w‖²], ρ = ``l1_ratio``, v = ``weights`` (1 without)."""

    l1_ratio: float = 0.5
    name: ClassVar[str] = "elastic_net"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.l1_ratio <= 1:
            raise ValueError(f"l1_ratio must be in (0, 1], got {self.l1_ratio}")

    def alpha_max(self, g: FloatArray) -> float:
        return super().alpha_max(g) / self.l1_ratio

    def slopes(self, n_features: int) -> Slopes:
        slope = self.l1_ratio * super().slopes(n_features).up
        return Slopes(slope, slope, self.alpha * (1.0 - self.l1_ratio))


def _checked_weights(weights: FloatArray) -> FloatArray:
    weights = np.asarray(weights, dtype=np.float64)
    if weights.ndim != 1 or np.isnan(weights).any() or np.any(weights <= 0):
        raise ValueError("penalty weights must be one number > 0 per feature (infinity forbids the feature)")
    return weights
