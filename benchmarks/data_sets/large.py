"""Synthetic data of any size with planted sparse weights, drawn part by part."""

from __future__ import annotations

import numpy as np

from ranksieve._types import FloatArray, IntArray
from ranksieve.data.dataset import Dataset
from ranksieve.synthetic import noisy_scores, planted_features

N_FEATURES, N_INFORMATIVE, N_CONSTANT = 136, 10, 6
CORRELATION, NOISE = 0.5, 0.5
QUERIES, LENGTH, SPREAD = 500, 125, 75  # per part; list lengths from 50 to 200, 125 on average
LEVELS, BEST, NEXT = 5, 0.75, 0.65  # the best 0.75·0.65^(l−1) of a query have a label of at least l
PART = QUERIES * LENGTH
SEED = 0


def draw_part(number: int) -> Dataset:
    """The documents of one part: 500 queries with float32 features and about 6,800 pairs each."""
    rng = np.random.default_rng((SEED, number))
    half = rng.integers(-SPREAD, SPREAD + 1, QUERIES // 2)
    sizes = LENGTH + np.concatenate([half, -half])
    X, _ = planted_features(rng, sizes, N_FEATURES, N_INFORMATIVE, 0, CORRELATION)
    X[:, :N_CONSTANT] = np.repeat(X[np.cumsum(sizes) - sizes, :N_CONSTANT], sizes, axis=0)
    scores = noisy_scores(rng, X, _truth(), NOISE)
    qid = np.repeat(number * QUERIES + np.arange(1, QUERIES + 1), sizes)
    return Dataset(X.astype(np.float32), _labels(scores, sizes), qid)


def _truth() -> FloatArray:
    """Planted weights: ten nonzero, three of them negative."""
    rng, truth = np.random.default_rng(SEED), np.zeros(N_FEATURES)
    informative = N_CONSTANT + rng.permutation(N_FEATURES - N_CONSTANT)[:N_INFORMATIVE]
    truth[informative] = rng.uniform(0.5, 1.5, N_INFORMATIVE)
    truth[informative[:3]] *= -1.0
    return truth


def _labels(scores: FloatArray, sizes: IntArray) -> FloatArray:
    query = np.repeat(np.arange(len(sizes)), sizes)
    rank = np.empty(len(scores))
    rank[np.lexsort((-scores, query))] = np.arange(len(scores)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    shares = BEST * NEXT ** np.arange(LEVELS - 1)
    labels: FloatArray = np.sum(
        rank[:, None] < np.round(sizes[query, None] * shares), axis=1, dtype=np.float64
    )
    return labels


def draw(n_docs: int) -> Dataset:
    """Draw ``n_docs`` documents (a multiple of 62,500) in memory."""
    n_parts = n_docs // PART
    X, y = np.empty((n_docs, N_FEATURES), dtype=np.float32), np.empty(n_docs)
    qid = np.empty(n_docs, dtype=np.int64)
    for number in range(n_parts):
        rows, part = slice(number * PART, (number + 1) * PART), draw_part(number)
        X[rows], y[rows], qid[rows] = part.X, part.y, part.qid
    return Dataset(X, y, qid)
