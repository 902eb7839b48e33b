"""Rankers with scikit-learn's interface. One file and one line here adds an estimator."""

from __future__ import annotations

from ranksieve.estimators.base import LinearRanker
from ranksieve.estimators.fenchelrank import FenchelRank
from ranksieve.estimators.sparse_ranker import SparseRanker

ESTIMATORS: dict[str, type[LinearRanker]] = {
    "sparseranker": SparseRanker,
    "fenchelrank": FenchelRank,
}

__all__ = ["ESTIMATORS", "FenchelRank", "LinearRanker", "SparseRanker"]
