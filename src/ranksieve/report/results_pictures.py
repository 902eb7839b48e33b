"""Pictures of results: accuracy by cut-off, by number of features, against sparsity; features by fold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, Generic, TypeVar

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.experiment.fold_run import CURVE_METRICS, CUTOFFS
from ranksieve.experiment.results import DataSetResults, Results
from ranksieve.experiment.tables import title
from ranksieve.report.frontier_page import pareto_front
from ranksieve.report.page import (
    OTHER,
    PALETTE,
    Figure,
    Style,
    Styles,
    axis,
    faint,
    layout,
    method_line,
    metric_title,
    packed,
)

NEAR_LEFT = 0.2  # share of the width; further left, a title is right of its method
HOVER = "{name}\n{x} features: {y:.4f}"
SCALE = [[-1.0, "#b35c00"], [-0.1, "#f2b866"], [0.0, "#bbbbbb"], [0.1, "#8cc3ee"], [1.0, "#1f66a8"]]
ROW_HEIGHT, LEAST_HEIGHT, BARS_HEIGHT, MARGINS = 8, 180, 110, 42

SizeCurve = tuple[str, Style, list[float]]
"""Name, style and values for 1, 2, … features."""
SizeCurves = Callable[[DataSetResults, str], Sequence[SizeCurve]]
Source = TypeVar("Source")


@dataclass(frozen=True)
class Picture(Generic[Source]):
    """``draw`` gives None if the results lack what it shows; ``caption`` says how to read it."""

    title: str
    caption: str
    draw: Callable[[Source, Styles], Figure | None]
    legend: bool = True  # whether its colours are those of the methods
    others: Styles = field(default_factory=dict)  # further lines for the legend


def ndcg_curves(results: DataSetResults, styles: Styles) -> Figure:
    """NDCG@1, …, NDCG@10 of each method, and minus their mean over methods."""
    cutoffs = list(CUTOFFS)
    means = {name: np.array([r.mean(f"ndcg@{k}") for k in cutoffs]) for name, r in results.results.items()}
    centre = np.mean(list(means.values()), axis=0)
    look = {"mode": "lines+markers", "hover": "{name}\nNDCG@{x}: {y:.4f}"}
    lines = [
        method_line(styles[name], name, cutoffs, (mean - shift).tolist(), yaxis=panel, **look)
        for panel, shift in (("y", 0.0), ("y2", centre))
        for name, mean in means.items()
    ]
    axes = {
        "xaxis": axis("cut-off k", dtick=1, anchor="y2"),
        "yaxis": axis("test NDCG@k", domain=[0.54, 1.0]),
        "yaxis2": axis("minus the mean of all", domain=[0.0, 0.46]),
    }
    return {"data": lines, "layout": layout(640, **axes)}


def sizes(results: DataSetResults, styles: Styles, further: SizeCurves | None = None) -> Figure:
    """Accuracy with k features: of cut models, and of ``further`` curves by metric."""
    lines = [
        method_line(style, name, range(1, len(values) + 1), values, yaxis=panel, hover=HOVER)
        for panel, metric in zip(("y", "y2"), CURVE_METRICS, strict=True)
        for name, style, values in [
            *_cut_models(results, styles, metric),
            *(further(results, metric) if further is not None else ()),
        ]
    ]
    first, second = (f"test {metric_title(metric)}" for metric in CURVE_METRICS)
    axes = {
        "xaxis": axis("number of features k", dtick=1, anchor="y2"),
        "yaxis": axis(first, domain=[0.54, 1.0]),
        "yaxis2": axis(second, domain=[0.0, 0.46]),
    }
    return {"data": lines, "layout": layout(680, **axes)}


def _cut_models(results: DataSetResults, styles: Styles, metric: str) -> list[SizeCurve]:
    """Each linear method, cut to its k largest weights."""
    curves = []
    for name, folds in results.methods.items():
        cut = [fold.chosen["truncated"] for fold in folds if fold.chosen]
        if all(cut):
            values = [of[metric] for of in cut]
            curves.append(
                (name, styles[name], mean_with_at_most([(range(1, len(v) + 1), v) for v in values]))
            )
    return curves


def mean_with_at_most(folds: Sequence[tuple[Sequence[int], Sequence[float]]]) -> list[float]:
    """Mean over folds of the value with at most k features, k = 1, 2, …; NaN below a fold's smallest size.

    Each fold gives rising sizes and their values; between sizes, and beyond the largest, the last one holds.
    """
    if not folds:
        return []
    k = np.arange(1, max(max(counts, default=0) for counts, _ in folds) + 1)
    values: list[FloatArray] = []
    for counts, found in folds:
        place = np.searchsorted(counts, k, side="right")  # 0: all sizes are larger
        values.append(np.array([np.nan, *found])[place])
    mean: list[float] = np.mean(values, axis=0).tolist()
    return mean


def map_against_sparsity(results: DataSetResults, styles: Styles) -> Figure | None:
    """Test MAP against the share of features in use, with the Pareto front."""
    measured: list[dict[str, Any]] = [
        {"method": name, **result.to_row()} for name, result in results.results.items()
    ]
    linear = [method for method in measured if not np.isnan(method["sparsity"])]
    if not linear:
        return None
    front = pareto_front(linear, "sparsity", "map")
    line = {
        "type": "scatter", "mode": "lines",
        "x": [method["sparsity"] for method in front], "y": [method["map"] for method in front],
        "line": {"color": OTHER, "dash": "dot", "width": 1.5, "shape": "hv"},
    }  # fmt: skip
    marks = []
    for method in linear:
        style = styles[method["method"]]
        marks.append(
            method_line(
                style,
                method["method"],
                [method["sparsity"]],
                [method["map"]],
                mode="markers",
                marker={"color": style.colour, "symbol": style.symbol, "size": 12},
                hover="{name}\nsparsity {x:.3f}\nMAP {y:.4f}",
            )
        )
    widest = max(method["sparsity"] for method in linear)
    labels = [
        _label(styles[method["method"]].title, method["sparsity"], method["map"], widest, k)
        for k, method in enumerate(front)
    ]
    axes = {
        "xaxis": axis("sparsity: features in use / features", rangemode="tozero"),
        "yaxis": axis("test MAP"),
    }
    return {"data": [line, *marks], "layout": layout(460, **axes, annotations=labels)}


def _label(title: str, x: float, y: float, widest: float, place: int) -> dict[str, Any]:
    """The title above a method of the front, where no other method can be; neighbours have different heights.

    A narrow page leaves out annotations named "wide".
    """
    side = {"xanchor": "left", "ax": 8} if x < NEAR_LEFT * widest else {"xanchor": "right", "ax": -8}
    return {"name": "wide", "x": x, "y": y, "text": title, "ay": -20 - 18 * (place % 2), **side}


def over_names(names: Sequence[str]) -> dict[str, Any]:
    """One place per feature, with its name below."""
    return axis("", type="category", categories=names, showgrid=False)


def removed_features(results: Results, styles: Styles) -> Figure | None:
    """1 − sparsity of each method, one polygon per data set."""
    sparsities = {
        name: {m: r.to_row()["sparsity"] for m, r in data.results.items()}
        for name, data in results.data_sets.items()
    }
    methods = [m for m in styles if any(not np.isnan(of.get(m, np.nan)) for of in sparsities.values())]
    if not methods:
        return None
    around = [*methods, methods[0]]
    polygons = [
        {
            "type": "net", "theta": [title(method) for method in around],
            "name": name, "r": [1.0 - of.get(method, np.nan) for method in around],
            "line": {"color": colour}, "marker": {"color": colour, "size": 6}, "fillcolor": faint(colour),
            "hover": "{theta} removes {r:.0%} on {name}",
        }
        for (name, of), colour in zip(sparsities.items(), cycle(PALETTE), strict=False)
    ]  # fmt: skip
    return {"data": polygons, "layout": layout(520, showlegend=True, net=True)}


def selected_features(results: DataSetResults, styles: Styles) -> Figure | None:
    """The weights of every fold of every linear method, and how often a feature is selected."""
    linear = linear_coefs(results)
    if not linear:
        return None
    weights = [coef for coefs in linear.values() for coef in coefs]
    used = np.mean([coef != 0 for coef in weights], axis=0)
    order = np.argsort(-used, kind="stable")
    names = [results.features[j] for j in order]
    models = [f"{title(name)}, fold {k}" for name, coefs in linear.items() for k, _ in enumerate(coefs, 1)]
    bars = {
        "type": "bar", "x": names, "y": used[order].tolist(), "yaxis": "y2", "marker": {"color": OTHER},
        "hover": "{x} is used by {y:.0%} of the models",
    }  # fmt: skip
    cells = {
        "type": "cells", "x": names, "rows": models, "colours": SCALE,
        "values": [packed((w or None for w in coef[order]), 4) for coef in weights],
        "hover": "{row}\n{x}: {value:+.4g}",
    }  # fmt: skip
    counts = {name: len(coefs) for name, coefs in linear.items()}
    return {"data": [bars, cells], "layout": _matrix_layout(names, counts)}


def linear_coefs(results: DataSetResults) -> dict[str, FloatArray]:
    """Weights (folds × features) of each linear method."""
    stacked = {name: np.array([f.coef for f in result.folds]) for name, result in results.results.items()}
    return {name: coefs for name, coefs in stacked.items() if not np.isnan(coefs).any()}


def _matrix_layout(names: Sequence[str], counts: dict[str, int]) -> dict[str, Any]:
    ends = np.cumsum(list(counts.values())) - 0.5
    middles = [end - count / 2 for end, count in zip(ends, counts.values(), strict=True)]
    inner = max(ROW_HEIGHT * sum(counts.values()), LEAST_HEIGHT) + BARS_HEIGHT
    share = BARS_HEIGHT / inner
    line = {"type": "line", "xref": "paper", "line": {"color": OTHER, "width": 1}}
    axes = {
        "xaxis": over_names(names),
        "yaxis": axis(
            "",
            domain=[0, 1 - share],
            range=[float(ends[-1]), -0.5],
            tickvals=middles,
            ticktext=[title(name) for name in counts],
            showgrid=False,
        ),
        "yaxis2": axis("used by", domain=[1 - share + 0.02, 1], range=[0, 1.02], tickformat=".0%", dtick=0.5),
    }
    shapes = [line | {"y0": float(end), "y1": float(end)} for end in ends[:-1]]
    return layout(inner + MARGINS, **axes, shapes=shapes)


PICTURES: dict[str, Picture[DataSetResults]] = {
    "ndcg_curves": Picture(
        "NDCG@1 to NDCG@10",
        "Mean over folds of test NDCG at each cut-off; below, the same minus the mean of all methods, which "
        "shows their differences. Higher is better. In the letor profile a list shorter than k counts 0, so "
        "that the curves fall where many lists are short.",
        ndcg_curves,
    ),
    "sizes": Picture(
        "Accuracy against the number of features",
        "What is left if only k features may be used: the chosen model cut to its k largest weights, without "
        "refitting. Test means over folds.",
        sizes,
    ),
    "map_against_sparsity": Picture(
        "MAP against sparsity",
        "Left is sparser, up is better. The dotted line is the Pareto front: no other method is both sparser "
        "and more accurate than those on it. Test MAP and share of features in use, means over folds.",
        map_against_sparsity,
    ),
    "selected_features": Picture(
        "Which features each fold selects",
        "One row for each fold of each method, the first fold on top; a cell is coloured if the feature is "
        "in use, blue for a positive and orange for a negative weight, the stronger the larger. Above: the "
        "share of all these models that use the feature, by which the columns are sorted.",
        selected_features,
        legend=False,
    ),
}

OVERVIEWS: dict[str, Picture[Results]] = {
    "removed_features": Picture(
        "Removed features",
        "The share of features that each method leaves out, 1 − sparsity, mean over folds: the further out, "
        "the fewer features are in use.",
        removed_features,
        legend=False,
    ),
}
