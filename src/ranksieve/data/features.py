"""Features by name or number, and the signs that their weights may have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, TypeAlias

import numpy as np

from ranksieve._types import BoolArray

Feature: TypeAlias = str | int
"""A feature by its name or by its column, counted from 0."""
SHOWN_NAMES = 8
SIGNS = {"+": 1.0, "-": -1.0, "−": -1.0}


def as_mask(features: Feature | Iterable[Feature], names: Sequence[str], role: str) -> BoolArray:
    """Which columns the features are."""
    if isinstance(features, str) or not isinstance(features, Iterable):
        features = [features]
    mask = np.zeros(len(names), dtype=bool)
    mask[[column_of(feature, names, role) for feature in features]] = True
    return mask


def column_of(feature: Feature, names: Sequence[str], role: str) -> int:
    """The column of one feature; ``role`` says in the error message where it was named."""
    if not isinstance(feature, str):
        if isinstance(feature, bool) or not isinstance(feature, int | np.integer):
            raise ValueError(
                f"{role}: {feature!r} is neither a name nor a column number; give text or a whole number "
                f"from 0 to {len(names) - 1}"
            )
        if 0 <= feature < len(names):
            return int(feature)
        raise ValueError(f"{role}: there is no column {feature}; the columns are 0 to {len(names) - 1}")
    if feature not in names:
        raise ValueError(f"{role}: {unknown_feature(feature, names)}")
    return names.index(feature)


def unknown_feature(name: str, names: Sequence[str]) -> str:
    """A sentence about an unknown name, with the nearest known one."""
    nearest = get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f" (did you mean {nearest[0]!r}?)" if nearest else ""
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return f"unknown feature {name!r}{hint}; the data have {', '.join(names[:SHOWN_NAMES])}{more}"


def as_sign(sign: Any, feature: Any, place: str = "signs") -> float:
    """ "+", "-", "0", +1, −1 or 0 as a number."""
    try:
        number = float(SIGNS.get(sign, sign))
    except (TypeError, ValueError):
        number = np.nan
    if number not in (-1.0, 0.0, 1.0):
        raise ValueError(
            f"{place}: {sign!r} for {feature!r} is not a sign; give + (a larger value never lowers a rank), "
            "- (never raises it) or 0 (either)"
        )
    return number
