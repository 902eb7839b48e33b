"""Plotly figures as plain dictionaries; the page gives them the colours of its scheme."""

from __future__ import annotations

from itertools import chain
from math import log10
from typing import Any

from ranksieve.report.canvas import OTHER, PALETTE, Figure, axis, faint, layout, text
from ranksieve.report.gains import Gains
from ranksieve.report.paths import Curves
from ranksieve.report.words import metric_title

CHOSEN = "#7f8791"
CURSOR = "#d9534f"


def path_figure(curves: Curves, named: list[str]) -> Figure:
    """Weights, validation metric and number of features against α; ``named`` features have colours."""
    rows = (_weight_lines(curves, named), _metric_lines(curves), [_count_line(curves)])
    return {"data": list(chain(*rows)), "layout": _layout(curves)}


def colours(named: list[str]) -> dict[str, str]:
    """The colour of each feature; those beyond the palette share one."""
    return {name: PALETTE[k] if k < len(PALETTE) else OTHER for k, name in enumerate(named)}


def gains_figure(gains: Gains) -> Figure:
    """The frame for one bar a query; the page fills in the bars of the method that is chosen."""
    hover = "query %{customdata[0]}: %{y:+.4f}<br>%{customdata[1]:.4f} against %{customdata[2]:.4f}"
    bars = {"type": "bar", "hovertemplate": f"{hover}<extra></extra>"}
    axes = {
        "xaxis": axis("queries that differ, by falling gain", showgrid=False),
        "yaxis": axis(f"change of {metric_title(gains.metric)}", zeroline=True),
    }
    return {"data": [bars], "layout": layout(320, **axes, bargap=0)}


def _weight_lines(curves: Curves, named: list[str]) -> list[dict[str, Any]]:
    colour = colours(named)
    order = sorted(curves.weights, key=lambda name: name in colour)  # coloured lines lie on top
    return [
        _line(curves.alphas, curves.weights[name], "y", colour.get(name, OTHER))
        | {"name": text(name), "opacity": 1.0 if name in colour else 0.45}
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
        "fillcolor": faint(PALETTE[0]),
        "line": {"width": 0},
        "hoverinfo": "skip",
    }
    name = f"validation {metric_title(curves.metric)}"
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
    lines = [band, _line(alphas, mean, "y2", PALETTE[0]) | {"name": text(name)}, point]
    if curves.test:
        test = _line(alphas, [curves.test[k] for k in shown], "y2", PALETTE[3])
        lines.append(test | {"name": f"test {text(metric_title(curves.metric))}"})
    return lines


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
    return layout(
        620,
        xaxis=axis(
            "α, strong to weak",
            type="log",
            autorange="reversed",
            exponentformat="power",
            dtick="D2",
            anchor="y3",
        ),
        yaxis=axis("weight", domain=[0.5, 1.0], zeroline=True),
        yaxis2=axis(metric_title(curves.metric), domain=[0.22, 0.45]),
        yaxis3=axis("features", domain=[0.0, 0.17], rangemode="tozero"),
        shapes=[
            mark | {"line": {"color": CHOSEN, "dash": "dot", "width": 1.5}},
            mark | {"line": {"color": CURSOR, "width": 1.5}},  # moves with the slider
        ],
        annotations=[label | {"text": "chosen", "showarrow": False}],
    )
