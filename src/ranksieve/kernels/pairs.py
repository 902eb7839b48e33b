"""Sums over the pairs of each query, and sorting by score."""

from typing import NamedTuple

import numpy as np

from ranksieve._types import FloatArray, IntArray
from ranksieve.kernels.compiling import helper, kernel


class GroupedDocuments(NamedTuple):
    """Documents grouped by query: query q has the documents offsets[q]..offsets[q + 1].

    ``level`` and ``document_weight`` (None: all 1) have one number per document, ``query_weight`` one per
    query.
    """

    offsets: IntArray
    level: IntArray
    query_weight: FloatArray
    document_weight: FloatArray | None


class Ranking(NamedTuple):
    """Scores minus the mean of their query (``t``), and each query's documents sorted by ``t``."""

    t: FloatArray
    order: IntArray


@helper
def weight_of(document_weight, i):
    return 1 if document_weight is None else document_weight[i]


@helper
def weights_of(document_weight, lo, hi):
    if document_weight is not None:
        return document_weight[lo:hi]
    return document_weight  # a literal None here would make the type "array or None"


@kernel
def pairs_of_levels(level_weight, starts, pairs):
    """Per query, Σ over pairs of levels of the product of their weights, without cancellation."""
    for q in range(len(pairs)):
        below, pairs[q] = 0.0, 0.0
        for k in range(starts[q], starts[q + 1]):
            pairs[q] += level_weight[k] * below
            below += level_weight[k]


MAX_MOVES_PER_ITEM = 4  # with more, the order is not nearly sorted
RUN_LENGTH = 24  # runs that are sorted by insertion before merging


@helper
def precedes(a, i, b, j):
    """Return True if (score a, position i) sorts before (score b, position j): a total order."""
    return a < b or (a == b and i < j)


@helper
def _insertion_sort(key, item, start, stop, moves_left):
    """Sort start..stop by insertion; return False if that takes too many moves."""
    for i in range(start + 1, stop):
        k, it = key[i], item[i]
        j = i
        while j > start and precedes(k, it, key[j - 1], item[j - 1]):
            key[j], item[j] = key[j - 1], item[j - 1]
            j -= 1
        key[j], item[j] = k, it
        moves_left -= i - j
        if moves_left < 0:
            return False
    return True


@kernel
def sort_by_key(key, item, key_buffer, item_buffer):
    """Sort ``key`` and ``item`` together by key, then item; linear time if nearly sorted."""
    n = len(key)
    start = np.int64(0)  # a literal would compile the function twice
    if _insertion_sort(key, item, start, n, MAX_MOVES_PER_ITEM * n):
        return
    while start < n:
        _insertion_sort(key, item, start, min(start + RUN_LENGTH, n), RUN_LENGTH**2)
        start += RUN_LENGTH
    width = RUN_LENGTH
    while width < n:
        for start in range(0, n - width, 2 * width):
            _merge(key, item, start, start + width, min(start + 2 * width, n), key_buffer, item_buffer)
        width *= 2


@helper
def _merge(key, item, start, middle, stop, key_buffer, item_buffer):
    """Merge the sorted runs [start, middle) and [middle, stop) in place; free if they are in order."""
    if not precedes(key[middle], item[middle], key[middle - 1], item[middle - 1]):
        return
    length = middle - start
    for i in range(length):
        key_buffer[i], item_buffer[i] = key[start + i], item[start + i]
    left, right, out = 0, middle, start
    while left < length and right < stop:
        if precedes(key[right], item[right], key_buffer[left], item_buffer[left]):
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
def longest_run(offsets, first, last):
    """Length of the longest of the runs first..last, where run q is offsets[q]..offsets[q + 1]."""
    most = 0
    for q in range(first, last):
        length = offsets[q + 1] - offsets[q]
        most = length if length > most else most
    return most


@helper
def centre(values, centred):
    """Subtract the mean from the values of a query."""
    mean = 0.0
    for i in range(len(values)):
        mean += values[i] - values[0]
    mean = mean / max(len(values), 1) + (values[0] if len(values) > 0 else 0.0)
    for i in range(len(values)):
        centred[i] = values[i] - mean


@kernel
def centre_and_sort(s, offsets, first, last, ranking):
    """Fill ``ranking`` for the queries first..last.

    On entry ``order[lo:hi]`` is any permutation of lo..hi-1; the order of similar scores is fastest.
    """
    most = longest_run(offsets, first, last)
    key, key_buffer, item_buffer = np.empty(most), np.empty(most), np.empty(most, dtype=np.int64)
    for q in range(first, last):
        lo, hi = offsets[q], offsets[q + 1]
        centre(s[lo:hi], ranking.t[lo:hi])
        for k in range(lo, hi):
            key[k - lo] = ranking.t[ranking.order[k]]
        sort_by_key(key[: hi - lo], ranking.order[lo:hi], key_buffer, item_buffer)


@helper
def clear(target):
    for c in range(len(target)):
        target[c] = 0.0


@helper
def add(target, factor, source):
    for c in range(len(target)):
        target[c] += factor * source[c]


@helper
def _buffers(documents, first, last):
    """Arrays for the scores and depths of one query of first..last, and the highest level of all."""
    highest, most = 0, longest_run(documents.offsets, first, last)
    for i in range(documents.offsets[first], documents.offsets[last]):
        highest = max(highest, documents.level[i])
    return np.empty(most), np.empty(most, dtype=np.int64), highest


@helper
def _gather(documents, ranking, q, side, scores, depths):
    """Scores and depths of a query's documents, from the highest score of the side down.

    Partners have smaller depths. On the side of less relevant partners (``side`` = 1) depths are levels and
    scores keep their sign; on the side of more relevant ones (−1) depths count down from the highest level
    and scores are negated. Returns the largest depth and the first index into the order.
    """
    lo, hi, top = documents.offsets[q], documents.offsets[q + 1], 0
    for i in range(lo, hi):
        top = max(top, documents.level[i])
    start, shift = (hi - 1, 0) if side > 0 else (lo, top)
    for a in range(hi - lo):
        i = ranking.order[start - side * a]
        scores[a], depths[a] = side * ranking.t[i], shift + side * documents.level[i]
    return top, start


@kernel
def active_partners(documents, ranking, first, last, side, table, count, slack):
    """Per document, the number (or total weight) of its active partners on one side, and Σ ξ over them.

    With a ``table``, both sums weigh a partner by table[level of the document, level of the partner].
    """
    scores, depths, highest = _buffers(documents, first, last)
    counts, totals = np.empty(highest + 1), np.empty(highest + 1)
    for q in range(first, last):
        n, k = documents.offsets[q + 1] - documents.offsets[q], 0
        top, start = _gather(documents, ranking, q, side, scores, depths)
        clear(counts)
        clear(totals)
        for a in range(n):
            while k < n and 1.0 - (scores[a] - scores[k]) > 0.0:
                weight = weight_of(documents.document_weight, ranking.order[start - side * k])
                _insert(table, counts, totals, depths[k], top, scores[k], weight)
                k += 1
            c, s = _sums_below(table, counts, totals, depths[a], top, side)
            i = ranking.order[start - side * a]
            count[i], slack[i] = c, c * (1.0 - scores[a]) + s


@helper
def _insert(table, counts, totals, depth, top, score, weight):
    """Add a document to the sums of its depth: in a Fenwick tree, or with a table one sum per depth."""
    if table is None:
        node = depth + 1
        while node <= top:
            counts[node] += weight
            totals[node] += weight * score
            node += node & -node
    else:
        counts[depth] += weight
        totals[depth] += weight * score


@helper
def _sums_below(table, counts, totals, depth, top, side):
    """Sums over all smaller depths."""
    c, s = 0.0, 0.0
    if table is None:
        while depth > 0:
            c += counts[depth]
            s += totals[depth]
            depth -= depth & -depth
    else:
        for other in range(depth - 1, -1, -1):
            weight = _pair_weight(table, depth, other, top, side)
            c += weight * counts[other]
            s += weight * totals[other]
    return c, s


@helper
def _pair_weight(table, depth, other, top, side):
    return table[depth, other] if side > 0 else table[top - depth, top - other]


@kernel
def partner_rows(documents, ranking, first, last, side, table, rows, sums):
    """``sums[i] += Σ_j rows[j]`` over the active partners j of each document i on one side.

    ``rows`` and ``sums`` hold the documents of these queries only; ``table`` as in :func:`active_partners`.
    """
    scores, depths, highest = _buffers(documents, first, last)
    totals, base = np.empty((highest + 1, rows.shape[1])), documents.offsets[first]
    for q in range(first, last):
        n, k = documents.offsets[q + 1] - documents.offsets[q], 0
        top, start = _gather(documents, ranking, q, side, scores, depths)
        for depth in range(top + 1):
            clear(totals[depth])
        for a in range(n):
            while k < n and 1.0 - (scores[a] - scores[k]) > 0.0:
                _insert_row(table, totals, depths[k], top, rows[ranking.order[start - side * k] - base])
                k += 1
            _add_rows_below(table, totals, depths[a], top, side, sums[ranking.order[start - side * a] - base])


@helper
def _insert_row(table, totals, depth, top, row):
    if table is None:
        node = depth + 1
        while node <= top:
            add(totals[node], 1.0, row)
            node += node & -node
    else:
        add(totals[depth], 1.0, row)


@helper
def _add_rows_below(table, totals, depth, top, side, target):
    if table is None:
        while depth > 0:
            add(target, 1.0, totals[depth])
            depth -= depth & -depth
    else:
        for other in range(depth - 1, -1, -1):
            add(target, _pair_weight(table, depth, other, top, side), totals[other])


@kernel
def degree_minus_partners(degree, rows, weight, sums):
    """sums[i] ← degree[i]·rows[i] − weight[i]·sums[i]."""
    for i in range(rows.shape[0]):
        for c in range(rows.shape[1]):
            sums[i, c] = degree[i] * rows[i, c] - weight[i] * sums[i, c]
