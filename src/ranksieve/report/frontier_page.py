"""Figure and page of the frontier: accuracy against cost or number of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ranksieve._version import __version__
from ranksieve.errors import short_list
from ranksieve.rankers.frontier import Candidate, cost_key, frontier_steps, pareto_front
from ranksieve.report.page import (
    OTHER,
    Figure,
    axis,
    base_family,
    family_colour,
    layout,
    legend_title,
    line,
    marks,
    render_page,
    size_axis,
)
from ranksieve.show.formats import join_names, metric_text, metric_title, percent_text, plural

FRONTIER_HOVER = "{x:.4g}: {y:.4f}\n{text}"


def frontier_figure(frontier: Mapping[str, Any]) -> Figure:
    """Figure of the result of :meth:`ranksieve.rankers.frontier.Frontier.to_dict`.

    Hollow: dominated candidates. Coloured by family: Pareto-optimal ones. Line: best metric for a cost or
    number of features.
    """
    candidates, x = frontier["points"], cost_key(frontier)
    optimal = sorted((c for c in candidates if c["optimal"]), key=lambda c: (c[x], -c["mean"]))
    others = [c for c in candidates if not c["optimal"] and c["n_features"]]
    by = "cost" if x == "cost" else "features"
    hollow = {"marker": {"symbol": "circle-open"}, "hover": FRONTIER_HOVER}
    dominated = [f"{plural(c['n_features'], 'feature')}, {c['family']}, dominated" for c in others]
    front = line(*_coordinates(pareto_front(optimal, x), x), "best up to this " + BEST_UP_TO[by], OTHER)
    front["line"]["shape"] = "hv"
    traces = [
        marks(
            *_coordinates(others, x),
            "dominated: another is as good for less",
            OTHER,
            4,
            text=dominated,
            **hollow,
        ),
        front,
    ]
    for family in dict.fromkeys(base_family(c["family"]) for c in optimal):
        own = [c for c in optimal if base_family(c["family"]) == family]
        names = [f"{plural(c['n_features'], 'feature')}: {short_list(c['features'], 12)}" for c in own]
        title, colour = f"Pareto-optimal, {legend_title(family)}", family_colour(family)
        traces.append(marks(*_coordinates(own, x), title, colour, 9, text=names, hover=FRONTIER_HOVER))
    look = layout(
        460,
        showlegend=True,
        alt=" ".join(frontier_sentences(frontier)),
        xaxis=size_axis(by, [c[x] for c in candidates if c["n_features"]]),
        yaxis=axis(f"held-out {metric_title(frontier['metric'])}"),
    )
    return {"data": traces, "layout": look}


BEST_UP_TO = {"cost": "cost", "features": "number of features"}


def _coordinates(candidates: Sequence[Candidate], x: str) -> tuple[list[float], list[float]]:
    return [c[x] for c in candidates], [c["mean"] for c in candidates]


NEARLY = 0.99  # of the best metric


def frontier_page(frontier: Mapping[str, Any]) -> str:
    """HTML page of the result of :meth:`ranksieve.rankers.frontier.Frontier.to_dict`."""
    content = {
        "frontier": frontier, "title": "Accuracy against features and cost",
        "priced": cost_key(frontier) == "cost",
        "metric": metric_title(frontier["metric"]), "steps": frontier_steps(frontier),
        "sentences": frontier_sentences(frontier),
    }  # fmt: skip
    data = {"figures": {"frontier": frontier_figure(frontier)}}
    return render_page("frontier.html.j2", data, content=content, version=__version__)


def frontier_sentences(frontier: Mapping[str, Any]) -> list[str]:
    """The best candidate, and the cheapest one that is nearly as good; the number of candidates."""
    points, steps, metric = frontier["points"], frontier_steps(frontier), metric_title(frontier["metric"])
    if not steps:
        return [f"None of the {plural(len(points), 'candidate')} uses a feature."]
    best, nearly = steps[-1], next(s for s in steps if s["mean"] >= NEARLY * steps[-1]["mean"])
    sentence = f"Best held-out {metric}: {metric_text(best['mean'])}, with {_price(best)}"
    if nearly is not best:
        names = join_names(nearly["features"], 8)
        sentence += (
            f"; {percent_text(NEARLY)} of it, {metric_text(nearly['mean'])}, with {_price(nearly)} ({names})"
        )
    n_optimal = sum(point["optimal"] for point in points)
    return [f"{sentence}.", f"{plural(len(points), 'candidate')}, {n_optimal} of them Pareto-optimal."]


def _price(step: Mapping[str, Any]) -> str:
    cost = "" if step["cost"] is None else f" at a cost of {step['cost']:g}"
    return plural(step["n_features"], "feature") + cost
