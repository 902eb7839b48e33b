"""Curves of a model as figures, sentences and table cells."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.data.matrix import dense_block
from ranksieve.model.linear import Curve, LinearModel
from ranksieve.report.page import OTHER, PALETTE, Figure, axis, layout, marks, percent_text, plural, steps

N_BINS = 24
TAIL = 0.01  # share of the values beyond each end of a picture, unless thresholds are there
MARGIN = 0.08  # of the range of the thresholds
LOG_RATIO = 300.0  # of the largest to the smallest value on a logarithmic axis
MAIN, SIDE = [0.0, 0.74], [0.8, 1.0]  # shares of the width: the curve, the level of missing values
CURVE, VALUES = [0.36, 1.0], [0.0, 0.26]  # shares of the height: the curve, the histogram


def value_texts(curve: Curve) -> list[str]:
    """Values of each level: "below 7.5", "from 7.5 to 7.9", "from 7.9"."""
    if not curve.thresholds:
        return ["any value"]
    texts = [number(t) for t in curve.thresholds]
    inner = [f"from {low} to {high}" for low, high in pairwise(texts)]
    return [f"below {texts[0]}", *inner, f"from {texts[-1]}"]


def number(value: float) -> str:
    """A value of a feature, with at most seven significant digits."""
    return f"{value:.7g}".replace("-", "−")


def level_text(level: float) -> str:
    """A level with its sign and three significant digits."""
    return f"{level:+.3g}".replace("-", "−") if level else "0"


def direction(curve: Curve) -> str:
    """Whether the curve rises, falls, or does both."""
    rises = curve.steps
    if not len(rises):
        return "only missing"
    return "rising" if (rises >= 0).all() else "falling" if (rises <= 0).all() else "neither"


def by_range(curves: dict[str, Curve]) -> dict[str, Curve]:
    """Curves by decreasing range."""
    return dict(sorted(curves.items(), key=lambda one: -one[1].range))


CURVE_COLUMNS = ("range", "lowest", "highest", "steps", "direction")


def curve_cells(curve: Curve) -> tuple[str, ...]:
    """Cells of ``CURVE_COLUMNS``; the lowest and highest levels are those of values, not of missing ones."""
    lowest, highest = level_text(min(curve.levels)), level_text(max(curve.levels))
    return f"{curve.range:.3g}", lowest, highest, str(len(curve.thresholds)), direction(curve)


@dataclass(frozen=True)
class CurvePicture:
    """A feature, a sentence about its curve, its figure, and the level of each range of values."""

    name: str
    caption: str
    figure: Figure
    levels: list[tuple[str, str]]


def curve_pictures(model: LinearModel, data: Dataset | None = None) -> list[CurvePicture]:
    """One picture per curve by decreasing range, all with the same vertical scale.

    With data, the values of each feature are drawn as a histogram, and missing values with their share.
    """
    curves = by_range(model.curves)
    levels = [level for curve in curves.values() for level in (*curve.levels, curve.missing)]
    ends = min(levels, default=0.0), max(levels, default=1.0)
    margin = 0.06 * (ends[1] - ends[0]) or 1.0
    scale = [ends[0] - margin, ends[1] + margin]
    values = {} if data is None else _values(model, data)
    return [_picture(name, curve, scale, values.get(name)) for name, curve in curves.items()]


def _values(model: LinearModel, data: Dataset) -> dict[str, FloatArray]:
    matrix, columns = model.locate(data)
    return {
        name: np.asarray(dense_block(matrix, slice(None), columns[k : k + 1])[:, 0], dtype=np.float64)
        for k, name in enumerate(model.names)
    }


def _picture(name: str, curve: Curve, scale: list[float], values: FloatArray | None) -> CurvePicture:
    share = None if values is None else float(np.mean(np.isnan(values)))
    has_missing = bool(share or curve.missing)
    missing = f"missing{'' if share is None else f' ({_share(share)})'}"
    levels = list(zip(value_texts(curve), map(level_text, curve.levels), strict=True))
    caption = (
        f"{level_text(min(curve.levels))} to {level_text(max(curve.levels))}, {direction(curve)}, "
        f"{plural(len(curve.thresholds), 'step')}"
        if curve.thresholds
        else "no step"
    )
    if has_missing:
        levels.append(("missing", level_text(curve.missing)))
        caption += f"; {missing}: {level_text(curve.missing)}"
    present = None if values is None else values[np.isfinite(values)]
    figure = _figure(name, curve, scale, present, share, has_missing)
    return CurvePicture(name, f"{caption}.", figure, levels)


def _figure(
    name: str,
    curve: Curve,
    scale: list[float],
    present: FloatArray | None,
    share: float | None,
    missing: bool,
) -> Figure:
    """The curve, beneath it the values, and at the side what is missing."""
    ends, histogram = _ends(curve, present), present is not None and len(present) > 0
    level, side = "{text}: {y:+.3g}", {"xaxis": "x2"}
    texts = [f"{name} {text}" for text in value_texts(curve)]
    edges = [ends[0], *curve.thresholds, ends[1]]
    traces = [steps(edges, curve.levels, PALETTE[0], text=texts, hover=level)]
    is_log = ends[0] > 0 and ends[1] > LOG_RATIO * ends[0]
    bottom = "y2" if histogram else "y"
    axes: dict[str, Any] = {
        "xaxis": axis("", anchor=bottom, domain=MAIN if missing else [0.0, 1.0], showgrid=False)
        | ({"type": "log"} if is_log else {"tickformat": ".9g"}),
        "yaxis": axis("level", domain=CURVE if histogram else [0.0, 1.0], zeroline=True, range=scale),
    }
    if present is not None and histogram:
        traces.append(_bars(name, present, ends, is_log))
        axes["yaxis2"] = axis("", domain=VALUES, rangemode="tozero", tickvals=[], ticktext=[])
    if missing:
        words = "missing" if share is None else f"{_share(share)} missing"
        dot = marks([0], [curve.missing], "", PALETTE[1], 10, text=[f"{name} missing"], hover=level, **side)
        traces.append(dot)
        look = {"tickvals": [0], "ticktext": [words], "showgrid": False, "range": [-1, 1]}
        axes["xaxis2"] = axis("", anchor=bottom, domain=SIDE, **look)
    return {"data": traces, "layout": layout(230 if histogram else 180, **axes)}


def _ends(curve: Curve, present: FloatArray | None) -> tuple[float, float]:
    """The values at which a picture begins and ends: those of all thresholds, and of most values."""
    inside = list(curve.thresholds)
    if present is not None and len(present):
        inside += np.quantile(present, [TAIL, 1.0 - TAIL], method="nearest").tolist()
    low, high = (min(inside), max(inside)) if inside else (0.0, 1.0)
    if low > 0 and high > LOG_RATIO * low:
        margin = (high / low) ** MARGIN
        return low / margin, high * margin
    margin = MARGIN * (high - low) or 0.1 * abs(high) or 1.0
    return low - margin, high + margin


def _bars(name: str, present: FloatArray, ends: tuple[float, float], is_log: bool) -> Figure:
    """A histogram; values beyond the ends count in the first and the last bar."""
    distinct = np.unique(np.clip(present, *ends))
    if len(distinct) <= N_BINS:
        edges = np.array([ends[0], *(0.5 * (distinct[:-1] + distinct[1:])), ends[1]])
        texts = [number(value) for value in distinct.tolist()]
    else:
        edges = (np.geomspace if is_log else np.linspace)(*ends, N_BINS + 1)
        shown = [f"{edge:.4g}".replace("-", "−") for edge in edges.tolist()]
        texts = [f"from {low} to {high}" for low, high in pairwise(shown)]
    inner = np.searchsorted(edges[1:-1], present, side="right")
    counts = np.bincount(inner, minlength=len(edges) - 1)
    words = [
        f"{name} {text}: {plural(count, 'value')} ({_share(count / len(present))})"
        for text, count in zip(texts, counts.tolist(), strict=True)
    ]
    return steps(edges.tolist(), counts.tolist(), OTHER, True, text=words, hover="{text}", yaxis="y2")


def _share(share: float) -> str:
    return "< 1 %" if 0 < share < 0.005 else percent_text(share)
