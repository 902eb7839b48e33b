"""Functions of data/matrix.py give the same results for dense arrays and CSR."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from ranksieve._parallel import use_threads
from ranksieve.data import features as columns
from ranksieve.data import matrix
from ranksieve.data.queries import group_queries, local_levels, pairs_per_query

rng = np.random.default_rng(0)
DENSE = np.where(rng.random((150, 70)) < 0.6, 0.0, rng.normal(size=(150, 70)))
SPARSE = sp.csr_array(DENSE)
COLUMNS = np.array([3, 69, 0])
QUERIES = group_queries(rng.integers(0, 9, 150))


def with_doubles():
    """The same matrix with a duplicate entry and unsorted columns."""
    rows, columns = np.nonzero(DENSE)
    values, extra = DENSE[rows, columns], (rows[:1], columns[:1], np.array([0.25]))
    values[0] -= 0.25
    order = np.lexsort((-np.append(columns, extra[1]), np.append(rows, extra[0])))
    starts = np.concatenate(([0], np.cumsum(np.bincount(np.append(rows, extra[0]), minlength=150))))
    return matrix.csr(np.append(values, extra[2])[order], np.append(columns, extra[1])[order], starts, 70)


@pytest.fixture(params=["dense", "float32", "sparse", "doubles", "csc"])
def X(request):
    forms = {
        "dense": DENSE,
        "float32": DENSE.astype(np.float32),
        "sparse": SPARSE,
        "doubles": with_doubles(),
        "csc": matrix.as_csr(sp.csc_matrix(DENSE)),
    }
    return forms[request.param]


def assert_close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("rows", [slice(None), slice(20, 41), np.array([5, 2, 149])])
def test_rows_and_blocks(X, rows):
    assert_close(matrix.dense_rows(X, rows), DENSE[rows])
    block = matrix.dense_block(X, rows, COLUMNS)
    assert_close(block, DENSE[rows][:, COLUMNS])
    assert block.dtype == np.float64
    assert block.flags.c_contiguous
    assert not np.may_share_memory(block, DENSE)


@pytest.mark.parametrize("own", [False, True])
def test_value_blocks(X, own):
    values = np.empty((150, 3))
    for rows, block, places in matrix.value_blocks(X, COLUMNS, 64, own):
        values[rows] = block[:, places]
        assert not (own and np.may_share_memory(block, DENSE))
    assert_close(values, DENSE[:, COLUMNS])


def test_columns(X, monkeypatch):
    assert_close(np.array(list(columns.dense_columns(X))), DENSE.T)
    assert next(columns.dense_columns(X, X.dtype)).dtype == X.dtype
    monkeypatch.setattr(columns, "CELLS_AT_ONCE", 450)
    blocks = list(columns.column_blocks(X))
    assert len(blocks) > 20
    assert_close(np.hstack([block for _, block in blocks]), DENSE)
    with use_threads(2):
        by_threads = columns.map_column_blocks(lambda some, block: (some, block), X)
    for (some, block), (others, other) in zip(by_threads, blocks, strict=True):
        assert some == others
        np.testing.assert_array_equal(block, other)
    read = columns.column_reader(X)
    assert_close(np.array([read(j) for j in (4, 69)]), DENSE.T[[4, 69]])


def test_columns_with_values():
    X = sp.csr_array(([1.0, 2.0], [4, 1], [0, 1, 1, 2]), shape=(3, 9))
    dense, columns = matrix.dense_stored_columns(X)
    np.testing.assert_array_equal(columns, [1, 4])
    np.testing.assert_array_equal(dense, [[0, 1], [0, 0], [2, 0]])
    dense, columns = matrix.dense_stored_columns(X.toarray())
    assert dense.shape == (3, 9)
    np.testing.assert_array_equal(columns, np.arange(9))


def test_products_with_rows(X):
    w = rng.normal(size=70)
    block = matrix.rows_to_multiply(X, 30, 60)
    assert_close(block @ w, DENSE[30:60] @ w)
    assert_close(block.T @ w[:30], DENSE[30:60].T @ w[:30])
    assert (block @ w).dtype == np.float64
    assert np.may_share_memory(block.data, X.data) == (X.dtype == np.float64 or sp.issparse(X))


def test_extremes(X):
    spread, largest = matrix.spread_and_largest(X, QUERIES, np.array([0, 3, QUERIES.n_queries]))
    parts = [DENSE[QUERIES.rows(np.array([q]))] for q in range(QUERIES.n_queries)]
    if not (sp.issparse(X) and not X.has_canonical_format):  # the kernel needs canonical CSR
        assert_close(spread, np.max([part.max(axis=0) - part.min(axis=0) for part in parts], axis=0))
        assert_close(largest, np.abs(DENSE).max(axis=0))


def test_find_values(X):
    assert matrix.find_first(X, np.isnan) is None
    assert matrix.first_not_finite(X) is None
    holes = matrix.writable_copy(X)
    at = np.flatnonzero(matrix.stored_values(holes).ravel())[[40, 300]]
    matrix.stored_values(holes).ravel()[at] = [np.nan, -np.inf]
    dense = holes.toarray() if sp.issparse(holes) else holes
    first = {
        condition: tuple(np.argwhere(condition(dense))[0].tolist()) for condition in (np.isnan, np.isinf)
    }
    for condition, place in first.items():
        assert matrix.find_first(holes, condition) == place
    assert matrix.first_not_finite(holes) == min(first.values())
    assert matrix.first_not_finite(holes, allow_nan=True) == first[np.isinf]


def test_stored_rows_and_entries(X):
    rebuilt = np.zeros(DENSE.shape)
    starts, places, columns, values = matrix.stored_rows(X)
    for row, place in enumerate(places):
        own = values[starts[row] : starts[row + 1]]
        rebuilt[row, columns[place : place + len(own)]] = own
    assert_close(rebuilt, DENSE)
    if sp.issparse(X):
        rows, columns, values = matrix.nonzero_entries(X)
        assert_close(values, DENSE[rows, columns])
        assert len(values) == np.count_nonzero(DENSE)


@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
def test_missing_values_are_replaced_column_by_column(kind):
    holes = DENSE.copy()
    holes[(holes != 0) & (rng.random(DENSE.shape) < 0.2)] = np.nan
    X, columns_filled = kind(holes), {}

    def fill(j, column):
        columns_filled[j] = column
        return np.arange(150.0) + 1000 * j

    matrix.replace_missing(X, fill)
    rows, columns = np.nonzero(np.isnan(holes))
    expected = holes.copy()
    expected[rows, columns] = rows + 1000 * columns
    np.testing.assert_array_equal(X.toarray() if sp.issparse(X) else X, expected)
    assert sorted(columns_filled) == sorted(set(columns.tolist()))
    np.testing.assert_array_equal(columns_filled[columns[0]], holes[:, columns[0]])
    matrix.replace_missing(kind(DENSE), pytest.fail)


def test_changing_columns_and_rows():
    scale = np.arange(1.0, 71.0)
    assert_close(matrix.divide_columns(SPARSE, scale).toarray(), DENSE / scale)
    values = rng.normal(size=(150, 3))
    changed = DENSE.copy()
    changed[:, COLUMNS] = values
    assert_close(matrix.replace_columns(SPARSE, COLUMNS, values).toarray(), changed)
    for X in (DENSE, SPARSE):
        wide = matrix.pad_columns(X, 72)
        assert_close(matrix.dense_rows(wide, slice(None)), np.pad(DENSE, ((0, 0), (0, 2))))
        assert_close(matrix.dense_rows(matrix.stack([X, X[:2]]), slice(None)), np.vstack([DENSE, DENSE[:2]]))


def test_rows_are_sorted_in_place():
    starts, columns, values = np.array([0, 3, 3, 5]), np.array([9, 0, 4, 2, 1]), np.arange(5.0)
    matrix.sort_each_row(starts, columns, values)
    np.testing.assert_array_equal(columns, [0, 4, 9, 1, 2])
    np.testing.assert_array_equal(values, [1, 2, 0, 4, 3])


def test_kinds():
    assert [matrix.is_sparse(X) for X in (SPARSE, DENSE, [[1.0]])] == [True, False, False]
    assert matrix.as_csr(sp.coo_array(np.eye(2, dtype=int))).dtype == np.float64
    assert isinstance(matrix.as_plain(SPARSE), sp.csr_matrix)
    in_place = [matrix.is_float64_in_place(X) for X in (DENSE, DENSE.T, DENSE.astype(np.float32), SPARSE)]
    assert in_place == [True, False, False, False]
    assert sum(part.nbytes for part in matrix.buffers(DENSE)) == DENSE.nbytes
    assert len(list(matrix.buffers(SPARSE))) == 3


def test_pairs_of_levels_equal_brute_force():
    y = rng.choice([0.0, 1.0, 2.5], 150)
    levels = local_levels(QUERIES.group(y), QUERIES)
    parts = [y[QUERIES.rows(np.array([q]))] for q in range(QUERIES.n_queries)]
    np.testing.assert_array_equal(
        levels, np.concatenate([np.unique(part, return_inverse=True)[1] for part in parts])
    )
    pairs = pairs_per_query(levels, QUERIES)
    np.testing.assert_array_equal(pairs, [np.sum(part[:, None] > part) for part in parts])
    assert pairs.dtype == np.int64
