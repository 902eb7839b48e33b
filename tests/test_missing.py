"""fill_missing against filling single cells, dense and sparse."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from ranksieve.data.dataset import Dataset, fingerprint
from ranksieve.prepare.missing import MISSING_POLICIES, MissingPolicy, fill_missing, learn_missing
from ranksieve.rankers import SparseRankSVM
from tests.refusals import refused_data, refused_parameter
from tests.tiers import examples

cells = st.sampled_from([0.0, 1.0, -2.0, 5.0, float("nan"), float("nan")])
matrices = st.integers(1, 4).flatmap(
    lambda d: st.lists(st.lists(cells, min_size=d, max_size=d), min_size=1, max_size=8)
)


def fill_cell(X, qid, i, j, policy):
    if policy == "zero":
        return 0.0
    rows = [k for k in range(len(X)) if policy == "column_mean" or qid[k] == qid[i]]
    present = [X[k, j] for k in rows if X[k, j] == X[k, j]]
    if not present:
        return 0.0
    return min(present) if policy == "query_min" else sum(present) / len(present)


@examples(150)
@given(matrices, st.data(), st.sampled_from(["zero", "query_min", "column_mean"]))
def test_cells_are_filled_according_to_the_policy(rows, data, policy):
    X = np.array(rows)
    qid = data.draw(st.lists(st.sampled_from("ab"), min_size=len(X), max_size=len(X)))
    expected = X.copy()
    for i, j in np.argwhere(np.isnan(X)):
        expected[i, j] = fill_cell(X, qid, i, j, policy)
    dense = Dataset(X, np.zeros(len(X)), qid)
    sparse = Dataset(sp.csr_array(X), np.zeros(len(X)), qid)
    before = X.copy()
    np.testing.assert_allclose(fill_missing(dense, policy).X, expected, rtol=1e-15)
    np.testing.assert_allclose(fill_missing(sparse, policy).X.toarray(), expected, rtol=1e-15)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(sparse.X.toarray(), before)


def holes(sparse=False, dtype=np.float64):
    X = np.array([[1.0, 2.0], [3.0, np.nan]], dtype=dtype)
    return Dataset(sp.csr_array(X) if sparse else X, [1, 0], ["a", "b"], ["x", "y"], doc_ids=["d", "e"])


@pytest.mark.parametrize("sparse", [False, True])
def test_error_names_the_first_missing_value(sparse):
    with refused_data() as info:
        fill_missing(holes(sparse), "error")
    assert "feature y of row 1" in info.value.reason


def test_data_without_changes_are_not_copied():
    data = holes()
    assert fill_missing(data, "keep") is data
    complete = Dataset([[1.0]], [1], ["a"])
    assert all(fill_missing(complete, policy) is complete for policy in MISSING_POLICIES)
    empty = Dataset(sp.csr_array((2, 3)), [1, 0], ["a", "a"])
    assert fill_missing(empty, "error") is empty


def test_rows_names_and_type_are_kept():
    filled = fill_missing(holes(dtype=np.float32), "zero")
    assert filled.X.dtype == np.float32
    assert filled.feature_names == ("x", "y")
    assert filled.doc_ids == ["d", "e"]


def test_a_read_only_memory_map_is_not_modified(tmp_path):
    np.save(tmp_path / "X.npy", holes().X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert fill_missing(Dataset(mapped, [1, 0], ["a", "b"]), "zero").X.tolist() == [[1, 2], [3, 0]]
    assert np.isnan(np.load(tmp_path / "X.npy")[1, 1])


@examples(60)
@given(matrices)
def test_indicators_are_one_where_a_value_is_missing(rows):
    X = np.array(rows)
    holes = np.isnan(X).sum(axis=0)
    data = Dataset(X, np.zeros(len(X)), ["a"] * len(X))
    if (holes == len(X)).all():
        with refused_data() as info:
            learn_missing(data, "indicator")
        assert "all" in info.value.reason
        return
    learned = learn_missing(data, "indicator")
    marked = np.flatnonzero((holes > 0) & (holes < len(X)))
    assert learned.indicators == {f"f{j + 1} is missing": f"f{j + 1}" for j in marked}
    assert learned.policy == ("indicator" if len(marked) else "column_mean")
    filled = learn_missing(data, "column_mean").apply(data).X
    expected = np.hstack([filled, np.isnan(X[:, marked])])
    np.testing.assert_array_equal(learned.apply(data).X, expected)
    sparse = data.replace_features(sp.csr_array(X))
    np.testing.assert_allclose(learned.apply(sparse).X.toarray(), expected, rtol=1e-15)
    np.testing.assert_array_equal(X, np.array(rows))


def test_invalid_names_of_indicators():
    with refused_parameter("indicates", ("",)):
        MissingPolicy("indicator", ("x", "y"), (0.0, 0.0), ("",))
    data = Dataset([[1.0, 0.0], [np.nan, 1.0]], [0, 1], ["a", "a"], ["x", "x is missing"])
    with refused_data() as info:
        learn_missing(data, "indicator")
    assert "'x is missing'" in info.value.reason


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("policy", ["auto", "column_mean", "indicator"])
@pytest.mark.parametrize("sparse", [False, True])
def test_infinite_values_are_named_when_a_mean_is_computed(value, policy, sparse):
    X = np.array([[1.0, 2.0], [np.nan, 3.0], [4.0, 5.0], [value, -value]])
    data = Dataset(sp.csr_array(X) if sparse else X, [1, 0, 1, 0], ["a", "a", "b", "b"], ["x", "y"])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="1 of 2 features has missing values")
        with refused_data() as info:
            learn_missing(data, policy)
    assert f"feature x of row 3 (query b) is {value}" in info.value.reason
    with refused_data() as info:
        fill_missing(data, "column_mean")
    assert "feature x of row 3" in info.value.reason


def test_a_mean_that_overflows_is_named():
    data = Dataset([[1.0, 1e308], [2.0, np.nan], [3.0, 1e308]], [1, 0, 1], ["a"] * 3, ["x", "y"])
    with refused_data() as info:
        learn_missing(data, "column_mean")
    assert "feature y" in info.value.reason


def test_unknown_policy():
    with refused_parameter("missing", "median"):
        fill_missing(holes(), "median")


@pytest.mark.parametrize("policy", ["zero", "query_min", "column_mean", "indicator"])
def test_duplicate_entries_of_csr_are_filled_once(policy):
    """CSR may store a value as a sum of duplicate entries."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)) + 3.0
    X[rng.random(X.shape) < 0.1] = np.nan
    y, qid = rng.integers(0, 3, 60), np.repeat(np.arange(6), 10)
    once = sp.csr_array(X)
    halves = [np.repeat(once.data / 2, 2), np.repeat(once.indices, 2), 2 * once.indptr]
    twice, before = sp.csr_array(tuple(halves), shape=X.shape), halves[0].copy()
    ranker = SparseRankSVM("l1", 0.01, missing=policy).fit(once, y, qid)
    again = SparseRankSVM("l1", 0.01, missing=policy).fit(twice, y, qid)
    np.testing.assert_array_equal(again.coef_, ranker.coef_)
    np.testing.assert_array_equal(again.predict(twice, qid), ranker.predict(once, qid))
    np.testing.assert_array_equal(ranker.to_model().predict(twice, qid), ranker.predict(once, qid))
    np.testing.assert_array_equal(twice.data, before)  # the caller's matrix is not modified
    one, other = (fill_missing(Dataset(A, y, qid), "column_mean").X.toarray() for A in (once, twice))
    np.testing.assert_array_equal(one, other)


def test_csr_with_unsorted_columns_has_the_same_fingerprint():
    X = np.array([[1.0, np.nan, 3.0], [0.0, 5.0, np.nan], [7.0, 8.0, 9.0]])
    backwards = sp.csr_array(X[:, ::-1])
    backwards = sp.csr_array((backwards.data, 2 - backwards.indices, backwards.indptr), shape=X.shape)
    y, qid = [0, 1, 2], ["a"] * 3
    np.testing.assert_array_equal(backwards.toarray(), X)
    assert fingerprint(Dataset(backwards, y, qid)) == fingerprint(Dataset(sp.csr_array(X), y, qid))
