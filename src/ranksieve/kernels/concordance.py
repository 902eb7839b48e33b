"""How alike columns order the same rows, counted in O(n log n) for each two columns."""

import numpy as np

from ranksieve.kernels.compiling import helper, kernel


@helper
def _inversions(values, room):
    """Pairs of which the earlier value is the larger; sorts the values."""
    n, count, width = len(values), 0, 1
    while width < n:
        for first in range(0, n, 2 * width):
            middle, end = min(first + width, n), min(first + 2 * width, n)
            i, j, k = first, middle, first
            while i < middle and j < end:
                if values[j] < values[i]:
                    room[k] = values[j]
                    count += middle - i
                    j += 1
                else:
                    room[k] = values[i]
                    i += 1
                k += 1
            while i < middle:
                room[k] = values[i]
                i, k = i + 1, k + 1
            while j < end:
                room[k] = values[j]
                j, k = j + 1, k + 1
            for k in range(first, end):
                values[k] = room[k]
        width *= 2
    return count


@helper
def _tied_pairs(ranks):
    """Pairs of equal ranks, which are whole numbers from 0."""
    counts, total = np.zeros(len(ranks), dtype=np.int64), 0
    for rank in ranks:
        total += counts[rank]
        counts[rank] += 1
    return total


@helper
def _places(ranks, order):
    """The rows by ascending rank; those of equal rank stay in the given order."""
    starts = np.zeros(len(ranks) + 1, dtype=np.int64)
    for rank in ranks:
        starts[rank + 1] += 1
    for rank in range(len(ranks)):
        starts[rank + 1] += starts[rank]
    places = np.empty_like(order)
    for row in order:
        places[starts[ranks[row]]] = row
        starts[ranks[row]] += 1
    return places


@kernel
def concordances(ranks, total):
    """total[i, j] = Σ sign(x_s − x_t)·sign(z_s − z_t) over pairs of rows, x and z the columns i and j.

    ``ranks`` has one row per column: whole numbers from 0, below the number of documents. Of all pairs, those
    tied in either column count 0, and those that the columns order against each other are the inversions of z
    in the order by x, then z.
    """
    d, n = ranks.shape
    pairs, rows = n * (n - 1) // 2, np.arange(n)
    tied, values, room = np.empty(d, dtype=np.int64), np.empty(n, ranks.dtype), np.empty(n, ranks.dtype)
    for i in range(d):
        tied[i] = _tied_pairs(ranks[i])
        total[i, i] = pairs - tied[i]
    for j in range(d):
        by_z = _places(ranks[j], rows)
        for i in range(j):
            order = _places(ranks[i], by_z)
            both, run = 0, 0  # pairs tied in both columns stand next to each other
            for k in range(n):
                values[k] = ranks[j, order[k]]
                same = k > 0 and values[k] == values[k - 1] and ranks[i, order[k]] == ranks[i, order[k - 1]]
                run = run + 1 if same else 0
                both += run
            against = _inversions(values, room)
            total[i, j] = total[j, i] = pairs - tied[i] - tied[j] + both - 2 * against
