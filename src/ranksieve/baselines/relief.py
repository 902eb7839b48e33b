"""RankFilter and RankWrapper: features whose values differ between near documents of different rank."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import rankdata

from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve.baselines.selector import FeatureSelector, check_size, fit_on, largest, levelled
from ranksieve.data.dataset import Dataset, checked_query_weight
from ranksieve.data.features import dense_columns
from ranksieve.data.matrix import dense_block
from ranksieve.errors import DataError
from ranksieve.rankers.parameters import Count

PAIRS_AT_ONCE = 2**14  # pairs of documents whose differences are held at a time
MOST_DOCUMENTS = 10_000  # of a query: 0.8 GB of distances


class Relief(FeatureSelector):
    """The k features with the largest weights by a rule of the Relief family, then ``base`` on them.

    Two documents of a query differ in feature j by |x_j − z_j| over the range of the feature in the data;
    their distance is the sum of this over all features that vary within a query. Time and memory grow with
    the square of the number of documents of a query.
    """

    importance_: FloatArray
    k: int
    neighbours: int

    def _select(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> IntArray:
        check_size("k", self.k, usable, data)
        self.importance_ = np.zeros(data.n_features)
        self.importance_[usable] = self._weights(data, usable, query_weight)
        return largest(levelled(self.importance_), usable, self.k)

    @abstractmethod
    def _weights(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> FloatArray:
        """One weight for each usable feature."""


@dataclass(eq=False, repr=False)
class RankFilter(Relief):
    """The k features with the largest Relief weights for graded labels, then ``base`` on them.

    A document x of level l is compared with its nearest documents of each level of its query. With d_j(m) the
    mean difference in feature j to those of level m, it adds Σ_{m≠l} a_m d_j(m) − d_j(l) to the weight of j,
    where a_m, of sum 1, is proportional to |m − l| times the number of documents of level m: as ReliefF, but
    a document two levels away counts twice. The weight of a feature is the mean over the documents of a
    level, then over the levels of a query, then over queries. Documents that are alone in their level and
    queries of one level do not count.

    Parameters
    ----------
    k : int
        Number of features.
    neighbours : int
        Nearest documents of each level; those as near as the last of them count too.
    base : linear ranker, optional
        The second stage; default ``RankSVM()``.

    Attributes
    ----------
    importance_ : array
        The weights of the features; 0 for those that are constant within every query.
    selected_, base_, coef_
        As in every selector: columns in order of choice, the fitted base, its weights in full width.

    References
    ----------
    H. Yu, J. Oh, W.-S. Han: Efficient Feature Weighting Methods for Ranking, CIKM 2009.
    """

    importance_: FloatArray = field(init=False)

    k: Count = 10
    neighbours: Count = 1
    base: Any = None

    def _weights(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> FloatArray:
        weight, total, mass = checked_query_weight(query_weight, data.n_queries), np.zeros(len(usable)), 0.0
        for query, rows, x in scaled_queries(data, usable):
            shares = level_shares(distances_to_others(x), data.y[rows], self.neighbours)
            if shares.any():
                total += weight[query] * weighted_differences(x, shares)
                mass += weight[query]
        return total / mass if mass else total


@dataclass(eq=False, repr=False)
class RankWrapper(Relief):
    """The k features with the largest Relief weights for the ranking of a ranker, then ``base`` on them.

    ``base``, fitted on all features, ranks each query. Two documents differ in rank by δ, the difference of
    their ranks as a share of the largest possible. Over all documents x and their nearest documents z the
    weight of feature j is the mean difference in j weighted by δ, less that weighted by 1 − δ: as RReliefF,
    with ranks in place of values. It needs pairs, not grades.

    Parameters
    ----------
    k : int
        Number of features.
    neighbours : int
        Nearest documents; those as near as the last of them count too.
    base : linear ranker, optional
        The ranker of both stages; default ``RankSVM()``.

    Attributes
    ----------
    importance_ : array
        The weights of the features; 0 for those that are constant within every query.
    selected_, base_, coef_
        As in every selector: columns in order of choice, the fitted base, its weights in full width.

    References
    ----------
    H. Yu, J. Oh, W.-S. Han: Efficient Feature Weighting Methods for Ranking, CIKM 2009.
    """

    chooses_by_base: ClassVar[bool] = True

    importance_: FloatArray = field(init=False)

    k: Count = 10
    neighbours: Count = 10
    base: Any = None

    def _weights(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> FloatArray:
        ranker = fit_on(self._second_stage(), data, usable, query_weight)
        weight = checked_query_weight(query_weight, data.n_queries)
        totals, mass = np.zeros((2, len(usable))), np.zeros((2, 1))  # of documents far in rank, and near
        for query, rows, x in scaled_queries(data, usable):
            if len(rows) > 1:
                delta = rank_distances(dense_block(data.X, rows, usable) @ ranker.coef_)
                is_near = nearest(distances_to_others(x), self.neighbours)
                for side, counts in enumerate((is_near * delta, is_near * (1.0 - delta))):
                    totals[side] += weight[query] * weighted_differences(x, counts)
                    mass[side] += weight[query] * counts.sum()
        far, near = np.divide(totals, mass, out=totals, where=mass > 0)
        return np.asarray(far - near)


def scaled_queries(data: Dataset, columns: IntArray) -> Iterator[tuple[int, IntArray, FloatArray]]:
    """Every query: its number, its rows, and its values of some columns over their ranges in the data."""
    ranges = np.array([np.ptp(column) for column in dense_columns(data.X[:, columns])])
    order, offsets = data.queries.order, data.queries.offsets
    longest, size = data.queries.longest
    if size > MOST_DOCUMENTS:
        reason = f"query {longest} has {size:,} documents, but Relief accepts at most {MOST_DOCUMENTS:,}"
        raise DataError(None, None, f"{reason}; leave some out or use another selector")
    for query in range(data.n_queries):
        rows = order[offsets[query] : offsets[query + 1]]
        yield query, rows, dense_block(data.X, rows, columns) / ranges


def nearest(distances: FloatArray, n: int) -> BoolArray:
    """Whether z (column) is one of the n nearest documents of x (row), or as near as the last of them.

    Infinite distances are never near.
    """
    last = min(n, distances.shape[1]) - 1
    limit = np.partition(distances, last, axis=1)[:, [last]]
    return np.asarray((distances <= limit) & np.isfinite(distances))


def distances_to_others(x: FloatArray) -> FloatArray:
    """Σ_j |x_j − z_j| of each two documents, infinite for a document and itself."""
    distances = cdist(x, x, "cityblock")
    np.fill_diagonal(distances, np.inf)
    return np.asarray(distances)


def level_shares(distances: FloatArray, labels: FloatArray, n: int) -> FloatArray:
    """How much a difference between x (row) and z (column) counts in RankFilter."""
    levels, level, counts = np.unique(labels, return_inverse=True, return_counts=True)
    shares, several = np.zeros_like(distances), counts > 1
    if len(levels) == 1 or not several.any():
        return shares
    worth = np.asarray(counts * np.abs(labels[:, None] - levels), dtype=np.float64)
    worth /= worth.sum(axis=1, keepdims=True)
    worth[np.arange(len(labels)), level] = -1.0
    for m in range(len(levels)):
        columns = np.flatnonzero(level == m)
        near = nearest(distances[:, columns], n)
        shares[:, columns] = worth[:, [m]] * near / np.maximum(near.sum(axis=1, keepdims=True), 1)
    of_document = np.where(several, 1.0 / counts, 0.0) / several.sum()
    return np.asarray(of_document[level][:, None] * shares)


def rank_distances(scores: FloatArray) -> FloatArray:
    """|rank of x − rank of z| / (n − 1) of n > 1 documents; equal scores share their mean rank."""
    ranks = rankdata(scores)
    return np.asarray(np.abs(ranks[:, None] - ranks) / (len(ranks) - 1))


def weighted_differences(x: FloatArray, weight: FloatArray) -> FloatArray:
    """Σ weight_xz |x_j − z_j| over documents x (rows) and z (columns), for each feature j."""
    rows, columns = np.nonzero(weight)
    total = np.zeros(x.shape[1])
    for first in range(0, len(rows), PAIRS_AT_ONCE):
        one, other = rows[first : first + PAIRS_AT_ONCE], columns[first : first + PAIRS_AT_ONCE]
        total += weight[one, other] @ np.abs(x[one] - x[other])
    return total
