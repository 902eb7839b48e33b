"""FS-Rank, GAS and FSM-SVM: features chosen by importance and similarity."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from ranksieve._types import FloatArray, IntArray
from ranksieve._util.messages import lookup
from ranksieve.baselines.selector import FeatureSelector, check_size, largest, levelled
from ranksieve.data.dataset import Dataset
from ranksieve.objective import Objective, make_objective
from ranksieve.rankers import FSMRank
from ranksieve.rankers.measures import (
    IMPORTANCES,
    Measure,
    feature_importance,
    similarity_measure,
    single_feature,
)
from ranksieve.rankers.parameters import Count, NotNegative
from ranksieve.solvers.line_search import exact_step


@dataclass(eq=False, repr=False)
class FSRank(FeatureSelector):
    """The k features with the best NDCG@10 of ranking by that feature alone, then ``base`` on them.

    A feature may rank up or down, whichever is better. Of equally good features the earlier column goes
    first: with ties everywhere these are the first k that vary within a query.

    Parameters
    ----------
    k : int
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

    importance_: FloatArray = field(init=False)

    k: Count = 10
    base: Any = None
    metric: str = "ndcg@10"

    def _select(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> IntArray:
        check_size("k", self.k, usable, data)
        self.importance_ = single_feature(data, self.metric, query_weight, "letor")
        return largest(self.importance_, usable, self.k)


UNLIMITED = np.finfo(np.float64).max  # the best weight of one feature is finite: 1/(a difference) at most


@dataclass(eq=False, repr=False)
class GAS(FeatureSelector):
    """Greedy search for max Σ_i s_i − c Σ_{i≠j} A_ij over sets of k features, then ``base`` on them.

    Pick the feature with the largest score s_i, subtract 2c·A_ij from the score of every other feature j,
    repeat. Of equal scores the earlier column goes first.

    Parameters
    ----------
    k : int
        Number of features.
    importance : "ndcg", "map", "loss", another name of IMPORTANCES, or array
        s: single-feature NDCG@10 or MAP (the authors' GAS-E; letor profile, better direction), or 1 minus the
        least mean squared hinge that one weight on the feature reaches (GAS-L); or one number ≥ 0 a feature,
        0 to exclude it.
    similarity : "kendall", another name of SIMILARITIES, or array
        A: |Kendall's τ| of the two induced rankings, averaged over queries; or a symmetric matrix.
    c : float
        Weight of similarity against importance, ≥ 0; at 0 the k most important features are chosen.
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

    importance_: FloatArray = field(init=False)
    similarity_: FloatArray = field(init=False)
    scores_: FloatArray = field(init=False)

    k: Count = 10
    importance: Any = "ndcg"
    similarity: Any = "kendall"
    c: NotNegative = 0.01
    base: Any = None

    def _select(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> IntArray:
        similarity = similarity_measure(self.similarity, data.n_features)
        if isinstance(self.importance, str):
            measure = lookup(GAS_IMPORTANCES, self.importance, "importance")
            check_size("k", self.k, usable, data)
            self.importance_ = measure(data, query_weight)
        else:
            self.importance_ = feature_importance(self.importance, data)
            usable = usable[self.importance_[usable] > 0]
            check_size("k", self.k, usable, data)
        self.similarity_ = similarity(data, query_weight)
        selected, self.scores_ = greedy(self.importance_, self.similarity_, self.c, usable, self.k)
        return selected


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
    """The t features with the largest |weight| in FSMRank, then ``base`` on them.

    If FSMRank gives fewer than t features a weight, those without follow by importance. Of equals the
    earlier column goes first.

    Parameters
    ----------
    t : int
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

    weighs_documents = True

    fsmrank_: FSMRank = field(init=False)

    t: Count = 10
    base: Any = None
    _: KW_ONLY
    alpha: NotNegative = 1e-3
    similarity_weight: NotNegative = 1e-3
    importance: Any = "pearson"
    similarity: Any = "pearson"

    def _select(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> IntArray:
        check_size("t", self.t, usable, data)
        self.fsmrank_ = FSMRank(
            self.alpha, self.similarity_weight, importance=self.importance, similarity=self.similarity
        ).fit(data, query_weight=query_weight)
        size, importance = np.abs(self.fsmrank_.coef_), self.fsmrank_.importance_
        order = np.lexsort((-levelled(importance)[usable], -levelled(size)[usable]))
        return usable[order[: self.t]]
