"""What rankers with a budget share: its limits as stated by their parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ranksieve._types import IntArray
from ranksieve.data.budget import Budget
from ranksieve.data.costs import FeatureCosts
from ranksieve.data.features import as_sign
from ranksieve.io.tables import as_costs
from ranksieve.objective import Objective


def stated_costs(
    feature_costs: Any, names: Sequence[str], indicators: Mapping[str, str]
) -> FeatureCosts | None:
    """The costs of features; indicators of missing values come with their features. None if all are free."""
    if feature_costs is None:
        return None
    sources = [name for name in names if name not in indicators]
    return as_costs(feature_costs, sources).with_indicators(indicators)


def stated_budget(
    ranker: Any, names: Sequence[str], indicators: Mapping[str, str], costs: FeatureCosts | None
) -> Budget:
    """The budget of a ranker's parameters, for prepared data with columns of these names."""
    return Budget.of(
        names, ranker.max_features, ranker.max_cost, costs, ranker.must_have, ranker.must_not, ranker.signs,
        indicators,
    )  # fmt: skip


def usable_budget(budget: Budget, objective: Objective, l1_weights: Any = None) -> Budget:
    """The budget over the features that vary within queries and that no infinite ℓ1 weight forbids."""
    usable = objective.varies
    if l1_weights is not None:
        usable = usable & np.isfinite(np.asarray(l1_weights, dtype=np.float64))
    return budget.among(usable)


def plain_budget(ranker: Any, parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a fitted ranker with the costs of a file, and signs by the names of the features."""
    if ranker.costs_ is not None:
        parameters["feature_costs"] = ranker.costs_.to_dict()
    signs = getattr(ranker, "signs", None)
    if signs is not None:
        names = ranker.coef_names_
        pairs: Iterable[tuple[Any, Any]] = signs.items() if isinstance(signs, Mapping) else enumerate(signs)
        parameters["signs"] = {
            feature if isinstance(feature, str) else names[feature]: as_sign(sign, feature)
            for feature, sign in pairs
        }
    return parameters


def cost_of(costs: FeatureCosts | None, names: Sequence[str], columns: IntArray) -> dict[str, float]:
    """The cost of some columns, as a metric of their model; nothing without costs."""
    return {} if costs is None else {"cost": costs.of(names[j] for j in columns)}
