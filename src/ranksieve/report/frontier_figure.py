"""The frontier as a plotly figure: accuracy against cost, or against features where nothing has a cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from ranksieve._util.messages import shortened
from ranksieve.estimators.frontier import pareto_optimal
from ranksieve.report.canvas import OTHER, PALETTE, Figure, axis, layout, text

SHOWN_NAMES = 12
HOVER = "%{x:.4g}: %{y:.4f}<br>%{text}<extra></extra>"
Candidate = TypeVar("Candidate", bound=Mapping[str, Any])


def frontier_figure(frontier: Mapping[str, Any]) -> Figure:
    """The figure of a frontier as :meth:`ranksieve.Frontier.to_dict` gives it.

    Grey: all candidates. Coloured by their number of features: the Pareto-optimal ones. Line: the best metric
    that a cost, or a number of features, can buy.
    """
    candidates = frontier["points"]
    x = "cost" if candidates[0]["cost"] is not None else "n_features"
    optimal = sorted((c for c in candidates if c["optimal"]), key=lambda c: (c[x], -c["mean"]))
    others = [c for c in candidates if not c["optimal"]]
    chosen = [c["features"] for c in optimal]
    by_features = {
        "size": 9,
        "color": [c["n_features"] for c in optimal],
        "colorscale": "Viridis",
        "colorbar": {"title": {"text": "features"}},
    }
    traces = [
        _scatter(others, x, "markers", "other candidates")
        | {"marker": {"size": 5, "color": OTHER, "opacity": 0.35}, "hovertemplate": HOVER}
        | {"text": [f"{c['n_features']} features, {text(c['family'])}" for c in others]},
        _scatter(pareto_front(optimal, x), x, "lines", "best so far")
        | {"line": {"shape": "hv", "width": 2, "color": PALETTE[0]}, "hoverinfo": "skip"},
        _scatter(optimal, x, "markers", "Pareto-optimal")
        | {"marker": by_features, "hovertemplate": HOVER}
        | {"text": [f"{len(names)} features: {text(shortened(names, SHOWN_NAMES))}" for names in chosen]},
    ]
    look = layout(
        520,
        showlegend=True,
        legend={"orientation": "h", "y": 1.08},
        xaxis=axis(x.replace("n_features", "features"), rangemode="tozero"),
        yaxis=axis(f"held-out {frontier['metric']}"),
    )
    return {"data": traces, "layout": look}


def _scatter(candidates: Sequence[Candidate], x: str, mode: str, name: str) -> Figure:
    places = {"x": [c[x] for c in candidates], "y": [c["mean"] for c in candidates]}
    return {"type": "scatter", **places, "mode": mode, "name": name}


def frontier_page(frontier: Mapping[str, Any]) -> str:
    """The figure as an HTML page that needs no network."""
    from plotly.io import to_html

    return str(to_html(frontier_figure(frontier), include_plotlyjs=True, full_html=True))


def pareto_front(candidates: Sequence[Candidate], cost: str, value: str = "mean") -> list[Candidate]:
    """The candidates that no other dominates in cost and value, by rising cost; of equal ones the first."""
    criteria = np.array([(c[cost], -c[value]) for c in candidates], dtype=np.float64).reshape(-1, 2)
    front = [c for c, optimal in zip(candidates, pareto_optimal(criteria), strict=True) if optimal]
    return sorted(front, key=lambda c: c[cost])
