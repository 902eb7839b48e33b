"""The proximal Newton solver against independent solvers, its certificate against explicit pairs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.svm import LinearSVC

from ranksieve.losses import SquaredHinge
from ranksieve.objective import LocalObjective
from ranksieve.penalties import L1, ElasticNet, Ridge
from ranksieve.solvers import Problem, ProxNewton
from ranksieve.solvers import prox_newton as module
from tests.conftest import random_dataset
from tests.pairs import explicit_pairs, l1_gap
from tests.refusals import refused_parameter
from tests.solving import prox_newton


def objective_of(data):
    return LocalObjective(data.X, SquaredHinge().bind(data.y, data.queries))


def reference(data, penalty):
    """L-BFGS-B on the split w = u − v, u, v ≥ 0, over explicit pairs."""
    pairs = explicit_pairs(data.y, data.qid)
    K = data.X[pairs[:, 0]] - data.X[pairs[:, 1]]
    slopes, d = penalty.slopes(data.n_features), data.n_features

    def F(uv):
        w = uv[:d] - uv[d:]
        xi = np.maximum(0, 1 - K @ w)
        g = -2 * K.T @ xi / len(K) + slopes.ridge * w
        value = xi @ xi / len(K) + slopes.up @ uv[:d] + slopes.down @ uv[d:] + slopes.ridge * w @ w / 2
        return value, np.concatenate([g + slopes.up, -g + slopes.down])

    options = {"maxiter": 20000, "maxfun": 10**6, "ftol": 1e-16, "gtol": 1e-10}
    best = minimize(
        F, np.zeros(2 * d), jac=True, bounds=[(0, None)] * 2 * d, method="L-BFGS-B", options=options
    )
    return best.fun


PENALTIES = [
    L1(0.05),
    L1(0.01, weights=np.array([1.0, 0.2, 3.0, 1.0, 2.0])),
    ElasticNet(0.05, l1_ratio=0.3),
    Ridge(0.02),
]


@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda p: p.name)
@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_lbfgs_on_explicit_pairs(penalty, seed):
    data = random_dataset(seed=seed, n_queries=10)
    result = prox_newton(objective_of(data), penalty, tol=1e-10)
    assert result.converged
    assert result.relative_gap <= 1e-10
    assert result.objective == pytest.approx(reference(data, penalty), rel=1e-7)


def test_agrees_with_linear_svc_on_explicit_pairs():
    data = random_dataset(seed=11, n_queries=12)
    pairs = explicit_pairs(data.y, data.qid)
    K = data.X[pairs[:, 0]] - data.X[pairs[:, 1]]
    alpha = 0.03
    signs = np.where(np.arange(len(K)) % 2, 1.0, -1.0)  # LinearSVC needs two classes
    svc = LinearSVC(
        penalty="l1", loss="squared_hinge", dual=False, fit_intercept=False, C=1 / (alpha * len(K)),
        tol=1e-10, max_iter=10**6, random_state=0,
    ).fit(K * signs[:, None], signs)  # fmt: skip
    result = prox_newton(objective_of(data), L1(alpha), tol=1e-12)
    np.testing.assert_allclose(result.w, svc.coef_[0], atol=1e-5)


@pytest.mark.parametrize("alpha", [0.2, 0.05, 0.005])
@pytest.mark.parametrize("tol", [1e-2, 1e-8])
def test_reported_gap_is_the_gap_on_explicit_pairs(alpha, tol):
    data = random_dataset(seed=2, n_queries=8)
    weights = np.array([1.0, 2.0, 0.5, 1.0, 1.0])
    result = prox_newton(objective_of(data), L1(alpha, weights), tol=tol, max_iter=1 if tol > 1e-3 else 100)
    primal, gap = l1_gap(data.X, data.y, data.qid, result.w, alpha * weights)
    assert result.objective == pytest.approx(primal, abs=1e-9)
    assert result.gap == pytest.approx(gap, abs=1e-9)


def test_the_objective_never_increases_and_the_gap_bounds_the_distance():
    data = random_dataset(seed=3, n_queries=30, n_features=8)
    objective = objective_of(data)
    exact = prox_newton(objective, L1(0.01), tol=1e-13).objective
    trace = prox_newton(objective, L1(0.01), tol=1e-10).trace
    assert np.all(np.diff(trace.objective) <= 1e-15 * trace.objective[0])
    for primal, gap in zip(trace.objective, trace.gap, strict=True):
        assert primal - gap <= exact + 1e-12


def test_infinite_weight_forbids_a_feature():
    data = random_dataset(seed=4, n_queries=20)
    free = prox_newton(objective_of(data), L1(0.01))
    forbidden = int(np.argmax(np.abs(free.w)))
    weights = np.ones(5)
    weights[forbidden] = np.inf
    result = prox_newton(objective_of(data), L1(0.01, weights))
    assert result.w[forbidden] == 0
    assert result.converged
    reduced = data.replace_features(np.delete(data.X, forbidden, axis=1), list("abcd"))
    assert result.objective == pytest.approx(prox_newton(objective_of(reduced), L1(0.01)).objective, rel=1e-6)


def test_collinear_and_constant_features():
    data = random_dataset(seed=5, n_queries=20)
    X = np.column_stack(
        [data.X, data.X[:, 0], -2 * data.X[:, 1], np.ones(data.n_docs), np.zeros(data.n_docs)]
    )
    result = prox_newton(objective_of(data.replace_features(X, list("abcdefghi"))), L1(0.001), tol=1e-9)
    assert result.converged
    assert result.w[7] == 0
    assert result.w[8] == 0


def test_separable_data_converge():
    X = np.linspace(0, 1, 20)[:, None] * np.array([[5.0, -3.0]])
    data = random_dataset()
    data = type(data)(X, np.arange(20) // 5, np.zeros(20))
    result = prox_newton(objective_of(data), L1(1e-5), tol=1e-9)  # rounding is about 1e-10
    assert result.converged


def test_callback_is_called_after_every_iteration(small):
    calls = []
    result = prox_newton(objective_of(small), L1(0.01), callback=lambda *step: calls.append(step))
    assert [step[0] for step in calls] == list(range(result.n_iter + 1))
    assert calls[-1][3] == result.gap


def test_max_iter_is_respected(small):
    result = prox_newton(objective_of(small), L1(0.001), tol=1e-14, max_iter=1)
    assert result.n_iter == 1
    assert not result.converged


@pytest.mark.parametrize(
    "arguments",
    [
        {"l1_ratio": -0.1},
        {"weights": np.array([1.0, -1.0])},
        {"weights": np.array([1.0, np.nan])},
    ],
)
def test_bad_penalties(arguments):
    with refused_parameter(*next(iter(arguments.items()))):
        ElasticNet(**arguments)


def test_weights_of_another_width(small):
    with refused_parameter("weights"):
        prox_newton(objective_of(small), L1(0.1, np.ones(2)))


def test_starts_from_a_sample_and_from_zero_reach_the_same_optimum(monkeypatch):
    data = random_dataset(seed=6, n_queries=60)
    expected = prox_newton(objective_of(data), L1(0.01), tol=1e-10)
    monkeypatch.setattr("ranksieve.solvers.base.SAMPLE_MIN_DOCUMENTS", data.n_docs)
    result = prox_newton(objective_of(data), L1(0.01), tol=1e-10)
    assert result.converged
    assert result.trace.objective[0] < expected.trace.objective[0]
    np.testing.assert_allclose(result.w, expected.w, atol=1e-6)


# --- Step by step ------------------------------------------------------------------------------------------


@pytest.fixture
def problem():
    return Problem(objective_of(random_dataset(seed=0, n_queries=10)), L1(0.02))


@pytest.mark.parametrize(
    ("falls_by", "steps"),
    [(0.0, module.MAX_STALLED_STEPS), (1e-18, module.MAX_STALLED_STEPS), (1e-14, 20)],  # relative decrease
)
def test_stalled_steps_end_the_iteration(falls_by, steps, problem, monkeypatch):
    primal, steps_taken = [1e-3], []

    def measured(*_):
        primal[0] *= 1.0 - falls_by
        return primal[0], np.inf

    monkeypatch.setattr(module, "duality_gap", measured)
    monkeypatch.setattr(module, "_step", lambda problem, slopes, point, *_: steps_taken.append(1) or point)
    ProxNewton(1e-6, 20).solve(problem)
    assert len(steps_taken) == steps


def test_the_iteration_begins_at_the_start(problem, monkeypatch):
    start, points = np.linspace(-1.0, 1.0, problem.n_features), []
    monkeypatch.setattr(module, "_step", lambda problem, slopes, point, *_: points.append(point.w))
    ProxNewton(1e-12).solve(problem, start)
    np.testing.assert_array_equal(points, [start])


def test_only_gradient_entries_near_the_slopes_are_computed(monkeypatch):
    signs = np.array([1.0, 0.0, 0.0, -1.0, 0.0])
    problem = Problem(objective_of(random_dataset(seed=0, n_queries=10)), L1(0.5, signs=signs))
    thresholds, large = [], Problem.gradient_where_large
    monkeypatch.setattr(
        Problem,
        "gradient_where_large",
        lambda *arguments: thresholds.append(arguments[2]) or large(*arguments),
    )
    ProxNewton(1e-6).solve(problem)
    np.testing.assert_allclose(thresholds[0], np.full(5, 0.8 * 0.5))


def test_columns_near_the_working_set_are_cached(problem, monkeypatch):
    objective, cached = problem.objective, []
    monkeypatch.setattr(module, "working_set_limit", lambda objective: 1)
    monkeypatch.setattr(objective.features, "keep", cached.append)
    monkeypatch.setattr(objective.features, "keeps", lambda columns: bool(cached))
    ProxNewton(1e-10).solve(problem)
    slopes, g = problem.penalty.slopes(problem.n_features), objective.gradient(objective.at_zero)
    wide = module.working_set(slopes, np.zeros(problem.n_features), g, module.PREPARE_SHARE, 2)
    assert len(wide) == 2
    assert len(cached) == 1
    np.testing.assert_array_equal(cached[0], wide)


@pytest.mark.parametrize(("rise", "expected"), [(0.0, False), (1e-14, False), (-1e-6, True)])
def test_no_step_without_predicted_decrease(rise, expected, problem, monkeypatch):
    """``rise``: predicted change of the objective 0.01 at the model's minimum."""
    objective, slopes = problem.objective, problem.penalty.slopes(problem.n_features)
    point = objective.at_zero
    g = objective.gradient(point)
    j = int(np.argmax(np.abs(g)))
    columns = module.working_set(slopes, point.w, g, module.JOIN_SHARE, 100)
    weight = rise * np.sign(g[j]) / (abs(g[j]) + 0.02 * np.sign(rise))
    monkeypatch.setattr(module, "model_minimum", lambda *_: np.where(columns == j, weight, 0.0))
    monkeypatch.setattr(module, "first_decrease", lambda *_: "a step")
    assert module._step(problem, slopes, point, g, 0.01) == ("a step" if expected else None)


def test_tolerance_of_the_model_minimum(problem, monkeypatch):
    tols, solve = [], module.minimise_quadratic
    monkeypatch.setattr(
        module, "minimise_quadratic", lambda *arguments: tols.append(arguments[6]) or solve(*arguments)
    )
    ProxNewton(1e-6).solve(problem)
    objective, slopes = problem.objective, problem.penalty.slopes(problem.n_features)
    g = objective.gradient(objective.at_zero)
    violation = slopes.violation(np.zeros(problem.n_features), g)
    assert tols[0] == 1e-3 * violation.max()
