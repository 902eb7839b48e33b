"""Importance of features, and the standardised columns that importance and similarity share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ranksieve._parallel import map_blocks, split_blocks, sum_blocks
from ranksieve._types import BoolArray, FloatArray, Matrix
from ranksieve.data.dataset import Dataset, counted
from ranksieve.data.features import dense_columns
from ranksieve.data.matrix import dense_rows
from ranksieve.errors import ParameterError
from ranksieve.metrics import Evaluator, Profile


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


Importance: TypeAlias = Callable[[Dataset, FloatArray | None], FloatArray]
"""(data, weight per query or None) -> one importance per feature."""


def pearson(data: Dataset, query_weight: FloatArray | None = None) -> FloatArray:
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


def ndcg(data: Dataset, query_weight: FloatArray | None = None) -> FloatArray:
    """NDCG@10 (letor profile) of ranking by the feature alone, up or down, whichever is better.

    Lists with fewer than ten documents count 0. Ties keep the input order. A feature that is constant within
    every query ranks nothing: 0.
    """
    _check_unweighted(data, "ndcg")
    return single_feature(data, "ndcg@10", query_weight, "letor")


def mean_average_precision(data: Dataset, query_weight: FloatArray | None = None) -> FloatArray:
    """MAP (letor profile) of ranking by the feature alone, up or down, whichever is better.

    Ties keep the input order. A feature that is constant within every query ranks nothing: 0.
    """
    _check_unweighted(data, "map")
    return single_feature(data, "map", query_weight, "letor")


def ones(data: Dataset, query_weight: FloatArray | None = None) -> FloatArray:
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


def _check_unweighted(data: Dataset, name: str) -> None:
    if data.document_weight is not None:
        reason = "cannot weigh documents; leave `document_weight` out, or choose 'pearson'"
        raise ParameterError("importance", name, reason)


def _varies(data: Dataset, column: FloatArray) -> bool:
    grouped, starts = data.queries.group(column), data.queries.offsets[:-1]
    return bool(np.any(np.maximum.reduceat(grouped, starts) > np.minimum.reduceat(grouped, starts)))
