"""How well the methods rank: by cut-off, by number of features, against sparsity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.experiment.fold_run import CURVE_METRICS, CUTOFFS
from ranksieve.experiment.results import DataSetResults
from ranksieve.report.canvas import OTHER, Figure, Style, Styles, axis, layout, method_line, text
from ranksieve.report.words import metric_title

SIZE_STYLES = {
    "path with at most k": Style("certified path, at most k", "#8f98a3", "circle", "dot"),
    "fbpcrank with at most k": Style("FBPCRank, at most k", "#c08497", "square", "dash"),
}
NEAR_LEFT = 0.2  # of the width: names stand to the right of such points
HOVER = "%{fullData.name}<br>%{x} features: %{y:.4f}<extra></extra>"


def ndcg_curves(results: DataSetResults, styles: Styles) -> Figure:
    """NDCG@1, …, NDCG@10 of each method, and minus their mean over methods."""
    cutoffs = list(CUTOFFS)
    means = {name: np.array([r.mean(f"ndcg@{k}") for k in cutoffs]) for name, r in results.results.items()}
    centre = np.mean(list(means.values()), axis=0)
    look = {
        "mode": "lines+markers",
        "hovertemplate": "%{fullData.name}<br>NDCG@%{x}: %{y:.4f}<extra></extra>",
    }
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
    """Accuracy with at most k features: of cut models, of the path, of FBPCRank."""
    lines = [
        method_line(style, name, _count(values), values, yaxis=panel, hovertemplate=HOVER)
        for panel, metric in zip(("y", "y2"), CURVE_METRICS, strict=True)
        for name, style, values in _size_curves(results, styles, metric)
    ]
    first, second = (f"test {metric_title(metric)}" for metric in CURVE_METRICS)
    axes = {
        "xaxis": axis("number of features k", anchor="y2"),
        "yaxis": axis(first, domain=[0.54, 1.0]),
        "yaxis2": axis(second, domain=[0.0, 0.46]),
    }
    return {"data": lines, "layout": layout(680, **axes)}


def _size_curves(
    results: DataSetResults, styles: Styles, metric: str
) -> list[tuple[str, Style, list[float]]]:
    cut = {
        name: [fold.chosen["truncated"] for fold in folds if fold.chosen]
        for name, folds in results.methods.items()
    }
    curves = [
        (name, styles[name], mean_with_at_most([(_count(row[metric]), row[metric]) for row in rows]))
        for name, rows in cut.items()
        if all(rows)
    ]
    paths = [best_on_path(study["path"], metric) for study in results.studies if "path" in study]
    fixed = [
        (study["sizes"]["n_features"], study["sizes"]["test"][metric])
        for study in results.studies
        if "sizes" in study
    ]
    for (name, style), folds in zip(SIZE_STYLES.items(), (paths, fixed), strict=True):
        curves.append((name, style, mean_with_at_most(folds)))
    return curves


def _count(values: Sequence[float]) -> range:
    return range(1, len(values) + 1)


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
    """Mean over folds of the value with at most k features, k = 1, 2, …; NaN where a fold has none so small.

    Each fold gives rising sizes and their values; between sizes, and beyond the largest, the last one holds.
    """
    if not folds:
        return []
    k = np.arange(1, max(max(counts, default=0) for counts, _ in folds) + 1)
    values: list[FloatArray] = []
    for counts, found in folds:
        place = np.searchsorted(counts, k, side="right")  # 0: no size is so small
        values.append(np.array([np.nan, *found])[place])
    mean: list[float] = np.mean(values, axis=0).tolist()
    return mean


def map_against_sparsity(results: DataSetResults, styles: Styles) -> Figure | None:
    """Test MAP against the share of features in use, with the Pareto front."""
    rows = {name: result.to_row() for name, result in results.results.items()}
    points = {
        name: (row["sparsity"], row["map"]) for name, row in rows.items() if not np.isnan(row["sparsity"])
    }
    if not points:
        return None
    front = pareto_front(points)
    line = {
        "type": "scatter", "mode": "lines", "hoverinfo": "skip",
        "x": [points[name][0] for name in front], "y": [points[name][1] for name in front],
        "line": {"color": OTHER, "dash": "dot", "width": 1.5, "shape": "hv"},
    }  # fmt: skip
    marks = [
        method_line(
            styles[name],
            name,
            [x],
            [y],
            mode="markers",
            marker={"color": styles[name].colour, "symbol": styles[name].symbol, "size": 12},
            hovertemplate="%{fullData.name}<br>sparsity %{x:.3f}<br>MAP %{y:.4f}<extra></extra>",
        )
        for name, (x, y) in points.items()
    ]
    widest = max(x for x, _ in points.values())
    labels = [
        _label(text(styles[name].title), *points[name], points[name][0] < NEAR_LEFT * widest, k)
        for k, name in enumerate(front)
    ]
    axes = {
        "xaxis": axis("sparsity: features in use / features", rangemode="tozero"),
        "yaxis": axis("test MAP"),
    }
    return {"data": [line, *marks], "layout": layout(460, **axes, annotations=labels)}


def _label(words: str, x: float, y: float, left: bool, place: int) -> dict[str, Any]:
    """A name over a point of the front, where nothing else can be; neighbours stand at different heights.

    A narrow page leaves out what is named "wide".
    """
    side = {"xanchor": "left", "ax": 8} if left else {"xanchor": "right", "ax": -8}
    arrow = {"showarrow": True, "arrowhead": 0, "arrowwidth": 1, "arrowcolor": OTHER, "standoff": 6}
    words_at = {"x": x, "y": y, "text": words, "font": {"size": 11}, "ay": -20 - 18 * (place % 2)}
    return {"name": "wide", **words_at, **arrow, **side}


def pareto_front(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """Names whose point no other has both at most its first and at least its second value, by the first."""
    ordered = sorted(points, key=lambda name: (points[name][0], -points[name][1]))
    front: list[str] = []
    for name in ordered:
        if not front or points[name][1] > points[front[-1]][1]:
            front.append(name)
    return front
