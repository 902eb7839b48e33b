"""Label levels within each query, and the pairs of documents that they make."""

from __future__ import annotations

import numpy as np

from ranksieve._types import FloatArray, IntArray
from ranksieve.data.queries import Queries


def local_levels(y: FloatArray, queries: Queries) -> IntArray:
    """Dense ranks of the labels within each query, 0 for the lowest; ``y`` and result in grouped order."""
    query = queries.query_of_grouped
    order = np.lexsort((y, query))
    starts = np.ones(len(y), dtype=bool)
    starts[1:] = query[order][1:] != query[order][:-1]
    rises = np.ones(len(y), dtype=np.int64)
    rises[1:] = y[order][1:] != y[order][:-1]
    running = np.cumsum(np.where(starts, 0, rises))
    first = running[np.flatnonzero(starts)]
    levels = np.empty(len(y), dtype=np.int64)
    levels[order] = running - np.repeat(first, queries.sizes)
    return levels


def pairs_per_query(levels: IntArray, queries: Queries) -> IntArray:
    """How many pairs of different levels each query has: (n² − Σ_level n_level²)/2."""
    width = int(levels.max()) + 1
    cells, counts = np.unique(queries.query_of_grouped * width + levels, return_counts=True)
    same = np.bincount(cells // width, weights=counts.astype(np.float64) ** 2, minlength=queries.n_queries)
    pairs: IntArray = (queries.sizes**2 - same.astype(np.int64)) // 2
    return pairs
