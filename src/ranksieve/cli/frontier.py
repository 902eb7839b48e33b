"""ranksieve frontier: accuracy against number of features and cost."""

from __future__ import annotations

import ranksieve as rs
from ranksieve.cli import options as opt
from ranksieve.cli.app import command
from ranksieve.cli.output import json_text, print_all, progress
from ranksieve.errors import while_doing


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
    from ranksieve.rankers.frontier import frontier_parts
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
    opt.print_result(content, as_json, lambda: print_all(frontier_parts(content)), output, report)
