"""Horizontal bars as rows of a table: they need no script, and their texts are the text alternative."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ranksieve.show.formats import signed

MAX_BARS = 12  # the rest is added up


@dataclass(frozen=True)
class Part:
    """Something that is added to a sum, with a detail such as the value of the feature."""

    name: str
    value: float
    detail: str = ""


@dataclass(frozen=True)
class Bar:
    """A bar from ``start``, ``width`` long, in % of the track; ``kind``: up, down or total."""

    name: str
    text: str
    start: float
    width: float
    kind: str
    detail: str = ""


@dataclass(frozen=True)
class Bars:
    """Bars below one another; ``zero`` is a line at 0 or at another value to compare with, in %."""

    title: str
    bars: Sequence[Bar]
    zero: float
    heads: tuple[str, str]


def value_bars(
    title: str, heads: tuple[str, str], values: Sequence[tuple[str, float, str]], most: float, line: float
) -> Bars:
    """Bars from 0, of (name, value, text), on a track that ends at ``most``; ``line`` is a value too."""
    bars = [Bar(name, text, 0.0, 100 * value / most, "up") for name, value, text in values]
    return Bars(title, bars, 100 * line / most, heads)


def waterfall(title: str, parts: Sequence[Part], total: Part, heads: tuple[str, str]) -> Bars:
    """Bars that begin where the one before ends, the largest first; the last one is their sum.

    After ``MAX_BARS`` the rest is added up. The sum is that of the model, ``total``.
    """
    ordered = sorted((part for part in parts if part.value), key=lambda part: -abs(part.value))
    shown, rest = ordered[:MAX_BARS], ordered[MAX_BARS:]
    if rest:
        shown.append(Part(f"{len(rest)} others", sum(part.value for part in rest)))
    ends = [0.0]
    for part in shown:
        ends.append(ends[-1] + part.value)
    low, high = min(*ends, total.value), max(*ends, total.value)
    span = (high - low) or 1.0

    digits = 0 if all(float(part.value).is_integer() for part in (*shown, total)) else 4

    def bar(part: Part, start: float, end: float, kind: str) -> Bar:
        left, right = sorted((start, end))
        text = signed(part.value, digits)
        return Bar(part.name, text, 100 * (left - low) / span, 100 * (right - left) / span, kind, part.detail)

    steps = zip(shown, ends, ends[1:], strict=False)
    bars = [bar(part, start, end, "up" if part.value > 0 else "down") for part, start, end in steps]
    return Bars(title, [*bars, bar(total, 0.0, total.value, "total")], 100 * -low / span, heads)
