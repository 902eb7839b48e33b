"""The modified Huber loss over the weighted pairs of each query, pair by pair.

Documents of a query stand by ascending level, so the lower partners of document i are those from the query's
first up to ``floor[i]``. A pair's weight is the query's times the ``mass`` of both documents
(:mod:`ranksieve.kernels.masses`) times
(gain_floor + |gain_i − gain_j|) · (discount_floor + |discount_i − discount_j|). With x = 1 − (s_i − s_j) and
h = min(max(0, x), 2), the loss is h(2x − h): x² on the parabola, 4(x − 1) beyond; its slope in s_i is −2h.
"""

from ranksieve.kernels.compiling import kernel
from ranksieve.kernels.masses import mass_of


@kernel(fastmath={"reassoc", "nsz"})  # sums in any, but a fixed, order: vectorised
def lower_partners(
    s, gain, discount, gain_floor, discount_floor, mass, i, lo, lower, gains, discounts, lower_slopes
):  # fmt: skip
    """Of one upper document, Σ ωψ, Σ ωh(2 − h), which is Σ ω(ψ − tψ′), and Σ 2ωh, each also put to its j.

    It is the document i, and the others are lo, lo + 1, …
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
def huber_pairs(
    s, floor, mass, gain, discount, gain_floor, discount_floor, offsets, first, last, value, slack, gradient
):  # fmt: skip
    """Per query Σ ωψ and Σ ω(ψ − tψ′) without the query's weight; the gradient, which comes in as zeros."""
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
def huber_curvature(s, floor, mass, gain, discount, gain_floor, discount_floor, offsets, first, last, V, R):
    """R = Σ ω (e_i − e_j)(V_i − V_j) over the pairs on the parabola, |s_i − s_j| < 1; comes in as zeros.

    V and R hold the documents of the queries first..last only.
    """
    base = offsets[first]
    for q in range(first, last):
        for i in range(offsets[q], offsets[q + 1]):
            for j in range(offsets[q], floor[i]):
                if abs(s[i] - s[j]) < 1.0:
                    omega = gain_floor + abs(gain[i] - gain[j])
                    omega *= discount_floor + abs(discount[i] - discount[j])
                    omega = mass_of(mass, i) * mass_of(mass, j) * omega
                    for c in range(V.shape[1]):
                        change = omega * (V[i - base, c] - V[j - base, c])
                        R[i - base, c] += change
                        R[j - base, c] -= change
