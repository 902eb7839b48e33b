"""Types of parameters, which are also their checks.

A ranker declares its parameters as fields, ``tol: Positive = 1e-6``; before a fit each is checked by
scikit-learn against the constraints that its type carries.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin, get_type_hints

import numpy as np
from sklearn.utils._param_validation import Interval, Options, StrOptions, validate_parameter_constraints

from ranksieve.preparation.missing import RANKER_POLICIES
from ranksieve.preparation.normalise import NORMALISE


def one_of(names: Iterable[str]) -> StrOptions:
    """One of some names, which messages tell in this order: a set would tell them in another each time."""
    return StrOptions(dict.fromkeys(names).keys())


Positive: TypeAlias = Annotated[float, Interval(Real, 0, np.inf, closed="neither")]
NotNegative: TypeAlias = Annotated[float, Interval(Real, 0, np.inf, closed="left")]
Share: TypeAlias = Annotated[float, Interval(Real, 0, 1, closed="neither")]
Count: TypeAlias = Annotated[int, Interval(Integral, 1, None, closed="left")]
FoldCount: TypeAlias = (
    Annotated[int, Interval(Integral, 2, None, closed="left")]
    | Annotated[int, Options(Integral, {0})]
    | Annotated[str, one_of(("auto",))]
)
Seed: TypeAlias = Annotated[int, Interval(Integral, 0, None, closed="left")]
Normalise: TypeAlias = Annotated[str, one_of(NORMALISE)]
Missing: TypeAlias = Annotated[str, one_of(RANKER_POLICIES)]


def check_parameters(estimator: Any) -> None:
    """Refuse the first parameter that is not what its type says, in one sentence."""
    kind: Any = type(estimator)
    validate_parameter_constraints(_constraints_of(kind), estimator.get_params(deep=False), kind.__name__)


def accepts(estimator: Any, name: str, value: Any) -> bool:
    """Whether a parameter may have this value, as far as its type tells."""
    kind: Any = type(estimator)
    constraints = {name: _constraints_of(kind).get(name, "no_validation")}
    try:
        validate_parameter_constraints(constraints, {name: value}, kind.__name__)
    except ValueError:
        return False
    return True


@cache
def _constraints_of(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    names = kind._get_param_names()
    return {name: _constraints(hints[name]) or "no_validation" for name in names}


def _constraints(hint: Any) -> list[Any]:
    """What a value must meet one of; empty if anything goes."""
    if get_origin(hint) is Annotated:
        return list(hint.__metadata__)
    if hint is NoneType:
        return [None]
    if hint is bool:
        return ["boolean"]
    if get_origin(hint) in (Union, UnionType):
        parts = [_constraints(part) for part in get_args(hint)]
        return [one for part in parts for one in part] if all(parts) else []
    return []
