"""ℓ2: shrinks, never drops a feature."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.penalties.base import Slopes, check_alpha


@dataclass(frozen=True)
class Ridge:
    """½ α ‖w‖²."""

    alpha: float = 1.0
    name: ClassVar[str] = "ridge"

    def __post_init__(self) -> None:
        check_alpha(self.alpha)

    def value(self, w: FloatArray) -> float:
        return self.slopes(len(w)).value(w)

    def prox(self, w: FloatArray, step: float) -> FloatArray:
        return w / (1.0 + step * self.alpha)

    def scaled(self, alpha: float) -> Self:
        return replace(self, alpha=alpha)

    def alpha_max(self, g: FloatArray) -> float:
        """No finite strength brings all weights to zero, unless the gradient is zero already."""
        return np.inf if np.any(g) else 0.0

    def slopes(self, n_features: int) -> Slopes:
        return Slopes(np.zeros(n_features), np.zeros(n_features), self.alpha)
