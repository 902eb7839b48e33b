"""Cost-sensitive ListMLE of each query in O(documents), for any number of levels.

Levels of a query count from 0, the lowest, and u_a rises with a. With E_b = log Σ_{t of level b} e^{s_t},

    P_a = Σ_{b<a} e^{E_b}                 = P_{a−1} + e^{E_{a−1}}
    D_a = Σ_{b<a} (u_a − u_b) e^{E_b}     = D_{a−1} + (u_a − u_{a−1}) P_a
    β_a = Σ_{b<a} (u_a − u_b) n_b         by the same recursion,

so a document of level a costs β_a log(1 + e^{G_a − s}) with G_a = log D_a − log β_a. No term is negative, so
nothing cancels, and logarithms do not overflow. ``mix`` holds the shares, in [0, 1], of the two terms of the
sums D_a and P_a; the gradient, and the mean of any vectors under the weights of D_a, are computed from these
shares. With document weights, e^{s_t}, the cost of a document and its contribution to n_b are multiplied by
its weight.
"""

from typing import NamedTuple

import numpy as np

from ranksieve._types import FloatArray, IntArray
from ranksieve.kernels.compiling import helper, kernel
from ranksieve.kernels.pairs import longest_run, weight_of

D_PREVIOUS, D_ADDED, P_PREVIOUS, P_ADDED = 0, 1, 2, 3  # rows of ``mix``: the terms of D_a and of P_a


class ListMLEData(NamedTuple):
    """Queries: ``offsets`` of their documents, ``level_offsets`` of their levels.

    Per document, ``level`` and ``document_weight`` (None: all 1); per level, log(u_a − u_{a−1}), log β_a and
    cost.
    """

    offsets: IntArray
    level: IntArray
    document_weight: FloatArray | None
    level_offsets: IntArray
    log_rise: FloatArray
    log_beta: FloatArray
    cost: FloatArray


class ListMLEState(NamedTuple):
    """Input of the curvature, with σ = 1/(1 + e^{s − G}).

    Per document, its ``softmax`` weight within its level and cost·σ(1 − σ) (``hessian_diag``); per level, the
    gradient in E = log Σ e^s (``level_gradient``), Σ cost·σ² (``sigma_squares``), and ``mix``.
    """

    softmax: FloatArray
    hessian_diag: FloatArray
    level_gradient: FloatArray
    sigma_squares: FloatArray
    mix: FloatArray


@kernel
def level_costs(gain, count, level_offsets, k, log_rise, log_beta, cost):
    """log(u_a − u_{a−1}), log β_a and β_a / DCG for each level of each query.

    u = gain/((1 + r) log2²(1 + r)·ln 2) for r ≤ k, else 0, where r = 1 + Σ count over higher levels and
    ``count`` is the number (or total weight) of documents per level. DCG = Σ count·gain/log2(1 + r) over
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
    most = longest_run(lists.level_offsets, first, last)
    t = np.empty(longest_run(lists.offsets, first, last))
    log_sum, inner, inner_gradient = np.empty(most), np.empty(most), np.empty(most)
    for q in range(first, last):
        lo, hi = lists.offsets[q], lists.offsets[q + 1]
        bottom, top = lists.level_offsets[q], lists.level_offsets[q + 1]
        centre = np.max(s[lo:hi])
        for i in range(lo, hi):
            t[i - lo] = s[i] - centre
        _level_softmax(
            t, lists.level, lists.document_weight, lo, hi, top - bottom, log_sum, inner, state.softmax
        )
        _mix_levels(lists, log_sum, bottom, top, inner, state.mix)
        value[q] = _better_terms(lists, q, t, inner, inner_gradient, gradient, state)
        _backward(inner_gradient, state.mix, bottom, top, state.level_gradient[bottom:top])
        product = 0.0
        for i in range(lo, hi):
            gradient[i] += state.softmax[i] * state.level_gradient[bottom + lists.level[i]]
            product += t[i - lo] * gradient[i]
        slack[q] = value[q] - product


@kernel
def _level_softmax(t, level, document_weight, lo, hi, n_levels, log_sum, peak, softmax):
    """log Σ e^t of each level, and the softmax weight of each document within its level."""
    for a in range(n_levels):
        peak[a], log_sum[a] = -np.inf, 0.0
    for i in range(lo, hi):
        if weight_of(document_weight, i) > 0:
            peak[level[i]] = max(peak[level[i]], t[i - lo])
    for i in range(lo, hi):
        softmax[i] = 0.0
        if weight_of(document_weight, i) > 0:
            softmax[i] = weight_of(document_weight, i) * np.exp(t[i - lo] - peak[level[i]])
        log_sum[level[i]] += softmax[i]
    for i in range(lo, hi):
        softmax[i] /= log_sum[level[i]]
    for a in range(n_levels):
        log_sum[a] = peak[a] + np.log(log_sum[a])


@helper
def _mix_levels(lists, log_sum, bottom, top, inner, mix):
    """G_a of each level, and the shares of the lower levels in it."""
    log_p, log_d = -np.inf, -np.inf
    for a in range(bottom + 1, top):
        log_p, mix[P_PREVIOUS, a], mix[P_ADDED, a] = _log_add(log_p, log_sum[a - 1 - bottom])
        log_d, mix[D_PREVIOUS, a], mix[D_ADDED, a] = _log_add(log_d, lists.log_rise[a] + log_p)
        inner[a - bottom] = log_d - lists.log_beta[a]  # NaN where β is 0; not used


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
def _better_terms(lists, q, t, inner, inner_gradient, gradient, state):
    """Σ cost·log(1 + e^{G − t}), its gradient in t, and its gradient in G per level (``inner_gradient``)."""
    lo, bottom, top, total = lists.offsets[q], lists.level_offsets[q], lists.level_offsets[q + 1], 0.0
    for a in range(bottom, top):
        inner_gradient[a - bottom], state.sigma_squares[a] = 0.0, 0.0
    for i in range(lo, lists.offsets[q + 1]):
        a = lists.level[i]
        gradient[i], state.hessian_diag[i] = 0.0, 0.0
        weighted_cost = weight_of(lists.document_weight, i) * lists.cost[bottom + a]
        if weighted_cost > 0.0:
            x = inner[a] - t[i - lo]
            small = np.exp(-abs(x))
            sigma = (1.0 if x > 0.0 else small) / (1.0 + small)
            total += weighted_cost * (max(x, 0.0) + np.log1p(small))
            gradient[i] = -weighted_cost * sigma
            state.hessian_diag[i] = weighted_cost * small / ((1.0 + small) * (1.0 + small))
            inner_gradient[a] += weighted_cost * sigma
            state.sigma_squares[bottom + a] += weighted_cost * sigma * sigma
    return total


@helper
def _backward(inner_gradient, mix, bottom, top, level_gradient):
    """Gradient in E_a from the gradient in G_a, by the recursions in reverse."""
    level_gradient[top - 1 - bottom] = 0.0
    d, p = 0.0, 0.0
    for a in range(top - 1, bottom, -1):
        d += inner_gradient[a - bottom]
        p += mix[D_ADDED, a] * d
        level_gradient[a - 1 - bottom] = mix[P_ADDED, a] * p
        d *= mix[D_PREVIOUS, a]
        p *= mix[P_PREVIOUS, a]


@kernel
def list_curvature(lists, state, first, last, V, R):
    """R with VᵀR + RᵀV = VᵀSV, S the Hessian of the costs of the queries first..last (the rows of V).

    With M_a the mean of V under the weights of D_a, VᵀSV = Σ_j hessian_diag_j (V_j − M)(V_j − M)ᵀ
    + Σ_a inner_gradient_a (Σ_t q_at V_t V_tᵀ − M_a M_aᵀ), inner_gradient − Σ hessian_diag = sigma_squares.
    """
    offsets, level, level_offsets = lists.offsets, lists.level, lists.level_offsets
    softmax, hessian_diag, level_gradient, sigma_squares, mix = state
    base, width, most = offsets[first], V.shape[1], longest_run(level_offsets, first, last)
    mean, back, adjoint = np.empty((width, most)), np.empty((width, most)), np.empty(most)
    for q in range(first, last):
        lo, hi, bottom, top = offsets[q], offsets[q + 1], level_offsets[q], level_offsets[q + 1]
        for c in range(width):
            mean[c] = 0.0
            for i in range(lo, hi):
                mean[c, level[i]] += softmax[i] * V[i - base, c]
            _mean_of_worse(mean[c], mix, bottom, top)
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
def _mean_of_worse(mean, mix, bottom, top):
    """Turn the mean of each level into the mean under the weights of D_a, in place."""
    p_mean, d_mean, level_mean = 0.0, 0.0, mean[0]
    mean[0] = 0.0
    for a in range(bottom + 1, top):
        p_mean = mix[P_PREVIOUS, a] * p_mean + mix[P_ADDED, a] * level_mean
        d_mean = mix[D_PREVIOUS, a] * d_mean + mix[D_ADDED, a] * p_mean
        level_mean, mean[a - bottom] = mean[a - bottom], d_mean
