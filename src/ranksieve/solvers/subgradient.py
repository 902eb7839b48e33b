"""Subgradient descent: what faster solvers are compared with."""

from __future__ import annotations

import numpy as np

from ranksieve._parallel import single_threaded_blas
from ranksieve._types import FloatArray
from ranksieve.objective import Objective
from ranksieve.penalties.base import SlopedPenalty, Slopes
from ranksieve.solvers.certificate import gap_with_slopes
from ranksieve.solvers.result import Callback, Result, Trace


def subgradient(
    objective: Objective,
    penalty: SlopedPenalty,
    start: FloatArray | None = None,
    *,
    step: float = 1.0,
    tol: float = 1e-6,
    max_iter: int = 1000,
    callback: Callback | None = None,
) -> Result:
    """Minimise f(w) + penalty(w) by w ← w − (step/√t)(∇f + penalty′), penalty′ = 0 where w_j = 0.

    The objective falls like 1/√t and not in every step. The trace tells each step's own objective and gap;
    the result is the step with the least objective, and no weight in it is exactly zero but by chance. Stops
    when a step's duality gap is at most ``tol`` times its objective.
    """
    slopes, trace = penalty.slopes(objective.n_features), Trace()
    w = np.zeros(objective.n_features) if start is None else start.copy()
    best, least, least_gap = w, np.inf, np.inf
    with single_threaded_blas():
        for n_iter in range(max_iter + 1):
            point = objective.evaluate(w)
            g = objective.gradient(point)
            primal, gap = gap_with_slopes(objective, slopes, point, g)
            trace.record(primal, gap, w)
            if callback is not None:
                callback(n_iter, w, primal, gap)
            if primal < least:
                best, least, least_gap = w, primal, gap
            if gap <= tol * primal or n_iter == max_iter:
                break
            w = w - step / np.sqrt(n_iter + 1.0) * (g + _penalty_slope(slopes, w))
    return Result(best, least, least_gap, n_iter, gap <= tol * primal, trace)


def _penalty_slope(slopes: Slopes, w: FloatArray) -> FloatArray:
    side = np.where(w > 0, slopes.up, -slopes.down)
    return np.where(w == 0, 0.0, side) + slopes.ridge * w
