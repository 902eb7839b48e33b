"""Figure and page of the frontier: accuracy against cost or number of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ranksieve._version import __version__
from ranksieve.errors import short_list
from ranksieve.rankers.frontier import Candidate, cost_key, frontier_steps, pareto_front
from ranksieve.report.page import OTHER, PALETTE, Figure, axis, layout, line, marks, render_page
from ranksieve.show.formats import join_names, metric_text, metric_title, percent_text, plural

FRONTIER_HOVER = "{x:.4g}: {y:.4f}\n{text}"
FEW, MANY = PALETTE[1], PALETTE[0]  # colours of the models with the fewest and the most features


def frontier_figure(frontier: Mapping[str, Any]) -> Figure:
    """Figure of the result of :meth:`ranksieve.rankers.frontier.Frontier.to_dict`.

    Grey: dominated candidates. Coloured by number of features: Pareto-optimal ones. Line: best metric for a
    cost or number of features.
    """
    candidates, x = frontier["points"], cost_key(frontier)
    optimal = sorted((c for c in candidates if c["optimal"]), key=lambda c: (c[x], -c["mean"]))
    others = [c for c in candidates if not c["optimal"]]
    front = pareto_front(optimal, x)
    limit = "cost" if x == "cost" else "number of features"
    colours = [] if not optimal else _shades([c["n_features"] for c in optimal])
    label = "Pareto-optimal (orange: few features, blue: many)" if x == "cost" else "Pareto-optimal"
    dominated = [f"{plural(c['n_features'], 'feature')}, {c['family']}, dominated" for c in others]
    names = [f"{plural(c['n_features'], 'feature')}: {short_list(c['features'], 12)}" for c in optimal]
    grey = {"marker": {"opacity": 0.45}, "text": dominated, "hover": FRONTIER_HOVER}
    steps = line(*_coordinates(front, x), f"best for its {limit}", PALETTE[2])
    steps["line"]["shape"] = "hv"
    traces = [
        marks(*_coordinates(others, x), "dominated: another is as good for less", OTHER, 5, **grey),
        steps,
        marks(*_coordinates(optimal, x), label, colours, 9, text=names, hover=FRONTIER_HOVER),
    ]
    look = layout(
        460,
        showlegend=True,
        xaxis=axis("cost" if x == "cost" else "features", rangemode="tozero", dtick=int(x != "cost")),
        yaxis=axis(f"held-out {metric_title(frontier['metric'])}"),
    )
    return {"data": traces, "layout": look}


def _shades(counts: Sequence[int]) -> list[str]:
    """A colour for each number of features, from ``FEW`` to ``MANY``."""
    ends = np.array([[int(colour[k : k + 2], 16) for k in (1, 3, 5)] for colour in (FEW, MANY)])
    share = (np.array(counts) - min(counts)) / max(max(counts) - min(counts), 1)
    mixed = ends[0] + share[:, None] * (ends[1] - ends[0])
    return ["#{:02x}{:02x}{:02x}".format(*rgb) for rgb in mixed.round().astype(int).tolist()]


def _coordinates(candidates: Sequence[Candidate], x: str) -> tuple[list[float], list[float]]:
    return [c[x] for c in candidates], [c["mean"] for c in candidates]


NEARLY = 0.99  # of the best metric


def frontier_page(frontier: Mapping[str, Any]) -> str:
    """HTML page of the result of :meth:`ranksieve.rankers.frontier.Frontier.to_dict`."""
    content = {
        "frontier": frontier, "title": "Accuracy against features and cost",
        "priced": cost_key(frontier) == "cost",
        "metric": metric_title(frontier["metric"]), "steps": frontier_steps(frontier),
        "sentences": _sentences(frontier),
    }  # fmt: skip
    data = {"figures": {"frontier": frontier_figure(frontier)}}
    return render_page("frontier.html.j2", data, content=content, version=__version__)


def _sentences(frontier: Mapping[str, Any]) -> list[str]:
    """The best candidate, and the cheapest one that is nearly as good."""
    points, steps, metric = frontier["points"], frontier_steps(frontier), metric_title(frontier["metric"])
    if not steps:
        return [f"None of the {plural(len(points), 'candidate')} uses a feature."]
    best, nearly = steps[-1], next(s for s in steps if s["mean"] >= NEARLY * steps[-1]["mean"])
    sentences = [f"Best held-out {metric}: {metric_text(best['mean'])}, with {_price(best)}."]
    if nearly is not best:
        names = join_names(nearly["features"], 8)
        sentences.append(f"For {percent_text(NEARLY)} of it: {_price(nearly)} ({names}).")
    n_optimal = sum(point["optimal"] for point in points)
    return [*sentences, f"{plural(len(points), 'candidate')}, {n_optimal} of them Pareto-optimal."]


def _price(step: Mapping[str, Any]) -> str:
    cost = "" if step["cost"] is None else f" at a cost of {step['cost']:g}"
    return plural(step["n_features"], "feature") + cost
