"""How large and how small the numbers may be that rankers learn from: 0, or from 1e-30 to 1e+30.

Within these ends squares of squares, and sums and products of them, are ordinary numbers; and single
precision, in which LightGBM keeps weights, holds the numbers themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranksieve._types import BoolArray, FloatArray
from ranksieve.errors import DataError

LEAST, LARGEST = 1e-30, 1e30
ENDS = f"from {LEAST:g} to {LARGEST:g}"


def beyond(sizes: FloatArray) -> BoolArray:
    """Which sizes are neither 0 nor between the ends."""
    return np.asarray((sizes != 0) & ~((sizes >= LEAST) & (sizes <= LARGEST)))


def check_features(spread: FloatArray, largest: FloatArray, names: Sequence[str] | None = None) -> None:
    """Refuse a feature that is too large, or varies too little; ``spread`` is max − min within a query."""
    if (largest > LARGEST).any():
        j = int(np.argmax(largest))
        reason = (
            f"{_called(j, names)} has values as large as {largest[j]:.3g}; rankers learn from features up to "
            f"{LARGEST:g}: divide it by a power of ten"
        )
        raise DataError(None, None, reason)
    if (little := np.flatnonzero((spread > 0) & (spread < LEAST))).size:
        j = int(little[0])
        reason = (
            f"{_called(j, names)} varies by {spread[j]:.3g} within a query; rankers learn from features that "
            f"vary by 0 or at least {LEAST:g}: multiply it by a power of ten, or leave it out"
        )
        raise DataError(None, None, reason)


def check_labels(extremes: FloatArray) -> None:
    """Refuse labels that are too large to learn from; given are those of both ends."""
    largest = float(extremes[np.argmax(np.abs(extremes))])
    if abs(largest) > LARGEST:
        reason = f"a label is {largest:g}; labels must be from {-LARGEST:g} to {LARGEST:g} to learn from them"
        raise DataError(None, None, reason)


def _called(j: int, names: Sequence[str] | None) -> str:
    return f"the feature in column {j}" if names is None else f"feature {names[j]}"
