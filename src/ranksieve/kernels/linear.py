"""Linear algebra: products with rows, scores of models, extremes, coordinate descent.

A shifted column is read minus its value in the first row of the query (``first_values``).
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from ranksieve._types import AnyArray, IntArray
from ranksieve.kernels.compiling import kernel

ROWS_PER_BLOCK = 200  # not a power of two, so that columns of a block do not evict each other from the cache


class StoredRows(NamedTuple):
    """Entries of the rows of a CSR matrix: those of row r are starts[r]..starts[r + 1]."""

    values: AnyArray
    columns: AnyArray
    starts: IntArray


@kernel
def weighted_sums(X, columns, weights, scores):
    """scores_i = Σ_k weights_k · X[i, columns_k], added in that order: equal rows have equal scores."""
    for i in range(len(scores)):
        total = 0.0
        for k in range(len(columns)):
            total += weights[k] * X[i, columns[k]]
        scores[i] = total


@kernel
def weighted_sums_of_models(X, columns, starts, positions, weights, scores):
    """scores[m, i] = Σ_e weights_e · X[i, columns[positions_e]], e from starts_m to starts_{m+1}, in order.

    The result has the same bits as ``weighted_sums`` for each model. Every row is read once for all models,
    into a block with one row per column, so that the sums run over contiguous memory.
    """
    block, totals = np.empty((len(columns), ROWS_PER_BLOCK)), np.empty(ROWS_PER_BLOCK)
    for first in range(0, X.shape[0], ROWS_PER_BLOCK):
        size = min(ROWS_PER_BLOCK, X.shape[0] - first)
        for i in range(size):
            for k in range(len(columns)):
                block[k, i] = X[first + i, columns[k]]
        for m in range(len(scores)):
            for i in range(size):
                totals[i] = 0.0
            for e in range(starts[m], starts[m + 1]):
                weight, values = weights[e], block[positions[e]]
                for i in range(size):
                    totals[i] += weight * values[i]
            for i in range(size):
                scores[m, first + i] = totals[i]


@partial(kernel, fastmath={"reassoc", "contract"})
def row_products(X, w, shifted, shifted_w, first_values, query, first, last, products):
    """X[i]·w + Σ_k shifted_w_k·(X[i, shifted_k] − first_values[query_i, k]) for the rows first..last."""
    for i in range(first, last):
        x, total = X[i], 0.0
        for c in range(len(w)):
            total += x[c] * w[c]
        for k in range(len(shifted)):
            total += shifted_w[k] * (x[shifted[k]] - first_values[query[i], k])
        products[i - first] = total


@kernel
def chosen_products(X, columns, weights, shifted, shifted_w, first_values, query, first, last, products):
    """Σ_k weights_k·X[i, columns_k] + Σ_k shifted_w_k·(X[i, shifted_k] − first_values[query_i, k]).

    For the rows first..last. Terms are added in this order, so the bits do not depend on the block size.
    """
    for i in range(first, last):
        x, total = X[i], 0.0
        for k in range(len(columns)):
            total += weights[k] * x[columns[k]]
        for k in range(len(shifted)):
            total += shifted_w[k] * (x[shifted[k]] - first_values[query[i], k])
        products[i - first] = total


@kernel
def column_sums(X, g, shifted, first_values, query, cuts, sums):
    """sums[b] += Σ g_i·x_i over the rows between two cuts, with shifted columns.

    ``g`` starts at the first of these rows. Rows are added one by one: memory is read sequentially, and the
    bits do not depend on the number of rows per call.
    """
    total, shifted_total = np.empty(X.shape[1]), np.empty(len(shifted))
    for b in range(len(cuts) - 1):
        for c in range(len(total)):
            total[c] = sums[b, c]
        for k in range(len(shifted)):
            shifted_total[k] = sums[b, shifted[k]]
        for i in range(cuts[b], cuts[b + 1]):
            x, g_i = X[i], g[i - cuts[0]]
            for c in range(len(total)):
                total[c] += g_i * x[c]
            for k in range(len(shifted)):
                shifted_total[k] += g_i * (x[shifted[k]] - first_values[query[i], k])
        for c in range(len(total)):
            sums[b, c] = total[c]
        for k in range(len(shifted)):
            sums[b, shifted[k]] = shifted_total[k]


@kernel
def add_columns(columns, weights, n_plain, first_values, query, products):
    """products += Σ_k weights_k·columns_k in order; the columns from n_plain on are shifted.

    ``columns`` has one row per column. The result has the same bits as :func:`chosen_products`.
    """
    for k in range(n_plain):
        x, weight = columns[k], weights[k]
        for i in range(len(products)):
            products[i] += weight * x[i]
    for k in range(n_plain, len(weights)):
        x, weight = columns[k], weights[k]
        for i in range(len(products)):
            products[i] += weight * (x[i] - first_values[query[i], k - n_plain])


@kernel
def add_column_sums(columns, g, shifted, first_values, query, sums):
    """sums_c += Σ g_i·columns[c, i], row by row, with shifted columns.

    The result has the same bits as :func:`column_sums`. Eight columns at a time are independent of each
    other, which keeps the processor's pipeline full.
    """
    d, shifted_total = len(columns) - len(columns) % 8, np.empty(len(shifted))
    for k in range(len(shifted)):
        x, shifted_total[k] = columns[shifted[k]], sums[shifted[k]]
        for i in range(len(g)):
            shifted_total[k] += g[i] * (x[i] - first_values[query[i], k])
    for c in range(0, d, 8):
        x0, x1, x2, x3 = columns[c], columns[c + 1], columns[c + 2], columns[c + 3]
        x4, x5, x6, x7 = columns[c + 4], columns[c + 5], columns[c + 6], columns[c + 7]
        s0, s1, s2, s3 = sums[c], sums[c + 1], sums[c + 2], sums[c + 3]
        s4, s5, s6, s7 = sums[c + 4], sums[c + 5], sums[c + 6], sums[c + 7]
        for i in range(len(g)):
            g_i = g[i]
            s0, s1, s2, s3 = s0 + g_i * x0[i], s1 + g_i * x1[i], s2 + g_i * x2[i], s3 + g_i * x3[i]
            s4, s5, s6, s7 = s4 + g_i * x4[i], s5 + g_i * x5[i], s6 + g_i * x6[i], s7 + g_i * x7[i]
        sums[c], sums[c + 1], sums[c + 2], sums[c + 3] = s0, s1, s2, s3
        sums[c + 4], sums[c + 5], sums[c + 6], sums[c + 7] = s4, s5, s6, s7
    for c in range(d, len(columns)):
        x, total = columns[c], sums[c]
        for i in range(len(g)):
            total += g[i] * x[i]
        sums[c] = total
    for k in range(len(shifted)):
        sums[shifted[k]] = shifted_total[k]


@kernel
def gather(X, rows, columns, values):
    """values[i, c] = X[rows[i], columns[c]]."""
    for i in range(len(rows)):
        x = X[rows[i]]
        for c in range(len(columns)):
            values[i, c] = x[columns[c]]


@kernel
def add_stored(data, indices, indptr, first, position, values):
    """values[i − first, position_j] += x_ij for stored entries of CSR rows i ≥ first, if position_j ≥ 0."""
    for i in range(len(values)):
        for entry in range(indptr[first + i], indptr[first + i + 1]):
            k = position[indices[entry]]
            if k >= 0:
                values[i, k] += data[entry]


@kernel
def stored_products(rows, w, first, last, products):
    """Products of the CSR rows first..last with w, each added in the order of its entries.

    Entries whose weight is 0 do not change the bits.
    """
    values, columns, starts = rows
    for i in range(first, last):
        total = 0.0
        for entry in range(starts[i], starts[i + 1]):
            total += values[entry] * w[columns[entry]]
        products[i - first] = total


@kernel
def stored_column_sums(rows, g, cuts, sums):
    """sums[b] += Σ g_i·x_i over the CSR rows between two cuts; ``g`` starts at the first of these rows."""
    values, columns, starts = rows
    for b in range(len(cuts) - 1):
        total = sums[b]
        for i in range(cuts[b], cuts[b + 1]):
            g_i = g[i - cuts[0]]
            for entry in range(starts[i], starts[i + 1]):
                total[columns[entry]] += g_i * values[entry]


@kernel
def count_stored(rows, order, position, counts):
    """counts_k = number of entries of the row order_k with position_j ≥ 0."""
    _, columns, starts = rows
    for k in range(len(order)):
        counts[k] = 0
        for entry in range(starts[order[k]], starts[order[k] + 1]):
            counts[k] += position[columns[entry]] >= 0


@kernel
def copy_stored(rows, order, position, copies):
    """Fill ``copies`` with the entries of the rows ``order`` with position_j ≥ 0, in column position_j."""
    values, columns, starts = rows
    new_values, new_columns, new_starts = copies
    for k in range(len(order)):
        to = new_starts[k]
        for entry in range(starts[order[k]], starts[order[k] + 1]):
            j = position[columns[entry]]
            if j >= 0:
                new_values[to], new_columns[to] = values[entry], j
                to += 1


@kernel
def dense_extremes(X, order, offsets, first, last, spread, largest):
    """:func:`sparse_extremes` for a dense matrix and the queries first..last."""
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
    """Per column, the largest max − min within a query and the largest |x|; entries not stored are 0."""
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
def stored_moments(stored, rows, starts, weight, least, greatest, mean, squares):
    """Per column, Σ weight·(x − mean of its group)² over groups of rows; entries not stored are 0.

    Group g has the rows[starts[g]:starts[g + 1]], of positive total weight. ``least``, ``greatest`` and
    ``mean`` (0 on entry) are those of the last group with entries of the column; the mean is x, and the
    squares are 0, if all values of a group are x.
    """
    d = len(mean)
    seen_in, count, columns = np.full(d, -1), np.empty(d, dtype=np.int64), np.empty(d, dtype=np.int64)
    sums, stored_weight, deviations = np.empty(d), np.empty(d), np.empty(d)
    for g in range(len(starts) - 1):
        size, total, n_columns = starts[g + 1] - starts[g], 0.0, 0
        for row in rows[starts[g] : starts[g + 1]]:
            total += weight[row]
            for entry in range(stored.starts[row], stored.starts[row + 1]):
                j, x = stored.columns[entry], stored.values[entry]
                if seen_in[j] != g:
                    seen_in[j], columns[n_columns], n_columns = g, j, n_columns + 1
                    least[j], greatest[j], count[j], sums[j], stored_weight[j] = x, x, 0, 0.0, 0.0
                least[j], greatest[j], count[j] = min(least[j], x), max(greatest[j], x), count[j] + 1
                sums[j] += weight[row] * x
                stored_weight[j] += weight[row]
        for j in columns[:n_columns]:
            mean[j], deviations[j] = sums[j] / total, 0.0
            if count[j] < size:
                least[j], greatest[j] = min(least[j], 0.0), max(greatest[j], 0.0)
                deviations[j] = max(total - stored_weight[j], 0.0) * mean[j] ** 2
        for row in rows[starts[g] : starts[g + 1]]:
            for entry in range(stored.starts[row], stored.starts[row + 1]):
                j = stored.columns[entry]
                deviations[j] += weight[row] * (stored.values[entry] - mean[j]) ** 2
        for j in columns[:n_columns]:
            if np.isnan(mean[j]):  # comparisons skip a NaN
                least[j] = greatest[j] = np.nan
            if deviations[j] == 0.0 or least[j] == greatest[j]:
                mean[j], deviations[j] = least[j], 0.0  # the mean of equal values has a rounding error
            squares[j] += deviations[j]


@kernel
def minimise_quadratic(hessian, gradient, w, up, down, ridge, tol, max_sweeps):
    """Minimise over z: gᵀ(z − w) + ½(z − w)ᵀH(z − w) + Σ_j [up_j z_j⁺ + down_j z_j⁻ + ½ ridge z_j²].

    H is symmetric. Stops when a sweep changes no coordinate's slope by more than ``tol``. Returns z.
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
                    slope[k] += hessian[j, k] * step
                largest = max(largest, abs(step) * (h + ridge))
        if largest <= tol:
            break
    return z


@kernel
def descend(hessian, slope, w, threshold, ridge, inside, signs, tol, max_sweeps):
    """Minimise ½wᵀHw + bᵀw + Σ_j ρ_j(w_j) in place; also updates ``slope`` = Hw + b.

    ρ_j(w) = ½μw² for features ``inside``, else min over 0 < u ≤ 1 of ½μw²/u + ½(t_j²/μ)u: the line t_j|w| up
    to |w| = t_j/μ, the parabola beyond. Stops when a sweep changes no slope by more than ``tol``.
    """
    for _ in range(max_sweeps):
        worst = 0.0
        for j in range(len(w)):
            h = hessian[j, j]
            b = slope[j] - h * w[j]
            size, t = abs(b), threshold[j]
            if signs[j] * b > 0.0 or (not inside[j] and size <= t):
                z = 0.0
            elif inside[j] or h <= 0.0 or size * ridge > t * (ridge + h):
                z = -b / (h + ridge)
            else:
                z = -np.sign(b) * (size - t) / h
            step = z - w[j]
            if step != 0.0:
                w[j] = z
                worst = max(worst, abs(step) * (h + ridge))
                for i in range(len(w)):
                    slope[i] += step * hessian[i, j]
        if worst <= tol:
            break
