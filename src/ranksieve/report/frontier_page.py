"""The frontier as a figure and a page: accuracy against cost or number of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from ranksieve._version import __version__
from ranksieve.errors import shortened
from ranksieve.rankers.frontier import pareto_optimal
from ranksieve.report.page import (
    OTHER,
    PALETTE,
    Figure,
    axis,
    counted,
    layout,
    line,
    listed,
    marks,
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
    """The figure of a frontier as :meth:`ranksieve.rankers.frontier.Frontier.to_dict` gives it.

    Grey: candidates that another one dominates. Coloured by their number of features: the Pareto-optimal
    ones. Line: the best metric that a cost, or a number of features, can buy.
    """
    candidates, x = frontier["points"], paid_in(frontier)
    optimal = sorted((c for c in candidates if c["optimal"]), key=lambda c: (c[x], -c["mean"]))
    others = [c for c in candidates if not c["optimal"]]
    front = pareto_front(optimal, x)
    bought = "cost" if x == "cost" else "number of features"
    colours = [] if not optimal else _shades([c["n_features"] for c in optimal])
    words = "Pareto-optimal (orange: few features, blue: many)" if x == "cost" else "Pareto-optimal"
    dominated = [f"{counted(c['n_features'], 'feature')}, {c['family']}, dominated" for c in others]
    names = [
        f"{counted(c['n_features'], 'feature')}: {shortened(c['features'], SHOWN_NAMES)}" for c in optimal
    ]
    grey = {"marker": {"opacity": 0.45}, "text": dominated, "hover": HOVER}
    steps = line(*_places(front, x), f"best for its {bought}", PALETTE[2])
    steps["line"]["shape"] = "hv"
    traces = [
        marks(*_places(others, x), "dominated: another is as good for less", OTHER, 5, **grey),
        steps,
        marks(*_places(optimal, x), words, colours, 9, text=names, hover=HOVER),
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


def _places(candidates: Sequence[Candidate], x: str) -> tuple[list[float], list[float]]:
    return [c[x] for c in candidates], [c["mean"] for c in candidates]


def pareto_front(candidates: Sequence[Candidate], cost: str, value: str = "mean") -> list[Candidate]:
    """The candidates that no other dominates in cost and value, by rising cost; of equal ones the first."""
    criteria = np.array([(c[cost], -c[value]) for c in candidates], dtype=np.float64).reshape(-1, 2)
    front = [c for c, optimal in zip(candidates, pareto_optimal(criteria), strict=True) if optimal]
    return sorted(front, key=lambda c: c[cost])


NEARLY = 0.99  # of the best metric


def frontier_page(frontier: Mapping[str, Any]) -> str:
    """The page as text, of what :meth:`ranksieve.rankers.frontier.Frontier.to_dict` gives."""
    content = {
        "found": frontier, "title": "What features and cost buy", "priced": paid_in(frontier) == "cost",
        "metric": metric_title(frontier["metric"]), "steps": frontier_steps(frontier),
        "sentences": _sentences(frontier),
    }  # fmt: skip
    data = {"figures": {"frontier": frontier_figure(frontier)}}
    return render_page("frontier.html.j2", data, content=content, version=__version__)


def _sentences(frontier: Mapping[str, Any]) -> list[str]:
    """The best there is, and the first step that is nearly as good."""
    points, steps, metric = frontier["points"], frontier_steps(frontier), metric_title(frontier["metric"])
    if not steps:
        return [f"None of the {counted(len(points), 'model')} uses a feature."]
    best, nearly = steps[-1], next(s for s in steps if s["mean"] >= NEARLY * steps[-1]["mean"])
    sentences = [f"The best held-out {metric} is {metric_text(best['mean'])}, with {_price(best)}."]
    if nearly is not best:
        names = listed(nearly["features"], 8)
        sentences.append(f"{percent_text(NEARLY)} of it takes {_price(nearly)}: {names}.")
    optimal, compared = (
        sum(point["optimal"] for point in points),
        counted(len(points), "model was", "models were"),
    )
    return [*sentences, f"{compared} compared; {optimal} are best for what they use."]


def _price(step: Mapping[str, Any]) -> str:
    cost = "" if step["cost"] is None else f" at a cost of {step['cost']:g}"
    return counted(step["n_features"], "feature") + cost
