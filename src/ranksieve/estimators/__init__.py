"""Rankers with scikit-learn's interface. One file and one line here adds an estimator."""

from __future__ import annotations

from ranksieve.estimators.base import LinearRanker
from ranksieve.estimators.fenchelrank import FenchelRank
from ranksieve.estimators.fsmrank import FSMRank
from ranksieve.estimators.minbatsrank import MinBatSRank
from ranksieve.estimators.sparse_listmle import SparseListMLE
from ranksieve.estimators.sparse_ranker import SparseRanker
from ranksieve.estimators.sparse_ranksvm import SparseRankSVM

ESTIMATORS: dict[str, type[LinearRanker]] = {
    "sparseranker": SparseRanker,
    "fenchelrank": FenchelRank,
    "sparseranksvm": SparseRankSVM,
    "fsmrank": FSMRank,
    "minbatsrank": MinBatSRank,
    "sparselistmle": SparseListMLE,
}

__all__ = [
    "ESTIMATORS",
    "FSMRank",
    "FenchelRank",
    "LinearRanker",
    "MinBatSRank",
    "SparseListMLE",
    "SparseRankSVM",
    "SparseRanker",
]
