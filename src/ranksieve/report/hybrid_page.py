"""Page of a hybrid search: the metric over the weights, the worth of each clause, queries won and lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ranksieve._version import __version__
from ranksieve.choice.update import MAX_EXTREMES, most_changed
from ranksieve.rankers.hybrid import HybridChoice
from ranksieve.report.page import (
    CHOSEN,
    PALETTE,
    Figure,
    axis,
    faint,
    layout,
    line,
    marks,
    render_page,
)
from ranksieve.show.formats import metric_title, signed

LOW, HIGH = PALETTE[1], PALETTE[0]  # colours of the lowest and the highest metric of the triangle
WHOLE = [-0.05, 1.05]  # of weights, with room for the marks
HOVER = "{text}\n{y:.4f}"
MAX_SHOWN_FUSIONS, MAX_DRAWN_FUSIONS = 40, 12


def weights_figure(points: Sequence[Mapping[str, Any]], chosen: Mapping[str, Any], metric: str) -> Figure:
    """The held-out metric over the weights of two or three clauses, else the weights of the clauses."""
    figure = _weights_figure(points, chosen, metric)
    best = (
        f"; best held-out {metric} of the drawn weights {max(p['mean'] for p in points):.4f}"
        if points
        else ""
    )
    figure["layout"]["alt"] = (
        f"Weights {_formula(chosen['weights'])} have {metric} {chosen['mean']:.4f}{best}."
    )
    return figure


def _weights_figure(points: Sequence[Mapping[str, Any]], chosen: Mapping[str, Any], metric: str) -> Figure:
    names = list(points[0]["weights"]) if points else []
    if len(names) == 2:
        return _curve(points, chosen, names, metric)
    if len(names) == 3:
        return _triangle(points, chosen, names, metric)
    weights = sorted(chosen["weights"].items(), key=lambda item: -item[1])
    clauses, shares = [name for name, _ in weights], [share for _, share in weights]
    bars = {"type": "bar", "x": clauses, "y": shares, "marker": {"color": PALETTE[0]}}
    bars |= {"name": "weight", "hover": "{x}: {y:.3f}"}
    axes = {"xaxis": axis("clause", type="category"), "yaxis": axis("weight", rangemode="tozero")}
    return {"data": [bars], "layout": layout(360, **axes)}


def _curve(
    points: Sequence[Mapping[str, Any]], chosen: Mapping[str, Any], names: Sequence[str], metric: str
) -> Figure:
    """Metric over the weight of the first clause; the rest is the weight of the second."""
    x = [one["weights"][names[0]] for one in points]
    low, mean, high = ([one[part] for one in points] for part in ("low", "mean", "high"))
    texts = [_formula(one["weights"]) for one in points]
    data = [
        {"type": "band", "x": x, "low": low, "high": high, "color": faint(PALETTE[0])},
        line(x, mean, f"held-out {metric}", PALETTE[0], text=texts, hover=HOVER),
        marks(
            [chosen["weights"].get(names[0], 0.0)], [chosen["mean"]], "chosen", CHOSEN, 15,
            marker={"symbol": "star"}, text=[_formula(chosen["weights"])], hover=HOVER,
        ),
    ]  # fmt: skip
    look = layout(
        400,
        showlegend=True,
        xaxis=axis(f"weight of {names[0]} (the rest: {names[1]})"),
        yaxis=axis(f"held-out {metric}"),
    )
    return {"data": data, "layout": look}


def _triangle(
    points: Sequence[Mapping[str, Any]], chosen: Mapping[str, Any], names: Sequence[str], metric: str
) -> Figure:
    """Points of the simplex, coloured by the metric; the third weight is the rest."""
    mean = np.array([one["mean"] for one in points])
    share = (mean - mean.min()) / max(float(np.ptp(mean)), np.finfo(np.float64).tiny)
    ends = np.array([[int(colour[k : k + 2], 16) for k in (1, 3, 5)] for colour in (LOW, HIGH)])
    mixed = (ends[0] + share[:, None] * (ends[1] - ends[0])).round().astype(int).tolist()
    colours = ["#{:02x}{:02x}{:02x}".format(*rgb) for rgb in mixed]
    texts = [f"{_formula(one['weights'])}: {one['mean']:.4f}" for one in points]
    x, y = ([one["weights"][name] for one in points] for name in names[:2])
    label = f"held-out {metric}: {mean.min():.4f} (orange) to {mean.max():.4f} (blue)"
    at = [[chosen["weights"].get(name, 0.0)] for name in names[:2]]
    text = [f"chosen: {_formula(chosen['weights'])}: {chosen['mean']:.4f}"]
    data = [
        marks(x, y, label, colours, 16, text=texts, hover="{text}"),
        marks(at[0], at[1], "chosen", CHOSEN, 16, marker={"symbol": "star"}, text=text, hover="{text}"),
    ]
    look = layout(
        460,
        showlegend=True,
        xaxis=axis(f"weight of {names[0]} (the rest: {names[2]})", range=WHOLE),
        yaxis=axis(f"weight of {names[1]}", range=WHOLE),
    )
    return {"data": data, "layout": look}


def _formula(weights: Mapping[str, float]) -> str:
    return " + ".join(f"{share:.2g} {name}" for name, share in weights.items() if share)


def fusions_figure(fusions: Sequence[Mapping[str, Any]], chosen: Mapping[str, Any], metric: str) -> Figure:
    """The held-out metric of each combination with its 95 % interval; a star marks the chosen one."""
    names = [f"{one['name']}, {one['normalise']}" for one in fusions]
    own = [
        k
        for k, one in enumerate(fusions)
        if (one["name"], one["normalise"]) == (chosen["name"], chosen["normalise"])
    ]
    mean, half = [one["mean"] for one in fusions], [one["high"] - one["mean"] for one in fusions]
    star, hover, at = {"symbol": "star"}, "{x}: {y:.4f}", [names[k] for k in own]
    intervals: dict[str, Any] = {"error_y": half, "line": {"color": PALETTE[0]}}
    data = [
        marks(names, mean, "mean and 95 % CI over queries", PALETTE[0], 8, hover=hover, **intervals),
        marks(at, [mean[k] for k in own], "chosen", CHOSEN, 15, marker=star, hover=hover),
    ]
    values = (f"{name} {value:.4f}" for name, value in zip(names, mean, strict=True))
    look = layout(
        320,
        showlegend=True,
        alt=f"Held-out {metric}: {'; '.join(values)}.",
        xaxis=axis("", type="category", categories=names, showgrid=False),
        yaxis=axis(f"held-out {metric}"),
    )
    return {"data": data, "layout": look}


def hybrid_page(content: Mapping[str, Any], points: Sequence[Mapping[str, Any]], choice: HybridChoice) -> str:
    """HTML page of :meth:`ranksieve.rankers.hybrid.HybridChoice.to_dict` with sentences and worth."""
    title, figures, extremes = "Weights of a hybrid search", {}, []
    fusions = sorted(content.get("fusions", []), key=lambda one: -one["mean"])[:MAX_SHOWN_FUSIONS]
    clauses = sorted(
        content.get("clauses", {}).items(), key=lambda one: -choice.chosen.weights.get(one[0], 0)
    )
    if len(choice.query_ids):
        metric, before = metric_title(choice.metric), choice.rrf.values
        if len(content["chosen"]["weights"]) > 1:
            figures["weights"] = weights_figure(points, content["chosen"], metric)
        figures["fusions"] = fusions_figure(fusions[:MAX_DRAWN_FUSIONS], content["chosen"], metric)
        extremes = most_changed(choice.query_ids, before, choice.chosen.values, MAX_EXTREMES)
    page = {
        "title": title, "sentences": content["sentences"], "worth": content["worth"], "hybrid": content,
        "metric": metric_title(choice.metric), "simplex": len(points) > 0, "figures": list(figures),
        "fusions": fusions, "clauses": clauses,
        "priced": any(one["cost"] is not None for one in content["worth"]),
        "extremes": [
            (str(query), f"{a:.4f}", f"{b:.4f}", signed(b - a)) for query, a, b in extremes
        ],
    }  # fmt: skip
    return render_page("hybrid.html.j2", {"figures": figures}, content=page, version=__version__)
