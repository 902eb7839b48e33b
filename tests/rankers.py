"""All ranker classes of the table of methods, and all losses and solvers of core and baselines."""

from __future__ import annotations

from ranksieve.baselines import FBPCRank, FeatureSelector, StabilitySelection
from ranksieve.baselines.losses import BASELINE_LOSSES
from ranksieve.baselines.solvers import BASELINE_SOLVERS
from ranksieve.losses import LOSSES as CORE_LOSSES
from ranksieve.methods import ranker_classes
from ranksieve.solvers import SOLVERS as CORE_SOLVERS

RANKERS = ranker_classes()
SELECTORS = {name: kind for name, kind in RANKERS.items() if issubclass(kind, FeatureSelector)}
ESTIMATORS = {name: kind for name, kind in RANKERS.items() if name not in SELECTORS}
AT_MOST = (FBPCRank, StabilitySelection)  # max_features is only a limit
LOSSES = {**CORE_LOSSES, **BASELINE_LOSSES}
SOLVERS = {**CORE_SOLVERS, **BASELINE_SOLVERS}


def of_size(kind, size):
    """Parameters for exactly ``size`` features; empty if the class has no such parameter."""
    exact = issubclass(kind, FeatureSelector) and not issubclass(kind, AT_MOST)
    return {"max_features": size} if exact and "max_features" in kind().get_params(deep=False) else {}
