"""Sums over the pairs of each query, sorting, and weights of documents in them."""

from typing import NamedTuple

import numpy as np

from ranksieve._types import FloatArray, IntArray
from ranksieve.kernels.compiling import helper, kernel


class Documents(NamedTuple):
    """Query q has the documents offsets[q]..offsets[q + 1] and the weight weight[q].

    ``level`` and ``mass``, their weights (None: all 1), have one number per document.
    """

    offsets: IntArray
    level: IntArray
    weight: FloatArray
    mass: FloatArray | None


class Ranked(NamedTuple):
    """Scores less the mean of their query, and each query's documents in the order of these."""

    t: FloatArray
    order: IntArray


@helper
def mass_of(mass, i):
    """The weight of a document."""
    return 1 if mass is None else mass[i]


@helper
def masses_of(mass, lo, hi):
    """The weights of the documents lo..hi."""
    if mass is not None:
        return mass[lo:hi]
    return mass  # a None of its own would make the type of either kind "array or None"


@kernel
def pairs_of_levels(of_level, starts, pairs):
    """Of each query, the sum over pairs of its levels of the product of their weights; nothing cancels."""
    for q in range(len(pairs)):
        below, pairs[q] = 0.0, 0.0
        for k in range(starts[q], starts[q + 1]):
            pairs[q] += of_level[k] * below
            below += of_level[k]


MOVES = 4  # per item: an order that takes more of them is not nearly right
RUN = 24  # runs of this length are sorted by insertion before they are merged


@helper
def before(a, i, b, j):
    """Whether (score a, position i) comes before (score b, position j): a total order, so ties are unique."""
    return a < b or (a == b and i < j)


@helper
def _repair(key, item):
    """Sort by insertion, as long as that takes few moves: whether it is done."""
    left = MOVES * len(key)
    for i in range(1, len(key)):
        k, it = key[i], item[i]
        j = i
        while j > 0 and before(k, it, key[j - 1], item[j - 1]):
            key[j], item[j] = key[j - 1], item[j - 1]
            j -= 1
        key[j], item[j] = k, it
        left -= i - j
        if left < 0:
            return False
    return True


@kernel
def sort_by_key(key, item, key_buffer, item_buffer):
    """Sort ``key`` ascending, ties by ``item``, carrying ``item`` along; linear when nearly sorted."""
    n = len(key)
    if _repair(key, item):
        return
    for start in range(0, n, RUN):
        for i in range(start + 1, min(start + RUN, n)):
            k, it = key[i], item[i]
            j = i
            while j > start and before(k, it, key[j - 1], item[j - 1]):
                key[j], item[j] = key[j - 1], item[j - 1]
                j -= 1
            key[j], item[j] = k, it
    width = RUN
    while width < n:
        for start in range(0, n - width, 2 * width):
            _merge(key, item, start, start + width, min(start + 2 * width, n), key_buffer, item_buffer)
        width *= 2


@helper
def _merge(key, item, start, middle, stop, key_buffer, item_buffer):
    """Merge the sorted runs [start, middle) and [middle, stop) in place, at no cost if they are in order."""
    if not before(key[middle], item[middle], key[middle - 1], item[middle - 1]):
        return
    length = middle - start
    for i in range(length):
        key_buffer[i], item_buffer[i] = key[start + i], item[start + i]
    left, right, out = 0, middle, start
    while left < length and right < stop:
        if before(key[right], item[right], key_buffer[left], item_buffer[left]):
            key[out], item[out] = key[right], item[right]
            right += 1
        else:
            key[out], item[out] = key_buffer[left], item_buffer[left]
            left += 1
        out += 1
    while left < length:
        key[out], item[out] = key_buffer[left], item_buffer[left]
        left += 1
        out += 1


@helper
def longest(offsets, first, last):
    """The longest of the runs first..last, run q being offsets[q]..offsets[q + 1]."""
    most = 0
    for q in range(first, last):
        most = max(most, offsets[q + 1] - offsets[q])
    return most


@helper
def centre(values, centred):
    """Values of a query less their mean."""
    mean = 0.0
    for i in range(len(values)):
        mean += values[i] - values[0]
    mean = mean / max(len(values), 1) + (values[0] if len(values) > 0 else 0.0)
    for i in range(len(values)):
        centred[i] = values[i] - mean


@kernel
def centre_and_sort(s, offsets, first, last, ranked):
    """For the queries first..last: ``ranked`` becomes the scores less the query's mean, and their order.

    ``order[lo:hi]`` holds a permutation of lo..hi-1 on entry (any one; the previous evaluation's is best).
    """
    most = longest(offsets, first, last)
    key, key_buffer, item_buffer = np.empty(most), np.empty(most), np.empty(most, dtype=np.int64)
    for q in range(first, last):
        lo, hi = offsets[q], offsets[q + 1]
        centre(s[lo:hi], ranked.t[lo:hi])
        for k in range(lo, hi):
            key[k - lo] = ranked.t[ranked.order[k]]
        sort_by_key(key[: hi - lo], ranked.order[lo:hi], key_buffer, item_buffer)


@helper
def clear(target):
    for c in range(len(target)):
        target[c] = 0.0


@helper
def add(target, factor, source):
    for c in range(len(target)):
        target[c] += factor * source[c]


@helper
def _room(documents, first, last):
    """Arrays for the scores and depths of the longest of some queries, and their highest level."""
    highest, most = 0, longest(documents.offsets, first, last)
    for i in range(documents.offsets[first], documents.offsets[last]):
        highest = max(highest, documents.level[i])
    return np.empty(most), np.empty(most, dtype=np.int64), highest


@helper
def _gather(documents, ranked, q, side, scores, depths):
    """Scores and depths of a query's documents, from the side's highest score down.

    Partners on a side have smaller depths: these are levels, or for uppers count down from the highest.
    Returns the largest depth and the first place in the order.
    """
    lo, hi, top = documents.offsets[q], documents.offsets[q + 1], 0
    for i in range(lo, hi):
        top = max(top, documents.level[i])
    start, shift = (hi - 1, 0) if side > 0 else (lo, top)
    for a in range(hi - lo):
        i = ranked.order[start - side * a]
        scores[a], depths[a] = side * ranked.t[i], shift + side * documents.level[i]
    return top, start


@kernel
def active_partners(documents, ranked, first, last, side, table, count, slack):
    """Per document, the number (or mass) of its active partners on one side and Σ ξ over them.

    With a ``table``, partners count table[level of the document, level of the partner] times in both sums.
    """
    scores, depths, highest = _room(documents, first, last)
    counts, totals = np.empty(highest + 1), np.empty(highest + 1)
    for q in range(first, last):
        n, k = documents.offsets[q + 1] - documents.offsets[q], 0
        top, start = _gather(documents, ranked, q, side, scores, depths)
        clear(counts)
        clear(totals)
        for a in range(n):
            while k < n and 1.0 - (scores[a] - scores[k]) > 0.0:
                mass = mass_of(documents.mass, ranked.order[start - side * k])
                _insert(table, counts, totals, depths[k], top, scores[k], mass)
                k += 1
            c, s = _sums_below(table, counts, totals, depths[a], top, side)
            i = ranked.order[start - side * a]
            count[i], slack[i] = c, c * (1.0 - scores[a]) + s


@helper
def _insert(table, counts, totals, depth, top, score, mass):
    """Add a document to the sums of its depth: those of a Fenwick tree, or with a table its own alone."""
    if table is None:
        node = depth + 1
        while node <= top:
            counts[node] += mass
            totals[node] += mass * score
            node += node & -node
    else:
        counts[depth] += mass
        totals[depth] += mass * score


@helper
def _sums_below(table, counts, totals, depth, top, side):
    """The sums over all smaller depths."""
    c, s = 0.0, 0.0
    if table is None:
        while depth > 0:
            c += counts[depth]
            s += totals[depth]
            depth -= depth & -depth
    else:
        for other in range(depth - 1, -1, -1):
            weight = _weight(table, depth, other, top, side)
            c += weight * counts[other]
            s += weight * totals[other]
    return c, s


@helper
def _weight(table, depth, other, top, side):
    """The weight of a pair of depths."""
    return table[depth, other] if side > 0 else table[top - depth, top - other]


@kernel
def partner_rows(documents, ranked, first, last, side, table, rows, sums):
    """``sums[i] += Σ_j rows[j]`` over the active partners j of each document i on one side.

    ``rows`` and ``sums`` hold the documents of these queries only; ``table`` as in :func:`active_partners`.
    """
    scores, depths, highest = _room(documents, first, last)
    totals, base = np.empty((highest + 1, rows.shape[1])), documents.offsets[first]
    for q in range(first, last):
        n, k = documents.offsets[q + 1] - documents.offsets[q], 0
        top, start = _gather(documents, ranked, q, side, scores, depths)
        for depth in range(top + 1):
            clear(totals[depth])
        for a in range(n):
            while k < n and 1.0 - (scores[a] - scores[k]) > 0.0:
                _insert_row(table, totals, depths[k], top, rows[ranked.order[start - side * k] - base])
                k += 1
            _add_rows_below(table, totals, depths[a], top, side, sums[ranked.order[start - side * a] - base])


@helper
def _insert_row(table, totals, depth, top, row):
    """As :func:`_insert`, of a row."""
    if table is None:
        node = depth + 1
        while node <= top:
            add(totals[node], 1.0, row)
            node += node & -node
    else:
        add(totals[depth], 1.0, row)


@helper
def _add_rows_below(table, totals, depth, top, side, target):
    """Add to ``target`` as :func:`_sums_below`."""
    if table is None:
        while depth > 0:
            add(target, 1.0, totals[depth])
            depth -= depth & -depth
    else:
        for other in range(depth - 1, -1, -1):
            add(target, _weight(table, depth, other, top, side), totals[other])


@kernel
def degree_less(degree, rows, weight, sums):
    """sums[i] ← degree[i]·rows[i] − weight[i]·sums[i]."""
    for i in range(rows.shape[0]):
        for c in range(rows.shape[1]):
            sums[i, c] = degree[i] * rows[i, c] - weight[i] * sums[i, c]
