"""Products with rows and columns, and extremes, against NumPy; integers, so nothing is rounded."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse

from ranksieve.kernels import linear

N, D = 2 * linear.ROWS_PER_BLOCK + 7, 19
RNG = np.random.default_rng(41)
X = RNG.integers(-4, 5, (N, D)).astype(np.float64)
QUERY = np.arange(N) // 20
FAR = np.array([2, 7, 18])
FIRST_VALUES = RNG.integers(5, 9, (QUERY[-1] + 1, len(FAR))).astype(np.float64)
SHIFTED = X.copy()
SHIFTED[:, FAR] -= FIRST_VALUES[QUERY]


def integers(*shape):
    """Random integers without 0, 1 and −1."""
    return RNG.choice([-3.0, -2.0, 2.0, 3.0, 5.0], shape)


def test_scores_of_a_model_and_of_many():
    coefs = np.where(RNG.random((3, D)) < 0.5, integers(3, D), 0.0)
    coefs[1] = 0.0  # a model without features
    columns = np.flatnonzero(coefs.any(axis=0))
    model, places = (np.ascontiguousarray(part) for part in np.nonzero(coefs[:, columns]))
    starts, scores = np.searchsorted(model, np.arange(4)), np.full((3, N), np.nan)
    weights = coefs[:, columns][model, places]
    linear.weighted_sums_of_models(X, columns, starts, places, weights, scores)
    np.testing.assert_array_equal(scores, coefs @ X.T)
    one = np.full(N, np.nan)
    linear.weighted_sums(X, columns, coefs[0, columns], one)
    np.testing.assert_array_equal(one, X @ coefs[0])


def test_products_of_rows_with_all_and_with_some_columns():
    w, first, last = integers(D), 33, 90
    near, expected = w.copy(), (SHIFTED @ w)[first:last]
    near[FAR] = 0.0
    products, chosen, added = np.full(57, np.nan), np.full(57, np.nan), np.ones(57)
    far = (FAR, w[FAR], FIRST_VALUES, QUERY)
    linear.row_products(X, near, *far, first, last, products)
    np.testing.assert_array_equal(products, expected)
    columns = np.setdiff1d(np.arange(D), FAR)
    linear.chosen_products(X, columns, w[columns], *far, first, last, chosen)
    np.testing.assert_array_equal(chosen, expected)
    order = np.concatenate([columns, FAR])
    rows = np.ascontiguousarray(X[first:last, order].T)
    linear.add_columns(rows, w[order], len(columns), FIRST_VALUES, QUERY[first:last], added)
    np.testing.assert_array_equal(added, 1.0 + expected)


def test_sums_of_columns_between_cuts():
    cuts, before = np.array([20, 60, 60, 95]), integers(3, D)
    g, sums = integers(75), before.copy()
    linear.column_sums(X, g, FAR, FIRST_VALUES, QUERY, cuts, sums)
    for b in range(3):
        rows = slice(cuts[b], cuts[b + 1])
        expected = before[b] + g[cuts[b] - 20 : cuts[b + 1] - 20] @ SHIFTED[rows]
        np.testing.assert_array_equal(sums[b], expected)


@pytest.mark.parametrize("d", [19, 16])
def test_sums_of_stored_columns(d):
    g, before = integers(N), integers(d)
    far, sums = np.array([j for j in FAR if j < d]), before.copy()
    shifts = np.ascontiguousarray(FIRST_VALUES[:, : len(far)])
    linear.add_column_sums(np.ascontiguousarray(X[:, :d].T), g, far, shifts, QUERY, sums)
    np.testing.assert_array_equal(sums, before + g @ SHIFTED[:, :d])


def test_single_values_dense_and_sparse():
    rows, columns = np.array([5, 2, 5]), np.array([3, 0])
    values = np.full((3, 2), np.nan)
    linear.gather(X, rows, columns, values)
    np.testing.assert_array_equal(values, X[np.ix_(rows, columns)])
    stored, place, added = sparse.csr_matrix(X), np.full(D, -1), np.ones((4, 2))
    place[columns] = [0, 1]
    linear.add_stored(stored.data, stored.indices, stored.indptr, 6, place, added)
    np.testing.assert_array_equal(added, 1.0 + X[6:10, columns])


def test_extremes_within_queries():
    """Columns of any sign, with and without implicit zeros in a query; a query is empty."""
    sizes = [3, 0, 1, 4, 2]
    offsets, order = np.concatenate([[0], np.cumsum(sizes)]), RNG.permutation(10)
    values = X[:10].copy()
    values[:, 0], values[:, 1], values[:, 2] = 3.0 + np.arange(10), -3.0 - np.arange(10), 0.0
    values[order[:3], 3], values[order[3:], 3] = [0.0, 7.0, 6.0], 0.0
    values[order[:3], 4], values[order[3:], 4] = [-6.0, -7.0, 0.0], 0.0
    parts = [values[order[a:b]] for a, b in itertools.pairwise(offsets) if b > a]
    spread = np.max([part.max(axis=0) - part.min(axis=0) for part in parts], axis=0)
    largest = np.max([np.abs(part).max(axis=0) for part in parts], axis=0)
    result = np.zeros(D), np.zeros(D)
    linear.dense_extremes(values, order, offsets, 0, 5, *result)
    np.testing.assert_array_equal(result, (spread, largest))
    stored, result = sparse.csr_matrix(values), (np.zeros(D), np.zeros(D))
    linear.sparse_extremes(stored.data, stored.indices, stored.indptr, order, offsets, *result)
    np.testing.assert_array_equal(result, (spread, largest))


def test_descent_stops_when_slopes_change_by_less_than_the_tolerance():
    """From 0, with h + ridge = 3: the first sweep changes w by 1 and −2/3, i.e. slopes by 3 and 2."""
    H, b, free = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([-3.0, 1.0]), np.zeros(2)

    def reached(tol, sweeps):
        return linear.minimise_quadratic(H, b, np.zeros(2), free, free, 1.0, tol, sweeps)

    np.testing.assert_allclose(reached(0.0, 1), [1.0, -2.0 / 3.0])
    np.testing.assert_array_equal(reached(3.0, 100), reached(0.0, 1))
    np.testing.assert_array_equal(reached(2.999, 2), reached(0.0, 2))
    assert np.any(reached(0.0, 2) != reached(0.0, 1))
