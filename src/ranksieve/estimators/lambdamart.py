"""LambdaMART: gradient boosted trees on the lambdas of NDCG, by LightGBM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Annotated, Any

import numpy as np

from ranksieve._types import FloatArray, IntArray, Matrix
from ranksieve._util.constraints import Interval
from ranksieve.boosted import Trees
from ranksieve.boosted.lightgbm_text import lightgbm_for, threads_for
from ranksieve.data.dataset import Dataset
from ranksieve.data.matrix import as_plain
from ranksieve.data.query_weights import checked_query_weight
from ranksieve.errors import DataError
from ranksieve.estimators.boosted_ranker import BoostedRanker
from ranksieve.estimators.parameters import Count, NotNegative, Positive, Seed
from ranksieve.losses.base import NO_PAIRS
from ranksieve.metrics import Evaluator
from ranksieve.solvers import Callback

LAMBDARANK = "lambdarank"
MOST_DOCUMENTS = 10_000  # of one query: LightGBM's limit


@dataclass(eq=False, repr=False)
class LambdaMART(BoostedRanker):
    """Regression trees, each fitted to the lambdas |ΔNDCG_ij| / (1 + e^{s_i − s_j}) of pairs with y_i > y_j.

    ΔNDCG_ij is the NDCG lost by swapping i and j in the current ranking. LightGBM does the work (objective
    ``lambdarank``), quietly and with the same result for any number of threads and any order of the rows.
    The gain of a label is 2^y − 1. LightGBM wants whole labels and a table of gains; it gets the numbers of
    the levels that occur and their gains, so that labels may be any numbers ≥ 0.

    Parameters
    ----------
    n_rounds : int
        Trees.
    learning_rate : float
        Shrinkage of each tree.
    n_leaves : int
        Most leaves a tree.
    min_leaf_docs : int
        Least documents a leaf.
    l2 : float
        ℓ2 penalty on leaf values.
    truncation : int
        Only pairs with a document among the first ``truncation`` count.
    options : mapping, optional
        Further parameters of LightGBM by its own names; they override those above.
    n_jobs : int, optional
        Threads; by default those of ranksieve (RANKSIEVE_THREADS or all cores), fewer for little data.
    seed : int
        For what LightGBM draws at random, if ``options`` ask for it.

    Attributes
    ----------
    booster_ : lightgbm.Booster
    n_iter_ : int
        Trees grown; fewer than ``n_rounds`` when nothing can be split any more.

    References
    ----------
    Q. Wu, C. J. C. Burges, K. M. Svore, J. Gao: Adapting boosting for information retrieval measures,
    Information Retrieval 13(3), 2010. G. Ke et al.: LightGBM, NIPS 2017.
    """

    scale_matters = False
    n_rounds: Count = 200
    _: KW_ONLY
    learning_rate: Positive = 0.05
    n_leaves: Annotated[int, Interval(Integral, 2, None, closed="left")] = 31
    min_leaf_docs: Count = 20
    l2: NotNegative = 0.0
    truncation: Count = 30
    options: Mapping[str, Any] | None = None
    n_jobs: int | None = None
    seed: Seed = 0

    def _learn(self, data: Dataset, query_weight: FloatArray | None, callback: Callback | None) -> None:
        lightgbm = lightgbm_for("LambdaMART")
        weight = checked_query_weight(query_weight, data.n_queries)
        if not data.pairs_per_query @ weight > 0:
            raise DataError(None, None, NO_PAIRS)
        parameters = self._parameters(data.n_docs)
        if parameters["objective"] == LAMBDARANK:
            _check_sizes(data)
        label_gain, label = _levels(data)
        rows = _neutral_order(data)
        train = lightgbm.Dataset(
            as_plain(data.X[rows]),
            label[rows],
            group=data.queries.sizes,
            weight=None if query_weight is None else np.repeat(weight, data.queries.sizes),
        )
        parameters = {"label_gain": label_gain.tolist(), **parameters}
        self.booster_ = lightgbm.train(parameters, train, self.n_rounds, callbacks=_told(callback))
        self.n_iter_ = int(self.booster_.num_trees())

    def _parameters(self, n_docs: int) -> dict[str, Any]:
        return {
            "objective": LAMBDARANK,
            "learning_rate": self.learning_rate,
            "num_leaves": self.n_leaves,
            "min_data_in_leaf": self.min_leaf_docs,
            "lambda_l2": self.l2,
            "lambdarank_truncation_level": self.truncation,
            "num_threads": self._threads(n_docs),
            "seed": self.seed,
            "deterministic": True,
            "force_row_wise": True,
            "verbose": -1,
            **(self.options or {}),
        }

    def _threads(self, n_docs: int) -> int:
        return threads_for(n_docs) if self.n_jobs is None else self.n_jobs

    @property
    def support_(self) -> IntArray:
        """Columns that some tree splits on, ascending."""
        return np.flatnonzero(self.booster_.feature_importance("split"))

    def _scores(self, X: Matrix) -> FloatArray:
        n_threads = self._threads(X.shape[0])
        return np.asarray(self.booster_.predict(as_plain(X), raw_score=True, num_threads=n_threads))

    def _ensemble(self) -> Trees:
        return Trees.of(self.booster_, self.support_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


def _check_sizes(data: Dataset) -> None:
    """Refuse queries that are too long for LightGBM."""
    longest, size = data.queries.longest
    if size > MOST_DOCUMENTS:
        raise DataError(
            None,
            None,
            f"query {longest} has {size} documents, but LightGBM accepts at most {MOST_DOCUMENTS}; keep the "
            "best of a first ranking, or use another method than LambdaMART",
        )


def _levels(data: Dataset) -> tuple[FloatArray, IntArray]:
    """The gains 2^y − 1 that occur, ascending, and the number of each document's gain among them."""
    evaluator = Evaluator(data, "standard")
    gains = data.queries.restore(evaluator.judged.gains(evaluator.profile))
    levels, codes = np.unique(gains, return_inverse=True)
    return levels, codes


def _neutral_order(data: Dataset) -> IntArray:
    """Rows grouped by query, and within a query in an order that depends on the features alone.

    All scores are equal before the first tree, and then LightGBM ranks by row: labels that fall with the row
    number would leak into the first lambdas.
    """
    projection = np.random.default_rng(0).normal(size=data.n_features)
    grouped = data.queries.group(np.asarray(data.X @ projection))
    return data.queries.order[np.lexsort((grouped, data.queries.query_of_grouped))]


def _told(callback: Callback | None) -> list[Any]:
    if callback is None:
        return []
    return [lambda env: callback(env.iteration + 1, np.empty(0), np.nan, np.nan)]
