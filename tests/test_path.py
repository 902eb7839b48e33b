"""sparse_path: certificates, warm starts, optimality conditions, refusals."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import ranksieve.objective as module
from ranksieve._parallel import use_threads
from ranksieve.data.dataset import Dataset
from ranksieve.objective import make_objective
from ranksieve.path import sparse_path
from ranksieve.penalties import L1
from tests.conftest import random_dataset
from tests.pairs import l1_gap
from tests.refusals import refused_as
from tests.solving import prox_newton


@pytest.fixture
def data():
    return random_dataset(seed=8, n_queries=25, n_features=10)


def test_starts_at_zero_and_every_point_is_certified(data):
    path = sparse_path(data)
    assert len(path) == 100
    assert path.n_nonzero[0] == 0
    assert path.n_nonzero[1] >= 1
    assert path.alphas[-1] == pytest.approx(1e-3 * path.alphas[0])
    assert path.converged.all()
    assert np.all(path.relative_gaps <= 1e-6)


def test_alpha_max_is_the_least_strength_without_features(data):
    edge = sparse_path(data, n_alphas=2).alphas[0]
    path = sparse_path(data, alphas=[edge * 1.0001, edge * 0.999])
    assert path.n_nonzero.tolist() == [0, 1]


def test_gaps_equal_those_of_explicit_pairs(data):
    weights = np.random.default_rng(0).uniform(0.5, 2, 10)
    path = sparse_path(data, n_alphas=15, l1_weights=weights)
    for k in range(len(path)):
        primal, gap = l1_gap(data.X, data.y, data.qid, path.coefs[k], path.alphas[k] * weights)
        assert path.objectives[k] == pytest.approx(primal, abs=1e-9)
        assert path.gaps[k] == pytest.approx(gap, abs=1e-9)


def test_warm_starts_equal_cold_starts(data):
    path = sparse_path(data, n_alphas=12, tol=1e-10)
    for alpha, objective in zip(path.alphas, path.objectives, strict=True):
        assert prox_newton(make_objective(data), L1(alpha), tol=1e-10).objective == pytest.approx(
            objective, rel=1e-9
        )


def test_optimality_conditions(data):
    path = sparse_path(data, n_alphas=10, tol=1e-12)
    objective = make_objective(data)
    for alpha, w in zip(path.alphas, path.coefs, strict=True):
        g = objective.gradient(objective.evaluate(w))
        assert np.all(np.abs(g) <= alpha * (1 + 1e-5))
        np.testing.assert_allclose(g[w != 0], -alpha * np.sign(w[w != 0]), rtol=1e-5)


def test_scaling_a_feature_by_its_l1_weight_is_equivalent(data):
    weights = np.random.default_rng(1).uniform(0.5, 2, 10)
    alphas = [0.1, 0.03, 0.01]
    weighted = sparse_path(data, alphas=alphas, l1_weights=weights, tol=1e-10)
    scaled = sparse_path(data.replace_features(data.X / weights), alphas=alphas, tol=1e-10)
    np.testing.assert_allclose(weighted.coefs * weights, scaled.coefs, atol=1e-5)


def test_row_order_and_query_names_do_not_matter(data):
    rows = np.random.default_rng(2).permutation(data.n_docs)
    shuffled = Dataset(data.X[rows], data.y[rows], [f"q{q}" for q in data.qid[rows]])
    a, b = sparse_path(data, n_alphas=20), sparse_path(shuffled, n_alphas=20)
    np.testing.assert_allclose(a.alphas, b.alphas, rtol=1e-12)
    np.testing.assert_allclose(a.coefs, b.coefs, atol=1e-6)


@pytest.mark.parametrize("kind", [lambda X: X.astype(np.float32), sp.csr_matrix, np.asfortranarray])
def test_every_kind_of_matrix(data, kind):
    path = sparse_path(data.replace_features(kind(data.X)), n_alphas=10)
    np.testing.assert_allclose(path.coefs, sparse_path(data, n_alphas=10).coefs, atol=1e-4)


def test_working_sets_too_large_to_form_their_hessian(data, monkeypatch, small_blocks):
    rng = np.random.default_rng(1)
    X = sp.random_array((data.n_docs, 60), density=0.08, rng=rng, format="lil")
    X[:, [3]] = 1.0 * data.queries.of_rows(rng.random(data.n_queries) < 0.1)[:, None]
    sparse = Dataset(sp.csr_array(X), data.y, data.qid)
    arguments = {"n_alphas": 20, "min_ratio": 1e-2, "tol": 1e-8, "signs": {"f8": "+", "f10": "-"}}
    formed = sparse_path(sparse, **arguments)
    monkeypatch.setattr(module, "MAX_FORMED_COLUMNS", 0)
    monkeypatch.setattr(module.LocalObjective, "hessian", None)  # is not called
    paths = []
    for n in (1, 2):
        with use_threads(n):
            paths.append(sparse_path(sparse, **{**arguments, "alphas": formed.alphas}))
    np.testing.assert_array_equal(paths[0].coefs, paths[1].coefs)
    assert paths[0].converged.all()
    np.testing.assert_allclose(paths[0].objectives, formed.objectives, rtol=1e-8)
    np.testing.assert_allclose(paths[0].coefs, formed.coefs, atol=1e-3)
    assert formed.n_nonzero[-1] > 20
    assert not formed.coefs[:, 3].any()  # constant within every query
    assert not paths[0].coefs[:, 3].any()


def test_elastic_net_keeps_correlated_features_together(data):
    twin = data.replace_features(np.column_stack([data.X, data.X[:, 0]]), [f"x{j}" for j in range(11)])
    path = sparse_path(twin, "elastic_net", l1_ratio=0.5, n_alphas=20, tol=1e-9)
    assert np.all(path.relative_gaps <= 1e-9)
    # F is strongly convex with the ridge's modulus, so a gap bounds the distance to the optimum.
    distance = np.sqrt(2 * path.gaps / (0.5 * path.alphas))
    assert np.all(np.abs(path.coefs[:, 0] - path.coefs[:, 10]) <= 2 * distance + 1e-12)
    assert np.any(path.coefs[:, 0] != 0)


def test_bit_identical_for_any_number_of_threads(small_blocks):
    data = random_dataset(seed=9, n_queries=400, n_features=12, longest=20)
    paths = []
    for n in (1, 2):
        with use_threads(n):
            paths.append(sparse_path(data, n_alphas=20))
    np.testing.assert_array_equal(paths[0].coefs, paths[1].coefs)
    np.testing.assert_array_equal(paths[0].gaps, paths[1].gaps)


def test_query_weights_equal_repetition(data):
    weight = np.ones(data.n_queries)
    weight[:5] = 2.0
    again = data.select_queries(np.arange(5))
    twice = Dataset(
        np.vstack([data.X, again.X]),
        np.append(data.y, again.y),
        [*data.qid, *(f"again {q}" for q in again.qid)],
    )
    weighted, repeated = sparse_path(data, n_alphas=10, query_weight=weight), sparse_path(twice, n_alphas=10)
    np.testing.assert_allclose(weighted.coefs, repeated.coefs, atol=1e-5)


def test_max_features_ends_the_path(data):
    path = sparse_path(data, max_features=2)
    assert path.n_nonzero[-1] > 4
    assert np.all(path.n_nonzero[:-1] <= 4)


def test_progress_counts_every_point(data):
    steps = []
    sparse_path(data, n_alphas=7, progress=lambda done, total: steps.append((done, total)))
    assert steps == [(k + 1, 7) for k in range(7)]


def one(X, y, qid=None):
    return Dataset(np.asarray(X, float), y, np.zeros(len(y)) if qid is None else qid)


@pytest.mark.parametrize(
    ("data", "arguments", "facts"),
    [
        (one([[1.0]], [1]), {}, "no pair"),
        (one([[1.0], [2.0]], [1, 0], [0, 1]), {}, "no pair"),
        (one([[1.0], [1.0]], [1, 0]), {}, "no feature"),
        (one([[1.0], [np.nan]], [1, 0]), {"missing": "error"}, "feature f1 of row 1"),
        (one([[np.inf], [2.0]], [1, 0]), {}, "feature f1 of row 0"),
        (one([[1.0], [2.0]], [1, 0]), {"penalty": "l3"}, ("penalty", "l3")),
        (one([[1.0], [2.0]], [1, 0]), {"alphas": [-1.0]}, ("alphas", [-1.0])),
        (one([[1.0], [2.0]], [1, 0]), {"n_alphas": 0}, ("n_alphas", 0)),
        (one([[1.0], [2.0]], [1, 0]), {"min_ratio": 2.0}, ("min_ratio", 2.0)),
        (one([[1.0], [2.0]], [1, 0]), {"tol": 0.0}, ("tol", 0.0)),
        (one([[1.0], [2.0]], [1, 0]), {"l1_weights": [1.0, 2.0]}, ("l1_weights", [1.0, 2.0])),
        (one([[1.0], [2.0]], [1, 0]), {"penalty": L1(), "l1_weights": [1.0]}, ("l1_weights", [1.0])),
    ],
)
def test_bad_input(data, arguments, facts):
    with refused_as(facts):
        sparse_path(data, **arguments)
