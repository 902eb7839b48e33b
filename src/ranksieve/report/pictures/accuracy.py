"""How well the methods rank: by cut-off, by number of features, against sparsity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.experiment.fold_run import CURVE_METRICS, CUTOFFS
from ranksieve.experiment.results import DataSetResults
from ranksieve.experiment.studies.selectors import SELECTORS
from ranksieve.report.canvas import OTHER, Figure, Style, Styles, axis, layout, method_line
from ranksieve.report.frontier_figure import pareto_front
from ranksieve.report.words import metric_title

SIZE_STYLES = {
    "path with at most k": Style("certified path, at most k", "#8f98a3", "circle", "dot"),
    "fbpcrank with at most k": Style("FBPCRank, at most k", "#c08497", "square", "dash"),
    "fsrank with k": Style("FS-Rank, fitted with k", "#7d8f69", "diamond", "dash"),
    "gas with k": Style("GAS-E, fitted with k", "#a5673f", "triangle-up", "dash"),
    "fsmsvm with k": Style("FSMSVM, fitted with k", "#557a95", "x", "dash"),
}
NEAR_LEFT = 0.2  # share of the width; further left, a title is right of its method
HOVER = "{name}\n{x} features: {y:.4f}"


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


def sizes(results: DataSetResults, styles: Styles) -> Figure:
    """Accuracy with k features: of cut models, of the path, of selectors."""
    lines = [
        method_line(style, name, range(1, len(values) + 1), values, yaxis=panel, hover=HOVER)
        for panel, metric in zip(("y", "y2"), CURVE_METRICS, strict=True)
        for name, style, values in _size_curves(results, styles, metric)
    ]
    first, second = (f"test {metric_title(metric)}" for metric in CURVE_METRICS)
    axes = {
        "xaxis": axis("number of features k", dtick=1, anchor="y2"),
        "yaxis": axis(first, domain=[0.54, 1.0]),
        "yaxis2": axis(second, domain=[0.0, 0.46]),
    }
    return {"data": lines, "layout": layout(680, **axes)}


def _size_curves(
    results: DataSetResults, styles: Styles, metric: str
) -> list[tuple[str, Style, list[float]]]:
    """Name, style and values for 1, 2, … features: of each linear method, of the path, of selectors."""
    curves = []
    for name, folds in results.methods.items():
        cut = [fold.chosen["truncated"] for fold in folds if fold.chosen]
        if all(cut):
            values = [of[metric] for of in cut]
            curves.append(
                (name, styles[name], mean_with_at_most([(range(1, len(v) + 1), v) for v in values]))
            )
    paths = [best_on_path(study["path"], metric) for study in results.studies if "path" in study]
    fixed = [
        (study["sizes"]["n_features"], study["sizes"]["test"][metric])
        for study in results.studies
        if "sizes" in study
    ]
    refitted = [
        [
            (study["selectors"]["n_features"], study["selectors"]["selectors"][selector]["test"][metric])
            for study in results.studies
            if "selectors" in study
        ]
        for selector in SELECTORS
    ]
    for (name, style), found in zip(SIZE_STYLES.items(), (paths, fixed, *refitted), strict=True):
        curves.append((name, style, mean_with_at_most(found)))
    return curves


def best_on_path(path: Mapping[str, Any], metric: str) -> tuple[list[int], list[float]]:
    """Numbers k of features on the path, and the test value of the best on validation with 1 to k of them.

    Ties go to the stronger penalty.
    """
    used = np.asarray(path["n_nonzero"])
    validation = np.asarray(path["validation"][metric]["mean"])
    test = path["test"][metric]["mean"]
    counts = [int(k) for k in np.unique(used[used > 0])]
    best = [int(np.argmax(np.where((used > 0) & (used <= k), validation, -np.inf))) for k in counts]
    return counts, [test[point] for point in best]


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
