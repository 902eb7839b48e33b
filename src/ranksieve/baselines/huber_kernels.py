"""The modified Huber loss over the weighted pairs of each query, pair by pair and by sorting."""

from typing import Any, NamedTuple

import numpy as np

from ranksieve.kernels.compiling import helper, kernel
from ranksieve.kernels.pairs import mass_of


class Documents(NamedTuple):
    """Documents by ascending level within each query.

    The pairs of i are those with the documents from the first of its query up to floor[i], and weigh
    (gain_floor + |gain_i − gain_j|)(discount_floor + |discount_i − discount_j|) times both masses
    (None: 1).
    """

    floor: Any
    mass: Any
    gain: Any
    discount: Any
    gain_floor: float
    discount_floor: float


@kernel(fastmath={"reassoc", "nsz"})  # sums in any, but a fixed, order: vectorised
def lower_partners(
    s, gain, discount, gain_floor, discount_floor, mass, i, lo, lower, gains, discounts, lower_slopes
):  # fmt: skip
    """Of one upper document, Σ ωψ, Σ ωh(2 − h), which is Σ ω(ψ − tψ′), and Σ 2ωh, each also put to its j.

    It is the document i, and the others are lo, lo + 1, … in ``mass``. Arguments come one by one, since
    LLVM reorders these sums otherwise if they come in tuples.
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
def huber_pairs(documents, s, offsets, first, last, value, slack, gradient):
    """Per query Σ ωψ and Σ ω(ψ − tψ′) without the query's weight; the gradient, which comes in as zeros."""
    floor, mass, gain, discount, gain_floor, discount_floor = documents
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
def huber_curvature(documents, s, offsets, first, last, V, R):
    """R = Σ ω (e_i − e_j)(V_i − V_j) over the pairs on the parabola, |s_i − s_j| < 1; comes in as zeros.

    V and R hold the documents of the queries first..last only.
    """
    base = offsets[first]
    for q in range(first, last):
        for i in range(offsets[q], offsets[q + 1]):
            for j in range(offsets[q], documents.floor[i]):
                if abs(s[i] - s[j]) < 1.0:
                    _add_change(_pair_weight(documents, i, j), i - base, j - base, V, R)


@helper
def _pair_weight(documents, i, j):
    """ω of two documents."""
    omega = documents.gain_floor + abs(documents.gain[i] - documents.gain[j])
    omega *= documents.discount_floor + abs(documents.discount[i] - documents.discount[j])
    return mass_of(documents.mass, i) * mass_of(documents.mass, j) * omega


@helper
def _add_change(omega, i, j, V, R):
    """Add ω (e_i − e_j)(V_i − V_j)."""
    for c in range(V.shape[1]):
        change = omega * (V[i, c] - V[j, c])
        R[i, c] += change
        R[j, c] -= change


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
def _reversed(values, sign):
    """A copy times the sign, the last first."""
    found, n = np.empty_like(values), len(values)
    for k in range(n):
        found[k] = sign * values[n - 1 - k]
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


class Group(NamedTuple):
    """Documents by ascending score: factors of these times terms of their partners are the pairs' weights."""

    members: Any
    s: Any
    factors: Any
    terms: Any


@helper
def _as_uppers(uppers, sign, documents, s):
    n = len(uppers)
    factors, terms = np.empty((n, TERMS)), np.empty((n, TERMS))
    for k in range(n):
        i = uppers[k]
        g = documents.gain_floor + documents.gain[i]
        b = documents.discount_floor + sign * documents.discount[i]
        factors[k, 0], factors[k, 1], factors[k, 2], factors[k, 3] = g * b, -sign * g, -b, sign
        mass = documents.mass[i]
        terms[k, 0], terms[k, 1], terms[k, 2], terms[k, 3] = mass * g * b, mass * g, mass * b, mass
    return Group(uppers, _gather(s, uppers), factors, terms)


@helper
def _as_lowers(lowers, sign, documents, s):
    n = len(lowers)
    factors, terms = np.empty((n, TERMS)), np.empty((n, TERMS))
    for k in range(n):
        j = lowers[k]
        g, b, mass = documents.gain[j], documents.discount[j], documents.mass[j]
        factors[k, 0], factors[k, 1], factors[k, 2], factors[k, 3] = 1.0, -sign * b, -g, sign * g * b
        terms[k, 0], terms[k, 1], terms[k, 2], terms[k, 3] = mass, mass * b, mass * g, mass * g * b
    return Group(lowers, _gather(s, lowers), factors, terms)


@helper
def _mirrored(group):
    """The group with all scores negated."""
    return Group(
        _reversed(group.members, 1), _reversed(group.s, -1.0), _reversed_rows(group.factors),
        _reversed_rows(group.terms),
    )  # fmt: skip


@helper
def _one_side(group, partners, sign, mass, V, out):
    """What one group's members get of their partners; Σ ωψ and Σ ωh(2 − h).

    Without columns of V, sign·Σ 2ωh is added to ``out`` of each member i, else Σ ω(V_i − V_j) over the
    partners j on the parabola, for which Σ ω is found first.
    """
    n, value, slack = len(group.s), 0.0, 0.0
    near, far, degree, scaled = np.empty((n, 3)), np.empty((n, 3)), np.empty(n), partners.terms.copy()
    for c in range(-1, V.shape[1]):
        if c >= 0:
            for k in range(len(scaled)):
                for t in range(TERMS):
                    scaled[k, t] = V[partners.members[k], c] * partners.terms[k, t]
        sweep(group.s, group.factors, partners.s, scaled, near, far)
        for k in range(n):
            i = group.members[k]
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
def _sweep_groups(uppers, lowers, sign, documents, s, V, out):
    """As :func:`huber_of_many` of two groups in which sign·(discount_i − discount_j) ≥ 0 throughout.

    Both are given by ascending score. Seen from the lowers, all scores are negated: x stays the same. Both
    sides have the same sums, but for rounding.
    """
    above, below = _as_uppers(uppers, sign, documents, s), _as_lowers(lowers, sign, documents, s)
    _one_side(above, below, -1.0, documents.mass, V, out)
    return _one_side(_mirrored(below), _mirrored(above), 1.0, documents.mass, V, out)


@helper
def _pair_by_pair(uppers, lowers, documents, s, V, out):
    """As :func:`huber_of_many` of two groups of any discounts."""
    value, slack = 0.0, 0.0
    if V.shape[1]:
        for i in uppers:
            for j in lowers:
                if abs(s[i] - s[j]) < 1.0:
                    _add_change(_pair_weight(documents, i, j), i, j, V, out)
        return value, slack
    _, mass, gain, discount, gain_floor, discount_floor = documents
    m = len(lowers)
    masses, slopes = np.empty(m + 1), np.zeros(m)
    for k in range(m):
        masses[k] = mass[lowers[k]]
    lower_s, lower_gain, lower_discount = _gather(s, lowers), _gather(gain, lowers), _gather(discount, lowers)
    for i in uppers:
        masses[m] = mass[i]
        total, dual, slope = lower_partners(
            s[i], gain[i], discount[i], gain_floor, discount_floor, masses, m, 0,
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
def _two_groups(uppers, lowers, place, documents, s, room, few_pairs, V, out):
    """As :func:`huber_of_many` of two groups; ``place`` orders documents by discount."""
    value, slack, discount = 0.0, 0.0, documents.discount
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
            found = _pair_by_pair(up, down, documents, s, V, out)
        elif sign != 0:
            found = _sweep_groups(up, down, float(sign), documents, s, V, out)
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
def huber_of_many(documents, s, few_pairs, V, out):
    """Of the documents of one query: Σ ωψ and Σ ω(ψ − tψ′), the gradient added to ``out``.

    If V has columns: Σ ω (e_i − e_j)(V_i − V_j) over the pairs on the parabola, added to ``out``. Documents
    have masses, and no gain is smaller than one of a lower level. Groups of at most ``few_pairs`` pairs are
    added up pair by pair.
    """
    n, level_start = len(s), documents.floor
    place, by_discount = np.empty(n, dtype=np.int64), np.argsort(documents.discount, kind="mergesort")
    for i in range(n):
        place[by_discount[i]] = i
    order, everyone = np.argsort(s, kind="mergesort"), np.arange(n)
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
        found = _two_groups(uppers, lowers, place, documents, s, room, few_pairs, V, out)
        value, slack = value + found[0], slack + found[1]
        waiting[n_waiting, 0], waiting[n_waiting, 1] = a, middle
        waiting[n_waiting + 1, 0], waiting[n_waiting + 1, 1] = middle, b
        n_waiting += 2
    return value, slack
