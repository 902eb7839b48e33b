"""Weights of documents in sums over them: ``mass`` has one number per document, or is None.

Numba compiles a function for each of the two kinds. Where ``mass`` is None the weight is the constant 1, and
the compiler leaves it out: sums without weights take no more time and have the same bits.
"""

from ranksieve.kernels.compiling import helper


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
