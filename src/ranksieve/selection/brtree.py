"""BRTree: the features that boosted regression trees gain most from, greedily or in random subsets."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from numbers import Integral
from typing import Annotated, Any

import numpy as np

from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve._util.constraints import Interval
from ranksieve.boosted.lightgbm_text import lightgbm_for
from ranksieve.data.dataset import Dataset
from ranksieve.errors import DataError
from ranksieve.estimators import LambdaMART
from ranksieve.estimators.parameters import Count, NotNegative, Positive, Seed, Share, one_of
from ranksieve.losses.base import NO_PAIRS
from ranksieve.measures import similarity_measure
from ranksieve.metrics import Evaluator, parse
from ranksieve.selection.base import FeatureSelector, check_size, largest
from ranksieve.selection.gas import greedy

REGRESSION = {"objective": "regression"}  # on the numbers of the labels' levels


@dataclass(eq=False, repr=False)
class BRTree(FeatureSelector):
    """k features by their importance in boosted regression trees, then ``base`` on them.

    The importance of a feature is what the splits on it lower the squared error of the labels by, as a share
    of what all splits do. ``search`` says how it is used:

    - "random": random subsets of the features each lose their least important ones, some at a time and with
      new trees each time, until k are left. The trees learn from two thirds of the queries; the subset whose
      trees have the best metric on the others is chosen.
    - "greedy": as in :class:`GAS`, the largest importance less 2c times the similarity to what is chosen. At
      c = 0 these are the k most important features.

    Parameters
    ----------
    k : int
        Number of features.
    base : linear ranker, optional
        The second stage; default ``RankSVM()``.
    search : "random" or "greedy"
        How features are chosen.
    n_subsets : int
        Random subsets.
    share : float
        How large a subset is at first: k and this share of the other features.
    drop : float
        Share of its features that a subset loses at a time; at least one.
    metric : str
        What random subsets are compared by, in the conventions that the data come with.
    c : float
        Weight of similarity against importance in the greedy search.
    similarity : "kendall", another name of SIMILARITIES, or array
        How alike features are, for the greedy search.
    n_rounds, n_leaves, learning_rate
        Trees, most leaves of each, and shrinkage, as in :class:`ranksieve.LambdaMART`.
    n_jobs : int, optional
        Threads of LightGBM, as in :class:`ranksieve.LambdaMART`; the many small fits gain little from more
        than one.
    random_state : int
        Seed of the subsets and of the queries that compare them.

    Attributes
    ----------
    importance_ : array
        Shares of the features in the last trees of the chosen subset; in the greedy search, in trees of all.
    values_ : array
        The metric of each random subset; empty after a greedy search.
    selected_, base_, coef_
        As in every selector: columns in order of choice (random: by importance), the fitted base, its weights
        in full width.

    References
    ----------
    F. Pan, T. Converse, D. Ahn, F. Salvetti, G. Donato: Feature Selection for Ranking using Boosted Trees,
    CIKM 2009. J. H. Friedman: Greedy function approximation: a gradient boosting machine, Annals of
    Statistics 29(5), 2001.
    """

    importance_: FloatArray = field(init=False)
    values_: FloatArray = field(init=False)

    k: Count = 10
    base: Any = None
    search: Annotated[str, one_of(("random", "greedy"))] = "random"
    _: KW_ONLY
    n_subsets: Count = 3
    share: Share = 0.75
    drop: Share = 0.5
    metric: str = "ndcg@5"
    c: NotNegative = 0.0
    similarity: Any = "kendall"
    n_rounds: Count = 20
    n_leaves: Annotated[int, Interval(Integral, 2, None, closed="left")] = 7
    learning_rate: Positive = 0.1
    n_jobs: int | None = 1
    random_state: Seed = 0

    def _select(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> IntArray:
        lightgbm_for("BRTree")
        check_size("k", self.k, usable, data)
        if not data.pairs_per_query.any():
            raise DataError(None, None, NO_PAIRS)
        self.values_ = np.empty(0)
        search = self._greedy if self.search == "greedy" else self._random
        return search(data, usable, query_weight)

    def _greedy(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> IntArray:
        measure = similarity_measure(self.similarity, data.n_features)
        similarity = measure(data, query_weight) if self.c > 0 else np.eye(data.n_features)
        self.importance_ = shares(self._trees(data, usable, query_weight), usable, data.n_features)
        selected, _ = greedy(self.importance_, similarity, self.c, usable, self.k)
        return selected

    def _random(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> IntArray:
        rng = np.random.default_rng(self.random_state)
        learning, judging = split_queries(data, rng)
        learned_from, judged_on = data.select_queries(learning), data.select_queries(judging)
        weight = None if query_weight is None else query_weight[learning]
        of_judges = None if query_weight is None else query_weight[judging]
        evaluator, spec = Evaluator(judged_on), parse(self.metric)
        size = self.k + int(np.ceil(self.share * (len(usable) - self.k)))
        subsets, values = [], []
        for _ in range(self.n_subsets):
            first = np.sort(rng.choice(usable, size, replace=False))
            columns, trees = self._eliminate(learned_from, first, weight)
            (per_query,) = evaluator.per_query(trees.predict(judged_on.select_features(columns)), [spec])
            subsets.append((columns, trees))
            values.append(np.average(per_query, weights=of_judges))
        self.values_ = np.array(values)
        columns, trees = subsets[int(np.argmax(self.values_))]
        self.importance_ = shares(trees, columns, data.n_features)
        return largest(self.importance_, columns, self.k)

    def _eliminate(
        self, data: Dataset, columns: IntArray, query_weight: FloatArray | None
    ) -> tuple[IntArray, LambdaMART]:
        """The k columns that are left in the end, and trees on them."""
        trees = self._trees(data, columns, query_weight)
        while len(columns) > self.k:
            kept = max(self.k, min(len(columns) - 1, int((1.0 - self.drop) * len(columns))))
            columns = np.sort(largest(shares(trees, columns, data.n_features), columns, kept))
            trees = self._trees(data, columns, query_weight)
        return columns, trees

    def _trees(self, data: Dataset, columns: IntArray, query_weight: FloatArray | None) -> LambdaMART:
        return LambdaMART(
            self.n_rounds,
            n_leaves=self.n_leaves,
            learning_rate=self.learning_rate,
            options=REGRESSION,
            n_jobs=self.n_jobs,
            seed=self.random_state,
        ).fit(data.select_features(columns), query_weight=query_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


def split_queries(data: Dataset, rng: np.random.Generator) -> tuple[BoolArray, BoolArray]:
    """Queries to learn from, and a third of those with pairs to judge by; one query must do for both."""
    judging = np.zeros(data.n_queries, dtype=bool)
    with_pairs = rng.permutation(np.flatnonzero(data.pairs_per_query))
    judging[with_pairs[: max(1, len(with_pairs) // 3)]] = True
    return (~judging if len(with_pairs) > 1 else np.ones_like(judging)), judging


def shares(trees: LambdaMART, columns: IntArray, n_features: int) -> FloatArray:
    """The importance of each feature in trees on some columns, in full width."""
    gains = trees.booster_.feature_importance("gain")
    importance = np.zeros(n_features)
    importance[columns] = gains / max(float(gains.sum()), np.finfo(np.float64).tiny)
    return importance
