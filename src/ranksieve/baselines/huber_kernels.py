"""The modified Huber loss over the weighted pairs of each query, pair by pair and by sorting."""

import numpy as np

from ranksieve.kernels.compiling import helper, kernel
from ranksieve.kernels.pairs import mass_of


@kernel(fastmath={"reassoc", "nsz"})  # sums in any, but a fixed, order: vectorised
def lower_partners(
    s, gain, discount, gain_floor, discount_floor, mass, i, lo, lower, gains, discounts, lower_slopes
):  # fmt: skip
    """Of one upper document, Σ ωψ, Σ ωh(2 − h), which is Σ ω(ψ − tψ′), and Σ 2ωh, each also put to its j.

    It is the document i, and the others are lo, lo + 1, …
    """
    total, dual, upper_slope = 0.0, 0.0, 0.0
    for j in range(len(lower)):
        x = 1.0 - (s - lower[j])
        h = x if x > 0.0 else 0.0
        h = h if h < 2.0 else 2.0
        omega = (gain_floor + abs(gain - gains[j])) * (discount_floor + abs(discount - discounts[j]))
        omega = mass_of(mass, i) * mass_of(mass, lo + j) * omega
        total += omega * h * (2.0 * x - h)
        dual += omega * h * (2.0 - h)
        upper_slope += 2.0 * omega * h
        lower_slopes[j] += 2.0 * omega * h
    return total, dual, upper_slope


@kernel
def huber_pairs(
    s, floor, mass, gain, discount, gain_floor, discount_floor, offsets, first, last, value, slack, gradient
):  # fmt: skip
    """Per query Σ ωψ and Σ ω(ψ − tψ′) without the query's weight; the gradient, which comes in as zeros."""
    for q in range(first, last):
        lo = offsets[q]
        value[q], slack[q] = 0.0, 0.0
        for i in range(lo, offsets[q + 1]):
            end = floor[i]
            total, dual, upper_slope = lower_partners(
                s[i], gain[i], discount[i], gain_floor, discount_floor, mass, i, lo,
                s[lo:end], gain[lo:end], discount[lo:end], gradient[lo:end],
            )  # fmt: skip
            value[q] += total
            slack[q] += dual
            gradient[i] -= upper_slope


@kernel
def huber_curvature(s, floor, mass, gain, discount, gain_floor, discount_floor, offsets, first, last, V, R):
    """R = Σ ω (e_i − e_j)(V_i − V_j) over the pairs on the parabola, |s_i − s_j| < 1; comes in as zeros.

    V and R hold the documents of the queries first..last only.
    """
    base = offsets[first]
    for q in range(first, last):
        for i in range(offsets[q], offsets[q + 1]):
            for j in range(offsets[q], floor[i]):
                if abs(s[i] - s[j]) < 1.0:
                    omega = gain_floor + abs(gain[i] - gain[j])
                    omega *= discount_floor + abs(discount[i] - discount[j])
                    omega = mass_of(mass, i) * mass_of(mass, j) * omega
                    for c in range(V.shape[1]):
                        change = omega * (V[i - base, c] - V[j - base, c])
                        R[i - base, c] += change
                        R[j - base, c] -= change


TERMS = 4  # products in a pair's weight
DEPTH = 512  # of a stack: groups that wait


@helper
def _gather(values, rows):
    """``values[rows]``; a loop is compiled in a fraction of the time."""
    found = np.empty(len(rows))
    for k in range(len(rows)):
        found[k] = values[rows[k]]
    return found


@helper
def _reversed(members):
    """A copy, the last first."""
    found, n = np.empty_like(members), len(members)
    for k in range(n):
        found[k] = members[n - 1 - k]
    return found


@helper
def _negated(scores):
    """A copy with the other sign, the last first."""
    found, n = np.empty_like(scores), len(scores)
    for k in range(n):
        found[k] = -scores[n - 1 - k]
    return found


@helper
def _reversed_rows(terms):
    """A copy, the last row first."""
    found, n = np.empty_like(terms), len(terms)
    for k in range(n):
        for t in range(TERMS):
            found[k, t] = terms[n - 1 - k, t]
    return found


@helper
def _push(waiting, row, a, b, c, d, low, high, sign):
    """Write a row of numbers."""
    waiting[row, 0], waiting[row, 1], waiting[row, 2], waiting[row, 3] = a, b, c, d
    waiting[row, 4], waiting[row, 5], waiting[row, 6] = low, high, sign


@helper
def _all_equal(values, rows):
    """Whether ``values[rows]`` are all the same."""
    same = True
    for row in rows:
        same &= values[row] == values[rows[0]]
    return same


@helper
def _add(sums, terms, row, u, sign):
    """Add sign·terms·u^p to sums[p], p = 0, 1, 2."""
    for k in range(TERMS):
        term = sign * terms[row, k]
        sums[0, k] += term
        sums[1, k] += term * u
        sums[2, k] += term * u * u


@helper
def _recentre(sums, shift):
    """The sums of terms·(u − shift)^p, from those of terms·u^p."""
    for k in range(TERMS):
        sums[2, k] += shift * (shift * sums[0, k] - 2.0 * sums[1, k])
        sums[1, k] -= shift * sums[0, k]


@helper
def _weighted(sums, factors, row, c, out):
    """Σ ω(c + u)^p from the sums of terms·u^p, p = 0, 1, 2."""
    e0, e1, e2 = 0.0, 0.0, 0.0
    for k in range(TERMS):
        factor = factors[row, k]
        e0 += factor * sums[0, k]
        e1 += factor * sums[1, k]
        e2 += factor * sums[2, k]
    out[row, 0], out[row, 1], out[row, 2] = e0, c * e0 + e1, c * (c * e0 + 2.0 * e1) + e2


@helper
def sweep(s, factors, partner_s, terms, near, far):
    """Per document Σ ω·(1, x, x²) over its partners with 0 < x < 2 (``near``) and with x ≥ 2 (``far``).

    x = 1 + (partner's score) − s and ω = factors · terms; scores ascend. Scores count from a centre that
    moves along, so that their squares stay as small as the parabola is wide.
    """
    inside, beyond = np.zeros((3, TERMS)), np.zeros((3, TERMS))
    centre, first, end = 0.0, len(partner_s), len(partner_s)  # inside are first..end, beyond are the rest
    for i in range(len(s) - 1, -1, -1):
        while end > 0 and partner_s[end - 1] - s[i] >= 1.0:
            end -= 1
            u = partner_s[end] - centre
            _add(beyond, terms, end, u, 1.0)
            if first <= end:
                _add(inside, terms, end, u, -1.0)
        first = min(first, end)
        if first == end:
            inside[:] = 0.0
        if abs(s[i] - centre) > 1.0:
            _recentre(inside, s[i] - centre)
            _recentre(beyond, s[i] - centre)
            centre = s[i]
        while first > 0 and partner_s[first - 1] - s[i] > -1.0:
            first -= 1
            _add(inside, terms, first, partner_s[first] - centre, 1.0)
        c = 1.0 - (s[i] - centre)  # x = c + u
        _weighted(inside, factors, i, c, near)
        _weighted(beyond, factors, i, c, far)


@helper
def _uppers_described(uppers, sign, documents, floors):
    """Scores, factors and terms of uppers: their factors times the terms of a lower are the pair's weight."""
    s, mass, gain, discount = documents
    n = len(uppers)
    factors, terms = np.empty((n, TERMS)), np.empty((n, TERMS))
    for k in range(n):
        i = uppers[k]
        g, b = floors[0] + gain[i], floors[1] + sign * discount[i]
        factors[k, 0], factors[k, 1], factors[k, 2], factors[k, 3] = g * b, -sign * g, -b, sign
        terms[k, 0], terms[k, 1] = mass[i] * g * b, mass[i] * g
        terms[k, 2], terms[k, 3] = mass[i] * b, mass[i]
    return _gather(s, uppers), factors, terms


@helper
def _lowers_described(lowers, sign, documents):
    """The same of lowers: their factors times the terms of an upper."""
    s, mass, gain, discount = documents
    n = len(lowers)
    factors, terms = np.empty((n, TERMS)), np.empty((n, TERMS))
    for k in range(n):
        j = lowers[k]
        g, b = gain[j], discount[j]
        factors[k, 0], factors[k, 1], factors[k, 2], factors[k, 3] = 1.0, -sign * b, -g, sign * g * b
        terms[k, 0], terms[k, 1] = mass[j], mass[j] * b
        terms[k, 2], terms[k, 3] = mass[j] * g, mass[j] * g * b
    return _gather(s, lowers), factors, terms


@helper
def _one_side(members, s, factors, partners, partner_s, terms, sign, mass, V, out):
    """What one group's members get of their partners; Σ ωψ and Σ ωh(2 − h).

    Without columns of V, sign·Σ 2ωh is added to ``out`` of each member i, else Σ ω(V_i − V_j) over the
    partners j on the parabola, for which Σ ω is found first.
    """
    n, value, slack = len(s), 0.0, 0.0
    near, far, degree, scaled = np.empty((n, 3)), np.empty((n, 3)), np.empty(n), terms.copy()
    for c in range(-1, V.shape[1]):
        if c >= 0:
            for k in range(len(partners)):
                for t in range(TERMS):
                    scaled[k, t] = V[partners[k], c] * terms[k, t]
        sweep(s, factors, partner_s, scaled, near, far)
        for k in range(n):
            i = members[k]
            if c >= 0:
                out[i, c] += mass[i] * (degree[k] * V[i, c] - near[k, 0])
            elif V.shape[1]:
                degree[k] = near[k, 0]
            else:
                value += mass[i] * (near[k, 2] + 4.0 * (far[k, 1] - far[k, 0]))
                slack += mass[i] * (2.0 * near[k, 1] - near[k, 2])
                out[i, 0] += sign * mass[i] * (2.0 * near[k, 1] + 4.0 * far[k, 0])
    return value, slack


@helper
def _sweep_groups(uppers, lowers, sign, documents, floors, V, out):
    """As :func:`huber_of_many` of two groups in which sign·(discount_i − discount_j) ≥ 0 throughout.

    Both are given by ascending score. Seen from the lowers, all scores are negated: x stays the same.
    """
    s, factors, terms = _uppers_described(uppers, sign, documents, floors)
    partner_s, partner_factors, partner_terms = _lowers_described(lowers, sign, documents)
    found = (0.0, 0.0)
    for side in (-1.0, 1.0):
        found = _one_side(
            uppers, s, factors, lowers, partner_s, partner_terms, side, documents[1], V, out
        )  # of both sides the same, but for rounding
        uppers, lowers = _reversed(lowers), _reversed(uppers)
        s, partner_s = _negated(partner_s), _negated(s)
        factors, partner_factors = _reversed_rows(partner_factors), _reversed_rows(factors)
        terms, partner_terms = _reversed_rows(partner_terms), _reversed_rows(terms)
    return found


@helper
def _pair_by_pair(uppers, lowers, documents, floors, V, out):
    """As :func:`huber_of_many` of two groups of any discounts."""
    s, mass, gain, discount = documents
    value, slack, m = 0.0, 0.0, len(lowers)
    if V.shape[1]:
        for i in uppers:
            for j in lowers:
                if abs(s[i] - s[j]) < 1.0:
                    omega = (floors[0] + abs(gain[i] - gain[j])) * (
                        floors[1] + abs(discount[i] - discount[j])
                    )
                    omega *= mass[i] * mass[j]
                    for c in range(V.shape[1]):
                        change = omega * (V[i, c] - V[j, c])
                        out[i, c] += change
                        out[j, c] -= change
        return value, slack
    masses, slopes = np.empty(m + 1), np.zeros(m)
    for k in range(m):
        masses[k] = mass[lowers[k]]
    lower_s, lower_gain, lower_discount = _gather(s, lowers), _gather(gain, lowers), _gather(discount, lowers)
    for i in uppers:
        masses[m] = mass[i]
        total, dual, slope = lower_partners(
            s[i], gain[i], discount[i], floors[0], floors[1], masses, m, 0,
            lower_s, lower_gain, lower_discount, slopes,
        )  # fmt: skip
        value, slack = value + total, slack + dual
        out[i, 0] -= slope
    for k in range(m):
        out[lowers[k], 0] += slopes[k]
    return value, slack


@helper
def _part(group, place, middle, room):
    """Those whose place is below the middle first, both in their order; returns how many these are."""
    n_low, n_high = 0, 0
    for member in group:
        if place[member] < middle:
            group[n_low] = member
            n_low += 1
        else:
            room[n_high] = member
            n_high += 1
    for k in range(n_high):
        group[n_low + k] = room[k]
    return n_low


@helper
def _two_groups(uppers, lowers, place, documents, floors, room, few_pairs, V, out):
    """As :func:`huber_of_many` of two groups; ``place`` orders documents by discount."""
    value, slack, discount = 0.0, 0.0, documents[3]
    waiting, n_waiting = np.empty((DEPTH, 7), dtype=np.int64), 1
    _push(waiting, 0, 0, len(uppers), 0, len(lowers), 0, len(place), 0)
    while n_waiting:
        n_waiting -= 1
        top = waiting[n_waiting]
        a, b, c, d, low, high = top[0], top[1], top[2], top[3], top[4], top[5]
        sign = top[6]  # 0 if it is not the same throughout
        up, down, found = uppers[a:b], lowers[c:d], (0.0, 0.0)
        if a == b or c == d:
            continue
        if sign == 0 and _all_equal(discount, up) and _all_equal(discount, down):
            sign = 1 if discount[up[0]] >= discount[down[0]] else -1
        if len(up) * len(down) <= few_pairs:
            found = _pair_by_pair(up, down, documents, floors, V, out)
        elif sign != 0:
            found = _sweep_groups(up, down, float(sign), documents, floors, V, out)
        else:
            middle = (low + high) // 2
            u, v = a + _part(up, place, middle, room), c + _part(down, place, middle, room)
            _push(waiting, n_waiting, a, u, c, v, low, middle, 0)
            _push(waiting, n_waiting + 1, u, b, v, d, middle, high, 0)
            _push(waiting, n_waiting + 2, u, b, c, v, 0, 0, 1)  # before the others part these groups further
            _push(waiting, n_waiting + 3, a, u, v, d, 0, 0, -1)
            n_waiting += 4
        value, slack = value + found[0], slack + found[1]
    return value, slack


@kernel
def huber_of_many(s, floor, mass, gain, discount, gain_floor, discount_floor, lo, hi, few_pairs, V, out):
    """Of the documents lo..hi of one query: Σ ωψ and Σ ω(ψ − tψ′), the gradient added to ``out``.

    If V has columns: Σ ω (e_i − e_j)(V_i − V_j) over the pairs on the parabola, added to ``out``. Both arrays
    hold these documents only, which stand by ascending level; no gain is smaller than one of a lower level.
    Groups of at most ``few_pairs`` pairs are added up pair by pair.
    """
    n = hi - lo
    level_start, place = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    by_discount = np.argsort(discount[lo:hi], kind="mergesort")
    for i in range(n):
        place[by_discount[i]] = i
        level_start[i] = floor[lo + i] - lo
    documents = (s[lo:hi], mass[lo:hi], gain[lo:hi], discount[lo:hi])
    order, everyone = np.argsort(s[lo:hi], kind="mergesort"), np.arange(n)
    room, value, slack = np.empty(n, dtype=np.int64), 0.0, 0.0
    waiting, n_waiting = np.empty((DEPTH, 2), dtype=np.int64), 1
    waiting[0, 0], waiting[0, 1] = 0, n
    while n_waiting:
        n_waiting -= 1
        a, b = waiting[n_waiting, 0], waiting[n_waiting, 1]
        middle = level_start[(a + b) // 2]
        if middle == a:  # order[a:b] are the documents a..b by ascending score
            while middle < b and level_start[middle] == a:
                middle += 1
        if middle == b:
            continue
        _part(order[a:b], everyone, middle, room)
        uppers, lowers = order[middle:b].copy(), order[a:middle].copy()
        found = _two_groups(
            uppers, lowers, place, documents, (gain_floor, discount_floor), room, few_pairs, V, out
        )
        value, slack = value + found[0], slack + found[1]
        waiting[n_waiting, 0], waiting[n_waiting, 1] = a, middle
        waiting[n_waiting + 1, 0], waiting[n_waiting + 1, 1] = middle, b
        n_waiting += 2
    return value, slack
