"""Truncated gradient: gradient steps, and every so many a pull of all weights towards zero."""

from __future__ import annotations

import numpy as np

from ranksieve._parallel import single_threaded_blas
from ranksieve._types import FloatArray
from ranksieve.objective import Objective
from ranksieve.penalties.base import SlopedPenalty
from ranksieve.solvers.certificate import gap_with_slopes
from ranksieve.solvers.result import Callback, Result, Trace

POWER_STEPS = 30


def truncated_gradient(
    objective: Objective,
    penalty: SlopedPenalty,
    start: FloatArray | None = None,
    *,
    rate: float,
    decay: float = 0.0,
    every: int = 1,
    tol: float = 1e-4,
    max_iter: int = 1000,
    callback: Callback | None = None,
) -> Result:
    """Minimise f(w) + penalty(w) by w ← w − η_t∇f(w) and, every ``every`` steps, w ← prox(w, Σ η of them).

    η_t = ``rate``/√(1 + ``decay``·t), t = 0, 1, … For ℓ1 the prox is the truncation T(w, Σηα, θ = ∞) of
    Langford, Li and Zhang, a soft threshold by the gravity of the steps since the last one. With ``every`` 1
    and a constant rate ≤ 1/L it is proximal gradient descent; with more, w circles at a distance of the order
    of η from the optimum, to which it comes only if η falls.

    An iteration is a gradient step. Objective and gap are those of truncated points, at the last of which it
    ends: when the gap is at most ``tol`` times the objective, or after ``max_iter`` iterations. The trace has
    one entry a truncation.
    """
    slopes, trace = penalty.slopes(objective.n_features), Trace()
    w = np.zeros(objective.n_features) if start is None else start.copy()
    n_iter, converged = 0, False
    with single_threaded_blas():
        point = objective.evaluate(w)
        g = objective.gradient(point)
        while n_iter < max_iter and not converged:
            gravity = 0.0
            for k in range(min(every, max_iter - n_iter)):
                if k > 0:
                    g = objective.gradient(objective.evaluate(w))
                step = rate / np.sqrt(1.0 + decay * n_iter)
                w, gravity, n_iter = w - step * g, gravity + step, n_iter + 1
            w = penalty.prox(w, gravity)
            point = objective.evaluate(w)
            g = objective.gradient(point)
            primal, gap = gap_with_slopes(objective, slopes, point, g)
            converged = gap <= tol * primal
            trace.record(primal, gap, w)
            if callback is not None:
                callback(n_iter, w, primal, gap)
    return Result(w, primal, gap, n_iter, converged, trace)


def curvature_at_zero(objective: Objective) -> float:
    """The largest eigenvalue of the Hessian at w = 0, nearly and from below, by the power method.

    For the squared hinge and the modified Huber loss no pair bends more than at score difference 0, so this
    is the Lipschitz constant of ∇f. The product Hv is a difference of gradients, exact where no pair leaves
    its parabola: up to score differences of 1.
    """
    g = objective.gradient(objective.at_zero)
    v, size = g, float(np.linalg.norm(g))
    for _ in range(POWER_STEPS):
        reach = float(np.max(np.abs(objective.scores(v)), initial=0.0))
        if reach == 0.0:
            return 0.0
        v = v / (4.0 * reach)
        change = objective.gradient(objective.evaluate(v)) - g
        size = float(np.linalg.norm(change)) / float(np.linalg.norm(v))
        v = change
    return size
