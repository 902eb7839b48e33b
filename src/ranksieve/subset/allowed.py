"""The sets of features that a budget allows, and upper bounds of sums over such a set."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve.data.budget import Budget

GOLDEN_SECTION_STEPS = 40
GOLDEN = (5.0**0.5 - 1.0) / 2.0


@dataclass(frozen=True, eq=False)
class Region:
    """The sets that contain all features ``inside`` and any of the ``free`` features, but no others."""

    inside: BoolArray
    free: BoolArray

    def with_features(self, features: IntArray | BoolArray | int) -> Region:
        """The sets of the region that contain some free features."""
        inside, free = self.inside.copy(), self.free.copy()
        inside[features], free[features] = True, False
        return Region(inside, free)

    def without_features(self, features: IntArray | BoolArray | int) -> Region:
        """The sets of the region that do not contain some free features."""
        free = self.free.copy()
        free[features] = False
        return replace(self, free=free)


@dataclass(frozen=True, eq=False)
class MaxSums:
    """Upper bounds of Σ_{j in S} a_j over allowed sets S: all, those with each feature, those without each.

    −∞ if there is no such set.
    """

    total: float
    with_each: FloatArray
    without_each: FloatArray


@dataclass(frozen=True, eq=False)
class AllowedSets:
    """The sets of at most ``budget.max_features`` features that cost at most ``budget.limit``."""

    budget: Budget

    @property
    def max_features(self) -> int:
        assert self.budget.max_features is not None
        return self.budget.max_features

    def slots(self, region: Region) -> int:
        """Number of free features that a set of the region may contain; negative if too many are inside."""
        return self.max_features - int(np.count_nonzero(region.inside))

    def remaining_cost(self, region: Region) -> float:
        """Cost that the features inside leave for free features."""
        costs = self.budget.costs
        return np.inf if costs is None else self.budget.limit - costs.of(region.inside)

    def added_costs(self, region: Region) -> FloatArray:
        """Cost that each feature would add to that of the features inside."""
        costs = self.budget.costs
        if costs is None:
            return np.zeros(len(region.free))
        return np.where(np.isin(costs.unit, costs.unit[region.inside]), 0.0, costs.of_each)

    def narrow(self, region: Region) -> Region:
        """The region without free features that no allowed set of it can contain."""
        if self.slots(region) <= 0:
            return replace(region, free=np.zeros_like(region.free))
        if self.budget.costs is None:
            return region
        return replace(region, free=region.free & (self.added_costs(region) <= self.remaining_cost(region)))

    def is_feasible(self, region: Region) -> bool:
        """Whether the features inside are within the budget, so that the region has an allowed set."""
        return self.slots(region) >= 0 and self.remaining_cost(region) >= 0

    def all_fit(self, region: Region) -> bool:
        """Whether the set of all features of the region is allowed."""
        everything, costs = region.inside | region.free, self.budget.costs
        if np.count_nonzero(everything) > self.max_features:
            return False
        return costs is None or costs.of(everything) <= self.budget.limit

    def fill(self, region: Region, worth: FloatArray) -> IntArray:
        """An allowed set: the features inside, then free ones in order of descending worth."""
        chosen, costs = np.flatnonzero(region.inside).tolist(), self.budget.costs
        for j in np.argsort(-np.where(region.free, worth, -np.inf), kind="stable").tolist():
            if len(chosen) == self.max_features or not region.free[j]:
                break
            if costs is None or costs.of(np.array([*chosen, j])) <= self.budget.limit:
                chosen.append(j)
        return np.array(sorted(chosen), dtype=np.int64)

    def max_sums(self, a: FloatArray, region: Region) -> MaxSums:
        """Bounds of Σ a_j, a ≥ 0, over the allowed sets of a narrowed region."""
        if not self.is_feasible(region):
            return _over_region(region, -np.inf, np.full(len(a), -np.inf), np.full(len(a), -np.inf))
        base = float(np.sum(a[region.inside]))
        if self.all_fit(region):
            total = base + float(np.sum(a[region.free]))
            return _over_region(region, total, np.full(len(a), total), total - a)
        if self.budget.costs is None:
            return self._by_count(a, region, base)
        return self._by_cost(a, region, base)

    def _by_count(self, a: FloatArray, region: Region, base: float) -> MaxSums:
        """The sum of the largest k; with j, j replaces the last of them; without j, the next replaces j."""
        k = self.slots(region)
        descending = -np.sort(-a[region.free])
        total, last, following = base + float(np.sum(descending[:k])), descending[k - 1], descending[k]
        with_each, without_each = total - np.maximum(last - a, 0.0), total - np.maximum(a - following, 0.0)
        return _over_region(region, total, with_each, without_each)

    def _by_cost(self, a: FloatArray, region: Region, base: float) -> MaxSums:
        """Lagrangian bounds, valid for all multipliers ν ≥ 0 of the size and λ ≥ 0 of the cost.

        Σ_{j in S} a_j ≤ νk + λB + Σ_units max(0, Σ_{j of the unit} max(0, a_j − ν) − λ·cost). The best ν is
        found by golden section, the best λ for it by filling the budget with the units worth most per cost.
        With j, its unit is paid and j counts as a_j − ν, even if negative; without j, its unit loses that.
        """
        free = _FreeFeatures(self, a, region)
        descending = -np.sort(-free.a)
        multipliers = [
            0.0,
            float(descending[min(free.slots, len(descending) - 1)]),
            _golden(lambda nu: free.bound(nu)[0], 0.0, float(np.max(free.a, initial=0.0))),
        ]
        nu = min(multipliers, key=lambda one: free.bound(one)[0])
        total, lam = free.bound(nu)
        gain, worth = np.maximum(0.0, free.a - nu), free.worths(nu)[free.unit]
        now = np.maximum(0.0, worth - lam * free.cost)
        with_each, without_each = np.full(len(a), -np.inf), np.full(len(a), base + total)
        with_each[region.free] = base + total - now + (worth - gain + (free.a - nu) - lam * free.cost)
        without_each[region.free] = base + total - now + np.maximum(0.0, worth - gain - lam * free.cost)
        return _over_region(region, base + total, np.minimum(with_each, base + total), without_each)


class _FreeFeatures:
    """The free features of a region with their costs and units (features that are paid for together)."""

    def __init__(self, allowed: AllowedSets, a: FloatArray, region: Region) -> None:
        costs = allowed.budget.costs
        assert costs is not None
        units, self.unit = np.unique(costs.unit[region.free], return_inverse=True)
        self.a, self.cost = a[region.free], allowed.added_costs(region)[region.free]
        self.slots, self.remaining_cost = allowed.slots(region), allowed.remaining_cost(region)
        self.unit_cost = np.zeros(len(units))
        self.unit_cost[self.unit] = self.cost

    def worths(self, nu: float) -> FloatArray:
        """Σ max(0, a_j − ν) of each unit."""
        worth = np.bincount(self.unit, np.maximum(0.0, self.a - nu), len(self.unit_cost))
        return worth.astype(np.float64)

    def bound(self, nu: float) -> tuple[float, float]:
        """(lowest bound for ν, its λ)."""
        worth, cost = self.worths(nu), self.unit_cost
        rate = np.divide(worth, cost, out=np.full(len(cost), np.inf), where=cost > 0)
        order = np.argsort(-rate, kind="stable")
        over = np.flatnonzero(np.cumsum(cost[order]) > self.remaining_cost)
        lam = float(rate[order[over[0]]]) if len(over) else 0.0
        rest = float(np.sum(np.maximum(0.0, worth - lam * cost)))
        return nu * self.slots + lam * self.remaining_cost + rest, lam


def _over_region(region: Region, total: float, with_each: FloatArray, without_each: FloatArray) -> MaxSums:
    with_each = np.where(region.free, with_each, np.where(region.inside, total, -np.inf))
    without_each = np.where(region.free, without_each, np.where(region.inside, -np.inf, total))
    return MaxSums(total, with_each, without_each)


def _golden(function, low: float, high: float) -> float:  # type: ignore[no-untyped-def]
    """Approximate minimum of a convex function of one variable, by golden section."""
    for _ in range(GOLDEN_SECTION_STEPS):
        step = GOLDEN * (high - low)
        if function(high - step) <= function(low + step):
            high = low + step
        else:
            low = high - step
    return 0.5 * (low + high)
