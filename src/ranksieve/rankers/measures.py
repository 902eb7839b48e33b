"""Measures of features: importance, and similarity A_ij in [0, 1], symmetric, 1 on the diagonal.

One function and one line in a table adds a measure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from ranksieve._parallel import map_blocks, single_threaded_blas, split_blocks, sum_blocks
from ranksieve._types import AnyArray, BoolArray, FloatArray, Matrix
from ranksieve.data.dataset import Dataset, check_finite, counted
from ranksieve.data.features import dense_columns
from ranksieve.data.matrix import dense_rows
from ranksieve.errors import DataError, ParameterError, lookup
from ranksieve.kernels.concordance import concordances
from ranksieve.metrics import Evaluator, Profile

Measure: TypeAlias = Callable[[Dataset, FloatArray | None], FloatArray]
"""(data, weight per query or None) -> one importance per feature, or a features × features matrix."""

MOST_COMPARED = 5000  # features: beyond, similarities take too much memory and their eigenvalues too long
SYMMETRIC = 1e-8  # largest |A_ij − A_ji|, as a share of the largest entry
MANY_DOCUMENTS = 1000  # of a query: with more, sorting takes less time than all pairs
PAIRS_AT_ONCE = 4096  # document pairs in one matrix product


# Importance


class Standard:
    """Columns as z = (x − mean)/reach, reach = max|x − mean|; a constant column is exactly 0.

    Rows count ``weight`` times. Dividing by the reach keeps squares from overflowing or vanishing.
    """

    def __init__(self, X: Matrix, weight: FloatArray) -> None:
        self._X, self._weight = X, weight
        self.cuts = split_blocks(np.arange(X.shape[0] + 1))
        self._centre, self._reach, self.constant = self._shape()

    def rows(self, start: int, stop: int) -> FloatArray:
        """√weight · z of some rows."""
        z = (dense_rows(self._X, slice(start, stop)) - self._centre) / self._reach
        return np.asarray(np.sqrt(self._weight[start:stop, None]) * z)

    def _shape(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        def work(start: int, stop: int) -> tuple[FloatArray, FloatArray, FloatArray]:
            x = dense_rows(self._X, slice(start, stop))
            return x.min(axis=0), x.max(axis=0), self._weight[start:stop] @ x

        low, high, total = zip(*map_blocks(work, self.cuts), strict=True)
        lowest, highest = np.min(low, axis=0), np.max(high, axis=0)
        centre = np.clip(np.sum(total, axis=0) / self._weight.sum(), lowest, highest)
        constant = lowest == highest
        reach = np.where(constant, 1.0, np.maximum(highest - centre, centre - lowest))
        return centre, reach, constant


def label_correlation(data: Dataset, query_weight: FloatArray | None = None) -> FloatArray:
    """s_j = |cov(x_j, y)| / √(var(x_j) var(y)) over all documents; 0 for a constant feature."""
    data, weight = counted(data, query_weight)
    rows = data.row_weights(weight)
    features, labels = Standard(data.X, rows), Standard(data.y[:, None], rows)

    def sums(start: int, stop: int) -> FloatArray:
        z, t = features.rows(start, stop), labels.rows(start, stop)[:, 0]
        return np.stack([t @ z, np.einsum("ij,ij->j", z, z), np.full(z.shape[1], t @ t)])

    product, feature_square, label_square = sum_blocks(sums, features.cuts)
    spread = np.sqrt(feature_square * label_square)
    correlation = np.divide(np.abs(product), spread, out=np.zeros_like(spread), where=spread > 0)
    return np.where(features.constant, 0.0, np.minimum(correlation, 1.0))


def single_ndcg(data: Dataset, query_weight: FloatArray | None = None) -> FloatArray:
    """NDCG@10 (letor profile) of ranking by the feature alone, up or down, whichever is better.

    Lists with fewer than ten documents count 0. Ties keep the input order. A feature that is constant within
    every query ranks nothing: 0.
    """
    _check_unweighted(data, "importance", "ndcg")
    return single_feature(data, "ndcg@10", query_weight, "letor")


def single_map(data: Dataset, query_weight: FloatArray | None = None) -> FloatArray:
    """MAP (letor profile) of ranking by the feature alone, up or down, whichever is better.

    Ties keep the input order. A feature that is constant within every query ranks nothing: 0.
    """
    _check_unweighted(data, "importance", "map")
    return single_feature(data, "map", query_weight, "letor")


def equal_importance(data: Dataset, query_weight: FloatArray | None = None) -> FloatArray:
    """s_j = 1: no information on importance. A constant feature still has importance 0."""
    data, weight = counted(data, query_weight)
    return np.where(Standard(data.X, data.row_weights(weight)).constant, 0.0, 1.0)


def single_feature(
    data: Dataset, metric: str, query_weight: FloatArray | None, profile: str | Profile
) -> FloatArray:
    """The metric of ranking by each feature alone, up or down, whichever is better; 0 if it ranks nothing.

    Metrics count every document once, whatever it weighs.
    """
    data, weight = counted(data, query_weight)
    evaluator = Evaluator(data, profile)

    def value(column: FloatArray) -> float:
        if not _varies(data, column):
            return 0.0
        up_and_down = evaluator.evaluate_many(np.stack([column, -column], axis=1), metric)
        return float(np.max(np.average(up_and_down, axis=1, weights=weight)))

    return np.array([value(column) for column in dense_columns(data.X)])


def _check_unweighted(data: Dataset, parameter: str, name: str) -> None:
    if data.document_weight is not None:
        reason = "cannot weigh documents; leave `document_weight` out, or choose 'pearson'"
        raise ParameterError(parameter, name, reason)


def _varies(data: Dataset, column: FloatArray) -> bool:
    grouped, starts = data.queries.group(column), data.queries.offsets[:-1]
    return bool(np.any(np.maximum.reduceat(grouped, starts) > np.minimum.reduceat(grouped, starts)))


# Similarity


def correlation(data: Dataset, query_weight: FloatArray | None = None) -> FloatArray:
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


def squared_correlation(data: Dataset, query_weight: FloatArray | None = None) -> FloatArray:
    """A_ij = pearson(x_i, x_j)²: the entrywise square of a correlation matrix, so positive semidefinite."""
    return correlation(data, query_weight) ** 2


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
    _check_unweighted(data, "similarity", "kendall")
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


def no_similarity(data: Dataset, query_weight: FloatArray | None = None) -> FloatArray:
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


IMPORTANCES: dict[str, Measure] = {
    "pearson": label_correlation,
    "ndcg": single_ndcg,
    "map": single_map,
    "ones": equal_importance,
}
SIMILARITIES: dict[str, Measure] = {
    "pearson": correlation,
    "squared_pearson": squared_correlation,
    "kendall": kendall,
    "identity": no_similarity,
}


# By name, or as given


def feature_importance(measure: Any, data: Dataset, query_weight: FloatArray | None = None) -> FloatArray:
    """Importance of each feature by a name of IMPORTANCES, or the given array, checked."""
    if isinstance(measure, str):
        check_finite(data)
        return lookup(IMPORTANCES, measure, "importance")(data, query_weight)
    values = _numbers("importance", measure)
    if values.shape != (data.n_features,):
        reason = f"must be one number for each of {data.n_features} features, got shape {values.shape}"
        raise ParameterError("importance", values, reason)
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(bad):
        reason = f"that of feature {data.feature_names[bad[0]]} must be a finite number ≥ 0 (0 excludes it)"
        raise ParameterError("importance", float(values[bad[0]]), reason)
    return values


def feature_similarity(measure: Any, data: Dataset, query_weight: FloatArray | None = None) -> FloatArray:
    """Similarity of each two features by a name of SIMILARITIES, or the given matrix, checked."""
    check_finite(data)
    return similarity_measure(measure, data.n_features)(data, query_weight)


def similarity_measure(measure: Any, n_features: int, used: bool = True) -> Measure:
    """The measure of that name, or one that gives the given matrix; checked, but nothing computed yet.

    Too many features are refused, unless it will not be ``used``.
    """
    if isinstance(measure, str):
        if used and n_features > MOST_COMPARED:
            raise DataError(
                None,
                None,
                f"the similarity of {n_features:,} features is a matrix of {8e-9 * n_features**2:.1f} GB; at "
                f"most {MOST_COMPARED:,} features can be compared with each other, so choose among them "
                "first, for example by FSRank",
            )
        return lookup(SIMILARITIES, measure, "similarity")
    matrix = _symmetric(_numbers("similarity", measure), n_features)
    return lambda data, query_weight: matrix


def _symmetric(matrix: FloatArray, d: int) -> FloatArray:
    if matrix.shape != (d, d):
        raise ParameterError("similarity", matrix, f"must be a {d} × {d} matrix, got shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        i, j = np.argwhere(~np.isfinite(matrix))[0]
        raise ParameterError("similarity", matrix, f"entry [{i}, {j}] is {matrix[i, j]}, not a finite number")
    difference = np.abs(matrix - matrix.T)
    i, j = np.unravel_index(int(np.argmax(difference)), matrix.shape)
    if difference[i, j] > SYMMETRIC * np.max(np.abs(matrix)):
        entries = f"entry [{i}, {j}] is {matrix[i, j]} and entry [{j}, {i}] is {matrix[j, i]}"
        raise ParameterError("similarity", matrix, f"must be symmetric, but {entries}; give (A + A.T) / 2")
    return np.asarray(0.5 * (matrix + matrix.T))


def _numbers(name: str, given: Any) -> FloatArray:
    try:
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(name, given, f"must be a known name or an array of numbers: {error}") from None
