"""Learning from a stream of queries: accuracy against the documents seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksieve.experiment.cells import title
from ranksieve.experiment.results import DataSetResults
from ranksieve.experiment.studies.base import METRIC, rows_of
from ranksieve.experiment.studies.minbatsrank import BATCH, online_means
from ranksieve.report.canvas import PALETTE, Figure, Styles, axis, faint, layout, text
from ranksieve.report.pictures.convergence import LEGEND

HOVER = "%{fullData.name}<br>%{x:.0f} documents: %{y:.4f}<extra></extra>"


def online(results: DataSetResults, styles: Styles) -> Figure | None:
    """NDCG@10 of MinBatSRank in one pass, and of methods that see all at once."""
    rows = rows_of(results, "minbatsrank_online")
    if not rows:
        return None
    documents = np.mean([row["documents"] for row in rows], axis=0)
    traces: list[dict[str, Any]] = []
    for k, name in enumerate(rows[0]["curves"]):
        curves = online_means(rows, name, METRIC)
        shared = {"type": "scatter", "legendgroup": name, "x": documents.tolist()}
        edge = {"mode": "lines", "line": {"width": 0}, "showlegend": False, "hoverinfo": "skip"}
        fill = {"fill": "tonexty", "fillcolor": faint(PALETTE[k])}
        traces += [
            {**shared, **edge, "y": curves.min(axis=0).tolist()},
            {**shared, **edge, **fill, "y": curves.max(axis=0).tolist()},
            {
                **shared,
                "mode": "lines",
                "name": text(name),
                "y": curves.mean(axis=0).tolist(),
                "line": {"color": PALETTE[k], "width": 2},
                "hovertemplate": HOVER,
            },
        ]
    for name in (name for name in BATCH if name in results.results):
        level = results.results[name].mean(METRIC)
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": text(title(name)),
                "x": [documents[0], documents[-1]],
                "y": [level, level],
                "line": {"color": styles[name].colour, "dash": "dot", "width": 1.5},
                "hovertemplate": HOVER,
            }
        )
    axes = {"xaxis": axis("documents seen", rangemode="tozero"), "yaxis": axis("test NDCG@10")}
    return {"data": traces, "layout": layout(460, **axes) | LEGEND}
