"""Label levels: what a pairwise loss needs to know of the labels."""

from __future__ import annotations

import numpy as np

from ranksieve._types import FloatArray, IntArray
from ranksieve.data.queries import Queries

NO_PAIRS = (
    "there is no pair to learn from: in every query all documents have the same label; "
    "at least one query needs two documents with different labels"
)


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


def integer_levels(y: FloatArray, n_levels: int) -> IntArray:
    """Labels that index a table of level weights."""
    levels = y.astype(np.int64)
    if np.any(levels != y) or levels.min() < 0 or levels.max() >= n_levels:
        raise ValueError(
            f"level weights of shape {n_levels}×{n_levels} need integer labels 0 to {n_levels - 1}, "
            f"but labels run from {y.min():g} to {y.max():g}"
        )
    return levels


def pairs_per_query(levels: IntArray, queries: Queries) -> FloatArray:
    """Number of pairs with different levels in each query: (n² − Σ_level n_level²)/2."""
    width = int(levels.max()) + 1
    sizes = queries.sizes.astype(np.float64)
    _, counts = np.unique(queries.query_of_grouped * width + levels, return_counts=True)
    query_of_count = np.unique(queries.query_of_grouped * width + levels) // width
    same = np.bincount(query_of_count, weights=counts.astype(np.float64) ** 2, minlength=queries.n_queries)
    return np.asarray((sizes**2 - same) / 2)


def weighted_pairs_per_query(levels: IntArray, queries: Queries, weights: FloatArray) -> FloatArray:
    """Σ weight[upper, lower] over the pairs of each query."""
    counts = np.zeros((queries.n_queries, len(weights)))
    np.add.at(counts, (queries.query_of_grouped, levels), 1.0)
    return np.asarray(np.einsum("qa,ab,qb->q", counts, np.tril(weights, -1), counts))


def checked_query_weight(weight: FloatArray | None, n_queries: int) -> FloatArray:
    """One finite weight ≥ 0 a query; ones if none are given."""
    if weight is None:
        return np.ones(n_queries)
    weight = np.asarray(weight, dtype=np.float64)
    if weight.shape != (n_queries,):
        raise ValueError(
            f"query_weight needs one weight for each of {n_queries} queries, got shape {weight.shape}"
        )
    if not np.isfinite(weight).all() or np.any(weight < 0):
        raise ValueError("query weights must be finite and not negative")
    return weight
