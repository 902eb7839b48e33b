"""Dot plot of results: one dot per row on a logarithmic axis, with a line from lowest to highest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from benchmarks.competitors import RANKSIEVE

LEFT, WIDTH, ROW, TOP = 420, 860, 18, 46
RANKSIEVE_COLOUR, COMPETITOR_COLOUR, GRID = "#0b6e4f", "#8a8d91", "#d9dcdf"


def dot_plot(title: str, rows: Sequence[dict[str, Any]]) -> str:
    """SVG of the rows, grouped by data set and measurement; empty without rows."""
    if not rows:
        return ""
    low = math.floor(math.log10(min(max(row["low"], 1e-9) for row in rows)))
    high = math.ceil(math.log10(max(row["high"] for row in rows)))
    high = max(high, low + 1)

    def x(value: float) -> float:
        share = (math.log10(max(value, 10.0**low)) - low) / (high - low)
        return LEFT + share * (WIDTH - LEFT - 30)

    marks, y, group = [], TOP, None
    for row in rows:
        heading = f"{row['data']}: {row['what']}"
        if heading != group:
            group, y = heading, y + ROW + 4
            marks.append(_text(6, y, heading, "start", "bold"))
        y += ROW
        colour = RANKSIEVE_COLOUR if row["competitor"] == RANKSIEVE else COMPETITOR_COLOUR
        marks.append(_text(LEFT - 12, y, row["competitor"], "end", "normal"))
        marks.append(
            f'<line x1="{x(row["low"]):.1f}" x2="{x(row["high"]):.1f}" y1="{y - 4}" y2="{y - 4}" '
            f'stroke="{colour}" stroke-width="3" stroke-opacity="0.45"/>'
            f'<circle cx="{x(row["median"]):.1f}" cy="{y - 4}" r="4.5" fill="{colour}"/>'
        )
    grid = [_decade(x(10.0**k), 10.0**k, rows[0]["unit"], y) for k in range(low, high + 1)]
    box = f'viewBox="0 0 {WIDTH} {y + 16}" font-family="sans-serif" font-size="12"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {box}>'
    background = f'<rect width="{WIDTH}" height="{y + 16}" fill="#ffffff"/>'
    heading = f'<text x="6" y="18" font-size="15" font-weight="bold">{escape(title)}</text>'
    return "\n".join(
        [head, f"<title>{escape(title)}</title>", background, heading, *grid, *marks, "</svg>", ""]
    )


def _text(x: float, y: float, text: str, anchor: str, weight: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-weight="{weight}">{escape(text)}</text>'


def _decade(x: float, value: float, unit: str, bottom: float) -> str:
    line = f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}" stroke="{GRID}"/>'
    return line + f'<text x="{x:.1f}" y="{TOP - 6}" text-anchor="middle">{value:g} {escape(unit)}</text>'
