"""Concordance of columns (Kendall), O(n log n) per pair of columns."""

import numpy as np

from ranksieve.kernels.compiling import helper, kernel


@helper
def _inversions(values, buffer):
    """Number of pairs whose earlier value is larger; sorts ``values`` in place."""
    n, count, width = len(values), 0, 1
    while width < n:
        for first in range(0, n, 2 * width):
            middle, end = min(first + width, n), min(first + 2 * width, n)
            i, j, k = first, middle, first
            while i < middle and j < end:
                if values[j] < values[i]:
                    buffer[k] = values[j]
                    count += middle - i
                    j += 1
                else:
                    buffer[k] = values[i]
                    i += 1
                k += 1
            while i < middle:
                buffer[k] = values[i]
                i, k = i + 1, k + 1
            while j < end:
                buffer[k] = values[j]
                j, k = j + 1, k + 1
            for k in range(first, end):
                values[k] = buffer[k]
        width *= 2
    return count


@helper
def _tied_pairs(ranks):
    """Number of pairs with equal ranks (integers from 0)."""
    counts, total = np.zeros(len(ranks), dtype=np.int64), 0
    for rank in ranks:
        total += counts[rank]
        counts[rank] += 1
    return total


@helper
def _sort_by_rank(ranks, order):
    """Rows of ``order`` sorted by ascending rank; the sort is stable."""
    starts = np.zeros(len(ranks) + 1, dtype=np.int64)
    for rank in ranks:
        starts[rank + 1] += 1
    for rank in range(len(ranks)):
        starts[rank + 1] += starts[rank]
    sorted_rows = np.empty_like(order)
    for row in order:
        sorted_rows[starts[ranks[row]]] = row
        starts[ranks[row]] += 1
    return sorted_rows


@kernel
def concordances(ranks, total):
    """total[i, j] = Σ sign(x_s − x_t)·sign(z_s − z_t) over pairs of rows, x and z the columns i and j.

    ``ranks`` has one row per column, with integers from 0 to the number of documents − 1. Pairs tied in
    either column add 0. Discordant pairs are the inversions of z once the rows are sorted by x, then z.
    """
    d, n = ranks.shape
    pairs, rows = n * (n - 1) // 2, np.arange(n)
    tied, values, buffer = np.empty(d, dtype=np.int64), np.empty(n, ranks.dtype), np.empty(n, ranks.dtype)
    for i in range(d):
        tied[i] = _tied_pairs(ranks[i])
        total[i, i] = pairs - tied[i]
    for j in range(d):
        by_z = _sort_by_rank(ranks[j], rows)
        for i in range(j):
            order = _sort_by_rank(ranks[i], by_z)
            both, run = 0, 0  # rows tied in both columns are adjacent
            for k in range(n):
                values[k] = ranks[j, order[k]]
                same = k > 0 and values[k] == values[k - 1] and ranks[i, order[k]] == ranks[i, order[k - 1]]
                run = run + 1 if same else 0
                both += run
            against = _inversions(values, buffer)
            total[i, j] = total[j, i] = pairs - tied[i] - tied[j] + both - 2 * against
