"""Document pairs for competitors that do not support queries; ranksieve itself does not build pairs."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.harness import Skipped
from ranksieve._types import FloatArray, IntArray
from ranksieve.data.dataset import Dataset
from ranksieve.data.matrix import is_sparse

MAX_BYTES = 2e9


def count_pairs(data: Dataset) -> int:
    """Number of pairs with different labels in the same query."""
    offsets, y = data.queries.offsets, data.queries.group(data.y)
    total = 0
    for lo, hi in pairwise(offsets):
        counts = np.unique(y[lo:hi], return_counts=True)[1]
        total += (int(counts.sum()) ** 2 - int((counts**2).sum())) // 2
    return total


def pair_rows(data: Dataset) -> tuple[IntArray, IntArray]:
    """Rows of the more and of the less relevant document of every pair."""
    better_rows, worse_rows = [], []
    for lo, hi in zip(data.queries.offsets[:-1], data.queries.offsets[1:], strict=True):
        rows = data.queries.order[lo:hi]
        better, worse = np.nonzero(data.y[rows][:, None] > data.y[rows][None, :])
        better_rows.append(rows[better])
        worse_rows.append(rows[worse])
    return np.concatenate(better_rows), np.concatenate(worse_rows)


def build_pairs(data: Dataset) -> tuple[Any, FloatArray]:
    """All pair differences and their signs; every other one is negated to get two classes.

    Differences of CSR rows are CSR.
    """
    if is_sparse(data.X):
        better, worse = pair_rows(data)
        signs = np.where(np.arange(len(better)) % 2, 1.0, -1.0)
        K = (data.X[better] - data.X[worse]).astype(np.float64)
        K.data *= np.repeat(signs, np.diff(K.indptr))
        return K, signs
    size = count_pairs(data) * data.n_features * 8
    if size > MAX_BYTES:
        raise Skipped(f"{count_pairs(data):,} pairs need {size / 1e9:.1f} GB")
    better, worse = pair_rows(data)
    signs = np.where(np.arange(len(better)) % 2, 1.0, -1.0)
    K = data.X[better]
    K -= data.X[worse]
    K *= signs[:, None]
    return K, signs
