"""Selectors by number of features: FS-Rank (FenchelRank's Table 7), GAS-E, FSMSVM (FSMRank's Figs. 1–3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from papers.choices import PaperResults
from papers.studies.base import (
    METRIC,
    Chooser,
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
    """Test metrics of RankSVM on the first t features of each selector's order, its C chosen on valid.

    All three choose nested sets: the first t of an order that does not depend on t.
    """
    chooser, train = Chooser(fold, profile), fold.train
    n_varying = int(np.count_nonzero(varying_columns(train)))
    kept = sorted({min(size, n_varying) for size in SIZES})
    found = {}
    for name, order in orders(train, n_varying).items():
        outcomes = [chooser.chosen(refitted(train, order[:size]), [{"C": C} for C in CS]) for size in kept]
        found[name] = {
            "C": [outcome["parameters"]["C"] for outcome in outcomes],
            "test": {m: [np.mean(outcome["test"][m]) for outcome in outcomes] for m in TABLE_METRICS},
        }
    return {"n_features": kept, "selectors": found}


def orders(train: Dataset, n_varying: int) -> dict[str, IntArray]:
    """The columns in each selector's order of choice."""
    selectors: dict[str, FeatureSelector] = {
        "fsrank": FSRank(n_varying), "gas": GAS(n_varying), "fsmsvm": FSMSVM(n_varying)
    }  # fmt: skip
    for selector in selectors.values():
        fit(selector, train)
    return {name: selector.selected_ for name, selector in selectors.items()}


def refitted(train: Dataset, columns: IntArray) -> list[FloatArray]:
    """The weights of RankSVM on some columns, for each C."""
    order, coefs = np.sort(columns), np.zeros((len(CS), train.n_features))
    part = train.select_features(order)
    coefs[:, order] = [fit(RankSVM(C, average=True), part).coef_ for C in CS]
    return list(coefs)


def sizes_table(results: PaperResults) -> ResultTable | None:
    """NDCG@10 and MAP of selectors and of FSMRank for some numbers of features."""
    rows = rows_of(results, "selectors")
    if not rows:
        return None
    shared = [size for size in (3, 5, 10, 15, 20, 25, 30) if all(size in row["n_features"] for row in rows)]
    cells = []
    for metric in (METRIC, "map"):
        label = "NDCG@10" if metric == METRIC else "MAP"
        for name in SELECTORS:
            values = [
                fmean([row["selectors"][name]["test"][metric][row["n_features"].index(size)] for row in rows])
                for size in shared
            ]
            cells.append((text_cell(method_title(name)), text_cell(label), *map(number_cell, values)))
        cells += _truncated(results, metric, label, shared)
    return ResultTable(
        "selector_sizes",
        f"{results.name}: accuracy against the number of features",
        ("method", "metric", *map(str, shared)),
        tuple(cells),
        "FSMRank's figures 1–3, and FS-Rank: they choose t features, on which RankSVM-Primal is fitted again "
        "(C chosen on valid); FSMRank is its chosen model cut to its t largest weights. Test means over "
        "folds.",
    )


def _truncated(results: PaperResults, metric: str, label: str, shared: list[int]) -> list[tuple[Cell, ...]]:
    """FSMRank's chosen models, cut to their t largest weights."""
    curves = [curve[metric] for curve in results.curves("fsmrank")]
    if not curves or not all(curves):
        return []
    values = [fmean([curve[min(size, len(curve)) - 1] for curve in curves]) for size in shared]
    return [(text_cell(f"{method_title('fsmrank')}, cut"), text_cell(label), *map(number_cell, values))]
