"""Which sets of features are allowed, and how much a sum over such a set can be at most."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve.data.budget import Budget

TURNS = 40  # of golden section
GOLDEN = (5.0**0.5 - 1.0) / 2.0


@dataclass(frozen=True, eq=False)
class Region:
    """The sets that hold all features ``inside`` and beside them only ``free`` ones."""

    inside: BoolArray
    free: BoolArray

    def holding(self, features: IntArray | BoolArray | int) -> Region:
        """Those of them that hold some free features."""
        inside, free = self.inside.copy(), self.free.copy()
        inside[features], free[features] = True, False
        return Region(inside, free)

    def lacking(self, features: IntArray | BoolArray | int) -> Region:
        """Those of them that lack some free features."""
        free = self.free.copy()
        free[features] = False
        return replace(self, free=free)


@dataclass(frozen=True, eq=False)
class Most:
    """What Σ_{j in S} a_j can be at most, S an allowed set: any, one with each feature, one without each.

    −∞ where there is no such set.
    """

    total: float
    joined: FloatArray
    left: FloatArray


@dataclass(frozen=True, eq=False)
class AllowedSets:
    """The sets of at most ``budget.max_features`` features that cost at most ``budget.limit``."""

    budget: Budget

    @property
    def max_features(self) -> int:
        assert self.budget.max_features is not None
        return self.budget.max_features

    def places(self, region: Region) -> int:
        """How many free features a set of the region may hold."""
        return self.max_features - int(np.count_nonzero(region.inside))

    def money(self, region: Region) -> float:
        """What is left for free features."""
        costs = self.budget.costs
        return np.inf if costs is None else self.budget.limit - costs.of(region.inside)

    def prices(self, region: Region) -> FloatArray:
        """What each feature would add to the cost of those inside."""
        costs = self.budget.costs
        if costs is None:
            return np.zeros(len(region.free))
        return np.where(np.isin(costs.unit, costs.unit[region.inside]), 0.0, costs.of_each)

    def narrowed(self, region: Region) -> Region:
        """The region without free features that no set of it can hold."""
        if self.places(region) <= 0:
            return replace(region, free=np.zeros_like(region.free))
        if self.budget.costs is None:
            return region
        return replace(region, free=region.free & (self.prices(region) <= self.money(region)))

    def possible(self, region: Region) -> bool:
        """Whether the features inside fit, so that the region has any set."""
        return self.places(region) >= 0 and self.money(region) >= 0

    def all_fit(self, region: Region) -> bool:
        """Whether one set may hold all features of the region."""
        everything, costs = region.inside | region.free, self.budget.costs
        if np.count_nonzero(everything) > self.max_features:
            return False
        return costs is None or costs.of(everything) <= self.budget.limit

    def filled(self, region: Region, worth: FloatArray) -> IntArray:
        """A set: the features inside, then free ones by falling worth, as long as they fit."""
        chosen, costs = np.flatnonzero(region.inside).tolist(), self.budget.costs
        for j in np.argsort(-np.where(region.free, worth, -np.inf), kind="stable").tolist():
            if len(chosen) == self.max_features or not region.free[j]:
                break
            if costs is None or costs.of(np.array([*chosen, j])) <= self.budget.limit:
                chosen.append(j)
        return np.array(sorted(chosen), dtype=np.int64)

    def most(self, a: FloatArray, region: Region) -> Most:
        """Bounds of Σ a_j, a ≥ 0, over the allowed sets of a narrowed region."""
        if not self.possible(region):
            return _over_region(region, -np.inf, np.full(len(a), -np.inf), np.full(len(a), -np.inf))
        base = float(np.sum(a[region.inside]))
        if self.all_fit(region):
            total = base + float(np.sum(a[region.free]))
            return _over_region(region, total, np.full(len(a), total), total - a)
        if self.budget.costs is None:
            return self._by_count(a, region, base)
        return self._by_cost(a, region, base)

    def _by_count(self, a: FloatArray, region: Region, base: float) -> Most:
        """The sum of the largest; to hold j it gives way to the last of them, without j the next follows."""
        places = self.places(region)
        falling = -np.sort(-a[region.free])
        total, last, following = base + float(np.sum(falling[:places])), falling[places - 1], falling[places]
        joined, left = total - np.maximum(last - a, 0.0), total - np.maximum(a - following, 0.0)
        return _over_region(region, total, joined, left)

    def _by_cost(self, a: FloatArray, region: Region, base: float) -> Most:
        """Lagrangian bounds, valid for every price ν ≥ 0 of a place and every price λ ≥ 0 of money.

        Σ_{j in S} a_j ≤ νk + λB + Σ_units max(0, Σ_{j of the unit} max(0, a_j − ν) − λ·cost). The best ν is
        found by golden section, the best λ for it by filling the budget with the units worth most per cost.
        To hold j, its unit is paid and j counts as a_j − ν, whatever its sign; without j its unit lacks that.
        """
        free = _FreeFeatures(self, a, region)
        falling = -np.sort(-free.a)
        prices_of_place = [
            0.0,
            float(falling[min(free.places, len(falling) - 1)]),
            _golden(lambda nu: free.bound(nu)[0], 0.0, float(np.max(free.a, initial=0.0))),
        ]
        nu = min(prices_of_place, key=lambda one: free.bound(one)[0])
        total, lam = free.bound(nu)
        gain, worth = np.maximum(0.0, free.a - nu), free.worths(nu)[free.unit]
        now = np.maximum(0.0, worth - lam * free.cost)
        joined, left = np.full(len(a), -np.inf), np.full(len(a), base + total)
        joined[region.free] = base + total - now + (worth - gain + (free.a - nu) - lam * free.cost)
        left[region.free] = base + total - now + np.maximum(0.0, worth - gain - lam * free.cost)
        return _over_region(region, base + total, np.minimum(joined, base + total), left)


class _FreeFeatures:
    """The free features of a region with their units (those that are paid for together) and costs."""

    def __init__(self, allowed: AllowedSets, a: FloatArray, region: Region) -> None:
        costs = allowed.budget.costs
        assert costs is not None
        units, self.unit = np.unique(costs.unit[region.free], return_inverse=True)
        self.a, self.cost = a[region.free], allowed.prices(region)[region.free]
        self.places, self.money = allowed.places(region), allowed.money(region)
        self.price = np.zeros(len(units))  # of each unit
        self.price[self.unit] = self.cost

    def worths(self, nu: float) -> FloatArray:
        """Σ max(0, a_j − ν) of each unit."""
        worth = np.bincount(self.unit, np.maximum(0.0, self.a - nu), len(self.price))
        return worth.astype(np.float64)

    def bound(self, nu: float) -> tuple[float, float]:
        """The least bound at a price of a place, and the price λ of money there."""
        worth, price = self.worths(nu), self.price
        rate = np.divide(worth, price, out=np.full(len(price), np.inf), where=price > 0)
        order = np.argsort(-rate, kind="stable")
        over = np.flatnonzero(np.cumsum(price[order]) > self.money)
        lam = float(rate[order[over[0]]]) if len(over) else 0.0
        rest = float(np.sum(np.maximum(0.0, worth - lam * price)))
        return nu * self.places + lam * self.money + rest, lam


def _over_region(region: Region, total: float, joined: FloatArray, left: FloatArray) -> Most:
    joined = np.where(region.free, joined, np.where(region.inside, total, -np.inf))
    return Most(total, joined, np.where(region.free, left, np.where(region.inside, -np.inf, total)))


def _golden(function, low: float, high: float) -> float:  # type: ignore[no-untyped-def]
    """Where a convex function of one number is about least."""
    for _ in range(TURNS):
        reach = GOLDEN * (high - low)
        if function(high - reach) <= function(low + reach):
            high = low + reach
        else:
            low = high - reach
    return 0.5 * (low + high)
