"""The objective: every kind of X, explicit pairs, bit-identical results."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from ranksieve import objective as module
from ranksieve._parallel import use_threads
from ranksieve.data.dataset import Dataset
from ranksieve.losses import SquaredHinge
from ranksieve.objective import LocalObjective, make_objective
from tests.conftest import random_dataset
from tests.pairs import explicit_pairs, squared_hinge
from tests.rankers import LOSSES
from tests.refusals import refused_data


def make(data, X=None):
    return LocalObjective(data.X if X is None else X, SquaredHinge().bind(data.y, data.queries))


def dense64(X, folder):
    return X


def dense32(X, folder):
    return X.astype(np.float32)


def mapped(X, folder):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


def csr(X, folder):
    return sp.csr_array(X)


def csr32(X, folder):
    return sp.csr_array(X.astype(np.float32))


@pytest.mark.parametrize("kind", [dense64, dense32, mapped, csr, csr32])
@pytest.mark.parametrize("scattered", [False, True])
def test_value_gradient_hessian_on_explicit_pairs(kind, scattered, tmp_path):
    data = random_dataset(seed=1, n_queries=9)
    if scattered:
        data = data.select_rows(np.random.default_rng(0).permutation(data.n_docs))
    X = np.where(np.abs(data.X) < 0.4, 0.0, data.X).astype(np.float32).astype(np.float64)
    objective = make(data, kind(X, tmp_path))
    w = np.random.default_rng(2).normal(size=5)
    pairs = explicit_pairs(data.y, data.qid)
    value, gradient, hessian, slack = squared_hinge(X @ w, pairs, np.ones(len(pairs)))
    p, columns = len(pairs), np.array([3, 0, 4])
    point = objective.evaluate(w)
    np.testing.assert_allclose(point.scores, X @ w, atol=1e-12)
    assert point.value == pytest.approx(value / p, rel=1e-12)
    assert point.slack == pytest.approx(slack / p, rel=1e-12)
    np.testing.assert_allclose(objective.gradient(point), X.T @ gradient / p, atol=1e-12)
    whole = X.T @ hessian @ X / p
    expected = whole[np.ix_(columns, columns)]
    np.testing.assert_allclose(objective.hessian(point, columns), expected, atol=1e-12)
    np.testing.assert_allclose(objective.hessian(point, np.arange(5)), whole, atol=1e-12)
    np.testing.assert_allclose(objective.curvatures(point), np.diag(whole), atol=1e-12)
    np.testing.assert_allclose(objective.hessian_product(point, w), whole @ w, atol=1e-12)


@pytest.mark.parametrize("kind", [dense64, csr])
@pytest.mark.parametrize("scattered", [False, True])
def test_cached_columns_change_nothing(kind, scattered, tmp_path):
    data = random_dataset(seed=1, n_queries=9, n_features=9)
    if scattered:
        data = data.select_rows(np.random.default_rng(0).permutation(data.n_docs))
    X = kind(data.X, tmp_path)
    plain, keeping = make(data, X), make(data, X)
    w = np.where(np.isin(np.arange(9), [1, 6]), 0.7, 0.0)
    keeping.features.keep(np.array([6, 1, 4]))
    assert keeping.features.keeps(np.array([4, 1]))
    assert not keeping.features.keeps(np.array([1, 2]))
    point = plain.evaluate(w)
    np.testing.assert_allclose(keeping.scores(w), point.scores, atol=1e-13)
    np.testing.assert_allclose(keeping.scores(np.ones(9)), plain.scores(np.ones(9)), atol=1e-13)
    for columns in ([1, 4, 6], [6, 1, 4], [4, 1], [2, 6]):
        np.testing.assert_allclose(
            keeping.hessian(point, np.array(columns)), plain.hessian(point, np.array(columns)), atol=1e-13
        )
    keeping.features.keep(np.arange(9))  # more than half of X is not copied
    assert not keeping.features.keeps(np.array([1]))


def test_a_copy_of_columns_is_freed_before_the_next_one():
    X = np.random.default_rng(0).random((100_000, 24), dtype=np.float32)
    features = make(Dataset(X, np.arange(100_000) % 2, np.arange(100_000) // 10)).features
    features.keep(np.arange(2))
    tracemalloc.start()
    try:
        features.keep(np.arange(12))
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        features.keep(np.arange(12, 24))
        assert tracemalloc.get_traced_memory()[1] - before < 0.5 * X.nbytes / 2  # half of a copy
    finally:
        tracemalloc.stop()
    assert features.keeps(np.arange(12, 24))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_copies_of_columns_have_the_same_values(dtype, monkeypatch):
    data = random_dataset(seed=1, n_queries=9, n_features=9)
    features, columns = make(data, data.X.astype(dtype)).features, np.array([1, 4, 6])
    monkeypatch.setattr("ranksieve.data.feature_matrix.LARGE_COPY", 1)
    features.keep(columns)
    values, positions = features.reader(columns)(0, data.n_docs)
    assert values.dtype == dtype
    np.testing.assert_array_equal(values[:, positions], data.X.astype(dtype)[:, columns])


def test_gradients_are_cached_per_point_and_copied():
    data = random_dataset(seed=1, n_queries=9)
    objective = make(data)
    here, there = objective.evaluate(np.ones(5)), objective.evaluate(-np.ones(5))
    first = objective.gradient(here)
    first[:] = 7.0  # the caller may modify the result
    second = objective.gradient(here)
    assert not np.any(second == 7.0)
    other = objective.gradient(there)
    assert not np.array_equal(other, second)
    np.testing.assert_array_equal(objective.gradient(here), second)


@pytest.mark.parametrize("loss", ["squared_hinge", "listnet"])  # with and without its own line search
def test_slopes_along_a_line_against_differences(loss):
    data = random_dataset(seed=4, n_queries=9)
    objective = make_objective(data, LOSSES[loss]())
    rng = np.random.default_rng(1)
    point, direction = objective.evaluate(rng.normal(size=5)), rng.normal(size=5)
    scores, h = objective.scores(direction), 1e-5
    slopes = objective.slopes_along(point, scores)
    for step in (0.0, 0.3, -0.2, 0.3):
        at = [objective.evaluate(point.w + mu * direction) for mu in (step - h, step, step + h)]
        slope, curvature = slopes(step)
        assert slope == pytest.approx((at[2].value - at[0].value) / (2 * h), rel=1e-6, abs=1e-8)
        assert slope == pytest.approx(objective.slope_along(at[1], scores), rel=1e-10)
        assert curvature == pytest.approx(objective.curvature_along(at[1], scores), rel=1e-10)


def test_gradient_against_differences():
    data = random_dataset(seed=4)
    objective = make(data)
    w = np.random.default_rng(0).normal(size=5)
    gradient = objective.gradient(objective.evaluate(w))
    for j in range(5):
        e = np.zeros(5)
        e[j] = 1e-6
        difference = (objective.evaluate(w + e).value - objective.evaluate(w - e).value) / 2e-6
        assert gradient[j] == pytest.approx(difference, abs=1e-8)


@pytest.mark.parametrize("kind", [dense64, dense32, csr])
def test_bit_identical_for_any_number_of_threads(kind, tmp_path, small_blocks):
    data = random_dataset(seed=5, n_queries=500, n_features=20, longest=30)
    w, columns = np.random.default_rng(1).normal(size=20), np.arange(0, 20, 3)
    results = []
    for n in (1, 2, 4):
        with use_threads(n):
            objective = make(data, kind(data.X, tmp_path))
            point = objective.evaluate(w)
            results.append((point.value, objective.gradient(point), objective.hessian(point, columns)))
    for value, gradient, hessian in results[1:]:
        assert value == results[0][0]
        np.testing.assert_array_equal(gradient, results[0][1])
        np.testing.assert_array_equal(hessian, results[0][2])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("size", [1e100, 1e200, 1e308, np.inf, np.nan])
@pytest.mark.parametrize("loss", LOSSES)
def test_overflowing_weights_never_have_a_small_loss(small, loss, size):
    assert not make_objective(small, LOSSES[loss]()).evaluate(np.full(5, size)).value < 1e3


def test_numbers_of_rows_must_agree(small):
    with refused_data() as info:
        make(small, small.X[:3])
    assert "3 rows" in info.value.reason


@pytest.mark.parametrize("scattered", [False, True])
@pytest.mark.parametrize("kept", [(), (2, 9, 31, 4, 17, 5), (2, 9, 4)])
def test_hessian_of_sparse_columns_on_explicit_pairs(scattered, kept, monkeypatch):
    """Computed from the stored entries, with weights of queries and documents, in any order of columns."""
    rng = np.random.default_rng(3)
    data = random_dataset(seed=1, n_queries=9, n_features=40)
    if scattered:
        data = data.select_rows(rng.permutation(data.n_docs))
    X = np.where(rng.random(data.X.shape) < 0.05, data.X, 0.0).astype(np.float32).astype(np.float64)
    weights = rng.uniform(0.5, 2.0, size=data.n_queries), rng.uniform(0.5, 2.0, size=data.n_docs)
    weights[0][1] = weights[1][3] = 0.0
    for query_weight, document_weight in (weights, (None, None)):
        loss = SquaredHinge().bind(data.y, data.queries, query_weight, document_weight)
        objective, w = LocalObjective(sp.csr_array(X.astype(np.float32)), loss), 0.4 * rng.normal(size=40)
        pairs, omega = explicit_pairs(data.y, data.qid), 1.0
        if query_weight is not None:
            omega = query_weight[data.queries.of_rows(np.arange(data.n_queries))[pairs[:, 0]]]
            omega = omega * document_weight[pairs].prod(axis=1)
        value, gradient, hessian, _ = squared_hinge(X @ w, pairs, omega * np.ones(len(pairs)))
        if kept:
            objective.features.keep(np.array(kept))
        point, columns, p = objective.evaluate(w), np.array([9, 2, 4]), loss.normaliser
        assert point.value == pytest.approx(value / p, rel=1e-12)
        np.testing.assert_allclose(objective.gradient(point), X.T @ gradient / p, atol=1e-12)
        whole = X.T @ hessian @ X / p
        assert objective.features.stored_reader(columns) is not None
        actual, expected = objective.hessian(point, columns), whole[np.ix_(columns, columns)]
        np.testing.assert_allclose(actual, expected, atol=1e-12)
        parts = objective.hessians(point, columns, np.array([0, 2, data.n_queries]))
        np.testing.assert_allclose(parts.sum(axis=0) / p, expected, atol=1e-12)
        sparse_w = np.where(np.isin(np.arange(40), [2, 9]), w, 0.0)
        np.testing.assert_allclose(objective.scores(sparse_w), X @ sparse_w, atol=1e-13)
        np.testing.assert_allclose(objective.curvatures(point), np.diag(whole), atol=1e-12)
        np.testing.assert_allclose(objective.hessian_product(point, w), whole @ w, atol=1e-12)
        monkeypatch.setattr(module, "MAX_FORMED_COLUMNS", 2)
        products, in_order = objective.hessian_products(point, np.sort(columns)), np.sort(columns)
        expected = whole[np.ix_(in_order, in_order)]
        factor = np.repeat(rng.uniform(0, 2, data.n_queries), data.queries.sizes)
        of_rows = data.queries.restore(factor)
        scaled = (X.T @ (of_rows[:, None] * hessian) @ X / p)[np.ix_(in_order, in_order)]
        v = rng.normal(size=3)
        np.testing.assert_allclose(products.product(v), expected @ v, atol=1e-12)
        np.testing.assert_allclose(products.product(v, factor), scaled @ v, atol=1e-12)
        own = np.diag(hessian) * of_rows @ X**2 / p
        np.testing.assert_allclose(products.scale(factor), own[in_order], atol=1e-12)
        monkeypatch.undo()
