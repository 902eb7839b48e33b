"""MinBatSRank: one rate for all features ("Nonfea", its Fig. 2), and one pass over a stream of queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from papers.choices import PaperResults
from papers.studies.base import (
    ACCURACY,
    METRIC,
    Chooser,
    accuracy_cells,
    better_than,
    fmean,
    means,
    rows_of,
)
from ranksieve._types import FloatArray, IntArray
from ranksieve.data.dataset import Dataset
from ranksieve.experiment.journal import Entry
from ranksieve.experiment.results import TABLE_METRICS
from ranksieve.experiment.tables import ResultTable, method_title, metric_heading, number_cell, text_cell
from ranksieve.io.folds import Fold
from ranksieve.kernels.ftrl import Rule
from ranksieve.metrics.significance import SIGNIFICANCE_LEVEL
from ranksieve.solvers.ftrl import FtrlPasses, FtrlState, epoch_order

SEEDS = (0, 1, 2)
BATCH = ("fenchelrank", "ranksvm")  # methods that have all documents at once, to compare a stream with
PASSES = (1, 2, 5)
SMOOTHING = 1.0
L1S = [2.0**k for k in range(15, -3, -3)]  # every third value of the paper's grid
SHARES = tuple(k / 20 for k in range(1, 21))  # of the training queries, where one pass is measured


class Rates(NamedTuple):
    """Whether each feature has a rate of its own, and the first rates γ to choose from."""

    feature_wise: bool
    values: Sequence[float]


# Twelve rates each. A batch is a sum over pairs: a rate that does not follow its gradients must be small.
VARIANTS = {
    "feature-wise": Rates(True, [2.0**k for k in range(1, -11, -1)]),
    "Nonfea": Rates(False, [2.0**k for k in range(-1, -25, -2)]),
    "Nonfea, γ = 1": Rates(False, [1.0]),
}
FEATURE_WISE, NONFEA, AS_PRINTED = VARIANTS


@dataclass(frozen=True)
class Point:
    """A grid point: γ, λ and the number of passes."""

    rate: float
    l1: float
    n_epochs: int


def learn(
    train: Dataset, rates: Rates, l1s: Sequence[float], orders: Sequence[IntArray], kept: Sequence[int]
) -> tuple[list[Point], list[FloatArray]]:
    """The weights after some numbers of passes, for all rates and λ; those that diverge are left out."""
    passes, points, coefs = FtrlPasses.of(train), list[Point](), list[FloatArray]()
    for rate, l1 in product(rates.values, l1s):
        state = FtrlState.zeros(train.n_features)
        rule = Rule(l1, rate, SMOOTHING, rates.feature_wise, 0)
        for number_, order in enumerate(orders, start=1):
            try:
                passes.run(rule, state, order)
            except ValueError:  # the weights diverged
                break
            if number_ in kept:
                points.append(Point(rate, l1, number_))
                coefs.append(state.w.copy())
    return points, coefs


def rates(fold: Fold, profile: str) -> dict[str, Any]:
    """Each variant with its rate, λ and passes chosen on valid, for several orders of the queries."""
    chooser, train = Chooser(fold, profile), fold.train
    found: dict[str, list[Any]] = {name: [] for name in VARIANTS}
    for seed in SEEDS:
        orders = [epoch_order(seed, epoch, train.n_queries) for epoch in range(max(PASSES))]
        for name, variant in VARIANTS.items():
            points, coefs = learn(train, variant, L1S, orders, PASSES)
            tried = len(variant.values) * len(L1S) * len(PASSES)
            outcome = chooser.chosen(coefs, [vars(point) for point in points]) if points else {}
            found[name].append({"diverged": 1 - len(points) / tried, **outcome})
    return {"variants": found}


def rates_table(results: PaperResults) -> ResultTable | None:
    """The variants, their means over seeds and the spread of NDCG@10."""
    rows = rows_of(results, "minbatsrank_rates")
    if not rows:
        return None
    cells = []
    for name in VARIANTS:
        found = [row["variants"][name] for row in rows]
        diverged = fmean([outcome["diverged"] for outcomes in found for outcome in outcomes])
        outcomes = seed_means(rows, name)
        by_seed = [means([of[k] for of in found])[METRIC] for k in range(len(SEEDS))] if outcomes else []
        spread = float(np.std(by_seed, ddof=1)) if by_seed else np.nan
        mean = accuracy_cells(means(outcomes) if outcomes else {})
        cells.append((text_cell(name), *mean, number_cell(spread), number_cell(100 * diverged, "{:.0f} %")))
    return ResultTable(
        "minbatsrank_rates",
        f"{results.name}: MinBatSRank with one rate for all features",
        ("variant", *ACCURACY, f"± {metric_heading(METRIC)}", "diverged"),
        tuple(cells),
        f"Rate γ (twelve values each), λ (every third one of the paper's) and passes "
        f"({', '.join(map(str, PASSES))}) chosen on valid by NDCG@10; means over {len(SEEDS)} orders of the "
        f"queries, ±: their standard deviation. Diverged: share of the grid that ends in weights without "
        f"bound. {_verdict(rows)} γ = 1 is the rate that the paper gives Nonfea.",
    )


def _verdict(rows: Sequence[Entry]) -> str:
    """What feature-wise rates bring over a tuned single one, beside the paper's Fig. 2."""
    ours, theirs = (seed_means(rows, name) for name in (FEATURE_WISE, NONFEA))
    if not (ours and theirs):
        return ""
    (difference, p), (_, reverse) = better_than(ours, theirs), better_than(theirs, ours)
    words = f"Feature-wise minus tuned Nonfea: {difference:+.4f} N@10 (p = {p:.2g}"
    if p < SIGNIFICANCE_LEVEL:
        return f"{words}): better, as in the paper's figure 2."
    worse = "worse" if reverse < SIGNIFICANCE_LEVEL else "not better"
    return f"{words}, the other way round {reverse:.2g}): {worse}, against the paper's figure 2."


def seed_means(rows: Sequence[Entry], name: str) -> list[dict[str, Any]]:
    """Fold by fold the means over seeds of a variant, query by query; nothing if some fit all diverged."""
    found = [row["variants"][name] for row in rows]
    if not all("test" in one for outcomes in found for one in outcomes):
        return []
    return [
        {
            "sparsity": fmean([one["sparsity"] for one in outcomes]),
            "test": {m: np.mean([one["test"][m] for one in outcomes], axis=0) for m in TABLE_METRICS},
        }
        for outcomes in found
    ]


def online(fold: Fold, profile: str) -> dict[str, Any]:
    """Test accuracy against the documents seen in one pass; γ and λ are chosen on valid at the end of it."""
    chooser, train = Chooser(fold, profile), fold.train
    ends = np.maximum(1, np.round(np.multiply(SHARES, train.n_queries)).astype(int))
    seen, curves = [], {FEATURE_WISE: [], NONFEA: []}  # type: ignore[var-annotated]
    for seed in SEEDS:
        order = epoch_order(seed, 0, train.n_queries)
        seen.append(np.cumsum(train.queries.sizes[order])[ends - 1])
        for name, curve in curves.items():
            points, coefs = learn(train, VARIANTS[name], L1S, [order], [1])
            best = points[int(np.argmax(chooser.validation(coefs)))]
            models = _along(
                train, Rule(best.l1, best.rate, SMOOTHING, VARIANTS[name].feature_wise, 0), order, ends
            )
            curve.append({
                "parameters": vars(best),
                "n_selected": np.count_nonzero(models, axis=1),
                "test": {metric: chooser.test_means(models, metric) for metric in (METRIC, "map")},
            })  # fmt: skip
    return {"shares": SHARES, "documents": np.mean(seen, axis=0), "curves": curves}


def _along(train: Dataset, rule: Rule, order: IntArray, ends: IntArray) -> FloatArray:
    """The weights after the first queries of the pass, for each end."""
    passes, state, models = FtrlPasses.of(train), FtrlState.zeros(train.n_features), []
    for queries in np.split(order, ends[:-1]):
        if len(queries):
            passes.run(rule, state, queries)
        models.append(state.w.copy())
    return np.array(models)


def online_means(rows: Sequence[Entry], name: str, metric: str) -> FloatArray:
    """Means over folds (rows) of each order's (columns of the first axis) curve."""
    return np.array(
        [np.mean([row["curves"][name][k]["test"][metric] for row in rows], axis=0) for k in range(len(SEEDS))]
    )


def online_table(results: PaperResults) -> ResultTable | None:
    """Accuracy after some shares of one pass."""
    rows = rows_of(results, "minbatsrank_online")
    if not rows:
        return None
    documents = np.mean([row["documents"] for row in rows], axis=0)
    shown = [k for k, share in enumerate(SHARES) if share in (0.05, 0.1, 0.25, 0.5, 0.75, 1.0)]
    cells = []
    for name in rows[0]["curves"]:
        curves = online_means(rows, name, METRIC)
        spread = [number_cell(value) for value in curves.std(axis=0, ddof=1)[shown]]
        cells.append((text_cell(name), *(number_cell(value) for value in curves.mean(axis=0)[shown])))
        cells.append((text_cell(f"{name}, ±"), *spread))
    batch = [name for name in BATCH if name in results.results]
    levels = ", ".join(f"{method_title(name)} {results.results[name].mean(METRIC):.4f}" for name in batch)
    beside = f" With all documents at once: {levels}." if levels else ""
    return ResultTable(
        "minbatsrank_online",
        f"{results.name}: NDCG@10 against the documents seen in one pass",
        ("variant", *(f"{documents[k]:.0f}" for k in shown)),
        tuple(cells),
        f"MinBatSRank learns from one query after another and sees each once; columns: documents seen. Means "
        f"over folds and {len(SEEDS)} orders of the queries, ±: standard deviation over the orders. γ and λ "
        f"are chosen on valid at the end of the pass.{beside}",
    )
