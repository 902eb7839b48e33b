"""Measures of features: importance and similarity. One function and one line here adds a measure."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksieve._types import FloatArray
from ranksieve._util.messages import lookup
from ranksieve.data.dataset import Dataset, check_finite
from ranksieve.errors import DataError, ParameterError
from ranksieve.measures import importance, similarity

IMPORTANCES: dict[str, importance.Importance] = {
    "pearson": importance.pearson,
    "ndcg": importance.ndcg,
    "map": importance.mean_average_precision,
    "ones": importance.ones,
}

SIMILARITIES: dict[str, similarity.Similarity] = {
    "pearson": similarity.pearson,
    "squared_pearson": similarity.squared_pearson,
    "kendall": similarity.kendall,
    "identity": similarity.identity,
}

MOST_COMPARED = (
    5000  # features: of more, their similarities take too much memory, and their eigenvalues too long
)
SYMMETRIC = 1e-8  # largest |A_ij − A_ji|, as a share of the largest entry

__all__ = ["IMPORTANCES", "SIMILARITIES", "feature_importance", "feature_similarity", "similarity_measure"]


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


def similarity_measure(measure: Any, n_features: int, used: bool = True) -> similarity.Similarity:
    """The measure of that name, or one that gives the given matrix; checked, but nothing computed yet.

    Too many features are refused, unless it will not be ``used``.
    """
    if isinstance(measure, str):
        if used:
            _check_width(n_features)
        return lookup(SIMILARITIES, measure, "similarity")
    matrix = _symmetric(_numbers("similarity", measure), n_features)

    def given(data: Dataset, query_weight: FloatArray | None = None) -> FloatArray:
        return matrix

    return given


def _check_width(n_features: int) -> None:
    if n_features > MOST_COMPARED:
        raise DataError(
            None,
            None,
            f"the similarity of {n_features:,} features is a matrix of {8e-9 * n_features**2:.1f} GB; at "
            f"most {MOST_COMPARED:,} features can be compared with each other, so choose among them first, "
            "for example by FSRank",
        )


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
