"""Proximal Newton with working sets, for convex penalties and, reweighted, for concave ones."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve.kernels.linear import minimise_quadratic
from ranksieve.objective import Objective, Point
from ranksieve.penalties.base import Slopes, duality_gap
from ranksieve.penalties.l1 import L1
from ranksieve.solvers.base import ROUNDING, Loop, Problem, Solver, first_decrease, minimum_of_sample

NEAR = 0.8  # a feature whose gradient reaches this share of its slope joins the working set
WIDE = 0.6  # from this share on its values are kept at hand: it may join soon
FEWEST, MOST = 256, 1000  # features that a working set may hold beyond those in use, whatever the data
MAX_SWEEPS = 1000  # of coordinate descent per step
STALLED = 5  # steps without a change that can be told from none end the iteration


@dataclass(frozen=True)
class ProxNewton(Solver):
    """Minimise f(w) + penalty(w) until the duality gap is at most ``tol`` times the objective.

    Each step minimises the second-order model of f plus the penalty over the working set (nonzero weights and
    features whose gradient nears its slope) by coordinate descent, then searches the segment to that minimum
    for a sufficient decrease of the true objective. The squared hinge is piecewise quadratic, so the full
    step is exact as soon as the active pairs stop changing.
    """

    name: ClassVar[str] = "prox_newton"
    needs: ClassVar[frozenset[str]] = frozenset({"hessian", "slopes"})

    def run(self, problem: Problem, start: FloatArray | Point | None, loop: Loop) -> None:
        slopes, stalled = problem.penalty.slopes(problem.n_features), 0
        point = problem.start(minimum_of_sample(problem, self) if start is None else start)
        small = NEAR * np.minimum(slopes.up, slopes.down)  # what is below counts neither here nor in the gap
        while True:
            g = problem.gradient_where_large(point, small)
            primal, gap = duality_gap(problem.objective, slopes, point, g)
            if loop.ends(point.w, primal, gap, point=point):
                return
            if loop.n_iter and loop.trace.objective[-2] - primal <= ROUNDING * primal:
                stalled += 1
            moved = None if stalled == STALLED else _step(problem, slopes, point, g, primal)
            if moved is None:
                return
            point = moved


def _step(problem: Problem, slopes: Slopes, point: Point, g: FloatArray, primal: float) -> Point | None:
    """One Newton step, or None when rounding leaves no decrease to be had."""
    objective, most = problem.objective, most_columns(problem.objective)
    columns = working_set(slopes, point.w, g, NEAR, most, problem.usable)
    if not objective.features.keeps(columns):
        objective.features.keep(working_set(slopes, point.w, g, WIDE, 2 * most))
    target = point.w.copy()
    target[columns] = model_minimum(objective.hessian(point, columns), slopes, point.w, g, columns)
    direction = target - point.w
    decrease = float(g @ direction) + slopes.value(target) - slopes.value(point.w)
    if not np.any(direction) or decrease > ROUNDING * primal:
        return None
    return first_decrease(objective, slopes.value, point, direction, decrease, primal)


def most_columns(objective: Objective) -> int:
    """Features that a working set may hold: an ℓ1 optimum needs no more of them than there are documents."""
    return int(np.clip(objective.loss.queries.n_rows, FEWEST, MOST))


def working_set(
    slopes: Slopes, w: FloatArray, g: FloatArray, near: float, most: int, usable: BoolArray | None = None
) -> IntArray:
    """Features in use, and those whose gradient is near the slope that would bring them in.

    Of more than ``most``, and twice as many as are in use, the ones with the steepest gradient for their
    slope: so its Hessian stays small however many features there are.
    """
    facing = slopes.facing(g)
    chosen = np.flatnonzero((w != 0) | (np.abs(g) >= near * facing))
    if usable is not None:
        chosen = chosen[usable[chosen]]  # a slope of 0 lets in all others
    share = np.full(len(chosen), np.inf)
    np.divide(np.abs(g[chosen]), facing[chosen], out=share, where=(w[chosen] == 0) & (facing[chosen] > 0))
    return steepest(chosen, share, max(most, 2 * int(np.count_nonzero(w))))


def steepest(columns: IntArray, share: FloatArray, most: int) -> IntArray:
    """At most so many of the columns, those of the largest share, in their order."""
    if len(columns) <= most:
        return columns
    return np.sort(columns[np.argsort(-share, kind="stable")[:most]])


def model_minimum(
    hessian: FloatArray, slopes: Slopes, w: FloatArray, g: FloatArray, columns: IntArray
) -> FloatArray:
    """argmin_z of g·(z − w) + ½(z − w)ᵀH(z − w) + penalty(z) over the working set."""
    violation = float(np.max(slopes.violation(w, g)[columns], initial=0.0))
    here = Slopes(slopes.up[columns], slopes.down[columns], slopes.ridge)
    start, slope = w[columns], g[columns]
    z = minimise_quadratic(
        hessian, slope, start, here.up, here.down, here.ridge, 1e-3 * violation, MAX_SWEEPS
    )
    return _polished(hessian, here, start, slope, np.asarray(z))


def _polished(hessian: FloatArray, slopes: Slopes, w: FloatArray, g: FloatArray, z: FloatArray) -> FloatArray:
    """The exact minimum with the signs of ``z``, if it has those signs and is no worse; else ``z``.

    Coordinate descent finds the signs fast and the last digits slowly; these come from one linear system.
    """
    used = np.flatnonzero(z)
    sign = np.sign(z[used])
    block = hessian[np.ix_(used, used)] + slopes.ridge * np.eye(len(used))
    slope = np.where(sign > 0, slopes.up[used], -slopes.down[used])
    unit = 1.0 / np.sqrt(np.where(block.diagonal() > 0, block.diagonal(), 1.0))  # features of any scale
    try:
        exact = unit * np.linalg.solve(
            unit[:, None] * block * unit, unit * (hessian[used] @ w - g[used] - slope)
        )
    except np.linalg.LinAlgError:
        return z
    if not np.all(exact * sign > 0):
        return z
    polished = np.zeros_like(z)
    polished[used] = exact

    def model(v: FloatArray) -> float:
        return float(g @ v) + 0.5 * float((v - w) @ hessian @ (v - w)) + slopes.value(v)

    size = float(np.abs(g) @ np.abs(z)) + slopes.value(z)  # of the terms: rounding must not decide
    return polished if model(polished) <= model(z) + 10.0 * ROUNDING * size else z


LEAST_WEIGHT = 1e-6  # keeps the dual point of every round away from zero, so that its gap says something


@dataclass(frozen=True)
class Reweighted(Solver):
    """Minimise f(w) + α Σ g(|w_j|): solve with weights v_j = g′(|w_j|) of the last solution, again and again.

    g lies below its tangent, so each solution lowers the true objective. The first weights are those of the
    start, or 1 without one (plain ℓ1, which may raise the objective from that at w = 0). Stops when the
    objective falls by at most ``tol`` times itself; a round that raises it by its own error changes nothing.
    The result's objective is the true one; its gap is that of the last weighted ℓ1 problem, so w is near a
    stationary point. ``inner`` solves the weighted problems.
    """

    max_iter: int = 50
    inner: Solver = field(default_factory=ProxNewton)
    name: ClassVar[str] = "reweighted"
    needs: ClassVar[frozenset[str]] = frozenset({"concave"})

    def check(self, problem: Problem) -> None:
        super().check(problem)
        self.inner.check(replace(problem, penalty=L1()))

    def run(self, problem: Problem, start: FloatArray | Point | None, loop: Loop) -> None:
        penalty, point = problem.penalty, problem.start(start)
        weights = np.ones(problem.n_features) if start is None else penalty.weights(point.w)
        if loop.ends(point.w, problem.value(point), np.inf, np.inf, point):
            return
        least = np.inf if start is None else problem.value(point)
        while True:
            weighted = replace(problem, penalty=L1(penalty.alpha, np.maximum(weights, LEAST_WEIGHT)))
            solved = self.inner.solve(weighted, point.w)
            value = problem.value(solved.point)
            fall, gap = least - value, solved.gap
            if fall >= 0.0:
                point, least = solved.point, value
            else:
                gap = weighted.gap(point)
            small = fall <= self.tol * abs(value)
            if loop.ends(point.w, least, gap, 0.0 if small and solved.converged else np.inf, point) or small:
                return
            weights = penalty.weights(point.w)
