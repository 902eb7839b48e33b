"""ranksieve frontier: accuracy against features and cost, as a table, JSON or page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ranksieve as rs
from ranksieve.cli import options as opt
from ranksieve.cli.app import command
from ranksieve.cli.output import json_text, progress, table, words
from ranksieve.errors import shortened, while_doing

SHOWN_POINTS = 12
SHOWN_NAMES = 6


@command(
    "ranksieve frontier train.txt --valid vali.txt --costs ms.csv",
    "ranksieve frontier train.txt --costs ms.csv --report page.html",
)
def frontier(
    *,
    source: opt.FitData,
    limits: opt.RankerOptions,
    output: opt.JsonOutput = None,
    report: opt.Report = None,
    as_json: opt.Json = False,
) -> None:
    """Show how accuracy grows with features and cost.

    Fits the models that "fit" selects from and measures them on held-out queries as "fit" does; the table
    shows about ten steps of the best metric for a cost. Use it to choose a budget for "fit".
    """
    from ranksieve.report.frontier_page import frontier_page

    opt.check_files([*source.files, *limits.limit_files], output, report=report)
    settings = rs.SparseRanker(**limits.parameters).get_params(deep=False)
    settings |= source.query_weights
    data, held_out = source.read(settings["missing"])
    title = f"fitting {source.train}"
    with progress(title) as bar, while_doing(title):
        content = rs.frontier(data, held_out, progress=bar, **settings).to_dict()
    if output is not None:
        opt.write_text(json_text(content), output)
    if report is not None:
        opt.write_text(frontier_page(content), report)
    opt.present(content, as_json, lambda: _show(content), output, report)


def _show(content: Mapping[str, Any]) -> None:
    import numpy as np

    from ranksieve.report.frontier_page import frontier_steps, paid_in

    steps, priced = frontier_steps(content), paid_in(content) == "cost"
    shown = np.unique(np.linspace(0, len(steps) - 1, SHOWN_POINTS).round().astype(int))
    rows = [
        (
            *([step["cost"]] if priced else []),
            step["n_features"],
            f"{step['mean']:.4f}",
            shortened(step["features"], SHOWN_NAMES),
        )
        for step in (steps[k] for k in shown)
    ]
    table([*(["cost"] if priced else []), "features", content["metric"], "which"], rows)
    words(
        f"{content['metric'].upper()}, {content['profile']} profile: {len(content['points'])} models, of "
        f"which {sum(point['optimal'] for point in content['points'])} are best for their features and cost."
    )
