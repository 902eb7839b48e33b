"""What every solver shares: the problem it takes, the loop that drives it, steps along a line, the result."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from ranksieve._parallel import single_threaded_blas
from ranksieve._types import BoolArray, FloatArray
from ranksieve.errors import ParameterError, warn_caller
from ranksieve.objective import Objective, Point

Callback: TypeAlias = Callable[[int, FloatArray, float, float], None]
"""Called once per iteration with (iteration, w, objective, gap); iteration 0 is the start."""

CAPABILITIES = {
    "hessian": "a loss with a Hessian",
    "hessian_product": "a loss with Hessian products",
    "prox": "a penalty with a proximal map",
    "slopes": "a convex penalty that adds up over the features",
    "quadratic": "a quadratic penalty",
    "ball": "a ball that the weights must stay in",
    "concave": "a concave penalty",
    "rows": "documents that can be read one query at a time",
}
NOT_FINITE = (
    "the objective is {value} after {n_iter} iterations, which is not a finite number; scale the features "
    "down or normalise them"
)


@dataclass(frozen=True, eq=False)
class Problem:
    """min_w f(Xw) + penalty(w), where features that are not ``usable`` keep the weight 0.

    Solvers that take proximal steps work in variables x, which here are the weights themselves.
    """

    objective: Objective
    penalty: Any  # a Penalty; what more a solver needs of it, it says in ``needs``
    usable: BoolArray | None = None

    @property
    def offers(self) -> frozenset[str]:
        """What solvers may ask for."""
        return self.objective.offers | frozenset(self.penalty.offers)

    @property
    def n_features(self) -> int:
        return self.objective.n_features

    def start(self, given: FloatArray | Point | None) -> Point:
        """The point to begin with: given weights, a point known already, or w = 0."""
        if given is None:
            return self.objective.at_zero
        if isinstance(given, Point):
            return given
        point = self.objective.evaluate(given if self.usable is None else np.where(self.usable, given, 0.0))
        if not np.isfinite(point.value):
            raise ValueError(NOT_FINITE.format(value=point.value, n_iter=0))
        return point

    def gradient(self, point: Point) -> FloatArray:
        """Gradient of f; 0 for features that are not usable, where it is so up to rounding."""
        g = self.objective.gradient(point)
        return g if self.usable is None else np.where(self.usable, g, 0.0)

    def gradient_where_large(self, point: Point, least: FloatArray) -> FloatArray:
        """The gradient; of an entry that is certainly smaller than ``least`` perhaps a bound of its size."""
        g = self.objective.gradient_where_large(point, least)
        return g if self.usable is None else np.where(self.usable, g, 0.0)

    def value(self, point: Point) -> float:
        """f + penalty."""
        return point.value + float(self.penalty.value(point.w))

    def gap(self, point: Point, g: FloatArray | None = None) -> float:
        """A proven bound of the value less its minimum; NaN if there is none."""
        return float(self.penalty.gap(self.objective, point, self.gradient(point) if g is None else g))

    def evaluate(self, x: FloatArray) -> Any:
        """The point at the variables x."""
        return self.objective.evaluate(x)

    def variables(self, point: Any) -> FloatArray:
        """The variables x of a point."""
        return np.asarray(point.w)

    def prox(self, x: FloatArray, step: float) -> FloatArray:
        """The proximal map of the penalty in the variables x."""
        return np.asarray(self.penalty.prox(x, step))

    def finish(self, point: Any) -> Any:
        """The point to end with: another one of the same weights, if that has a lower value."""
        return point


@dataclass
class Trace:
    """One entry per iteration, the start included: objective, gap, nonzero weights, seconds so far."""

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


@dataclass(frozen=True)
class Result:
    """Weights, the objective there, the proof of how near it is (``gap``), and how it went.

    ``point`` is what is known of the loss there, a warm start for a problem nearby.
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
    """Gap as a share of the objective."""
    return gap / objective if objective > 0 else gap


class Iterate(NamedTuple):
    """What a solver tells of one iteration."""

    w: FloatArray
    objective: float
    gap: float
    point: Any


class Loop:
    """The one loop of all solvers: trace, callback, stopping, the guard against values that are not finite.

    A solver tells it each iterate, the start first, and stops when :meth:`ends` says so. The last iterate is
    finished as the problem says, and its gap computed if the solver did not.
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
        self._kept: Iterate | None = None

    @property
    def n_iter(self) -> int:
        return len(self.trace) - 1

    def ends(
        self, w: FloatArray, objective: float, gap: float, distance: float | None = None, point: Any = None
    ) -> bool:
        """Take in an iterate; whether it is the last one.

        ``distance`` is what the solver's tolerance bounds, by default the gap as a share of the objective.
        """
        if not np.isfinite(objective):
            raise ValueError(NOT_FINITE.format(value=objective, n_iter=len(self.trace)))
        self.converged = bool((relative(gap, objective) if distance is None else distance) <= self._tol)
        last = self.converged or len(self.trace) >= self._max_iter
        here = Iterate(w, objective, gap, point)
        here = self._finished(here) if last and not self._keep_best else here
        self.trace.record(here.objective, here.gap, here.w)
        if self._callback is not None:
            self._callback(self.n_iter, here.w, here.objective, here.gap)
        if self._kept is None or not self._keep_best or here.objective < self._kept.objective:
            self._kept = here
        return last

    def result(self) -> Result:
        """The last iterate, or the best one if the solver says so."""
        if self._kept is None:
            raise ValueError("the solver gave no iterate")
        if np.isnan(self._kept.gap):  # the solver ended by itself
            self._kept = self._finished(self._kept)
            self.trace.gap[-1] = self._kept.gap
        w, objective, gap, point = self._kept
        return Result(w, objective, gap, self.n_iter, self.converged, self.trace, point)

    def _finished(self, last: Iterate) -> Iterate:
        final = self._problem.finish(last.point)
        if final is last.point and not np.isnan(last.gap):
            return last
        return Iterate(final.w, self._problem.value(final), self._problem.gap(final), final)


@dataclass(frozen=True)
class Solver(ABC):
    """Minimises a problem to a distance of ``tol`` from the optimum, or for ``max_iter`` iterations.

    ``needs`` names what the problem must offer; ``keep_best`` tells that iterates do not descend steadily,
    ``stops_early`` that an end before the optimum is part of the method.
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
        """Minimise the problem, from given weights, a point known already, or 0."""
        self.check(problem)
        loop = Loop(problem, self.tol, self.max_iter, callback, self.keep_best)
        with single_threaded_blas():
            self.run(problem, start, loop)
            return loop.result()

    def check(self, problem: Problem) -> None:
        """Refuse a problem that lacks what the solver needs."""
        lacking = sorted(self.needs - problem.offers)
        if lacking:
            raise ParameterError(
                "solver",
                self.name,
                f"needs {' and '.join(CAPABILITIES[one] for one in lacking)}; the problem has the loss "
                f"{problem.objective.loss.name} and the penalty {problem.penalty.name}",
            )

    @abstractmethod
    def run(self, problem: Problem, start: FloatArray | Point | None, loop: Loop) -> None:
        """Iterate until ``loop.ends``, or until rounding leaves nothing to gain."""


def warn_of_tolerance(words: str) -> None:
    """Say that a tolerance was not met, in the category that scikit-learn's users know."""
    from sklearn.exceptions import ConvergenceWarning

    warn_caller(words, ConvergenceWarning)


EXACT = 1e-10  # share of the initial slope at which a slope counts as zero
NEAR = 1e-3  # change of a step, as a share of it, that is probably the last
MAX_EVALUATIONS = 50
SUFFICIENT = 1e-4  # share of the decrease promised that a step must reach
ROUNDING = 1e-15  # relative changes of the objective below this are rounding noise
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


MANY_DOCUMENTS = 50_000  # documents from which a sample goes first, and about as many it has at most
SAMPLE_EVERY = 8  # the least number of queries of which it takes one
SAMPLE_GAP = 1e-3  # relative gap of its minimum


def minimum_of_sample(problem: Problem, solver: Solver) -> FloatArray | None:
    """What the solver finds for every eighth query or fewer; None if the data are not large.

    Also None where these hold most documents, as a query that is all there is: they would save no time.
    """
    n_docs = problem.objective.loss.queries.n_rows
    sample = (
        problem.objective.sample(max(SAMPLE_EVERY, n_docs // MANY_DOCUMENTS))
        if n_docs >= MANY_DOCUMENTS
        else None
    )
    if sample is None or 2 * sample.loss.queries.n_rows > n_docs:
        return None
    return replace(solver, tol=SAMPLE_GAP).solve(Problem(sample, problem.penalty, problem.usable)).w
