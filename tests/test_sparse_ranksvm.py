"""Sparse RankSVM: convex and concave penalties, two solvers."""

from __future__ import annotations

import numpy as np
import pytest

from ranksieve.objective import make_objective
from ranksieve.path import sparse_path
from ranksieve.rankers import SparseRankSVM
from tests.conftest import random_dataset
from tests.refusals import refused_parameter
from tests.solving import offering


@pytest.fixture(scope="module")
def data():
    return random_dataset(seed=51, n_queries=40, n_features=10, longest=20)


@pytest.mark.parametrize("alpha", [0.1, 0.01, 0.001])
def test_l1_is_a_point_of_the_path(data, alpha):
    fitted = SparseRankSVM("l1", alpha, tol=1e-9).fit(data)
    path = sparse_path(data, alphas=[alpha], tol=1e-9)
    assert fitted.objective_ == pytest.approx(path.objectives[0], rel=1e-8)


@pytest.mark.parametrize("penalty", ["l1", *offering("concave")])
@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_both_solvers_reach_the_same_objective(data, penalty, alpha):
    newton = SparseRankSVM(penalty, alpha, tol=1e-7).fit(data)
    accelerated = SparseRankSVM(penalty, alpha, tol=1e-7, solver="fista").fit(data)
    assert newton.converged_
    assert accelerated.converged_
    assert accelerated.objective_ == pytest.approx(newton.objective_, rel=1e-6)


@pytest.mark.parametrize("penalty", offering("concave"))
@pytest.mark.parametrize("solver", ["path", "fista"])
def test_the_concave_objective_decreases_in_every_round(data, penalty, solver):
    fitted = SparseRankSVM(penalty, 0.01, solver=solver).fit(data)
    objectives = np.array(fitted.trace_.objective[1:])  # the first round, ℓ1, may increase it
    assert len(objectives) >= 2
    assert np.all(np.diff(objectives) <= 1e-12)
    assert fitted.trace_.objective[0] == 1.0
    assert fitted.trace_.gap[0] == np.inf
    assert np.isfinite(fitted.trace_.gap[1:]).all()
    assert fitted.objective_ == fitted.trace_.objective[-1]
    value = make_objective(data).evaluate(fitted.coef_).value + fitted._penalty(make_objective(data)).value(
        fitted.coef_
    )
    assert fitted.objective_ == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("penalty", offering("concave"))
def test_the_result_is_stationary(data, penalty):
    """0 ∈ g + α g′(|w|) ∂|w|: w solves the weighted ℓ1 problem at w."""
    fitted = SparseRankSVM(penalty, 0.01, tol=1e-10, max_rounds=500).fit(data)
    objective = make_objective(data)
    g = objective.gradient(objective.evaluate(fitted.coef_))
    slopes = 0.01 * fitted._penalty(make_objective(data)).weights(fitted.coef_)
    used = fitted.coef_ != 0
    np.testing.assert_allclose(g[used], -slopes[used] * np.sign(fitted.coef_[used]), atol=2e-5)
    assert np.all(np.abs(g[~used]) <= slopes[~used] + 2e-5)


def test_mcp_with_large_gamma_equals_l1(data):
    l1 = SparseRankSVM("l1", 0.01).fit(data)
    mcp = SparseRankSVM("mcp", 0.01, gamma=1e9).fit(data)
    np.testing.assert_allclose(mcp.coef_, l1.coef_, atol=1e-5)


def test_concave_penalties_are_sparser_at_the_same_loss(data):
    l1 = SparseRankSVM("l1", 0.005).fit(data)
    log = SparseRankSVM("log", 0.005).fit(data)
    assert len(log.support_) < len(l1.support_)


def test_weighted_l1(data):
    weights = np.ones(10)
    weights[:5] = np.inf
    assert set(SparseRankSVM("l1", 1e-3, l1_weights=weights).fit(data).support_) <= set(range(5, 10))


def test_warm_start(data):
    fitted = SparseRankSVM("l1", 0.01, warm_start=True).fit(data)
    assert fitted.n_iter_ > 0
    assert fitted.fit(data).n_iter_ == 0


def test_callback_is_called_after_every_round(data):
    calls = []
    fitted = SparseRankSVM("log", 0.01).fit(data, callback=lambda *step: calls.append(step))
    assert [n for n, *_ in calls] == list(range(fitted.n_iter_ + 1))
    assert [objective for *_, objective, _ in calls] == fitted.trace_.objective


def test_a_start_with_a_lower_objective_is_not_returned():
    """The start w = 0 is not a result; the result is the stationary point of the rounds."""
    fitted = SparseRankSVM("log", 0.3).fit(random_dataset(seed=3, n_queries=10, n_features=4))
    assert fitted.trace_.objective[0] == 1.0 < fitted.objective_ == fitted.trace_.objective[-1]
    assert fitted.converged_
    assert fitted.coef_.any()
    assert fitted.gap_ <= 1e-6


@pytest.mark.parametrize("penalty", offering("concave"))
def test_a_warm_start_at_the_result_takes_one_round(data, penalty):
    fitted = SparseRankSVM(penalty, 0.01, tol=1e-8, max_rounds=500, warm_start=True).fit(data)
    before, cold = fitted.objective_, fitted.n_iter_
    assert fitted.fit(data).n_iter_ == 1 < cold
    assert fitted.objective_ <= before
    assert np.isfinite(fitted.gap_)


@pytest.mark.parametrize(
    "parameters",
    [
        {"alpha": -1.0},
        {"penalty": "l2"},
        {"p": 1.5, "penalty": "lp"},
        {"p": 0.0, "penalty": "lp"},
        {"smoothing": 0.0, "penalty": "lp"},
        {"epsilon": 0.0, "penalty": "log"},
        {"gamma": -1.0, "penalty": "mcp"},
        {"a": 2.0, "penalty": "scad"},
        {"solver": "magic"},
        {"l1_weights": [1.0], "penalty": "log"},
    ],
)
def test_bad_parameters(data, parameters):
    with refused_parameter(*next(iter(parameters.items()))):
        SparseRankSVM(**parameters).fit(data)
