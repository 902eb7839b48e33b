"""Feature selectors, alone or as two-stage rankers. One file and one line here adds a selector."""

from __future__ import annotations

from ranksieve.selection.base import FeatureSelector
from ranksieve.selection.fbpcrank import FBPCRank
from ranksieve.selection.fsmsvm import FSMSVM
from ranksieve.selection.fsrank import FSRank
from ranksieve.selection.gas import GAS
from ranksieve.selection.stability import StabilitySelection

SELECTORS: dict[str, type[FeatureSelector]] = {
    "fsrank": FSRank,
    "gas": GAS,
    "fsmsvm": FSMSVM,
    "fbpcrank": FBPCRank,
    "stabilityselection": StabilitySelection,
}

__all__ = ["FSMSVM", "GAS", "SELECTORS", "FBPCRank", "FSRank", "FeatureSelector", "StabilitySelection"]
