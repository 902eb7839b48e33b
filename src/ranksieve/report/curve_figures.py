"""Curves of a model as figures, sentences and table cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.data.matrix import dense_block
from ranksieve.model.linear import Curve, LinearModel
from ranksieve.report.page import OTHER, PALETTE, Figure, axis, layout, marks, steps
from ranksieve.show.formats import by_range, direction, level_text, number, percent_text, plural, value_texts

N_BINS, MAX_BINS = 24, 40  # bars of a histogram; the most if each is one value
MAX_PLACES = 2000  # of a regular grid; values on a finer one count as continuous
LEVEL_HOVER = "{text}: {y:+.3g}"
TAIL = 0.01  # share of the values beyond each end of a picture, unless thresholds are there
MARGIN = 0.08  # of the range of the thresholds
LOG_RATIO = 30.0  # least ratio of the largest to the smallest value on a logarithmic axis
SKEWED = 0.1  # the median is below this share of the range: a logarithmic axis, if values are positive
MAIN, SIDE = [0.0, 0.74], [0.8, 1.0]  # shares of the width: the curve, the level of missing values
WHOLE = [0.0, 1.0]
CURVE, VALUES = [0.36, 1.0], [0.0, 0.26]  # shares of the height: the curve, the histogram


@dataclass(frozen=True)
class CurvePicture:
    """A feature, a sentence about its curve, its figure, and the level of each range of values."""

    name: str
    caption: str
    figure: Figure
    levels: list[tuple[str, str]]


def curve_pictures(
    model: LinearModel, data: Dataset | None = None, colours: Mapping[str, str] | None = None
) -> list[CurvePicture]:
    """One picture per curve by decreasing range, all with the same vertical scale.

    With data, the values of each feature are drawn as a histogram, and missing values with their share.
    ``colours`` of the curves by feature; by default, all have the same.
    """
    curves = by_range(model.curves)
    levels = [level for curve in curves.values() for level in (*curve.levels, curve.missing)]
    ends = min(levels, default=0.0), max(levels, default=1.0)
    margin = 0.06 * (ends[1] - ends[0]) or 1.0
    scale = [ends[0] - margin, ends[1] + margin]
    values = {} if data is None else dict(_values(model, data))
    shown = colours or {}
    return [
        _picture(name, curve, scale, values.get(name), shown.get(name, PALETTE[0]))
        for name, curve in curves.items()
    ]


def _values(model: LinearModel, data: Dataset) -> Iterator[tuple[str, FloatArray]]:
    matrix, columns = model.locate(data)
    for k, name in enumerate(model.names):
        yield name, np.asarray(dense_block(matrix, slice(None), columns[k : k + 1])[:, 0], dtype=np.float64)


def _picture(
    name: str, curve: Curve, scale: list[float], values: FloatArray | None, colour: str
) -> CurvePicture:
    share = None if values is None else float(np.mean(np.isnan(values)))
    has_missing, present = bool(share or curve.missing), _present(values)
    levels = list(zip(value_texts(curve), map(level_text, curve.levels), strict=True))
    lowest, highest = level_text(min(curve.levels)), level_text(max(curve.levels))
    n_steps = plural(len(curve.thresholds), "step")
    caption = f"{lowest} to {highest}, {direction(curve)}, {n_steps}" if curve.thresholds else "no step"
    if has_missing:
        levels.append(("missing", level_text(curve.missing)))
        caption += f"; missing{'' if share is None else f' ({_share(share)})'} {level_text(curve.missing)}"
    is_log = _is_log(curve, present)
    inside = _inside(curve, present, is_log)
    bins = None if present is None else _bins(present, inside, is_log)
    low, high = _ends(inside if bins is None else (bins[0], bins[-1]), curve, is_log)
    edges, texts = [low, *curve.thresholds, high], [f"{name} {text}" for text in value_texts(curve)]
    traces = [steps(edges, curve.levels, colour, text=texts, hover=LEVEL_HOVER)]
    bottom = "y" if present is None else "y2"
    ticks: dict[str, Any] = {"type": "log"} if is_log else {"tickformat": ".10g"}
    axes = {
        "xaxis": axis("", anchor=bottom, domain=MAIN if has_missing else WHOLE, showgrid=False, **ticks),
        "yaxis": axis("level", domain=WHOLE if present is None else CURVE, zeroline=True, range=scale),
    }
    if present is not None and bins is not None:
        traces.append(_bars(name, present, bins))
        axes["yaxis2"] = axis("", domain=VALUES, rangemode="tozero", tickvals=[], ticktext=[])
    if has_missing:
        look: dict[str, Any] = {"xaxis": "x2", "hover": LEVEL_HOVER, "text": [f"{name} missing"]}
        traces.append(marks([0], [curve.missing], "", colour, 9, **look))
        words = "missing" if share is None else f"{_share(share)} missing"
        only = {"tickvals": [0], "ticktext": [words], "range": [-1, 1]}
        axes["xaxis2"] = axis("", anchor=bottom, domain=SIDE, showgrid=False, **only)
    figure = {
        "data": traces,
        "layout": layout(180 if present is None else 230, alt=f"Curve of {name}: {caption}.", **axes),
    }
    return CurvePicture(name, f"{caption}.", figure, levels)


def _present(values: FloatArray | None) -> FloatArray | None:
    """The finite values; None if there are none."""
    present = None if values is None else values[np.isfinite(values)]
    return None if present is None or len(present) == 0 else present


def _is_log(curve: Curve, present: FloatArray | None) -> bool:
    """Whether most values are much smaller than the largest, and none is negative."""
    if present is None or present.min() < 0 or not curve.thresholds or curve.thresholds[0] <= 0:
        return False
    low, high = _inside(curve, present, True)
    return bool(high > LOG_RATIO * low and np.median(present) - low < SKEWED * (high - low))


def _inside(curve: Curve, present: FloatArray | None, is_log: bool) -> tuple[float, float]:
    """The least and the largest of all thresholds and of most values (of positive ones if ``is_log``)."""
    inside = list(curve.thresholds)
    if present is not None:
        shown = present[present > 0] if is_log else present
        inside += np.quantile(shown, [TAIL, 1.0 - TAIL], method="nearest").tolist()
    return (min(inside), max(inside)) if inside else (0.0, 1.0)


def _ends(inside: tuple[float, float], curve: Curve, is_log: bool) -> tuple[float, float]:
    """Where the picture of a curve begins and ends: its end levels can be seen."""
    low, high = inside
    if is_log:
        margin = (high / low) ** MARGIN
        return min(low, curve.thresholds[0] / margin), max(high, curve.thresholds[-1] * margin)
    margin = MARGIN * (high - low) or 0.1 * abs(high) or 1.0
    first, last = (curve.thresholds[0], curve.thresholds[-1]) if curve.thresholds else inside
    return min(low, first - margin), max(high, last + margin)


def _bins(present: FloatArray, inside: tuple[float, float], is_log: bool) -> FloatArray:
    """Edges of the bars of a histogram."""
    low, high = inside
    if is_log:
        return np.geomspace(low, high * (1.0 + 1e-9), N_BINS + 1)
    distinct = np.unique(np.clip(present, low, high))
    if (spacing := _spacing(distinct)) is None:
        return np.linspace(low, high, N_BINS + 1)
    n_places = round((distinct[-1] - distinct[0]) / spacing) + 1
    each = 1 if n_places <= MAX_BINS else -(-n_places // N_BINS)
    return np.asarray(distinct[0] + spacing * (each * np.arange(-(-n_places // each) + 1) - 0.5))


def _bars(name: str, present: FloatArray, bins: FloatArray) -> Figure:
    """A histogram; values beyond its ends count in the first and the last bar."""
    counts = np.bincount(np.searchsorted(bins[1:-1], present, side="right"), minlength=len(bins) - 1)
    shown = [number(edge, 4) for edge in bins.tolist()]
    texts = [f"from {low} to {high}" for low, high in pairwise(shown)]
    if present.min() < bins[0]:
        texts[0] = f"below {shown[1]}"
    if present.max() > bins[-1]:
        texts[-1] = f"from {shown[-2]}"
    words = [
        f"{name} {text}: {plural(count, 'value')} ({_share(count / len(present))})"
        for text, count in zip(texts, counts.tolist(), strict=True)
    ]
    return steps(bins.tolist(), counts.tolist(), OTHER, True, text=words, hover="{text}", yaxis="y2")


def _spacing(distinct: FloatArray) -> float | None:
    """The spacing of values on a regular grid, such as integers; None if they are not on one.

    Bars that hold different numbers of grid points would look like a comb.
    """
    inner = distinct[1:-1] if len(distinct) > 4 else distinct  # the outer ones may be clipped
    if len(inner) < 2:
        return 1.0
    spacing = float(np.diff(inner).min())
    places = (inner - inner[0]) / spacing
    return spacing if np.abs(places - np.round(places)).max() < 1e-3 and places[-1] < MAX_PLACES else None


def _share(share: float) -> str:
    text = "< 1 %" if 0 < share < 0.005 else percent_text(share)
    return text.replace(" ", "\u00a0")
