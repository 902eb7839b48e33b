"""Sums over the active pairs of each query in O(n log n), without building a pair.

A pair is an upper document i and a lower document j of one query with level_i > level_j. It is active while
ξ = 1 − (t_i − t_j) > 0. Among documents sorted by score the active partners of a document are a contiguous
range whose end only moves one way, so one sweep that puts documents into a Fenwick tree over the levels sees
every pair; with a weight per pair of levels it keeps one plain accumulator a level instead. Both sweeps test
activity by the same expression, so they agree on every pair to the last bit.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _put(count, total, size, level, amount, weighted):
    """Put a document of this level and amount into the accumulators of ``size`` levels."""
    if weighted:
        count[level] += 1.0
        total[level] += amount
        return
    node = level + 1
    while node <= size:
        count[node] += 1.0
        total[node] += amount
        node += node & -node


@njit(cache=True, nogil=True)
def _below(count, total, level):
    """(number, Σ amount) of the documents put in with a smaller level."""
    c, s = 0.0, 0.0
    node = level
    while node > 0:
        c += count[node]
        s += total[node]
        node -= node & -node
    return c, s


@njit(cache=True, nogil=True)
def _weighted(count, total, size, weights, fixed, fixed_is_upper):
    """(Σ weight, Σ weight · amount) of the documents that make a pair with one of level ``fixed``."""
    c, s = 0.0, 0.0
    start, stop = (0, fixed) if fixed_is_upper else (fixed + 1, size)
    for other in range(start, stop):
        weight = weights[fixed, other] if fixed_is_upper else weights[other, fixed]
        c += weight * count[other]
        s += weight * total[other]
    return c, s


@njit(cache=True, nogil=True)
def active_partners(t, level, order, offsets, first, last, weights, up_count, up_slack, low_count, low_slack):
    """Per document, Σ weight and Σ weight·ξ over its active pairs: once as the upper, once as the lower one.

    ``order`` is sorted by ``t`` within each query; ``weights`` (levels × levels, or empty for 1) is indexed
    [upper level, lower level].
    """
    weighted = len(weights) > 0
    most, longest = 0, 0
    for q in range(first, last):
        longest = max(longest, offsets[q + 1] - offsets[q])
        for i in range(offsets[q], offsets[q + 1]):
            most = max(most, level[i])
    count, total = np.zeros(most + 2), np.zeros(most + 2)
    ts, ls = np.empty(longest), np.empty(longest, dtype=np.int64)
    for q in range(first, last):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        top = 0
        for a in range(n):
            ts[a], ls[a] = t[order[lo + a]], level[order[lo + a]]
            top = max(top, ls[a])
        size = top + 1
        for node in range(size + 1):
            count[node], total[node] = 0.0, 0.0
        k = n - 1
        for a in range(n - 1, -1, -1):
            while k >= 0 and 1.0 - (ts[a] - ts[k]) > 0.0:
                _put(count, total, size, ls[k], ts[k], weighted)
                k -= 1
            if weighted:
                c, s = _weighted(count, total, size, weights, ls[a], True)
            else:
                c, s = _below(count, total, ls[a])
            up_count[order[lo + a]], up_slack[order[lo + a]] = c, c * (1.0 - ts[a]) + s
        # The mirrored sweep: levels upside down, so that the upper partners are the ones below.
        for node in range(size + 1):
            count[node], total[node] = 0.0, 0.0
        k = 0
        for a in range(n):
            while k < n and 1.0 - (ts[k] - ts[a]) > 0.0:
                _put(count, total, size, ls[k] if weighted else top - ls[k], -ts[k], weighted)
                k += 1
            if weighted:
                c, s = _weighted(count, total, size, weights, ls[a], False)
            else:
                c, s = _below(count, total, top - ls[a])
            low_count[order[lo + a]], low_slack[order[lo + a]] = c, c * (1.0 + ts[a]) + s


@njit(cache=True, nogil=True)
def _add_row(target, at, source, row, factor):
    for c in range(source.shape[1]):
        target[at, c] += factor * source[row, c]


@njit(cache=True, nogil=True)
def lower_partner_sums(t, level, order, offsets, first, last, weights, rows, sums, mirrored=False):
    """``sums[i] = Σ_j weight · rows[j]`` over the active lower partners j of each document i.

    With ``mirrored``, over its active upper partners: the same sweep from the other end, levels upside down.
    ``rows`` and ``sums`` hold the documents offsets[first]..offsets[last] only; ``sums`` comes in as zeros.
    """
    weighted = len(weights) > 0
    base = offsets[first]
    most = 0
    for i in range(base, offsets[last]):
        most = max(most, level[i])
    tree = np.empty((most + 2, rows.shape[1]))
    for q in range(first, last):
        lo, hi = offsets[q], offsets[q + 1]
        top = 0
        for i in range(lo, hi):
            top = max(top, level[i])
        for node in range(top + 2):
            for c in range(rows.shape[1]):
                tree[node, c] = 0.0
        k = 0
        for a in range(hi - lo):
            i = order[lo + a] if mirrored else order[hi - 1 - a]
            while k < hi - lo:
                j = order[lo + k] if mirrored else order[hi - 1 - k]
                if not 1.0 - (t[j] - t[i] if mirrored else t[i] - t[j]) > 0.0:
                    break
                node = (top - level[j] if mirrored else level[j]) + (0 if weighted else 1)
                while node <= top:
                    _add_row(tree, node, rows, j - base, 1.0)
                    node += top + 1 if weighted else node & -node
                k += 1
            depth = top - level[i] if mirrored else level[i]
            if weighted:
                for other in range(depth):
                    weight = weights[top - other, level[i]] if mirrored else weights[level[i], other]
                    _add_row(sums, i - base, tree, other, weight)
            else:
                node = depth
                while node > 0:
                    _add_row(sums, i - base, tree, node, 1.0)
                    node -= node & -node
