"""Selectors by number of features: FS-Rank (FenchelRank's Table 7), GAS-E, FSMSVM (FSMRank's Figs. 1–3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from papers.choices import PaperResults
from papers.studies.base import (
    METRIC,
    ModelSelector,
    fit,
    fmean,
    rows_of,
)
from ranksieve._types import FloatArray, IntArray
from ranksieve.baselines import FSMSVM, GAS, FSRank
from ranksieve.baselines.selector import FeatureSelector
from ranksieve.data.dataset import Dataset
from ranksieve.data.describe import varying_columns
from ranksieve.experiment.results import TABLE_METRICS
from ranksieve.experiment.tables import Cell, ResultTable, method_title, number_cell, text_cell
from ranksieve.io.folds import Fold
from ranksieve.methods import decades
from ranksieve.rankers import RankSVM

CS = decades(-2, 2)
SIZES = (1, 2, 3, 5, 7, 10, 13, 15, 20, 25, 30, 35, 40)
SELECTORS = ("fsrank", "gas", "fsmsvm")


def sizes(fold: Fold, profile: str) -> dict[str, Any]:
    """Test metrics of RankSVM on the first t features of each selector, C selected on validation data.

    All three selectors give nested sets: the first t features of an order that does not depend on t.
    """
    selector, train = ModelSelector(fold, profile), fold.train
    n_varying = int(np.count_nonzero(varying_columns(train)))
    sizes_here = sorted({min(size, n_varying) for size in SIZES})
    results = {}
    for name, order in orders(train, n_varying).items():
        outcomes = [
            selector.select(refit(train, order[:size]), [{"C": C} for C in CS]) for size in sizes_here
        ]
        results[name] = {
            "C": [outcome["parameters"]["C"] for outcome in outcomes],
            "test": {m: [np.mean(outcome["test"][m]) for outcome in outcomes] for m in TABLE_METRICS},
        }
    return {"n_features": sizes_here, "selectors": results}


def orders(train: Dataset, n_varying: int) -> dict[str, IntArray]:
    """The columns in the order in which each selector adds them."""
    selectors: dict[str, FeatureSelector] = {
        "fsrank": FSRank(n_varying), "gas": GAS(n_varying), "fsmsvm": FSMSVM(n_varying)
    }  # fmt: skip
    for selector in selectors.values():
        fit(selector, train)
    return {name: selector.selected_ for name, selector in selectors.items()}


def refit(train: Dataset, columns: IntArray) -> list[FloatArray]:
    """The weights of RankSVM on these columns, for each C in CS."""
    columns, coefs = np.sort(columns), np.zeros((len(CS), train.n_features))
    subset = train.select_features(columns)
    coefs[:, columns] = [fit(RankSVM(C, average=True), subset).coef_ for C in CS]
    return list(coefs)


def sizes_table(results: PaperResults) -> ResultTable | None:
    """Table of NDCG@10 and MAP of the selectors and of FSMRank for several numbers of features."""
    rows = rows_of(results, "selectors")
    if not rows:
        return None
    shown = [size for size in (3, 5, 10, 15, 20, 25, 30) if all(size in row["n_features"] for row in rows)]
    cells = []
    for metric in (METRIC, "map"):
        label = "NDCG@10" if metric == METRIC else "MAP"
        for name in SELECTORS:
            values = [
                fmean([row["selectors"][name]["test"][metric][row["n_features"].index(size)] for row in rows])
                for size in shown
            ]
            cells.append((text_cell(method_title(name)), text_cell(label), *map(number_cell, values)))
        cells += _truncation_rows(results, metric, label, shown)
    return ResultTable(
        "selector_sizes",
        f"{results.name}: accuracy against the number of features",
        ("method", "metric", *map(str, shown)),
        tuple(cells),
        "Figures 1–3 of FSMRank, and FS-Rank. The selectors choose t features, on which RankSVM-Primal is "
        "refitted (C selected on validation data); FSMRank, truncated: its selected model with only the t "
        "largest weights. Test values, means over folds.",
    )


def _truncation_rows(
    results: PaperResults, metric: str, label: str, shown: list[int]
) -> list[tuple[Cell, ...]]:
    """The row of FSMRank's selected models, truncated to their t largest weights."""
    curves = [curve[metric] for curve in results.truncation_curves("fsmrank")]
    if not curves or not all(curves):
        return []
    values = [fmean([curve[min(size, len(curve)) - 1] for curve in curves]) for size in shown]
    return [(text_cell(f"{method_title('fsmrank')}, truncated"), text_cell(label), *map(number_cell, values))]
