"""The explorer of a path: its points as plain lists, its figure, and what its slider shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ranksieve._types import FloatArray
from ranksieve._util.json_values import nonzero_weights
from ranksieve.estimators.families import SIZED
from ranksieve.report.canvas import OTHER, PALETTE, Figure, axis, faint, layout, log_axis, packed
from ranksieve.report.words import metric_title

MAX_LINES = 60  # weight curves beyond these are neither legible nor worth their bytes
SLIDER = (
    "label", "by", "alphas", "n_nonzero", "relative_gaps", "chosen", "metric", "mean", "standard_error",
    "test",
)  # fmt: skip
CHOSEN = "#7f8791"
CURSOR = "#d9534f"


@dataclass(frozen=True)
class Curves:
    """A family of models as lists, one entry per point; ``weights`` has one list per feature, largest first.

    Points go by ``alphas``, or where ``by`` says "features" by their number, which then stands there.

    ``points`` holds all nonzero weights of each point by name, ``test`` the metric on test data if measured.
    """

    alphas: list[float]
    objectives: list[float]
    relative_gaps: list[float]
    n_nonzero: list[int]
    weights: dict[str, list[float]]
    points: list[dict[str, float]]
    chosen: int
    metric: str
    profile: str
    mean: list[float]
    standard_error: list[float]
    test: list[float] = field(default_factory=list)
    label: str = ""
    by: str = "α"


def curves_of_ranker(ranker: Any) -> Curves | None:
    """The path of a fitted ranker with its validation; None if it has no path."""
    if not hasattr(ranker, "path_"):
        return None
    path, validation = ranker.path_, ranker.validation_
    by_size = ranker.family_.partition(" ")[0] in SIZED
    return Curves(
        alphas=path.n_nonzero.tolist() if by_size else path.alphas.tolist(),
        by="features" if by_size else "α",
        objectives=path.objectives.tolist(),
        relative_gaps=path.relative_gaps.tolist(),
        n_nonzero=path.n_nonzero.tolist(),
        weights=largest_weights(path.coefs, ranker.coef_, path.feature_names),
        points=[nonzero_weights(w, path.feature_names) for w in path.coefs],
        chosen=ranker.chosen_,
        metric=validation.metric,
        profile=validation.to_dict()["profile"],
        mean=validation.mean.tolist(),
        standard_error=validation.standard_error.tolist(),
    )


def largest_weights(coefs: FloatArray, chosen: FloatArray, names: Sequence[str]) -> dict[str, list[float]]:
    """Curves of the chosen features by falling weight, then of the others by their largest weight."""
    largest = np.abs(coefs).max(axis=0)
    order = np.lexsort((-largest, -np.abs(chosen)))
    used = [j for j in order if largest[j] > 0 or chosen[j] != 0]
    return {names[j]: coefs[:, j].tolist() for j in used[:MAX_LINES]}


def path_explorer(curves: Curves, chosen: Sequence[str]) -> dict[str, Any]:
    """Plain data for the page: the figure, the colours of chosen features, what the slider shows of a point.

    Points hold a weight or nothing for each feature, in order of entry; ``lines`` are the features whose
    weights are drawn.
    """
    features = list(dict.fromkeys(name for point in curves.points for name in point))
    place = {name: k for k, name in enumerate(features)}
    return {
        **{name: getattr(curves, name) for name in SLIDER},
        "features": features,
        "points": [packed((point.get(name) or None for name in features), 4) for point in curves.points],
        "figure": path_figure(curves),
        "lines": [place[name] for name in curves.weights if name in place],
        "hover": _hover(curves),
        "colours": feature_colours(chosen),
    }


def feature_colours(chosen: Sequence[str]) -> dict[str, str]:
    """The colour of each chosen feature; those beyond the palette share one."""
    return {name: PALETTE[k] if k < len(PALETTE) else OTHER for k, name in enumerate(chosen)}


def path_figure(curves: Curves) -> Figure:
    """Held-out metric and number of features, point by point; the page adds the weights of the points."""
    count = _line(curves, curves.alphas, curves.n_nonzero, "y3", PALETTE[2])
    count["line"]["shape"] = "hv"
    point = "α = {x:.3g}: " if curves.by == "α" else ""
    count |= {"name": "features", "hover": f"{point}{{y}} features"}
    return {"data": [*_metric_lines(curves), count], "layout": _path_layout(curves)}


def _metric_lines(curves: Curves) -> list[Figure]:
    """Held-out metric with its standard error, the chosen point, and the test metric if measured."""
    # Without the empty models, whose input order would stretch the axis.
    shown = [k for k, count in enumerate(curves.n_nonzero) if count > 0 or k == curves.chosen]
    alphas, mean = [curves.alphas[k] for k in shown], [curves.mean[k] for k in shown]
    low = [curves.mean[k] - curves.standard_error[k] for k in shown]
    high = [curves.mean[k] + curves.standard_error[k] for k in shown]
    metric = metric_title(curves.metric)
    band = {
        "type": "band", "x": alphas, "low": low, "high": high, "yaxis": "y2", "color": faint(PALETTE[0])
    }  # fmt: skip
    chosen = {
        "type": "scatter",
        "x": [curves.alphas[curves.chosen]],
        "y": [curves.mean[curves.chosen]],
        "yaxis": "y2",
        "mode": "markers",
        "marker": {"size": 10, "color": PALETTE[1]},
        "name": "chosen",
        "hover": _hover(curves),
    }
    lines = [band, _line(curves, alphas, mean, "y2", PALETTE[0]) | {"name": f"held-out {metric}"}, chosen]
    if curves.test:
        test = _line(curves, alphas, [curves.test[k] for k in shown], "y2", PALETTE[3])
        lines.append(test | {"name": f"test {metric}"})
    return lines


def _line(curves: Curves, x: list[float], y: list[Any], axis: str, colour: str) -> Figure:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "y": y,
        "yaxis": axis,
        "line": {"color": colour, "width": 2},
        "hover": _hover(curves),
    }


def _hover(curves: Curves) -> str:
    return f"{{name}}\n{'α = {x:.3g}' if curves.by == 'α' else '{x} features'}\n{{y:.4g}}"


def _path_layout(curves: Curves) -> dict[str, Any]:
    """Three axes above each other, a mark at the chosen point, and one that moves with the slider."""
    chosen = curves.alphas[curves.chosen]
    mark = {"type": "line", "yref": "paper", "x0": chosen, "x1": chosen}
    falling = log_axis("α, strong to weak", reversed=True, anchor="y3")
    return layout(
        620,
        xaxis=falling if curves.by == "α" else axis("features", dtick=1, anchor="y3"),
        yaxis=axis("weight", domain=[0.5, 1.0], zeroline=True),
        yaxis2=axis(metric_title(curves.metric), domain=[0.22, 0.45]),
        yaxis3=axis("features", domain=[0.0, 0.17], rangemode="tozero", dtick=1),
        shapes=[
            mark | {"line": {"color": CHOSEN, "dash": "dot", "width": 1.5}},
            mark | {"line": {"color": CURSOR, "width": 1.5}},
        ],
        annotations=[{"text": "chosen", "x": chosen, "yref": "paper"}],
    )
