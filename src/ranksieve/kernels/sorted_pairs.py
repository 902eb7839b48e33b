"""The squared hinge and its Hessian from sorted lists of the upper documents of each query."""

from typing import NamedTuple

import numpy as np

from ranksieve._types import AnyArray, FloatArray, IntArray
from ranksieve.kernels.compiling import helper, kernel
from ranksieve.kernels.pairs import add, centre, clear, longest, mass_of, sort_by_key

MOVES = 4  # per document: counts that have moved further are not near, and searched for from scratch


class Lists(NamedTuple):
    """Query q has the lists first[q]..first[q + 1], one for each of its levels but the highest.

    The list number k lies in begin[k]..begin[k + 1] of an array of all lists, and its members are
    members[member_begin[k]..member_begin[k + 1]].
    """

    first: IntArray
    begin: IntArray
    member_begin: IntArray
    members: IntArray


class Near(NamedTuple):
    """Lists sorted by some scores, and of each document the number of its active partners in its list."""

    uppers: AnyArray
    above: AnyArray


class Arrays(NamedTuple):
    """What an evaluation leaves: :class:`Near` of its scores, of each document the number (with weights of
    documents, the weight) of all its active pairs, and the gradient."""

    uppers: AnyArray
    above: AnyArray
    active: AnyArray
    gradient: FloatArray


class Parts(NamedTuple):
    """Room for the parts of VᵀSV = AᵀA + UᵀN + NᵀU, one row per document: A, U and N."""

    scaled: FloatArray
    upper: FloatArray
    sums: FloatArray


class Room(NamedTuple):
    """Keys of a list, and buffers for sorting it."""

    key: FloatArray
    key_buffer: FloatArray
    item_buffer: AnyArray


def make_lists(level: IntArray, offsets: IntArray) -> tuple[Lists, IntArray]:
    """The lists of some queries, and the array of all of them, not sorted yet.

    The levels of each query are 0, 1, … without a gap.
    """
    sizes = np.diff(offsets)
    first = np.concatenate(([0], np.cumsum(np.maximum.reduceat(level, offsets[:-1]))))
    own = np.repeat(first[:-1], sizes) + level  # the list of a document's own level
    has_list = own < np.repeat(first[1:], sizes)
    n_members = np.bincount(own[has_list], minlength=first[-1])
    # a list has the documents of all higher levels: of its query, less those of its own and lower ones
    n_documents = np.repeat(sizes, np.diff(first))
    below = np.cumsum(n_members)
    lower = below - np.repeat(np.concatenate(([0], below))[first[:-1]], np.diff(first))
    begin = np.concatenate(([0], np.cumsum(n_documents - lower)))
    kind = np.int32 if offsets[-1] < 2**31 else np.int64  # of what there is most of
    lists = Lists(first, begin, np.concatenate(([0], below)), np.empty(int(has_list.sum()), dtype=kind))
    uppers = np.empty(begin[-1], dtype=kind)
    _fill_lists(level, offsets, lists, lists.begin.copy(), lists.member_begin.copy(), uppers)
    return lists, uppers


@kernel
def _fill_lists(level, offsets, lists, place, member_place, uppers):
    """Put every document into the lists below its level, and among the members of its own level's."""
    for q in range(len(offsets) - 1):
        for i in range(offsets[q], offsets[q + 1]):
            own = lists.first[q] + level[i]
            for k in range(lists.first[q], own):
                uppers[place[k]] = i
                place[k] += 1
            if own < lists.first[q + 1]:
                lists.members[member_place[own]] = i
                member_place[own] += 1


@helper
def _is_active(upper_score, lower_score):
    return 1.0 - (upper_score - lower_score) > 0.0


@helper
def _count_active(keys, n, t, count, left):
    """How many of keys[1:n + 1], which ascend, are scores of active upper partners of the score t.

    keys[n + 1] is ∞. While some moves are ``left`` it is looked for near ``count``. Scores that overflowed
    and are not numbers have no active partners.
    """
    if left > 0:
        while _is_active(keys[count + 1], t):
            count += 1
        while count > 0 and not _is_active(keys[count], t):
            count -= 1
        return count
    count = 0
    while n > 0:
        half = (n + 1) >> 1
        count += half * np.int64(_is_active(keys[count + half], t))
        n -= half
    return count


@helper
def _mass_of_first(mass, mass_sums, m):
    """The mass of the first m documents of a list, of which ``mass_sums`` has the sums."""
    return m if mass is None else mass_sums[m]


@helper
def _mass_of_pairs(mass, i, partners):
    """The mass of a document's pairs with partners of so much mass."""
    return int(partners) if mass is None else mass[i] * partners


@helper
def _longest_list(lists, first, last):
    """The most members of a list of some queries."""
    return longest(lists.begin, lists.first[first], lists.first[last])


@helper
def _room(n, uppers):
    """What sorting lists of up to n members needs."""
    return Room(np.empty(n), np.empty(n), np.empty(n, dtype=uppers.dtype))


@helper
def _sort_list(k, q, documents, t, lists, uppers, room):
    """Sort a query's first list, which has all its upper documents; of another, take those from the first.

    ``t`` has the scores of the query's documents.
    """
    lo, level = documents.offsets[q], documents.level
    first = lists.first[q]
    begin, end = lists.begin[first], lists.begin[first + 1]
    if k == first:
        key, key_buffer, item_buffer = room
        for p in range(begin, end):
            key[p - begin] = t[uppers[p] - lo]
        sort_by_key(key[: end - begin], uppers[begin:end], key_buffer, item_buffer)
        return
    at = lists.begin[k]
    for p in range(begin, end):
        if level[uppers[p]] > k - first:
            uppers[at] = uppers[p]
            at += 1


@kernel
def squared_hinge(documents, lists, s, first, last, arrays, sums):
    """The squared hinge of some queries: ``sums`` becomes Σ ωξ and Σ ωξ² of each, with the gradient of Σ ωξ².

    Σ ξ² = Σ ξ − Σ ξ(t_i − t_j), and the last sum is −½⟨t, ∇⟩, t the centred scores. These sums may cancel
    almost to 0, so ``sums`` has the sizes of their terms too: Σ ω(1 + |t|) and Σ ω(1 + |t|)² over both
    documents of active pairs.

    On entry ``uppers`` and ``above`` are those of other scores, best of some nearby.
    """
    offsets, mass = documents.offsets, documents.mass
    uppers, above, active, gradient = arrays
    most = _longest_list(lists, first, last)
    room = _room(most, uppers)
    keys, before = np.empty(most + 2), np.empty(most + 2)
    count, total = np.empty(most + 2), np.empty(most + 2)
    mass_sums = np.empty(0 if mass is None else most + 2)
    t = np.empty(longest(offsets, first, last))
    for q in range(first, last):
        lo, hi, slack = offsets[q], offsets[q + 1], 0.0
        centre(s[lo:hi], t)
        if hi - lo == 2 and lists.first[q + 1] - lists.first[q] == 1:
            slack = _pair_alone(documents, lists, t, q, arrays)
            _add_up(documents, q, slack, t, active, gradient, sums)
            continue
        for i in range(lo, hi):
            active[i], gradient[i] = 0, 0.0
        for k in range(lists.first[q], lists.first[q + 1]):
            _sort_list(k, q, documents, t, lists, uppers, room)
            begin, n, sum_ = lists.begin[k], lists.begin[k + 1] - lists.begin[k], 0.0
            for a in range(n):
                i = uppers[begin + a]
                before[a], count[a], total[a] = sum_, 0.0, 0.0
                keys[a + 1] = t[i - lo]
                sum_ += mass_of(mass, i) * keys[a + 1]
            before[n], count[n], total[n], keys[n + 1] = sum_, 0.0, 0.0, np.inf
            _sum_masses(mass, uppers[begin : begin + n], mass_sums)
            left = MOVES * (lists.member_begin[k + 1] - lists.member_begin[k])
            for p in range(lists.member_begin[k], lists.member_begin[k + 1]):
                j = lists.members[p]
                t_j = t[j - lo]
                m = _count_active(keys, n, t_j, above[j], left)
                left -= abs(m - above[j])
                partners = _mass_of_first(mass, mass_sums, m)
                xi = mass_of(mass, j) * (partners * (1.0 + t_j) - before[m])
                above[j], slack = m, slack + xi
                active[j] += _mass_of_pairs(mass, j, partners)
                gradient[j] += xi
                count[m] += mass_of(mass, j)
                total[m] += mass_of(mass, j) * t_j
            m, sum_ = 0.0, 0.0
            for a in range(n - 1, -1, -1):
                m += count[a + 1]
                sum_ += total[a + 1]
                i = uppers[begin + a]
                active[i] += _mass_of_pairs(mass, i, m)
                gradient[i] -= mass_of(mass, i) * (m * (1.0 - t[i - lo]) + sum_)
        _add_up(documents, q, slack, t, active, gradient, sums)


@helper
def _add_up(documents, q, slack, t, active, gradient, sums):
    """The sums of a query from its slack and half its gradient without its weight; the whole gradient."""
    lo, weight = documents.offsets[q], documents.weight[q]
    product, terms, squares = 0.0, 0.0, 0.0
    for i in range(lo, documents.offsets[q + 1]):
        product += t[i - lo] * gradient[i]
        gradient[i] *= 2.0 * weight
        size = 1.0 + abs(t[i - lo])
        terms += active[i] * size
        squares += active[i] * size * size
    sums[q, 0], sums[q, 1] = weight * slack, weight * (slack + product)
    sums[q, 2], sums[q, 3] = weight * terms, weight * squares


@helper
def _pair_alone(documents, lists, t, q, arrays):
    """As :func:`squared_hinge` of a query that is one pair, with the same bits; its slack."""
    lo, k, mass = documents.offsets[q], lists.first[q], documents.mass
    uppers, above, active, gradient = arrays
    i, j = uppers[lists.begin[k]], lists.members[lists.member_begin[k]]
    t_i, t_j = t[i - lo], t[j - lo]
    above[j] = 1 if _is_active(t_i, t_j) else 0
    active[i], active[j], gradient[i], gradient[j] = 0, 0, 0.0, 0.0
    if above[j]:
        m_i, m_j = mass_of(mass, i), mass_of(mass, j)
        active[i], active[j] = m_i * m_j, m_j * m_i
        gradient[j] = m_j * (m_i * (1.0 + t_j) - m_i * t_i)
        gradient[i] = -m_i * (m_j * (1.0 - t_i) + m_j * t_j)
    return gradient[j]


@helper
def _sum_masses(mass, documents, mass_sums):
    """``mass_sums`` becomes the mass of the first 0, 1, … of some documents."""
    if mass is not None:
        mass_sums[0] = 0.0
        for a in range(len(documents)):
            mass_sums[a + 1] = mass_sums[a] + mass[documents[a]]


@kernel
def squared_hinge_along(documents, lists, s, d, step, first, last, near, slopes):
    """First and second derivative of each query's Σ ωξ² at the scores s + step·d, along d.

    ``near`` becomes that of these scores. The sums of (1 − t_i + t_j)(d_i − d_j) and (d_i − d_j)² over the
    active upper partners i of j come from those of t, d, td and dd over the i; t and d are centred within
    each query, so that these keep their digits.
    """
    offsets, weight, mass = documents.offsets, documents.weight, documents.mass
    uppers, above = near
    most, n_documents = _longest_list(lists, first, last), longest(offsets, first, last)
    room = _room(most, uppers)
    keys, before = np.empty(most + 2), np.zeros((most + 2, 4))
    mass_sums = np.empty(0 if mass is None else most + 2)
    t, turn = np.empty(n_documents), np.empty(n_documents)
    for q in range(first, last):
        lo, hi = offsets[q], offsets[q + 1]
        centre(s[lo:hi], t)
        centre(d[lo:hi], turn)
        for i in range(hi - lo):
            t[i] += step * turn[i]
        slope, bend = 0.0, 0.0
        for k in range(lists.first[q], lists.first[q + 1]):
            _sort_list(k, q, documents, t, lists, uppers, room)
            begin, n = lists.begin[k], lists.begin[k + 1] - lists.begin[k]
            keys[n + 1] = np.inf
            sum_t, sum_d, sum_td, sum_dd = 0.0, 0.0, 0.0, 0.0
            for a in range(n):
                i = uppers[begin + a]
                t_i, d_i = t[i - lo], turn[i - lo]
                t_mass, d_mass = mass_of(mass, i) * t_i, mass_of(mass, i) * d_i
                keys[a + 1], sum_t, sum_d = t_i, sum_t + t_mass, sum_d + d_mass
                sum_td, sum_dd = sum_td + t_mass * d_i, sum_dd + d_mass * d_i
                before[a + 1, 0], before[a + 1, 1] = sum_t, sum_d
                before[a + 1, 2], before[a + 1, 3] = sum_td, sum_dd
            _sum_masses(mass, uppers[begin : begin + n], mass_sums)
            left = MOVES * (lists.member_begin[k + 1] - lists.member_begin[k])
            for p in range(lists.member_begin[k], lists.member_begin[k + 1]):
                j = lists.members[p]
                t_j, d_j = t[j - lo], turn[j - lo]
                m = _count_active(keys, n, t_j, above[j], left)
                left -= abs(m - above[j])
                above[j] = m
                own, partners = mass_of(mass, j), _mass_of_first(mass, mass_sums, m)
                turned = (1.0 + t_j) * (before[m, 1] - partners * d_j) - before[m, 2] + d_j * before[m, 0]
                slope += own * turned
                bend += own * (before[m, 3] - 2.0 * d_j * before[m, 1] + partners * d_j * d_j)
        slopes[q, 0], slopes[q, 1] = -2.0 * weight[q] * slope, 2.0 * weight[q] * bend


@kernel
def hessian_parts(documents, lists, arrays, first, last, values, places, parts):
    """What the Hessian block of some queries is made of; how many rows of A, and how many of U and N.

    VᵀSV = AᵀA + UᵀN + NᵀU: A has the rows √(2ω·active_i)·V_i of documents in active pairs, U the rows V_i of
    upper documents, N the sums of V over their active lower partners times −2ω (each of these, and each sum,
    times its document's mass). V are the columns ``places`` of ``values``, which has the documents of these
    queries only.
    """
    offsets, level, weight, mass = documents
    uppers, above, active, _ = arrays
    scaled, upper, sums = parts
    base, n_columns, most = offsets[first], len(places), 0
    for q in range(first, last):
        most = max(most, _n_ends(lists, q))
    ends, row, sum_ = np.empty((most, n_columns)), np.empty(n_columns), np.empty(n_columns)
    row_of, n_scaled, n_upper = np.empty(offsets[last] - base, dtype=np.int64), 0, 0
    for q in range(first, last):
        first_list, n_lists = lists.first[q], lists.first[q + 1] - lists.first[q]
        for a in range(_n_ends(lists, q)):
            clear(ends[a])
        for i in range(offsets[q], offsets[q + 1]):
            degree = weight[q] * active[i]
            if degree > 0.0:
                for c in range(n_columns):
                    row[c] = values[i - base, places[c]]
                _put(scaled[n_scaled], np.sqrt(2.0 * degree), row)
                n_scaled += 1
                if level[i] > 0:
                    _put(upper[n_upper], 1.0, row)
                    clear(sums[n_upper])
                    row_of[i - base] = n_upper
                    n_upper += 1
                if level[i] < n_lists and above[i] > 0:
                    add(ends[_first_end(lists, first_list, level[i]) + above[i]], mass_of(mass, i), row)
        for depth in range(n_lists):
            begin, first_end = lists.begin[first_list + depth], _first_end(lists, first_list, depth)
            clear(sum_)
            for a in range(lists.begin[first_list + depth + 1] - begin - 1, -1, -1):
                i = uppers[begin + a]
                add(sum_, 1.0, ends[first_end + a + 1])
                if weight[q] * active[i] > 0.0:
                    add(sums[row_of[i - base]], -2.0 * weight[q] * mass_of(mass, i), sum_)
    return n_scaled, n_upper


@helper
def _n_ends(lists, q):
    """How many places the lists of a query have together, with one more for each."""
    a, b = lists.first[q], lists.first[q + 1]
    return lists.begin[b] - lists.begin[a] + b - a


@helper
def _first_end(lists, first_list, depth):
    """Where the places of the list for a level begin among those of its query."""
    return lists.begin[first_list + depth] - lists.begin[first_list] + depth


@helper
def _put(target, factor, source):
    for c in range(len(target)):
        target[c] = factor * source[c]


@kernel
def hessian_product(documents, lists, arrays, first, last, v, product):
    """``product`` becomes Sv, S the Hessian in scores of some queries: 2ω(active·v − Σ v of all partners).

    ``v`` and ``product`` have the documents of these queries only.
    """
    offsets, _, weight, mass = documents
    uppers, above, active, _ = arrays
    base, most = offsets[first], _longest_list(lists, first, last)
    before, ends = np.empty(most + 1), np.empty(most + 1)
    for q in range(first, last):
        for i in range(offsets[q], offsets[q + 1]):
            product[i - base] = 2.0 * weight[q] * active[i] * v[i - base]
        for k in range(lists.first[q], lists.first[q + 1]):
            begin, n, sum_ = lists.begin[k], lists.begin[k + 1] - lists.begin[k], 0.0
            for a in range(n + 1):
                before[a], ends[a] = sum_, 0.0
                if a < n:
                    sum_ += mass_of(mass, uppers[begin + a]) * v[uppers[begin + a] - base]
            for p in range(lists.member_begin[k], lists.member_begin[k + 1]):
                j = lists.members[p]
                product[j - base] -= 2.0 * weight[q] * mass_of(mass, j) * before[above[j]]
                ends[above[j]] += mass_of(mass, j) * v[j - base]
            sum_ = 0.0
            for a in range(n - 1, -1, -1):
                sum_ += ends[a + 1]
                i = uppers[begin + a]
                product[i - base] -= 2.0 * weight[q] * mass_of(mass, i) * sum_
