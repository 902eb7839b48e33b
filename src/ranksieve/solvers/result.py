"""What a solver returns."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from ranksieve._types import FloatArray


@dataclass
class Trace:
    """One entry an iteration: objective, duality gap, nonzero weights, seconds since the start."""

    objective: list[float] = field(default_factory=list)
    gap: list[float] = field(default_factory=list)
    n_nonzero: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    _start: float = field(default_factory=time.perf_counter, repr=False)

    def record(self, objective: float, gap: float, w: FloatArray) -> None:
        self.objective.append(objective)
        self.gap.append(gap)
        self.n_nonzero.append(int(np.count_nonzero(w)))
        self.seconds.append(time.perf_counter() - self._start)

    def __len__(self) -> int:
        return len(self.objective)

    def to_dict(self) -> dict[str, list[Any]]:
        return {
            "objective": self.objective,
            "gap": self.gap,
            "n_nonzero": self.n_nonzero,
            "seconds": self.seconds,
        }


@dataclass(frozen=True)
class Result:
    """Weights, the objective there, the proof of how near it is (``gap``), and how it went."""

    w: FloatArray
    objective: float
    gap: float
    n_iter: int
    converged: bool
    trace: Trace

    @property
    def relative_gap(self) -> float:
        return relative(self.gap, self.objective)


def warn_of_tolerance(words: str, stacklevel: int) -> None:
    """Say that a tolerance was not met, in the category that scikit-learn's users know."""
    from sklearn.exceptions import ConvergenceWarning

    warnings.warn(words, ConvergenceWarning, stacklevel=stacklevel + 1)


Callback: TypeAlias = Callable[[int, FloatArray, float, float], None]
"""Called once an iteration with (iteration, w, objective, gap)."""


def relative(gap: float, objective: float) -> float:
    """Gap as a share of the objective."""
    return gap / objective if objective > 0 else gap
