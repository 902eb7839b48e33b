"""Selectors that score features by importance, similarity or nearest neighbours, before fitting a ranker."""

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
    round_to_ties,
)
from ranksieve.data.dataset import Dataset, checked_query_weight
from ranksieve.data.features import dense_columns
from ranksieve.data.matrix import dense_block
from ranksieve.errors import DataError, lookup
from ranksieve.objective import Objective, make_objective
from ranksieve.penalties.similarity import apply_psd_policy
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
    """Select the features with the best single-feature NDCG@10, then fit ``base`` on them.

    The metric of a feature is that of ranking by its values, ascending or descending, whichever is better.
    Ties are broken by column order.

    Parameters
    ----------
    max_features : int
        Number of features.
    base : linear ranker, optional
        Ranker of the second stage; default ``RankSVM()``.
    metric : str
        Metric of single features, such as "ndcg@10" or "map" (letor profile: NDCG@10 is 0 for lists with
        fewer than ten documents).

    Attributes
    ----------
    importance_ : array
        Metric of each single feature.
    selected_, base_, coef_
        As in every selector: columns in order of selection, the fitted base, one weight per column of X.

    References
    ----------
    H. Lai, Y. Pan, C. Liu, L. Lin, J. Wu: Sparse Learning-to-Rank via an Efficient Primal-Dual Algorithm,
    IEEE Transactions on Computers 62(6), 2013, §8.5.2, which does not state whether ascending order is tried.
    """

    max_features: Count = 10
    base: Any = None
    metric: str = "ndcg@10"

    def _select(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> Selection:
        check_size(self.max_features, usable, data)
        importance = single_feature(data, self.metric, query_weight, "letor")
        return largest(importance, usable, self.max_features), {"importance_": importance}


MAX_STEP = np.finfo(np.float64).max  # no limit: the best weight of one feature is at most 1/(a difference)


@dataclass(eq=False, repr=False)
class GAS(FeatureSelector):
    """Maximise Σ_i s_i − c Σ_{i≠j} A_ij over sets of ``max_features`` features greedily, then fit ``base``.

    Select the feature with the largest score s_i, subtract 2c·A_ij from the score of every other feature j,
    and repeat. Ties are broken by column order.

    Parameters
    ----------
    max_features : int
        Number of features.
    importance : "ndcg", "map", "loss", another name of IMPORTANCES, or array
        s: single-feature NDCG@10 or MAP (the authors' GAS-E; letor profile, better direction), or 1 minus the
        minimum over one weight of the mean squared hinge (GAS-L); or an array with one number ≥ 0 per
        feature, 0 to exclude it.
    similarity : "kendall", another name of SIMILARITIES, or array
        A: |Kendall's τ| of the two induced rankings, averaged over queries; or a symmetric matrix.
    c : float
        Weight of similarity relative to importance, ≥ 0; with 0 the most important features are selected.
    base : linear ranker, optional
        Ranker of the second stage; default ``RankSVM()``.

    Attributes
    ----------
    importance_, similarity_ : arrays
        s and A.
    scores_ : array
        Score of each selected feature when it was selected.
    selected_, base_, coef_
        As in every selector: columns in order of selection, the fitted base, one weight per column of X.

    References
    ----------
    X. Geng, T.-Y. Liu, T. Qin, H. Li: Feature Selection for Ranking, SIGIR 2007, where documents tied in a
    feature are ordered arbitrarily; here ties count neither for nor against (τ-b).
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
    """Return the k selected columns in order, and the score of each when it was selected."""
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
    """Return s_j = 1 − min_w f(w·x_j), f the mean squared hinge over pairs; 1 if feature j orders every pair.

    The derivative of φ(w) = f(w·x_j) is concave in |w| up to the minimum (a correctly ordered pair
    contributes only until its margin is 1), so Newton's iteration from 0 approaches the root from below.
    """
    objective = make_objective(data, query_weight=query_weight)
    slope = objective.gradient(objective.at_zero)
    return np.array([_drop(objective, j, -np.sign(slope[j])) for j in range(data.n_features)])


def _drop(objective: Objective, j: int, sign: float) -> float:
    zero = objective.at_zero  # the loss depends only on the scores, not on the weights
    _, best = exact_step(
        objective, zero, np.zeros_like(zero.w), sign * objective.features.column(j), MAX_STEP
    )
    return zero.value - best.value


GAS_IMPORTANCES: dict[str, Measure] = {**IMPORTANCES, "loss": loss_drop}


@dataclass(eq=False, repr=False)
class FSMSVM(FeatureSelector):
    """Select the features with the largest |weight| in FSMRank, then fit ``base`` on them.

    If FSMRank has fewer nonzero weights than ``max_features``, the rest is selected by importance. Ties are
    broken by column order.

    Parameters
    ----------
    max_features : int
        Number of features.
    base : linear ranker, optional
        Ranker of the second stage; default ``RankSVM()``.
    alpha, similarity_weight, importance, similarity
        As in :class:`ranksieve.FSMRank`, the first stage.

    Attributes
    ----------
    fsmrank_ : FSMRank
        The fitted first stage.
    selected_, base_, coef_
        As in every selector: columns in order of selection, the fitted base, one weight per column of X.

    References
    ----------
    H. Lai, Y. Pan, Y. Tang, R. Yu: FSMRank: Feature Selection Algorithm for Learning to Rank, IEEE
    Transactions on Neural Networks and Learning Systems 24(6), 2013. It sorts "by their weights"; here by
    |weight|, because features may have negative weights.
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
        size = round_to_ties(np.abs(fsmrank.coef_))
        importance = round_to_ties(fsmrank.importance_)
        order = np.lexsort((-importance[usable], -size[usable]))
        return usable[order[: self.max_features]], {"fsmrank_": fsmrank}

    def _abilities(self) -> Collection[str]:
        return ("linear", "scale", "document_weight")


CLUSTER_TIE = 1e-9  # qualities and distances that differ by less are ties
MAX_LLOYD_STEPS = 100


@dataclass(eq=False, repr=False)
class Hierarchical(FeatureSelector):
    """Select one feature from each cluster of features that rank similarly, then fit ``base`` on them."""

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
        all_clusters = np.full(data.n_features, -1)
        all_clusters[usable] = clusters
        rounded = round_to_ties(importance)
        members = (usable[clusters == cluster] for cluster in np.unique(clusters))
        chosen = np.sort([columns[np.argmax(rounded[columns])] for columns in members])
        return largest(rounded, chosen, len(chosen)), {
            "importance_": importance,
            "similarity_": matrix,
            "clusters_": all_clusters,
            "qualities_": qualities,
        }

    @abstractmethod
    def _importance(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> FloatArray:
        """Return the importance of each usable feature, by which one feature per cluster is selected."""

    def _clusters(self, similarity: FloatArray) -> tuple[IntArray, dict[int, float]]:
        """Return the cluster of each feature, and the quality of each number of clusters tried."""
        definite = apply_psd_policy(similarity, "project")
        n_features = len(similarity)
        sizes = range(2, min(self.max_clusters, n_features - 1) + 1)
        if self.n_clusters is not None or not sizes:
            size = n_features if self.n_clusters is None else self.n_clusters
            return k_means(definite, size, self.n_starts, self.random_state), {}
        clusters = {size: k_means(definite, size, self.n_starts, self.random_state) for size in sizes}
        qualities = {size: quality(similarity, clusters[size]) for size in sizes}
        best = max(qualities.values())
        return next(clusters[size] for size in sizes if qualities[size] >= best - CLUSTER_TIE), qualities


@dataclass(eq=False, repr=False)
class HierarchicalBEM(Hierarchical):
    """Select the best single feature from each cluster of features that rank similarly, then fit ``base``.

    Features are clustered by kernel k-means with the similarity A as inner products: the squared distance of
    i and j is A_ii + A_jj − 2A_ij. The number of clusters is the one with the best quality, the mean
    silhouette of the features (see :func:`quality`); ties go to the smaller number. Ties within a cluster are
    broken by column order.

    Parameters
    ----------
    n_clusters : int, optional
        Number of clusters, which is the number of features; default: the one with the best quality.
    base : linear ranker, optional
        Ranker of the second stage; default ``RankSVM()``.
    metric : str
        Metric of single features (ascending or descending, whichever is better), such as "ndcg@10" or "map"
        (letor profile: NDCG@10 is 0 for lists with fewer than ten documents).
    max_clusters : int
        Largest number of clusters to try.
    n_starts : int
        Number of random starts of k-means; the best result is used.
    similarity : "kendall", another name of SIMILARITIES, or array
        A. If it is not positive semidefinite, k-means uses the nearest positive semidefinite matrix.
    random_state : int
        Seed of the starts.

    Attributes
    ----------
    importance_, similarity_ : arrays
        The metric of each single feature, and A.
    clusters_ : array
        Cluster index of each feature; −1 for features that are constant within every query.
    qualities_ : dict
        Quality of each number of clusters tried.
    selected_, base_, coef_
        As in every selector: columns, the most important first; the fitted base; one weight per column of X.

    References
    ----------
    G. Hua, M. Zhang, Y. Liu, S. Ma, L. Ru: Hierarchical Feature Selection for Ranking, WWW 2010.
    """

    metric: str = "ndcg@10"

    def _importance(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> FloatArray:
        return single_feature(data, self.metric, query_weight, "letor")[usable]


@dataclass(eq=False, repr=False)
class HierarchicalILTR(Hierarchical):
    """Select the feature with the largest |weight| in a ranker from each cluster of similar features.

    The ranker is ``base`` fitted on all features; it is then fitted on the selected ones. The clusters are
    those of :class:`HierarchicalBEM`.

    Parameters
    ----------
    n_clusters : int, optional
        Number of clusters, which is the number of features; default: the one with the best quality.
    base : linear ranker, optional
        Ranker of both stages; default ``RankSVM()``.
    max_clusters, n_starts, similarity, random_state
        As in :class:`HierarchicalBEM`.

    Attributes
    ----------
    importance_, similarity_ : arrays
        |weight| of each feature in the ranker fitted on all features, and A.
    clusters_, qualities_
        As in :class:`HierarchicalBEM`.
    selected_, base_, coef_
        As in every selector: columns, the most important first; the fitted base; one weight per column of X.

    References
    ----------
    G. Hua, M. Zhang, Y. Liu, S. Ma, L. Ru: Hierarchical Feature Selection for Ranking, WWW 2010. "The highest
    weight" is here the largest |weight|, because features may have negative weights.
    """

    refit_parameters: ClassVar[frozenset[str]] = frozenset()

    def _importance(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> FloatArray:
        return np.asarray(np.abs(fit_on(self._make_base(), data, usable, query_weight).coef_))


def quality(similarity: FloatArray, clusters: IntArray) -> float:
    """Return the mean silhouette (b − a)/max(a, b) of features with the distances 1 − A.

    a is the mean distance of a feature to the others in its cluster, b the smallest mean distance to those of
    another cluster. The silhouette is 0 for a feature alone in its cluster, and if there is only one cluster.
    """
    if len(np.unique(clusters)) < 2:
        return 0.0
    distances = np.maximum(1.0 - similarity, 0.0)
    np.fill_diagonal(distances, 0.0)
    return float(silhouette_score(distances, clusters, metric="precomputed"))


def k_means(gram: FloatArray, k: int, n_starts: int, random_state: int) -> IntArray:
    """Return the cluster of each point, the best of ``n_starts`` runs; ``gram`` has the inner products."""
    rng = np.random.default_rng(random_state)
    runs = [_lloyd(gram, _first_centres(gram, k, rng)) for _ in range(n_starts)]
    least = min(inertia for inertia, _ in runs)
    return next(clusters for inertia, clusters in runs if inertia <= least + CLUSTER_TIE)


def _first_centres(gram: FloatArray, k: int, rng: np.random.Generator) -> IntArray:
    """Draw k points as in k-means++: by the squared distance to the nearest one drawn so far."""
    squared = np.maximum(np.add.outer(np.diag(gram), np.diag(gram)) - 2.0 * gram, 0.0)
    centres = [int(rng.integers(len(gram)))]
    distances = squared[centres[0]]
    while len(centres) < k:
        distances[centres] = 0.0
        weights = distances if distances.any() else ~np.isin(np.arange(len(gram)), centres)
        cumulative = np.cumsum(weights)
        centres.append(int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right")))
        distances = np.minimum(distances, squared[centres[-1]])
    return np.array(centres)


def _lloyd(gram: FloatArray, centres: IntArray) -> tuple[float, IntArray]:
    """Return the final sum of squared distances to the cluster means, and the clusters."""
    k, points = len(centres), np.arange(len(gram))
    squares = np.diag(gram)
    distances = squares[:, None] + squares[centres] - 2.0 * gram[:, centres]
    clusters = np.argmin(distances, axis=1)
    clusters[centres] = np.arange(k)
    for _ in range(MAX_LLOYD_STEPS):
        member = np.equal.outer(clusters, np.arange(k)) / np.bincount(clusters, minlength=k)
        to_mean = gram @ member
        distances = squares[:, None] - 2.0 * to_mean + np.einsum("ij,ij->j", member, to_mean)
        assigned = _nearest_clusters(distances, clusters)
        if np.array_equal(assigned, clusters):
            break
        clusters = assigned
    return float(distances[points, clusters].sum()), clusters


def _nearest_clusters(distances: FloatArray, clusters: IntArray) -> IntArray:
    """Assign points to the cluster with the nearest mean; ties change nothing, no cluster becomes empty."""
    points = np.arange(len(clusters))
    better = distances.min(axis=1) < distances[points, clusters] - CLUSTER_TIE
    assigned = np.where(better, np.argmin(distances, axis=1), clusters)
    for empty in np.setdiff1d(clusters, assigned):
        counts = np.bincount(assigned, minlength=distances.shape[1])
        farthest = np.where(counts[assigned] > 1, distances[points, assigned], -np.inf)
        assigned[int(np.argmax(farthest))] = empty
    return assigned


PAIRS_PER_BLOCK = 2**14  # document pairs whose differences are in memory at a time
MAX_RELIEF_DOCUMENTS = 10_000  # per query: 0.8 GB of distances


@dataclass(eq=False, repr=False)
class Relief(FeatureSelector):
    """Select the features with the largest weights by a Relief rule, then fit ``base`` on them.

    The difference of two documents of a query in feature j is |x_j − z_j| divided by the range of the feature
    in the data; their distance is the sum of the differences over all features that vary within a query. Time
    and memory grow with the square of the number of documents per query.
    """

    max_features: Count = 10
    neighbours: Count = 1
    base: Any = None

    def _select(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> Selection:
        check_size(self.max_features, usable, data)
        importance = np.zeros(data.n_features)
        importance[usable] = self._weights(data, usable, query_weight)
        return largest(round_to_ties(importance), usable, self.max_features), {"importance_": importance}

    @abstractmethod
    def _weights(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> FloatArray:
        """Return one weight per usable feature."""


@dataclass(eq=False, repr=False)
class RankFilter(Relief):
    """Select the features with the largest Relief weights for graded labels, then fit ``base`` on them.

    Each document x of level l is compared with its nearest documents of every level of its query. With d_j(m)
    the mean difference in feature j to those of level m, it adds Σ_{m≠l} a_m d_j(m) − d_j(l) to the weight of
    j, where the a_m sum to 1 and are proportional to |m − l| times the number of documents of level m: as in
    ReliefF, but a document two levels away counts twice. The weight of a feature is the mean over the
    documents of a level, then over the levels of a query, then over queries. Documents that are alone in
    their level and queries with one level are skipped.

    Parameters
    ----------
    max_features : int
        Number of features.
    neighbours : int
        Number of nearest documents of each level; documents tied with the last one are included.
    base : linear ranker, optional
        Ranker of the second stage; default ``RankSVM()``.

    Attributes
    ----------
    importance_ : array
        Weights of the features; 0 for features that are constant within every query.
    selected_, base_, coef_
        As in every selector: columns in order of selection, the fitted base, one weight per column of X.

    References
    ----------
    H. Yu, J. Oh, W.-S. Han: Efficient Feature Weighting Methods for Ranking, CIKM 2009.
    """

    def _weights(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> FloatArray:
        weight = checked_query_weight(query_weight, data.n_queries)
        total, total_weight = np.zeros(len(usable)), 0.0
        for query, rows, x in scaled_queries(data, usable):
            pair_weights = rank_filter_weights(distances_to_others(x), data.y[rows], self.neighbours)
            if pair_weights.any():
                total += weight[query] * weighted_differences(x, pair_weights)
                total_weight += weight[query]
        return total / total_weight if total_weight else total


@dataclass(eq=False, repr=False)
class RankWrapper(Relief):
    """Select the features with the largest Relief weights for the ranking of a ranker, then fit ``base``.

    ``base``, fitted on all features, ranks each query. δ is the difference in rank of two documents divided
    by the largest possible one. The weight of feature j is the mean difference in j over all documents x and
    their nearest documents z, weighted by δ, minus the mean weighted by 1 − δ: as in RReliefF, with ranks
    instead of values. It needs pairs, not grades.

    Parameters
    ----------
    max_features : int
        Number of features.
    neighbours : int
        Number of nearest documents; documents tied with the last one are included.
    base : linear ranker, optional
        Ranker of both stages; default ``RankSVM()``.

    Attributes
    ----------
    importance_, selected_, base_, coef_
        As in :class:`RankFilter`.

    References
    ----------
    H. Yu, J. Oh, W.-S. Han: Efficient Feature Weighting Methods for Ranking, CIKM 2009.
    """

    refit_parameters: ClassVar[frozenset[str]] = frozenset()

    neighbours: Count = 10

    def _weights(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> FloatArray:
        ranker = fit_on(self._make_base(), data, usable, query_weight)
        weight = checked_query_weight(query_weight, data.n_queries)
        totals, total_weights = np.zeros((2, len(usable))), np.zeros((2, 1))  # weighted by δ, and by 1 − δ
        for query, rows, x in scaled_queries(data, usable):
            if len(rows) > 1:
                delta = rank_distances(dense_block(data.X, rows, usable) @ ranker.coef_)
                is_neighbour = nearest(distances_to_others(x), self.neighbours)
                for k, pair_weights in enumerate((is_neighbour * delta, is_neighbour * (1.0 - delta))):
                    totals[k] += weight[query] * weighted_differences(x, pair_weights)
                    total_weights[k] += weight[query] * pair_weights.sum()
        different, similar = np.divide(totals, total_weights, out=totals, where=total_weights > 0)
        return np.asarray(different - similar)


def scaled_queries(data: Dataset, columns: IntArray) -> Iterator[tuple[int, IntArray, FloatArray]]:
    """Yield the index of each query, its rows, and the given columns divided by their ranges in the data."""
    ranges = np.array([np.ptp(column) for column in dense_columns(data.X[:, columns])])
    order, offsets = data.queries.order, data.queries.offsets
    longest, size = data.queries.longest
    if size > MAX_RELIEF_DOCUMENTS:
        reason = (
            f"query {longest} has {size:,} documents, but Relief accepts at most {MAX_RELIEF_DOCUMENTS:,}"
        )
        raise DataError(None, None, f"{reason}; drop some or use another selector")
    for query in range(data.n_queries):
        rows = order[offsets[query] : offsets[query + 1]]
        yield query, rows, dense_block(data.X, rows, columns) / ranges


def nearest(distances: FloatArray, n: int) -> BoolArray:
    """Return the mask of the n nearest documents z (columns) of each document x (row), including ties.

    Infinite distances are never included.
    """
    last = min(n, distances.shape[1]) - 1
    limit = np.partition(distances, last, axis=1)[:, [last]]
    return np.asarray((distances <= limit) & np.isfinite(distances))


def distances_to_others(x: FloatArray) -> FloatArray:
    """Return Σ_j |x_j − z_j| for each two documents; infinite on the diagonal."""
    distances = cdist(x, x, "cityblock")
    np.fill_diagonal(distances, np.inf)
    return np.asarray(distances)


def rank_filter_weights(distances: FloatArray, labels: FloatArray, n: int) -> FloatArray:
    """Return the weights of the differences between x (row) and z (column) in RankFilter."""
    levels, level, counts = np.unique(labels, return_inverse=True, return_counts=True)
    weights, several = np.zeros_like(distances), counts > 1
    if len(levels) == 1 or not several.any():
        return weights
    level_weights = np.asarray(counts * np.abs(labels[:, None] - levels), dtype=np.float64)
    level_weights /= level_weights.sum(axis=1, keepdims=True)
    level_weights[np.arange(len(labels)), level] = -1.0
    for m in range(len(levels)):
        columns = np.flatnonzero(level == m)
        is_neighbour = nearest(distances[:, columns], n)
        n_neighbours = np.maximum(is_neighbour.sum(axis=1, keepdims=True), 1)
        weights[:, columns] = level_weights[:, [m]] * is_neighbour / n_neighbours
    document_share = np.where(several, 1.0 / counts, 0.0) / several.sum()
    return np.asarray(document_share[level][:, None] * weights)


def rank_distances(scores: FloatArray) -> FloatArray:
    """Return |rank of x − rank of z| / (n − 1) of n > 1 documents; tied scores get their mean rank."""
    ranks = rankdata(scores)
    return np.asarray(np.abs(ranks[:, None] - ranks) / (len(ranks) - 1))


def weighted_differences(x: FloatArray, weight: FloatArray) -> FloatArray:
    """Return Σ weight_xz |x_j − z_j| over documents x (rows) and z (columns), for each feature j."""
    rows, columns = np.nonzero(weight)
    total = np.zeros(x.shape[1])
    for first in range(0, len(rows), PAIRS_PER_BLOCK):
        a, b = rows[first : first + PAIRS_PER_BLOCK], columns[first : first + PAIRS_PER_BLOCK]
        total += weight[a, b] @ np.abs(x[a] - x[b])
    return total
