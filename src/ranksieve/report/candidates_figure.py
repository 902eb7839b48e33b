"""The candidates of a choice: held-out metric against the number of features, family by family."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksieve.report.canvas import PALETTE, Figure, axis, layout
from ranksieve.report.choice_words import family_title
from ranksieve.report.words import metric_title

HOVER = "{x} features: {y:.4f}\n{name}"


def candidates_figure(ranker: Any) -> Figure:
    """One line per family: its best model of each size, as the choice compares them; a star: the chosen."""
    candidates = ranker.candidates_
    families = [*candidates.families, *([] if candidates.beyond is None else [candidates.beyond])]
    lines = [
        _line(family, PALETTE[k % len(PALETTE)], beyond=family is candidates.beyond)
        for k, family in enumerate(families)
    ]
    chosen = {
        "type": "scatter",
        "x": [len(ranker.support_)],
        "y": [float(ranker.validation_.mean[ranker.chosen_])],
        "mode": "markers",
        "marker": {"size": 14, "symbol": "star", "color": PALETTE[1]},
        "name": "chosen",
        "hover": HOVER,
    }
    look = layout(
        380,
        showlegend=True,
        xaxis=axis("features", rangemode="tozero", dtick=1),
        yaxis=axis(f"held-out {metric_title(ranker.validation_.metric)}"),
    )
    return {"data": [*lines, chosen], "layout": look}


def _line(family: Any, colour: str, beyond: bool) -> Figure:
    """The best mean of each number of features."""
    used, mean = family.models.n_nonzero, family.validation.mean
    sizes = [int(size) for size in np.unique(used) if size > 0]
    best = [float(mean[used == size].max()) for size in sizes]
    name = "beyond the budget" if beyond else family_title(family.label)
    return {
        "type": "scatter",
        "x": sizes,
        "y": best,
        "mode": "lines+markers",
        "line": {"color": colour, "width": 2, "dash": "dot" if beyond else "solid"},
        "marker": {"size": 6, "color": colour},
        "name": name,
        "hover": HOVER,
    }
