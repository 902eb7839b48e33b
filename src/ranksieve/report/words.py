"""Numbers in words."""

from __future__ import annotations

import numpy as np

ROUNDING = 1e-14  # below this a relative gap is rounding error of float64


def percent(share: float) -> str:
    """A share as a percentage with two significant digits and no exponent: 9.2e-7 -> "0.000092 %"."""
    return np.format_float_positional(100.0 * share, precision=2, fractional=False, trim="-") + " %"


def certificate(relative_gap: float | None) -> str:
    """What a relative duality gap proves; None: the method has none."""
    if relative_gap is None:
        return "without a proof of how near the best possible objective it is"
    if relative_gap <= ROUNDING:
        return "equal to the best possible objective up to rounding"
    return f"within {percent(relative_gap)} of the best possible objective"
