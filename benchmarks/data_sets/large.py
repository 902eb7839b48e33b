"""Synthetic data of any size with planted sparse weights: dense, drawn part by part, or wide and sparse."""

from __future__ import annotations

import numpy as np
import scipy.sparse

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


WIDE_LENGTH, WIDE_INFORMATIVE, WIDE_NOISE = 20, 300, 3.0
WIDE_CUTS = (0.5, 0.8, 0.95)  # shares of the documents below each of the higher labels
OVERSAMPLED = 4  # draws per stored value, because columns of a row are distinct


def draw_wide(n_docs: int, n_features: int, stored: int = 50) -> Dataset:
    """CSR data in lists of 20 with ``stored`` values per row; some columns are in most rows."""
    rng = np.random.default_rng(SEED)
    share = np.arange(1, n_features + 1) ** -0.8
    share /= share.sum()
    draws = np.searchsorted(np.cumsum(share)[:-1], rng.random((n_docs, OVERSAMPLED * stored)))
    columns = np.empty((n_docs, stored), dtype=np.int32)
    for row, drawn in zip(columns, draws, strict=True):
        distinct, first = np.unique(drawn, return_index=True)
        row[:] = np.sort(distinct[np.argsort(first)[:stored]])
    values = rng.lognormal(size=columns.size).astype(np.float32)
    starts = np.arange(0, columns.size + 1, stored, dtype=np.int32)
    X = scipy.sparse.csr_array((values, columns.ravel(), starts), shape=(n_docs, n_features))
    w = np.zeros(n_features)
    w[rng.choice(n_features, WIDE_INFORMATIVE, replace=False, p=share)] = rng.normal(size=WIDE_INFORMATIVE)
    scores = X @ w + WIDE_NOISE * rng.normal(size=n_docs)
    y = np.digitize(scores, np.quantile(scores, WIDE_CUTS)).astype(np.float64)
    return Dataset(X, y, np.arange(n_docs) // WIDE_LENGTH)
