"""Importance and similarity of features against scipy and slow code; constants, weights, errors."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, pearsonr

from ranksieve._parallel import use_threads
from ranksieve.data.dataset import Dataset
from ranksieve.metrics import evaluate
from ranksieve.rankers.measures import IMPORTANCES, SIMILARITIES, feature_importance, feature_similarity
from tests.conftest import random_dataset
from tests.refusals import refused_parameter
from tests.tiers import examples

KINDS = {"float64": np.asarray, "float32": lambda X: X.astype(np.float32), "csr": sp.csr_array}


def sample(seed=0, n_queries=12, n_features=6, longest=25):
    """Data with ties, correlated features, zeros, and a feature constant within some queries."""
    data = random_dataset(seed=seed, n_queries=n_queries, n_features=n_features, longest=longest)
    X = data.X.copy()
    X[:, 1] = np.round(X[:, 1])
    X[:, 2] = np.maximum(X[:, 0] + 0.3 * X[:, 2], 0.0)
    X[:, 3] = np.where(data.qid % 3 == 0, X[:, 3] - X[:, 0], 0.5)
    rows = np.random.default_rng(seed).permutation(len(X))
    return Dataset(X[rows], data.y[rows], data.qid[rows])


def with_constant(data, value=0.1):
    X = np.column_stack([data.X, np.full(data.n_docs, value)])
    return Dataset(X, data.y, data.qid)


def slow_kendall(data, weight=None):
    """|Σ_q τ_q| / √(m_i m_j) with scipy's τ-b per query, 0 for constant features."""
    d, total, m = data.n_features, 0.0, 0.0
    for q, rows in enumerate(query_rows(data)):
        omega = 1.0 if weight is None else weight[q]
        x = data.X[rows]
        varies = np.ptp(x, axis=0) > 0
        tau = np.zeros((d, d))
        for i in np.flatnonzero(varies):
            for j in np.flatnonzero(varies):
                tau[i, j] = kendalltau(x[:, i], x[:, j], variant="b").statistic
        total, m = total + omega * tau, m + omega * varies
    A = np.abs(total) / np.maximum(np.sqrt(np.outer(m, m)), 1e-300)
    np.fill_diagonal(A, 1.0)
    return A


def query_rows(data):
    queries = data.queries
    return [
        queries.order[a:b] for a, b in zip(queries.offsets[:-1], queries.offsets[1:], strict=True)
    ]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_pearson_importance_equals_scipy(kind):
    data = sample()
    expected = [abs(pearsonr(data.X[:, j], data.y).statistic) for j in range(data.n_features)]
    tol = 1e-6 if kind == "float32" else 1e-12
    actual = feature_importance("pearson", Dataset(KINDS[kind](data.X), data.y, data.qid))
    np.testing.assert_allclose(actual, expected, atol=tol)


@pytest.mark.parametrize("kind", KINDS)
def test_pearson_similarity_equals_numpy(kind):
    data = sample()
    tol = 1e-6 if kind == "float32" else 1e-12
    actual = feature_similarity("pearson", Dataset(KINDS[kind](data.X), data.y, data.qid))
    np.testing.assert_allclose(actual, np.abs(np.corrcoef(data.X.T)), atol=tol)
    np.testing.assert_array_equal(np.diag(actual), 1.0)
    np.testing.assert_array_equal(actual, actual.T)


@pytest.mark.parametrize("kind", KINDS)
def test_kendall_equals_scipys_tau_b_over_queries(kind):
    data = sample()
    actual = feature_similarity("kendall", Dataset(KINDS[kind](data.X), data.y, data.qid))
    np.testing.assert_allclose(actual, slow_kendall(data), atol=1e-12)
    np.testing.assert_array_equal(actual, actual.T)


def test_kendall_without_constant_features_is_the_plain_mean():
    data = random_dataset(seed=5, n_queries=9, n_features=3, longest=12)
    data = data.select_queries(data.queries.sizes > 1)
    taus = [
        kendalltau(data.X[rows, 0], data.X[rows, 2], variant="b").statistic for rows in query_rows(data)
    ]  # fmt: skip
    assert feature_similarity("kendall", data)[0, 2] == pytest.approx(abs(np.mean(taus)), abs=1e-12)


def test_kendall_of_a_query_with_many_pairs():
    rng = np.random.default_rng(0)
    x = np.round(rng.normal(size=(150, 3)), 1)  # 11,175 pairs
    actual = feature_similarity("kendall", Dataset(x, rng.integers(0, 2, 150), np.zeros(150)))
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert actual[i, j] == pytest.approx(abs(kendalltau(x[:, i], x[:, j]).statistic), abs=1e-12)


@pytest.mark.parametrize(("name", "metric"), [("ndcg", "ndcg@10"), ("map", "map")])
@pytest.mark.parametrize("kind", KINDS)
def test_single_feature_metrics(name, metric, kind):
    data = sample()
    X = np.round(data.X, 2).astype(np.float32).astype(np.float64)
    columns = [(X[:, j], -X[:, j]) for j in range(6)]
    expected = [max(evaluate(s, data, metric, "letor").mean[metric] for s in both) for both in columns]
    actual = feature_importance(name, Dataset(KINDS[kind](X), data.y, data.qid))
    np.testing.assert_allclose(actual, expected, rtol=1e-12)


def test_many_columns_in_order():
    data = random_dataset(seed=1, n_queries=4, n_features=150)
    actual = feature_importance("map", data)
    for j in (0, 63, 64, 127, 128, 149):
        best = max(evaluate(s * data.X[:, j], data, ["map"]).mean["map"] for s in (1, -1))
        assert actual[j] == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("name", IMPORTANCES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [0.0, 0.1, -1e200])
def test_a_constant_feature_has_no_importance(name, kind, value):
    if kind == "float32" and abs(value) > 1:
        value = 0.3
    data = with_constant(sample(), value)
    actual = feature_importance(name, Dataset(KINDS[kind](data.X), data.y, data.qid))
    assert actual[-1] == 0.0
    assert np.all(actual[:-1] > 0)
    assert np.all(actual <= 1)


@pytest.mark.parametrize("name", SIMILARITIES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_constant_feature_is_similar_only_to_itself(name, kind):
    data = with_constant(sample())
    actual = feature_similarity(name, Dataset(KINDS[kind](data.X), data.y, data.qid))
    np.testing.assert_array_equal(actual[-1], [0.0] * 6 + [1.0])
    np.testing.assert_array_equal(actual[:, -1], [0.0] * 6 + [1.0])
    assert np.all((actual >= 0) & (actual <= 1))


@pytest.mark.parametrize("name", ["ndcg", "map"])
def test_a_feature_constant_within_queries_has_importance_zero(name):
    data = sample()
    X = np.column_stack([data.X[:, 0], data.qid])
    assert feature_importance(name, Dataset(X, data.y, data.qid))[1] == 0.0
    assert feature_importance("pearson", Dataset(X, data.y, data.qid))[1] > 0


@pytest.mark.parametrize("name", SIMILARITIES)
def test_copies_and_negated_copies_are_fully_similar(name):
    data = sample()
    X = np.column_stack([data.X[:, 3], data.X[:, 3], -data.X[:, 3], data.X[:, 0]])
    actual = feature_similarity(name, Dataset(X, data.y, data.qid))
    expected = 0.0 if name == "identity" else 1.0
    np.testing.assert_allclose(actual[0, 1:3], expected, atol=1e-12)
    assert actual[0, 3] < 0.99


@pytest.mark.parametrize("kind", ["float64", "csr"])
@pytest.mark.parametrize(("scale", "shift"), [(1e-160, 0.0), (1e160, 0.0), (-3.0, 7.0), (1.0, 1e6)])
def test_pearson_does_not_depend_on_scale_and_shift(kind, scale, shift):
    data = sample()
    moved = Dataset(KINDS[kind](scale * data.X + shift), data.y, data.qid)
    for measure, name in ((feature_importance, "pearson"), (feature_similarity, "pearson")):
        np.testing.assert_allclose(measure(name, moved), measure(name, data), atol=1e-9)


def test_kendall_does_not_depend_on_monotone_changes():
    data = sample()
    moved = Dataset(np.exp(data.X) * 1e3, data.y, data.qid)
    np.testing.assert_allclose(
        feature_similarity("kendall", moved), feature_similarity("kendall", data), atol=1e-6
    )


def test_kendall_uses_float64_differences():
    x = np.array([[1.0, 1.0], [1.0 + 1e-12, 2.0], [1.0 + 2e-12, 3.0]])
    assert feature_similarity("kendall", Dataset(x, [0, 1, 2], [0, 0, 0]))[0, 1] == pytest.approx(1.0)


@examples(25)
@given(st.integers(0, 10**6), st.permutations(range(6)))
def test_order_of_features_and_rows_does_not_matter(seed, columns):
    data = sample(seed=seed, n_queries=5)
    rows = np.random.default_rng(seed).permutation(data.n_docs)
    other = Dataset(data.X[rows][:, columns], data.y[rows], data.qid[rows])
    for name in ("pearson", "ones"):
        a, b = feature_importance(name, data), feature_importance(name, other)
        np.testing.assert_allclose(b, a[columns], atol=1e-12)
    for name in SIMILARITIES:
        a, b = feature_similarity(name, data), feature_similarity(name, other)
        np.testing.assert_allclose(b, a[np.ix_(columns, columns)], atol=1e-12)


def repeated(data, counts):
    """Data with ``counts[q]`` copies of query q."""
    parts = [
        (data.X[rows], data.y[rows], [(q, k)] * len(rows))
        for q, rows in enumerate(query_rows(data))
        for k in range(counts[q])
    ]
    X, y, qid = zip(*parts, strict=True)
    return Dataset(np.concatenate(X), np.concatenate(y), [i for part in qid for i in part])


def partly_left_out():
    """Data whose last feature varies only in a query of count 0, and the counts."""
    data = with_constant(sample(seed=3))
    counts = np.array([2, 0, 1, 3, 1, 0, 2, 1, 1, 4, 1, 2])[: data.n_queries]
    left_out = max(np.flatnonzero(counts == 0), key=lambda q: data.queries.sizes[q])
    rows = query_rows(data)[left_out]
    data.X[rows, -1] = np.arange(len(rows))
    assert len(rows) > 1
    return data, counts


@pytest.mark.parametrize("name", IMPORTANCES)
def test_importance_with_query_weights_equals_repetition(name):
    data, counts = partly_left_out()
    actual = feature_importance(name, data, counts.astype(float))
    np.testing.assert_allclose(actual, feature_importance(name, repeated(data, counts)), atol=1e-12)


@pytest.mark.parametrize("name", SIMILARITIES)
def test_similarity_with_query_weights_equals_repetition(name):
    data, counts = partly_left_out()
    actual = feature_similarity(name, data, counts.astype(float))
    np.testing.assert_allclose(actual, feature_similarity(name, repeated(data, counts)), atol=1e-12)


def test_absolute_correlations_can_be_indefinite_but_squared_ones_cannot():
    rng = np.random.default_rng(0)
    data = Dataset(rng.normal(size=(12, 10)), rng.integers(0, 2, 12), np.zeros(12))
    assert np.linalg.eigvalsh(feature_similarity("pearson", data))[0] < -1e-3
    assert np.linalg.eigvalsh(feature_similarity("squared_pearson", data))[0] > -1e-14
    np.testing.assert_allclose(
        feature_similarity("squared_pearson", data), np.corrcoef(data.X.T) ** 2, atol=1e-12
    )


def test_similarities_are_bit_identical_for_any_number_of_threads(small_blocks):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(12_000, 5))
    data = Dataset(X, rng.integers(0, 3, len(X)), np.arange(len(X)) // 30)
    with use_threads(1):
        alone = [feature_similarity(name, data) for name in SIMILARITIES] + [
            feature_importance("pearson", data)
        ]
    with use_threads(2):
        both = [feature_similarity(name, data) for name in SIMILARITIES] + [
            feature_importance("pearson", data)
        ]
    for a, b in zip(alone, both, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(alone[0], np.abs(np.corrcoef(X.T)), atol=1e-12)


def test_arrays_are_copied():
    data = sample()
    s, A = np.linspace(0, 1, 6), np.eye(6) + 0.1
    got_s, got_A = feature_importance(list(s), data), feature_similarity(A, data)
    np.testing.assert_array_equal(got_s, s)
    np.testing.assert_array_equal(got_A, A)
    got_A[0, 0] = 9
    assert A[0, 0] == 1.1


@pytest.mark.parametrize(
    ("given_", "word"),
    [
        ("pearso", "'pearson'"),
        (np.ones(5), "shape (5,)"),
        (np.ones((6, 1)), "shape (6, 1)"),
        ([1, 1, -0.5, 1, 1, 1], "f3"),
        ([1, np.nan, 1, 1, 1, 1], "f2"),
        ([np.inf, 1, 1, 1, 1, 1], "f1"),
        (["a"] * 6, "array of numbers"),
        (None, "shape ()"),
    ],
)
def test_bad_importance(given_, word):
    with refused_parameter("importance") as info:
        feature_importance(given_, sample())
    assert word in info.value.reason


def skewed():
    A = np.eye(6)
    A[1, 4] = 0.5
    return A


def holed():
    A = np.eye(6)
    A[2, 3] = np.nan
    return A


@pytest.mark.parametrize(
    ("given_", "word"),
    [
        ("kendal", "'kendall'"),
        (np.eye(5), "shape (5, 5)"),
        (np.ones(6), "shape (6,)"),
        (skewed(), "symmetric"),
        (holed(), "[2, 3]"),
    ],
)
def test_bad_similarity(given_, word):
    with refused_parameter("similarity") as info:
        feature_similarity(given_, sample())
    assert word in info.value.reason
