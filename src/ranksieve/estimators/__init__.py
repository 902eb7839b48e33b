"""Rankers with scikit-learn's interface. The table of methods is in :mod:`ranksieve.methods`."""

from __future__ import annotations

from ranksieve.estimators.adarank import AdaRank
from ranksieve.estimators.base import LinearRanker, Ranker
from ranksieve.estimators.best_subset import BestSubset, best_subset
from ranksieve.estimators.cs_listmle import CSListMLE
from ranksieve.estimators.cs_ranksvm import CSRankSVM
from ranksieve.estimators.fenchelrank import FenchelRank
from ranksieve.estimators.frontier import Frontier, frontier
from ranksieve.estimators.fsmrank import FSMRank
from ranksieve.estimators.lambdamart import LambdaMART
from ranksieve.estimators.listnet import ListNet
from ranksieve.estimators.minbatsrank import MinBatSRank
from ranksieve.estimators.rankboost import RankBoost
from ranksieve.estimators.rankrls import RankRLS
from ranksieve.estimators.ranksvm import RankSVM
from ranksieve.estimators.ranksvm_struct import RankSVMStruct
from ranksieve.estimators.rsrank import RSRank
from ranksieve.estimators.sparse_listmle import SparseListMLE
from ranksieve.estimators.sparse_rank import SparseRank
from ranksieve.estimators.sparse_ranker import SparseRanker
from ranksieve.estimators.sparse_ranksvm import SparseRankSVM
from ranksieve.estimators.svmmap import SVMMAP
from ranksieve.estimators.tgrank import TGRank

__all__ = [
    "SVMMAP",
    "AdaRank",
    "BestSubset",
    "CSListMLE",
    "CSRankSVM",
    "FSMRank",
    "FenchelRank",
    "Frontier",
    "LambdaMART",
    "LinearRanker",
    "ListNet",
    "MinBatSRank",
    "RSRank",
    "RankBoost",
    "RankRLS",
    "RankSVM",
    "RankSVMStruct",
    "Ranker",
    "SparseListMLE",
    "SparseRank",
    "SparseRankSVM",
    "SparseRanker",
    "TGRank",
    "best_subset",
    "frontier",
]
