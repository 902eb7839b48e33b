"""DCG of the first ranks along a line of scores, without sorting."""

import numpy as np

from ranksieve.kernels.compiling import kernel


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
