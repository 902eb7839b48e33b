"""The most violated ranking of the structural SVM for average precision.

Among rankings with the same pattern of relevant (R) and irrelevant (I) documents the score decides, so only
the interleaving of two sorted lists is open. Let j irrelevant documents stand above a place, and let the
i-th relevant document fall behind one more: 1 − AP rises by (1/R)·i/((i + j)(i + j − 1)) and the score of the
ranking changes by −2(s_i − s_j)/(R·I). Both depend on i and j alone, so every irrelevant document finds its
place for itself, and a lower one never above a higher one.
"""

import numpy as np

from ranksieve.kernels.compiling import kernel


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
def violated_rankings(t, relevant, order, offsets, first, last, gradient, missed, value):
    """For the queries first..last: 1 − AP of the most violated ranking (``missed``), the hinge
    ``value`` = missed + ⟨gradient, t⟩ and its subgradient; 0 where all documents are alike.

    ``order`` is sorted by ``t`` within each query, ascending.
    """
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
