"""Numbers in words, and as tables and sentences write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ranksieve.metrics.profiles import STANDARD

if TYPE_CHECKING:
    from ranksieve.metrics import Evaluation

ROUNDING = 1e-14  # below this a relative gap is rounding error of float64
FAR = 0.1  # above this a relative gap proves nothing of use


def percent(share: float) -> str:
    """A share as a percentage with two significant digits and no exponent: 9.2e-7 -> "0.000092 %"."""
    return np.format_float_positional(100.0 * share, precision=2, fractional=False, trim="-") + " %"


def percent_text(share: float) -> str:
    """0.254 -> "25 %"."""
    return f"{100.0 * share:.0f} %"


def certificate(relative_gap: float | None) -> str:
    """What a relative duality gap proves; None: the method has none."""
    if relative_gap is None:
        return "without a proof of how near the best possible objective it is"
    if relative_gap <= ROUNDING:
        return "equal to the best possible objective up to rounding"
    if relative_gap > FAR:
        return f"not proved to be near the best possible objective (gap {percent(relative_gap)})"
    return f"within {percent(relative_gap)} of the best possible objective"


def metric_title(metric: str) -> str:
    """ndcg@10 -> NDCG@10."""
    return metric.upper()


def metric_text(value: float) -> str:
    """Four decimals."""
    return f"{value:.4f}"


def p_value(p: float) -> str:
    """Two significant digits, and no zero."""
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.2g}"


def signed(value: float, digits: int = 4) -> str:
    """With its sign, a true minus, and no sign before a rounded zero."""
    written = f"{value:+.{digits}f}"
    return written[1:] if float(written) == 0.0 else written.replace("-", "−")


def weight_text(value: float) -> str:
    """A weight with five significant digits."""
    return f"{value:+.5g}".replace("-", "−") if value else "0"


def share_text(value: float) -> str:
    """A weight of a model that is scaled to Σ|w| = 1, with four decimals."""
    return signed(value) if value else "0"


def counted(count: int, noun: str, plural: str = "") -> str:
    """1 query, 2 queries."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def listed(names: Sequence[str], most: int = 12) -> str:
    """f1, f2 and f3; of many the first few and how many more."""
    if len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def short_lists(evaluation: Evaluation) -> str:
    """How many lists are too short to count, and for which metrics; nothing if none is."""
    if not evaluation.too_short:
        return ""
    counts, metrics = list(evaluation.too_short.values()), list(evaluation.too_short)
    one = counts == [1]
    return (
        f"{listed([str(count) for count in counts])} of {len(evaluation.query_ids)} queries "
        f"{'has' if one else 'have'} fewer than {listed([name.partition('@')[2] for name in metrics])} "
        f"documents; the {evaluation.profile.name} profile counts {'its' if one else 'their'} "
        f"{listed([metric_title(name) for name in metrics])} as 0 ({STANDARD.name} does not)."
    )
