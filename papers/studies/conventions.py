"""Search for the metric conventions of the Sparse CS-ListMLE paper, by the baselines that it prints.

The paper names neither the gain, the discount nor the relevant labels, and it deals the queries of the folds
again. A convention fits if our values of the paper's baselines under it are the published ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import kendalltau

from papers.choices import SELECTIONS, PaperResults, SelectionResult
from papers.comparison import CONVENTIONS, MEDIUM_DIFFERENCE
from papers.published import NAMES, rows_of
from papers.studies.base import METRIC, ModelSelector, first_row, fmean, timed_fit
from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.experiment.tables import ResultTable, count_cell, metric_heading, number_cell, text_cell
from ranksieve.io.folds import Fold, deal_folds
from ranksieve.methods import METHODS
from ranksieve.metrics import Evaluator
from ranksieve.metrics.profiles import STANDARD_PROFILE
from ranksieve.show.formats import join_names

PAPER, OWN = "SparseCSListMLE", "sparselistmle"
MOST = 8  # rows of the table
SIGNED = "{:+z.4f}"
FORMS = ("{:.4f}", SIGNED, "{:.4f}")
DEALS = range(5)
REDEALT_METRICS = (METRIC, "map")


@dataclass(frozen=True, eq=False)
class Fit:
    """Our values and the published ones, under a convention and with models selected by a metric."""

    convention: str
    select: str
    metrics: Sequence[str]
    ours: FloatArray
    published: FloatArray

    @cached_property
    def differences(self) -> FloatArray:
        return self.ours - self.published

    @property
    def mean_size(self) -> float:
        return float(np.mean(np.abs(self.differences)))

    @property
    def order(self) -> float:
        """Kendall's τ of the two orders of the methods, mean over the metrics; NaN for fewer than three."""
        groups = [np.flatnonzero(np.equal(self.metrics, metric)) for metric in dict.fromkeys(self.metrics)]
        values = [kendalltau(self.ours[g], self.published[g]).statistic for g in groups if len(g) > 2]
        return fmean(values)


def published_baselines(data_set: str, kind: str) -> list[tuple[str, str, float]]:
    """(method, metric, value) of the paper's baselines; ``kind``: "ndcg" or "map"."""
    names = [name for name in dict.fromkeys(NAMES.values()) if not name.startswith(OWN)]
    rows = [(name, row) for name in names for row in rows_of(data_set, name) if row.paper == PAPER]
    return [
        (name, metric, value)
        for name, row in rows
        for metric, value in row.means.items()
        if metric.startswith(kind)
    ]


def fits(results: PaperResults, kind: str) -> list[Fit]:
    """All conventions and selections, best first; conventions with the same values count once."""
    numbers = published_baselines(results.name, kind)
    found: dict[tuple[float, ...], Fit] = {}
    for select in SELECTIONS:
        pairs = [(results.result_for(name, select), metric, value) for name, metric, value in numbers]
        present = [(one, metric, value) for one, metric, value in pairs if one is not None]
        if not present:
            return []
        for profile in CONVENTIONS:
            ours = [_value(one, profile.name, metric) for one, metric, _ in present]
            published = [value for *_, value in present]
            metrics = [metric for _, metric, _ in present]
            fit = Fit(profile.name, select, metrics, np.array(ours), np.array(published))
            found.setdefault(tuple(np.round(ours, 9)), fit)
    return sorted(found.values(), key=lambda fit: fit.mean_size)


def _value(result: SelectionResult, convention: str, metric: str) -> float:
    return result.other_profiles[convention][metric]


def redealt(fold: Fold, profile: str) -> dict[str, Any]:
    """CS-RankSVM on all queries of the data set, dealt into five folds again, several times."""
    whole = Dataset(
        np.vstack([part.X for part in fold]),
        np.concatenate([part.y for part in fold]),
        np.concatenate([part.qid for part in fold]),
    )
    values: dict[str, list[float]] = {metric: [] for metric in REDEALT_METRICS}
    for seed in DEALS:
        means = [_test_means(one, profile) for one in deal_folds(whole, 5, random_state=seed)]
        for metric, of_deals in values.items():
            of_deals.append(fmean([mean[metric] for mean in means]))
    return {"values": values}


def _test_means(fold: Fold, profile: str) -> Mapping[str, float]:
    method = METHODS["csranksvm"]
    fits = [timed_fit(method.make(**point), fold.train)[0] for point in method.grid]
    selector = ModelSelector(fold, profile)
    best = fits[int(np.argmax(selector.validation_means([ranker.coef_ for ranker in fits])))]
    return Evaluator(fold.test, STANDARD_PROFILE).evaluate(best.predict(fold.test), REDEALT_METRICS).mean


def conventions_table(results: PaperResults) -> ResultTable | None:
    """Table of the conventions nearest to the published NDCG and MAP of the baselines."""
    rows, verdicts = [], []
    for kind in ("ndcg", "map"):
        all_fits = fits(results, kind)
        if not all_fits:
            return None
        heading = kind.upper()
        for fit in all_fits[: MOST // 2]:
            texts = (heading, fit.convention, metric_heading(fit.select))
            sizes = np.abs(fit.differences)
            numbers = (fit.mean_size, float(np.mean(fit.differences)), float(sizes.max()))
            cells = [number_cell(value, form) for value, form in zip(numbers, FORMS, strict=True)]
            within = count_cell(int(np.sum(sizes <= MEDIUM_DIFFERENCE)))
            order = number_cell(fit.order, "{:.2f}")
            rows.append((*map(text_cell, texts), count_cell(len(sizes)), *cells, within, order))
        verdicts.append(_verdict(heading, all_fits[0]))
    return ResultTable(
        "conventions",
        f"{results.name}: conventions of the Sparse CS-ListMLE paper",
        (
            "numbers", "convention", "selected by", "published", "mean |difference|", "mean difference",
            "largest", f"within {MEDIUM_DIFFERENCE:g}", "Kendall τ",
        ),
        tuple(rows),
        f"Baselines of the paper that were run here, under {len(CONVENTIONS)} conventions; the "
        f"{MOST // 2} nearest each. Kendall τ: whether the values are in the published order. "
        f"For MAP only the relevant labels and the empty queries matter. {' '.join(verdicts)}"
        f"{_redealt_text(results)}",
    )  # fmt: skip


def _redealt_text(results: PaperResults) -> str:
    row = first_row(results, "listmle_redealt")
    if row is None:
        return ""
    spreads = [
        f"{np.std(values, ddof=1):.4f} in {metric_heading(metric)}"
        for metric, values in row["values"].items()
    ]
    return (
        f" The paper deals the queries again: over {len(DEALS)} random deals into five folds, the standard "
        f"deviation of CS-RankSVM is {join_names(spreads)}."
    )


def _verdict(heading: str, best: Fit) -> str:
    if best.mean_size <= MEDIUM_DIFFERENCE:
        return f"{heading}: the first convention fits."
    text = f"{heading}: no convention fits"
    if best.order < 0.5:
        return f"{text}; the published values have another order of methods, which no convention explains."
    return f"{text}; the best one is {best.mean_size:.3f} off on average."
