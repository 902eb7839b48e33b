"""Constraints on single features: unpenalised, never used, or of one sign."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ranksieve._types import BoolArray, FloatArray
from ranksieve.data.features import Feature, as_masks, as_sign, by_column
from ranksieve.errors import ParameterError

Features: TypeAlias = Feature | Iterable[Feature]
Signs: TypeAlias = Mapping[Feature, Any] | Sequence[Any] | FloatArray
"""Features or patterns with their signs, or one sign per column; a sign is "+", "-", +1, −1 or 0."""


@dataclass(frozen=True, eq=False)
class Constraints:
    """Unpenalised and forbidden columns, and the sign of each column (None: no sign is bound)."""

    unpenalised: BoolArray
    forbidden: BoolArray
    signs: FloatArray | None

    def weights(self, weights: Sequence[float] | FloatArray | None) -> FloatArray | None:
        """ℓ1 weights with 0 for the unpenalised and infinity for the forbidden columns; None if all are 1."""
        if weights is None and not (self.unpenalised.any() or self.forbidden.any()):
            return None
        try:
            given = np.ones(len(self.unpenalised)) if weights is None else np.array(weights, dtype=np.float64)
        except (TypeError, ValueError):
            given = np.empty(0)
        if given.shape != self.unpenalised.shape:
            reason = f"must be one number for each of the {len(self.unpenalised)} features"
            raise ParameterError("weights", weights, reason)
        given[self.unpenalised], given[self.forbidden] = 0.0, np.inf
        return given


def make_constraints(
    names: Sequence[str],
    must_have: Features = (),
    must_not: Features = (),
    signs: Signs | None = None,
    indicators: Collection[str] = (),
) -> Constraints:
    """Find the features and refuse constraints that contradict one another.

    A feature that one of ``must_have`` and ``must_not`` names and the other only matches by a pattern is as
    the one says that names it. No pattern matches ``indicators``.
    """
    among = [name for name in names if name not in indicators]
    wanted, wanted_by_name = as_masks(must_have, names, "must_have", among)
    refused, refused_by_name = as_masks(must_not, names, "must_not", among)
    unpenalised = wanted & (wanted_by_name | ~refused_by_name)
    forbidden = refused & (refused_by_name | ~wanted_by_name)
    both = np.flatnonzero(unpenalised & forbidden)
    if len(both):
        reason = f"{names[both[0]]!r} is also in `must_have`; leave it out of one of them"
        raise ParameterError("must_not", must_not, reason)
    if forbidden.all():
        raise ParameterError("must_not", must_not, "must leave at least one feature to rank by")
    bound = None if signs is None else _sign_of_each(signs, names, among)
    return Constraints(unpenalised, forbidden, bound)


def _sign_of_each(signs: Signs, names: Sequence[str], among: Sequence[str]) -> FloatArray:
    if isinstance(signs, Mapping):
        bound = np.zeros(len(names))
        given = [(feature, as_sign(sign, feature)) for feature, sign in signs.items()]
        for column, sign in by_column(given, names, "signs", among=among).items():
            bound[column] = sign
        return bound
    if isinstance(signs, str) or not isinstance(signs, Sequence | np.ndarray) or len(signs) != len(names):
        reason = f"must map features to signs or hold one sign for each of the {len(names)} features"
        raise ParameterError("signs", signs, reason)
    return np.array([as_sign(sign, name) for sign, name in zip(signs, names, strict=True)])
