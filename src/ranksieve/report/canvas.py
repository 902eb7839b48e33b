"""What all figures share: plain dictionaries that figure.js draws, colours, compact numbers.

A figure is ``{"data": [trace, …], "layout": layout}``. A trace has a ``type`` (scatter, band, bar, cells,
net), values, and ``hover``, what is shown beside the pointer, such as ``"{name}: {y:.4f}"``. Its ``yaxis``
"y2" means the layout's ``yaxis2``; the ``domain`` of an axis is its share of the height. All text is shown
as it is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Figure = dict[str, Any]
PALETTE = ("#3b8fd6", "#e08a00", "#1fa37a", "#d9534f", "#b06ad4", "#2bb5c4", "#8a9a1b", "#d9669b")
MORE = ("#6b78e0", "#a0724a", "#c9a400", "#5f8f8f")
OTHER = "#9aa0a8"
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "star", "triangle-down", "pentagon")
DASHES = ("solid", "dash", "dot", "dashdot")
LEADING_ZERO = re.compile(r"(?<!\d)0\.")
DIGITS = 5  # significant, in what a page holds


@dataclass(frozen=True)
class Style:
    """How a method looks in all pictures."""

    title: str
    colour: str
    symbol: str
    dash: str


Styles = Mapping[str, Style]


def make_styles(titles: Mapping[str, str]) -> dict[str, Style]:
    """A colour and a symbol for each name; beyond the twelve colours the dash changes."""
    colours = PALETTE + MORE
    return {
        name: Style(
            title,
            colours[k % len(colours)],
            SYMBOLS[k % len(SYMBOLS)],
            DASHES[k // len(colours) % len(DASHES)],
        )
        for k, (name, title) in enumerate(titles.items())
    }


def layout(height: int, **parts: Any) -> dict[str, Any]:
    """Axes and what else a figure has beside its traces; ``height`` is in pixels, without names below."""
    return {"height": height, "showlegend": False, **parts}


def axis(title: str, **options: Any) -> dict[str, Any]:
    """An axis; ``type`` is linear, log or category, ``dtick`` the least distance of ticks."""
    return {"title": title, **options}


def log_axis(title: str, **options: Any) -> dict[str, Any]:
    """A logarithmic axis with ticks at powers of ten only."""
    return axis(title, type="log", **options)


def method_line(style: Style, name: str, x: Iterable[Any], y: Iterable[Any], **options: Any) -> Figure:
    """A line in the colour of its method; the page's legend shows and hides it by ``legendgroup``."""
    return {
        "type": "scatter",
        "mode": "lines",
        "name": style.title,
        "legendgroup": name,
        "x": list(x),
        "y": list(y),
        "line": {"color": style.colour, "dash": style.dash, "width": 2},
        "marker": {"color": style.colour, "symbol": style.symbol, "size": 7},
        **options,
    }


def faint(colour: str) -> str:
    """A colour #rrggbb with an opacity of 17 %."""
    red, green, blue = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.17)"


def packed(values: Iterable[float | None], digits: int = DIGITS) -> str:
    """Numbers with commas between them, nothing for None and at the end; shorter than JSON."""
    written = ("" if value is None else f"{value:.{digits}g}" for value in values)
    return ",".join(LEADING_ZERO.sub(".", text) for text in written).rstrip(",")


def compact(value: Any) -> Any:
    """As JSON holds it, with five significant digits; what is not finite becomes None."""
    if isinstance(value, np.ndarray | np.generic):
        return compact(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): compact(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [compact(item) for item in value]
    if isinstance(value, float):
        short = float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
        return int(short) if short is not None and short == int(short) else short
    return value
