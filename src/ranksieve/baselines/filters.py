"""Selectors that judge features by importance, similarity or their neighbours, before any ranker learns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import rankdata
from sklearn.metrics import silhouette_score

from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve.baselines.selector import (
    FeatureSelector,
    Selection,
    check_size,
    fit_on,
    largest,
    levelled,
)
from ranksieve.data.dataset import Dataset, checked_query_weight
from ranksieve.data.features import dense_columns
from ranksieve.data.matrix import dense_block
from ranksieve.errors import DataError, lookup
from ranksieve.objective import Objective, make_objective
from ranksieve.penalties.similarity import settle_definiteness
from ranksieve.rankers import FSMRank
from ranksieve.rankers.measures import (
    IMPORTANCES,
    Measure,
    feature_importance,
    similarity_measure,
    single_feature,
)
from ranksieve.rankers.parameters import Count, NotNegative, Seed
from ranksieve.solvers.base import exact_step


@dataclass(eq=False, repr=False)
class FSRank(FeatureSelector):
    """The features with the best NDCG@10 of ranking by that feature alone, then ``base`` on them.

    A feature may rank up or down, whichever is better. Of equally good features the earlier column goes
    first: with ties everywhere these are the first that vary within a query.

    Parameters
    ----------
    max_features : int
        Number of features.
    base : linear ranker, optional
        The second stage; default ``RankSVM()``.
    metric : str
        What ranks the features, such as "ndcg@10" or "map" (letor profile: in lists shorter than ten
        documents NDCG@10 is 0).

    Attributes
    ----------
    importance_ : array
        Metric of each feature alone.
    selected_, base_, coef_
        As in every selector: columns in order of choice, the fitted base, its weights in full width.

    References
    ----------
    H. Lai, Y. Pan, C. Liu, L. Lin, J. Wu: Sparse Learning-to-Rank via an Efficient Primal-Dual Algorithm,
    IEEE Transactions on Computers 62(6), 2013, §8.5.2. It does not say whether a feature may rank downwards.
    """

    max_features: Count = 10
    base: Any = None
    metric: str = "ndcg@10"

    def _select(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> Selection:
        check_size(self.max_features, usable, data)
        importance = single_feature(data, self.metric, query_weight, "letor")
        return largest(importance, usable, self.max_features), {"importance_": importance}


UNLIMITED = np.finfo(np.float64).max  # the best weight of one feature is finite: 1/(a difference) at most


@dataclass(eq=False, repr=False)
class GAS(FeatureSelector):
    """Greedy search for max Σ_i s_i − c Σ_{i≠j} A_ij over sets of ``max_features``, then ``base`` on them.

    Pick the feature with the largest score s_i, subtract 2c·A_ij from the score of every other feature j,
    repeat. Of equal scores the earlier column goes first.

    Parameters
    ----------
    max_features : int
        Number of features.
    importance : "ndcg", "map", "loss", another name of IMPORTANCES, or array
        s: single-feature NDCG@10 or MAP (the authors' GAS-E; letor profile, better direction), or 1 minus the
        least mean squared hinge that one weight on the feature reaches (GAS-L); or one number ≥ 0 a feature,
        0 to exclude it.
    similarity : "kendall", another name of SIMILARITIES, or array
        A: |Kendall's τ| of the two induced rankings, averaged over queries; or a symmetric matrix.
    c : float
        Weight of similarity against importance, ≥ 0; at 0 the most important features are chosen.
    base : linear ranker, optional
        The second stage; default ``RankSVM()``.

    Attributes
    ----------
    importance_, similarity_ : arrays
        s and A.
    scores_ : array
        Score of each chosen feature when it was picked.
    selected_, base_, coef_
        As in every selector: columns in order of choice, the fitted base, its weights in full width.

    References
    ----------
    X. Geng, T.-Y. Liu, T. Qin, H. Li: Feature Selection for Ranking, SIGIR 2007. There a pair of documents
    tied in a feature has an order by chance; here it counts neither for nor against (τ-b).
    """

    max_features: Count = 10
    importance: Any = "ndcg"
    similarity: Any = "kendall"
    c: NotNegative = 0.01
    base: Any = None

    def _select(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> Selection:
        similarity = similarity_measure(self.similarity, data.n_features)
        if isinstance(self.importance, str):
            measure = lookup(GAS_IMPORTANCES, self.importance, "importance")
            check_size(self.max_features, usable, data)
            importance = measure(data, query_weight)
        else:
            importance = feature_importance(self.importance, data)
            usable = usable[importance[usable] > 0]
            check_size(self.max_features, usable, data)
        matrix = similarity(data, query_weight)
        selected, scores = greedy(importance, matrix, self.c, usable, self.max_features)
        return selected, {"importance_": importance, "similarity_": matrix, "scores_": scores}


def greedy(
    importance: FloatArray, similarity: FloatArray, c: float, usable: IntArray, k: int
) -> tuple[IntArray, FloatArray]:
    """The k columns picked, in order, and the score of each when it was picked."""
    score = np.full(len(importance), -np.inf)
    score[usable] = importance[usable]
    selected, scores = np.empty(k, dtype=np.int64), np.empty(k)
    for i in range(k):
        best = int(np.argmax(score))
        selected[i], scores[i] = best, score[best]
        score -= 2.0 * c * similarity[best]
        score[best] = -np.inf
    return selected, scores


def loss_drop(data: Dataset, query_weight: FloatArray | None = None) -> FloatArray:
    """s_j = 1 − min_w f(w·x_j), f the mean squared hinge over pairs; 1 if the feature orders every pair.

    Towards its minimum φ(w) = f(w·x_j) has a derivative that is concave in |w| (a pair in right order stops
    counting once it is far enough apart), so Newton's iteration from 0 comes to the root from below.
    """
    objective = make_objective(data, query_weight=query_weight)
    slope = objective.gradient(objective.at_zero)
    return np.array([_drop(objective, j, -np.sign(slope[j])) for j in range(data.n_features)])


def _drop(objective: Objective, j: int, sign: float) -> float:
    """The features' directions do not matter to the loss: it is a function of the scores alone."""
    zero = objective.at_zero
    _, best = exact_step(
        objective, zero, np.zeros_like(zero.w), sign * objective.features.column(j), UNLIMITED
    )
    return zero.value - best.value


GAS_IMPORTANCES: dict[str, Measure] = {**IMPORTANCES, "loss": loss_drop}


@dataclass(eq=False, repr=False)
class FSMSVM(FeatureSelector):
    """The features with the largest |weight| in FSMRank, then ``base`` on them.

    If FSMRank gives fewer features a weight than are asked for, those without follow by importance. Of
    equals the earlier column goes first.

    Parameters
    ----------
    max_features : int
        Number of features.
    base : linear ranker, optional
        The second stage; default ``RankSVM()``.
    alpha, similarity_weight, importance, similarity
        As in :class:`ranksieve.FSMRank`, the first stage.

    Attributes
    ----------
    fsmrank_ : FSMRank
        The fitted first stage.
    selected_, base_, coef_
        As in every selector: columns in order of choice, the fitted base, its weights in full width.

    References
    ----------
    H. Lai, Y. Pan, Y. Tang, R. Yu: FSMRank: Feature Selection Algorithm for Learning to Rank, IEEE
    Transactions on Neural Networks and Learning Systems 24(6), 2013. It sorts "by their weights"; here by
    their size, because a feature may count against relevance.
    """

    max_features: Count = 10
    base: Any = None
    _: KW_ONLY
    alpha: NotNegative = 1e-3
    similarity_weight: NotNegative = 1e-3
    importance: Any = "pearson"
    similarity: Any = "pearson"

    def _select(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> Selection:
        check_size(self.max_features, usable, data)
        fsmrank = FSMRank(
            self.alpha, self.similarity_weight, importance=self.importance, similarity=self.similarity
        ).fit(data, query_weight=query_weight)
        size, importance = levelled(np.abs(fsmrank.coef_)), levelled(fsmrank.importance_)
        order = np.lexsort((-importance[usable], -size[usable]))
        return usable[order[: self.max_features]], {"fsmrank_": fsmrank}

    def _abilities(self) -> Collection[str]:
        return ("linear", "scale", "document_weight")


TIE = 1e-9  # numbers that differ by less are equal
MAX_STEPS = 100


@dataclass(eq=False, repr=False)
class Hierarchical(FeatureSelector):
    """One feature of each cluster of features that rank alike, then ``base`` on them."""

    n_clusters: Count | None = None
    base: Any = None
    _: KW_ONLY
    max_clusters: Count = 50
    n_starts: Count = 5
    similarity: Any = "kendall"
    random_state: Seed = 0

    def _select(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> Selection:
        similarity = similarity_measure(self.similarity, data.n_features)
        if self.n_clusters is not None:
            check_size(self.n_clusters, usable, data, "n_clusters")
        importance = np.zeros(data.n_features)
        importance[usable] = self._importance(data, usable, query_weight)
        matrix = similarity(data, query_weight)
        clusters, qualities = self._clusters(matrix[np.ix_(usable, usable)])
        of_features = np.full(data.n_features, -1)
        of_features[usable] = clusters
        level = levelled(importance)
        members = (usable[clusters == cluster] for cluster in np.unique(clusters))
        chosen = np.sort([columns[np.argmax(level[columns])] for columns in members])
        return largest(level, chosen, len(chosen)), {
            "importance_": importance,
            "similarity_": matrix,
            "clusters_": of_features,
            "qualities_": qualities,
        }

    @abstractmethod
    def _importance(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> FloatArray:
        """For each usable feature, what decides whether it stands for its cluster."""

    def _clusters(self, similarity: FloatArray) -> tuple[IntArray, dict[int, float]]:
        """The number of the cluster of each feature, and the quality of each number of clusters tried."""
        definite = settle_definiteness(similarity, "project")
        n_features = len(similarity)
        sizes = range(2, min(self.max_clusters, n_features - 1) + 1)
        if self.n_clusters is not None or not sizes:
            size = n_features if self.n_clusters is None else self.n_clusters
            return k_means(definite, size, self.n_starts, self.random_state), {}
        clusters = {size: k_means(definite, size, self.n_starts, self.random_state) for size in sizes}
        qualities = {size: quality(similarity, clusters[size]) for size in sizes}
        best = max(qualities.values())
        return next(clusters[size] for size in sizes if qualities[size] >= best - TIE), qualities


@dataclass(eq=False, repr=False)
class HierarchicalBEM(Hierarchical):
    """Of each cluster of features that rank alike the one that ranks best alone, then ``base`` on them.

    Features are clustered by k-means, in which their similarity A takes the place of inner products: the
    squared distance of i and j is A_ii + A_jj − 2A_ij. The number of clusters is that of the best quality,
    the mean silhouette of the features (see :func:`quality`); the smaller in a tie. Of equally good features
    of a cluster the earlier column goes first.

    Parameters
    ----------
    n_clusters : int, optional
        Number of clusters, and so of features; by default the one of the best quality.
    base : linear ranker, optional
        The second stage; default ``RankSVM()``.
    metric : str
        What ranks features alone, up or down, whichever is better, such as "ndcg@10" or "map" (letor profile:
        in lists shorter than ten documents NDCG@10 is 0).
    max_clusters : int
        Most clusters that are tried.
    n_starts : int
        Random starts of k-means; the best counts.
    similarity : "kendall", another name of SIMILARITIES, or array
        A. If it is not positive semidefinite, k-means takes the nearest matrix that is.
    random_state : int
        Seed of the starts.

    Attributes
    ----------
    importance_, similarity_ : arrays
        The metric of each feature alone, and A.
    clusters_ : array
        The number of the cluster of each feature; −1 for those that are constant within every query.
    qualities_ : dict
        The quality of each number of clusters that was tried.
    selected_, base_, coef_
        As in every selector: columns, the most important first; the fitted base, its weights in full width.

    References
    ----------
    G. Hua, M. Zhang, Y. Liu, S. Ma, L. Ru: Hierarchical Feature Selection for Ranking, WWW 2010.
    """

    metric: str = "ndcg@10"

    def _importance(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> FloatArray:
        return single_feature(data, self.metric, query_weight, "letor")[usable]


@dataclass(eq=False, repr=False)
class HierarchicalILTR(Hierarchical):
    """Of each cluster of features that rank alike the one that a ranker of all features weighs most.

    The ranker is ``base``, which is then fitted on the chosen ones. Clusters are those of
    :class:`HierarchicalBEM`.

    Parameters
    ----------
    n_clusters : int, optional
        Number of clusters, and so of features; by default the one of the best quality.
    base : linear ranker, optional
        The ranker of both stages; default ``RankSVM()``.
    max_clusters, n_starts, similarity, random_state
        As in :class:`HierarchicalBEM`.

    Attributes
    ----------
    importance_, similarity_ : arrays
        The size of each feature's weight in the ranker of all features, and A.
    clusters_, qualities_
        As in :class:`HierarchicalBEM`.
    selected_, base_, coef_
        As in every selector: columns, the most important first; the fitted base, its weights in full width.

    References
    ----------
    G. Hua, M. Zhang, Y. Liu, S. Ma, L. Ru: Hierarchical Feature Selection for Ranking, WWW 2010. "The highest
    weight" is here the largest in size, because a feature may count against relevance.
    """

    decided_last: ClassVar[frozenset[str]] = frozenset()

    def _importance(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> FloatArray:
        return np.asarray(np.abs(fit_on(self._second_stage(), data, usable, query_weight).coef_))


def quality(similarity: FloatArray, clusters: IntArray) -> float:
    """The mean silhouette (b − a)/max(a, b) of features with the distances 1 − A.

    a is a feature's mean distance to the others of its cluster, b the least mean distance to those of another
    cluster; a feature alone in its cluster counts 0, and so do clusters that are only one.
    """
    if len(np.unique(clusters)) < 2:
        return 0.0
    distances = np.maximum(1.0 - similarity, 0.0)
    np.fill_diagonal(distances, 0.0)
    return float(silhouette_score(distances, clusters, metric="precomputed"))


def k_means(gram: FloatArray, k: int, n_starts: int, random_state: int) -> IntArray:
    """The cluster of each point, the best of some starts; points are known by their inner products alone."""
    rng = np.random.default_rng(random_state)
    found = [_lloyd(gram, _spread_points(gram, k, rng)) for _ in range(n_starts)]
    least = min(spread for spread, _ in found)
    return next(clusters for spread, clusters in found if spread <= least + TIE)


def _spread_points(gram: FloatArray, k: int, rng: np.random.Generator) -> IntArray:
    """The first members of k clusters: each drawn by its squared distance to the nearest one before it."""
    squared = np.maximum(np.add.outer(np.diag(gram), np.diag(gram)) - 2.0 * gram, 0.0)
    chosen = [int(rng.integers(len(gram)))]
    apart = squared[chosen[0]]
    while len(chosen) < k:
        apart[chosen] = 0.0
        room = np.cumsum(apart) if apart.any() else np.cumsum(~np.isin(np.arange(len(gram)), chosen))
        chosen.append(int(np.searchsorted(room, rng.random() * room[-1], side="right")))
        apart = np.minimum(apart, squared[chosen[-1]])
    return np.array(chosen)


def _lloyd(gram: FloatArray, first: IntArray) -> tuple[float, IntArray]:
    """Σ of squared distances to the means of the clusters at the end, and the clusters."""
    k, points = len(first), np.arange(len(gram))
    own = np.diag(gram)
    apart = own[:, None] + own[first] - 2.0 * gram[:, first]
    clusters = np.argmin(apart, axis=1)
    clusters[first] = np.arange(k)
    for _ in range(MAX_STEPS):
        member = np.equal.outer(clusters, np.arange(k)) / np.bincount(clusters, minlength=k)
        to_mean = gram @ member
        apart = own[:, None] - 2.0 * to_mean + np.einsum("ij,ij->j", member, to_mean)
        moved = _nearest_clusters(apart, clusters)
        if np.array_equal(moved, clusters):
            break
        clusters = moved
    return float(apart[points, clusters].sum()), clusters


def _nearest_clusters(apart: FloatArray, clusters: IntArray) -> IntArray:
    """Each point in the cluster with the nearest mean; none is left empty, and ties change nothing."""
    points = np.arange(len(clusters))
    better = apart.min(axis=1) < apart[points, clusters] - TIE
    moved = np.where(better, np.argmin(apart, axis=1), clusters)
    for empty in np.setdiff1d(clusters, moved):
        counts = np.bincount(moved, minlength=apart.shape[1])
        farthest = np.where(counts[moved] > 1, apart[points, moved], -np.inf)
        moved[int(np.argmax(farthest))] = empty
    return moved


PAIRS_AT_ONCE = 2**14  # pairs of documents whose differences are held at a time
MOST_DOCUMENTS = 10_000  # of a query: 0.8 GB of distances


@dataclass(eq=False, repr=False)
class Relief(FeatureSelector):
    """The features with the largest weights by a rule of the Relief family, then ``base`` on them.

    Two documents of a query differ in feature j by |x_j − z_j| over the range of the feature in the data;
    their distance is the sum of this over all features that vary within a query. Time and memory grow with
    the square of the number of documents of a query.
    """

    max_features: Count = 10
    neighbours: Count = 1
    base: Any = None

    def _select(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> Selection:
        check_size(self.max_features, usable, data)
        importance = np.zeros(data.n_features)
        importance[usable] = self._weights(data, usable, query_weight)
        return largest(levelled(importance), usable, self.max_features), {"importance_": importance}

    @abstractmethod
    def _weights(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> FloatArray:
        """One weight for each usable feature."""


@dataclass(eq=False, repr=False)
class RankFilter(Relief):
    """The features with the largest Relief weights for graded labels, then ``base`` on them.

    A document x of level l is compared with its nearest documents of each level of its query. With d_j(m) the
    mean difference in feature j to those of level m, it adds Σ_{m≠l} a_m d_j(m) − d_j(l) to the weight of j,
    where a_m, of sum 1, is proportional to |m − l| times the number of documents of level m: as ReliefF, but
    a document two levels away counts twice. The weight of a feature is the mean over the documents of a
    level, then over the levels of a query, then over queries. Documents that are alone in their level and
    queries of one level do not count.

    Parameters
    ----------
    max_features : int
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
    """The features with the largest Relief weights for the ranking of a ranker, then ``base`` on them.

    ``base``, fitted on all features, ranks each query. Two documents differ in rank by δ, the difference of
    their ranks as a share of the largest possible. Over all documents x and their nearest documents z the
    weight of feature j is the mean difference in j weighted by δ, less that weighted by 1 − δ: as RReliefF,
    with ranks in place of values. It needs pairs, not grades.

    Parameters
    ----------
    max_features : int
        Number of features.
    neighbours : int
        Nearest documents; those as near as the last of them count too.
    base : linear ranker, optional
        The ranker of both stages; default ``RankSVM()``.

    Attributes
    ----------
    importance_, selected_, base_, coef_
        As in :class:`RankFilter`.

    References
    ----------
    H. Yu, J. Oh, W.-S. Han: Efficient Feature Weighting Methods for Ranking, CIKM 2009.
    """

    decided_last: ClassVar[frozenset[str]] = frozenset()

    neighbours: Count = 10

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
