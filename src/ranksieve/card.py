"""A card: whole points per unit of each feature, and the weights that they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

from ranksieve.errors import DataError, ParameterError

MOST_LEVELS = 99


@dataclass(frozen=True)
class Card:
    """score = Σ_j points_j · (x_j / unit_j); points are whole numbers from −levels to levels, and not 0."""

    levels: int
    points: Mapping[str, int]
    units: Mapping[str, float]

    def __post_init__(self) -> None:
        check_levels(self.levels)
        if set(self.points) != set(self.units):
            raise ParameterError("units", self.units, "must be one for each of the features with `points`")
        for name, points in self.points.items():
            if not _is_whole(points) or not 1 <= abs(points) <= self.levels:
                reason = f"those of {name} must be an integer from 1 to {self.levels}, or its negative"
                raise ParameterError("points", points, reason)
        object.__setattr__(self, "levels", int(self.levels))
        object.__setattr__(self, "points", {name: int(points) for name, points in self.points.items()})
        object.__setattr__(self, "units", {name: as_unit(unit, name) for name, unit in self.units.items()})

    def weight(self, name: str) -> float:
        """The weight of a feature."""
        return float(exact_weight(self.points[name], self.units[name]))

    def check(self, weights: Mapping[str, float]) -> None:
        """Refuse weights of features that are not those of the card, to the last bit."""
        if set(self.points) != set(weights):
            raise DataError(None, None, "the card is not that of the model's features")
        for name, weight in weights.items():
            if weight != self.weight(name):
                points = f"its {self.points[name]} points per {self.units[name]:g} make {self.weight(name)!r}"
                raise DataError(None, None, f"the weight of {name} is {weight!r}, but {points}")


def exact_weight(points: int, unit: float) -> Fraction:
    """points/unit with the unit as its decimals say it: 3 per 0.2 is 15, though no float is exactly 0.2."""
    return points / Fraction(repr(unit))


def check_levels(levels: Any) -> None:
    """Refuse what is no greatest number of points."""
    if not _is_whole(levels) or not 1 <= levels <= MOST_LEVELS:
        raise ParameterError("levels", levels, f"must be an integer from 1 to {MOST_LEVELS}")


def as_unit(unit: Any, name: str) -> float:
    """A unit as a number, refused if no value can be divided by it."""
    if isinstance(unit, bool) or not isinstance(unit, Real) or not 1e-100 <= float(unit) <= 1e100:
        raise ParameterError("units", unit, f"that of {name} must be a number from 1e-100 to 1e100")
    return float(unit)


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
