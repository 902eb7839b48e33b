"""What features cost, alone or in groups that are paid once, in any unit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve.data.features import Place, by_column, is_pattern, matching, refusal, unknown_feature
from ranksieve.errors import shown

OTHERS = "*"  # the entry that prices every feature without one of its own
WHERE = "feature_costs"
LARGEST = 1e300


@dataclass(frozen=True)
class CostUnit:
    """What is paid once: one feature, or a group of features that come together."""

    name: str
    cost: float
    features: tuple[str, ...]

    @property
    def group(self) -> str | None:
        """Its name if it is a group, None if it is one feature or pattern, paid feature by feature."""
        return None if self.features == (self.name,) else self.name


@dataclass(frozen=True)
class FeatureCosts:
    """The cost of every feature: the cost of a set is that of the units that hold any of its features.

    Features may be shell patterns such as ``bm25_*``; one that is no group stands for the features that it
    matches, each paid by itself. A feature with an entry of its own is no pattern's.
    ``default`` is the cost of features that no unit holds; None makes such a feature an error, because a
    price that was forgotten would pass for free. ``source`` is where the costs were given, ``places`` where
    those of one feature or group were, for errors.
    """

    units: tuple[CostUnit, ...]
    default: float | None = None
    source: Place = field(default=WHERE, compare=False, repr=False)
    places: Mapping[str, Place] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for unit in self.units:
            if not unit.features:
                raise refusal(self._place(unit.name), unit.name, "has no feature; list some")
            check_cost(unit.cost, unit.name, self._place(unit.name))
            for feature in unit.features:
                if feature in seen:
                    raise refusal(self._place(feature), feature, "is priced twice; price it once")
                seen.add(feature)
        if self.default is not None:
            check_cost(self.default, OTHERS, self._place(OTHERS))

    def of(self, features: Iterable[str]) -> float:
        """The cost of a set of features, each unit paid once."""
        names = sorted(set(features))
        return self.columns(names, subset=True).of(np.arange(len(names)))

    def columns(self, names: Sequence[str], subset: bool = False) -> ColumnCosts:
        """The costs of the columns with these names, which are all there are unless ``subset``."""
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
        """With the features that patterns match in their place; each matches something unless ``subset``."""
        present = frozenset(names)
        prices = {name: (unit.group, unit.cost) for unit in self.units for name in unit.features}
        patterns = {feature for feature in prices if is_pattern(feature, present)}
        if not patterns:
            return self
        used = {pattern for pattern in patterns if not subset or matching(pattern, names)}
        entries = [(feature, price) for feature, price in prices.items() if feature in present | used]
        columns = by_column(entries, names, self.source, self.places)
        matched = {names[j]: price for j, price in columns.items() if names[j] not in prices}
        units = [CostUnit(name, cost, (name,)) for name, (group, cost) in matched.items() if group is None]
        for unit in self.units:
            own = [feature for feature in unit.features if feature not in patterns]
            more = [name for name, (group, _) in matched.items() if group == unit.group is not None]
            if own or more:
                units.append(replace(unit, features=(*own, *more)))
        return replace(self, units=tuple(units))

    def with_indicators(self, indicators: Mapping[str, str]) -> FeatureCosts:
        """With further features, each of which comes with one that is priced: both are paid once."""
        units = list(self.units)
        for name, source in indicators.items():
            if name in self._unit_of:
                continue
            number = self._unit_of.get(source, len(units))
            if number == len(units):
                units.append(CostUnit(source, self._default_for(source), (source,)))
            units[number] = replace(units[number], features=(*units[number].features, name))
        return replace(self, units=tuple(units)) if indicators else self

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, as :func:`read_costs` reads it."""
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
        known = set(names)
        for feature in self._unit_of:
            if feature not in known:
                raise unknown_feature(self._place(feature), feature, names)

    def _default_for(self, name: str) -> float:
        if self.default is None:
            raise refusal(self.source, name, f"has no cost; price it, or price all others with {OTHERS!r}")
        return self.default

    def _place(self, name: str) -> Place:
        return self.places.get(name, self.source)


@dataclass(frozen=True, eq=False)
class ColumnCosts:
    """Column j belongs to unit ``unit[j]``; unit u costs ``prices[u]``, once, and is called ``labels[u]``."""

    unit: IntArray
    prices: FloatArray
    labels: tuple[str, ...]

    def of(self, columns: IntArray | BoolArray) -> float:
        """The cost of a set of columns (numbers or mask)."""
        return math.fsum(self.prices[np.unique(self.unit[columns])])

    def of_models(self, coefs: FloatArray) -> FloatArray:
        """The cost of the nonzero weights of each row."""
        return np.array([self.of(w != 0) for w in coefs])

    @property
    def of_each(self) -> FloatArray:
        """The cost of the unit of each column."""
        return np.asarray(self.prices[self.unit])


def make_costs(
    prices: Mapping[str, Any], source: Place = WHERE, places: Mapping[str, Place] | None = None
) -> FeatureCosts:
    """Costs from ``{feature: cost}``, or from ``{"features": {feature: cost}, "groups": {name: group}}``.

    A group is ``{"cost": cost, "features": [feature, …]}``. The feature ``"*"`` prices all without a cost.
    """
    places = places or {}
    alone, groups = _parts(prices, source)
    prices_alone = {name: as_cost(cost, name, places.get(name, source)) for name, cost in alone.items()}
    default = prices_alone.pop(OTHERS, None)
    units = [CostUnit(name, cost, (name,)) for name, cost in prices_alone.items()]
    units += [_group(name, content, places.get(name, source)) for name, content in groups.items()]
    return FeatureCosts(tuple(units), default, source, places)


def _parts(prices: Mapping[str, Any], source: Place) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """(features, groups) of either form."""
    if not any(isinstance(prices.get(part), Mapping) for part in ("features", "groups")):
        return prices, {}
    _only_keys(prices, ("features", "groups"), source)
    for part, content in prices.items():
        if not isinstance(content, Mapping):
            raise refusal(source, part, f"is {shown(content)}; expected an object from names to costs")
    return prices.get("features", {}), prices.get("groups", {})


def _group(name: str, content: Any, place: Place) -> CostUnit:
    if not (isinstance(content, Mapping) and isinstance(content.get("features"), list | tuple)):
        expected = '{"cost": number, "features": [names]}'
        raise refusal(place, name, f"is {shown(content)}; expected {expected}")
    _only_keys(content, ("cost", "features"), place)
    for feature in content["features"]:
        if not isinstance(feature, str):
            raise refusal(place, name, f"lists {shown(feature)}; expected names of features")
    return CostUnit(name, as_cost(content.get("cost"), name, place), tuple(content["features"]))


def _only_keys(content: Mapping[str, Any], known: tuple[str, ...], place: Place) -> None:
    unknown = [key for key in content if key not in known]
    if unknown:
        raise refusal(place, unknown[0], f"is an unknown entry; expected {' and '.join(known)}")


def as_cost(cost: Any, name: str, place: Place) -> float:
    try:
        if isinstance(cost, bool):
            raise TypeError
        number = float(cost)
    except (TypeError, ValueError, OverflowError):
        raise refusal(place, name, f"costs {shown(cost)}, which is not a number") from None
    check_cost(number, name, place)
    return number


def check_cost(cost: float, name: str, place: Place) -> None:
    """A cost is a finite number, not negative, and so small that no sum of costs overflows."""
    if not 0 <= cost <= LARGEST:
        raise refusal(place, name, f"costs {cost:g}; costs must be finite numbers from 0 to {LARGEST:g}")
