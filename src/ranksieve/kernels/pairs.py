"""Sums over the active pairs of each query in O(n log n), without building a pair.

A pair is an upper document i and a lower document j of one query with level_i > level_j. It is active while
ξ = 1 − (t_i − t_j) > 0. Among documents sorted by score the active lower partners of a document are a
contiguous range whose end only moves one way, so one sweep from the highest score down, which puts documents
into accumulators by level, sees every pair.

Upper partners are lower ones seen from the other end: with ``side`` = −1 scores, levels and order are
reversed, with +1 they are as they are. Every sweep tests activity by the same expression, so all of them
agree on every pair to the last bit.

Pairs of equal weight are counted with a Fenwick tree over the levels, O(log levels) per document; with a
weight per pair of levels there is one plain accumulator per level.
"""

import numpy as np

from ranksieve.kernels.compiling import helper, kernel
from ranksieve.kernels.ordering import MOVES, before, centre_and_sort, sort_by_key


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
def active_partners(t, level, order, offsets, first, last, side, count, slack):
    """Per document, the number of its active partners on one side and Σ ξ over them.

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
                _insert(counts, totals, depths[k] + 1, top, scores[k])
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
def _insert(counts, totals, node, top, score):
    while node <= top:
        counts[node] += 1.0
        totals[node] += score
        node += node & -node


@kernel
def squared_hinge(s, level, weight, offsets, first, last, t, order, degree, gradient):
    """The squared hinge of some queries: Σ ωξ, and what else a query's sorted documents tell.

    ``t`` becomes the centred scores, ``order`` sorted by them, ``degree`` the weight of a document's active
    pairs, ``gradient`` that of Σ ωξ². ``weight`` has one number per query.
    """
    centre_and_sort(s, t, order, offsets, first, last)
    longest, highest = _room(level, offsets, first, last)
    scores, levels = np.empty(longest), np.empty(longest, dtype=np.int64)
    counts, totals = np.empty(highest + 1), np.empty(highest + 1)
    below, slack = np.empty(longest), np.empty(longest)
    total = 0.0
    for q in range(first, last):
        lo, n, top = offsets[q], offsets[q + 1] - offsets[q], 0
        for a in range(n):
            i = order[lo + a]
            scores[a], levels[a] = t[i], level[i]
            top = max(top, level[i])
        _clear(counts, totals, top)
        k, here = n - 1, 0.0
        for a in range(n - 1, -1, -1):  # partners below
            c, sum_, node = 0.0, 0.0, levels[a]
            while node > 0 and k >= 0 and 1.0 - (scores[a] - scores[k]) > 0.0:
                _insert(counts, totals, levels[k] + 1, top, scores[k])
                k -= 1
            while node > 0:
                c += counts[node]
                sum_ += totals[node]
                node -= node & -node
            below[a], slack[a] = c, c * (1.0 - scores[a]) + sum_
            here += slack[a]
        total += weight[q] * here
        _clear(counts, totals, top)
        k = 0
        for a in range(n):  # partners above
            c, sum_, node = 0.0, 0.0, top - levels[a]
            while node > 0 and k < n and 1.0 - (scores[k] - scores[a]) > 0.0:
                _insert(counts, totals, top - levels[k] + 1, top, scores[k])
                k += 1
            while node > 0:
                c += counts[node]
                sum_ += totals[node]
                node -= node & -node
            i = order[lo + a]
            degree[i] = weight[q] * (below[a] + c)
            gradient[i] = 2.0 * weight[q] * (c * (1.0 + scores[a]) - sum_ - slack[a])
    return total


@helper
def _repair_line(key, item, s, d, level):
    """Sort the documents of a query by insertion, as long as that takes few moves: whether it is done."""
    left = MOVES * len(key)
    for i in range(1, len(key)):
        k, it = key[i], item[i]
        if not before(k, it, key[i - 1], item[i - 1]):
            continue
        s_i, d_i, level_i, j = s[i], d[i], level[i], i
        while j > 0 and before(k, it, key[j - 1], item[j - 1]):
            key[j], item[j], s[j], d[j], level[j] = key[j - 1], item[j - 1], s[j - 1], d[j - 1], level[j - 1]
            j -= 1
        key[j], item[j], s[j], d[j], level[j] = k, it, s_i, d_i, level_i
        left -= i - j
        if left < 0:
            return False
    return True


@helper
def _sort_line(key, item, s, d, level, key_buffer, item_buffer, all_s, all_d, all_level):
    """The same, however many moves it takes; the values of each item are looked up again."""
    sort_by_key(key, item, key_buffer, item_buffer)
    for a in range(len(key)):
        i = item[a]
        s[a], d[a], level[a] = all_s[i], all_d[i], all_level[i]


@helper
def _slopes_of_query(t, d, level, tree):
    """Σ ξ(d_i − d_j) and Σ (d_i − d_j)² over the active pairs of documents in ascending order of t.

    Of an upper document i the sums of (1 − t_i + t_j)(d_i − d_j) and (d_i − d_j)² over its lower partners j
    come from those of 1, t, d, td and dd over the j.
    """
    top = 0
    for a in range(len(t)):
        top = max(top, level[a])
    _clear_rows(tree, top)
    k, slope, bend = len(t) - 1, 0.0, 0.0
    for a in range(len(t) - 1, -1, -1):
        if level[a] == 0:
            continue
        t_i, d_i = t[a], d[a]
        while k >= 0 and 1.0 - (t_i - t[k]) > 0.0:
            t_j, d_j, node = t[k], d[k], level[k] + 1
            while node <= top:
                tree[node, 0] += 1.0
                tree[node, 1] += t_j
                tree[node, 2] += d_j
                tree[node, 3] += t_j * d_j
                tree[node, 4] += d_j * d_j
                node += node & -node
            k -= 1
        m, t_sum, d_sum, td_sum, dd_sum, node = 0.0, 0.0, 0.0, 0.0, 0.0, level[a]
        while node > 0:
            m += tree[node, 0]
            t_sum += tree[node, 1]
            d_sum += tree[node, 2]
            td_sum += tree[node, 3]
            dd_sum += tree[node, 4]
            node -= node & -node
        slope += (1.0 - t_i) * (m * d_i - d_sum) + d_i * t_sum - td_sum
        bend += m * d_i * d_i - 2.0 * d_i * d_sum + dd_sum
    return slope, bend


@kernel
def squared_hinge_along(s, d, level, step, weight, offsets, first, last, order, key, by_order):
    """First and second derivative of Σ ωξ² at the scores s + step·d, along d, for some queries.

    s and d are centred within each query, so that sums keep their digits. ``order`` becomes sorted by the
    scores, which ``key`` holds in that order. ``by_order`` are s, d and the levels in the order of the call
    before: between steps that differ little they move little, and are read one after another.
    """
    ordered_s, ordered_d, ordered_level = by_order
    longest, highest = _room(level, offsets, first, last)
    key_buffer, item_buffer = np.empty(longest), np.empty(longest, dtype=np.int64)
    tree, slope, curvature = np.empty((highest + 1, 5)), 0.0, 0.0
    for q in range(first, last):
        lo, hi = offsets[q], offsets[q + 1]
        k, item = key[lo:hi], order[lo:hi]
        s_q, d_q, level_q = ordered_s[lo:hi], ordered_d[lo:hi], ordered_level[lo:hi]
        for a in range(hi - lo):
            k[a] = s_q[a] + step * d_q[a]
        if not _repair_line(k, item, s_q, d_q, level_q):
            _sort_line(k, item, s_q, d_q, level_q, key_buffer, item_buffer, s, d, level)
        here, bend = _slopes_of_query(k, d_q, level_q, tree)
        slope -= 2.0 * weight[q] * here
        curvature += 2.0 * weight[q] * bend
    return slope, curvature


@kernel
def weighted_partners(t, level, order, offsets, first, last, side, weights, count, slack):
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
                counts[level[order[start - side * k]]] += 1.0
                totals[level[order[start - side * k]]] += scores[k]
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
def hessian_parts(t, level, order, offsets, first, last, weight, degree, rows, scaled, upper, sums):
    """What the Hessian block of some queries is made of; how many rows of ``scaled``, and of the others.

    VᵀSV = AᵀA + UᵀN + NᵀU: A has the rows √(2·degree_i)·V_i of documents in active pairs, U the rows V_i of
    upper documents, N the sums of V over their active lower partners times −2ω.
    """
    base, n_columns = offsets[first], rows.shape[1]
    highest, n_scaled, n_upper = 0, 0, 0
    for i in range(offsets[first], offsets[last]):
        highest = max(highest, level[i])
        if degree[i] > 0.0:
            root = np.sqrt(2.0 * degree[i])
            for c in range(n_columns):
                scaled[n_scaled, c] = root * rows[i - base, c]
            n_scaled += 1
    tree = np.empty((highest + 1, n_columns))
    for q in range(first, last):
        lo, hi, top = offsets[q], offsets[q + 1], 0
        for i in range(lo, hi):
            top = max(top, level[i])
        _clear_rows(tree, top)
        k = hi - 1
        for a in range(hi - 1, lo - 1, -1):
            i = order[a]
            if level[i] == 0:
                continue
            while k >= lo and 1.0 - (t[i] - t[order[k]]) > 0.0:
                j = order[k]
                node = level[j] + 1
                while node <= top:
                    _add_to(tree[node], rows[j - base])
                    node += node & -node
                k -= 1
            if degree[i] > 0.0:
                for c in range(n_columns):
                    upper[n_upper, c], sums[n_upper, c] = rows[i - base, c], 0.0
                node = level[i]
                while node > 0:
                    _add_to(sums[n_upper], tree[node])
                    node -= node & -node
                for c in range(n_columns):
                    sums[n_upper, c] *= -2.0 * weight[q]
                n_upper += 1
    return n_scaled, n_upper


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
