"""Compiled loops of baselines: RankBoost's pair sums, the modified Huber loss, DCG at the top ranks, the most
violated ranking."""

from typing import NamedTuple

import numpy as np

from ranksieve._types import FloatArray, IntArray
from ranksieve.kernels.compiling import kernel
from ranksieve.kernels.pairs import longest, mass_of

FARTHEST = 700.0  # from the middle of a query's scores: beyond it e^x overflows


@kernel
def pair_potentials(s, level, offsets, weight, mass, first, last, potential, loss):
    """For the queries first..last: ``potential[i]`` = Σ_j D_ij − Σ_j D_ji, and ``loss[q]`` = Σ_ij D_ij.

    D_ij = weight_q mass_i mass_j e^{s_j − s_i} for level_i > level_j; ``level`` is dense within each query.
    """
    most = longest(offsets, first, last)
    rising, falling = np.empty(most + 1), np.empty(most + 1)  # e^s of lower, e^−s of upper levels
    for q in range(first, last):
        lo, hi = offsets[q], offsets[q + 1]
        lowest, highest, top = s[lo], s[lo], 0
        for i in range(lo, hi):
            lowest, highest, top = min(lowest, s[i]), max(highest, s[i]), max(top, level[i])
        middle = 0.5 * (lowest + highest)
        for a in range(top + 2):
            rising[a], falling[a] = 0.0, 0.0
        for i in range(lo, hi):
            t = min(max(s[i] - middle, -FARTHEST), FARTHEST)
            rising[level[i] + 1] += mass_of(mass, i) * np.exp(t)
            falling[level[i]] += mass_of(mass, i) * np.exp(-t)
        # rising[a]: all levels below a; falling[a + 1]: all levels above a.
        for a in range(1, top + 2):
            rising[a] += rising[a - 1]
        for a in range(top, -1, -1):
            falling[a] += falling[a + 1]
        total = 0.0
        for i in range(lo, hi):
            t = min(max(s[i] - middle, -FARTHEST), FARTHEST)
            own = weight[q] * mass_of(mass, i)
            as_upper = own * np.exp(-t) * rising[level[i]]
            as_lower = own * np.exp(t) * falling[level[i] + 1]
            potential[i] = as_upper - as_lower
            total += as_upper
        loss[q] = total


class HuberPairs(NamedTuple):
    """The weighted pairs of documents, which stand by ascending level within each query.

    The pairs of i are those with the documents from the first of its query up to floor[i]. They weigh
    (gain_floor + |gain_i − gain_j|)(discount_floor + |discount_i − discount_j|) times both masses (None: 1).
    """

    floor: IntArray
    mass: FloatArray | None
    gain: FloatArray
    discount: FloatArray
    gain_floor: float
    discount_floor: float


@kernel(fastmath={"reassoc", "nsz"})  # sums in any, but a fixed, order: vectorised
def lower_partners(
    s, gain, discount, gain_floor, discount_floor, mass, i, lo, lower, gains, discounts, lower_slopes
):  # fmt: skip
    """Of one upper document, Σ ωψ, Σ ωh(2 − h), which is Σ ω(ψ − tψ′), and Σ 2ωh, each also put to its j.

    It is the document i, and the others are lo, lo + 1, … in ``mass``. Arguments come one by one because LLVM
    adds up in another order if they come in tuples.
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
def huber_pairs(pairs, s, offsets, first, last, value, slack, gradient):
    """Per query Σ ωψ and Σ ω(ψ − tψ′) without the query's weight; the gradient, which comes in as zeros."""
    floor, mass, gain, discount, gain_floor, discount_floor = pairs
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
def huber_curvature(pairs, s, offsets, first, last, V, R):
    """R = Σ ω (e_i − e_j)(V_i − V_j) over the pairs on the parabola, |s_i − s_j| < 1; comes in as zeros.

    V and R hold the documents of the queries first..last only.
    """
    base = offsets[first]
    for q in range(first, last):
        for i in range(offsets[q], offsets[q + 1]):
            for j in range(offsets[q], pairs.floor[i]):
                if abs(s[i] - s[j]) < 1.0:
                    omega = pairs.gain_floor + abs(pairs.gain[i] - pairs.gain[j])
                    omega *= pairs.discount_floor + abs(pairs.discount[i] - pairs.discount[j])
                    omega = mass_of(pairs.mass, i) * mass_of(pairs.mass, j) * omega
                    for c in range(V.shape[1]):
                        change = omega * (V[i - base, c] - V[j - base, c])
                        R[i - base, c] += change
                        R[j - base, c] -= change


@kernel
def threshold_margins(code, potential, first, last, margin):
    """For the features first..last: ``margin[f, b]`` = Σ potential of the documents with code[f] > b."""
    for f in range(first, last):
        for b in range(margin.shape[1]):
            margin[f, b] = 0.0
        for i in range(len(potential)):
            if code[f, i] > 0:
                margin[f, code[f, i] - 1] += potential[i]
        for b in range(margin.shape[1] - 2, -1, -1):
            margin[f, b] += margin[f, b + 1]


@kernel
def dcg_along(scores, column, steps, gains, offsets, discounts, worth, values):
    """values[m] = Σ_q worth_q DCG of query q by scores + steps[m]·column, over as many ranks as discounts.

    Rows are grouped by query; of equal scores the earlier row ranks first.
    """
    k = len(discounts)
    top, gain = np.empty(k), np.empty(k)
    for m in range(len(steps)):
        total = 0.0
        for q in range(len(offsets) - 1):
            if worth[q] == 0.0:
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
            total += worth[q] * dcg
        values[m] = total


@kernel
def passed_documents(up, low, passed):
    """``passed[j]``: how many relevant documents stand below the j-th irrelevant one; scores descend."""
    n_up, n_low = len(up), len(low)
    most = n_up
    for j in range(n_low):
        total, best, at = 0.0, 0.0, 0
        for m in range(1, most + 1):
            i = n_up - m + 1
            total += i / ((i + j + 1.0) * (i + j)) / n_up - 2.0 * (up[i - 1] - low[j]) / (n_up * n_low)
            if total > best:
                best, at = total, m
        passed[j] = at
        most = at


@kernel
def _put_shared(values, scores, documents, target):
    """Write values to documents; those of equal score share: the mean of subgradients is one too."""
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
def violated_rankings(ranked, relevant, offsets, first, last, gradient, missed, value):
    """For the queries first..last: 1 − AP of the most violated ranking (``missed``), the hinge
    ``value`` = missed + ⟨gradient, t⟩ and its subgradient; 0 where all documents are alike.
    """
    t, order = ranked
    for q in range(first, last):
        lo, hi = offsets[q], offsets[q + 1]
        n_up = 0
        for i in range(lo, hi):
            n_up += relevant[i]
            gradient[i] = 0.0
        n_low = hi - lo - n_up
        missed[q], value[q] = 0.0, 0.0
        if n_up == 0 or n_low == 0:
            continue
        up, low = np.empty(n_up, dtype=np.int64), np.empty(n_low, dtype=np.int64)
        a, b = 0, 0
        for k in range(hi - 1, lo - 1, -1):
            if relevant[order[k]]:
                up[a] = order[k]
                a += 1
            else:
                low[b] = order[k]
                b += 1
        passed, above = np.zeros(n_low), np.zeros(n_up)
        passed_documents(t[up], t[low], passed)
        for j in range(n_low):
            for i in range(n_up - int(passed[j]), n_up):
                above[i] += 1.0
        precision = 0.0
        for i in range(n_up):
            precision += (i + 1.0) / (i + 1.0 + above[i])
        missed[q] = 1.0 - precision / n_up
        _put_shared(2.0 * passed / (n_up * n_low), t[low], low, gradient)
        _put_shared(-2.0 * above / (n_up * n_low), t[up], up, gradient)
        value[q] = missed[q]
        for i in range(lo, hi):
            value[q] += gradient[i] * t[i]
