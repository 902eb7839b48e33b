"""Steps along a line: exact ones in score space, and the first that descends enough."""

from __future__ import annotations

from collections.abc import Callable

from ranksieve._types import FloatArray
from ranksieve.objective import Objective, Point

EXACT = 1e-10  # share of the initial slope at which a slope counts as zero
NEAR = 1e-3  # change of a step, as a share of it, that is probably the last
MAX_EVALUATIONS = 50
SUFFICIENT = 1e-4  # share of the decrease promised that a step must reach
ROUNDING = 1e-15  # a change of the objective below this share of it cannot be told from none
SHORTEST = 1e-10


def first_decrease(
    objective: Objective,
    penalty: Callable[[FloatArray], float],
    point: Point,
    direction: FloatArray,
    decrease: float,
    value: float,
) -> Point | None:
    """The first of the steps 1, ½, ¼ … that lowers f + penalty by enough; None when rounding leaves none.

    ``value`` is f + penalty at the point, ``decrease`` < 0 what the full step promises. The scores of the
    point returned are those of its weights, free of the rounding errors of steps before.
    """

    def is_enough(moved: Point, step: float) -> bool:
        reached = moved.value + penalty(moved.w)
        return reached <= value * (1.0 + ROUNDING) + SUFFICIENT * step * decrease

    full = objective.evaluate(point.w + direction)
    if is_enough(full, 1.0):
        return full
    direction_scores, step = objective.scores(direction), 0.5
    while step > SHORTEST:
        w = point.w + step * direction
        if is_enough(objective.evaluate_scores(w, point.scores + step * direction_scores), step):
            return objective.evaluate(w)
        step *= 0.5
    return None


def exact_step(
    objective: Objective, point: Point, direction: FloatArray, direction_scores: FloatArray, limit: float
) -> tuple[float, Point]:
    """Minimise φ(μ) = f(w + μ·direction) over 0 ≤ μ ≤ ``limit``; ``direction_scores`` = X·direction.

    φ is convex and, for the squared hinge, piecewise quadratic, so Newton's iteration on φ′ ends at the exact
    root as soon as it lands in its piece. A bracket of the root guards each step: one that leaves it is
    replaced by bisection. A step that hardly changes is probably the root, and evaluated as a whole.
    """
    slopes = objective.slopes_along(point, direction_scores)
    first = slope = objective.slope_along(point, direction_scores)
    if slope >= 0.0:
        return 0.0, point

    def moved(step: float) -> Point:
        w, scores = point.w + step * direction, point.scores + step * direction_scores
        return objective.evaluate_scores(w, scores)

    def ends(step: float, slope: float) -> bool:
        return abs(slope) <= EXACT * abs(first) or (step == limit and slope <= 0.0)

    _, curvature = slopes(0.0)
    low, high, step, tried_limit = 0.0, limit, 0.0, False
    for _ in range(MAX_EVALUATIONS):
        before, newton = step, step - slope / curvature if curvature > 0.0 else high
        if newton >= high == limit and not tried_limit:
            step, tried_limit = limit, True
        else:
            step = newton if low < newton < high else 0.5 * (low + high)
        if abs(step - before) <= NEAR * step:
            end = moved(step)
            if ends(step, objective.slope_along(end, direction_scores)):
                return step, end
        slope, curvature = slopes(step)
        if ends(step, slope) or high - low <= 1e-15 * limit:
            break
        low, high = (step, high) if slope < 0.0 else (low, step)
    return step, moved(step)
