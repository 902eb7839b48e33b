"""Sums over the active pairs of each query in O(n log n), without building a pair.

A pair is an upper document i and a lower document j of one query with level_i > level_j. It is active while
ξ = 1 − (t_i − t_j) > 0. Among documents sorted by score the active lower partners of a document are a
contiguous range whose end only moves one way, so one sweep from the highest score down, which puts documents
into accumulators by level, sees every pair.

Upper partners are lower ones seen from the other end: with ``side`` = −1 scores, levels and order are
reversed, with +1 they are as they are. Every sweep tests activity by the same expression, so all of them
agree on every pair to the last bit.

Pairs of equal weight are counted with a Fenwick tree over the levels, O(log levels) per document; with a
weight per pair of levels there is one plain accumulator per level. A partner counts as often as its ``mass``
says (:mod:`ranksieve.kernels.masses`); the mass of the document itself is left to the caller.
"""

import numpy as np

from ranksieve.kernels.compiling import helper, kernel
from ranksieve.kernels.masses import mass_of


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
