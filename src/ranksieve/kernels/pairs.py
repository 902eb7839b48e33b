"""Sums over the pairs of each query, sorting, and weights of documents in them."""

import numpy as np

from ranksieve.kernels.compiling import helper, kernel


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


@kernel
def centre_and_sort(s, centred, order, offsets, first, last):
    """For the queries first..last: ``centred`` = scores less the query's mean; ``order`` sorted by score.

    ``order[lo:hi]`` holds a permutation of lo..hi-1 on entry (any one; the previous evaluation's is best).
    """
    longest = 0
    for q in range(first, last):
        longest = max(longest, offsets[q + 1] - offsets[q])
    key, key_buffer = np.empty(longest), np.empty(longest)
    item_buffer = np.empty(longest, dtype=np.int64)
    for q in range(first, last):
        lo, hi = offsets[q], offsets[q + 1]
        mean = 0.0
        for i in range(lo, hi):
            mean += s[i] - s[lo]
        mean = mean / max(hi - lo, 1) + s[lo]
        for i in range(lo, hi):
            centred[i] = s[i] - mean
        for k in range(lo, hi):
            key[k - lo] = centred[order[k]]
        sort_by_key(key[: hi - lo], order[lo:hi], key_buffer, item_buffer)


@helper
def _gather(t, level, order, lo, hi, side, scores, depths):
    """Scores and levels of a query from the side's highest score down; returns the largest depth."""
    top = 0
    for i in range(lo, hi):
        top = max(top, level[i])
    start, shift = (hi - 1, 0) if side > 0 else (lo, top)
    for a in range(hi - lo):
        i = order[start - side * a]
        scores[a], depths[a] = side * t[i], shift + side * level[i]
    return top, start


@helper
def _room(level, offsets, first, last):
    """The longest list and the highest level of some queries."""
    longest, highest = 0, 0
    for q in range(first, last):
        longest = max(longest, offsets[q + 1] - offsets[q])
    for i in range(offsets[first], offsets[last]):
        highest = max(highest, level[i])
    return longest, highest


@kernel
def active_partners(t, level, order, offsets, first, last, side, mass, count, slack):
    """Per document, the number (or mass) of its active partners on one side and Σ ξ over them.

    ``order`` is sorted by ``t`` within each query.
    """
    longest, highest = _room(level, offsets, first, last)
    scores, depths = np.empty(longest), np.empty(longest, dtype=np.int64)
    counts, totals = np.empty(highest + 1), np.empty(highest + 1)
    for q in range(first, last):
        n = offsets[q + 1] - offsets[q]
        top, start = _gather(t, level, order, offsets[q], offsets[q + 1], side, scores, depths)
        _clear(counts, totals, top)
        k = 0
        for a in range(n):
            c, s, node = 0.0, 0.0, depths[a]
            while node > 0 and k < n and 1.0 - (scores[a] - scores[k]) > 0.0:
                partner = mass_of(mass, order[start - side * k])
                _insert(counts, totals, depths[k] + 1, top, scores[k], partner)
                k += 1
            while node > 0:
                c += counts[node]
                s += totals[node]
                node -= node & -node
            i = order[start - side * a]
            count[i], slack[i] = c, c * (1.0 - scores[a]) + s


@helper
def _clear(counts, totals, top):
    for node in range(top + 1):
        counts[node], totals[node] = 0.0, 0.0


@helper
def _insert(counts, totals, node, top, score, mass):
    while node <= top:
        counts[node] += mass
        totals[node] += mass * score
        node += node & -node


@kernel
def weighted_partners(t, level, order, offsets, first, last, side, mass, weights, count, slack):
    """:func:`active_partners` with weights[level of the document, level of its partner] in every sum."""
    longest, highest = _room(level, offsets, first, last)
    scores, depths = np.empty(longest), np.empty(longest, dtype=np.int64)
    counts, totals = np.empty(highest + 1), np.empty(highest + 1)
    for q in range(first, last):
        n = offsets[q + 1] - offsets[q]
        top, start = _gather(t, level, order, offsets[q], offsets[q + 1], side, scores, depths)
        _clear(counts, totals, top)
        k = 0
        for a in range(n):
            while k < n and 1.0 - (scores[a] - scores[k]) > 0.0:
                j = order[start - side * k]
                counts[level[j]] += mass_of(mass, j)
                totals[level[j]] += mass_of(mass, j) * scores[k]
                k += 1
            i = order[start - side * a]
            c, s = 0.0, 0.0
            for other in range(level[i] - side, top + 1 if side < 0 else -1, -side):
                c += weights[level[i], other] * counts[other]
                s += weights[level[i], other] * totals[other]
            count[i], slack[i] = c, c * (1.0 - scores[a]) + s


@helper
def _clear_rows(tree, top):
    for node in range(top + 1):
        for c in range(tree.shape[1]):
            tree[node, c] = 0.0


@helper
def _add_row(target, at, source, row, factor):
    for c in range(source.shape[1]):
        target[at, c] += factor * source[row, c]


@helper
def _add_to(target, source):
    for c in range(len(target)):
        target[c] += source[c]


@kernel
def partner_rows(t, level, order, offsets, first, last, side, rows, sums):
    """``sums[i] += Σ_j rows[j]`` over the active partners j of each document i on one side.

    ``rows`` and ``sums`` hold the documents offsets[first]..offsets[last] only.
    """
    longest, highest = _room(level, offsets, first, last)
    scores, depths = np.empty(longest), np.empty(longest, dtype=np.int64)
    tree, base = np.empty((highest + 1, rows.shape[1])), offsets[first]
    for q in range(first, last):
        n = offsets[q + 1] - offsets[q]
        top, start = _gather(t, level, order, offsets[q], offsets[q + 1], side, scores, depths)
        _clear_rows(tree, top)
        k = 0
        for a in range(n):
            if depths[a] == 0:
                continue
            while k < n and 1.0 - (scores[a] - scores[k]) > 0.0:
                node, row = depths[k] + 1, order[start - side * k] - base
                while node <= top:
                    _add_to(tree[node], rows[row])
                    node += node & -node
                k += 1
            node, row = depths[a], order[start - side * a] - base
            while node > 0:
                _add_to(sums[row], tree[node])
                node -= node & -node


@kernel
def degree_less(degree, rows, weight, sums):
    """sums[i] ← degree[i]·rows[i] − weight[i]·sums[i]."""
    for i in range(rows.shape[0]):
        for c in range(rows.shape[1]):
            sums[i, c] = degree[i] * rows[i, c] - weight[i] * sums[i, c]


@kernel
def weighted_partner_rows(t, level, order, offsets, first, last, side, weights, rows, sums):
    """:func:`partner_rows` with weights[level of the document, level of its partner] in every sum."""
    longest, highest = _room(level, offsets, first, last)
    scores, depths = np.empty(longest), np.empty(longest, dtype=np.int64)
    totals, base = np.empty((highest + 1, rows.shape[1])), offsets[first]
    for q in range(first, last):
        n = offsets[q + 1] - offsets[q]
        top, start = _gather(t, level, order, offsets[q], offsets[q + 1], side, scores, depths)
        _clear_rows(totals, top)
        k = 0
        for a in range(n):
            while k < n and 1.0 - (scores[a] - scores[k]) > 0.0:
                j = order[start - side * k]
                _add_row(totals, level[j], rows, j - base, 1.0)
                k += 1
            i = order[start - side * a]
            for other in range(level[i] - side, top + 1 if side < 0 else -1, -side):
                _add_row(sums, i - base, totals, other, weights[level[i], other])
