"""The modified Huber loss over the weighted pairs of each query, pair by pair.

A pair is an upper document i and a lower document j of one query with level_i > level_j. Its weight is
|gain_i − gain_j| · |discount_i − discount_j| times the query's; an empty array stands for a factor of 1. With
h = min(max(0, 1 − (s_i − s_j)), 2) the loss is h² up to h = 2 and linear beyond, its slope −2h.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _pair_weight(gain, discount, i, j):
    weight = 1.0
    if len(gain) > 0:
        weight *= abs(gain[i] - gain[j])
    if len(discount) > 0:
        weight *= abs(discount[i] - discount[j])
    return weight


@njit(cache=True, nogil=True)
def huber_pairs(s, level, gain, discount, weight, offsets, first, last, value, slack, gradient):
    """Per query Σ ω ψ and Σ ω (2h − h²), which is Σ ω (ψ − tψ′); the gradient, which comes in as zeros."""
    for q in range(first, last):
        total, dual = 0.0, 0.0
        for i in range(offsets[q], offsets[q + 1]):
            pull = 0.0
            for j in range(offsets[q], offsets[q + 1]):
                x = 1.0 - (s[i] - s[j])
                if level[i] > level[j] and x > 0.0:
                    omega, h = weight[q] * _pair_weight(gain, discount, i, j), min(x, 2.0)
                    total += omega * h * (2.0 * x - h)
                    dual += omega * h * (2.0 - h)
                    pull += 2.0 * omega * h
                    gradient[j] += 2.0 * omega * h
            gradient[i] -= pull
        value[q], slack[q] = total, dual


@njit(cache=True, nogil=True)
def huber_curvature(s, level, gain, discount, weight, offsets, first, last, V, R):
    """R = Σ ω (e_i − e_j)(V_i − V_j) over the pairs on the parabola, |s_i − s_j| < 1; comes in as zeros."""
    base = offsets[first]
    for q in range(first, last):
        for i in range(offsets[q], offsets[q + 1]):
            for j in range(offsets[q], offsets[q + 1]):
                if level[i] > level[j] and abs(s[i] - s[j]) < 1.0:
                    omega = weight[q] * _pair_weight(gain, discount, i, j)
                    for c in range(V.shape[1]):
                        change = omega * (V[i - base, c] - V[j - base, c])
                        R[i - base, c] += change
                        R[j - base, c] -= change
