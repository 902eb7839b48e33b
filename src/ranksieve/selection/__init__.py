"""Feature selectors, alone or as two-stage rankers. The table of methods is in :mod:`ranksieve.methods`."""

from __future__ import annotations

from ranksieve.selection.base import FeatureSelector
from ranksieve.selection.bfs_wrapper import BFSWrapper
from ranksieve.selection.brtree import BRTree
from ranksieve.selection.fbpcrank import FBPCRank
from ranksieve.selection.fsmsvm import FSMSVM
from ranksieve.selection.fsrank import FSRank
from ranksieve.selection.gas import GAS
from ranksieve.selection.greedy_rankrls import GreedyRankRLS
from ranksieve.selection.hierarchical import HierarchicalBEM, HierarchicalILTR
from ranksieve.selection.relief import RankFilter, RankWrapper
from ranksieve.selection.stability import StabilitySelection

__all__ = [
    "FSMSVM",
    "GAS",
    "BFSWrapper",
    "BRTree",
    "FBPCRank",
    "FSRank",
    "FeatureSelector",
    "GreedyRankRLS",
    "HierarchicalBEM",
    "HierarchicalILTR",
    "RankFilter",
    "RankWrapper",
    "StabilitySelection",
]
