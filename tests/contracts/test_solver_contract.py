"""Every solver on every supported problem: the same optimum, a valid gap, the same trace and callback."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from ranksieve._parallel import use_threads
from ranksieve.baselines.solvers import CuttingPlane
from ranksieve.losses import ScoreValue
from ranksieve.objective import make_objective
from ranksieve.penalties import L1, ElasticNet, L1Ball, Log, Ridge
from ranksieve.solvers import Fista, Ftrl, Problem, Reweighted
from ranksieve.solvers.base import CAPABILITIES
from ranksieve.solvers.prox_newton import MIN_L1_WEIGHT
from tests.conftest import random_dataset
from tests.rankers import LOSSES, SOLVERS
from tests.refusals import refused_parameter

DATA = random_dataset(seed=4, n_queries=220, n_features=5, longest=20)  # in more than one block of rows
WEIGHTS, SIGNS = np.array([1.0, 0.5, 2.0, 1.0, np.inf]), np.array([1, -1, 0, -1, 0])
PROBLEMS = {
    "l1": ("squared_hinge", L1(0.05)),
    "weighted_l1": ("squared_hinge", L1(0.05, WEIGHTS, SIGNS)),
    "elastic_net": ("squared_hinge", ElasticNet(0.05)),
    "ridge": ("squared_hinge", Ridge(0.1)),
    "ball": ("squared_hinge", L1Ball(0.8)),
    "hinge": ("hinge", Ridge(0.1)),
    "average_precision": ("average_precision", Ridge(0.1)),
    "listnet": ("listnet", Ridge(0.05)),
    "listmle": ("cost_sensitive_listmle", L1(0.3)),
    "concave": ("squared_hinge", Log(0.02)),
}
PROXIMAL = {"proximal_gradient", "fista"}
ANY_SLOPES = {*PROXIMAL, "prox_newton", "subgradient", "truncated_gradient"}
ANY_RIDGE = {*ANY_SLOPES, "cutting_plane", "dense_newton", "lbfgs"}
TAKES = {  # the solvers that support each problem
    "l1": {*ANY_SLOPES, "ftrl"},
    "weighted_l1": ANY_SLOPES,
    "elastic_net": {*ANY_SLOPES, "ftrl"},
    "ridge": {*ANY_RIDGE, "ftrl", "truncated_newton"},
    "ball": {*PROXIMAL, "frank_wolfe"},
    "hinge": {"cutting_plane", "subgradient"},
    "average_precision": {"cutting_plane", "subgradient"},
    "listnet": ANY_RIDGE,
    "listmle": ANY_SLOPES,
    "concave": {"reweighted"},
}
OPTIONS = {
    "frank_wolfe": [
        {"variant": "classic"},
        {"variant": "away", "tol": 1e-6},
        {"variant": "pairwise", "tol": 1e-6},
    ],
    "proximal_gradient": [{}, {"stop": "change", "tol": 1e-10}, {"stop": "mapping", "tol": 1e-6}],
    "fista": [{}, {"restart": False}],
    "cutting_plane": [{"tol": 1e-6}],
    "truncated_gradient": [{"tol": 1e-6}],
    "lbfgs": [{"tol": 1e-8}],
    "subgradient": [{"max_iter": 100}],
    "reweighted": [{}, {"inner": Fista(mapping_tol=1e-7)}],
}
NO_PROMISE = {"subgradient", "ftrl"}  # approximate solutions with a valid gap
CASES = [
    pytest.param(name, solver, number, id=f"{name}-{solver}-{number}" if number else f"{name}-{solver}")
    for name, solvers in TAKES.items()
    for solver in sorted(solvers)
    for number in range(len(OPTIONS.get(solver, [{}])))
]
every_case = pytest.mark.parametrize(("name", "kind", "number"), CASES)
no_overflow_warnings = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@cache
def problem_of(name):
    loss, penalty = PROBLEMS[name]
    return Problem(make_objective(DATA, LOSSES[loss]()), penalty)


def solver_of(kind, number, **options):
    return SOLVERS[kind](**{**OPTIONS.get(kind, [{}])[number], **options})


def run(solver, problem, start=None):
    """The result and the arguments of the callback."""
    calls = []
    result = solver.solve(problem, start, lambda n, w, *rest: calls.append((n, w.copy(), *rest)))
    return result, calls


@cache
def solved(name, kind, number):
    return run(solver_of(kind, number), problem_of(name))


@cache
def best_of(name):
    """The result with the lowest objective of all solvers."""
    cases = [case.values for case in CASES if case.values[0] == name]
    return min((solved(*case)[0] for case in cases), key=lambda result: result.objective)


def test_solvers_declare_the_problems_in_the_table():
    for name in PROBLEMS:
        takes = set()
        for kind in SOLVERS:
            try:
                solver_of(kind, 0).check(problem_of(name))
                takes.add(kind)
            except ValueError:
                pass
        assert takes == TAKES[name], name
    assert set().union(*TAKES.values()) == set(SOLVERS)
    assert set().union(*(solver.needs for solver in SOLVERS.values())) == set(CAPABILITIES)
    assert all(kind == solver.name for kind, solver in SOLVERS.items())


@every_case
def test_all_solvers_reach_the_same_optimum(name, kind, number):
    result, _ = solved(name, kind, number)
    best, problem, tol = best_of(name), problem_of(name), solver_of(kind, number).tol
    assert result.objective == pytest.approx(problem.value(problem.objective.evaluate(result.w)), rel=1e-12)
    above = result.objective - best.objective
    if kind in NO_PROMISE:
        assert above <= 0.01 * best.objective
    else:
        assert result.converged
        assert above <= (1e-3 if tol == 1e-3 else 2e-6 * best.objective)


@every_case
def test_the_gap_bounds_the_distance_to_the_optimum(name, kind, number):
    """For a concave penalty: the gap of the tangent weighted ℓ1 problem, which shows that w is stationary."""
    result, _ = solved(name, kind, number)
    least, rounding = best_of(name).objective, 1e-13
    assert np.isfinite(result.gap)
    if kind == "reweighted":
        problem = problem_of(name)
        weights = np.maximum(problem.penalty.weights(result.w), MIN_L1_WEIGHT)
        touching = replace(problem, penalty=L1(problem.penalty.alpha, weights))
        assert touching.gap(touching.start(result.w)) <= 1e-3 * result.objective
        return
    assert result.objective - least <= result.gap + rounding
    for objective, gap in zip(result.trace.objective, result.trace.gap, strict=True):
        assert np.isnan(gap) or objective - least <= gap + rounding


def gap_share(problem, result):
    return result.relative_gap


def gap(problem, result):
    return result.gap


def last_change(problem, result):
    before, after = result.trace.objective[-2:]
    return abs(after - before) / abs(before)


def largest_slope(problem, result):
    """Largest slope of the objective relative to that of the loss at w = 0."""
    first = problem.gradient(problem.objective.at_zero)
    return np.abs(_total(problem, result)).max() / np.abs(first).max()


def promise_of_newton(problem, result):
    """Expected decrease of the next Newton step relative to the objective."""
    n, point = problem.n_features, problem.objective.evaluate(result.w)
    hessian = problem.objective.hessian(point, np.arange(n)) + problem.penalty.matrix(n)
    total = _total(problem, result)
    return total @ np.linalg.solve(hessian, total) / result.objective


def _total(problem, result):
    return problem.gradient(problem.objective.evaluate(result.w)) + problem.penalty.times(result.w)


BOUNDED = {  # the quantity that a solver's tolerance bounds, if not the relative gap
    "frank_wolfe": gap,
    "cutting_plane": gap,
    "lbfgs": largest_slope,
    "dense_newton": promise_of_newton,
    "reweighted": last_change,
}


def bounded_by(solver, kind):
    """(the quantity that the tolerance bounds, the tolerance)."""
    rule = getattr(solver, "stop", "gap")
    if rule == "mapping":  # of the last step, which is not part of the result
        return gap_share, 100 * solver.tol
    return (last_change if rule == "change" else BOUNDED.get(kind, gap_share)), solver.tol


@every_case
def test_converged_implies_the_tolerance(name, kind, number):
    bounded, tol = bounded_by(solver_of(kind, number), kind)
    early, _ = run(solver_of(kind, number, max_iter=1), problem_of(name))
    assert early.n_iter <= 1
    for result in (early, solved(name, kind, number)[0]):
        assert not result.converged or bounded(problem_of(name), result) <= tol * (1 + 1e-6) + 1e-15


@pytest.mark.parametrize("kind", ["proximal_gradient", "fista", "prox_newton"])
def test_a_tolerance_below_rounding_ends_early_without_convergence(kind):
    result = solver_of(kind, 0, tol=1e-20).solve(problem_of("l1"))
    assert not result.converged
    assert 0 < result.gap < 1e-12
    assert result.n_iter < 100


@every_case
def test_trace_and_callback_report_every_iteration_and_the_start(name, kind, number):
    result, calls = solved(name, kind, number)
    trace, solver = result.trace, solver_of(kind, number)
    assert [n for n, *_ in calls] == list(range(result.n_iter + 1))
    assert {len(values) for values in trace.to_dict().values()} == {result.n_iter + 1}
    assert len(trace) == result.n_iter + 1
    assert trace.objective == [objective for *_, objective, _ in calls]
    np.testing.assert_array_equal(trace.gap, [gap for *_, gap in calls])
    assert trace.n_nonzero == [np.count_nonzero(w) for _, w, *_ in calls]
    assert np.all(np.diff(trace.seconds) >= 0)
    assert not calls[0][1].any()
    at = int(np.argmin(trace.objective)) if solver.keep_best else -1
    assert (result.objective, result.gap) == (trace.objective[at], trace.gap[at])
    np.testing.assert_array_equal(result.w, calls[at][1])
    assert result.n_iter <= solver.max_iter


@every_case
def test_a_start_at_the_optimum_stops_at_once(name, kind, number):
    solver, (cold, _) = solver_of(kind, number), solved(name, kind, number)
    if not cold.converged:
        pytest.skip("does not converge within max_iter")
    warm, calls = run(solver, problem_of(name), best_of(name).w)
    np.testing.assert_allclose(calls[0][1], best_of(name).w, atol=1e-12)
    assert warm.converged
    assert warm.objective <= best_of(name).objective * (1 + 2e-6)
    if kind == "cutting_plane":  # its bound needs planes, and a new solver has none
        assert warm.n_iter < cold.n_iter
    else:  # some stopping rules need one step
        steps = kind == "reweighted" or getattr(solver, "stop", "gap") != "gap"
        assert warm.n_iter == int(steps)


@every_case
def test_results_are_bit_identical_for_repeated_fits_and_any_number_of_threads(
    name, kind, number, small_blocks
):
    loss, penalty = PROBLEMS[name]
    problem = Problem(make_objective(DATA, LOSSES[loss]()), penalty)
    first, _ = run(solver_of(kind, number), problem)
    for threads, same in ((1, problem), (2, Problem(make_objective(DATA, LOSSES[loss]()), penalty))):
        with use_threads(threads):
            again, _ = run(solver_of(kind, number), same)
        assert again.w.tobytes() == first.w.tobytes()
        assert (again.objective, again.gap, again.n_iter) == (first.objective, first.gap, first.n_iter)
        assert again.trace.objective == first.trace.objective
        np.testing.assert_array_equal(again.trace.gap, first.trace.gap)


@pytest.mark.parametrize(
    ("kind", "number"), [(kind, n) for kind in SOLVERS for n in range(len(OPTIONS.get(kind, [{}])))]
)
def test_pickle(kind, number):
    solver = solver_of(kind, number)
    again = pickle.loads(pickle.dumps(solver))
    assert again == solver
    assert type(again) is type(solver)


class Changed:
    """A loss with a replaced ``evaluate``."""

    def __init__(self, loss, evaluate):
        self._loss, self.evaluate = loss, evaluate

    def __getattr__(self, name):
        return getattr(self._loss, name)


def with_evaluate(problem, evaluate):
    objective = copy.copy(problem.objective)
    objective.loss, objective._at_zero = Changed(problem.objective.loss, evaluate), None
    return replace(problem, objective=objective)


NOT_FINITE = r"^the objective is (nan|inf) after \d+ iterations, which is not a finite number; [^.]*$"


@no_overflow_warnings
@every_case
def test_a_start_that_is_not_finite_is_refused(name, kind, number):
    for start in (np.full(5, np.nan), np.full(5, np.inf), np.full(5, 1e308)):
        calls = []
        with refused_parameter("start") if kind == "ftrl" else pytest.raises(ValueError, match=NOT_FINITE):
            solver_of(kind, number).solve(
                problem_of(name), start, lambda *step, calls=calls: calls.append(step)
            )
        assert not calls


def outcome(solver, problem):
    """(result, None) or (None, message)."""
    try:
        return solver.solve(problem), None
    except ValueError as refusal:
        return None, str(refusal)


@no_overflow_warnings
@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name in TAKES for kind in sorted(TAKES[name])])
@pytest.mark.parametrize("good", [0, 4])
def test_an_objective_that_is_not_finite_is_refused(name, kind, good):
    """Not finite from the first evaluation on (an error), or later (may return the last finite point)."""
    loss, evaluations = problem_of(name).objective.loss, []

    def evaluate(s):
        evaluations.append(s)
        if len(evaluations) <= good:
            return loss.evaluate(s)
        return ScoreValue(np.nan, np.zeros(len(s)), np.nan, at_zero.state)

    at_zero = loss.evaluate(np.zeros(DATA.n_docs))
    result, message = outcome(solver_of(kind, 0), with_evaluate(problem_of(name), evaluate))
    if result is None:
        assert "not finite" in message or "not a finite number" in message
        assert ". " not in message
    else:
        assert good
        assert np.isfinite(result.objective)
        assert not result.converged or len(evaluations) <= good


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name in TAKES for kind in SOLVERS if kind not in TAKES[name]]
)
def test_missing_capabilities_are_named_before_the_start(name, kind):
    calls = []

    def evaluate(s):
        raise AssertionError("it has started")

    problem = with_evaluate(problem_of(name), evaluate)
    lacking = solver_of(kind, 0).needs - problem.offers
    with refused_parameter("solver", kind) as info:
        solver_of(kind, 0).solve(problem, None, lambda *step: calls.append(step))
    message = info.value.reason
    assert all(CAPABILITIES[one] in message for one in lacking)
    assert not any(CAPABILITIES[one] in message for one in SOLVERS[kind].needs - lacking)
    if lacking:
        loss, penalty = PROBLEMS[name]
        assert message.endswith(f"; the problem has the loss {loss} and the penalty {penalty.name}")
    assert not calls


@pytest.mark.parametrize(
    ("solver", "loss", "penalty", "name", "value"),
    [
        (Reweighted(), "hinge", Log(), "solver", "prox_newton"),
        (CuttingPlane(), "hinge", Ridge(0.0), "alpha", 0.0),
        (Ftrl(), "squared_hinge", L1(1.0, signs=1), "solver", "ftrl"),
    ],
)
def test_other_unsupported_problems_are_refused(solver, loss, penalty, name, value):
    with refused_parameter(name, value):
        solver.solve(Problem(make_objective(DATA, LOSSES[loss]()), penalty))
