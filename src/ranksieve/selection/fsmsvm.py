"""FSMSVM: the features to which FSMRank gives the largest weights."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from ranksieve._types import FloatArray, IntArray
from ranksieve.data.dataset import Dataset
from ranksieve.estimators import FSMRank
from ranksieve.estimators.parameters import Count, NotNegative
from ranksieve.selection.base import FeatureSelector, check_size, levelled


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
