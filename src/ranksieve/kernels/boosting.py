"""RankBoost's sums over pairs, without building a pair.

The pair of an upper document i and a lower document j weighs D_ij ∝ e^{s_j − s_i}, a product, so the sums
over a document's partners are sums over levels.
"""

import numpy as np

from ranksieve.kernels.compiling import kernel
from ranksieve.kernels.masses import mass_of

FARTHEST = 700.0  # from the middle of a query's scores: beyond it e^x overflows


@kernel
def pair_potentials(s, level, offsets, weight, mass, first, last, potential, loss):
    """For the queries first..last: ``potential[i]`` = Σ_j D_ij − Σ_j D_ji, and ``loss[q]`` = Σ_ij D_ij.

    D_ij = weight_q mass_i mass_j e^{s_j − s_i} for level_i > level_j; ``level`` is dense within each query.
    """
    longest = 0
    for q in range(first, last):
        longest = max(longest, offsets[q + 1] - offsets[q])
    rising, falling = np.empty(longest + 1), np.empty(longest + 1)  # e^s of lower, e^−s of upper levels
    for q in range(first, last):
        lo, hi = offsets[q], offsets[q + 1]
        least, most, top = s[lo], s[lo], 0
        for i in range(lo, hi):
            least, most, top = min(least, s[i]), max(most, s[i]), max(top, level[i])
        middle = 0.5 * (least + most)
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
