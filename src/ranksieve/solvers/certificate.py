"""The duality gap: a proof, from one gradient, of how far an objective can still fall."""

from __future__ import annotations

from ranksieve._types import FloatArray
from ranksieve.objective import Objective, Point
from ranksieve.penalties.base import SlopedPenalty, Slopes


def duality_gap(
    objective: Objective, penalty: SlopedPenalty, point: Point, g: FloatArray
) -> tuple[float, float]:
    """(F, F − D) for F = f(w) + penalty(w).

    The dual point is that of the current hinge values, shrunk by c ≤ 1 until |c·g_j| ≤ slope_j for every
    feature. With a ridge μ the unshrunk point is feasible too and pays Σ_j max(0, |g_j| − slope_j)²/(2μ).

    Every |g_j| counts with its rounding error on top, and the gap includes that of the objective, so that no
    gap is claimed which rounding could have made. For the same reason an unpenalised feature, slope 0, passes
    for optimal where |g_j| is no larger than its rounding error.
    """
    return gap_with_slopes(objective, penalty.slopes(len(g)), point, g)


def gap_with_slopes(objective: Objective, slopes: Slopes, point: Point, g: FloatArray) -> tuple[float, float]:
    """:func:`duality_gap` for a penalty given by its slopes."""
    primal = point.value + slopes.value(point.w)
    error = objective.gradient_error(point)
    dual = objective.dual(point, slopes.dual_scale(g, error))
    if slopes.ridge > 0:
        dual = max(dual, objective.dual(point, 1.0) - slopes.excess(g, error) / (2.0 * slopes.ridge))
    return primal, max(0.0, primal - dual) + objective.value_error(point)
