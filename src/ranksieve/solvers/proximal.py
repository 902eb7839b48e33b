"""Proximal gradient with a Lipschitz constant found on the way: plain, or accelerated (FISTA)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from ranksieve._parallel import single_threaded_blas
from ranksieve._types import FloatArray
from ranksieve.solvers.result import Callback, Result, Trace

ROUNDING = 1e-15  # a change of the objective below this share of it cannot be told from none


class Smooth(Protocol):
    """A differentiable function, such as :class:`ranksieve.objective.Objective`."""

    @property
    def n_features(self) -> int: ...

    def evaluate(self, w: FloatArray) -> Any:
        """The function at ``w``, as a point that has a ``value``."""

    def gradient(self, point: Any) -> FloatArray:
        """The gradient at a point."""


class Simple(Protocol):
    """A function with a cheap proximal map."""

    def value(self, w: FloatArray) -> float: ...

    def prox(self, w: FloatArray, step: float) -> FloatArray: ...


@dataclass(frozen=True)
class Step:
    """What a stopping rule sees after each iteration."""

    point: Any
    w: FloatArray
    objective: float
    previous: float
    mapping: float
    """Norm of the proximal gradient mapping L(z − w), 0 exactly at an optimum."""


StopRule: TypeAlias = Callable[[Step], tuple[float, bool]]
"""(duality gap or NaN, whether to stop)."""


def small_change(tol: float) -> StopRule:
    """Stop when the objective changed by at most ``tol`` times itself."""
    return lambda step: (np.nan, abs(step.objective - step.previous) <= tol * abs(step.previous))


def small_gap(gap: Callable[[Any], float], tol: float, least_mapping: float = 0.0) -> StopRule:
    """Stop when the duality gap is at most ``tol`` times the objective, or the mapping's norm is small."""

    def rule(step: Step) -> tuple[float, bool]:
        value = gap(step.point)
        return value, value <= tol * step.objective or step.mapping <= least_mapping

    return rule


def proximal_gradient(
    smooth: Smooth,
    simple: Simple,
    start: FloatArray | None = None,
    *,
    lipschitz: float,
    stop: StopRule,
    max_iter: int,
    accelerated: bool = False,
    restart: bool = False,
    growth: float = 2.0,
    callback: Callback | None = None,
) -> Result:
    """Minimise smooth(w) + simple(w) by w ← prox(z − ∇smooth(z)/L).

    L starts at ``lipschitz`` and is multiplied by ``growth`` until
    smooth(w) ≤ smooth(z) + ⟨∇, w − z⟩ + (L/2)‖w − z‖²; it never falls. Plain: z = w. Accelerated: z runs
    ahead by (a_t − 1)/a_{t+1} times the last change, a_{t+1} = (1 + √(1 + 4a_t²))/2; with ``restart``, a
    returns to 1 whenever the objective rises.
    """
    w = np.zeros(smooth.n_features) if start is None else start.copy()
    with single_threaded_blas():
        return _iterate(
            smooth, simple, w, _Search(lipschitz, growth), stop, max_iter, accelerated, restart, callback
        )


@dataclass
class _Search:
    """Backtracking for the Lipschitz constant."""

    lipschitz: float
    growth: float

    def step(self, smooth: Smooth, simple: Simple, z: FloatArray, at_z: Any) -> tuple[FloatArray, Any, float]:
        """(w, the point there, norm of the gradient mapping)."""
        g = smooth.gradient(at_z)
        while np.isfinite(self.lipschitz):
            w = simple.prox(z - g / self.lipschitz, 1.0 / self.lipschitz)
            at_w, change = smooth.evaluate(w), w - z
            model = at_z.value + float(g @ change) + 0.5 * self.lipschitz * float(change @ change)
            if at_w.value <= model + ROUNDING * abs(at_z.value):
                return w, at_w, self.lipschitz * float(np.linalg.norm(change))
            self.lipschitz *= self.growth
        raise ValueError(
            "no step makes the objective fall, because its values are not finite; scale the features down"
        )


def _iterate(
    smooth: Smooth,
    simple: Simple,
    w: FloatArray,
    search: _Search,
    stop: StopRule,
    max_iter: int,
    accelerated: bool,
    restart: bool,
    callback: Callback | None,
) -> Result:
    point, trace, a = smooth.evaluate(w), Trace(), 1.0
    z, at_z = w, point
    objective, gap, done, n_iter = point.value + simple.value(w), np.nan, False, 0
    for n_iter in range(1, max_iter + 1):
        before, previous = w, objective
        w, point, mapping = search.step(smooth, simple, z, at_z)
        objective = point.value + simple.value(w)
        gap, done = stop(Step(point, w, objective, previous, mapping))
        trace.record(objective, gap, w)
        if callback is not None:
            callback(n_iter, w, objective, gap)
        if done:
            break
        if not accelerated or (restart and objective > previous):
            z, at_z, a = w, point, 1.0
        else:
            a, before_a = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * a * a)), a
            z = w + (before_a - 1.0) / a * (w - before)
            at_z = smooth.evaluate(z)
    return Result(w, objective, gap, n_iter, done, trace)
