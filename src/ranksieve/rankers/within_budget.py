"""What rankers share that take a budget, and features that must or must not be used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ranksieve.choice.budget import Budget
from ranksieve.choice.forward import Rules
from ranksieve.data.costs import FeatureCosts
from ranksieve.data.dataset import Dataset
from ranksieve.data.features import as_sign
from ranksieve.io.tables import as_costs
from ranksieve.objective import Objective
from ranksieve.penalties.base import Constraints, Features, Signs, make_constraints
from ranksieve.rankers.base import LinearRanker


class WithinBudget(LinearRanker):
    """A linear ranker with these parameters; ``costs_`` is what features cost, None if nothing."""

    weighs_documents: ClassVar[bool] = True

    max_features: int | None
    feature_costs: Any
    max_cost: float | None
    must_have: Features
    must_not: Features
    signs: Signs | None
    costs_: FeatureCosts | None

    def _budget(self, data: Dataset) -> Budget:
        self.costs_ = self._costs(data.feature_names, self.missing_.indicators)
        costs = None if self.costs_ is None else self.costs_.columns(data.feature_names)
        return Budget(self.max_features, self.max_cost, costs)

    def _costs(self, names: Sequence[str], indicators: Mapping[str, str]) -> FeatureCosts | None:
        """What features cost; indicators come with their features."""
        if self.feature_costs is None:
            return None
        given = [name for name in names if name not in indicators]
        return as_costs(self.feature_costs, given).with_indicators(indicators)

    def stated_rules(
        self, data: Dataset, objective: Objective, indicators: Mapping[str, str], max_cost: float | None
    ) -> Rules:
        """The sets of features that the parameters allow, for a cost of at most so much."""
        constraints = self._constraints(data, indicators)
        usable = objective.varies & ~constraints.forbidden
        if (weights := getattr(self, "weights", None)) is not None:
            usable &= np.isfinite(np.asarray(weights, dtype=np.float64))
        fixed = np.flatnonzero(constraints.unpenalised & usable)
        rules = Rules(usable, tuple(fixed.tolist()), constraints.signs)
        costs = self._costs(data.feature_names, indicators)
        if costs is None or max_cost is None:
            return rules
        return rules.priced(costs.columns(data.feature_names), max_cost)

    def _constraints(self, data: Dataset, indicators: Mapping[str, str] | None = None) -> Constraints:
        about = self.missing_.indicators if indicators is None else indicators
        return make_constraints(data.feature_names, self.must_have, self.must_not, self.signs, about)

    def _plain_parameters(self) -> dict[str, Any]:
        """With the costs of a file, and signs by the names of the features."""
        held = super()._plain_parameters()
        if self.costs_ is not None:
            held["feature_costs"] = self.costs_.to_dict()
        if self.signs is not None:
            names = self._names()
            given = self.signs if isinstance(self.signs, Mapping) else dict(enumerate(self.signs))
            held["signs"] = {
                feature if isinstance(feature, str) else names[feature]: as_sign(sign, feature)
                for feature, sign in given.items()
            }
        return held

    def _measured(self) -> dict[str, float]:
        if self.costs_ is None:
            return {}
        names = self._names()
        return {"cost": self.costs_.of(names[j] for j in self.support_)}
