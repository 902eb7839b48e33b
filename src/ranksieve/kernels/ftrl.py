"""FTRL-proximal over the queries of a data set: one pass, one update per batch of pairs."""

from typing import Any, NamedTuple

import numpy as np

from ranksieve.kernels.compiling import helper, kernel
from ranksieve.kernels.pairs import Documents, Ranked, active_partners, centre_and_sort, mass_of, masses_of


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


class Room(NamedTuple):
    """Scores and slopes of the documents of a query, and the gradient of a batch."""

    s: Any
    slope: Any
    g: Any


@helper
def _scores(X, columns, w, s):
    """s_i = Σ_c X[i, c]·w[columns[c]], over the nonzero weights in the order of the columns."""
    s[: len(X)] = 0.0
    for c in range(len(columns)):
        weight = w[columns[c]]
        if weight != 0.0:
            for i in range(len(X)):
                s[i] += X[i, c] * weight


@helper
def _shrunk(v, l1, step):
    """argmin_w v·w + l1·|w| + w²/(2·step)."""
    if abs(v) <= l1:
        return 0.0
    return -step * (v - l1 if v > 0.0 else v + l1)


@helper
def _step(X, columns, room, weight, number, rule, state):
    """One update with g = weight · Xᵀ slope; ``number`` is τ, the count of batches with this one.

    n ← n + g², σ = (√(ρ + n) − √(ρ + n_old))/γ, v ← v + g − σw, w = argmin v·w + λ|w| + √(ρ + n)·w²/(2γ).
    With one rate for all features, τ − 1 and τ take the places of ρ + n_old and ρ + n. Features outside
    ``columns`` have g = 0. Before the first batch w = 0, so what n_old adds to the first σ does not matter.
    """
    g = room.g
    g[:] = 0.0
    for i in range(len(X)):
        amount = weight * room.slope[i]
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
def _pass_by_parts(X, columns, q, lists, rule, number, state, room):
    """The pairs of one query by upper and then lower row, in batches of at most ``rule.batch_pairs``."""
    lo, hi = lists.offsets[q], lists.offsets[q + 1]
    level, mass, n, in_batch = lists.level[lo:hi], masses_of(lists.mass, lo, hi), hi - lo, 0
    s, slope = room.s, room.slope
    slope[:n] = 0.0
    for i in range(n):
        for j in range(n):
            if level[i] <= level[j]:
                continue
            if in_batch == rule.batch_pairs:
                number += 1
                _step(X, columns, room, lists.weight[q], number, rule, state)
                _scores(X, columns, state.w, s)
                slope[:n] = 0.0
                in_batch = 0
            in_batch += 1
            xi = max(0.0, 1.0 - (s[i] - s[j]))
            xi = mass_of(mass, i) * mass_of(mass, j) * xi
            slope[i] -= 2.0 * xi
            slope[j] += 2.0 * xi
    number += 1
    _step(X, columns, room, lists.weight[q], number, rule, state)
    return number


@kernel
def ftrl_pass(X, columns, lists, sequence, rule, number, state):
    """Learn from the queries of ``sequence`` one after another; returns the number of batches so far.

    The loss of a batch is weight · Σ max(0, 1 − (s_i − s_j))² over its pairs, each times the mass of both
    documents, and its gradient in the scores comes from one sweep each way in score order. ``X`` holds the
    features ``columns``; ``state`` is updated in place.
    """
    longest = 1
    for q in sequence:
        longest = max(longest, lists.offsets[q + 1] - lists.offsets[q])
    room = Room(np.empty(longest), np.empty(longest), np.empty(len(columns)))
    ranked = Ranked(np.empty(longest), np.empty(longest, dtype=np.int64))
    count, up_slack, low_slack = np.empty(longest), np.empty(longest), np.empty(longest)
    span = np.array([0, 1])
    first, last, sides = span[0], span[1], np.array([1, -1])  # for a constant a function is compiled anew
    for q in sequence:
        lo, hi = lists.offsets[q], lists.offsets[q + 1]
        rows = X[lo:hi]
        _scores(rows, columns, state.w, room.s)
        if 0 < rule.batch_pairs < lists.pairs[q]:
            number = _pass_by_parts(rows, columns, q, lists, rule, number, state, room)
            continue
        span[1] = hi - lo
        for i in range(hi - lo):
            ranked.order[i] = i
        documents = Documents(span, lists.level[lo:hi], lists.weight, masses_of(lists.mass, lo, hi))
        centre_and_sort(room.s, span, first, last, ranked)
        active_partners(documents, ranked, first, last, sides[0], None, count, up_slack)
        active_partners(documents, ranked, first, last, sides[1], None, count, low_slack)
        for i in range(hi - lo):
            room.slope[i] = 2.0 * mass_of(documents.mass, i) * (low_slack[i] - up_slack[i])
        number += 1
        _step(rows, columns, room, lists.weight[q], number, rule, state)
    return number
