"""Feature importance, and similarity of features: A_ij in [0, 1], symmetric, 1 on the diagonal.

To add a measure, write a function and add it to IMPORTANCES or SIMILARITIES.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from ranksieve._parallel import map_blocks, single_threaded_blas, split_blocks, sum_blocks
from ranksieve._types import AnyArray, BoolArray, FloatArray, Matrix
from ranksieve.data.dataset import Dataset, check_finite, drop_zero_weight
from ranksieve.data.features import dense_columns
from ranksieve.data.matrix import dense_rows
from ranksieve.errors import DataError, ParameterError, lookup
from ranksieve.kernels.concordance import concordances
from ranksieve.metrics import Evaluator, Profile
from ranksieve.metrics.evaluate import evaluate_quietly, join_evaluations, short_lists

Measure: TypeAlias = Callable[[Dataset, FloatArray | None], FloatArray]
"""(data, query weights or None) -> one importance per feature, or a features × features matrix."""

MAX_SIMILARITY_FEATURES = 5000  # limited by the memory of the matrix and the time for its eigenvalues
SYMMETRY_TOL = 1e-8  # maximum |A_ij − A_ji|, relative to the largest entry
MAX_PAIRWISE_DOCUMENTS = 1000  # of a query: with more, sorting is faster than all pairs
PRODUCT_PAIRS = 4096  # minimum number of document pairs per matrix product, for speed


# Importance


class ScaledColumns:
    """Columns as z = (x − mean)/scale, scale = max|x − mean|; a constant column is exactly 0.

    The mean is weighted by ``weight``, one per row. Dividing by the scale keeps squares from overflow and
    underflow.
    """

    def __init__(self, X: Matrix, weight: FloatArray) -> None:
        self._X, self._weight = X, weight
        self.cuts = split_blocks(np.arange(X.shape[0] + 1))
        self._centre, self._scale, self.constant = self._centre_and_scale()

    def rows(self, start: int, stop: int) -> FloatArray:
        """√weight · z of rows ``start`` to ``stop`` − 1."""
        z = (dense_rows(self._X, slice(start, stop)) - self._centre) / self._scale
        return np.asarray(np.sqrt(self._weight[start:stop, None]) * z)

    def _centre_and_scale(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        def work(start: int, stop: int) -> tuple[FloatArray, FloatArray, FloatArray]:
            x = dense_rows(self._X, slice(start, stop))
            return x.min(axis=0), x.max(axis=0), self._weight[start:stop] @ x

        low, high, total = zip(*map_blocks(work, self.cuts), strict=True)
        lowest, highest = np.min(low, axis=0), np.max(high, axis=0)
        centre = np.clip(np.sum(total, axis=0) / self._weight.sum(), lowest, highest)
        constant = lowest == highest
        scale = np.where(constant, 1.0, np.maximum(highest - centre, centre - lowest))
        return centre, scale, constant


def label_correlation(data: Dataset, query_weight: FloatArray | None = None) -> FloatArray:
    """s_j = |cov(x_j, y)| / √(var(x_j) var(y)) over all documents; 0 for a constant feature."""
    data, weight = drop_zero_weight(data, query_weight)
    rows = data.row_weights(weight)
    features, labels = ScaledColumns(data.X, rows), ScaledColumns(data.y[:, None], rows)

    def sums(start: int, stop: int) -> FloatArray:
        z, t = features.rows(start, stop), labels.rows(start, stop)[:, 0]
        return np.stack([t @ z, np.einsum("ij,ij->j", z, z), np.full(z.shape[1], t @ t)])

    product, feature_square, label_square = sum_blocks(sums, features.cuts)
    spread = np.sqrt(feature_square * label_square)
    correlation = np.divide(np.abs(product), spread, out=np.zeros_like(spread), where=spread > 0)
    return np.where(features.constant, 0.0, np.minimum(correlation, 1.0))


def single_ndcg(data: Dataset, query_weight: FloatArray | None = None) -> FloatArray:
    """NDCG@10 (letor profile) of ranking by the feature alone, in the better of both directions.

    Lists with fewer than ten documents have NDCG 0. Ties keep the input order. A feature that is constant
    within every query has importance 0.
    """
    _check_unweighted(data, "importance", "ndcg")
    return single_feature(data, "ndcg@10", query_weight, "letor")


def single_map(data: Dataset, query_weight: FloatArray | None = None) -> FloatArray:
    """MAP (letor profile) of ranking by the feature alone, in the better of both directions.

    Ties keep the input order. A feature that is constant within every query has importance 0.
    """
    _check_unweighted(data, "importance", "map")
    return single_feature(data, "map", query_weight, "letor")


def equal_importance(data: Dataset, query_weight: FloatArray | None = None) -> FloatArray:
    """s_j = 1, or 0 for a constant feature."""
    data, weight = drop_zero_weight(data, query_weight)
    return np.where(ScaledColumns(data.X, data.row_weights(weight)).constant, 0.0, 1.0)


def single_feature(
    data: Dataset, metric: str, query_weight: FloatArray | None, profile: str | Profile
) -> FloatArray:
    """Metric of ranking by each feature alone, in the better of both directions.

    0 for a feature that is constant within every query. Documents of weight 0 are dropped, other weights of
    documents ignored.
    """
    data, weight = drop_zero_weight(data, query_weight)
    evaluator = Evaluator(data, profile)

    def value(column: FloatArray) -> float:
        if not _varies(data, column):
            return 0.0
        return evaluator.alone(column, metric, weight)[0]

    return np.array([value(column) for column in dense_columns(data.X)])


def _check_unweighted(data: Dataset, parameter: str, name: str) -> None:
    if data.document_weight is not None:
        reason = "does not support document weights; omit `document_weight`, or use 'pearson'"
        raise ParameterError(parameter, name, reason)


def _varies(data: Dataset, column: FloatArray) -> bool:
    grouped, starts = data.queries.group(column), data.queries.offsets[:-1]
    return bool(np.any(np.maximum.reduceat(grouped, starts) > np.minimum.reduceat(grouped, starts)))


# Similarity


def correlation(data: Dataset, query_weight: FloatArray | None = None) -> FloatArray:
    """A_ij = |cov(x_i, x_j)| / √(var(x_i) var(x_j)) over all documents.

    A constant feature has similarity 0 to all others. The absolute values can make the matrix indefinite.
    """
    data, weight = drop_zero_weight(data, query_weight)
    features = ScaledColumns(data.X, data.row_weights(weight))

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
    """A_ij = |Σ_q τ_q(i, j)| / √(m_i m_j): similarity of the rankings by two features.

    τ_q is Kendall's τ-b over the documents of query q: the cosine of the two features' vectors of signs
    sign(x_s − x_t) over pairs of documents, in which a tie is 0. m_i is the number of queries within which
    feature i varies (in the others τ_q = 0). If both features vary in every query, A_ij is |mean τ_q|, and
    copies have similarity 1. The absolute value is taken after the mean, because two features are
    interchangeable in a linear model only if they agree (or disagree) in all queries.

    Cost: n_q²·d² operations per query, as matrix products over all pairs of documents; n_q·log n_q·d² for a
    query with more than 1,000 documents.
    """
    data, weight = drop_zero_weight(data, query_weight)
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
    """A = I: the quadratic term is a ridge."""
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
    """Ranks within each column, as integers in float32; equal values share a rank."""
    order = np.argsort(x, axis=0)
    ranked = np.take_along_axis(x, order, axis=0)
    is_new = np.concatenate([np.zeros((1, x.shape[1]), dtype=bool), ranked[1:] > ranked[:-1]])
    ranks = np.empty(x.shape, dtype=np.float32)
    np.put_along_axis(ranks, order, np.cumsum(is_new, axis=0, dtype=np.float32), axis=0)
    return ranks


def _concordance(ranks: AnyArray) -> FloatArray:
    """Number of concordant minus discordant pairs of documents, for each pair of features."""
    total = np.zeros((ranks.shape[1], ranks.shape[1]))
    if len(ranks) > MAX_PAIRWISE_DOCUMENTS:
        concordances(np.ascontiguousarray(ranks.T, dtype=np.int32), total)
        return total
    for signs in _batches(_signs(ranks)):
        total += signs.T @ signs  # exact: integers below 2²⁴
    return total


def _signs(ranks: AnyArray) -> Iterator[AnyArray]:
    """sign(x_s − x_t) of every pair of documents, one block for each distance s − t."""
    for lag in range(1, len(ranks)):
        signs = ranks[lag:] - ranks[:-lag]
        yield np.clip(signs, -1.0, 1.0, out=signs)


def _batches(blocks: Iterator[AnyArray]) -> Iterator[AnyArray]:
    """Stack blocks into batches of at least PRODUCT_PAIRS rows."""
    batch: list[AnyArray] = []
    height = 0
    for block in blocks:
        batch.append(block)
        height += len(block)
        if height >= PRODUCT_PAIRS:
            yield np.concatenate(batch)
            batch, height = [], 0
    if batch:
        yield np.concatenate(batch)


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


def feature_importance(measure: Any, data: Dataset, query_weight: FloatArray | None = None) -> FloatArray:
    """Importance of each feature: ``measure`` is a name in IMPORTANCES or an array."""
    if isinstance(measure, str):
        check_finite(data)
        return lookup(IMPORTANCES, measure, "importance")(data, query_weight)
    values = _as_floats("importance", measure)
    if values.shape != (data.n_features,):
        reason = f"must be one number for each of {data.n_features} features, got shape {values.shape}"
        raise ParameterError("importance", values, reason)
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(bad):
        name = data.feature_names[bad[0]]
        reason = f"the importance of feature {name} must be a finite number ≥ 0 (0 excludes it)"
        raise ParameterError("importance", float(values[bad[0]]), reason)
    return values


def feature_similarity(measure: Any, data: Dataset, query_weight: FloatArray | None = None) -> FloatArray:
    """Similarity of each pair of features: ``measure`` is a name in SIMILARITIES or a matrix."""
    check_finite(data)
    return similarity_measure(measure, data.n_features)(data, query_weight)


def similarity_measure(measure: Any, n_features: int, used: bool = True) -> Measure:
    """The measure with this name, or a function that returns the given matrix, checked.

    More than MAX_SIMILARITY_FEATURES features are an error if the measure is ``used``.
    """
    if isinstance(measure, str):
        if used and n_features > MAX_SIMILARITY_FEATURES:
            raise DataError(
                None,
                None,
                f"the similarity matrix of {n_features:,} features would take {8e-9 * n_features**2:.1f} GB; "
                f"select at most {MAX_SIMILARITY_FEATURES:,} features first, for example by FSRank",
            )
        return lookup(SIMILARITIES, measure, "similarity")
    matrix = _symmetric(_as_floats("similarity", measure), n_features)
    return lambda data, query_weight: matrix


def _symmetric(matrix: FloatArray, d: int) -> FloatArray:
    if matrix.shape != (d, d):
        raise ParameterError("similarity", matrix, f"must be a {d} × {d} matrix, got shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        i, j = np.argwhere(~np.isfinite(matrix))[0]
        raise ParameterError("similarity", matrix, f"entry [{i}, {j}] is {matrix[i, j]}, not a finite number")
    difference = np.abs(matrix - matrix.T)
    i, j = np.unravel_index(int(np.argmax(difference)), matrix.shape)
    if difference[i, j] > SYMMETRY_TOL * np.max(np.abs(matrix)):
        entries = f"entry [{i}, {j}] is {matrix[i, j]} and entry [{j}, {i}] is {matrix[j, i]}"
        raise ParameterError("similarity", matrix, f"must be symmetric, but {entries}; use (A + A.T) / 2")
    return np.asarray(0.5 * (matrix + matrix.T))


def _as_floats(name: str, value: Any) -> FloatArray:
    try:
        return np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(name, value, f"must be a known name or an array of numbers: {error}") from None


def too_short_to_count(ranker: Any, data: Dataset, held_out: Dataset | None) -> str:
    """Sentence about held-out lists that are too short for the metric; independent of the scores."""

    if not ranker.can("valid"):
        return ""
    uses_train, by = held_out is None or getattr(ranker, "n_folds_", 0) > 0, ranker.choice_.validation
    parts = [part for part in (data if uses_train else None, held_out) if part is not None]
    equal_scores = (evaluate_quietly(np.zeros(part.n_docs), part, by.metric, by.profile) for part in parts)
    return short_lists(join_evaluations(list(equal_scores)))
