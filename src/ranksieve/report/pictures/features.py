"""Which features are strong alone, selected, removed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.experiment.results import DataSetResults, Results
from ranksieve.experiment.tables import title
from ranksieve.report.canvas import OTHER, PALETTE, Figure, Styles, axis, faint, layout, packed
from ranksieve.report.words import metric_title

BLUE, ORANGE = PALETTE[0], PALETTE[1]
SCALE = [[-1.0, "#b35c00"], [-0.1, "#f2b866"], [0.0, "#bbbbbb"], [0.1, "#8cc3ee"], [1.0, "#1f66a8"]]
ROW_HEIGHT, LEAST_HEIGHT, BARS_HEIGHT, MARGINS = 8, 180, 110, 42


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
    look = layout(372, xaxis=_over_names(names), yaxis=metric, shapes=shapes, annotations=[note])
    return {"data": [bars], "layout": look}


def _over_names(names: Sequence[str]) -> dict[str, Any]:
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
        "xaxis": _over_names(names),
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
