"""Costs of features, priced alone or in groups that are paid once, in any unit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve._util.short_repr import ShortRepr
from ranksieve.data.features import (
    Location,
    feature_error,
    is_pattern,
    matching,
    unknown_feature,
    values_by_column,
)
from ranksieve.errors import short_repr

OTHERS = "*"  # the entry with the cost of all features that are not listed
COST_PARAMETER = "feature_costs"
MAX_COST = 1e300


@dataclass(frozen=True)
class CostUnit:
    """A cost that is paid once: for one feature, or for a group of features computed together."""

    name: str
    cost: float
    features: tuple[str, ...]

    @property
    def group(self) -> str | None:
        """Name of the group; None for a single feature or a pattern, which is paid per feature."""
        return None if self.features == (self.name,) else self.name


@dataclass(frozen=True, repr=False)
class FeatureCosts(ShortRepr):
    """Costs of features: a set of features costs the sum of the units that contain any of them.

    Features may be shell patterns such as ``bm25_*``. A pattern outside a group stands for the features that
    it matches, each paid separately. Patterns do not apply to a feature that has its own entry.
    ``default`` is the cost of features that are in no unit; with None such a feature is an error, because a
    forgotten cost would otherwise count as free. For error messages, ``source`` is where the costs were
    defined and ``places`` where each feature or group was.
    """

    units: tuple[CostUnit, ...]
    default: float | None = None
    source: Location = field(default=COST_PARAMETER, compare=False, repr=False)
    places: Mapping[str, Location] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for unit in self.units:
            if not unit.features:
                raise feature_error(
                    self._location(unit.name), unit.name, "has no features; list at least one"
                )
            check_cost(unit.cost, unit.name, self._location(unit.name))
            for feature in unit.features:
                if feature in seen:
                    raise feature_error(self._location(feature), feature, "is priced twice; price it once")
                seen.add(feature)
        if self.default is not None:
            check_cost(self.default, OTHERS, self._location(OTHERS))

    def of(self, features: Iterable[str]) -> float:
        """Cost of a set of features, each unit paid once."""
        names = sorted(set(features))
        return self.columns(names, subset=True).of(np.arange(len(names)))

    def columns(self, names: Sequence[str], subset: bool = False) -> ColumnCosts:
        """Costs of the columns with these names; ``subset``: the data may have further columns."""
        self = self.resolved(names, subset)
        if not subset:
            self._check_known(names)
        units, unit = list(self.units), np.empty(len(names), dtype=np.int64)
        for column, name in enumerate(names):
            unit[column] = self._unit_of.get(name, len(units))
            if unit[column] == len(units):
                units.append(CostUnit(name, self._default_for(name), (name,)))
        return ColumnCosts(unit, np.array([u.cost for u in units]), tuple(u.name for u in units))

    def resolved(self, names: Sequence[str], subset: bool = False) -> FeatureCosts:
        """Replace patterns by the features they match; unless ``subset``, each must match something."""
        present = frozenset(names)
        prices = {name: (unit.group, unit.cost) for unit in self.units for name in unit.features}
        patterns = {feature for feature in prices if is_pattern(feature, present)}
        if not patterns:
            return self
        used = {pattern for pattern in patterns if not subset or matching(pattern, names)}
        entries = [(feature, price) for feature, price in prices.items() if feature in present | used]
        columns = values_by_column(entries, names, self.source, self.places)
        matched = {names[j]: price for j, price in columns.items() if names[j] not in prices}
        units = [CostUnit(name, cost, (name,)) for name, (group, cost) in matched.items() if group is None]
        for unit in self.units:
            listed = [feature for feature in unit.features if feature not in patterns]
            more = [name for name, (group, _) in matched.items() if group == unit.group is not None]
            if listed or more:
                units.append(replace(unit, features=(*listed, *more)))
        return replace(self, units=tuple(units))

    def with_indicators(self, indicators: Mapping[str, str]) -> FeatureCosts:
        """Add features, each to the unit of the feature that it is computed from."""
        units = list(self.units)
        for name, source in indicators.items():
            if name in self._unit_of:
                continue
            index = self._unit_of.get(source, len(units))
            if index == len(units):
                units.append(CostUnit(source, self._default_for(source), (source,)))
            units[index] = replace(units[index], features=(*units[index].features, name))
        return replace(self, units=tuple(units)) if indicators else self

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, in the form that :func:`read_costs` reads."""
        alone = {u.name: u.cost for u in self.units if u.group is None}
        groups = {
            u.name: {"cost": u.cost, "features": list(u.features)} for u in self.units if u.group is not None
        }
        return {"features": alone | ({} if self.default is None else {OTHERS: self.default})} | (
            {"groups": groups} if groups else {}
        )

    @cached_property
    def _unit_of(self) -> dict[str, int]:
        return {feature: k for k, unit in enumerate(self.units) for feature in unit.features}

    def _check_known(self, names: Sequence[str]) -> None:
        name_set = set(names)
        for feature in self._unit_of:
            if feature not in name_set:
                raise unknown_feature(self._location(feature), feature, names)

    def _default_for(self, name: str) -> float:
        if self.default is None:
            raise feature_error(
                self.source, name, f"has no cost; add one, or a cost for all other features as {OTHERS!r}"
            )
        return self.default

    def _location(self, name: str) -> Location:
        return self.places.get(name, self.source)


@dataclass(frozen=True, eq=False, repr=False)
class ColumnCosts(ShortRepr):
    """Costs of columns: column j is in unit u = ``unit[j]``, of cost ``prices[u]`` and name ``labels[u]``."""

    unit: IntArray
    prices: FloatArray
    labels: tuple[str, ...]

    def of(self, columns: IntArray | BoolArray) -> float:
        """Cost of a set of columns (indices or mask)."""
        return math.fsum(self.prices[np.unique(self.unit[columns])])

    def of_models(self, coefs: FloatArray) -> FloatArray:
        """Cost of the nonzero weights of each row."""
        return np.array([self.of(w != 0) for w in coefs])

    @property
    def of_each(self) -> FloatArray:
        """Cost of the unit of each column."""
        return np.asarray(self.prices[self.unit])


def make_costs(
    prices: Mapping[str, Any], source: Location = COST_PARAMETER, places: Mapping[str, Location] | None = None
) -> FeatureCosts:
    """Costs from ``{feature: cost}``, or from ``{"features": {feature: cost}, "groups": {name: group}}``.

    A group is ``{"cost": cost, "features": [feature, …]}``. ``"*"`` is the cost of all features not listed.
    """
    places = places or {}
    alone, groups = _parts(prices, source)
    prices_alone = {name: as_cost(cost, name, places.get(name, source)) for name, cost in alone.items()}
    default = prices_alone.pop(OTHERS, None)
    units = [CostUnit(name, cost, (name,)) for name, cost in prices_alone.items()]
    units += [_group(name, content, places.get(name, source)) for name, content in groups.items()]
    return FeatureCosts(tuple(units), default, source, places)


def _parts(prices: Mapping[str, Any], source: Location) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """(features, groups) of either form of costs."""
    if not any(isinstance(prices.get(part), Mapping) for part in ("features", "groups")):
        return prices, {}
    _only_keys(prices, ("features", "groups"), source)
    for part, content in prices.items():
        if not isinstance(content, Mapping):
            raise feature_error(
                source, part, f"is {short_repr(content)}; expected an object that maps names to costs"
            )
    return prices.get("features", {}), prices.get("groups", {})


def _group(name: str, content: Any, location: Location) -> CostUnit:
    if not (isinstance(content, Mapping) and isinstance(content.get("features"), list | tuple)):
        expected = '{"cost": number, "features": [names]}'
        raise feature_error(location, name, f"is {short_repr(content)}; expected {expected}")
    _only_keys(content, ("cost", "features"), location)
    for feature in content["features"]:
        if not isinstance(feature, str):
            raise feature_error(location, name, f"lists {short_repr(feature)}; expected feature names")
    return CostUnit(name, as_cost(content.get("cost"), name, location), tuple(content["features"]))


def _only_keys(content: Mapping[str, Any], allowed: tuple[str, ...], location: Location) -> None:
    unknown = [key for key in content if key not in allowed]
    if unknown:
        raise feature_error(location, unknown[0], f"is an unknown entry; expected {' and '.join(allowed)}")


def as_cost(cost: Any, name: str, location: Location) -> float:
    try:
        if isinstance(cost, bool):
            raise TypeError
        number = float(cost)
    except (TypeError, ValueError, OverflowError):
        raise feature_error(location, name, f"costs {short_repr(cost)}, which is not a number") from None
    check_cost(number, name, location)
    return number


def check_cost(cost: float, name: str, location: Location) -> None:
    """Refuse costs that are negative, not finite, or so large that sums may overflow."""
    if not 0 <= cost <= MAX_COST:
        raise feature_error(
            location, name, f"costs {cost:g}; costs must be finite numbers from 0 to {MAX_COST:g}"
        )
