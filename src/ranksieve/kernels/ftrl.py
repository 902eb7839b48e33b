"""FTRL-proximal over the queries of a data set: one pass, one update per batch of pairs."""

from typing import Any, NamedTuple

import numpy as np

from ranksieve.kernels.compiling import helper, kernel
from ranksieve.kernels.pairs import (
    GroupedDocuments,
    Ranking,
    active_partners,
    centre_and_sort,
    weight_of,
    weights_of,
)


class Rule(NamedTuple):
    """λ, γ, ρ, whether each feature has its own rate, and pairs per batch (0: all pairs of a query)."""

    l1: float
    rate: float
    smoothing: float
    feature_wise: bool
    batch_pairs: int


class FtrlData(NamedTuple):
    """Queries to learn from; query q has the rows offsets[q]..offsets[q + 1].

    ``pairs`` and ``query_weight`` have one number per query, ``level`` and ``document_weight`` (None: all 1)
    one per document.
    """

    offsets: Any
    level: Any
    pairs: Any
    query_weight: Any
    document_weight: Any


class FtrlArrays(NamedTuple):
    """Per feature: n = Σ g², v = Σ (g − σw), and the weight w."""

    squares: Any
    sums: Any
    w: Any


class FtrlBuffers(NamedTuple):
    """Scores and slopes of the documents of one query, and the gradient of one batch."""

    s: Any
    slope: Any
    g: Any


@helper
def _scores(X, columns, w, s):
    """s_i = Σ_c X[i, c]·w[columns[c]], over the nonzero weights in column order."""
    s[: len(X)] = 0.0
    for c in range(len(columns)):
        weight = w[columns[c]]
        if weight != 0.0:
            for i in range(len(X)):
                s[i] += X[i, c] * weight


@helper
def _shrink(v, l1, step):
    """argmin_w v·w + l1·|w| + w²/(2·step)."""
    if abs(v) <= l1:
        return 0.0
    return -step * (v - l1 if v > 0.0 else v + l1)


@helper
def _step(X, columns, buffers, query_weight, n_batches, rule, state):
    """One update with g = query_weight · Xᵀ slope; ``n_batches`` is τ, which includes this batch.

    n ← n + g², σ = (√(ρ + n) − √(ρ + n_old))/γ, v ← v + g − σw, w = argmin v·w + λ|w| + √(ρ + n)·w²/(2γ).
    With one rate for all features, τ − 1 and τ replace ρ + n_old and ρ + n. Features outside ``columns`` have
    g = 0. Before the first batch w = 0, so n_old does not matter in the first σ.
    """
    g = buffers.g
    g[:] = 0.0
    for i in range(len(X)):
        amount = query_weight * buffers.slope[i]
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
                state.w[j] = _shrink(state.sums[j], rule.l1, rule.rate / new)
        return
    old, new = np.sqrt(n_batches - 1.0), np.sqrt(n_batches)
    for c in range(len(g)):
        state.sums[columns[c]] += g[c]
    for j in range(len(state.w)):
        state.sums[j] -= (new - old) / rule.rate * state.w[j]
        state.w[j] = _shrink(state.sums[j], rule.l1, rule.rate / new)


@helper
def _pass_in_batches(X, columns, q, data, rule, n_batches, state, buffers):
    """Learn from one query in batches of at most ``rule.batch_pairs`` pairs, by better and then worse row."""
    lo, hi = data.offsets[q], data.offsets[q + 1]
    level, n, in_batch = data.level[lo:hi], hi - lo, 0
    document_weight = weights_of(data.document_weight, lo, hi)
    s, slope = buffers.s, buffers.slope
    slope[:n] = 0.0
    for i in range(n):
        for j in range(n):
            if level[i] <= level[j]:
                continue
            if in_batch == rule.batch_pairs:
                n_batches += 1
                _step(X, columns, buffers, data.query_weight[q], n_batches, rule, state)
                _scores(X, columns, state.w, s)
                slope[:n] = 0.0
                in_batch = 0
            in_batch += 1
            xi = max(0.0, 1.0 - (s[i] - s[j]))
            xi = weight_of(document_weight, i) * weight_of(document_weight, j) * xi
            slope[i] -= 2.0 * xi
            slope[j] += 2.0 * xi
    n_batches += 1
    _step(X, columns, buffers, data.query_weight[q], n_batches, rule, state)
    return n_batches


@kernel
def ftrl_pass(X, columns, data, sequence, rule, n_batches, state):
    """Learn from the queries of ``sequence`` in turn; return the number of batches so far.

    The loss of a batch is query_weight · Σ max(0, 1 − (s_i − s_j))² over its pairs, each times the weights of
    both documents; its gradient in the scores comes from one sweep in each direction of the score order.
    ``X`` holds the features ``columns``; ``state`` is updated in place.
    """
    longest = 1
    for q in sequence:
        longest = max(longest, data.offsets[q + 1] - data.offsets[q])
    buffers = FtrlBuffers(np.empty(longest), np.empty(longest), np.empty(len(columns)))
    ranking = Ranking(np.empty(longest), np.empty(longest, dtype=np.int64))
    count, slack_as_better, slack_as_worse = np.empty(longest), np.empty(longest), np.empty(longest)
    span = np.array([0, 1])
    first, last, sides = span[0], span[1], np.array([1, -1])  # literals would compile a second version
    for q in sequence:
        lo, hi = data.offsets[q], data.offsets[q + 1]
        rows = X[lo:hi]
        _scores(rows, columns, state.w, buffers.s)
        if 0 < rule.batch_pairs < data.pairs[q]:
            n_batches = _pass_in_batches(rows, columns, q, data, rule, n_batches, state, buffers)
            continue
        span[1] = hi - lo
        for i in range(hi - lo):
            ranking.order[i] = i
        documents = GroupedDocuments(
            span, data.level[lo:hi], data.query_weight, weights_of(data.document_weight, lo, hi)
        )
        centre_and_sort(buffers.s, span, first, last, ranking)
        active_partners(documents, ranking, first, last, sides[0], None, count, slack_as_better)
        active_partners(documents, ranking, first, last, sides[1], None, count, slack_as_worse)
        for i in range(hi - lo):
            buffers.slope[i] = (
                2.0 * weight_of(documents.document_weight, i) * (slack_as_worse[i] - slack_as_better[i])
            )
        n_batches += 1
        _step(rows, columns, buffers, data.query_weight[q], n_batches, rule, state)
    return n_batches
