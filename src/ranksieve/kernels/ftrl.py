"""FTRL-proximal over the queries of a data set: one pass, one update per batch of pairs."""

from typing import Any, NamedTuple

import numpy as np

from ranksieve.kernels.compiling import helper, kernel
from ranksieve.kernels.pairs import active_partners, centre_and_sort, mass_of, masses_of


class Rule(NamedTuple):
    """λ, γ, ρ, whether every feature has a rate of its own, and the pairs of a batch (0: all of a query)."""

    l1: float
    rate: float
    smoothing: float
    feature_wise: bool
    batch_pairs: int


class Lists(NamedTuple):
    """Queries: query q owns the rows offsets[q]..offsets[q + 1] and has so many pairs and this weight.

    ``mass`` has the weights of documents, or is None.
    """

    offsets: Any
    level: Any
    pairs: Any
    weight: Any
    mass: Any


class State(NamedTuple):
    """Per feature: n = Σ g², v = Σ (g − σw), and the weight w."""

    squares: Any
    sums: Any
    w: Any


@helper
def _scores(X, lo, hi, columns, w, s):
    """s_i = Σ_c X[lo + i, c]·w[columns[c]], over the nonzero weights in the order of the columns."""
    s[: hi - lo] = 0.0
    for c in range(len(columns)):
        weight = w[columns[c]]
        if weight != 0.0:
            for i in range(lo, hi):
                s[i - lo] += X[i, c] * weight


@helper
def _shrunk(v, l1, step):
    """argmin_w v·w + l1·|w| + w²/(2·step)."""
    if abs(v) <= l1:
        return 0.0
    return -step * (v - l1 if v > 0.0 else v + l1)


@helper
def _step(X, lo, hi, columns, slope, weight, number, rule, state, g):
    """One update with g = weight · X[lo:hi]ᵀ slope; ``number`` is τ, the count of batches with this one.

    n ← n + g², σ = (√(ρ + n) − √(ρ + n_old))/γ, v ← v + g − σw, w = argmin v·w + λ|w| + √(ρ + n)·w²/(2γ).
    With one rate for all features, τ − 1 and τ take the places of ρ + n_old and ρ + n. Features outside
    ``columns`` have g = 0. Before the first batch w = 0, so what n_old adds to the first σ does not matter.
    """
    g[:] = 0.0
    for i in range(lo, hi):
        amount = weight * slope[i - lo]
        for c in range(len(g)):
            g[c] += amount * X[i, c]
    if rule.feature_wise:
        for c in range(len(g)):
            j = columns[c]
            old = np.sqrt(rule.smoothing + state.squares[j])
            state.squares[j] += g[c] * g[c]
            new = np.sqrt(rule.smoothing + state.squares[j])
            state.sums[j] += g[c] - (new - old) / rule.rate * state.w[j]
            if new > 0.0:
                state.w[j] = _shrunk(state.sums[j], rule.l1, rule.rate / new)
        return
    old, new = np.sqrt(number - 1.0), np.sqrt(number)
    for c in range(len(g)):
        state.sums[columns[c]] += g[c]
    for j in range(len(state.w)):
        state.sums[j] -= (new - old) / rule.rate * state.w[j]
        state.w[j] = _shrunk(state.sums[j], rule.l1, rule.rate / new)


@helper
def _pass_by_parts(X, q, columns, lists, mass, rule, number, state, s, slope, g):
    """The pairs of one query by upper and then lower row, in batches of at most ``rule.batch_pairs``."""
    lo, hi = lists.offsets[q], lists.offsets[q + 1]
    level, n, held = lists.level[lo:hi], hi - lo, 0
    slope[:n] = 0.0
    for i in range(n):
        for j in range(n):
            if level[i] <= level[j]:
                continue
            if held == rule.batch_pairs:
                number += 1
                _step(X, lo, hi, columns, slope, lists.weight[q], number, rule, state, g)
                _scores(X, lo, hi, columns, state.w, s)
                slope[:n] = 0.0
                held = 0
            held += 1
            xi = max(0.0, 1.0 - (s[i] - s[j]))
            xi = mass_of(mass, i) * mass_of(mass, j) * xi
            slope[i] -= 2.0 * xi
            slope[j] += 2.0 * xi
    number += 1
    _step(X, lo, hi, columns, slope, lists.weight[q], number, rule, state, g)
    return number


@kernel
def ftrl_pass(X, columns, lists, sequence, rule, number, state):
    """Learn from the queries of ``sequence`` one after another; returns the number of batches so far.

    The loss of a batch is weight · Σ max(0, 1 − (s_i − s_j))² over its pairs, each times the mass of both
    documents, and its gradient in the scores
    comes from one sweep each way in score order. ``X`` holds the features ``columns``; ``state`` is updated
    in place.
    """
    longest = 1
    for q in sequence:
        longest = max(longest, lists.offsets[q + 1] - lists.offsets[q])
    s, t, slope, g = np.empty(longest), np.empty(longest), np.empty(longest), np.empty(len(columns))
    count, up_slack, low_slack = np.empty(longest), np.empty(longest), np.empty(longest)
    order, span = np.empty(longest, dtype=np.int64), np.array([0, 1])
    first, last, sides = span[0], span[1], np.array([1, -1])  # for a constant a function is compiled anew
    for q in sequence:
        lo, hi = lists.offsets[q], lists.offsets[q + 1]
        mass = masses_of(lists.mass, lo, hi)
        _scores(X, lo, hi, columns, state.w, s)
        if 0 < rule.batch_pairs < lists.pairs[q]:
            number = _pass_by_parts(X, q, columns, lists, mass, rule, number, state, s, slope, g)
            continue
        span[1] = hi - lo
        for i in range(hi - lo):
            order[i] = i
        centre_and_sort(s, t, order, span, first, last)
        active_partners(t, lists.level[lo:hi], order, span, first, last, sides[0], mass, count, up_slack)
        active_partners(t, lists.level[lo:hi], order, span, first, last, sides[1], mass, count, low_slack)
        for i in range(hi - lo):
            slope[i] = 2.0 * mass_of(mass, i) * (low_slack[i] - up_slack[i])
        number += 1
        _step(X, lo, hi, columns, slope, lists.weight[q], number, rule, state, g)
    return number
