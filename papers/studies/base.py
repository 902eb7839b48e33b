"""What studies share: models chosen on valid and measured on test, their means over folds, their tables."""

from __future__ import annotations

import csv
import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from papers.choices import PaperResults
from papers.published import metric_name
from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.experiment.fold_run import NO_FEATURES, PREPARATION_OFF, FoldContext
from ranksieve.experiment.journal import Entry
from ranksieve.experiment.results import TABLE_METRICS
from ranksieve.experiment.tables import Cell, metric_heading, number_cell
from ranksieve.io.folds import Fold
from ranksieve.metrics import Evaluator
from ranksieve.metrics.significance import paired_t
from ranksieve.model.linear import linear_scores, linear_scores_of_models
from ranksieve.prepare.scaling import ScaleWarning
from ranksieve.rankers.base import Ranker

METRIC = "ndcg@10"
ACCURACY = (*(metric_heading(metric) for metric in TABLE_METRICS), "sparsity")

Measure = Callable[[Fold, str], Mapping[str, Any]]
Outcome = Mapping[str, Any]
AnyRanker = TypeVar("AnyRanker", bound=Ranker)


@dataclass(frozen=True)
class Study:
    """An experiment on one fold, beside the methods.

    ``methods`` are those that it is about; one without any is about the data. A study of solvers needs the
    first fold only.
    """

    measure: Measure
    methods: tuple[str, ...] = ()
    first_fold_only: bool = False

    def __call__(self, context: FoldContext) -> Mapping[str, Any] | None:
        """What bench asks of each fold."""
        if self.first_fold_only and context.number != 1:
            return None
        return self.measure(context.fold, context.profile)


@dataclass(frozen=True, eq=False)
class Chooser:
    """Chooses among linear models on the validation part of a fold, and measures the chosen one on test."""

    fold: Fold
    profile: str

    @cached_property
    def _valid(self) -> Evaluator:
        return Evaluator(self.fold.valid, self.profile)

    @cached_property
    def _test(self) -> Evaluator:
        return Evaluator(self.fold.test, self.profile)

    def validation(self, coefs: Sequence[FloatArray] | FloatArray, metric: str = METRIC) -> FloatArray:
        """The validation value of each model; a model without features is the last choice."""
        models = np.asarray(coefs)
        scores = linear_scores_of_models(self.fold.valid.X, models)
        values = self._valid.evaluate_many(scores, metric).mean(axis=1)
        return np.where(models.any(axis=1), values, NO_FEATURES)

    def test(self, coef: FloatArray) -> dict[str, FloatArray]:
        """Test values query by query."""
        used = np.flatnonzero(coef)
        scores = linear_scores(self.fold.test.X, used, coef[used])
        return dict(self._test.evaluate(scores, TABLE_METRICS).per_query)

    def test_means(self, coefs: Sequence[FloatArray] | FloatArray, metric: str = METRIC) -> FloatArray:
        """The test mean of each model."""
        scores = linear_scores_of_models(self.fold.test.X, np.asarray(coefs))
        means: FloatArray = self._test.evaluate_many(scores, metric).mean(axis=1)
        return means

    def chosen(self, coefs: Sequence[FloatArray], points: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The best of the models on validation, the earlier of equals, with its parameters."""
        values = self.validation(coefs)
        best = int(np.argmax(values))
        return {
            "parameters": points[best],
            "validation": values[best],
            "sparsity": np.mean(coefs[best] != 0),
            "test": self.test(coefs[best]),
        }


def fit(ranker: AnyRanker, data: Dataset) -> AnyRanker:
    """The ranker, fitted to data that are prepared already; an early end is a part of the papers' methods."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", ScaleWarning)
        ranker.set_params(**PREPARATION_OFF).fit(data)
    return ranker


def timed_fit(ranker: AnyRanker, data: Dataset) -> tuple[AnyRanker, float]:
    """The fitted ranker, and the seconds of the fit."""
    began = time.perf_counter()
    fit(ranker, data)
    return ranker, time.perf_counter() - began


def in_unit_range(data: Dataset) -> bool:
    """Whether all features lie in [0, 1], as the papers' theorems want them."""
    return bool(data.X.min() >= 0.0 and data.X.max() <= 1.0)


def rows_of(results: PaperResults, study: str) -> list[Entry]:
    """What a study found, fold by fold; nothing unless all folds have it."""
    found = [rows[study] for rows in results.studies if study in rows]
    return found if len(found) == results.header["identity"]["n_folds"] else []


def first_row(results: PaperResults, study: str) -> Entry | None:
    """What a study of the first fold found."""
    return results.studies[0].get(study) if results.studies else None


def means(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Means over folds of test metrics and sparsity."""
    tests = {m: fmean([np.mean(outcome["test"][m]) for outcome in outcomes]) for m in TABLE_METRICS}
    return tests | {"sparsity": fmean([outcome["sparsity"] for outcome in outcomes])}


def fmean(values: Sequence[Any]) -> float:
    return float(np.mean(values)) if len(values) else math.nan


def better_than(a: Sequence[Outcome], b: Sequence[Outcome], metric: str = METRIC) -> tuple[float, float]:
    """Difference of the means over folds, and p of the paired one-sided t-test over all test queries."""
    first, second = (np.concatenate([outcome["test"][metric] for outcome in of]) for of in (a, b))
    return means(a)[metric] - means(b)[metric], paired_t(first, second, "greater")


def difference_words(a: Sequence[Outcome], b: Sequence[Outcome], metric: str = METRIC) -> str:
    """+0.0030 N@10, p = 0.12."""
    difference, p = better_than(a, b, metric)
    return f"{difference:+.4f} {metric_heading(metric)}, p = {p:.2g}"


def accuracy_cells(found: Mapping[str, float]) -> tuple[Cell, ...]:
    """Cells of the columns ACCURACY."""
    tests = [number_cell(found.get(metric, math.nan)) for metric in TABLE_METRICS]
    return (*tests, number_cell(found.get("sparsity", math.nan), "{:.3f}"))


@cache
def printed(paper: str, table: str, data_set: str) -> dict[str, dict[str, float]]:
    """The means over folds of a paper's table, by the names it uses."""
    text = files("papers").joinpath("published.csv").read_text(encoding="utf-8")
    found: dict[str, dict[str, list[float]]] = {}
    for row in csv.DictReader(text.splitlines()):
        metric = metric_name(row["metric"])
        if (row["paper"], row["table"], row["dataset"]) == (paper, table, data_set) and metric:
            found.setdefault(row["method"], {}).setdefault(metric, []).append(float(row["value"]))
    return {name: {metric: fmean(values) for metric, values in of.items()} for name, of in found.items()}
