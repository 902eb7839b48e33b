"""Shared by all solvers: the problem, the main loop, line searches, the result."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from ranksieve._parallel import single_threaded_blas
from ranksieve._types import BoolArray, FloatArray
from ranksieve._util.short_repr import ShortRepr
from ranksieve.errors import ParameterError, warn_caller
from ranksieve.objective import Objective, Point

Callback: TypeAlias = Callable[[int, FloatArray, float, float], None]
"""Called once per iteration with (iteration, w, objective, gap); iteration 0 is the starting point."""

CAPABILITIES = {
    "hessian": "a loss with a Hessian",
    "hessian_product": "a loss with Hessian products",
    "prox": "a penalty with a proximal map",
    "slopes": "a convex penalty that is a sum over the features",
    "quadratic": "a quadratic penalty",
    "ball": "a norm constraint on the weights",
    "concave": "a concave penalty",
    "rows": "documents that can be read one query at a time",
}
NOT_FINITE = (
    "the objective is {value} after {n_iter} iterations, which is not a finite number; scale the features "
    "down or normalise them"
)


@dataclass(frozen=True, eq=False, repr=False)
class Problem(ShortRepr):
    """min_w f(Xw) + penalty(w), where features that are not ``usable`` keep the weight 0.

    Proximal solvers work in variables x, which are the weights unless a subclass defines others.
    """

    objective: Objective
    penalty: Any  # a Penalty with the capabilities in the solver's ``needs``
    usable: BoolArray | None = None

    @property
    def offers(self) -> frozenset[str]:
        """Names of the capabilities of the loss and the penalty."""
        return self.objective.offers | frozenset(self.penalty.offers)

    @property
    def n_features(self) -> int:
        return self.objective.n_features

    def start(self, start: FloatArray | Point | None) -> Point:
        """The starting point: at given weights, an evaluated point itself, or w = 0."""
        if start is None:
            return self.objective.at_zero
        if isinstance(start, Point):
            return start
        point = self.objective.evaluate(start if self.usable is None else np.where(self.usable, start, 0.0))
        if not np.isfinite(point.value):
            raise ValueError(NOT_FINITE.format(value=point.value, n_iter=0))
        return point

    def gradient(self, point: Point) -> FloatArray:
        """Gradient of f; set to exactly 0 for features that are not usable."""
        g = self.objective.gradient(point)
        return g if self.usable is None else np.where(self.usable, g, 0.0)

    def gradient_where_large(self, point: Point, least: FloatArray) -> FloatArray:
        """The gradient; entries proven smaller than ``least`` may be replaced by a bound on their size."""
        g = self.objective.gradient_where_large(point, least)
        return g if self.usable is None else np.where(self.usable, g, 0.0)

    def value(self, point: Point) -> float:
        """f + penalty."""
        return point.value + float(self.penalty.value(point.w))

    def gap(self, point: Point, g: FloatArray | None = None) -> float:
        """A proven upper bound on the value minus its minimum; NaN if there is none."""
        return float(self.penalty.gap(self.objective, point, self.gradient(point) if g is None else g))

    def evaluate(self, x: FloatArray) -> Any:
        """Evaluate the objective at the variables x."""
        return self.objective.evaluate(x)

    def variables(self, point: Any) -> FloatArray:
        """The variables x of a point."""
        return np.asarray(point.w)

    def prox(self, x: FloatArray, step: float) -> FloatArray:
        """The proximal map of the penalty in the variables x."""
        return np.asarray(self.penalty.prox(x, step))

    def finish(self, point: Any) -> Any:
        """The point to return: possibly another one with the same weights and a lower value."""
        return point


@dataclass(repr=False)
class Trace(ShortRepr):
    """Objective, gap, number of nonzero weights and elapsed seconds per iteration, including the start."""

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
        names = ("objective", "gap", "n_nonzero", "seconds")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, repr=False)
class Result(ShortRepr):
    """Weights with their objective, its proven gap to the minimum, and the trace of the iterations.

    ``point`` is the evaluated objective at ``w``: a warm start for similar problems.
    """

    w: FloatArray
    objective: float
    gap: float
    n_iter: int
    converged: bool
    trace: Trace
    point: Any = field(default=None, repr=False, compare=False)

    @property
    def relative_gap(self) -> float:
        return relative(self.gap, self.objective)


def relative(gap: float, objective: float) -> float:
    """Gap as a fraction of the objective."""
    return gap / objective if objective > 0 else gap


class Iterate(NamedTuple):
    w: FloatArray
    objective: float
    gap: float
    point: Any


class Loop:
    """The main loop of all solvers: trace, callback, stopping rule, check for values that are not finite.

    A solver passes each iterate, the start first, to :meth:`ends` and stops when that returns True. The last
    iterate is replaced by ``problem.finish``, and its gap is computed if the solver did not.
    """

    def __init__(
        self,
        problem: Problem,
        tol: float,
        max_iter: int,
        callback: Callback | None = None,
        keep_best: bool = False,
    ) -> None:
        self.trace, self.converged = Trace(), False
        self._problem, self._tol, self._max_iter = problem, tol, max_iter
        self._callback, self._keep_best = callback, keep_best
        self._best: Iterate | None = None

    @property
    def n_iter(self) -> int:
        return len(self.trace) - 1

    def ends(
        self, w: FloatArray, objective: float, gap: float, distance: float | None = None, point: Any = None
    ) -> bool:
        """Record an iterate; return True if it is the last one.

        ``distance`` is compared with the solver's tolerance; default: the relative gap.
        """
        if not np.isfinite(objective):
            raise ValueError(NOT_FINITE.format(value=objective, n_iter=len(self.trace)))
        self.converged = bool((relative(gap, objective) if distance is None else distance) <= self._tol)
        last = self.converged or len(self.trace) >= self._max_iter
        iterate = Iterate(w, objective, gap, point)
        iterate = self._finish(iterate) if last and not self._keep_best else iterate
        self.trace.record(iterate.objective, iterate.gap, iterate.w)
        if self._callback is not None:
            self._callback(self.n_iter, iterate.w, iterate.objective, iterate.gap)
        if self._best is None or not self._keep_best or iterate.objective < self._best.objective:
            self._best = iterate
        return last

    def result(self) -> Result:
        """The last iterate, or with ``keep_best`` the best one."""
        if self._best is None:
            raise ValueError("the solver returned no iterate")
        if np.isnan(self._best.gap):  # the solver stopped before ``ends`` returned True
            self._best = self._finish(self._best)
            self.trace.gap[-1] = self._best.gap
        w, objective, gap, point = self._best
        return Result(w, objective, gap, self.n_iter, self.converged, self.trace, point)

    def _finish(self, last: Iterate) -> Iterate:
        final = self._problem.finish(last.point)
        if final is last.point and not np.isnan(last.gap):
            return last
        return Iterate(final.w, self._problem.value(final), self._problem.gap(final), final)


@dataclass(frozen=True)
class Solver(ABC):
    """Minimises a problem to a distance of ``tol`` from the optimum, or for ``max_iter`` iterations.

    ``needs`` names the capabilities that the problem must have. ``keep_best`` is True if the objective may
    rise between iterates, ``stops_early`` if stopping before the optimum is part of the method.
    """

    tol: float = 1e-6
    max_iter: int = 100
    name: ClassVar[str]
    needs: ClassVar[frozenset[str]]
    keep_best: ClassVar[bool] = False
    stops_early: ClassVar[bool] = False

    def solve(
        self,
        problem: Problem,
        start: Any = None,
        callback: Callback | None = None,
    ) -> Result:
        """Minimise the problem, starting from weights, an evaluated point, or 0."""
        self.check(problem)
        loop = Loop(problem, self.tol, self.max_iter, callback, self.keep_best)
        with single_threaded_blas():
            self.run(problem, start, loop)
            return loop.result()

    def check(self, problem: Problem) -> None:
        """Raise an error if the problem lacks a capability that the solver needs."""
        missing = sorted(self.needs - problem.offers)
        if missing:
            raise ParameterError(
                "solver",
                self.name,
                f"needs {' and '.join(CAPABILITIES[one] for one in missing)}; the problem has the loss "
                f"{problem.objective.loss.name} and the penalty {problem.penalty.name}",
            )

    @abstractmethod
    def run(self, problem: Problem, start: FloatArray | Point | None, loop: Loop) -> None:
        """Iterate until ``loop.ends`` returns True, or until rounding prevents any decrease."""


def warn_not_converged(message: str) -> None:
    """Warn that a tolerance was not reached, with scikit-learn's warning category."""
    from sklearn.exceptions import ConvergenceWarning

    warn_caller(message, ConvergenceWarning)


ZERO_SLOPE = 1e-10  # slopes below this fraction of the initial slope are treated as zero
LAST_STEP_CHANGE = 1e-3  # a step whose relative change is smaller is probably the last
MAX_EVALUATIONS = 50
SUFFICIENT_DECREASE = 1e-4  # fraction of the predicted decrease that a step must achieve
OBJECTIVE_ROUNDING = 1e-15  # relative changes of the objective below this are rounding noise
MIN_STEP = 1e-10


def first_decrease(
    objective: Objective,
    penalty: Callable[[FloatArray], float],
    point: Point,
    direction: FloatArray,
    decrease: float,
    value: float,
) -> Point | None:
    """The first of the steps 1, ½, ¼ … with a sufficient decrease of f + penalty; None if there is none.

    ``value`` is f + penalty at the point, ``decrease`` < 0 the predicted change for the full step. The
    returned scores are computed from the weights, so rounding errors of steps do not accumulate.
    """

    def is_enough(moved: Point, step: float) -> bool:
        reached = moved.value + penalty(moved.w)
        return reached <= value * (1.0 + OBJECTIVE_ROUNDING) + SUFFICIENT_DECREASE * step * decrease

    full = objective.evaluate(point.w + direction)
    if is_enough(full, 1.0):
        return full
    direction_scores, step = objective.scores(direction), 0.5
    while step > MIN_STEP:
        w = point.w + step * direction
        if is_enough(objective.evaluate_scores(w, point.scores + step * direction_scores), step):
            return objective.evaluate(w)
        step *= 0.5
    return None


def exact_step(
    objective: Objective, point: Point, direction: FloatArray, direction_scores: FloatArray, limit: float
) -> tuple[float, Point]:
    """Minimise φ(μ) = f(w + μ·direction) over 0 ≤ μ ≤ ``limit``; ``direction_scores`` = X·direction.

    φ is convex and, for the squared hinge, piecewise quadratic, so Newton's iteration on φ′ reaches the exact
    root as soon as it lands in the right piece. A step that leaves the bracket of the root is replaced by
    bisection. If a step hardly changes, it is probably the root and the objective is evaluated there.
    """
    slopes = objective.slopes_along(point, direction_scores)
    first = slope = objective.slope_along(point, direction_scores)
    if slope >= 0.0:
        return 0.0, point

    def moved(step: float) -> Point:
        w, scores = point.w + step * direction, point.scores + step * direction_scores
        return objective.evaluate_scores(w, scores)

    def ends(step: float, slope: float) -> bool:
        return abs(slope) <= ZERO_SLOPE * abs(first) or (step == limit and slope <= 0.0)

    _, curvature = slopes(0.0)
    low, high, step, tried_limit = 0.0, limit, 0.0, False
    for _ in range(MAX_EVALUATIONS):
        previous, newton = step, step - slope / curvature if curvature > 0.0 else high
        if newton >= high == limit and not tried_limit:
            step, tried_limit = limit, True
        else:
            step = newton if low < newton < high else 0.5 * (low + high)
        if abs(step - previous) <= LAST_STEP_CHANGE * step:
            end = moved(step)
            if ends(step, objective.slope_along(end, direction_scores)):
                return step, end
        slope, curvature = slopes(step)
        if ends(step, slope) or high - low <= 1e-15 * limit:
            break
        low, high = (step, high) if slope < 0.0 else (low, step)
    return step, moved(step)


SAMPLE_MIN_DOCUMENTS = 50_000  # with as many, start from the minimum of a sample of at most about this size
SAMPLE_EVERY = 8  # use every eighth query or fewer
SAMPLE_GAP = 1e-3  # relative gap for the sample


def minimum_of_sample(problem: Problem, solver: Solver) -> FloatArray | None:
    """Weights fitted to a sample of the queries, as a warm start; None if the data are not large.

    Also None if the sample has most of the documents, because then it saves no time.
    """
    n_docs = problem.objective.loss.queries.n_rows
    sample = (
        problem.objective.sample(max(SAMPLE_EVERY, n_docs // SAMPLE_MIN_DOCUMENTS))
        if n_docs >= SAMPLE_MIN_DOCUMENTS
        else None
    )
    if sample is None or 2 * sample.loss.queries.n_rows > n_docs:
        return None
    return replace(solver, tol=SAMPLE_GAP).solve(Problem(sample, problem.penalty, problem.usable)).w
