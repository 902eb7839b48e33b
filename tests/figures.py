"""Check that a figure uses only the features that figure.js supports."""

from __future__ import annotations

import re
from typing import Any

FORMAT = re.compile(r"\{(name|x|y|text|data|row|value|theta|r)(\.\d)?(:\+?\.\d[fge%])?\}")
LINE = {"color", "width", "dash", "shape"}
MARKER = {"color", "size", "symbol", "opacity"}
SHARED = {"type", "name", "legendgroup", "showlegend", "xaxis", "yaxis", "hover"}
TRACES = {
    "scatter": {"x", "y", "mode", "line", "marker", "opacity", "text", "customdata", "error_y"},
    "band": {"x", "low", "high", "color"},
    "bar": {"x", "y", "marker", "gap"},
    "steps": {"x", "y", "text", "line", "fill"},
    "cells": {"x", "rows", "values", "colours"},
    "net": {"theta", "r", "line", "marker", "fillcolor"},
}
AXIS = {
    "title", "type", "dtick", "domain", "range", "rangemode", "anchor", "tickformat", "tickvals", "ticktext",
    "categories", "reversed", "zeroline", "showgrid",
}  # fmt: skip
SHAPE = {"type", "xref", "yref", "x0", "x1", "y0", "y1", "line", "fillcolor", "opacity"}
NOTE = {"text", "x", "y", "xref", "yref", "xanchor", "ax", "ay", "name"}


def assert_drawable(figure: dict[str, Any]) -> None:
    """Assert that figure.js reads every part of the figure."""
    assert figure.keys() == {"data", "layout"}
    for trace in figure["data"]:
        assert trace.keys() <= SHARED | TRACES[trace["type"]], trace.keys()
        assert trace.get("line", {}).keys() <= LINE
        assert trace.get("marker", {}).keys() <= MARKER
        assert "{" not in FORMAT.sub("", trace.get("hover", ""))
        assert axis_of(figure, trace, "x") is not None or trace["type"] == "net"
        assert axis_of(figure, trace, "y") is not None or trace["type"] == "net"
    for key, value in figure["layout"].items():
        if key[1:5] == "axis":
            assert value.keys() <= AXIS, value.keys()
        else:
            assert key in ("height", "showlegend", "alt", "shapes", "annotations", "net"), key
    assert all(shape.keys() <= SHAPE for shape in figure["layout"].get("shapes", ()))
    assert all(note.keys() <= NOTE for note in figure["layout"].get("annotations", ()))


def axis_of(figure: dict[str, Any], trace: dict[str, Any], letter: str) -> dict[str, Any] | None:
    """The axis that a trace is drawn on."""
    return figure["layout"].get(f"{letter}axis{trace.get(f'{letter}axis', letter)[1:]}")
