"""The classes that the table of methods makes, and the losses and solvers of core and baselines together."""

from __future__ import annotations

from ranksieve.baselines import FeatureSelector
from ranksieve.baselines.losses import BASELINE_LOSSES
from ranksieve.baselines.solvers import BASELINE_SOLVERS
from ranksieve.losses import LOSSES as CORE_LOSSES
from ranksieve.methods import ranker_classes
from ranksieve.solvers import SOLVERS as CORE_SOLVERS

RANKERS = ranker_classes()
SELECTORS = {name: kind for name, kind in RANKERS.items() if issubclass(kind, FeatureSelector)}
ESTIMATORS = {name: kind for name, kind in RANKERS.items() if name not in SELECTORS}
LOSSES = {**CORE_LOSSES, **BASELINE_LOSSES}
SOLVERS = {**CORE_SOLVERS, **BASELINE_SOLVERS}
