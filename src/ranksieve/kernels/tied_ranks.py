"""Reciprocal ranks of rankings with ties: means over all orders of the tied documents.

Slots ``offsets[q]`` to ``offsets[q + 1]`` are the ranks of query q. Its first ``places[q]`` ranks count. The
groups of tied documents have the slots from ``starts`` on, ``sizes`` many, and cover all slots.
"""

import numpy as np

from ranksieve.kernels.compiling import kernel


@kernel
def reciprocal_ranks(relevant, offsets, places, starts, sizes, values):
    """Mean of 1 / (rank of the first relevant document).

    Only the first group with a relevant document counts. Of n tied documents with m relevant ones, the i-th
    is relevant with probability m / (n − i + 1) if those above it are not.
    """
    group = 0
    for q in range(len(places)):
        values[q], found = 0.0, False
        while group < len(starts) and starts[group] < offsets[q + 1]:
            first, n = starts[group], sizes[group]
            group += 1
            m = 0.0
            for slot in range(first, first + n):
                m += relevant[slot]
            if found or m == 0.0:
                continue
            found = True
            above, none_yet = first - offsets[q], 1.0
            for i in range(1, min(n, places[q] - above) + 1):
                chance = m / (n - i + 1)
                if chance >= 1.0:
                    values[q] += none_yet / (above + i)
                    break
                values[q] += none_yet * chance / (above + i)
                none_yet *= 1.0 - chance


@kernel
def stopping_ranks(stop, offsets, places, starts, sizes, values):
    """Mean of Σ_i (1/i)·R_i·Π_{j < i} (1 − R_j), R = ``stop``.

    survival[i] is the mean of Π (1 − R_j) over all sets of i documents of a group: the elementary symmetric
    polynomial of their 1 − R_j divided by the number of sets. With another document, the t-th, a set of i
    contains it with probability i/t, so all values stay between 0 and 1. A group of n documents of which K
    count takes n·K steps.
    """
    longest = 0
    for n in sizes:
        longest = max(longest, n)
    survival = np.empty(longest + 1)
    group = 0
    for q in range(len(places)):
        values[q], alive = 0.0, 1.0
        while group < len(starts) and starts[group] < offsets[q + 1]:
            first, n = starts[group], sizes[group]
            group += 1
            above = first - offsets[q]
            counted = min(n, places[q] - above)
            if counted <= 0:
                continue
            survival[0], survival[1 : counted + 1] = 1.0, 0.0
            for t in range(1, n + 1):
                go_on = 1.0 - stop[first + t - 1]
                for i in range(min(t, counted), 0, -1):
                    survival[i] = ((t - i) * survival[i] + i * go_on * survival[i - 1]) / t
            for i in range(1, counted + 1):
                values[q] += alive * (survival[i - 1] - survival[i]) / (above + i)
            alive *= survival[counted]
