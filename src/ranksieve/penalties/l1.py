"""ℓ1, plain or with a weight per feature, and the elastic net."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.penalties.base import Slopes, check_alpha


@dataclass(frozen=True, eq=False)
class ElasticNet:
    """α Σ_j v_j [ρ|w_j|] + ½ α(1 − ρ)‖w‖², ρ = ``l1_ratio``, v = ``weights`` (1 without).

    A weight of infinity forbids the feature.
    """

    alpha: float = 1.0
    l1_ratio: float = 1.0
    weights: FloatArray | None = None
    name: str = "elastic_net"

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        if not 0 < self.l1_ratio <= 1:
            raise ValueError(f"l1_ratio must be in (0, 1], got {self.l1_ratio}")
        if self.weights is not None:
            object.__setattr__(self, "weights", _checked_weights(self.weights))

    def value(self, w: FloatArray) -> float:
        used = w != 0
        slope = self.alpha * self.l1_ratio * self._weights(len(w))[used]
        return float(slope @ np.abs(w[used])) + 0.5 * self._ridge * float(w @ w)

    def prox(self, w: FloatArray, step: float) -> FloatArray:
        threshold = step * self.slopes(len(w)).up
        return np.asarray(np.sign(w) * np.maximum(np.abs(w) - threshold, 0.0) / (1.0 + step * self._ridge))

    def scaled(self, alpha: float) -> Self:
        return replace(self, alpha=alpha)

    def alpha_max(self, g: FloatArray) -> float:
        return float(np.max(np.abs(g) / self._weights(len(g)))) / self.l1_ratio

    def slopes(self, n_features: int) -> Slopes:
        weights = self._weights(n_features)
        slope = np.where(np.isinf(weights), np.inf, self.alpha * self.l1_ratio * weights)
        return Slopes(slope, slope, self._ridge)

    @property
    def _ridge(self) -> float:
        return self.alpha * (1.0 - self.l1_ratio)

    def _weights(self, n_features: int) -> FloatArray:
        if self.weights is None:
            return np.ones(n_features)
        if len(self.weights) != n_features:
            raise ValueError(f"{len(self.weights)} penalty weights were given for {n_features} features")
        return self.weights


@dataclass(frozen=True, eq=False)
class L1(ElasticNet):
    """α Σ_j v_j |w_j|, v = ``weights`` (1 without)."""

    name: str = "l1"


def _checked_weights(weights: FloatArray) -> FloatArray:
    weights = np.asarray(weights, dtype=np.float64)
    if weights.ndim != 1 or np.isnan(weights).any() or np.any(weights <= 0):
        raise ValueError("penalty weights must be one number > 0 per feature (infinity forbids the feature)")
    return weights
