"""The papers' pictures: those of any results, and those that studies have the numbers of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from papers.studies.base import METRIC, first_row, rows_of
from papers.studies.minbatsrank import BATCH, online_means
from papers.studies.selectors import SELECTORS
from ranksieve._types import AnyArray, FloatArray, IntArray
from ranksieve.experiment.results import DataSetResults
from ranksieve.experiment.tables import title
from ranksieve.report import results_page as results_pictures
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
    metric_title,
)
from ranksieve.report.results_page import Picture, SizeCurve, mean_with_at_most, over_names

BLUE, ORANGE = PALETTE[0], PALETTE[1]
SIZE_STYLES = {
    "path with at most k": Style("certified path, at most k", "#8f98a3", "circle", "dot"),
    "fbpcrank with at most k": Style("FBPCRank, at most k", "#c08497", "square", "dash"),
    "fsrank with k": Style("FS-Rank, fitted with k", "#7d8f69", "diamond", "dash"),
    "gas with k": Style("GAS-E, fitted with k", "#a5673f", "triangle-up", "dash"),
    "fsmsvm with k": Style("FSMSVM, fitted with k", "#557a95", "x", "dash"),
}
MOST_POINTS = 120  # of a line; more of them cannot be told apart
FLOOR = 1e-13  # relative; below this a difference of objectives is rounding error
SECONDS_HOVER = "{name}\n{x:.3g} s: {y:.2e}"
ITERATIONS_HOVER = "{name}\n{x} iterations: {y:.2e}"
DOCUMENTS_HOVER = "{name}\n{x:.0f} documents: {y:.4f}"


def study_size_curves(results: DataSetResults, metric: str) -> list[SizeCurve]:
    """Of the certified path, of FBPCRank, and of selectors."""
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
    found = (paths, fixed, *refitted)
    return [
        (name, style, mean_with_at_most(of))
        for (name, style), of in zip(SIZE_STYLES.items(), found, strict=True)
    ]


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


def single_features(results: DataSetResults, styles: Styles) -> Figure | None:
    """Each feature's NDCG alone against the mean of random weights (FenchelRank, Fig. 1)."""
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
    look = layout(372, xaxis=over_names(names), yaxis=metric, shapes=shapes, annotations=[note])
    return {"data": [bars], "layout": look}


def convergence(results: DataSetResults, styles: Styles) -> Figure | None:
    """Objective − optimum, and relative gap, against time."""
    study = next((study["convergence"] for study in results.studies if "convergence" in study), None)
    if study is None:
        return None
    lines = []
    for k, (name, run) in enumerate(study["runs"].items()):
        seconds, objective = np.asarray(run["seconds"]), np.asarray(run["objective"])
        shown = seconds > 0  # a logarithmic axis has no zero
        above = np.maximum(objective - study["optimum"], FLOOR * study["optimum"])
        gap = np.maximum(np.asarray(run["gap"]) / objective, FLOOR)
        lines.append(_line(name, seconds[shown], above[shown], k))
        lines.append(_line(name, seconds[shown], gap[shown], k) | {"yaxis": "y2", "showlegend": False})
    axes = {
        "xaxis": log_axis("seconds", anchor="y2"),
        "yaxis": log_axis("objective − optimum", domain=[0.54, 1.0]),
        "yaxis2": log_axis("relative gap", domain=[0.0, 0.46]),
    }
    return {"data": lines, "layout": layout(680, showlegend=True, **axes)}


def descent(results: DataSetResults, styles: Styles) -> Figure | None:
    """FSMRank and a subgradient method: distance from the optimum against iterations and time."""
    study = first_row(results, "fsmrank_descent")
    if study is None:
        return None
    lines = []
    for k, (name, run) in enumerate(study["runs"].items()):
        away = np.maximum(np.asarray(run["objective"]) / study["optimum"] - 1.0, FLOOR)[1:]
        seconds, iterations = np.asarray(run["seconds"])[1:], np.arange(1, len(away) + 1)
        above = _line(name, iterations, away, k) | {"hover": ITERATIONS_HOVER}
        below = _line(name, seconds, away, k) | {"xaxis": "x2", "yaxis": "y2", "showlegend": False}
        lines += [above, below]
    axes = {
        "xaxis": log_axis("iterations", anchor="y"),
        "xaxis2": log_axis("seconds", anchor="y2"),
        "yaxis": log_axis("(objective − optimum) / optimum", domain=[0.6, 1.0]),
        "yaxis2": log_axis("the same", domain=[0.0, 0.4], anchor="x2"),
    }
    return {"data": lines, "layout": layout(680, showlegend=True, **axes)}


def _line(name: str, x: AnyArray, y: FloatArray, k: int) -> Figure:
    x, y = (values[_thinned(len(x))] for values in (x, y))
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


def _thinned(count: int) -> IntArray:
    """Which points of a line are drawn: all of a few; of many, evenly in the logarithm of their number."""
    if count <= MOST_POINTS:
        return np.arange(count)
    return np.unique(np.geomspace(1, count, MOST_POINTS).round().astype(np.int64)) - 1


def online(results: DataSetResults, styles: Styles) -> Figure | None:
    """NDCG@10 of MinBatSRank in one pass, and of methods that see all at once."""
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
                "name": title(name),
                "x": [documents[0], documents[-1]],
                "y": [level, level],
                "line": {"color": styles[name].colour, "dash": "dot", "width": 1.5},
                "hover": DOCUMENTS_HOVER,
            }
        )
    axes = {"xaxis": axis("documents seen", rangemode="tozero"), "yaxis": axis("test NDCG@10")}
    return {"data": traces, "layout": layout(460, showlegend=True, **axes)}


PICTURES: dict[str, Picture[DataSetResults]] = {
    **results_pictures.PICTURES,
    "sizes": replace(
        results_pictures.PICTURES["sizes"],
        caption="What is left if only k features may be used. Methods: the chosen model cut to its k largest "
        "weights, without refitting (FSMRank's protocol). Certified path: of its points with at most k "
        "features the best on validation. FBPCRank: fitted with at most k features; FS-Rank, GAS-E, FSMSVM: "
        "RankSVM fitted on the k features that they choose, for some k. Test means over folds.",
        draw=partial(results_pictures.sizes, further=study_size_curves),
        others=SIZE_STYLES,
    ),
    "single_features": Picture(
        "Each feature alone against random weights",
        "Test NDCG@10 of ranking by one feature, mean over folds, the strongest first. The line is the mean "
        "of random weights w ≥ 0, Σw = 1, the band their range: a feature below the line, in grey, ranks "
        "worse alone than all features mixed blindly.",
        single_features,
        legend=False,
    ),
    "convergence": Picture(
        "Convergence of solvers",
        "One ℓ1 problem, the middle of the path of the first fold, by several solvers: above, how far the "
        "objective is from the optimum; below, what each solver can prove of it, its relative duality gap. "
        "Both axes are logarithmic; steeper is faster. A point at the lower edge is at the optimum up to "
        "rounding. Frank–Wolfe solves the same problem as a ball constraint ‖w‖₁ ≤ r.",
        convergence,
        legend=False,
    ),
    "descent": Picture(
        "FSMRank's descent",
        "How far the objective of FSMRank is from its optimum, as a share of it, after so many iterations "
        "(above) and seconds (below): its accelerated gradient beside a subgradient method with the best of "
        "several step sizes, first fold. Both axes are logarithmic.",
        descent,
        legend=False,
    ),
    "online": Picture(
        "Learning from a stream",
        "Test NDCG@10 of MinBatSRank against the documents seen, each once, with a rate per feature and with "
        "one rate for all (Nonfea): means over folds and orders of the queries; the band is from the lowest "
        "to the highest order. Dotted: methods that have all documents at once.",
        online,
        legend=False,
    ),
}
