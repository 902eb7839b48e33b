"""Pairs of documents, built for peers that know no queries: what this package never does."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from benchmarks.harness import Skipped
from ranksieve._types import FloatArray, IntArray
from ranksieve.data.dataset import Dataset

MOST_BYTES = 2e9


def count_pairs(data: Dataset) -> int:
    """Pairs of one query with different labels."""
    offsets, y = data.queries.offsets, data.queries.group(data.y)
    total = 0
    for lo, hi in pairwise(offsets):
        counts = np.unique(y[lo:hi], return_counts=True)[1]
        total += (int(counts.sum()) ** 2 - int((counts**2).sum())) // 2
    return total


def pair_rows(data: Dataset) -> tuple[IntArray, IntArray]:
    """The rows of the upper and the lower document of every pair."""
    uppers, lowers = [], []
    for lo, hi in zip(data.queries.offsets[:-1], data.queries.offsets[1:], strict=True):
        rows = data.queries.order[lo:hi]
        upper, lower = np.nonzero(data.y[rows][:, None] > data.y[rows][None, :])
        uppers.append(rows[upper])
        lowers.append(rows[lower])
    return np.concatenate(uppers), np.concatenate(lowers)


def build_pairs(data: Dataset) -> tuple[FloatArray, FloatArray]:
    """All differences and their signs; every other one is turned round: classifiers want two classes."""
    size = count_pairs(data) * data.n_features * 8
    if size > MOST_BYTES:
        raise Skipped(f"{count_pairs(data):,} pairs need {size / 1e9:.1f} GB")
    upper, lower = pair_rows(data)
    signs = np.where(np.arange(len(upper)) % 2, 1.0, -1.0)
    K = data.X[upper]
    K -= data.X[lower]
    K *= signs[:, None]
    return K, signs
