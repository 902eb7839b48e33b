"""Shared parts of the studies: model selection, test values, means over folds, table cells."""

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
    """An experiment on one fold.

    ``methods``: the methods it is about; empty for studies of any data. Studies of solvers need only the
    first fold.
    """

    measure: Measure
    methods: tuple[str, ...] = ()
    first_fold_only: bool = False

    def __call__(self, context: FoldContext) -> Mapping[str, Any] | None:
        if self.first_fold_only and context.number != 1:
            return None
        return self.measure(context.fold, context.profile)


@dataclass(frozen=True, eq=False)
class ModelSelector:
    """Selects among linear models on the validation data of a fold, and evaluates on its test data."""

    fold: Fold
    profile: str

    @cached_property
    def _valid_evaluator(self) -> Evaluator:
        return Evaluator(self.fold.valid, self.profile)

    @cached_property
    def _test_evaluator(self) -> Evaluator:
        return Evaluator(self.fold.test, self.profile)

    def validation_means(self, coefs: Sequence[FloatArray] | FloatArray, metric: str = METRIC) -> FloatArray:
        """Mean of a metric on the validation data for each model; NO_FEATURES for a model without features.

        So a model without features is selected only if there is no other.
        """
        models = np.asarray(coefs)
        scores = linear_scores_of_models(self.fold.valid.X, models)
        values = self._valid_evaluator.evaluate_many(scores, metric).mean(axis=1)
        return np.where(models.any(axis=1), values, NO_FEATURES)

    def test_values(self, coef: FloatArray) -> dict[str, FloatArray]:
        """Test metrics of each query."""
        used = np.flatnonzero(coef)
        scores = linear_scores(self.fold.test.X, used, coef[used])
        return dict(self._test_evaluator.evaluate(scores, TABLE_METRICS).per_query)

    def test_means(self, coefs: Sequence[FloatArray] | FloatArray, metric: str = METRIC) -> FloatArray:
        """Mean of a metric on the test data for each model."""
        scores = linear_scores_of_models(self.fold.test.X, np.asarray(coefs))
        means: FloatArray = self._test_evaluator.evaluate_many(scores, metric).mean(axis=1)
        return means

    def select(self, coefs: Sequence[FloatArray], points: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Select the best model on the validation data, ties: the earlier one; with parameters and values."""
        values = self.validation_means(coefs)
        best = int(np.argmax(values))
        return {
            "parameters": points[best],
            "validation": values[best],
            "sparsity": np.mean(coefs[best] != 0),
            "test": self.test_values(coefs[best]),
        }


def fit(ranker: AnyRanker, data: Dataset) -> AnyRanker:
    """Fit the ranker to data that are already prepared.

    Stopping early is part of the papers' methods, so there is no ConvergenceWarning.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", ScaleWarning)
        ranker.set_params(**PREPARATION_OFF).fit(data)
    return ranker


def timed_fit(ranker: AnyRanker, data: Dataset) -> tuple[AnyRanker, float]:
    """Fit the ranker; return it and the seconds of the fit."""
    start = time.perf_counter()
    fit(ranker, data)
    return ranker, time.perf_counter() - start


def in_unit_range(data: Dataset) -> bool:
    """Whether all features are in [0, 1], as the papers' theorems require."""
    return bool(data.X.min() >= 0.0 and data.X.max() <= 1.0)


def rows_of(results: PaperResults, study: str) -> list[Entry]:
    """The rows of a study, one per fold; empty if a fold is missing."""
    study_rows = [rows[study] for rows in results.studies if study in rows]
    return study_rows if len(study_rows) == results.header["identity"]["n_folds"] else []


def first_row(results: PaperResults, study: str) -> Entry | None:
    """The row of a study on the first fold."""
    return results.studies[0].get(study) if results.studies else None


def means(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Means over folds of test metrics and sparsity."""
    tests = {m: fmean([np.mean(outcome["test"][m]) for outcome in outcomes]) for m in TABLE_METRICS}
    return tests | {"sparsity": fmean([outcome["sparsity"] for outcome in outcomes])}


def fmean(values: Sequence[Any]) -> float:
    return float(np.mean(values)) if len(values) else math.nan


def compare_outcomes(a: Sequence[Outcome], b: Sequence[Outcome], metric: str = METRIC) -> tuple[float, float]:
    """Difference a − b of the means over folds, and p of the test that a is better.

    A paired one-sided t-test over the test queries of all folds.
    """
    first, second = (np.concatenate([outcome["test"][metric] for outcome in side]) for side in (a, b))
    return means(a)[metric] - means(b)[metric], paired_t(first, second, "greater")


def difference_text(a: Sequence[Outcome], b: Sequence[Outcome], metric: str = METRIC) -> str:
    """Text such as "+0.0030 N@10, p = 0.12"."""
    difference, p = compare_outcomes(a, b, metric)
    return f"{difference:+.4f} {metric_heading(metric)}, p = {p:.2g}"


def accuracy_cells(values: Mapping[str, float]) -> tuple[Cell, ...]:
    """Cells of the columns ACCURACY."""
    tests = [number_cell(values.get(metric, math.nan)) for metric in TABLE_METRICS]
    return (*tests, number_cell(values.get("sparsity", math.nan), "{:.3f}"))


@cache
def published_means(paper: str, table: str, data_set: str) -> dict[str, dict[str, float]]:
    """Means over folds in a table of a paper, by published method name and our metric name."""
    text = files("papers").joinpath("published.csv").read_text(encoding="utf-8")
    values: dict[str, dict[str, list[float]]] = {}
    for row in csv.DictReader(text.splitlines()):
        metric = metric_name(row["metric"])
        if (row["paper"], row["table"], row["dataset"]) == (paper, table, data_set) and metric:
            values.setdefault(row["method"], {}).setdefault(metric, []).append(float(row["value"]))
    return {
        name: {metric: fmean(numbers) for metric, numbers in by_metric.items()}
        for name, by_metric in values.items()
    }
