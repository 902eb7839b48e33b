"""Compiled loops for the baselines: RankBoost's pair sums and margins, the modified Huber loss, DCG along a
line, and the most violated ranking of SVM-MAP."""

from typing import NamedTuple

import numpy as np

from ranksieve._types import FloatArray, IntArray
from ranksieve.kernels.compiling import kernel
from ranksieve.kernels.pairs import longest_run, weight_of

MAX_EXPONENT = 700.0  # e^x overflows beyond; scores farther from the mid-range of their query are clipped


@kernel
def pair_potentials(s, level, offsets, query_weight, document_weight, first, last, potential, loss):
    """Compute ``potential[i]`` = Σ_j D_ij − Σ_j D_ji and ``loss[q]`` = Σ_ij D_ij for the queries first..last.

    D_ij = query_weight_q v_i v_j e^{s_j − s_i} for level_i > level_j, v the document weights; ``level`` is
    dense within each query.
    """
    most = longest_run(offsets, first, last)
    rising, falling = np.empty(most + 1), np.empty(most + 1)  # Σ e^s of lower levels, Σ e^−s of higher levels
    for q in range(first, last):
        lo, hi = offsets[q], offsets[q + 1]
        lowest, highest, top = s[lo], s[lo], 0
        for i in range(lo, hi):
            lowest, highest, top = min(lowest, s[i]), max(highest, s[i]), max(top, level[i])
        middle = 0.5 * (lowest + highest)
        for a in range(top + 2):
            rising[a], falling[a] = 0.0, 0.0
        for i in range(lo, hi):
            t = min(max(s[i] - middle, -MAX_EXPONENT), MAX_EXPONENT)
            rising[level[i] + 1] += weight_of(document_weight, i) * np.exp(t)
            falling[level[i]] += weight_of(document_weight, i) * np.exp(-t)
        # rising[a]: all levels below a; falling[a + 1]: all levels above a.
        for a in range(1, top + 2):
            rising[a] += rising[a - 1]
        for a in range(top, -1, -1):
            falling[a] += falling[a + 1]
        total = 0.0
        for i in range(lo, hi):
            t = min(max(s[i] - middle, -MAX_EXPONENT), MAX_EXPONENT)
            weight = query_weight[q] * weight_of(document_weight, i)
            as_better = weight * np.exp(-t) * rising[level[i]]
            as_worse = weight * np.exp(t) * falling[level[i] + 1]
            potential[i] = as_better - as_worse
            total += as_better
        loss[q] = total


class HuberPairs(NamedTuple):
    """The weighted pairs of documents; documents are sorted by ascending level within each query.

    Document i forms pairs with the less relevant documents of its query, those before ``level_start[i]``.
    The weight of a pair is (gain_floor + |gain_i − gain_j|)(discount_floor + |discount_i − discount_j|) times
    both document weights (None: 1).
    """

    level_start: IntArray
    document_weight: FloatArray | None
    gain: FloatArray
    discount: FloatArray
    gain_floor: float
    discount_floor: float


@kernel(fastmath={"reassoc", "nsz"})  # allows vectorised sums; the order is fixed all the same
def worse_partners(
    s, gain, discount, gain_floor, discount_floor, document_weight, i, lo, scores, gains, discounts, slopes
):  # fmt: skip
    """Return Σ ωψ, Σ ωh(2 − h) = Σ ω(ψ − tψ′) and Σ 2ωh over the less relevant partners of document i.

    Each term 2ωh is also added to ``slopes[j]``. The partners are lo, lo + 1, … in ``document_weight``. The
    arguments are not grouped in tuples because LLVM would then sum in another order.
    """
    total, dual, slope = 0.0, 0.0, 0.0
    for j in range(len(scores)):
        x = 1.0 - (s - scores[j])
        h = x if x > 0.0 else 0.0
        h = h if h < 2.0 else 2.0
        omega = (gain_floor + abs(gain - gains[j])) * (discount_floor + abs(discount - discounts[j]))
        omega = weight_of(document_weight, i) * weight_of(document_weight, lo + j) * omega
        total += omega * h * (2.0 * x - h)
        dual += omega * h * (2.0 - h)
        slope += 2.0 * omega * h
        slopes[j] += 2.0 * omega * h
    return total, dual, slope


@kernel
def huber_pairs(pairs, s, offsets, first, last, value, slack, gradient):
    """Compute Σ ωψ and Σ ω(ψ − tψ′) of each query, and the gradient (initially 0), without query weights."""
    level_start, document_weight, gain, discount, gain_floor, discount_floor = pairs
    for q in range(first, last):
        lo = offsets[q]
        value[q], slack[q] = 0.0, 0.0
        for i in range(lo, offsets[q + 1]):
            end = level_start[i]
            total, dual, slope = worse_partners(
                s[i], gain[i], discount[i], gain_floor, discount_floor, document_weight, i, lo,
                s[lo:end], gain[lo:end], discount[lo:end], gradient[lo:end],
            )  # fmt: skip
            value[q] += total
            slack[q] += dual
            gradient[i] -= slope


@kernel
def huber_curvature(pairs, s, offsets, first, last, V, R):
    """Add Σ ω (e_i − e_j)(V_i − V_j) over the pairs on the parabola, |s_i − s_j| < 1, to R.

    V and R have one row per document of the queries first..last.
    """
    base = offsets[first]
    for q in range(first, last):
        for i in range(offsets[q], offsets[q + 1]):
            for j in range(offsets[q], pairs.level_start[i]):
                if abs(s[i] - s[j]) < 1.0:
                    omega = pairs.gain_floor + abs(pairs.gain[i] - pairs.gain[j])
                    omega *= pairs.discount_floor + abs(pairs.discount[i] - pairs.discount[j])
                    omega = weight_of(pairs.document_weight, i) * weight_of(pairs.document_weight, j) * omega
                    for c in range(V.shape[1]):
                        change = omega * (V[i - base, c] - V[j - base, c])
                        R[i - base, c] += change
                        R[j - base, c] -= change


@kernel
def threshold_margins(code, potential, first, last, margin):
    """Compute ``margin[f, b]`` = Σ potential[i] over code[f, i] > b, for the features first..last."""
    for f in range(first, last):
        for b in range(margin.shape[1]):
            margin[f, b] = 0.0
        for i in range(len(potential)):
            if code[f, i] > 0:
                margin[f, code[f, i] - 1] += potential[i]
        for b in range(margin.shape[1] - 2, -1, -1):
            margin[f, b] += margin[f, b + 1]


@kernel
def dcg_along(scores, column, steps, gains, offsets, discounts, query_factor, values):
    """Compute values[m] = Σ_q query_factor_q · DCG of query q ranked by scores + steps[m]·column.

    DCG counts the first len(discounts) ranks. Rows are grouped by query; ties are ranked in row order.
    """
    k = len(discounts)
    top, gain = np.empty(k), np.empty(k)
    for m in range(len(steps)):
        total = 0.0
        for q in range(len(offsets) - 1):
            if query_factor[q] == 0.0:
                continue
            filled = 0
            for i in range(offsets[q], offsets[q + 1]):
                score = scores[i] + steps[m] * column[i]
                if filled == k and score <= top[k - 1]:
                    continue
                filled = min(filled + 1, k)
                rank = filled - 1
                while rank > 0 and top[rank - 1] < score:
                    top[rank], gain[rank] = top[rank - 1], gain[rank - 1]
                    rank -= 1
                top[rank], gain[rank] = score, gains[i]
            dcg = 0.0
            for rank in range(filled):
                dcg += gain[rank] * discounts[rank]
            total += query_factor[q] * dcg
        values[m] = total


@kernel
def relevant_below(relevant, others, n_below):
    """Compute ``n_below[j]``, the number of relevant documents ranked below the j-th irrelevant one.

    ``relevant`` and ``others`` are scores in descending order.
    """
    n_relevant, n_others = len(relevant), len(others)
    most = n_relevant
    for j in range(n_others):
        total, best, best_m = 0.0, 0.0, 0
        for m in range(1, most + 1):
            i = n_relevant - m + 1
            gain = i / ((i + j + 1.0) * (i + j)) / n_relevant
            total += gain - 2.0 * (relevant[i - 1] - others[j]) / (n_relevant * n_others)
            if total > best:
                best, best_m = total, m
        n_below[j] = best_m
        most = best_m


@kernel
def _assign_tie_means(values, scores, documents, target):
    """Write values to ``target[documents]``; documents with tied scores get the mean, also a subgradient."""
    start = 0
    while start < len(values):
        stop, total = start + 1, values[start]
        while stop < len(values) and scores[stop] == scores[start]:
            total += values[stop]
            stop += 1
        for a in range(start, stop):
            target[documents[a]] = total / (stop - start)
        start = stop


@kernel
def violated_rankings(ranking, relevant, offsets, first, last, gradient, ap_loss, value):
    """Find the most violated ranking of each of the queries first..last.

    ``ap_loss`` is 1 − AP of that ranking, ``value`` = ap_loss + ⟨gradient, t⟩ the hinge, and ``gradient`` its
    subgradient; all are 0 for queries without a relevant or without an irrelevant document.
    """
    t, order = ranking
    for q in range(first, last):
        lo, hi = offsets[q], offsets[q + 1]
        n_relevant = 0
        for i in range(lo, hi):
            n_relevant += relevant[i]
            gradient[i] = 0.0
        n_others = hi - lo - n_relevant
        ap_loss[q], value[q] = 0.0, 0.0
        if n_relevant == 0 or n_others == 0:
            continue
        better, worse = np.empty(n_relevant, dtype=np.int64), np.empty(n_others, dtype=np.int64)
        a, b = 0, 0
        for k in range(hi - 1, lo - 1, -1):
            if relevant[order[k]]:
                better[a] = order[k]
                a += 1
            else:
                worse[b] = order[k]
                b += 1
        n_below, n_above = np.zeros(n_others), np.zeros(n_relevant)
        relevant_below(t[better], t[worse], n_below)
        for j in range(n_others):
            for i in range(n_relevant - int(n_below[j]), n_relevant):
                n_above[i] += 1.0
        precision = 0.0
        for i in range(n_relevant):
            precision += (i + 1.0) / (i + 1.0 + n_above[i])
        ap_loss[q] = 1.0 - precision / n_relevant
        _assign_tie_means(2.0 * n_below / (n_relevant * n_others), t[worse], worse, gradient)
        _assign_tie_means(-2.0 * n_above / (n_relevant * n_others), t[better], better, gradient)
        value[q] = ap_loss[q]
        for i in range(lo, hi):
            value[q] += gradient[i] * t[i]
