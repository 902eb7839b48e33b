"""The frontier as a plotly figure: accuracy against cost, or against features where nothing has a cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ranksieve.report.canvas import OTHER, PALETTE, Figure, axis, layout, text

SHOWN_NAMES = 12
HOVER = "%{x:.4g}: %{y:.4f}<br>%{text}<extra></extra>"
Point = dict[str, Any]


def frontier_figure(frontier: Mapping[str, Any]) -> Figure:
    """The figure of a frontier as :meth:`ranksieve.Frontier.to_dict` gives it.

    Grey: all candidates. Coloured by their number of features: the Pareto-optimal ones. Line: the best metric
    that a cost, or a number of features, can buy.
    """
    points = frontier["points"]
    burden = "cost" if points[0]["cost"] is not None else "n_features"
    optimal = sorted((p for p in points if p["optimal"]), key=lambda p: (p[burden], -p["mean"]))
    beaten = [p for p in points if not p["optimal"]]
    traces = [_beaten(beaten, burden), _staircase(optimal, burden), _optimal(optimal, burden)]
    return {"data": traces, "layout": _layout(frontier["metric"], burden)}


def frontier_page(frontier: Mapping[str, Any]) -> str:
    """The figure as an HTML page that needs no network."""
    from plotly.io import to_html

    return str(to_html(frontier_figure(frontier), include_plotlyjs=True, full_html=True))


def staircase(points: list[Point], burden: str) -> list[Point]:
    """The points that no cheaper one reaches, by rising cost or number of features."""
    steps: list[Point] = []
    for point in sorted(points, key=lambda p: (p[burden], -p["mean"])):
        if not steps or point["mean"] > steps[-1]["mean"]:
            steps.append(point)
    return steps


def _beaten(points: list[Point], burden: str) -> Figure:
    return _scatter(points, burden) | {
        "mode": "markers",
        "name": "other candidates",
        "marker": {"size": 5, "color": OTHER, "opacity": 0.35},
        "text": [f"{p['n_features']} features, {text(p['family'])}" for p in points],
        "hovertemplate": HOVER,
    }


def _staircase(points: list[Point], burden: str) -> Figure:
    return _scatter(staircase(points, burden), burden) | {
        "mode": "lines",
        "name": "best so far",
        "line": {"shape": "hv", "width": 2, "color": PALETTE[0]},
        "hoverinfo": "skip",
    }


def _optimal(points: list[Point], burden: str) -> Figure:
    colours = {
        "color": [p["n_features"] for p in points],
        "colorscale": "Viridis",
        "colorbar": {"title": {"text": "features"}},
    }
    return _scatter(points, burden) | {
        "mode": "markers",
        "name": "Pareto-optimal",
        "marker": {"size": 9, **colours},
        "text": [f"{p['n_features']} features: {_listed(p['features'])}" for p in points],
        "hovertemplate": HOVER,
    }


def _scatter(points: list[Point], burden: str) -> Figure:
    return {"type": "scatter", "x": [p[burden] for p in points], "y": [p["mean"] for p in points]}


def _listed(names: list[str]) -> str:
    more = len(names) - SHOWN_NAMES
    return text(", ".join(names[:SHOWN_NAMES])) + (f" and {more} more" if more > 0 else "")


def _layout(metric: str, burden: str) -> dict[str, Any]:
    return layout(
        520,
        showlegend=True,
        legend={"orientation": "h", "y": 1.08},
        xaxis=axis(burden.replace("n_features", "features"), rangemode="tozero"),
        yaxis=axis(f"held-out {metric}"),
    )
