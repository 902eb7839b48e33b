"""ranksieve frontier: accuracy against number of features and cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ranksieve as rs
from ranksieve.cli import options as opt
from ranksieve.cli.app import command
from ranksieve.cli.output import json_text, print_text, progress, table
from ranksieve.errors import short_list, while_doing

MAX_SHOWN_STEPS = 12


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

    Fits the candidates that "fit" selects from and evaluates them on held-out queries as "fit" does. The
    table shows the best metric for about ten numbers of features or costs. Use it to choose a budget.
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
    opt.print_result(content, as_json, lambda: _show(content), output, report)


def _show(content: Mapping[str, Any]) -> None:
    import numpy as np

    from ranksieve.report.frontier_page import cost_key, frontier_steps
    from ranksieve.report.page import metric_title

    metric = metric_title(content["metric"])
    n_optimal = sum(point["optimal"] for point in content["points"])
    steps, priced = frontier_steps(content), cost_key(content) == "cost"
    shown = np.unique(np.linspace(0, len(steps) - 1, MAX_SHOWN_STEPS).round().astype(int))
    rows = [
        (
            *([step["cost"]] if priced else []),
            step["n_features"],
            f"{step['mean']:.4f}",
            short_list(step["features"], 6),
        )
        for step in (steps[k] for k in shown)
    ]
    table([*(["cost"] if priced else []), "features", f"held-out {metric}", "feature names"], rows)
    print_text(
        f"{len(content['points'])} candidates, {n_optimal} of them Pareto-optimal in "
        f"{metric} ({content['profile']} profile), number of features{' and cost' if priced else ''}."
    )
