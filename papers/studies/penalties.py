"""Tables V and VI of the paper on nonconvex penalties: comparison of each method with the best one."""

from __future__ import annotations

from typing import Any

import numpy as np

from papers.choices import PaperResults
from papers.studies.base import compare_outcomes, means, published_means
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
SELECT = "map"
PAPER = "NonconvexRankSVM"


def map_table(results: PaperResults) -> ResultTable | None:
    """Table V: MAP."""
    return _compare_with_best(results, "map", "V")


def ndcg_table(results: PaperResults) -> ResultTable | None:
    """Table VI: NDCG@10 of the models selected by MAP."""
    return _compare_with_best(results, "ndcg@10", "VI")


def _compare_with_best(results: PaperResults, metric: str, table: str) -> ResultTable | None:
    outcomes_by_method = map_outcomes(results)
    if len(outcomes_by_method) < 2:
        return None
    averages = {name: means(outcomes) for name, outcomes in outcomes_by_method.items()}
    best = max(outcomes_by_method, key=lambda name: averages[name][metric])
    published = published_means(PAPER, table, results.name)
    rows = []
    for name, outcomes in outcomes_by_method.items():
        folds = [number_cell(float(np.mean(outcome["test"][metric]))) for outcome in outcomes]
        loss, p = compare_outcomes(outcomes_by_method[best], outcomes, metric)
        share = number_cell(averages[name]["sparsity"], "{:.3f}")
        mean = number_cell(averages[name][metric], best=averages[best][metric])
        verdict = text_cell("best" if name == best else _verdict(loss / averages[best][metric], p))
        paper_cell = _published_cell(published, METHODS[name], metric)
        rows.append((text_cell(method_title(name)), *folds, mean, verdict, number_cell(p), share, paper_cell))
    n_folds = len(outcomes_by_method[best])
    columns = (*(f"fold {k}" for k in range(1, n_folds + 1)), "mean", "compared with the best", "p")
    return ResultTable(
        f"penalties_{metric.replace('@', '')}",
        f"{results.name}: {metric_heading(metric)} of sparse methods, compared with the best of them",
        ("method", *columns, "sparsity of varying features", f"{PAPER}, table {table}"),
        tuple(rows),
        "Models are selected by MAP on validation data, also for FenchelRank and FSMRank, as in the paper. "
        "~: not significantly below the best at 5 % (paired one-sided t-test over the test queries of all "
        "folds), otherwise the loss in percent.",
    )


def map_outcomes(results: PaperResults) -> dict[str, list[dict[str, Any]]]:
    """Sparsity and test values, for each fold, of the models of each method that are selected by MAP."""
    selected = {name: results.result_for(name, SELECT) for name in METHODS}
    return {
        name: [{"sparsity": fold.mean("density"), "test": fold.test.per_query} for fold in result.folds]
        for name, result in selected.items()
        if result is not None
    }


def _verdict(loss: float, p: float) -> str:
    return f"−{100 * loss:.1f} %" if p < SIGNIFICANCE_LEVEL else "~"


def _published_cell(published: dict[str, dict[str, float]], name: str, metric: str) -> Cell:
    """The published value of the best method; ~ for a method that the paper calls equivalent to the best."""
    if not published:
        return Cell(None, "–")
    best = published.get(f"{name} (best)")
    return number_cell(best[metric]) if best else text_cell("~")
