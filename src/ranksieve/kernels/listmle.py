"""Cost-sensitive ListMLE of each query in O(documents), whatever the number of levels.

Levels of a query count from 0, the lowest, and u_a rises with a. With E_b = log Σ_{t of level b} e^{s_t},

    P_a = Σ_{b<a} e^{E_b}                 = P_{a−1} + e^{E_{a−1}}
    D_a = Σ_{b<a} (u_a − u_b) e^{E_b}     = D_{a−1} + (u_a − u_{a−1}) P_a
    β_a = Σ_{b<a} (u_a − u_b) n_b         by the same recursion,

so a document of level a costs β_a log(1 + e^{G_a − s}) with G_a = log D_a − log β_a. No term is negative:
nothing cancels, and in logarithms nothing overflows. ``mix`` holds the shares of the two terms of each sum.
They are in [0, 1]; the gradient, and the mean of any vectors under the weights of D_a, go through the levels
by these shares alone. With weights of documents (:mod:`ranksieve.kernels.pairs`) e^{s_t}, the cost of a
document and n_b count as often as these say.
"""

from typing import NamedTuple

import numpy as np

from ranksieve._types import FloatArray, IntArray
from ranksieve.kernels.compiling import helper, kernel
from ranksieve.kernels.pairs import longest, mass_of

KEPT, ENTERED, PAST, FRESH = 0, 1, 2, 3  # rows of mix: the first and second term of D_a, then those of P_a


class Lists(NamedTuple):
    """Queries: ``offsets`` of their documents, ``level_offsets`` of their levels.

    ``level`` and ``mass`` (or None) are of documents; of levels log(u_a − u_{a−1}), log β_a, and the cost.
    """

    offsets: IntArray
    level: IntArray
    mass: FloatArray | None
    level_offsets: IntArray
    log_rise: FloatArray
    log_beta: FloatArray
    cost: FloatArray


class State(NamedTuple):
    """What the curvature needs, with σ = 1/(1 + e^{s − G}).

    Per document its ``softmax`` weight within its level and cost·σ(1 − σ) (``hessian_diag``); per level ∂/∂E,
    the gradient in its log Σ e^s (``level_gradient``), and Σ cost·σ² (``sigma_squares``), and ``mix``.
    """

    softmax: FloatArray
    hessian_diag: FloatArray
    level_gradient: FloatArray
    sigma_squares: FloatArray
    mix: FloatArray


@kernel
def level_costs(gain, count, level_offsets, k, log_rise, log_beta, cost):
    """log(u_a − u_{a−1}), log β_a and β_a / DCG for each level of each query.

    u = gain/((1 + r) log2²(1 + r)·ln 2) up to position r = k and 0 beyond, r = 1 + the documents of higher
    levels (``count`` of each level, or the sum of their weights); DCG = Σ count·gain/log2(1 + r) over the
    levels with r ≤ k.
    """
    for q in range(len(level_offsets) - 1):
        bottom, top = level_offsets[q], level_offsets[q + 1]
        rank, dcg = 1, 0.0
        for a in range(top - 1, bottom - 1, -1):
            bits = np.log2(1.0 + rank)
            cost[a] = gain[a] / ((1.0 + rank) * bits * bits * np.log(2.0)) if rank <= k else 0.0
            dcg += count[a] * gain[a] / bits if rank <= k else 0.0
            rank += count[a]
        below, beta, u = 0.0, 0.0, cost[bottom]
        log_rise[bottom], log_beta[bottom], cost[bottom] = -np.inf, -np.inf, 0.0
        for a in range(bottom + 1, top):
            below += count[a - 1]
            rise = max(0.0, cost[a] - u)
            beta, u = beta + rise * below, cost[a]
            log_rise[a] = np.log(rise) if rise > 0.0 else -np.inf
            log_beta[a] = np.log(beta) if beta > 0.0 else -np.inf
            cost[a] = beta / dcg if beta > 0.0 else 0.0


@kernel
def list_costs(lists, s, first, last, value, slack, gradient, state):
    """Per query Σ_j cost·log(1 + e^{G − s_j}), its gradient, and value − ⟨s, gradient⟩ (``slack``)."""
    most = longest(lists.level_offsets, first, last)
    t = np.empty(longest(lists.offsets, first, last))
    log_sum, inner, inner_gradient = np.empty(most), np.empty(most), np.empty(most)
    for q in range(first, last):
        lo, hi = lists.offsets[q], lists.offsets[q + 1]
        bottom, top = lists.level_offsets[q], lists.level_offsets[q + 1]
        centre = np.max(s[lo:hi])
        for i in range(lo, hi):
            t[i - lo] = s[i] - centre
        _share_levels(t, lists.level, lists.mass, lo, hi, top - bottom, log_sum, inner, state.softmax)
        _mix_levels(lists, log_sum, bottom, top, inner, state.mix)
        value[q] = _upper_terms(lists, q, t, inner, inner_gradient, gradient, state)
        _backward(inner_gradient, state.mix, bottom, top, state.level_gradient[bottom:top])
        product = 0.0
        for i in range(lo, hi):
            gradient[i] += state.softmax[i] * state.level_gradient[bottom + lists.level[i]]
            product += t[i - lo] * gradient[i]
        slack[q] = value[q] - product


@kernel
def _share_levels(t, level, mass, lo, hi, n_levels, log_sum, peak, softmax):
    """log Σ e^t of each level, and each document's share of the sum, its softmax weight."""
    for a in range(n_levels):
        peak[a], log_sum[a] = -np.inf, 0.0
    for i in range(lo, hi):
        if mass_of(mass, i) > 0:
            peak[level[i]] = max(peak[level[i]], t[i - lo])
    for i in range(lo, hi):
        softmax[i] = 0.0
        if mass_of(mass, i) > 0:
            softmax[i] = mass_of(mass, i) * np.exp(t[i - lo] - peak[level[i]])
        log_sum[level[i]] += softmax[i]
    for i in range(lo, hi):
        softmax[i] /= log_sum[level[i]]
    for a in range(n_levels):
        log_sum[a] = peak[a] + np.log(log_sum[a])


@helper
def _mix_levels(lists, log_sum, bottom, top, inner, mix):
    """G_a of each level, and the shares by which the levels below make it up."""
    log_p, log_d = -np.inf, -np.inf
    for a in range(bottom + 1, top):
        log_p, mix[PAST, a], mix[FRESH, a] = _log_add(log_p, log_sum[a - 1 - bottom])
        log_d, mix[KEPT, a], mix[ENTERED, a] = _log_add(log_d, lists.log_rise[a] + log_p)
        inner[a - bottom] = log_d - lists.log_beta[a]  # NaN where β is 0: nobody asks there


@helper
def _log_add(a, b):
    """log(e^a + e^b), and the shares of the two terms."""
    high = max(a, b)
    if high == -np.inf:
        return high, 0.0, 0.0
    small = np.exp(min(a, b) - high)
    large, rest = 1.0 / (1.0 + small), small / (1.0 + small)
    return high + np.log1p(small), large if a >= b else rest, rest if a >= b else large


@helper
def _upper_terms(lists, q, t, inner, inner_gradient, gradient, state):
    """Σ cost·log(1 + e^{G − t}), its gradient as upper documents, and per level ∂/∂G (``inner_gradient``)."""
    lo, bottom, top, total = lists.offsets[q], lists.level_offsets[q], lists.level_offsets[q + 1], 0.0
    for a in range(bottom, top):
        inner_gradient[a - bottom], state.sigma_squares[a] = 0.0, 0.0
    for i in range(lo, lists.offsets[q + 1]):
        a = lists.level[i]
        gradient[i], state.hessian_diag[i] = 0.0, 0.0
        own = mass_of(lists.mass, i) * lists.cost[bottom + a]
        if own > 0.0:
            x = inner[a] - t[i - lo]
            small = np.exp(-abs(x))
            sigma = (1.0 if x > 0.0 else small) / (1.0 + small)
            total += own * (max(x, 0.0) + np.log1p(small))
            gradient[i] = -own * sigma
            state.hessian_diag[i] = own * small / ((1.0 + small) * (1.0 + small))
            inner_gradient[a] += own * sigma
            state.sigma_squares[bottom + a] += own * sigma * sigma
    return total


@helper
def _backward(inner_gradient, mix, bottom, top, level_gradient):
    """From ∂/∂G_a to ∂/∂E_a: the levels' recursions backwards."""
    level_gradient[top - 1 - bottom] = 0.0
    d, p = 0.0, 0.0
    for a in range(top - 1, bottom, -1):
        d += inner_gradient[a - bottom]
        p += mix[ENTERED, a] * d
        level_gradient[a - 1 - bottom] = mix[FRESH, a] * p
        d *= mix[KEPT, a]
        p *= mix[PAST, a]


@kernel
def list_curvature(lists, state, first, last, V, R):
    """R with VᵀR + RᵀV = VᵀSV, S the Hessian of the costs of the queries first..last (the rows of V).

    With M_a the mean of V under the weights of D_a, VᵀSV = Σ_j hessian_diag_j (V_j − M)(V_j − M)ᵀ
    + Σ_a inner_gradient_a (Σ_t q_at V_t V_tᵀ − M_a M_aᵀ), inner_gradient − Σ hessian_diag = sigma_squares.
    """
    offsets, level, level_offsets = lists.offsets, lists.level, lists.level_offsets
    softmax, hessian_diag, level_gradient, sigma_squares, mix = state
    base, width, most = offsets[first], V.shape[1], longest(level_offsets, first, last)
    mean, back, adjoint = np.empty((width, most)), np.empty((width, most)), np.empty(most)
    for q in range(first, last):
        lo, hi, bottom, top = offsets[q], offsets[q + 1], level_offsets[q], level_offsets[q + 1]
        for c in range(width):
            mean[c] = 0.0
            for i in range(lo, hi):
                mean[c, level[i]] += softmax[i] * V[i - base, c]
            _mean_of_lower(mean[c], mix, bottom, top)
            for a in range(bottom, top):
                adjoint[a - bottom] = -sigma_squares[a] * mean[c, a - bottom]
            _backward(adjoint, mix, bottom, top, back[c])
        for i in range(lo, hi):
            for c in range(width):
                R[i - base, c] = (
                    0.5 * (hessian_diag[i] + softmax[i] * level_gradient[bottom + level[i]]) * V[i - base, c]
                    - hessian_diag[i] * mean[c, level[i]]
                    + 0.5 * softmax[i] * back[c, level[i]]
                )


@helper
def _mean_of_lower(mean, mix, bottom, top):
    """In place: from the mean over each level to that under the weights of D_a."""
    past, weighted, own = 0.0, 0.0, mean[0]
    mean[0] = 0.0
    for a in range(bottom + 1, top):
        past = mix[PAST, a] * past + mix[FRESH, a] * own
        weighted = mix[KEPT, a] * weighted + mix[ENTERED, a] * past
        own, mean[a - bottom] = mean[a - bottom], weighted
