"""The classes that the table of methods makes."""

from __future__ import annotations

from ranksieve.methods import ranker_classes
from ranksieve.selection import FeatureSelector

RANKERS = ranker_classes()
SELECTORS = {name: kind for name, kind in RANKERS.items() if issubclass(kind, FeatureSelector)}
ESTIMATORS = {name: kind for name, kind in RANKERS.items() if name not in SELECTORS}
