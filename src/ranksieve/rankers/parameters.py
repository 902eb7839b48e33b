"""Types of parameters, which are also their checks.

A ranker declares its parameters as fields, ``tol: Positive = 1e-6``; before a fit each is checked against
the constraints that its type carries.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin, get_type_hints

from ranksieve._util.constraints import Constraint, Interval, Nothing, OneOf, Text, TrueOrFalse, check
from ranksieve.data.magnitudes import LARGEST, LEAST
from ranksieve.prepare.missing import RANKER_POLICIES
from ranksieve.prepare.scaling import NORMALISE


def one_of(names: Iterable[str]) -> OneOf:
    """One of some names."""
    return OneOf(str, tuple(names))


Positive: TypeAlias = Annotated[float, Interval(Real, LEAST, LARGEST, closed="both")]
NotNegative: TypeAlias = Annotated[float, OneOf(Real, (0,)), Interval(Real, LEAST, LARGEST, closed="both")]
Share: TypeAlias = Annotated[float, Interval(Real, 0, 1, closed="neither")]
Count: TypeAlias = Annotated[int, Interval(Integral, 1, None, closed="left")]
MOST_AT_ONCE = 10_000
CountAtOnce: TypeAlias = Annotated[int, Interval(Integral, 1, MOST_AT_ONCE, closed="both")]
"""How many of something whose results are all in memory at once; a model file may state any number."""
FoldCount: TypeAlias = (
    Annotated[int, Interval(Integral, 2, None, closed="left")]
    | Annotated[int, OneOf(Integral, (0,))]
    | Annotated[str, one_of(("auto",))]
)
Seed: TypeAlias = Annotated[int, Interval(Integral, 0, None, closed="left")]
Device: TypeAlias = Annotated[str, Text(re.compile(r"cpu|cuda(:\d+)?"), "'cpu', 'cuda' or 'cuda:N'")]
Normalise: TypeAlias = Annotated[str, one_of(NORMALISE)]
Missing: TypeAlias = Annotated[str, one_of(RANKER_POLICIES)]


def check_parameters(estimator: Any) -> None:
    """Refuse the first parameter that is not what its type says, in one sentence."""
    kind: Any = type(estimator)
    for name, constraints in _constraints_of(kind).items():
        check(name, getattr(estimator, name), constraints)


def accepts(estimator: Any, name: str, value: Any) -> bool:
    """Whether a parameter may have this value, as far as its type tells."""
    kind: Any = type(estimator)
    constraints = _constraints_of(kind).get(name, [])
    return not constraints or any(one.allows(value) for one in constraints)


@cache
def _constraints_of(kind: Any) -> dict[str, list[Constraint]]:
    hints = get_type_hints(kind, include_extras=True)
    names = kind._get_param_names()
    return {name: _constraints(hints[name]) for name in names}


def _constraints(hint: Any) -> list[Constraint]:
    """What a value must meet one of; empty if anything goes."""
    if get_origin(hint) is Annotated:
        return list(hint.__metadata__)
    if hint is NoneType:
        return [Nothing()]
    if hint is bool:
        return [TrueOrFalse()]
    if get_origin(hint) in (Union, UnionType):
        parts = [_constraints(part) for part in get_args(hint)]
        return [one for part in parts for one in part] if all(parts) else []
    return []
