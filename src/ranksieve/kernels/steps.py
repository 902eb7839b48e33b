"""Step columns: scores, gradients and values from the codes of features.

``codes`` (features × rows) is the number of thresholds ≤ x, or ``MISSING``. Slot b of a feature is the column
1[code ≥ b] of present values, slot ``MISSING`` the column 1[x is missing].
"""

from ranksieve.kernels.compiling import kernel

MAX_THRESHOLDS = 63
MISSING = MAX_THRESHOLDS + 1  # code and slot of a missing value


@kernel
def add_levels(codes, features, levels, first, last, scores):
    """scores_i += Σ_k levels[k, code of features_k in row i] for the rows first..last, in this order."""
    for k in range(len(features)):
        row_codes, level = codes[features[k]], levels[k]
        for i in range(first, last):
            scores[i - first] += level[row_codes[i]]


@kernel
def step_sums(codes, features, g, cuts, sums):
    """sums[p, k, b] = Σ g_i over the rows of part p where slot b of feature k is 1.

    ``g`` starts at the first of these rows. One histogram per feature and part, then a sum from above.
    """
    for p in range(len(cuts) - 1):
        for k in range(len(features)):
            row_codes, total = codes[features[k]], sums[p, k]
            for b in range(len(total)):
                total[b] = 0.0
            for i in range(cuts[p], cuts[p + 1]):
                total[row_codes[i]] += g[i - cuts[0]]
            for b in range(MISSING - 2, -1, -1):
                total[b] += total[b + 1]


@kernel
def put_steps(codes, features, slots, rows, block):
    """block[i, c] = slot ``slots_c`` of feature ``features_c`` in row ``rows_i``."""
    for c in range(len(features)):
        row_codes, slot = codes[features[c]], slots[c]
        most = MISSING if slot == MISSING else MAX_THRESHOLDS
        for i in range(len(rows)):
            code = row_codes[rows[i]]
            block[i, c] = 1 if slot <= code <= most else 0
