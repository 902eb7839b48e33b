"""Concave penalties α Σ_j g(|w_j|): sparser than ℓ1, minimised by reweighted ℓ1.

Each defines its value and its derivative g′(|w|), the weights of the tangent ℓ1 penalty at w.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.errors import ParameterError
from ranksieve.penalties.base import ScaledPenalty, check_alpha


class ConcavePenalty(ScaledPenalty, Protocol):
    """α Σ_j g(|w_j|) with g concave, increasing, g(0) = 0."""

    def weights(self, w: FloatArray) -> FloatArray:
        """g′(|w_j|), one per feature."""


@dataclass(frozen=True)
class _Concave:
    alpha: float = 1.0
    offers: ClassVar[frozenset[str]] = frozenset({"concave"})
    above: ClassVar[dict[str, float]]  # lower bounds of parameters, exclusive

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        for name, least in self.above.items():
            if not getattr(self, name) > least:
                raise ParameterError(name, getattr(self, name), f"must be > {least:g}")

    def scaled(self, alpha: float) -> Self:
        return replace(self, alpha=alpha)

    def gap(self, objective: Any, point: Any, g: FloatArray) -> float:
        """NaN: a concave penalty has many local minima."""
        return np.nan


@dataclass(frozen=True)
class Log(_Concave):
    """g(t) = log(1 + t/ε), g′(t) = 1/(ε + t)."""

    epsilon: float = 0.1
    name: ClassVar[str] = "log"
    above: ClassVar[dict[str, float]] = {"epsilon": 0.0}

    def value(self, w: FloatArray) -> float:
        return self.alpha * float(np.sum(np.log1p(np.abs(w) / self.epsilon)))

    def weights(self, w: FloatArray) -> FloatArray:
        return 1.0 / (self.epsilon + np.abs(w))


@dataclass(frozen=True)
class Lp(_Concave):
    """g(t) = (t + ε)^p − ε^p, g′(t) = p(t + ε)^{p−1}: ℓp with 0 < p < 1, where ε makes the slope at 0 finite.

    With ε = 0 a weight that reaches zero could never leave it; ε = 0.001 makes the slope there 16 for p = ½.
    """

    p: float = 0.5
    smoothing: float = 0.001
    name: ClassVar[str] = "lp"
    above: ClassVar[dict[str, float]] = {"p": 0.0, "smoothing": 0.0}

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.p < 1:
            raise ParameterError("p", self.p, "must be between 0 and 1")

    def value(self, w: FloatArray) -> float:
        return self.alpha * float(np.sum((np.abs(w) + self.smoothing) ** self.p - self.smoothing**self.p))

    def weights(self, w: FloatArray) -> FloatArray:
        return np.asarray(self.p * (np.abs(w) + self.smoothing) ** (self.p - 1.0))


@dataclass(frozen=True)
class MCP(_Concave):
    """g(t) = t − t²/(2γα) up to the knee t = γα, constant beyond; g′(t) = max(1 − t/(γα), 0).

    The knee is in units of w, so the penalty depends on the scale of the loss (here the mean over pairs).
    """

    gamma: float = 2.0
    name: ClassVar[str] = "mcp"
    above: ClassVar[dict[str, float]] = {"gamma": 0.0}

    def value(self, w: FloatArray) -> float:
        if self.alpha == 0.0:
            return 0.0
        knee = self.gamma * self.alpha
        t = np.minimum(np.abs(w), knee)
        return self.alpha * float(np.sum(t - t**2 / (2.0 * knee)))

    def weights(self, w: FloatArray) -> FloatArray:
        knee = self.gamma * self.alpha
        return np.maximum(1.0 - np.abs(w) / knee, 0.0) if knee > 0.0 else np.zeros_like(w)


@dataclass(frozen=True)
class SCAD(_Concave):
    """g′(t) = 1 up to α, then (aα − t)/((a − 1)α) down to 0 at aα; g is its integral."""

    a: float = 3.7
    name: ClassVar[str] = "scad"
    above: ClassVar[dict[str, float]] = {"a": 2.0}

    def value(self, w: FloatArray) -> float:
        if self.alpha == 0.0:
            return 0.0
        t, k, a = np.abs(w), self.alpha, self.a
        middle = (2.0 * a * k * t - t**2 - k**2) / (2.0 * (a - 1.0) * k)
        return k * float(np.sum(np.where(t <= k, t, np.where(t <= a * k, middle, 0.5 * (a + 1.0) * k))))

    def weights(self, w: FloatArray) -> FloatArray:
        t, k = np.abs(w), self.alpha
        if k == 0.0:
            return np.zeros_like(w)
        return np.where(t <= k, 1.0, np.maximum(self.a * k - t, 0.0) / ((self.a - 1.0) * k))
