"""Learning from a stream of queries: accuracy against the documents seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksieve.experiment.cells import title
from ranksieve.experiment.results import DataSetResults
from ranksieve.experiment.studies.base import METRIC, rows_of
from ranksieve.experiment.studies.minbatsrank import BATCH, online_means
from ranksieve.report.canvas import PALETTE, Figure, Styles, axis, faint, layout

HOVER = "{name}\n{x:.0f} documents: {y:.4f}"


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
                "hover": HOVER,
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
                "hover": HOVER,
            }
        )
    axes = {"xaxis": axis("documents seen", rangemode="tozero"), "yaxis": axis("test NDCG@10")}
    return {"data": traces, "layout": layout(460, showlegend=True, **axes)}
