"""Formats of numbers, names and curves in all output."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

OPTIMAL_GAP = 1e-14  # smaller relative gaps are rounding error of float64

USELESS_GAP = 0.1  # larger relative gaps prove nothing useful

SMALL_PERCENTAGE = 1e-3  # smaller ones are written with an exponent


def percent(share: float) -> str:
    """A share as a percentage with two significant digits: 0.00123 -> "0.12 %", 9.2e-7 -> "9.2e-5 %"."""
    value = 100.0 * share
    if 0.0 < abs(value) < SMALL_PERCENTAGE:
        return np.format_float_scientific(value, precision=1, trim="0", exp_digits=1) + " %"
    return np.format_float_positional(value, precision=2, fractional=False, trim="-") + " %"


def percent_text(share: float) -> str:
    """0.254 -> "25 %"."""
    return f"{100.0 * share:.0f} %"


def certificate(relative_gap: float | None) -> str:
    """What a relative duality gap proves about an objective; None if the method has no gap."""
    if relative_gap is None:
        return "without a proof of optimality"
    if relative_gap <= OPTIMAL_GAP:
        return "optimal up to rounding"
    if relative_gap > USELESS_GAP:
        return f"not proven to be close to optimal (gap {percent(relative_gap)})"
    return f"within {percent(relative_gap)} of the optimum"


def metric_title(metric: str) -> str:
    """ndcg@10 -> NDCG@10."""
    return metric.upper()


def metric_text(value: float) -> str:
    """Four decimals."""
    return f"{value:.4f}"


def metric_sentence(name: str, interval: tuple[float, float, float], queries: str, conventions: str) -> str:
    """``Held-out NDCG@10: 0.8472 (95 % CI 0.8119 to 0.8824; 160 queries; standard profile).``"""
    mean, low, high = map(metric_text, interval)
    return f"{name}: {mean} (95 % CI {low} to {high}; {queries}; {conventions})."


def p_value(p: float) -> str:
    """Two significant digits; "p < 0.0001" for smaller values."""
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.2g}"


def signed(value: float, digits: int = 4) -> str:
    """A number with its sign (U+2212 for minus), without a sign if it rounds to zero."""
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0.0 else text.replace("-", "−")


def weight_text(value: float) -> str:
    """A weight with five significant digits."""
    return f"{value:+.5g}".replace("-", "−") if value else "0"


def share_text(value: float) -> str:
    """A weight of a model scaled to Σ|w| = 1, with four decimals."""
    return signed(value) if value else "0"


def plural(count: int, noun: str, nouns: str = "") -> str:
    """``1 query``, ``2 queries``."""
    return f"{count} {noun if count == 1 else nouns or noun + 's'}"


def join_names(names: Sequence[str], most: int = 12) -> str:
    """``f1, f2 and f3``; more than ``most`` names are cut: ``f1, f2 and 3 more``."""
    if len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def value_texts(curve: Any) -> list[str]:
    """Values of each level: "below 7.5", "from 7.5 to 7.9", "from 7.9"."""
    if not curve.thresholds:
        return ["any value"]
    written = ([number(t, digits) for t in curve.thresholds] for digits in (5, 9, 17))
    texts = next(texts for texts in written if len({*texts}) == len(texts))
    inner = [f"from {low} to {high}" for low, high in pairwise(texts)]
    return [f"below {texts[0]}", *inner, f"from {texts[-1]}"]


def number(value: float, digits: int = 5) -> str:
    """A value of a feature; large numbers, which may be dates or ids, keep ten digits."""
    return f"{value:.{max(digits, 10 if abs(value) >= 1e4 else 0)}g}".replace("-", "−")


def level_text(level: float) -> str:
    """A level with its sign and three significant digits."""
    return f"{level:+#.3g}".rstrip(".").replace("-", "−") if level else "0"


def direction(curve: Any) -> str:
    """Whether the curve rises, falls, or does both (mixed)."""
    rises = curve.steps
    if not len(rises):
        return "only missing"
    return "rising" if (rises >= 0).all() else "falling" if (rises <= 0).all() else "mixed"


def by_range(curves: dict[str, Any]) -> dict[str, Any]:
    """Curves by decreasing range."""
    return dict(sorted(curves.items(), key=lambda one: -one[1].range))


CURVE_COLUMNS = ("range", "lowest", "highest", "steps", "direction")


def curve_cells(curve: Any) -> tuple[str, ...]:
    """Cells of ``CURVE_COLUMNS``; the lowest and highest levels are those of values, not of missing ones."""
    lowest, highest = level_text(min(curve.levels)), level_text(max(curve.levels))
    return (
        level_text(curve.range).removeprefix("+"),
        lowest,
        highest,
        str(len(curve.thresholds)),
        direction(curve),
    )
