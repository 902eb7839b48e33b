"""Quadratic penalties: ℓ2, which shrinks but never drops a feature, and ½wᵀAw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.penalties.base import Sloped, Slopes


@dataclass(frozen=True, eq=False)
class Ridge(Sloped):
    """½ α ‖w‖²."""

    name: ClassVar[str] = "ridge"
    offers: ClassVar[frozenset[str]] = frozenset({"prox", "slopes", "quadratic"})

    def alpha_max(self, g: FloatArray) -> float:
        """No finite strength brings all weights to zero, unless the gradient is zero already."""
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
    """0: the loss alone, of which no gap is known."""

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
