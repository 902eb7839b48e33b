"""FS-Rank: the features that rank best alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ranksieve._types import FloatArray, IntArray
from ranksieve.data.dataset import Dataset
from ranksieve.estimators.parameters import Count
from ranksieve.measures.importance import single_feature
from ranksieve.selection.base import FeatureSelector, check_size, largest


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
