"""Weights of documents in sums over them: ``mass`` has one number per document, or is None.

Numba compiles a function for each of the two kinds. Where ``mass`` is None the weight is the constant 1, and
the compiler leaves it out: sums without weights take no more time and have the same bits.
"""

from ranksieve.kernels.compiling import helper, kernel


@helper
def mass_of(mass, i):
    """The weight of a document."""
    return 1 if mass is None else mass[i]


@helper
def masses_of(mass, lo, hi):
    """The weights of the documents lo..hi."""
    if mass is not None:
        return mass[lo:hi]
    return mass  # a None of its own would make the type of either kind "array or None"


@kernel
def pairs_of_levels(of_level, starts, pairs):
    """Of each query, the sum over pairs of its levels of the product of their weights; nothing cancels."""
    for q in range(len(pairs)):
        below, pairs[q] = 0.0, 0.0
        for k in range(starts[q], starts[q + 1]):
            pairs[q] += of_level[k] * below
            below += of_level[k]
