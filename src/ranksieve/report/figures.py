"""Plotly figures as plain dictionaries; the page gives them the colours of its scheme."""

from __future__ import annotations

from html import escape
from itertools import chain
from math import log10
from typing import Any

from ranksieve.report.content import Curves

PALETTE = ("#3b8fd6", "#e08a00", "#1fa37a", "#d9534f", "#b06ad4", "#2bb5c4", "#8a9a1b", "#d9669b")
OTHER = "#9aa0a8"
CHOSEN = "#7f8791"


def path_figure(curves: Curves, named: list[str]) -> dict[str, Any]:
    """Weights, validation metric and number of features against α; ``named`` features have colours."""
    rows = (_weight_lines(curves, named), _metric_lines(curves), [_count_line(curves)])
    return {"data": list(chain(*rows)), "layout": _layout(curves)}


def colours(named: list[str]) -> dict[str, str]:
    """The colour of each feature; those beyond the palette share one."""
    return {name: PALETTE[k] if k < len(PALETTE) else OTHER for k, name in enumerate(named)}


def _weight_lines(curves: Curves, named: list[str]) -> list[dict[str, Any]]:
    colour = colours(named)
    order = sorted(curves.weights, key=lambda name: name in colour)  # coloured lines lie on top
    return [
        _line(curves.alphas, curves.weights[name], "y", colour.get(name, OTHER))
        | {"name": escape(name, quote=False), "opacity": 1.0 if name in colour else 0.45}
        for name in order
    ]


def _metric_lines(curves: Curves) -> list[dict[str, Any]]:
    # Without the empty models, whose input order would stretch the axis.
    shown = [k for k, count in enumerate(curves.n_nonzero) if count > 0 or k == curves.chosen]
    alphas, mean = [curves.alphas[k] for k in shown], [curves.mean[k] for k in shown]
    low = [curves.mean[k] - curves.standard_error[k] for k in shown]
    high = [curves.mean[k] + curves.standard_error[k] for k in shown]
    band = {
        "type": "scatter",
        "x": alphas + alphas[::-1],
        "y": low + high[::-1],
        "xaxis": "x",
        "yaxis": "y2",
        "fill": "toself",
        "fillcolor": "rgba(59,143,214,0.2)",
        "line": {"width": 0},
        "hoverinfo": "skip",
    }
    name = escape(curves.metric, quote=False)
    point = {
        "type": "scatter",
        "x": [curves.alphas[curves.chosen]],
        "y": [curves.mean[curves.chosen]],
        "xaxis": "x",
        "yaxis": "y2",
        "mode": "markers",
        "marker": {"size": 10, "color": PALETTE[1]},
        "name": "chosen",
    }
    return [band, _line(alphas, mean, "y2", PALETTE[0]) | {"name": name}, point]


def _count_line(curves: Curves) -> dict[str, Any]:
    line = _line(curves.alphas, curves.n_nonzero, "y3", PALETTE[2])
    line["line"]["shape"] = "hv"
    return line | {"name": "features", "hovertemplate": "α = %{x:.3g}: %{y} features<extra></extra>"}


def _line(x: list[float], y: list[Any], axis: str, colour: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "y": y,
        "xaxis": "x",
        "yaxis": axis,
        "line": {"color": colour, "width": 2},
        "hovertemplate": "%{fullData.name}<br>α = %{x:.3g}<br>%{y:.4g}<extra></extra>",
    }


def _layout(curves: Curves) -> dict[str, Any]:
    chosen = curves.alphas[curves.chosen]
    mark = {"type": "line", "xref": "x", "yref": "paper", "x0": chosen, "x1": chosen, "y0": 0, "y1": 1}
    # On a log axis plotly places shapes by value but annotations by exponent.
    label = {"xref": "x", "yref": "paper", "x": log10(chosen), "y": 1, "yanchor": "bottom"}
    return {
        "height": 760,
        "margin": {"l": 62, "r": 12, "t": 28, "b": 48},
        "showlegend": False,
        "hovermode": "closest",
        "font": {"family": "system-ui, sans-serif", "size": 13},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "xaxis": {
            "type": "log",
            "autorange": "reversed",
            "exponentformat": "power",
            "dtick": "D2",
            "anchor": "y3",
            "title": {"text": "α, strong to weak"},
        },
        "yaxis": {"domain": [0.5, 1.0], "title": {"text": "weight"}, "zeroline": True},
        "yaxis2": {"domain": [0.22, 0.45], "title": {"text": escape(curves.metric, quote=False)}},
        "yaxis3": {"domain": [0.0, 0.17], "title": {"text": "features"}, "rangemode": "tozero"},
        "shapes": [mark | {"line": {"color": CHOSEN, "dash": "dot", "width": 1.5}}],
        "annotations": [label | {"text": "chosen", "showarrow": False}],
    }
