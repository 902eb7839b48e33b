"""Feature selectors, alone or as two-stage rankers. The table of methods is in :mod:`ranksieve.methods`."""

from __future__ import annotations

from ranksieve.selection.base import FeatureSelector
from ranksieve.selection.fbpcrank import FBPCRank
from ranksieve.selection.fsmsvm import FSMSVM
from ranksieve.selection.fsrank import FSRank
from ranksieve.selection.gas import GAS
from ranksieve.selection.stability import StabilitySelection

__all__ = ["FSMSVM", "GAS", "FBPCRank", "FSRank", "FeatureSelector", "StabilitySelection"]
