"""Scores of a linear model from the columns in use alone."""

from numba import njit


@njit(cache=True, nogil=True)
def weighted_sums(X, columns, weights, scores):
    """scores_i = Σ_k weights_k · X[i, columns_k], added in that order: equal rows get equal bits."""
    for i in range(len(scores)):
        total = 0.0
        for k in range(len(columns)):
            total += weights[k] * X[i, columns[k]]
        scores[i] = total


@njit(cache=True, nogil=True)
def add_stored(data, indices, indptr, first, place, values):
    """Add each stored x_ij of the CSR rows from ``first`` on to values[i − first, place_j], unless −1."""
    for i in range(len(values)):
        for entry in range(indptr[first + i], indptr[first + i + 1]):
            k = place[indices[entry]]
            if k >= 0:
                values[i, k] += data[entry]
