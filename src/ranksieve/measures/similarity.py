"""How alike two features are: A_ij in [0, 1], symmetric, 1 on the diagonal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from ranksieve._parallel import single_threaded_blas, split_blocks, sum_blocks
from ranksieve._types import AnyArray, FloatArray
from ranksieve.data.dataset import Dataset, counted
from ranksieve.data.matrix import dense_rows
from ranksieve.errors import ParameterError
from ranksieve.kernels.concordance import concordances
from ranksieve.measures.importance import Standard

Similarity: TypeAlias = Callable[[Dataset, FloatArray | None], FloatArray]
"""(data, weight per query or None) -> a features × features matrix."""

MANY_DOCUMENTS = 1000  # of a query: with more, sorting takes less time than all pairs
PAIRS_AT_ONCE = 4096  # document pairs in one matrix product


def pearson(data: Dataset, query_weight: FloatArray | None = None) -> FloatArray:
    """A_ij = |cov(x_i, x_j)| / √(var(x_i) var(x_j)) over all documents.

    A constant feature is similar to none but itself. The absolute values can make the matrix indefinite.
    """
    data, weight = counted(data, query_weight)
    features = Standard(data.X, data.row_weights(weight))

    def gram(start: int, stop: int) -> FloatArray:
        z = features.rows(start, stop)
        return np.asarray(z.T @ z)

    with single_threaded_blas():
        products = sum_blocks(gram, features.cuts)
    return _cosines(products)


def squared_pearson(data: Dataset, query_weight: FloatArray | None = None) -> FloatArray:
    """A_ij = pearson(x_i, x_j)²: the entrywise square of a correlation matrix, so positive semidefinite."""
    return pearson(data, query_weight) ** 2


def kendall(data: Dataset, query_weight: FloatArray | None = None) -> FloatArray:
    """A_ij = |Σ_q τ_q(i, j)| / √(m_i m_j): how alike the rankings are that two features induce.

    τ_q is Kendall's τ-b over the documents of query q, the cosine of the two features' vectors of signs
    sign(x_s − x_t) over pairs of documents, so pairs tied in a feature count neither for nor against. m_i is
    the number of queries within which feature i varies (elsewhere τ_q = 0): where both features vary in every
    query this is |mean τ_q|, and copies have similarity 1. Signs are kept until after the mean, because two
    features are interchangeable in a linear model only if they agree (or disagree) throughout.

    Cost: matrix products over all pairs of documents of a query, n_q²·d² operations; of a query with more
    than 1,000 documents, n_q·log n_q·d².
    """
    data, weight = counted(data, query_weight)
    if data.document_weight is not None:
        reason = "cannot weigh documents; leave `document_weight` out, or choose 'pearson'"
        raise ParameterError("similarity", "kendall", reason)
    queries = data.queries

    def gram(first: int, last: int) -> FloatArray:
        total = np.zeros((data.n_features, data.n_features))
        for query in range(first, last):
            rows = queries.rows_of(query)
            tau = _normalise(_concordance(_ranks(dense_rows(data.X, rows))))
            tau *= weight[query]
            total += tau
        return total

    with single_threaded_blas():
        products = sum_blocks(gram, split_blocks(queries.offsets))
    return _cosines(products)


def identity(data: Dataset, query_weight: FloatArray | None = None) -> FloatArray:
    """A = I: no information on similarity; the quadratic term is a ridge."""
    return np.eye(data.n_features)


def _cosines(products: FloatArray) -> FloatArray:
    """|products_ij| / √(products_ii products_jj), 0 where a square is 0, exactly 1 on the diagonal."""
    cosines = np.minimum(np.abs(_normalise(products)), 1.0)
    np.fill_diagonal(cosines, 1.0)
    return np.asarray(0.5 * (cosines + cosines.T))


def _normalise(products: FloatArray) -> FloatArray:
    """products_ij / √(products_ii products_jj) in place, 0 where a square is 0."""
    size = np.sqrt(np.diag(products))
    scale = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
    products *= scale[:, None]
    products *= scale
    return products


def _ranks(x: FloatArray) -> AnyArray:
    """Ranks within each column, as whole numbers in float32; equal values share one."""
    order = np.argsort(x, axis=0)
    ranked = np.take_along_axis(x, order, axis=0)
    is_new = np.concatenate([np.zeros((1, x.shape[1]), dtype=bool), ranked[1:] > ranked[:-1]])
    ranks = np.empty(x.shape, dtype=np.float32)
    np.put_along_axis(ranks, order, np.cumsum(is_new, axis=0, dtype=np.float32), axis=0)
    return ranks


def _concordance(ranks: AnyArray) -> FloatArray:
    """Pairs of documents that two features order alike minus those they order against each other."""
    total = np.zeros((ranks.shape[1], ranks.shape[1]))
    if len(ranks) > MANY_DOCUMENTS:
        concordances(np.ascontiguousarray(ranks.T, dtype=np.int32), total)
        return total
    for signs in _batches(_signs(ranks)):
        total += signs.T @ signs  # exact: whole numbers below 2²⁴
    return total


def _signs(ranks: AnyArray) -> Iterator[AnyArray]:
    """sign(x_s − x_t) of every pair of documents, one block for each distance s − t."""
    for lag in range(1, len(ranks)):
        signs = ranks[lag:] - ranks[:-lag]
        yield np.clip(signs, -1.0, 1.0, out=signs)


def _batches(blocks: Iterator[AnyArray]) -> Iterator[AnyArray]:
    """Blocks stacked until they are high enough for a fast matrix product."""
    waiting: list[AnyArray] = []
    height = 0
    for block in blocks:
        waiting.append(block)
        height += len(block)
        if height >= PAIRS_AT_ONCE:
            yield np.concatenate(waiting)
            waiting, height = [], 0
    if waiting:
        yield np.concatenate(waiting)
