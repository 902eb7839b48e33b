"""The classes that the table of methods makes, and the losses and solvers of core and baselines together."""

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
AT_MOST = (FBPCRank, StabilitySelection)  # whose max_features is a limit, not a number to reach
LOSSES = {**CORE_LOSSES, **BASELINE_LOSSES}
SOLVERS = {**CORE_SOLVERS, **BASELINE_SOLVERS}


def of_size(kind, size):
    """The parameter that asks for exactly that many features, where a class has one."""
    exact = issubclass(kind, FeatureSelector) and not issubclass(kind, AT_MOST)
    return {"max_features": size} if exact and "max_features" in kind().get_params(deep=False) else {}
