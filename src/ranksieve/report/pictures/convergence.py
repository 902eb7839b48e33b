"""How fast solvers reach the optimum of one problem, and prove it."""

from __future__ import annotations

import numpy as np

from ranksieve._types import AnyArray, FloatArray, IntArray
from ranksieve.experiment.results import DataSetResults
from ranksieve.experiment.studies.base import first_row
from ranksieve.report.canvas import PALETTE, SYMBOLS, Figure, Styles, layout, log_axis

MOST_POINTS = 120  # of a line; more of them cannot be told apart
FLOOR = 1e-13  # relative; below this a difference of objectives is rounding error
HOVER = "{name}\n{x:.3g} s: {y:.2e}"
ITERATIONS_HOVER = "{name}\n{x} iterations: {y:.2e}"


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
        "hover": HOVER,
    }


def _thinned(count: int) -> IntArray:
    """Which points of a line are drawn: all of a few; of many, evenly in the logarithm of their number."""
    if count <= MOST_POINTS:
        return np.arange(count)
    return np.unique(np.geomspace(1, count, MOST_POINTS).round().astype(np.int64)) - 1
