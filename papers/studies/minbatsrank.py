"""MinBatSRank: number of passes, one learning rate for all features ("Nonfea", Fig. 2), and one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from papers.choices import PaperResults
from papers.published import rows_of as published_rows
from papers.studies.base import (
    ACCURACY,
    METRIC,
    ModelSelector,
    accuracy_cells,
    compare_outcomes,
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
BATCH = ("fenchelrank", "ranksvm")  # methods that use all documents at once, for comparison
PASSES = (1, 2, 5)
SMOOTHING = 1.0
L1S = [2.0**k for k in range(15, -3, -3)]  # every third value of the paper's grid
N_EPOCHS = (1, 5, 20)
ALL_SEEDS = range(5)
ALL_L1S = [2.0**k for k in range(15, -3, -1)]  # the paper's grid, for one pass
CHOSEN, PAPER = "selected", "published"
SHARES = tuple(k / 20 for k in range(1, 21))  # evaluate the pass after these shares of the training queries


class Rates(NamedTuple):
    """Initial rates γ to select from, one per feature (``feature_wise``) or one for all features."""

    feature_wise: bool
    values: Sequence[float]


# Twelve rates each. The loss of a batch is a sum over pairs, so a rate that does not adapt must be small.
VARIANTS = {
    "feature-wise": Rates(True, [2.0**k for k in range(1, -11, -1)]),
    "Nonfea": Rates(False, [2.0**k for k in range(-1, -25, -2)]),
    "Nonfea, γ = 1": Rates(False, [1.0]),
}
FEATURE_WISE, NONFEA, PAPER_RATE = VARIANTS


@dataclass(frozen=True)
class GridPoint:
    """γ, λ and the number of passes."""

    rate: float
    l1: float
    n_epochs: int


def fit_grid(
    train: Dataset, rates: Rates, l1s: Sequence[float], orders: Sequence[IntArray], n_passes: Sequence[int]
) -> tuple[list[GridPoint], list[FloatArray]]:
    """Weights for all rates, λ and numbers of passes, without the fits that diverge."""
    passes, points, coefs = FtrlPasses.of(train), list[GridPoint](), list[FloatArray]()
    for rate, l1 in product(rates.values, l1s):
        state = FtrlState.zeros(train.n_features)
        rule = Rule(l1, rate, SMOOTHING, rates.feature_wise, 0)
        for n_done, order in enumerate(orders, start=1):
            try:
                passes.run(rule, state, order)
            except ValueError:  # the weights diverged
                break
            if n_done in n_passes:
                points.append(GridPoint(rate, l1, n_done))
                coefs.append(state.w.copy())
    return points, coefs


def passes(fold: Fold, profile: str) -> dict[str, Any]:
    """The paper's grid with several numbers of passes n, and with n selected too, for several query orders.

    A weight stays 0 while the sum of its gradients over all passes is at most λ, so the grid has n·λ for n
    passes: the same strength per pair seen.
    """
    selector, train = ModelSelector(fold, profile), fold.train
    outcomes: dict[str, list[Any]] = {name: [] for name in (*map(str, N_EPOCHS), CHOSEN)}
    validation: dict[GridPoint, list[float]] = {}
    for seed in ALL_SEEDS:
        orders = [epoch_order(seed, epoch, train.n_queries) for epoch in range(max(N_EPOCHS))]
        all_points, all_coefs = list[GridPoint](), list[FloatArray]()
        for n in N_EPOCHS:
            l1s = [n * l1 for l1 in ALL_L1S]
            points, coefs = fit_grid(train, VARIANTS[FEATURE_WISE], l1s, orders[:n], [n])
            outcomes[str(n)].append(selector.select(coefs, [vars(point) for point in points]))
            all_points, all_coefs = all_points + points, all_coefs + coefs
        for point, value in zip(all_points, selector.validation_means(all_coefs), strict=True):
            validation.setdefault(point, []).append(float(value))
        outcomes[CHOSEN].append(selector.select(all_coefs, [vars(point) for point in all_points]))
    averages = {point: fmean(values) for point, values in validation.items() if len(values) == len(ALL_SEEDS)}
    best = {str(n): max(v for point, v in averages.items() if point.n_epochs == n) for n in N_EPOCHS}
    return {"variants": outcomes, "one_point": {**best, CHOSEN: max(best.values())}}


def passes_table(results: PaperResults) -> ResultTable | None:
    """Table of the numbers of passes: means and standard deviations over query orders, and the paper."""
    rows = rows_of(results, "minbatsrank_passes")
    if not rows:
        return None
    cells = []
    for name in rows[0]["variants"]:
        folds = [row["variants"][name] for row in rows]
        by_seed = [means([fold[k] for fold in folds]) for k in range(len(ALL_SEEDS))]
        values = {metric: np.array([one[metric] for one in by_seed]) for metric in by_seed[0]}
        validation = fmean([outcome["validation"] for fold in folds for outcome in fold])
        one_point = fmean([row["one_point"][name] for row in rows])
        numbers = [number_cell(float(one.mean()), spread=float(one.std(ddof=1))) for one in values.values()]
        cells.append((text_cell(name), number_cell(validation), number_cell(one_point), *numbers))
    for row in published_rows(results.name, "minbatsrank"):
        cells.append((text_cell(PAPER), *[number_cell(np.nan)] * 2, *accuracy_cells(row.means)))
    return ResultTable(
        "minbatsrank_passes",
        f"{results.name}: MinBatSRank by number of passes",
        ("passes", "validation", "validation, one point", *ACCURACY),
        tuple(cells),
        f"γ and λ of the paper's grid (λ times the number of passes) are selected on validation data by "
        f"{metric_heading(METRIC)}, for each of {len(ALL_SEEDS)} query orders; means and standard deviations "
        f"over the orders. Validation: {metric_heading(METRIC)} of the selected points; one point: the best "
        f"mean over the orders of the same point, which the selection inflates less. {CHOSEN}: the number "
        "of passes is selected too.",
    )


def rates(fold: Fold, profile: str) -> dict[str, Any]:
    """Each variant with rate, λ and passes selected on validation data, for several query orders."""
    selector, train = ModelSelector(fold, profile), fold.train
    outcomes: dict[str, list[Any]] = {name: [] for name in VARIANTS}
    for seed in SEEDS:
        orders = [epoch_order(seed, epoch, train.n_queries) for epoch in range(max(PASSES))]
        for name, variant in VARIANTS.items():
            points, coefs = fit_grid(train, variant, L1S, orders, PASSES)
            n_fits = len(variant.values) * len(L1S) * len(PASSES)
            outcome = selector.select(coefs, [vars(point) for point in points]) if points else {}
            outcomes[name].append({"diverged": 1 - len(points) / n_fits, **outcome})
    return {"variants": outcomes}


def rates_table(results: PaperResults) -> ResultTable | None:
    """Table of the variants: means over seeds, and standard deviation of NDCG@10."""
    rows = rows_of(results, "minbatsrank_rates")
    if not rows:
        return None
    cells = []
    for name in VARIANTS:
        folds = [row["variants"][name] for row in rows]
        diverged = fmean([outcome["diverged"] for fold in folds for outcome in fold])
        averages = seed_means(rows, name)
        by_seed = [means([fold[k] for fold in folds])[METRIC] for k in range(len(SEEDS))] if averages else []
        spread = float(np.std(by_seed, ddof=1)) if by_seed else np.nan
        mean = accuracy_cells(means(averages) if averages else {})
        cells.append((text_cell(name), *mean, number_cell(spread), number_cell(100 * diverged, "{:.0f} %")))
    return ResultTable(
        "minbatsrank_rates",
        f"{results.name}: MinBatSRank with one rate for all features",
        ("variant", *ACCURACY, f"± {metric_heading(METRIC)}", "diverged"),
        tuple(cells),
        f"Rate γ (twelve values each), λ (every third value of the paper) and passes "
        f"({', '.join(map(str, PASSES))}) are selected on validation data by NDCG@10. Means over "
        f"{len(SEEDS)} query orders; ±: their standard deviation. Diverged: share of fits that diverge. "
        f"{_verdict(rows)} γ = 1 is the rate of Nonfea in the paper.",
    )


def _verdict(rows: Sequence[Entry]) -> str:
    """Sentence that compares feature-wise rates with a tuned single rate, and with the paper's Fig. 2."""
    feature_wise, nonfea = (seed_means(rows, name) for name in (FEATURE_WISE, NONFEA))
    if not (feature_wise and nonfea):
        return ""
    difference, p = compare_outcomes(feature_wise, nonfea)
    _, p_worse = compare_outcomes(nonfea, feature_wise)
    text = f"Feature-wise minus tuned Nonfea: {difference:+.4f} N@10 (p = {p:.2g}"
    if p < SIGNIFICANCE_LEVEL:
        return f"{text}): better, as in figure 2 of the paper."
    verdict = "worse" if p_worse < SIGNIFICANCE_LEVEL else "not better"
    return f"{text}; p = {p_worse:.2g} for worse): {verdict}, unlike figure 2 of the paper."


def seed_means(rows: Sequence[Entry], name: str) -> list[dict[str, Any]]:
    """For each fold, the mean over seeds of a variant, per query; empty if all fits of a seed diverged."""
    folds = [row["variants"][name] for row in rows]
    if not all("test" in outcome for fold in folds for outcome in fold):
        return []
    return [
        {
            "sparsity": fmean([outcome["sparsity"] for outcome in fold]),
            "test": {m: np.mean([outcome["test"][m] for outcome in fold], axis=0) for m in TABLE_METRICS},
        }
        for fold in folds
    ]


def online(fold: Fold, profile: str) -> dict[str, Any]:
    """Test accuracy during one pass; γ and λ are selected on validation data at its end."""
    selector, train = ModelSelector(fold, profile), fold.train
    ends = np.maximum(1, np.round(np.multiply(SHARES, train.n_queries)).astype(int))
    n_documents, curves = [], {FEATURE_WISE: [], NONFEA: []}  # type: ignore[var-annotated]
    for seed in SEEDS:
        order = epoch_order(seed, 0, train.n_queries)
        n_documents.append(np.cumsum(train.queries.sizes[order])[ends - 1])
        for name, curve in curves.items():
            points, coefs = fit_grid(train, VARIANTS[name], L1S, [order], [1])
            best = points[int(np.argmax(selector.validation_means(coefs)))]
            models = _models_during_pass(
                train, Rule(best.l1, best.rate, SMOOTHING, VARIANTS[name].feature_wise, 0), order, ends
            )
            curve.append({
                "parameters": vars(best),
                "n_selected": np.count_nonzero(models, axis=1),
                "test": {metric: selector.test_means(models, metric) for metric in (METRIC, "map")},
            })  # fmt: skip
    return {"shares": SHARES, "documents": np.mean(n_documents, axis=0), "curves": curves}


def _models_during_pass(train: Dataset, rule: Rule, order: IntArray, ends: IntArray) -> FloatArray:
    """The weights after the first ``end`` queries of the pass, for each of ``ends``."""
    passes, state, models = FtrlPasses.of(train), FtrlState.zeros(train.n_features), []
    for queries in np.split(order, ends[:-1]):
        if len(queries):
            passes.run(rule, state, queries)
        models.append(state.w.copy())
    return np.array(models)


def online_means(rows: Sequence[Entry], name: str, metric: str) -> FloatArray:
    """The curve of each query order (first axis), as means over folds."""
    return np.array(
        [np.mean([row["curves"][name][k]["test"][metric] for row in rows], axis=0) for k in range(len(SEEDS))]
    )


def online_table(results: PaperResults) -> ResultTable | None:
    """Table of NDCG@10 after some shares of one pass."""
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
    batch_text = f" Methods that use all documents at once: {levels}." if levels else ""
    return ResultTable(
        "minbatsrank_online",
        f"{results.name}: NDCG@10 by documents seen in one pass",
        ("variant", *(f"{documents[k]:.0f}" for k in shown)),
        tuple(cells),
        f"MinBatSRank learns from the queries one by one, each once; columns: documents seen so far. Means "
        f"over folds and {len(SEEDS)} query orders; ±: standard deviation over the orders. γ and λ are "
        f"selected on validation data at the end of the pass.{batch_text}",
    )
