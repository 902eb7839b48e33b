"""Tables V and VI of the paper on nonconvex penalties: each method against the best one."""

from __future__ import annotations

from typing import Any

import numpy as np

from papers.choices import PaperResults
from papers.studies.base import better_than, means, printed
from ranksieve.experiment.tables import (
    Cell,
    ResultTable,
    method_title,
    metric_heading,
    number_cell,
    text_cell,
)
from ranksieve.metrics.significance import SIGNIFICANCE_LEVEL

METHODS = {
    "fenchelrank": "FenchelRank",
    "fsmrank": "FSMRank",
    "ranksvm-l1": "RankSVM-l1",
    "ranksvm-mcp": "RankSVM-MCP",
    "ranksvm-log": "RankSVM-log",
    "ranksvm-l0.5": "RankSVM-l0.5",
}
CHOSEN_BY = "map"
PAPER = "NonconvexRankSVM"


def map_table(results: PaperResults) -> ResultTable | None:
    """Table V: MAP."""
    return _against_best(results, "map", "V")


def ndcg_table(results: PaperResults) -> ResultTable | None:
    """Table VI: NDCG@10, with parameters chosen by MAP all the same."""
    return _against_best(results, "ndcg@10", "VI")


def _against_best(results: PaperResults, metric: str, table: str) -> ResultTable | None:
    outcomes = by_map(results)
    if len(outcomes) < 2:
        return None
    averages = {name: means(of) for name, of in outcomes.items()}
    best = max(outcomes, key=lambda name: averages[name][metric])
    paper = printed(PAPER, table, results.name)
    rows = []
    for name, of in outcomes.items():
        folds = [number_cell(float(np.mean(one["test"][metric]))) for one in of]
        loss, p = better_than(outcomes[best], of, metric)
        share = number_cell(averages[name]["sparsity"], "{:.3f}")
        mean = number_cell(averages[name][metric], best=averages[best][metric])
        verdict = text_cell("best" if name == best else _verdict(loss / averages[best][metric], p))
        their = _printed(paper, METHODS[name], metric)
        rows.append((text_cell(method_title(name)), *folds, mean, verdict, number_cell(p), share, their))
    columns = (*(f"fold {k}" for k in range(1, len(outcomes[best]) + 1)), "mean", "against the best", "p")
    return ResultTable(
        f"penalties_{metric.replace('@', '')}",
        f"{results.name}: {metric_heading(metric)} of sparse methods against the best of them",
        ("method", *columns, "sparsity of varying", f"{PAPER}, table {table}"),
        tuple(rows),
        "Parameters chosen on valid by MAP, also those of FenchelRank and FSMRank, as in the paper. ~: not "
        "significantly below the best at 5 % (paired one-sided t-test over the test queries of all folds), "
        "else the loss in percent.",
    )


def by_map(results: PaperResults) -> dict[str, list[dict[str, Any]]]:
    """Sparsity and test values of what MAP chooses, fold by fold, of each method that has them."""
    found = {name: results.chosen_by(name, CHOSEN_BY) for name in METHODS}
    return {
        name: [
            {"sparsity": fold.mean("varying_sparsity"), "test": fold.test.per_query} for fold in result.folds
        ]
        for name, result in found.items()
        if result is not None
    }


def _verdict(loss: float, p: float) -> str:
    return f"−{100 * loss:.1f} %" if p < SIGNIFICANCE_LEVEL else "~"


def _printed(paper: dict[str, dict[str, float]], written: str, metric: str) -> Cell:
    """The best value, or ~ for a method that the paper finds equivalent to the best."""
    if not paper:
        return Cell(None, "–")
    best = paper.get(f"{written} (best)")
    return number_cell(best[metric]) if best else text_cell("~")
