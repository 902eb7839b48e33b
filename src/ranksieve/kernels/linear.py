"""Small linear algebra: products with rows, scores of models, extremes of sparse columns, coordinate descent.

Loops stand where NumPy would have one call: sums along an axis and assigned slices compile ten times as long.
"""

from functools import partial

import numpy as np

from ranksieve.kernels.compiling import helper, kernel

ROWS_AT_ONCE = 200  # not a power of two: then the columns of a block would displace each other in the cache


@kernel
def weighted_sums(X, columns, weights, scores):
    """scores_i = Σ_k weights_k · X[i, columns_k], added in that order: equal rows get equal bits."""
    for i in range(len(scores)):
        total = 0.0
        for k in range(len(columns)):
            total += weights[k] * X[i, columns[k]]
        scores[i] = total


@kernel
def weighted_sums_of_models(X, columns, starts, places, weights, scores):
    """scores[m, i] = Σ_e weights_e · X[i, columns[places_e]], e from starts_m to starts_{m+1}, in that order.

    The bits are those of ``weighted_sums`` for each model. Every row is read once for all models, into a
    block with one row per column, so that the sums run over neighbouring documents.
    """
    block, totals = np.empty((len(columns), ROWS_AT_ONCE)), np.empty(ROWS_AT_ONCE)
    for first in range(0, X.shape[0], ROWS_AT_ONCE):
        size = min(ROWS_AT_ONCE, X.shape[0] - first)
        for i in range(size):
            for k in range(len(columns)):
                block[k, i] = X[first + i, columns[k]]
        for m in range(len(scores)):
            for i in range(size):
                totals[i] = 0.0
            for e in range(starts[m], starts[m + 1]):
                weight, values = weights[e], block[places[e]]
                for i in range(size):
                    totals[i] += weight * values[i]
            for i in range(size):
                scores[m, first + i] = totals[i]


@partial(kernel, fastmath={"reassoc", "contract"})
def row_products(X, w, far, far_w, first_values, query, first, last, products):
    """Rows first..last of X times w, plus Σ_k far_w_k·(x_far_k − first_values[the row's query, k])."""
    for i in range(first, last):
        x, total = X[i], 0.0
        for c in range(len(w)):
            total += x[c] * w[c]
        for k in range(len(far)):
            total += far_w[k] * (x[far[k]] - first_values[query[i], k])
        products[i - first] = total


@kernel
def column_sums(X, g, far, first_values, query, cuts, sums):
    """sums[b] = Σ g_i·x_i over the rows between two cuts; far columns less first_values[the row's query].

    ``g`` begins with the first of these rows. One row after another: so the machine reads memory ahead.
    """
    total, far_total = np.empty(X.shape[1]), np.empty(len(far))
    for b in range(len(cuts) - 1):
        for c in range(len(total)):
            total[c] = 0.0
        for k in range(len(far)):
            far_total[k] = 0.0
        for i in range(cuts[b], cuts[b + 1]):
            x, g_i = X[i], g[i - cuts[0]]
            for c in range(len(total)):
                total[c] += g_i * x[c]
            for k in range(len(far)):
                far_total[k] += g_i * (x[far[k]] - first_values[query[i], k])
        for c in range(len(total)):
            sums[b, c] = total[c]
        for k in range(len(far)):
            sums[b, far[k]] = far_total[k]


@kernel
def gather(X, rows, columns, values):
    """values[i, c] = X[rows[i], columns[c]]."""
    for i in range(len(rows)):
        x = X[rows[i]]
        for c in range(len(columns)):
            values[i, c] = x[columns[c]]


@kernel
def add_stored(data, indices, indptr, first, place, values):
    """Add each stored x_ij of the CSR rows from ``first`` on to values[i − first, place_j], unless −1."""
    for i in range(len(values)):
        for entry in range(indptr[first + i], indptr[first + i + 1]):
            k = place[indices[entry]]
            if k >= 0:
                values[i, k] += data[entry]


@kernel
def dense_extremes(X, order, offsets, first, last, spread, largest):
    """As :func:`sparse_extremes`, of a dense matrix and the queries first..last."""
    d = X.shape[1]
    low, high = np.empty(d), np.empty(d)
    for q in range(first, last):
        if offsets[q] == offsets[q + 1]:
            continue
        row = X[order[offsets[q]]]
        for j in range(d):
            low[j], high[j] = row[j], row[j]
        for k in range(offsets[q] + 1, offsets[q + 1]):
            row = X[order[k]]
            for j in range(d):
                low[j], high[j] = min(low[j], row[j]), max(high[j], row[j])
        for j in range(d):
            spread[j] = max(spread[j], high[j] - low[j])
            largest[j] = max(largest[j], max(high[j], -low[j]))


@kernel
def sparse_extremes(data, indices, indptr, order, offsets, spread, largest):
    """Per column the largest max − min within a query and the largest |x|; what is not stored counts as 0."""
    d = len(spread)
    low, high = np.empty(d), np.empty(d)
    count, seen_in = np.zeros(d, dtype=np.int64), np.full(d, -1)
    for q in range(len(offsets) - 1):
        size = offsets[q + 1] - offsets[q]
        for row in order[offsets[q] : offsets[q + 1]]:
            for entry in range(indptr[row], indptr[row + 1]):
                j, x = indices[entry], data[entry]
                if seen_in[j] != q:
                    seen_in[j], low[j], high[j], count[j] = q, x, x, 0
                low[j], high[j] = min(low[j], x), max(high[j], x)
                count[j] += 1
        for row in order[offsets[q] : offsets[q + 1]]:
            for entry in range(indptr[row], indptr[row + 1]):
                j = indices[entry]
                if count[j] < size:
                    low[j], high[j] = min(low[j], 0.0), max(high[j], 0.0)
                spread[j] = max(spread[j], high[j] - low[j])
                largest[j] = max(largest[j], max(high[j], -low[j]))


@kernel
def minimise_quadratic(hessian, gradient, w, up, down, ridge, tol, max_sweeps):
    """Minimise over z: gᵀ(z − w) + ½(z − w)ᵀH(z − w) + Σ_j [up_j z_j⁺ + down_j z_j⁻ + ½ ridge z_j²].

    Stops when a sweep moves no coordinate's slope by more than ``tol``. Returns z.
    """
    d = len(w)
    z, slope = w.copy(), gradient.copy()
    for _ in range(max_sweeps):
        largest = 0.0
        for j in range(d):
            h = hessian[j, j]
            if h + ridge <= 0.0:
                continue
            u = h * z[j] - slope[j]
            new = 0.0
            if u > up[j]:
                new = (u - up[j]) / (h + ridge)
            elif u < -down[j]:
                new = (u + down[j]) / (h + ridge)
            step = new - z[j]
            if step != 0.0:
                z[j] = new
                for k in range(d):
                    slope[k] += hessian[k, j] * step
                largest = max(largest, abs(step) * (h + ridge))
        if largest <= tol:
            break
    return z


@helper
def _add_parts(gradients, hessians, pairs, parts, sign, g, h, n_pairs):
    """Add ``sign`` times the sums of some parts to g and h; returns n_pairs with their pairs."""
    for part in parts:
        for i in range(len(g)):
            g[i] += sign * gradients[part, i]
            for j in range(len(g)):
                h[i, j] += sign * hessians[part, i, j]
        n_pairs += sign * pairs[part]
    return n_pairs


@kernel
def minima_without(gradients, hessians, pairs, members, w, up, down, ridge, tol, max_sweeps, z):
    """z[k] = the minimum of :func:`minimise_quadratic` without the parts members[k], for every fold k.

    ``gradients`` and ``hessians`` hold sums over the ``pairs`` of each part; up[k], down[k] are the slopes.
    A coordinate is settled when it moves its slope by no more than ``tol`` times the largest violation.
    """
    d, all_parts = len(w), np.arange(len(pairs))
    whole_g, whole_h, n_pairs = np.zeros(d), np.zeros((d, d)), 0.0
    n_pairs = _add_parts(gradients, hessians, pairs, all_parts, 1.0, whole_g, whole_h, n_pairs)
    for k in range(len(members)):
        g, h = whole_g.copy(), whole_h.copy()
        left = _add_parts(gradients, hessians, pairs, members[k], -1.0, g, h, n_pairs)
        for i in range(d):
            g[i] /= left
            for j in range(d):
                h[i, j] /= left
        largest = 0.0
        for j in range(d):
            if w[j] > 0:
                off = abs(g[j] + up[k, j] + ridge[k] * w[j])
            elif w[j] < 0:
                off = abs(g[j] - down[k, j] + ridge[k] * w[j])
            else:
                off = max(0.0, -g[j] - up[k, j], g[j] - down[k, j])
            if off < np.inf:
                largest = max(largest, off)
        minimum = minimise_quadratic(h, g, w, up[k], down[k], ridge[k], tol * largest, max_sweeps)
        for j in range(d):
            z[k, j] = minimum[j]
