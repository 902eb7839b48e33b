"""Reweighted ℓ1: minimise a concave penalty by a sequence of weighted ℓ1 problems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.objective import Objective
from ranksieve.penalties.concave import ConcavePenalty
from ranksieve.penalties.l1 import L1
from ranksieve.solvers.result import Callback, Result, Trace

LEAST_WEIGHT = 1e-6  # keeps every subproblem's dual feasible, so that its gap stays a proof

Inner: TypeAlias = Callable[[L1, FloatArray], Result]
"""Solve f + weighted ℓ1 from a start."""


def reweighted(
    objective: Objective,
    penalty: ConcavePenalty,
    inner: Inner,
    start: FloatArray | None = None,
    *,
    tol: float = 1e-6,
    max_iter: int = 50,
    callback: Callback | None = None,
) -> Result:
    """Minimise f(w) + α Σ g(|w_j|): solve with weights v_j = g′(|w_j|) of the last solution, again and again.

    g lies below its tangent, so each solution lowers the true objective. The first weights are 1 (plain ℓ1),
    or those of ``start``. Stops when the objective falls by at most ``tol`` times itself. The result's
    objective is the true one; its gap certifies the last weighted ℓ1 problem, so w is near a stationary
    point.
    """
    d, trace = objective.n_features, Trace()
    weights = np.ones(d) if start is None else np.maximum(penalty.weights(start), LEAST_WEIGHT)
    w = np.zeros(d) if start is None else start
    best: Result | None = None
    for n_iter in range(1, max_iter + 1):
        solved = inner(L1(penalty.alpha, weights), w)
        value = objective.evaluate(solved.w).value + penalty.value(solved.w)
        before = np.inf if best is None else best.objective
        if value <= before:
            best = replace(solved, objective=value, n_iter=n_iter, trace=trace)
        trace.record(min(value, before), solved.gap, solved.w)
        if callback is not None:
            callback(n_iter, solved.w, value, solved.gap)
        if best is None or before - value <= tol * abs(value):
            break
        w = solved.w
        weights = np.maximum(penalty.weights(w), LEAST_WEIGHT)
    if best is None:
        raise ValueError("the objective is not a number at the start")
    return replace(best, n_iter=n_iter, converged=best.converged and n_iter < max_iter)
