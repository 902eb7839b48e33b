"""ProxRank: plain proximal gradient against proximal Newton."""

from __future__ import annotations

import numpy as np
import pytest

from ranksieve.baselines import ProxRank
from ranksieve.data.dataset import Dataset
from ranksieve.objective import make_objective
from ranksieve.penalties import L1
from tests.conftest import random_dataset
from tests.pairs import l1_gap
from tests.refusals import refused_parameter
from tests.solving import prox_newton


@pytest.fixture(scope="module")
def data():
    return random_dataset(seed=62, n_queries=30, n_features=8, longest=16)


@pytest.mark.parametrize("alpha", [0.2, 0.05, 0.005])
@pytest.mark.parametrize("max_iter", [3, 20_000])
def test_the_optimum_lies_within_the_gap(data, alpha, max_iter):
    fitted = ProxRank(alpha, tol=1e-7, max_iter=max_iter).fit(data)
    best = prox_newton(make_objective(data), L1(alpha), tol=1e-12).objective
    assert fitted.converged_ == (max_iter > 3)
    assert fitted.objective_ - best <= fitted.gap_ * (1 + 1e-9) + 1e-12
    primal, gap = l1_gap(data.X, data.y, data.qid, fitted.coef_, np.full(8, alpha))
    assert fitted.objective_ == pytest.approx(primal, rel=1e-10)
    assert fitted.gap_ == pytest.approx(gap, rel=1e-6, abs=1e-12)
    if fitted.converged_:
        assert fitted.gap_ <= 1e-7 * fitted.objective_
        assert fitted.objective_ == pytest.approx(best, rel=1e-7)


def test_every_iteration_descends(data):
    objectives = ProxRank(0.01, max_iter=300).fit(data).trace_.objective
    assert len(objectives) > 5
    assert np.all(np.diff(objectives) <= 1e-14)
    assert objectives[-1] < 0.9 * objectives[0]


def test_constant_features_get_no_weight_even_without_penalty(data):
    per_query = np.random.default_rng(0).normal(size=(data.n_queries, 1))[data.qid]
    fitted = ProxRank(0.0, max_iter=50).fit(Dataset(np.hstack([per_query, data.X]), data.y, data.qid))
    assert list(fitted.support_) == list(range(1, 9))
    assert fitted.gap_ == pytest.approx(fitted.objective_)


def test_no_feature_varies():
    X = np.repeat(np.random.default_rng(0).normal(size=(4, 3)), 5, axis=0)
    fitted = ProxRank().fit(Dataset(X, np.tile([0.0, 1, 2, 0, 1], 4), np.repeat(range(4), 5)))
    assert not fitted.coef_.any()
    assert fitted.converged_


def test_query_weights_callback_and_warm_start(data):
    calls = []
    weight = np.linspace(0.2, 2, data.n_queries)
    ranker = ProxRank(0.05, warm_start=True)
    ranker.fit(data, query_weight=weight, callback=lambda n, w, objective, gap: calls.append((n, gap)))
    assert calls == list(enumerate(ranker.trace_.gap))
    best = prox_newton(make_objective(data, query_weight=weight), L1(0.05), tol=1e-10)
    assert ranker.objective_ == pytest.approx(best.objective, rel=1e-4)
    cold = ranker.n_iter_
    assert ranker.fit(data, query_weight=weight).n_iter_ == 0 < cold


@pytest.mark.parametrize(
    "parameters",
    [
        {"alpha": np.inf},
        {"tol": -1.0},
        {"max_iter": 1.5},
    ],
)
def test_bad_parameters(data, parameters):
    with refused_parameter(*next(iter(parameters.items()))):
        ProxRank(**parameters).fit(data)
