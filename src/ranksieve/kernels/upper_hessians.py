"""The Hessian of the squared hinge over active pairs, from the lists of :mod:`ranksieve.kernels.uppers`.

``uppers``, ``above`` and ``active`` are what :func:`ranksieve.kernels.uppers.squared_hinge` made of them.
"""

import numpy as np

from ranksieve.kernels.compiling import helper, kernel
from ranksieve.kernels.masses import mass_of
from ranksieve.kernels.uppers import longest_list


@kernel
def hessian_parts(
    level, offsets, first, last, lists, uppers, above, weight, mass, active, values, places, scaled, upper,
    sums,
):  # fmt: skip
    """What the Hessian block of some queries is made of; how many rows of ``scaled``, and of the others.

    VᵀSV = AᵀA + UᵀN + NᵀU: A has the rows √(2ω·active_i)·V_i of documents in active pairs, U the rows V_i of
    upper documents, N the sums of V over their active lower partners times −2ω (each of these, and each sum,
    times its document's mass). V are the columns ``places``
    of ``values``, which has the documents of these queries only.
    """
    base, n_columns, most = offsets[first], len(places), 0
    for q in range(first, last):
        most = max(most, _n_ends(lists, q))
    ends, row, sum_ = np.empty((most, n_columns)), np.empty(n_columns), np.empty(n_columns)
    row_of, n_scaled, n_upper = np.empty(offsets[last] - base, dtype=np.int64), 0, 0
    for q in range(first, last):
        first_list, n_lists = lists.first[q], lists.first[q + 1] - lists.first[q]
        for a in range(_n_ends(lists, q)):
            _clear(ends[a])
        for i in range(offsets[q], offsets[q + 1]):
            degree = weight[q] * active[i]
            if degree > 0.0:
                for c in range(n_columns):
                    row[c] = values[i - base, places[c]]
                _put(scaled[n_scaled], np.sqrt(2.0 * degree), row)
                n_scaled += 1
                if level[i] > 0:
                    _put(upper[n_upper], 1.0, row)
                    _clear(sums[n_upper])
                    row_of[i - base] = n_upper
                    n_upper += 1
                if level[i] < n_lists and above[i] > 0:
                    _add(ends[_first_end(lists, first_list, level[i]) + above[i]], mass_of(mass, i), row)
        for depth in range(n_lists):
            begin, first_end = lists.begin[first_list + depth], _first_end(lists, first_list, depth)
            _clear(sum_)
            for a in range(lists.begin[first_list + depth + 1] - begin - 1, -1, -1):
                i = uppers[begin + a]
                _add(sum_, 1.0, ends[first_end + a + 1])
                if weight[q] * active[i] > 0.0:
                    _add(sums[row_of[i - base]], -2.0 * weight[q] * mass_of(mass, i), sum_)
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
def _clear(target):
    for c in range(len(target)):
        target[c] = 0.0


@helper
def _put(target, factor, source):
    for c in range(len(target)):
        target[c] = factor * source[c]


@helper
def _add(target, factor, source):
    for c in range(len(target)):
        target[c] += factor * source[c]


@kernel
def hessian_product(offsets, first, last, lists, uppers, above, weight, mass, active, v, product):
    """``product`` becomes Sv, S the Hessian in scores of some queries: 2ω(active·v − Σ v of all partners).

    ``v`` and ``product`` have the documents of these queries only.
    """
    base, longest = offsets[first], longest_list(lists, first, last)
    before, ends = np.empty(longest + 1), np.empty(longest + 1)
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
