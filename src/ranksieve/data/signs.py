"""The signs that weights are bound to."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksieve.data.byte_source import PathLike
from ranksieve.data.feature_table import feature_rows
from ranksieve.data.text_file import read_text

WORDS = {"+": 1.0, "-": -1.0, "−": -1.0}


def as_sign(sign: Any, feature: Any, place: str = "signs") -> float:
    """ "+", "-", "0", +1, −1 or 0 as a number."""
    try:
        number = float(WORDS.get(sign, sign))
    except (TypeError, ValueError):
        number = np.nan
    if number not in (-1.0, 0.0, 1.0):
        raise ValueError(
            f"{place}: {sign!r} for {feature!r} is no sign; give + (a larger value never lowers a rank), "
            "- (never raises it) or 0 (either)"
        )
    return number


def read_signs(path: PathLike) -> dict[str, float]:
    """Read the signs of features: CSV or TSV with the header ``feature,sign``, the signs +, - or 0."""
    rows = feature_rows(read_text(path), path, ("sign",))
    return {feature: as_sign(row.cells["sign"], feature, row.place) for feature, row in rows.items()}
