"""The squared hinge and its Hessian from sorted lists of documents.

The more relevant document of a pair is called the better one, the other the worse one. Each level of a query
has a list of the documents of all higher levels, sorted by score: the better partners of the documents of
that level.
"""

from typing import NamedTuple

import numpy as np

from ranksieve._types import AnyArray, FloatArray, IntArray
from ranksieve.kernels.compiling import helper, kernel
from ranksieve.kernels.pairs import add, centre, clear, longest_run, sort_by_key, weight_of

MAX_MOVES_PER_DOCUMENT = 4  # with more, counts are found by bisection


class BetterLists(NamedTuple):
    """Query q has the lists first[q]..first[q + 1], one for each of its levels except the highest.

    List k is begin[k]..begin[k + 1] of the array of all lists. The documents of its level, which are the
    worse ones of these pairs, are worse[worse_begin[k]..worse_begin[k + 1]].
    """

    first: IntArray
    begin: IntArray
    worse_begin: IntArray
    worse: IntArray


class SortedLists(NamedTuple):
    """Lists sorted by some scores, and the number of active better partners of each document."""

    better: AnyArray
    active_better: AnyArray


class HingeArrays(NamedTuple):
    """Results of an evaluation: :class:`SortedLists`, the number (with document weights, the total weight) of
    active pairs of each document, and the gradient."""

    better: AnyArray
    active_better: AnyArray
    active_pairs: AnyArray
    gradient: FloatArray


class HessianParts(NamedTuple):
    """Arrays for A, U and N of VᵀSV = AᵀA + UᵀN + NᵀU, one row per document."""

    scaled: FloatArray
    better_rows: FloatArray
    sums: FloatArray


class SortBuffers(NamedTuple):
    """Keys of a list, and buffers to sort it."""

    key: FloatArray
    key_buffer: FloatArray
    item_buffer: AnyArray


def make_lists(level: IntArray, offsets: IntArray) -> tuple[BetterLists, IntArray]:
    """The lists of all queries, and the array that holds them, not sorted yet.

    The levels of each query must be 0, 1, … without a gap.
    """
    sizes = np.diff(offsets)
    first = np.concatenate(([0], np.cumsum(np.maximum.reduceat(level, offsets[:-1]))))
    own_list = np.repeat(first[:-1], sizes) + level  # the list for the document's level
    has_list = own_list < np.repeat(first[1:], sizes)
    n_worse = np.bincount(own_list[has_list], minlength=first[-1])
    # size of a list: documents of the query minus those of this and lower levels
    n_documents = np.repeat(sizes, np.diff(first))
    cumulative = np.cumsum(n_worse)
    n_not_better = cumulative - np.repeat(np.concatenate(([0], cumulative))[first[:-1]], np.diff(first))
    begin = np.concatenate(([0], np.cumsum(n_documents - n_not_better)))
    index_type = np.int32 if offsets[-1] < 2**31 else np.int64  # the largest arrays
    lists = BetterLists(
        first, begin, np.concatenate(([0], cumulative)), np.empty(int(has_list.sum()), dtype=index_type)
    )
    better = np.empty(begin[-1], dtype=index_type)
    _fill_lists(level, offsets, lists, lists.begin.copy(), lists.worse_begin.copy(), better)
    return lists, better


@kernel
def _fill_lists(level, offsets, lists, next_better, next_worse, better):
    """Add every document to the lists of all lower levels, and to the worse documents of its own level."""
    for q in range(len(offsets) - 1):
        for i in range(offsets[q], offsets[q + 1]):
            own_list = lists.first[q] + level[i]
            for k in range(lists.first[q], own_list):
                better[next_better[k]] = i
                next_better[k] += 1
            if own_list < lists.first[q + 1]:
                lists.worse[next_worse[own_list]] = i
                next_worse[own_list] += 1


@helper
def _is_active(better_score, worse_score):
    return 1.0 - (better_score - worse_score) > 0.0


@helper
def _count_active(keys, n, t, count, moves_left):
    """Number of the ascending keys[1:n + 1] that are scores of active better partners of the score t.

    keys[n + 1] is ∞. Searches from ``count`` while ``moves_left`` > 0, else by bisection. NaN scores
    (overflow) have no active partners.
    """
    if moves_left > 0:
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
def _weight_of_first(document_weight, weight_sums, m):
    """Total weight of the first m documents of a list."""
    return m if document_weight is None else weight_sums[m]


@helper
def _weight_of_pairs(document_weight, i, partners):
    """Total weight of the pairs of document i, given the total weight of its partners."""
    return int(partners) if document_weight is None else document_weight[i] * partners


@helper
def _sort_list(k, first, list_begin, level, t, lo, better, buffers):
    """Sort the first list of a query by its scores ``t``; filter list k from the sorted first one."""
    begin, end = list_begin[first], list_begin[first + 1]
    if k == first:
        key, key_buffer, item_buffer = buffers
        for p in range(begin, end):
            key[p - begin] = t[better[p] - lo]
        sort_by_key(key[: end - begin], better[begin:end], key_buffer, item_buffer)
        return
    at = list_begin[k]
    for p in range(begin, end):
        if level[better[p]] > k - first:
            better[at] = better[p]
            at += 1


@kernel
def squared_hinge(documents, lists, s, first, last, arrays, sums):
    """The squared hinge of the queries first..last: fill ``sums`` and ``arrays``.

    ``sums`` has Σ ωξ and Σ ωξ² of each query. Σ ξ² = Σ ξ − Σ ξ(t_i − t_j), where the last sum is −½⟨t, ∇⟩ and
    t are the centred scores. These sums may cancel almost to 0, so ``sums`` also has the sizes of their
    terms: Σ ω(1 + |t|) and Σ ω(1 + |t|)² over both documents of active pairs.

    On entry ``better`` and ``active_better`` belong to any other scores; those of similar scores are fastest.
    """
    offsets, level, query_weight, document_weight = documents
    list_first, list_begin, worse_begin, worse = lists
    better, active_better, active_pairs, gradient = arrays
    most = longest_run(list_begin, list_first[first], list_first[last])
    buffers = SortBuffers(np.empty(most), np.empty(most), np.empty(most, dtype=better.dtype))
    keys, prefix_sums = np.empty(most + 2), np.empty(most + 2)
    count, total = np.empty(most + 2), np.empty(most + 2)
    weight_sums = np.empty(0 if document_weight is None else most + 2)
    t = np.empty(longest_run(offsets, first, last))
    for q in range(first, last):
        lo, hi, slack = offsets[q], offsets[q + 1], 0.0
        first_list, last_list = list_first[q], list_first[q + 1]
        centre(s[lo:hi], t)
        for i in range(lo, hi):
            active_pairs[i], gradient[i] = 0, 0.0
        if hi - lo == 2 and last_list - first_list == 1:
            i, j = better[list_begin[first_list]], worse[worse_begin[first_list]]
            t_i, t_j, active_better[j] = t[i - lo], t[j - lo], 0
            if _is_active(t_i, t_j):  # the same bits as below
                w_i, w_j = weight_of(document_weight, i), weight_of(document_weight, j)
                active_better[j], active_pairs[i], active_pairs[j] = 1, w_i * w_j, w_j * w_i
                gradient[j] = w_j * (w_i * (1.0 + t_j) - w_i * t_i)
                gradient[i] = -w_i * (w_j * (1.0 - t_i) + w_j * t_j)
                slack = gradient[j]
            last_list = first_list
        for k in range(first_list, last_list):
            _sort_list(k, first_list, list_begin, level, t, lo, better, buffers)
            begin, n, sum_ = list_begin[k], list_begin[k + 1] - list_begin[k], 0.0
            for a in range(n):
                i = better[begin + a]
                prefix_sums[a], count[a], total[a] = sum_, 0.0, 0.0
                keys[a + 1] = t[i - lo]
                sum_ += weight_of(document_weight, i) * keys[a + 1]
            prefix_sums[n], count[n], total[n], keys[n + 1] = sum_, 0.0, 0.0, np.inf
            _sum_weights(document_weight, better, begin, n, weight_sums)
            moves_left = MAX_MOVES_PER_DOCUMENT * (worse_begin[k + 1] - worse_begin[k])
            for p in range(worse_begin[k], worse_begin[k + 1]):
                j = worse[p]
                t_j = t[j - lo]
                m = _count_active(keys, n, t_j, active_better[j], moves_left)
                moves_left -= abs(m - active_better[j])
                partners = _weight_of_first(document_weight, weight_sums, m)
                xi = weight_of(document_weight, j) * (partners * (1.0 + t_j) - prefix_sums[m])
                active_better[j], slack = m, slack + xi
                active_pairs[j] += _weight_of_pairs(document_weight, j, partners)
                gradient[j] += xi
                count[m] += weight_of(document_weight, j)
                total[m] += weight_of(document_weight, j) * t_j
            m, sum_ = 0.0, 0.0
            for a in range(n - 1, -1, -1):
                m += count[a + 1]
                sum_ += total[a + 1]
                i = better[begin + a]
                active_pairs[i] += _weight_of_pairs(document_weight, i, m)
                gradient[i] -= weight_of(document_weight, i) * (m * (1.0 - t[i - lo]) + sum_)
        product, terms, squares = 0.0, 0.0, 0.0
        for i in range(lo, hi):
            product += t[i - lo] * gradient[i]
            gradient[i] *= 2.0 * query_weight[q]
            size = 1.0 + abs(t[i - lo])
            terms += active_pairs[i] * size
            squares += active_pairs[i] * size * size
        sums[q, 0], sums[q, 1] = query_weight[q] * slack, query_weight[q] * (slack + product)
        sums[q, 2], sums[q, 3] = query_weight[q] * terms, query_weight[q] * squares


@helper
def _sum_weights(document_weight, better, begin, n, weight_sums):
    """Fill ``weight_sums`` with the total weight of the first 0, 1, … n documents of a list."""
    if document_weight is not None:
        weight_sums[0] = 0.0
        for a in range(n):
            weight_sums[a + 1] = weight_sums[a] + document_weight[better[begin + a]]


@kernel
def squared_hinge_along(documents, lists, s, d, step, first, last, sorted_lists, slopes):
    """First and second derivative of each query's Σ ωξ² at the scores s + step·d, along d.

    ``sorted_lists`` is updated to these scores. The sums of (1 − t_i + t_j)(d_i − d_j) and (d_i − d_j)² over
    the active better partners i of j come from the sums of t, d, td and d² over these i; t and d are centred
    within each query to avoid cancellation.
    """
    offsets, level, query_weight, document_weight = documents
    better, active_better = sorted_lists
    most, n_documents = (
        longest_run(lists.begin, lists.first[first], lists.first[last]),
        longest_run(offsets, first, last),
    )
    buffers = SortBuffers(np.empty(most), np.empty(most), np.empty(most, dtype=better.dtype))
    keys, prefix_sums = np.empty(most + 2), np.zeros((most + 2, 4))
    weight_sums = np.empty(0 if document_weight is None else most + 2)
    t, direction = np.empty(n_documents), np.empty(n_documents)
    for q in range(first, last):
        lo, hi = offsets[q], offsets[q + 1]
        centre(s[lo:hi], t)
        centre(d[lo:hi], direction)
        for i in range(hi - lo):
            t[i] += step * direction[i]
        slope, curvature = 0.0, 0.0
        for k in range(lists.first[q], lists.first[q + 1]):
            _sort_list(k, lists.first[q], lists.begin, level, t, lo, better, buffers)
            begin, n = lists.begin[k], lists.begin[k + 1] - lists.begin[k]
            keys[n + 1] = np.inf
            sum_t, sum_d, sum_td, sum_dd = 0.0, 0.0, 0.0, 0.0
            for a in range(n):
                i = better[begin + a]
                t_i, d_i = t[i - lo], direction[i - lo]
                weighted_t = weight_of(document_weight, i) * t_i
                weighted_d = weight_of(document_weight, i) * d_i
                keys[a + 1], sum_t, sum_d = t_i, sum_t + weighted_t, sum_d + weighted_d
                sum_td, sum_dd = sum_td + weighted_t * d_i, sum_dd + weighted_d * d_i
                prefix_sums[a + 1, 0], prefix_sums[a + 1, 1] = sum_t, sum_d
                prefix_sums[a + 1, 2], prefix_sums[a + 1, 3] = sum_td, sum_dd
            _sum_weights(document_weight, better, begin, n, weight_sums)
            moves_left = MAX_MOVES_PER_DOCUMENT * (lists.worse_begin[k + 1] - lists.worse_begin[k])
            for p in range(lists.worse_begin[k], lists.worse_begin[k + 1]):
                j = lists.worse[p]
                t_j, d_j = t[j - lo], direction[j - lo]
                m = _count_active(keys, n, t_j, active_better[j], moves_left)
                moves_left -= abs(m - active_better[j])
                active_better[j] = m
                w_j = weight_of(document_weight, j)
                partners = _weight_of_first(document_weight, weight_sums, m)
                slope_j = (
                    (1.0 + t_j) * (prefix_sums[m, 1] - partners * d_j)
                    - prefix_sums[m, 2]
                    + d_j * prefix_sums[m, 0]
                )
                slope += w_j * slope_j
                curvature += w_j * (prefix_sums[m, 3] - 2.0 * d_j * prefix_sums[m, 1] + partners * d_j * d_j)
        slopes[q, 0], slopes[q, 1] = -2.0 * query_weight[q] * slope, 2.0 * query_weight[q] * curvature


@kernel
def hessian_parts(documents, lists, arrays, first, last, values, columns, parts):
    """Fill A, U and N of VᵀSV = AᵀA + UᵀN + NᵀU; return the number of rows of A, and of U and N.

    A has the rows √(2ω·active_pairs_i)·V_i of documents in active pairs, U the rows V_i of better documents,
    N the sums of V over their active worse partners times −2ω (each term and each sum times its document's
    weight). V are the ``columns`` of ``values``, which holds only the documents of these queries.
    """
    offsets, level, query_weight, document_weight = documents
    list_first, list_begin, _, _ = lists
    better, active_better, active_pairs, _ = arrays
    scaled, better_rows, sums = parts
    base, n_columns, most = offsets[first], len(columns), 0
    for q in range(first, last):  # one more than the length of each list: its ends
        a, b = list_first[q], list_first[q + 1]
        n_ends = list_begin[b] - list_begin[a] + b - a
        most = n_ends if n_ends > most else most
    ends, row, sum_ = np.empty((most, n_columns)), np.empty(n_columns), np.empty(n_columns)
    row_of, n_scaled, n_better = np.empty(offsets[last] - base, dtype=np.int64), 0, 0
    for q in range(first, last):
        first_list, n_lists = list_first[q], list_first[q + 1] - list_first[q]
        for a in range(list_begin[first_list + n_lists] - list_begin[first_list] + n_lists):
            for c in range(n_columns):
                ends[a, c] = 0.0
        for i in range(offsets[q], offsets[q + 1]):
            degree = query_weight[q] * active_pairs[i]
            if degree > 0.0:
                factor, at = np.sqrt(2.0 * degree), level[i]
                for c in range(n_columns):
                    row[c] = values[i - base, columns[c]]
                    scaled[n_scaled, c] = factor * row[c]
                n_scaled += 1
                if at > 0:
                    for c in range(n_columns):
                        better_rows[n_better, c], sums[n_better, c] = row[c], 0.0
                    row_of[i - base] = n_better
                    n_better += 1
                if at < n_lists and active_better[i] > 0:
                    weight = weight_of(document_weight, i)
                    end = list_begin[first_list + at] - list_begin[first_list] + at + active_better[i]
                    for c in range(n_columns):
                        ends[end, c] += weight * row[c]
        for depth in range(n_lists):
            begin = list_begin[first_list + depth]
            end = list_begin[first_list + depth + 1] - list_begin[first_list] + depth
            for c in range(n_columns):
                sum_[c] = 0.0
            for p in range(list_begin[first_list + depth + 1] - 1, begin - 1, -1):
                i = better[p]
                for c in range(n_columns):
                    sum_[c] += ends[end, c]
                end -= 1
                if query_weight[q] * active_pairs[i] > 0.0:
                    factor, at = -2.0 * query_weight[q] * weight_of(document_weight, i), row_of[i - base]
                    for c in range(n_columns):
                        sums[at, c] += factor * sum_[c]
    return n_scaled, n_better


@kernel
def sparse_hessian(documents, lists, arrays, first, last, rows, position, half):
    """Add H to ``half``, where VᵀSV = H + Hᵀ for V with the entries position_j ≥ 0 of CSR ``rows``.

    H = Σ_i v_i R_iᵀ with R_i = ω·active_pairs_i·v_i, for a better document minus 2ω times the sum of V over
    its active worse partners; R_i is dense over the columns that occur in its query. ``rows`` has only the
    documents of these queries.
    """
    offsets, level, query_weight, _ = documents
    active_pairs, base = arrays.active_pairs, offsets[first]
    longest = longest_run(offsets, first, last)
    local, in_query = np.full(len(half), -1), np.empty(len(half), dtype=np.int64)
    latest, previous = np.empty(longest + 1, dtype=np.int64), np.empty(longest, dtype=np.int64)
    sum_, buffer = np.empty(len(half)), np.empty(0)
    for q in range(first, last):
        lo, hi = offsets[q], offsets[q + 1]
        n_local = _number_columns(documents, active_pairs, q, rows, base, position, local, in_query)
        if n_local == 0:
            continue
        if len(buffer) < (hi - lo) * n_local:
            buffer = np.empty((hi - lo) * n_local)
        right = buffer[: (hi - lo) * n_local].reshape(hi - lo, n_local)
        for i in range(lo, hi):
            if level[i] > 0:
                clear(right[i - lo])
        for k in range(lists.first[q], lists.first[q + 1]):
            clear(sum_[:n_local])
            _subtract_partners(
                documents, lists, arrays, q, k, rows, base, position, local, latest, previous, sum_, right
            )
        for i in range(lo, hi):
            degree = query_weight[q] * active_pairs[i]
            if degree > 0.0 and level[i] > 0:
                _add_entries(rows, i - base, degree, position, local, right[i - lo])
            for entry in range(rows.starts[i - base], rows.starts[i - base + 1]):
                j = position[rows.columns[entry]]
                if degree > 0.0 and j >= 0 and level[i] > 0:
                    _scatter(half[j], rows.values[entry], right[i - lo], in_query)
                elif degree > 0.0 and j >= 0:
                    _add_entries(rows, i - base, degree * rows.values[entry], position, None, half[j])
        for c in range(n_local):
            local[in_query[c]] = -1


@helper
def _number_columns(documents, active_pairs, q, rows, base, position, local, in_query):
    """Number the columns that occur in active pairs of a query; return how many there are."""
    n_local = 0
    for i in range(documents.offsets[q], documents.offsets[q + 1]):
        if documents.query_weight[q] * active_pairs[i] > 0.0:
            for entry in range(rows.starts[i - base], rows.starts[i - base + 1]):
                j = position[rows.columns[entry]]
                if j >= 0 and local[j] < 0:
                    local[j], in_query[n_local] = n_local, j
                    n_local += 1
    return n_local


@helper
def _subtract_partners(
    documents, lists, arrays, q, k, rows, base, position, local, latest, previous, sum_, right
):
    """Subtract 2ω times the sum of V over the active worse partners in list k from each row of ``right``.

    ``latest`` and ``previous`` chain the worse documents with equally many active partners.
    """
    lo, begin, n = documents.offsets[q], lists.begin[k], lists.begin[k + 1] - lists.begin[k]
    document_weight, active_better = documents.document_weight, arrays.active_better
    for a in range(n + 1):
        latest[a] = -1
    for p in range(lists.worse_begin[k], lists.worse_begin[k + 1]):
        j = lists.worse[p]
        previous[j - lo], latest[active_better[j]] = latest[active_better[j]], j - lo
    for a in range(n - 1, -1, -1):
        j, i = latest[a + 1], arrays.better[begin + a]
        while j >= 0:
            weight = weight_of(document_weight, lo + j)
            _add_entries(rows, lo + j - base, weight, position, local, sum_)
            j = previous[j]
        if documents.query_weight[q] * arrays.active_pairs[i] > 0.0:
            factor = -2.0 * documents.query_weight[q] * weight_of(document_weight, i)
            add(right[i - lo], factor, sum_[: right.shape[1]])


@helper
def _add_entries(rows, i, factor, position, local, total):
    """Add ``factor`` times the entries of row i with position_j ≥ 0 to ``total``, at local positions."""
    for entry in range(rows.starts[i], rows.starts[i + 1]):
        j = position[rows.columns[entry]]
        if j >= 0:
            total[j if local is None else local[j]] += factor * rows.values[entry]


@helper
def _scatter(total, factor, source, columns):
    """total[columns_c] += factor·source_c."""
    for c in range(len(source)):
        total[columns[c]] += factor * source[c]


@kernel
def hessian_product(documents, lists, arrays, first, last, v, product):
    """Fill ``product`` with Sv = 2ω(active_pairs·v − Σ v over all active partners), S the Hessian in scores.

    ``v`` and ``product`` hold only the documents of these queries.
    """
    offsets, _, query_weight, document_weight = documents
    better, active_better, active_pairs, _ = arrays
    base, most = offsets[first], longest_run(lists.begin, lists.first[first], lists.first[last])
    prefix_sums, ends = np.empty(most + 1), np.empty(most + 1)
    for q in range(first, last):
        for i in range(offsets[q], offsets[q + 1]):
            product[i - base] = 2.0 * query_weight[q] * active_pairs[i] * v[i - base]
        for k in range(lists.first[q], lists.first[q + 1]):
            begin, n, sum_ = lists.begin[k], lists.begin[k + 1] - lists.begin[k], 0.0
            for a in range(n + 1):
                prefix_sums[a], ends[a] = sum_, 0.0
                if a < n:
                    sum_ += weight_of(document_weight, better[begin + a]) * v[better[begin + a] - base]
            for p in range(lists.worse_begin[k], lists.worse_begin[k + 1]):
                j = lists.worse[p]
                product[j - base] -= (
                    2.0 * query_weight[q] * weight_of(document_weight, j) * prefix_sums[active_better[j]]
                )
                ends[active_better[j]] += weight_of(document_weight, j) * v[j - base]
            sum_ = 0.0
            for a in range(n - 1, -1, -1):
                sum_ += ends[a + 1]
                i = better[begin + a]
                product[i - base] -= 2.0 * query_weight[q] * weight_of(document_weight, i) * sum_
