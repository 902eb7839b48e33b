"""Which features are strong alone, selected, removed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.experiment.results import DataSetResults, Results
from ranksieve.experiment.tables import title
from ranksieve.report.canvas import OTHER, PALETTE, Figure, Styles, axis, faint, layout, text
from ranksieve.report.words import metric_title

BLUE, ORANGE = PALETTE[0], PALETTE[1]
NEAR_ZERO = 0.25  # so that the smallest weight in use can be told from none
SCALE = [[0.0, "#b35c00"], [0.45, "#f2b866"], [0.5, "#bbbbbb"], [0.55, "#8cc3ee"], [1.0, "#1f66a8"]]
ROW_HEIGHT, LEAST_HEIGHT, BARS_HEIGHT, MARGINS = 8, 180, 110, 42
LONGEST, LETTER, LEAST_ROOM = 28, 6.2, 48  # letters of a name below a picture, and their room
CROWDED = 150  # columns; gaps between more of them would hide the cells
PLAIN = "\u200b"  # no width; plotly keeps categories in an object, where "constructor" has a meaning


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
        "type": "bar", "x": _categories(names), "y": alone[order].tolist(),
        "customdata": [text(name) for name in names],
        "marker": {"color": [BLUE if alone[j] >= random.mean() else OTHER for j in order]},
        "hovertemplate": "%{customdata} alone: %{y:.4f}<extra></extra>",
    }  # fmt: skip
    band = {"type": "rect", "xref": "paper", "x0": 0, "x1": 1, "yref": "y", "layer": "above"}
    line = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": "y"}
    mean, low, high = (float(f(random)) for f in (np.mean, np.min, np.max))
    shapes = [
        band | {"y0": low, "y1": high, "fillcolor": ORANGE, "opacity": 0.25, "line": {"width": 0}},
        line | {"y0": mean, "y1": mean, "line": {"color": ORANGE, "width": 2}},
    ]
    words = {"xref": "paper", "x": 1, "xanchor": "right", "y": high, "yanchor": "bottom", "showarrow": False}
    note = [words | {"text": f"random weights: {mean:.4f}"}]
    metric = axis(f"test {metric_title(studies[0]['metric'])}", rangemode="tozero")
    return {
        "data": [bars],
        "layout": _layout_over_names(372, names, yaxis=metric, shapes=shapes, annotations=note),
    }


def _categories(names: Sequence[str]) -> list[str]:
    """Names as places of an axis."""
    return [PLAIN + text(name) for name in names]


def _layout_over_names(height: float, names: Sequence[str], **parts: Any) -> dict[str, Any]:
    """A layout of this height plus the room for the names below it, one place per feature.

    Of a long name the beginning and the end are written.
    """
    half = LONGEST // 2
    short = {name: f"{name[:half]}…{name[1 - half :]}" for name in names if len(name) > LONGEST}
    room = max(LEAST_ROOM, 14 + LETTER * max(len(short.get(name, name)) for name in names))
    alias = {PLAIN + text(name): text(cut) for name, cut in short.items()}
    look = {"tickangle": -90, "tickfont": {"size": 10}, "showgrid": False}
    places = axis("", type="category", labelalias=alias, **look)
    plain = layout(round(height + room), xaxis=places, **parts)
    return plain | {"margin": {**plain["margin"], "b": round(room)}}


def removed_features(results: Results, styles: Styles) -> Figure | None:
    """1 − sparsity of each method, one polygon per data set."""
    sparsities = {
        name: {m: r.to_row()["sparsity"] for m, r in data.results.items()}
        for name, data in results.data_sets.items()
    }
    methods = [m for m in styles if any(not np.isnan(of.get(m, np.nan)) for of in sparsities.values())]
    if not methods:
        return None
    around = [text(title(method)) for method in [*methods, methods[0]]]
    polygons = [
        {
            "type": "scatterpolar", "mode": "lines+markers", "fill": "toself", "theta": around,
            "name": text(name), "r": [1.0 - of.get(m, np.nan) for m in [*methods, methods[0]]],
            "line": {"color": colour}, "marker": {"color": colour, "size": 6}, "fillcolor": faint(colour),
            "hovertemplate": "%{theta} removes %{r:.0%} on %{fullData.name}<extra></extra>",
        }
        for (name, of), colour in zip(sparsities.items(), cycle(PALETTE), strict=False)
    ]  # fmt: skip
    marks = {"tickformat": ".0%", "tickvals": [0.25, 0.5, 0.75], "tickangle": 90}
    polar = {
        "radialaxis": {"range": [0, 1], "angle": 90, **marks},
        "angularaxis": {"direction": "clockwise", "tickfont": {"size": 11}},
        "bgcolor": "rgba(0,0,0,0)",
    }
    shown = {"showlegend": True, "legend": {"orientation": "h", "x": 0.5, "xanchor": "center", "y": -0.12}}
    margin = {"l": 90, "r": 90, "t": 40, "b": 40}
    return {"data": polygons, "layout": layout(520, polar=polar) | shown | {"margin": margin}}


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
        "type": "bar", "x": _categories(names), "y": used[order].tolist(), "yaxis": "y2",
        "marker": {"color": OTHER}, "customdata": [text(name) for name in names],
        "hovertemplate": "%{customdata} is used by %{y:.0%} of the models<extra></extra>",
    }  # fmt: skip
    cells = {
        "type": "heatmap", "x": _categories(names), "z": [_shades(coef[order]) for coef in weights],
        "text": [
            [f"{text(name)}: {w:+.4g}" if w else "" for name, w in zip(names, coef[order], strict=True)]
            for coef in weights
        ],
        "customdata": [[text(model)] * len(names) for model in models],
        "zmin": -1, "zmax": 1, "colorscale": SCALE, "showscale": False,
        "xgap": int(len(names) <= CROWDED), "ygap": 1,
        "hovertemplate": "%{customdata}<br>%{text}<extra></extra>", "hoverongaps": False,
    }  # fmt: skip
    counts = {name: len(coefs) for name, coefs in linear.items()}
    return {"data": [bars, cells], "layout": _matrix_layout(names, counts)}


def linear_coefs(results: DataSetResults) -> dict[str, FloatArray]:
    """Weights (folds × features) of each linear method."""
    stacked = {name: np.array([f.coef for f in result.folds]) for name, result in results.results.items()}
    return {name: coefs for name, coefs in stacked.items() if not np.isnan(coefs).any()}


def _shades(coef: FloatArray) -> list[float | None]:
    """sign(w)·(¼ + ¾·|w|/max|w|), None for no weight."""
    largest = np.abs(coef).max(initial=0.0)
    return [
        None if w == 0 else float(np.sign(w) * (NEAR_ZERO + (1 - NEAR_ZERO) * abs(w) / largest)) for w in coef
    ]


def _matrix_layout(names: Sequence[str], counts: dict[str, int]) -> dict[str, Any]:
    ends = np.cumsum(list(counts.values())) - 0.5
    middles = [end - count / 2 for end, count in zip(ends, counts.values(), strict=True)]
    inner = max(ROW_HEIGHT * sum(counts.values()), LEAST_HEIGHT) + BARS_HEIGHT
    share = BARS_HEIGHT / inner
    line = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": "y"}
    axes = {
        "yaxis": axis(
            "",
            domain=[0, 1 - share],
            range=[ends[-1], -0.5],
            tickvals=middles,
            ticktext=[text(title(name)) for name in counts],
            tickfont={"size": 11},
            showgrid=False,
            zeroline=False,
            automargin=True,
        ),
        "yaxis2": axis("used by", domain=[1 - share + 0.02, 1], range=[0, 1.02], tickformat=".0%", nticks=3),
    }
    grey = {"line": {"color": OTHER, "width": 1}}
    shapes = [line | grey | {"y0": float(end), "y1": float(end)} for end in ends[:-1]]
    return _layout_over_names(inner + MARGINS, names, **axes, shapes=shapes)
