"""Truncated gradient and TGRank against a literal implementation and proximal Newton."""

from __future__ import annotations

import numpy as np
import pytest

from ranksieve.baselines import TGRank
from ranksieve.baselines.modified_huber import ModifiedHuber
from ranksieve.baselines.solvers import curvature_at_zero
from ranksieve.data.dataset import Dataset
from ranksieve.objective import LocalObjective, make_objective
from ranksieve.penalties import L1
from tests.conftest import random_dataset
from tests.pairs import explicit_pairs, l1_gap
from tests.refusals import refused_parameter
from tests.solving import prox_newton, truncated_gradient


@pytest.fixture(scope="module")
def data():
    return random_dataset(seed=61, n_queries=30, n_features=8, longest=16)


@pytest.fixture(scope="module")
def optimum(data):
    return {a: prox_newton(make_objective(data), L1(a), tol=1e-12).objective for a in (0.1, 0.02)}


def literal(data, alpha, rate, decay, every, n_steps):
    """Langford, Li and Zhang's iteration on explicit pairs, with θ = ∞."""
    pairs = explicit_pairs(data.y, data.qid)
    K = data.X[pairs[:, 0]] - data.X[pairs[:, 1]]
    w, owed = np.zeros(data.n_features), 0.0
    for t in range(n_steps):
        eta = rate / np.sqrt(1 + decay * t)
        w = w + eta * 2 * K.T @ np.maximum(0, 1 - K @ w) / len(K)
        owed += eta * alpha
        if (t + 1) % every == 0 or t + 1 == n_steps:
            for j in range(len(w)):
                w[j] = max(0.0, w[j] - owed) if w[j] >= 0 else min(0.0, w[j] + owed)
            owed = 0.0
    return w


@pytest.mark.parametrize(
    ("decay", "every", "n_steps"), [(0.0, 1, 7), (0.0, 5, 20), (0.3, 4, 18), (0.1, 50, 9)]
)
def test_iterates_equal_the_definition(data, decay, every, n_steps):
    objective = make_objective(data)
    step = 0.02 * curvature_at_zero(objective)
    options = {"step": step, "decay": decay, "tol": 1e-12, "max_iter": n_steps}
    result = truncated_gradient(objective, L1(0.05), every=every, **options)
    w = literal(data, 0.05, 0.02, decay, every, n_steps)
    np.testing.assert_allclose(result.w, w, atol=1e-12)
    assert np.array_equal(result.w == 0, w == 0)
    assert result.n_iter == -(-n_steps // every)
    assert len(result.trace) == result.n_iter + 1
    primal, gap = l1_gap(data.X, data.y, data.qid, w, np.full(8, 0.05))
    assert result.objective == pytest.approx(primal, rel=1e-10)
    assert result.gap == pytest.approx(gap, rel=1e-8)
    fitted = TGRank(0.05, truncate_every=every, **options).fit(data)
    np.testing.assert_array_equal(fitted.coef_, result.w)
    assert fitted.n_iter_ == n_steps
    assert len(fitted.trace_) == len(result.trace)


def test_curvature_at_zero_is_the_largest_eigenvalue(data):
    for objective in (
        make_objective(data),
        LocalObjective(data.X, ModifiedHuber().bind(data.y, data.queries)),
        LocalObjective(1e3 * data.X, ModifiedHuber().bind(data.y, data.queries)),
    ):
        hessian = objective.hessian(objective.at_zero, np.arange(8))
        largest = np.linalg.eigvalsh(hessian)[-1]
        assert 0.95 * largest <= curvature_at_zero(objective) <= largest * (1 + 1e-9)


@pytest.mark.parametrize("alpha", [0.1, 0.02])
def test_truncation_after_each_step_reaches_the_optimum(data, optimum, alpha):
    fitted = TGRank(alpha, truncate_every=1, tol=1e-7, max_iter=20_000).fit(data)
    assert fitted.converged_
    assert fitted.gap_ <= 1e-7 * fitted.objective_
    assert fitted.objective_ == pytest.approx(optimum[alpha], rel=1e-7)
    assert np.all(np.diff(fitted.trace_.objective) <= 1e-14)


@pytest.mark.parametrize("alpha", [0.1, 0.02])
@pytest.mark.parametrize(
    "parameters", [{}, {"truncate_every": 3}, {"decay": 0.1}, {"step": 0.1}, {"max_iter": 5}]
)
def test_the_gap_bounds_the_distance(data, optimum, alpha, parameters):
    fitted = TGRank(alpha, **parameters).fit(data)
    assert fitted.objective_ - optimum[alpha] <= fitted.gap_ * (1 + 1e-9) + 1e-12
    value = make_objective(data).evaluate(fitted.coef_).value + alpha * np.abs(fitted.coef_).sum()
    assert fitted.objective_ == pytest.approx(value, rel=1e-12)


def test_decreasing_rates_reduce_the_error_of_rare_truncation(data, optimum):
    constant, falling = (
        TGRank(0.1, truncate_every=20, decay=decay, max_iter=5000).fit(data) for decay in (0.0, 10.0)
    )
    assert constant.gap_ > 3 * falling.gap_
    assert falling.objective_ - optimum[0.1] < constant.objective_ - optimum[0.1]


def test_alpha_max_has_the_empty_model(data):
    objective = make_objective(data)
    largest = np.abs(objective.gradient(objective.at_zero)).max()
    assert len(TGRank(1.001 * largest, truncate_every=1).fit(data).support_) == 0
    assert len(TGRank(0.9 * largest, truncate_every=1).fit(data).support_) >= 1


def test_constant_features_get_no_weight_even_without_penalty(data):
    per_query = np.random.default_rng(0).normal(size=(data.n_queries, 1))[data.qid]
    fitted = TGRank(0.0, max_iter=50).fit(Dataset(np.hstack([data.X, per_query]), data.y, data.qid))
    assert list(fitted.support_) == list(range(8))


def test_no_feature_varies():
    X = np.repeat(np.random.default_rng(0).normal(size=(4, 3)), 5, axis=0)
    fitted = TGRank().fit(Dataset(X, np.tile([0.0, 1, 2, 0, 1], 4), np.repeat(range(4), 5)))
    assert not fitted.coef_.any()
    assert fitted.objective_ == pytest.approx(1.0)


def test_query_weights_callback_and_warm_start(data):
    calls = []
    weight = np.linspace(0.2, 2, data.n_queries)
    ranker = TGRank(0.05, truncate_every=1, warm_start=True, max_iter=5000)
    ranker.fit(data, query_weight=weight, callback=lambda n, w, objective, gap: calls.append((n, objective)))
    assert calls == list(enumerate(ranker.trace_.objective))
    best = prox_newton(make_objective(data, query_weight=weight), L1(0.05), tol=1e-10)
    assert ranker.objective_ == pytest.approx(best.objective, rel=1e-4)
    assert ranker.n_iter_ > 2
    assert ranker.fit(data, query_weight=weight).n_iter_ == 0


@pytest.mark.parametrize(
    "parameters",
    [
        {"alpha": -1.0},
        {"step": 0.0},
        {"step": 1.5},
        {"decay": -0.1},
        {"truncate_every": 0},
        {"truncate_every": 2.5},
        {"tol": 0.0},
        {"max_iter": 0},
    ],
)
def test_bad_parameters(data, parameters):
    with refused_parameter(*next(iter(parameters.items()))):
        TGRank(**parameters).fit(data)
