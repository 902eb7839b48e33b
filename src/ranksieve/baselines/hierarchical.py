"""Hierarchical selection: features that rank alike form clusters, and each cluster sends one feature."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import silhouette_score

from ranksieve._types import FloatArray, IntArray
from ranksieve.baselines.selector import FeatureSelector, check_size, fit_on, largest, levelled
from ranksieve.data.dataset import Dataset
from ranksieve.penalties.similarity import settle_definiteness
from ranksieve.rankers.measures import similarity_measure, single_feature
from ranksieve.rankers.parameters import Count, Seed

TIE = 1e-9  # numbers that differ by less are equal
MAX_STEPS = 100


class Hierarchical(FeatureSelector):
    """One feature of each cluster of features that rank alike, then ``base`` on them."""

    importance_: FloatArray
    similarity_: FloatArray
    clusters_: IntArray
    qualities_: dict[int, float]

    n_clusters: int | None
    max_clusters: int
    n_starts: int
    similarity: Any
    random_state: int

    def _select(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> IntArray:
        similarity = similarity_measure(self.similarity, data.n_features)
        if self.n_clusters is not None:
            check_size("n_clusters", self.n_clusters, usable, data)
        self.importance_ = np.zeros(data.n_features)
        self.importance_[usable] = self._importance(data, usable, query_weight)
        self.similarity_ = similarity(data, query_weight)
        clusters = self._clusters(self.similarity_[np.ix_(usable, usable)])
        self.clusters_ = np.full(data.n_features, -1)
        self.clusters_[usable] = clusters
        importance = levelled(self.importance_)
        members = (usable[clusters == cluster] for cluster in np.unique(clusters))
        chosen = np.sort([columns[np.argmax(importance[columns])] for columns in members])
        return largest(importance, chosen, len(chosen))

    @abstractmethod
    def _importance(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> FloatArray:
        """For each usable feature, what decides whether it stands for its cluster."""

    def _clusters(self, similarity: FloatArray) -> IntArray:
        """The number of the cluster of each feature."""
        definite = settle_definiteness(similarity, "project")
        n_features = len(similarity)
        sizes = range(2, min(self.max_clusters, n_features - 1) + 1)
        if self.n_clusters is not None or not sizes:
            self.qualities_ = {}
            size = n_features if self.n_clusters is None else self.n_clusters
            return k_means(definite, size, self.n_starts, self.random_state)
        found = {size: k_means(definite, size, self.n_starts, self.random_state) for size in sizes}
        self.qualities_ = {size: quality(similarity, clusters) for size, clusters in found.items()}
        best = max(self.qualities_.values())
        return next(found[size] for size, value in self.qualities_.items() if value >= best - TIE)


@dataclass(eq=False, repr=False)
class HierarchicalBEM(Hierarchical):
    """Of each cluster of features that rank alike the one that ranks best alone, then ``base`` on them.

    Features are clustered by k-means, in which their similarity A takes the place of inner products: the
    squared distance of i and j is A_ii + A_jj − 2A_ij. The number of clusters is that of the best quality,
    the mean silhouette of the features (see :func:`quality`); of equals the smaller. Of equally good features
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

    importance_: FloatArray = field(init=False)
    similarity_: FloatArray = field(init=False)
    clusters_: IntArray = field(init=False)
    qualities_: dict[int, float] = field(init=False)

    n_clusters: Count | None = None
    base: Any = None
    metric: str = "ndcg@10"
    _: KW_ONLY
    max_clusters: Count = 50
    n_starts: Count = 5
    similarity: Any = "kendall"
    random_state: Seed = 0

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

    chooses_by_base: ClassVar[bool] = True

    importance_: FloatArray = field(init=False)
    similarity_: FloatArray = field(init=False)
    clusters_: IntArray = field(init=False)
    qualities_: dict[int, float] = field(init=False)

    n_clusters: Count | None = None
    base: Any = None
    _: KW_ONLY
    max_clusters: Count = 50
    n_starts: Count = 5
    similarity: Any = "kendall"
    random_state: Seed = 0

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


def k_means(gram: FloatArray, k: int, n_starts: int, seed: int) -> IntArray:
    """The cluster of each point, the best of some starts; points are known by their inner products alone."""
    rng = np.random.default_rng(seed)
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
