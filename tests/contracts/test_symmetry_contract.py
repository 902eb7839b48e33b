"""Every estimator and selector: invariances, and independence of concurrent fits."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ranksieve.objective import make_objective
from ranksieve.path import sparse_path
from ranksieve.penalties import L1
from ranksieve.solvers import Problem
from tests.conftest import random_dataset
from tests.contracts.test_query_weight_contract import RANKERS, assert_same, ranker
from tests.contracts.test_solver_contract import NO_PROMISE, TAKES
from tests.rankers import SOLVERS

BY_QUERY = {
    "minbatsrank": "learns from one query after another",
    "brtree": "draws queries by their numbers",
}
BY_COLUMN = {
    "lambdamart": "documents of equal score are in the order of a random projection of features",
    "hierarchicalbem": "begins at features drawn by their numbers",
    "hierarchicaliltr": "begins at features drawn by their numbers",
    "bfswrapper": "climbs along one feature after another",
}
BY_VALUE = {
    "fsmrank": "compares features by their values in all queries",
    "fsmsvm": "chooses by FSMRank",
    "fbpcrank": "compares features by their values in all queries",
    "rankboost": "has thresholds for all queries",
    "lambdamart": "has thresholds for all queries",
    "brtree": "has thresholds for all queries",
}
CLOSE = {"rtol": 1e-5, "atol": 1e-5}


@pytest.fixture(scope="module")
def data():
    return random_dataset(seed=24, n_queries=16, n_features=7, longest=16)


@pytest.fixture(scope="module")
def fitted(data):
    """Cached fits by name."""
    fits = {}

    def find(name):
        if name not in fits:
            fits[name] = fit(name, data)
        return fits[name]

    return find


def fit(name, data):
    estimator = ranker(name).set_params(normalise="none")
    if name == "sparseranker":  # folds depend on the order of queries
        valid = random_dataset(seed=25, n_queries=16, n_features=7, longest=16)
        return estimator.set_params(cv=0, families=["l1"]).fit(data, valid=valid)
    return estimator.fit(data)


def without(exceptions):
    return pytest.mark.parametrize("name", [name for name in RANKERS if name not in exceptions])


@without(BY_QUERY)
def test_the_order_of_queries_does_not_matter(name, fitted, data):
    order = np.random.default_rng(0).permutation(data.n_queries)
    assert_same(fit(name, data.in_query_order(order)), fitted(name), data)


@without(BY_COLUMN)
def test_features_in_another_order_give_the_same_scores(name, fitted, data):
    order = np.random.default_rng(1).permutation(data.n_features)
    other = fit(name, data.select_features(order))
    assert list(other.feature_names_in_) == [data.feature_names[j] for j in order]
    np.testing.assert_allclose(other.predict(data), fitted(name).predict(data), **CLOSE)


@without(BY_VALUE)
def test_a_constant_of_each_query_does_not_matter(name, fitted, data):
    constant = np.random.default_rng(2).integers(-3, 4, (data.n_queries, data.n_features))
    other = fit(name, data.replace_features(data.X + constant[data.qid]))
    np.testing.assert_allclose(other.predict(data), fitted(name).predict(data), **CLOSE)


@without({})
def test_concurrent_fits_are_independent(name, fitted, data):
    half = data.select_queries(np.arange(data.n_queries) % 2 == 0)
    with ThreadPoolExecutor(2) as threads:
        other, same = threads.map(lambda one: fit(name, one).predict(data), (half, data))
    assert same.tobytes() == fitted(name).predict(data).tobytes()
    assert other.tobytes() != same.tobytes()


@pytest.mark.parametrize("kind", sorted(TAKES["l1"] - NO_PROMISE))
def test_a_point_of_a_path_is_a_fixed_point_of_every_solver(kind, data):
    path, objective = sparse_path(data, n_alphas=4, tol=1e-9), make_objective(data, "squared_hinge")
    for alpha, w in zip(path.alphas, path.coefs, strict=True):
        result = SOLVERS[kind]().solve(Problem(objective, L1(alpha)), w)
        np.testing.assert_array_equal(result.w, w)
        assert result.converged
        assert result.gap <= 1e-8 * result.objective
