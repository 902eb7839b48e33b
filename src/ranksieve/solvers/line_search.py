"""Exact steps along a line in score space."""

from __future__ import annotations

from ranksieve._types import FloatArray
from ranksieve.objective import Objective, Point

EXACT = 1e-10  # share of the initial slope at which a slope counts as zero
MAX_EVALUATIONS = 50


def exact_step(
    objective: Objective, point: Point, direction: FloatArray, slide: FloatArray, limit: float
) -> tuple[float, Point]:
    """Minimise φ(μ) = f(w + μ·direction) over 0 ≤ μ ≤ ``limit``; ``slide`` = X·direction.

    φ is convex and, for the squared hinge, piecewise quadratic, so Newton's iteration on φ′ ends at the exact
    root as soon as it lands in its piece. A bracket of the root guards each step: one that leaves it is
    replaced by bisection.
    """

    def at(step: float) -> Point:
        return objective.evaluate_scores(point.w + step * direction, point.scores + step * slide)

    first = slope = objective.slope_along(point, slide)
    if slope >= 0.0:
        return 0.0, point
    low, high, step, here, end = 0.0, limit, 0.0, point, None
    for _ in range(MAX_EVALUATIONS):
        curvature = objective.curvature_along(here, slide)
        newton = step - slope / curvature if curvature > 0.0 else high
        if newton >= high and end is None:
            step = limit
            here = end = at(limit)
        else:
            step = newton if low < newton < high else 0.5 * (low + high)
            here = at(step)
        slope = objective.slope_along(here, slide)
        if (
            abs(slope) <= EXACT * abs(first)
            or (step == limit and slope <= 0.0)
            or high - low <= 1e-15 * limit
        ):
            break
        low, high = (step, high) if slope < 0.0 else (low, step)
    return step, here
