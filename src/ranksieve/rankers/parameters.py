"""Constraints on parameters, and the budget given by the parameters of a ranker."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, Protocol, TypeAlias, Union, get_args, get_origin, get_type_hints

import numpy as np

from ranksieve._types import IntArray
from ranksieve.data.budget import Budget
from ranksieve.data.costs import FeatureCosts
from ranksieve.data.features import as_sign
from ranksieve.data.inputs import MAX_MAGNITUDE, MIN_MAGNITUDE
from ranksieve.errors import ParameterError
from ranksieve.io.tables import as_costs
from ranksieve.losses import PAIR_WEIGHTINGS
from ranksieve.objective import Objective
from ranksieve.prepare.missing import RANKER_POLICIES
from ranksieve.prepare.scaling import NORMALISE_KINDS

NUMBER_NAMES: dict[Any, str] = {Integral: "an int", Real: "a float"}


class Constraint(Protocol):
    """A condition on a value; ``str`` describes the allowed values."""

    def allows(self, value: Any) -> bool: ...


@dataclass(frozen=True)
class Interval:
    """A number between two bounds, None for no bound; ``closed`` is "left", "right", "both" or "neither"."""

    kind: Any
    left: float | None
    right: float | None
    closed: str

    def allows(self, value: Any) -> bool:
        if not _is_a(value, self.kind):
            return False
        value = float(value) if self.kind is Real else value  # else NumPy rounds the bounds to float32
        left, right = (float("-inf") if self.left is None else self.left), self.right
        above = value >= left if self.closed in ("left", "both") else value > left
        below = right is None or (value <= right if self.closed in ("right", "both") else value < right)
        return bool(above and below)

    def __str__(self) -> str:
        begin = "[" if self.closed in ("left", "both") else "("
        end = "]" if self.closed in ("right", "both") else ")"
        left, right = self._bound_text(self.left, "-inf"), self._bound_text(self.right, "inf")
        return f"{NUMBER_NAMES[self.kind]} in the range {begin}{left}, {right}{end}"

    def _bound_text(self, bound: float | None, unbounded: str) -> str:
        return unbounded if bound is None else str(float(bound) if self.kind is Real else bound)


@dataclass(frozen=True)
class OneOf:
    """One of ``values``, of type ``kind``."""

    kind: Any
    values: tuple[Any, ...]

    def allows(self, value: Any) -> bool:
        return _is_a(value, self.kind) and value in self.values

    def __str__(self) -> str:
        return f"{NUMBER_NAMES.get(self.kind, 'a str')} among {{{', '.join(map(repr, self.values))}}}"


@dataclass(frozen=True)
class Matching:
    """A str that matches ``pattern``; ``description`` is for messages."""

    pattern: re.Pattern[str]
    description: str

    def allows(self, value: Any) -> bool:
        return isinstance(value, str) and self.pattern.fullmatch(value) is not None

    def __str__(self) -> str:
        return self.description


class TrueOrFalse:
    def allows(self, value: Any) -> bool:
        return isinstance(value, bool | np.bool_)

    def __str__(self) -> str:
        return "True or False"


class IsNone:
    def allows(self, value: Any) -> bool:
        return value is None

    def __str__(self) -> str:
        return "None"


def _is_a(value: Any, kind: Any) -> bool:
    """isinstance, but a bool is not a number."""
    return isinstance(value, kind) and not isinstance(value, bool | np.bool_)


def check(name: str, value: Any, constraints: Sequence[Constraint]) -> None:
    """Raise an error if ``value`` meets none of the constraints; without constraints any value is valid."""
    if constraints and not any(one.allows(value) for one in constraints):
        *others, last = map(str, constraints)
        allowed = f"{', '.join(others)} or {last}" if others else last
        raise ParameterError(name, value, f"must be {allowed}")


def one_of(names: Iterable[str]) -> OneOf:
    return OneOf(str, tuple(names))


Positive: TypeAlias = Annotated[float, Interval(Real, MIN_MAGNITUDE, MAX_MAGNITUDE, closed="both")]
NotNegative: TypeAlias = Annotated[
    float, OneOf(Real, (0,)), Interval(Real, MIN_MAGNITUDE, MAX_MAGNITUDE, closed="both")
]
Share: TypeAlias = Annotated[float, Interval(Real, 0, 1, closed="neither")]
Count: TypeAlias = Annotated[int, Interval(Integral, 1, None, closed="left")]
BoundedCount: TypeAlias = Annotated[int, Interval(Integral, 1, 10_000, closed="both")]
"""Number of results that are in memory together; bounded, because a model file may contain any number."""
FoldCount: TypeAlias = (
    Annotated[int, Interval(Integral, 2, None, closed="left")]
    | Annotated[int, OneOf(Integral, (0,))]
    | Annotated[str, one_of(("auto",))]
)
Seed: TypeAlias = Annotated[int, Interval(Integral, 0, None, closed="left")]
Device: TypeAlias = Annotated[str, Matching(re.compile(r"cpu|cuda(:\d+)?"), "'cpu', 'cuda' or 'cuda:N'")]
Normalise: TypeAlias = Annotated[str, one_of(NORMALISE_KINDS)]
PairWeighting: TypeAlias = Annotated[str, one_of(PAIR_WEIGHTINGS)]
Missing: TypeAlias = Annotated[str, one_of(RANKER_POLICIES)]


def check_parameters(estimator: Any) -> None:
    """Raise a ParameterError for the first parameter whose value its type does not allow."""
    kind: Any = type(estimator)
    for name, constraints in _constraints_of(kind).items():
        check(name, getattr(estimator, name), constraints)


def accepts(estimator: Any, name: str, value: Any) -> bool:
    """Whether the type of a parameter allows this value."""
    kind: Any = type(estimator)
    constraints = _constraints_of(kind).get(name, [])
    return not constraints or any(one.allows(value) for one in constraints)


@cache
def _constraints_of(kind: Any) -> dict[str, list[Constraint]]:
    hints = get_type_hints(kind, include_extras=True)
    names = kind._get_param_names()
    return {name: _constraints(hints[name]) for name in names}


def _constraints(hint: Any) -> list[Constraint]:
    """Constraints of which a value must meet one; empty if any value is valid."""
    if get_origin(hint) is Annotated:
        return list(hint.__metadata__)
    if hint is NoneType:
        return [IsNone()]
    if hint is bool:
        return [TrueOrFalse()]
    if get_origin(hint) in (Union, UnionType):
        alternatives = [_constraints(alternative) for alternative in get_args(hint)]
        return [one for constraints in alternatives for one in constraints] if all(alternatives) else []
    return []


def stated_costs(
    feature_costs: Any, names: Sequence[str], indicators: Mapping[str, str]
) -> FeatureCosts | None:
    """Feature costs as passed to a ranker; indicators of missing values are paid with their feature."""
    if feature_costs is None:
        return None
    sources = [name for name in names if name not in indicators]
    return as_costs(feature_costs, sources).with_indicators(indicators)


def stated_budget(
    ranker: Any, names: Sequence[str], indicators: Mapping[str, str], costs: FeatureCosts | None
) -> Budget:
    """The budget given by a ranker's parameters, for prepared data with these columns."""
    return Budget.of(
        names, ranker.max_features, ranker.max_cost, costs, ranker.must_have, ranker.must_not, ranker.signs,
        indicators,
    )  # fmt: skip


def usable_budget(budget: Budget, objective: Objective, l1_weights: Any = None) -> Budget:
    """The budget, restricted to features that vary within queries and have a finite ℓ1 weight."""
    usable = objective.varies
    if l1_weights is not None:
        usable = usable & np.isfinite(np.asarray(l1_weights, dtype=np.float64))
    return budget.among(usable)


def plain_budget(ranker: Any, parameters: dict[str, Any]) -> dict[str, Any]:
    """``parameters`` with costs as plain data and signs by feature name, for the model file."""
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
    """{"cost": cost of ``columns``}, or {} without costs."""
    return {} if costs is None else {"cost": costs.of(names[j] for j in columns)}
