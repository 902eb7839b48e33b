"""NaN and infinite features are refused by name, in dense and in wide sparse matrices."""

import numpy as np
import pytest
import scipy.sparse as sp

from ranksieve.data.dataset import Dataset, check_finite
from ranksieve.data.matrix import ROWS_AT_ONCE
from ranksieve.io.letor import write_letor
from tests.refusals import refused_data

WIDTH, LATE_ROW = 1_000_000, ROWS_AT_ONCE + 1


def data_set(X):
    return Dataset(X, np.zeros(X.shape[0]), np.repeat([7, 9], [X.shape[0] - 1, 1]))


def wide(bad):
    """A sparse matrix that would be half a terabyte when dense; the columns of rows are not sorted."""
    ends = np.zeros(LATE_ROW + 2, dtype=np.int64)
    ends[1:] = 2
    ends[LATE_ROW:] = 4
    ends[LATE_ROW + 1 :] = 7
    columns = [5, 3, 9, 2, 800_000, 600_000, 10]
    return sp.csr_array(([1.0, 2.0, 3.0, 4.0, bad, bad, 5.0], columns, ends), shape=(LATE_ROW + 1, WIDTH))


@pytest.fixture
def never_dense(monkeypatch):
    for kind in (sp.csr_array, sp.csr_matrix):
        for way in ("toarray", "todense"):
            monkeypatch.setattr(kind, way, lambda X, *_: pytest.fail("the matrix was made dense"))


@pytest.mark.parametrize(("bad", "word"), [(np.nan, "missing (NaN)"), (-np.inf, "-inf")])
def test_the_first_bad_value_of_a_wide_matrix(bad, word, never_dense):
    with refused_data() as info:
        check_finite(data_set(wide(bad)))
    assert f"f600001 of row {LATE_ROW} (query 9) is {word}" in info.value.reason


def test_an_infinite_value_of_a_wide_matrix_is_not_written(never_dense, tmp_path):
    with refused_data() as info:
        write_letor(data_set(wide(np.inf)), tmp_path / "out.txt")
    assert f"f600001 of row {LATE_ROW}" in info.value.reason


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_rows_are_checked_before_columns(kind):
    X = np.ones((4, 3))
    X[1, 2] = X[2, 0] = np.nan
    with refused_data() as info:
        check_finite(data_set(kind(X)))
    assert "f3 of row 1" in info.value.reason


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_finite_values_with_an_infinite_sum_are_accepted(kind):
    check_finite(data_set(kind(np.full((4, 3), 1e308))))
