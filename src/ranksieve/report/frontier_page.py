"""The frontier as a figure and a page: accuracy against cost or number of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ranksieve._util.messages import shortened
from ranksieve._version import __version__
from ranksieve.rankers.frontier import pareto_optimal
from ranksieve.report.page import (
    OTHER,
    PALETTE,
    Figure,
    axis,
    counted,
    layout,
    listed,
    metric_text,
    metric_title,
    percent_text,
    render_page,
)

SHOWN_NAMES = 12
HOVER = "{x:.4g}: {y:.4f}\n{text}"
FEW, MANY = PALETTE[1], PALETTE[0]  # colours of the models with the fewest and the most features
Candidate = TypeVar("Candidate", bound=Mapping[str, Any])


def frontier_figure(frontier: Mapping[str, Any]) -> Figure:
    """The figure of a frontier as :meth:`ranksieve.Frontier.to_dict` gives it.

    Grey: candidates that another one dominates. Coloured by their number of features: the Pareto-optimal
    ones. Line: the best metric that a cost, or a number of features, can buy.
    """
    candidates, x = frontier["points"], paid_in(frontier)
    optimal = sorted((c for c in candidates if c["optimal"]), key=lambda c: (c[x], -c["mean"]))
    others = [c for c in candidates if not c["optimal"]]
    bought = "cost" if x == "cost" else "number of features"
    colours = [] if not optimal else _shades([c["n_features"] for c in optimal])
    words = "Pareto-optimal (orange: few features, blue: many)" if x == "cost" else "Pareto-optimal"
    traces = [
        _scatter(others, x, "markers", "dominated: another is as good for less")
        | {"marker": {"size": 5, "color": OTHER, "opacity": 0.45}, "hover": HOVER}
        | {"text": [f"{counted(c['n_features'], 'feature')}, {c['family']}, dominated" for c in others]},
        _scatter(pareto_front(optimal, x), x, "lines", f"best for its {bought}")
        | {"line": {"shape": "hv", "width": 2, "color": PALETTE[2]}},
        _scatter(optimal, x, "markers", words)
        | {"marker": {"size": 9, "color": colours}, "hover": HOVER}
        | {
            "text": [
                f"{counted(c['n_features'], 'feature')}: {shortened(c['features'], SHOWN_NAMES)}"
                for c in optimal
            ]
        },
    ]
    look = layout(
        460,
        showlegend=True,
        xaxis=axis("cost" if x == "cost" else "features", rangemode="tozero", dtick=int(x != "cost")),
        yaxis=axis(f"held-out {metric_title(frontier['metric'])}"),
    )
    return {"data": traces, "layout": look}


def paid_in(frontier: Mapping[str, Any]) -> str:
    """What its candidates are paid in: "cost", or "n_features" where nothing has a cost."""
    return "n_features" if frontier["points"][0]["cost"] is None else "cost"


def frontier_steps(frontier: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The points that buy more than any cheaper one, the cheapest first."""
    return pareto_front([point for point in frontier["points"] if point["optimal"]], paid_in(frontier))


def _shades(counts: Sequence[int]) -> list[str]:
    """A colour for each number of features, from ``FEW`` to ``MANY``."""
    ends = np.array([[int(colour[k : k + 2], 16) for k in (1, 3, 5)] for colour in (FEW, MANY)])
    share = (np.array(counts) - min(counts)) / max(max(counts) - min(counts), 1)
    mixed = ends[0] + share[:, None] * (ends[1] - ends[0])
    return ["#{:02x}{:02x}{:02x}".format(*rgb) for rgb in mixed.round().astype(int).tolist()]


def _scatter(candidates: Sequence[Candidate], x: str, mode: str, name: str) -> Figure:
    places = {"x": [c[x] for c in candidates], "y": [c["mean"] for c in candidates]}
    return {"type": "scatter", **places, "mode": mode, "name": name}


def pareto_front(candidates: Sequence[Candidate], cost: str, value: str = "mean") -> list[Candidate]:
    """The candidates that no other dominates in cost and value, by rising cost; of equal ones the first."""
    criteria = np.array([(c[cost], -c[value]) for c in candidates], dtype=np.float64).reshape(-1, 2)
    front = [c for c, optimal in zip(candidates, pareto_optimal(criteria), strict=True) if optimal]
    return sorted(front, key=lambda c: c[cost])


NEARLY = 0.99  # of the best metric


@dataclass(frozen=True)
class FrontierPage:
    """What the template shows."""

    found: Mapping[str, Any]
    title: str = "What features and cost buy"

    @property
    def priced(self) -> bool:
        return paid_in(self.found) == "cost"

    @property
    def metric(self) -> str:
        return metric_title(self.found["metric"])

    @property
    def steps(self) -> Sequence[Mapping[str, Any]]:
        return frontier_steps(self.found)

    @property
    def sentences(self) -> list[str]:
        """The best there is, and the first step that is nearly as good."""
        points, steps = self.found["points"], self.steps
        if not steps:
            return [f"None of the {counted(len(points), 'model')} uses a feature."]
        best, nearly = steps[-1], next(s for s in steps if s["mean"] >= NEARLY * steps[-1]["mean"])
        told = [f"The best held-out {self.metric} is {metric_text(best['mean'])}, with {self._paid(best)}."]
        if nearly is not best:
            share = percent_text(NEARLY)
            told.append(f"{share} of it takes {self._paid(nearly)}: {listed(nearly['features'], 8)}.")
        optimal = sum(point["optimal"] for point in points)
        compared = counted(len(points), "model was", "models were")
        return [*told, f"{compared} compared; {optimal} are best for what they use."]

    def _paid(self, step: Mapping[str, Any]) -> str:
        price = f" at a cost of {step['cost']:g}" if self.priced else ""
        return counted(step["n_features"], "feature") + price


def frontier_page(found: Mapping[str, Any]) -> str:
    """The page as text, of what :meth:`ranksieve.Frontier.to_dict` gives."""
    data = {"figures": {"frontier": frontier_figure(found)}}
    return render_page("frontier.html.j2", data, content=FrontierPage(found), version=__version__)
