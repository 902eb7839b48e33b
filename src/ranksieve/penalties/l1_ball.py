"""The ℓ1 ball: a constraint instead of a penalty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.errors import ParameterError


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
        """Euclidean projection: soft thresholding at the level that leaves ‖z‖₁ = radius."""
        size = np.abs(w)
        if size.sum() <= self.radius:
            return w.copy()
        falling = np.sort(size)[::-1]
        excess = (np.cumsum(falling) - self.radius) / np.arange(1, len(w) + 1)
        level = excess[np.flatnonzero(falling > excess)[-1]]
        return np.asarray(np.sign(w) * np.maximum(size - level, 0.0))

    def gap(self, objective: Any, point: Any, g: FloatArray) -> float:
        """f(w) − min f ≤ max_{‖v‖₁ ≤ r} ⟨g, w − v⟩ = r‖g‖_∞ + ⟨g, w⟩, with what rounding may have moved."""
        exact = float(np.maximum(0.0, self.radius * np.max(np.abs(g)) + g @ point.w))
        error = self.radius * float(np.max(objective.gradient_error(point)))
        return exact + error + float(objective.value_error(point))
