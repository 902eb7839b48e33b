"""Limits of a model: number and cost of features, which features, and their signs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from ranksieve._types import AnyArray, BoolArray, FloatArray, IntArray
from ranksieve._util.short_repr import ShortRepr
from ranksieve.data.costs import ColumnCosts, FeatureCosts
from ranksieve.data.features import Feature, as_masks, as_sign, values_by_column
from ranksieve.data.steps import StepColumns, features_in_use
from ranksieve.errors import ParameterError

COST_ROUNDING = 1e-9  # relative rounding error allowed in sums of costs
MIN_COST_SHARE = 0.01  # of the largest cost: lower bound of the cost in gains per cost

Features: TypeAlias = Feature | Iterable[Feature]
Signs: TypeAlias = Mapping[Feature, Any] | Sequence[Any] | FloatArray
"""Mapping from features or patterns to signs, or one sign per column: "+", "-", +1, −1 or 0."""


class NoCandidateError(ParameterError):
    """No candidate is within the budget and uses a feature."""


@dataclass(frozen=True, eq=False, repr=False)
class Budget(ShortRepr):
    """Limits of a set of columns; None means no limit.

    ``must_have`` and ``must_not`` are masks of columns, ``signs`` has +1, −1 or 0 (either) per column.
    A swap of two features may not raise the cost of a set; with ``same_cost`` it may not lower it either.
    ``columns`` are the step columns of the features; None: each column is a feature.
    """

    max_features: int | None = None
    max_cost: float | None = None
    costs: ColumnCosts | None = None
    must_have: BoolArray | None = None
    must_not: BoolArray | None = None
    signs: FloatArray | None = None
    same_cost: bool = False
    columns: StepColumns | None = None

    def __post_init__(self) -> None:
        if self.max_cost is None:
            return
        if not (isinstance(self.max_cost, Real) and self.max_cost >= 0):
            raise ParameterError("max_cost", self.max_cost, "must be a number ≥ 0")
        if self.costs is None:
            raise ParameterError("max_cost", self.max_cost, "needs `feature_costs`, the cost of each feature")

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        max_features: int | None = None,
        max_cost: float | None = None,
        costs: FeatureCosts | None = None,
        must_have: Features = (),
        must_not: Features = (),
        signs: Signs | None = None,
        indicators: Collection[str] = (),
    ) -> Budget:
        """Look up features by name, index or pattern, and refuse limits that contradict one another.

        If one of ``must_have`` and ``must_not`` lists a feature by name and the other only matches it by a
        pattern, the name wins. Patterns do not match ``indicators`` of missing values.
        """
        among = [name for name in names if name not in indicators]
        wanted, wanted_by_name = as_masks(must_have, names, "must_have", among)
        refused, refused_by_name = as_masks(must_not, names, "must_not", among)
        fixed, forbidden = (
            wanted & (wanted_by_name | ~refused_by_name),
            refused & (refused_by_name | ~wanted_by_name),
        )
        both = np.flatnonzero(fixed & forbidden)
        if len(both):
            reason = f"{names[both[0]]!r} is also in `must_have`; leave it out of one of them"
            raise ParameterError("must_not", must_not, reason)
        if forbidden.all():
            raise ParameterError("must_not", must_not, "must leave at least one feature to rank by")
        column_signs = None if signs is None else _column_signs(signs, names, among)
        column_costs = None if costs is None else costs.columns(names)
        count = int(np.count_nonzero(fixed))
        if max_features is not None and count > max_features:
            reason = f"`must_have` lists {count} features; allow at least {count}, or shorten `must_have`"
            raise ParameterError("max_features", max_features, reason)
        return cls(max_features, max_cost, column_costs, fixed, forbidden, column_signs)

    def of_steps(self, columns: StepColumns) -> Budget:
        """The limits of step columns; a required sign is that of the slope, so a missing level is free."""
        of, costs = columns.feature, self.costs
        return replace(
            self,
            costs=None if costs is None else replace(costs, unit=costs.unit[of]),
            must_have=None if self.must_have is None else self.must_have[of],
            must_not=None if self.must_not is None else self.must_not[of],
            signs=None if self.signs is None else np.where(columns.is_missing, 0.0, self.signs[of]),
            columns=columns,
        )

    def among(self, usable: BoolArray) -> Budget:
        """The same limits, restricted to the ``usable`` columns."""
        usable = usable if self.must_not is None else usable & ~self.must_not
        fixed = np.zeros_like(usable) if self.must_have is None else self.must_have & usable
        return replace(self, must_have=fixed, must_not=~usable)

    def without_costs(self) -> Budget:
        return replace(self, max_cost=None, costs=None)

    @property
    def usable(self) -> BoolArray:
        """Columns that a set may contain."""
        assert self.must_not is not None, "call among() first"
        return ~self.must_not

    @property
    def fixed(self) -> list[int]:
        """Columns that every set contains."""
        return [] if self.must_have is None else np.flatnonzero(self.must_have).tolist()

    @property
    def limit(self) -> float:
        """Largest cost, plus the rounding error of sums."""
        return np.inf if self.max_cost is None else self.max_cost * (1.0 + COST_ROUNDING)

    def l1_weights(self, weights: Sequence[float] | FloatArray | None) -> FloatArray | None:
        """ℓ1 weights with 0 for ``must_have`` and infinity for ``must_not``; None if all are 1."""
        assert self.must_have is not None
        assert self.must_not is not None
        if weights is None and not (self.must_have.any() or self.must_not.any()):
            return None
        try:
            l1 = np.ones(len(self.must_have)) if weights is None else np.array(weights, dtype=np.float64)
        except (TypeError, ValueError):
            l1 = np.empty(0)
        if l1.shape != self.must_have.shape:
            reason = f"must be one number for each of the {len(self.must_have)} features"
            raise ParameterError("l1_weights", weights, reason)
        l1[self.must_have], l1[self.must_not] = 0.0, np.inf
        return l1

    def allows(self, coefs: FloatArray) -> BoolArray:
        """Mask of the models (rows) that use at least one feature and are within the limits."""
        count = self.counts(coefs)
        allowed = (count >= 1) & (count <= (np.inf if self.max_features is None else self.max_features))
        if self.costs is None or self.max_cost is None:
            return np.asarray(allowed)
        return np.asarray(allowed & (self.costs.of_models(coefs) <= self.limit))

    def sizes(self, coefs: FloatArray) -> AnyArray:
        """Cost of each model if features have costs, else its number of features."""
        return self.counts(coefs) if self.costs is None else self.costs.of_models(coefs)

    def counts(self, coefs: FloatArray) -> IntArray:
        """Number of features of each model (row)."""
        return np.asarray(np.count_nonzero(features_in_use(coefs, self.columns), axis=1))

    def no_candidate_error(self) -> NoCandidateError:
        """Error for a selection without any candidate."""
        name = "max_features" if self.max_cost is None else "max_cost"
        return NoCandidateError(
            name,
            getattr(self, name),
            "no candidate within the budget uses a feature; use a larger budget, smaller `alphas`, or all "
            "`families` (an elastic net adds duplicate features together)",
        )

    def check_affordable(self, usable: BoolArray) -> None:
        """Refuse a cost limit that allows none of the usable columns, and report the lowest that does."""
        if self.max_cost is None or self.costs is None or not usable.any():
            return
        costs, fixed = self.costs, np.zeros_like(usable) if self.must_have is None else self.must_have
        if usable[fixed].any():
            lowest = costs.of(fixed)
            why = f"`must_have` alone costs {lowest:g}"
        else:
            added = np.where(np.isin(costs.unit, costs.unit[fixed]), 0.0, costs.of_each)
            cheapest = int(np.argmin(np.where(usable, added, np.inf)))
            lowest = costs.of(np.append(np.flatnonzero(fixed), cheapest))
            name = repr(costs.labels[costs.unit[cheapest]])
            alone = f"the cheapest, {name}, costs {lowest:g}"
            why = f"the cheapest, {name}, costs {lowest:g} with `must_have`" if fixed.any() else alone
        if not lowest <= self.limit:
            reason = f"is too low for any feature: {why}; allow at least {lowest:g}"
            raise ParameterError("max_cost", self.max_cost, reason)

    def cost(self, chosen: Sequence[int]) -> float:
        """Cost of a set, rounded to 12 digits, so that equal sums compare equal."""
        return 0.0 if self.costs is None else float(f"{self.costs.of(np.array(chosen, dtype=int)):.12g}")

    @property
    def units(self) -> IntArray:
        """Cost unit of each column; without costs every column is its own unit."""
        return np.arange(len(self.usable)) if self.costs is None else self.costs.unit

    def may_add(self, g: FloatArray, chosen: Sequence[int]) -> BoolArray:
        """Mask of the columns that may be added to the set and whose weight may move along −g."""
        free = self.usable.copy()
        free[list(chosen)] = False
        if self.costs is not None and np.isfinite(self.limit):
            free &= self._remaining_cost(chosen) >= self._added_cost(chosen)
        return free if self.signs is None else free & (self.signs * g <= 0)

    def may_replace(self, slopes: FloatArray, chosen: Sequence[int]) -> BoolArray:
        """Mask (columns × set) of allowed swaps; ``slopes[:, i]`` is the gradient without ``chosen[i]``."""
        allowed = np.repeat(self.usable[:, None], len(chosen), axis=1)
        allowed[list(chosen)] = False
        if self.signs is not None:
            allowed &= self.signs[:, None] * slopes <= 0
        if self.costs is not None:
            cost = self.costs.of(np.array(chosen))
            for i in range(len(chosen)):
                rest = [*chosen[:i], *chosen[i + 1 :]]
                after = self.costs.of(np.array(rest, dtype=np.int64)) + self._added_cost(rest)
                allowed[:, i] &= after <= cost * (1.0 + COST_ROUNDING)
                if self.same_cost:
                    allowed[:, i] &= after >= cost * (1.0 - COST_ROUNDING)
        return allowed

    def affordable_key(self, chosen: Sequence[int]) -> bytes:
        """Mask of the columns that the set can still afford, as a dictionary key."""
        if self.costs is None:
            return b""
        return np.packbits(self._remaining_cost(chosen) >= self._added_cost(chosen)).tobytes()

    def per_cost(self, gain: FloatArray, chosen: Sequence[int]) -> FloatArray:
        """Gain divided by the cost that each column adds to the set."""
        if self.costs is None:
            return gain
        least = MIN_COST_SHARE * max(float(self.costs.prices.max()), np.finfo(np.float64).tiny)
        return np.asarray(gain / np.maximum(self._added_cost(chosen), least))

    def _remaining_cost(self, chosen: Sequence[int]) -> float:
        assert self.costs is not None
        return self.limit - self.costs.of(np.array(chosen, dtype=np.int64))

    def _added_cost(self, chosen: Sequence[int]) -> FloatArray:
        """Cost that each column would add to the set."""
        assert self.costs is not None
        paid = np.zeros(len(self.costs.prices), dtype=bool)
        paid[self.costs.unit[list(chosen)]] = True
        return np.where(paid[self.costs.unit], 0.0, self.costs.of_each)


def _column_signs(signs: Signs, names: Sequence[str], among: Sequence[str]) -> FloatArray:
    if isinstance(signs, Mapping):
        column_signs = np.zeros(len(names))
        pairs = [(feature, as_sign(sign, feature)) for feature, sign in signs.items()]
        for column, sign in values_by_column(pairs, names, "signs", among=among).items():
            column_signs[column] = sign
        return column_signs
    if isinstance(signs, str) or not isinstance(signs, Sequence | np.ndarray) or len(signs) != len(names):
        reason = f"must map features to signs or have one sign for each of the {len(names)} features"
        raise ParameterError("signs", signs, reason)
    return np.array([as_sign(sign, name) for sign, name in zip(signs, names, strict=True)])
