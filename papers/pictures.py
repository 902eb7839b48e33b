"""Pictures for the results page: for any results, as in the papers, and of the studies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, Generic, TypeVar

import numpy as np

from papers.choices import CURVE_METRICS, PaperResults, Reproduction
from papers.studies.base import METRIC, first_row, rows_of
from papers.studies.minbatsrank import BATCH, online_means
from papers.studies.selectors import SELECTORS
from ranksieve._types import AnyArray, FloatArray, IntArray
from ranksieve.experiment.fold_run import CUTOFFS
from ranksieve.experiment.tables import method_title
from ranksieve.report.page import (
    OTHER,
    PALETTE,
    SYMBOLS,
    Figure,
    Style,
    Styles,
    axis,
    faint,
    layout,
    log_axis,
    method_line,
    pack,
)
from ranksieve.report.results_page import MAP_CAPTION, MAP_TITLE, Picture, linear_coefs, map_against_density
from ranksieve.show.formats import metric_title

Source = TypeVar("Source")


@dataclass(frozen=True)
class Drawing(Generic[Source]):
    """A picture with its caption; ``draw`` returns None if the results lack its data."""

    title: str
    caption: str
    draw: Callable[[Source, Styles], Figure | None]
    legend: bool = True  # whether the colours are those of the methods
    extra_styles: Styles = field(default_factory=dict)  # further lines in the legend


def render_pictures(drawings: Mapping[str, Drawing[Any]], source: Any, styles: Styles) -> list[Picture]:
    """Render the pictures that have data in the results."""
    pictures = []
    for name, drawing in drawings.items():
        figure = drawing.draw(source, styles)
        if figure is not None:
            drawn = {trace.get("legendgroup") for trace in figure["data"]}
            entries = [*styles.items(), *drawing.extra_styles.items()] if drawing.legend else []
            legend = [(key, style) for key, style in entries if key in drawn]
            pictures.append(Picture(name, drawing.title, drawing.caption, figure, legend))
    return pictures


SizeCurve = tuple[str, Style, list[float]]
"""Name, style and values for 1, 2, … features."""

COLOUR_SCALE = [[-1.0, "#b35c00"], [-0.1, "#f2b866"], [0.0, "#bbbbbb"], [0.1, "#8cc3ee"], [1.0, "#1f66a8"]]
ROW_HEIGHT, MIN_HEIGHT, BARS_HEIGHT, MARGINS = 8, 180, 110, 42
BLUE, ORANGE = PALETTE[0], PALETTE[1]
SIZE_STYLES = {
    "path with at most k": Style("certified path, at most k", "#8f98a3", "circle", "dot"),
    "fbpcrank with at most k": Style("FBPCRank, at most k", "#c08497", "square", "dash"),
    "fsrank with k": Style("FS-Rank, fitted with k", "#7d8f69", "diamond", "dash"),
    "gas with k": Style("GAS-E, fitted with k", "#a5673f", "triangle-up", "dash"),
    "fsmsvm with k": Style("FSMSVM, fitted with k", "#557a95", "x", "dash"),
}
MAX_POINTS = 120  # of a line; more cannot be distinguished
FLOOR = 1e-13  # smaller relative differences of objectives are rounding errors
SIZES_HOVER = "{name}\n{x} features: {y:.4f}"
SECONDS_HOVER = "{name}\n{x:.3g} s: {y:.2e}"
ITERATIONS_HOVER = "{name}\n{x} iterations: {y:.2e}"
DOCUMENTS_HOVER = "{name}\n{x:.0f} documents: {y:.4f}"


def feature_axis(names: Sequence[str]) -> dict[str, Any]:
    """Axis with one tick per feature, labelled with its name."""
    return axis("", type="category", categories=names, showgrid=False)


def selected_features(results: PaperResults, styles: Styles) -> Figure | None:
    """The weights of all folds of all linear methods, and how often each feature is selected."""
    coefs_by_method = linear_coefs(results)
    if not coefs_by_method:
        return None
    weights = [coef for coefs in coefs_by_method.values() for coef in coefs]
    used = np.mean([coef != 0 for coef in weights], axis=0)
    order = np.argsort(-used, kind="stable")
    names = [results.features[j] for j in order]
    models = [
        f"{method_title(name)}, fold {k}"
        for name, coefs in coefs_by_method.items()
        for k, _ in enumerate(coefs, 1)
    ]
    bars = {
        "type": "bar", "x": names, "y": used[order].tolist(), "yaxis": "y2", "marker": {"color": OTHER},
        "hover": "{x} is used by {y:.0%} of the models",
    }  # fmt: skip
    cells = {
        "type": "cells", "x": names, "rows": models, "colours": COLOUR_SCALE,
        "values": [pack((w or None for w in coef[order]), 4) for coef in weights],
        "hover": "{row}\n{x}: {value:+.4g}",
    }  # fmt: skip
    counts = {name: len(coefs) for name, coefs in coefs_by_method.items()}
    return {"data": [bars, cells], "layout": _matrix_layout(names, counts)}


def _matrix_layout(names: Sequence[str], counts: dict[str, int]) -> dict[str, Any]:
    """Layout with a bar above each column of cells and a line between the rows of different methods."""
    ends = np.cumsum(list(counts.values())) - 0.5
    middles = [end - count / 2 for end, count in zip(ends, counts.values(), strict=True)]
    inner = max(ROW_HEIGHT * sum(counts.values()), MIN_HEIGHT) + BARS_HEIGHT
    share = BARS_HEIGHT / inner
    line = {"type": "line", "xref": "paper", "line": {"color": OTHER, "width": 1}}
    axes = {
        "xaxis": feature_axis(names),
        "yaxis": axis("", domain=[0, 1 - share], range=[float(ends[-1]), -0.5], showgrid=False)
        | {"tickvals": middles, "ticktext": [method_title(name) for name in counts]},
        "yaxis2": axis("used by", domain=[1 - share + 0.02, 1], range=[0, 1.02], tickformat=".0%", dtick=0.5),
    }
    shapes = [line | {"y0": float(end), "y1": float(end)} for end in ends[:-1]]
    return layout(inner + MARGINS, **axes, shapes=shapes)


def ndcg_curves(results: PaperResults, styles: Styles) -> Figure:
    """NDCG@1 to NDCG@10 of each method, and the difference from the mean of all methods."""
    cutoffs = list(CUTOFFS)
    means = {name: np.array([r.mean(f"ndcg@{k}") for k in cutoffs]) for name, r in results.results.items()}
    centre = np.mean(list(means.values()), axis=0)
    look: dict[str, Any] = {"mode": "lines+markers", "hover": "{name}\nNDCG@{x}: {y:.4f}"}
    lines = [
        method_line(styles[name], name, cutoffs, (mean - reference).tolist(), yaxis=panel, **look)
        for panel, reference in (("y", 0.0), ("y2", centre))
        for name, mean in means.items()
    ]
    axes = {
        "xaxis": axis("cut-off k", dtick=1, anchor="y2"),
        "yaxis": axis("test NDCG@k", domain=[0.54, 1.0]),
        "yaxis2": axis("difference from the mean", domain=[0.0, 0.46]),
    }
    return {"data": lines, "layout": layout(640, **axes)}


def sizes(results: PaperResults, styles: Styles) -> Figure:
    """Accuracy with k features, of truncated models and in the studies."""
    lines = [
        method_line(style, name, range(1, len(values) + 1), values, yaxis=panel, hover=SIZES_HOVER)
        for panel, metric in zip(("y", "y2"), CURVE_METRICS, strict=True)
        for name, style, values in [
            *_truncation_lines(results, styles, metric),
            *study_size_curves(results, metric),
        ]
    ]
    first, second = (f"test {metric_title(metric)}" for metric in CURVE_METRICS)
    axes = {
        "xaxis": axis("number of features k", dtick=1, anchor="y2"),
        "yaxis": axis(first, domain=[0.54, 1.0]),
        "yaxis2": axis(second, domain=[0.0, 0.46]),
    }
    return {"data": lines, "layout": layout(680, **axes)}


def _truncation_lines(results: PaperResults, styles: Styles, metric: str) -> list[SizeCurve]:
    """One line per linear method: its models truncated to the k largest weights."""
    lines = []
    for name, folds in results.methods.items():
        curves = results.truncation_curves(name)
        if len(curves) == len(folds):
            values = [curve[metric] for curve in curves]
            lines.append((name, styles[name], mean_with_at_most([(range(1, len(v) + 1), v) for v in values])))
    return lines


def mean_with_at_most(folds: Sequence[tuple[Sequence[int], Sequence[float]]]) -> list[float]:
    """Mean over folds of the value with at most k features, for k = 1, 2, …

    Each fold has increasing sizes with their values. Between sizes, and beyond the largest one, the value of
    the next smaller size is used; below the smallest it is NaN.
    """
    if not folds:
        return []
    k = np.arange(1, max(max(counts, default=0) for counts, _ in folds) + 1)
    values: list[FloatArray] = []
    for counts, fold_values in folds:
        index = np.searchsorted(counts, k, side="right")  # 0: all sizes are larger
        values.append(np.array([np.nan, *fold_values])[index])
    mean: list[float] = np.mean(values, axis=0).tolist()
    return mean


def removed_features(results: Reproduction, styles: Styles) -> Figure | None:
    """1 − density of each method, one polygon per data set; None for fewer than three methods."""
    sparsities = {
        name: {m: r.to_row()["density"] for m, r in data.results.items()}
        for name, data in results.data_sets.items()
    }
    methods = [
        m for m in styles if any(not np.isnan(by_name.get(m, np.nan)) for by_name in sparsities.values())
    ]
    if len(methods) < 3:
        return None
    corners = [*methods, methods[0]]
    polygons = [
        {
            "type": "net", "theta": [method_title(method) for method in corners],
            "name": name, "r": [1.0 - by_name.get(method, np.nan) for method in corners],
            "line": {"color": colour}, "marker": {"color": colour, "size": 6}, "fillcolor": faint(colour),
            "hover": "{theta} removes {r:.0%} on {name}",
        }
        for (name, by_name), colour in zip(sparsities.items(), cycle(PALETTE), strict=False)
    ]  # fmt: skip
    return {"data": polygons, "layout": layout(520, showlegend=True, net=True)}


def study_size_curves(results: PaperResults, metric: str) -> list[SizeCurve]:
    """Lines of the certified path, of FBPCRank and of the selectors."""
    paths = [best_on_path(study["path"], metric) for study in results.studies if "path" in study]
    fbpcrank = [
        (study["sizes"]["n_features"], study["sizes"]["test"][metric])
        for study in results.studies
        if "sizes" in study
    ]
    selectors = [
        [
            (study["selectors"]["n_features"], study["selectors"]["selectors"][selector]["test"][metric])
            for study in results.studies
            if "selectors" in study
        ]
        for selector in SELECTORS
    ]
    curves = (paths, fbpcrank, *selectors)
    return [
        (name, style, mean_with_at_most(folds))
        for (name, style), folds in zip(SIZE_STYLES.items(), curves, strict=True)
    ]


def best_on_path(path: Mapping[str, Any], metric: str) -> tuple[list[int], list[float]]:
    """For each number k of features on the path, the test value of the best point with 1 to k features.

    The best point is selected on validation data; ties: the stronger penalty.
    """
    used = np.asarray(path["n_nonzero"])
    validation = np.asarray(path["validation"][metric]["mean"])
    test = path["test"][metric]["mean"]
    counts = [int(k) for k in np.unique(used[used > 0])]
    best = [int(np.argmax(np.where((used > 0) & (used <= k), validation, -np.inf))) for k in counts]
    return counts, [test[point] for point in best]


def single_features(results: PaperResults, styles: Styles) -> Figure | None:
    """NDCG of each feature alone, and of random weights (FenchelRank, Fig. 1)."""
    studies = [study["single_features"] for study in results.studies if "single_features" in study]
    if not studies:
        return None
    alone = np.mean([study["alone"] for study in studies], axis=0)
    random = np.mean([study["random"] for study in studies], axis=0)
    order = np.argsort(-alone, kind="stable")
    names = [studies[0]["features"][j] for j in order]
    bars = {
        "type": "bar", "x": names, "y": alone[order].tolist(),
        "marker": {"color": [BLUE if alone[j] >= random.mean() else OTHER for j in order]},
        "hover": "{x} alone: {y:.4f}",
    }  # fmt: skip
    band, line = {"type": "rect", "xref": "paper"}, {"type": "line", "xref": "paper"}
    mean, low, high = (float(f(random)) for f in (np.mean, np.min, np.max))
    shapes = [
        band | {"y0": low, "y1": high, "fillcolor": ORANGE, "opacity": 0.25},
        line | {"y0": mean, "y1": mean, "line": {"color": ORANGE, "width": 2}},
    ]
    note = {"xref": "paper", "xanchor": "right", "y": high, "text": f"random weights: {mean:.4f}"}
    metric = axis(f"test {metric_title(studies[0]['metric'])}", rangemode="tozero")
    look = layout(372, xaxis=feature_axis(names), yaxis=metric, shapes=shapes, annotations=[note])
    return {"data": [bars], "layout": look}


def convergence(results: PaperResults, styles: Styles) -> Figure | None:
    """Objective − optimum, and relative gap, over time."""
    study = next((study["convergence"] for study in results.studies if "convergence" in study), None)
    if study is None:
        return None
    lines = []
    for k, (name, run) in enumerate(study["runs"].items()):
        seconds, objective = np.asarray(run["seconds"]), np.asarray(run["objective"])
        positive = seconds > 0  # the axis is logarithmic
        excess = np.maximum(objective - study["optimum"], FLOOR * study["optimum"])
        gap = np.maximum(np.asarray(run["gap"]) / objective, FLOOR)
        lines.append(_line(name, seconds[positive], excess[positive], k))
        lines.append(_line(name, seconds[positive], gap[positive], k) | {"yaxis": "y2", "showlegend": False})
    axes = {
        "xaxis": log_axis("seconds", anchor="y2"),
        "yaxis": log_axis("objective − optimum", domain=[0.54, 1.0]),
        "yaxis2": log_axis("relative gap", domain=[0.0, 0.46]),
    }
    return {"data": lines, "layout": layout(680, showlegend=True, **axes)}


def descent(results: PaperResults, styles: Styles) -> Figure | None:
    """FSMRank and a subgradient method: distance from the optimum over iterations and time."""
    study = first_row(results, "fsmrank_descent")
    if study is None:
        return None
    lines = []
    for k, (name, run) in enumerate(study["runs"].items()):
        distance = np.maximum(np.asarray(run["objective"]) / study["optimum"] - 1.0, FLOOR)[1:]
        seconds, iterations = np.asarray(run["seconds"])[1:], np.arange(1, len(distance) + 1)
        upper = _line(name, iterations, distance, k) | {"hover": ITERATIONS_HOVER}
        lower = _line(name, seconds, distance, k) | {"xaxis": "x2", "yaxis": "y2", "showlegend": False}
        lines += [upper, lower]
    axes = {
        "xaxis": log_axis("iterations", anchor="y"),
        "xaxis2": log_axis("seconds", anchor="y2"),
        "yaxis": log_axis("(objective − optimum) / optimum", domain=[0.6, 1.0]),
        "yaxis2": log_axis("(objective − optimum) / optimum", domain=[0.0, 0.4], anchor="x2"),
    }
    return {"data": lines, "layout": layout(680, showlegend=True, **axes)}


def _line(name: str, x: AnyArray, y: FloatArray, k: int) -> Figure:
    x, y = (values[_shown_points(len(x))] for values in (x, y))
    return {
        "type": "scatter",
        "mode": "lines+markers" if len(x) <= 20 else "lines",
        "name": name,
        "legendgroup": f"solver {name}",
        "x": x.tolist(),
        "y": y.tolist(),
        "line": {"color": PALETTE[k % len(PALETTE)], "width": 2},
        "marker": {"color": PALETTE[k % len(PALETTE)], "symbol": SYMBOLS[k % len(SYMBOLS)], "size": 7},
        "hover": SECONDS_HOVER,
    }


def _shown_points(count: int) -> IntArray:
    """Indices of the points of a line to draw: all, or MAX_POINTS spaced evenly on a logarithmic scale."""
    if count <= MAX_POINTS:
        return np.arange(count)
    return np.unique(np.geomspace(1, count, MAX_POINTS).round().astype(np.int64)) - 1


def online(results: PaperResults, styles: Styles) -> Figure | None:
    """NDCG@10 of MinBatSRank during one pass, and of methods that use all documents at once."""
    rows = rows_of(results, "minbatsrank_online")
    if not rows:
        return None
    documents = np.mean([row["documents"] for row in rows], axis=0)
    traces: list[dict[str, Any]] = []
    for k, name in enumerate(rows[0]["curves"]):
        curves = online_means(rows, name, METRIC)
        shared = {"legendgroup": name, "x": documents.tolist()}
        low, high = curves.min(axis=0).tolist(), curves.max(axis=0).tolist()
        traces += [
            {**shared, "type": "band", "low": low, "high": high, "color": faint(PALETTE[k])},
            {
                **shared,
                "type": "scatter",
                "mode": "lines",
                "name": name,
                "y": curves.mean(axis=0).tolist(),
                "line": {"color": PALETTE[k], "width": 2},
                "hover": DOCUMENTS_HOVER,
            },
        ]
    for name in (name for name in BATCH if name in results.results):
        level = results.results[name].mean(METRIC)
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": method_title(name),
                "x": [documents[0], documents[-1]],
                "y": [level, level],
                "line": {"color": styles[name].colour, "dash": "dot", "width": 1.5},
                "hover": DOCUMENTS_HOVER,
            }
        )
    axes = {"xaxis": axis("documents seen", rangemode="tozero"), "yaxis": axis("test NDCG@10")}
    return {"data": traces, "layout": layout(460, showlegend=True, **axes)}


PICTURES: dict[str, Drawing[PaperResults]] = {
    "ndcg_curves": Drawing(
        "NDCG@1 to NDCG@10",
        "Test NDCG at each cut-off, mean over folds; below, the difference from the mean of all methods. "
        "Higher is better. In the letor profile a list shorter than k counts 0, so the curves decrease where "
        "many lists are short.",
        ndcg_curves,
    ),
    "sizes": Drawing(
        "Accuracy against the number of features",
        "Accuracy with at most k features. Methods: the selected model truncated to its k largest weights, "
        "without refitting (FSMRank's protocol). Certified path: the point with at most k features that is "
        "best on validation data. FBPCRank: fitted with at most k features. FS-Rank, GAS-E, FSMSVM: RankSVM "
        "fitted on the k features they select, for some values of k. Test values, means over folds.",
        sizes,
        extra_styles=SIZE_STYLES,
    ),
    "map_against_density": Drawing(MAP_TITLE, MAP_CAPTION, map_against_density),
    "selected_features": Drawing(
        "Features selected in each fold",
        "One row for each fold of each method, the first fold on top. A cell is coloured if the model uses "
        "the feature: blue for a positive weight, orange for a negative one, darker for a larger one. Above: "
        "the share of models that use the feature; columns are sorted by it.",
        selected_features,
        legend=False,
    ),
    "single_features": Drawing(
        "Each feature alone, and random weights",
        "Test NDCG@10 of ranking by one feature, mean over folds, best first. The line is the mean of random "
        "weights w ≥ 0, Σw = 1, and the band is their range. A feature below the line (grey) ranks worse "
        "than a random mixture of all features.",
        single_features,
        legend=False,
    ),
    "convergence": Drawing(
        "Convergence of solvers",
        "Several solvers on one ℓ1 problem, the middle of the path of the first fold. Above: distance of the "
        "objective from the optimum. Below: the relative duality gap, which bounds this distance. Both axes "
        "are logarithmic; steeper is faster. A point at the lower edge is at the optimum up to rounding. "
        "Frank–Wolfe solves the same problem with the constraint ‖w‖₁ ≤ r.",
        convergence,
        legend=False,
    ),
    "descent": Drawing(
        "Convergence of FSMRank",
        "Relative distance of FSMRank's objective from its optimum, over iterations (above) and seconds "
        "(below), for its accelerated gradient method and for a subgradient method with the best of several "
        "step sizes; first fold. Both axes are logarithmic.",
        descent,
        legend=False,
    ),
    "online": Drawing(
        "Learning from a stream",
        "Test NDCG@10 of MinBatSRank over the number of documents seen, each once, with one learning rate "
        "per feature and with one for all features (Nonfea). Means over folds and query orders; the band "
        "shows the range over the orders. Dotted: methods that use all documents at once.",
        online,
        legend=False,
    ),
}

OVERVIEWS: dict[str, Drawing[Reproduction]] = {
    "removed_features": Drawing(
        "Removed features",
        "Share of the varying features that each method does not use (1 − density), mean over folds. Further "
        "out means fewer features.",
        removed_features,
        legend=False,
    ),
}
