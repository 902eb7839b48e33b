"""Model selection by NDCG@10 and by MAP, and test values with the metric conventions of the papers.

:func:`ranksieve.bench` selects models by one metric. The papers use NDCG@10 or MAP, some with other
conventions. So a study per method selects from the stored fits by each metric and evaluates the selected
models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.experiment import FoldContext, MethodResult
from ranksieve.experiment.fold_run import ALL_METRICS, MethodPlan, scores_on_test
from ranksieve.experiment.results import (
    TABLE_METRICS,
    DataSetResults,
    MethodFold,
    Results,
    best_on_valid,
    dense_weights,
    read_fold,
)
from ranksieve.io.folds import Fold
from ranksieve.methods import Method
from ranksieve.metrics import Evaluator, Profile
from ranksieve.model.linear import linear_scores_of_models

SELECTIONS = ("ndcg@10", "map")
CURVE_METRICS = ("ndcg@10", "map")
PREFIX = "choices of "  # the name of the study of a method is this and the method's name

Row = Mapping[str, Any]


@dataclass(frozen=True)
class ChoiceStudy:
    """Select models of a method from its stored fits on a fold, by each metric in SELECTIONS, for each seed.

    ``profiles``: by data set, further metric conventions under which the selected models are evaluated (means
    over queries).
    """

    name: str
    method: Method
    profiles: Mapping[str, Sequence[Profile]]

    def __call__(self, context: FoldContext) -> dict[str, Any]:
        fold = read_fold(context.path(self.name))
        identity = fold.header["identity"]
        own_select, seeds = identity["select"], identity["seeds"]
        plan = MethodPlan(self.name, self.method, identity["grid"], own_select, len(seeds))
        # A ranker that uses validation data in its fit was fitted for one metric only.
        selects = (
            (own_select,) if self.method.can("valid") else tuple(dict.fromkeys((own_select, *SELECTIONS)))
        )
        rows = []
        for seed in seeds:
            fits = {select: best_on_valid(fold.fits, select, seed) for select in selects}
            test_rows: dict[int, dict[str, Any]] = {}
            for select, fit in fits.items():
                if (point := fit["point"]) not in test_rows:
                    test_rows[point] = self._test_row(context, scores_on_test(context, plan, fit))
                choice = {"select": select, "random_state": seed, "point": point}
                rows.append({**choice, "validation": fit["validation"][select], **test_rows[point]})
        weights = best_on_valid(fold.fits, own_select, seeds[0])["weights"]
        evaluator = Evaluator(context.fold.test, context.profile)
        curve = (
            None
            if weights is None
            else truncation_curve(dense_weights(weights, context.names), context.fold, evaluator)
        )
        return {"choices": rows, "truncated": curve}

    def _test_row(self, context: FoldContext, scores: FloatArray) -> dict[str, Any]:
        test = context.fold.test
        evaluation = Evaluator(test, context.profile).evaluate(scores, ALL_METRICS)
        other_profiles = {
            profile.name: Evaluator(test, profile).evaluate(scores, TABLE_METRICS).mean
            for profile in self.profiles.get(context.data_set, ())
        }
        return {"query_ids": evaluation.query_ids, "test": evaluation.per_query, "elsewhere": other_profiles}


def truncation_curve(coef: FloatArray, fold: Fold, evaluator: Evaluator) -> dict[str, list[float]]:
    """Test metrics of the model truncated to its k largest weights, k = 1, 2, …"""
    rank = np.argsort(np.argsort(-np.abs(coef), kind="stable"))  # 0: the largest weight
    coefs = np.where(rank <= np.arange(np.count_nonzero(coef))[:, None], coef, 0.0)
    scores = linear_scores_of_models(fold.test.X, coefs)
    return {metric: evaluator.evaluate_many(scores, metric).mean(axis=1).tolist() for metric in CURVE_METRICS}


@dataclass(frozen=True, eq=False)
class SelectionResult(MethodResult):
    """Result of a method for one selection metric; ``other_profiles[profile][metric]``: test means."""

    other_profiles: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class PaperResults(DataSetResults):
    """Results on a data set, with variants of methods and selections by several metrics."""

    variants: Mapping[str, Sequence[MethodFold]] = field(default_factory=dict)
    """Methods that most tables leave out."""
    choices: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    """For each method, the row of its ChoiceStudy on each fold."""

    def result_for(self, name: str, select: str) -> SelectionResult | None:
        """The result of a method or variant with models selected by ``select``, or None."""
        folds, studies = {**self.variants, **self.methods}.get(name, ()), self.choices.get(name, ())
        rows = [[row for row in study["choices"] if row["select"] == select] for study in studies]
        if not folds or not rows or not all(rows):
            return None
        results = []
        for fold, fold_rows in zip(folds, rows, strict=True):
            by_seed = {row["random_state"]: row for row in fold_rows}
            results.append(replace(fold, choices=by_seed, tested=by_seed).result)
        return SelectionResult(tuple(results), _means([row["elsewhere"] for row in rows[0]], rows))

    def truncation_curves(self, name: str) -> list[dict[str, list[float]]]:
        """For each fold, the metrics of the selected model truncated to its largest weights.

        Empty for nonlinear methods.
        """
        return [study["truncated"] for study in self.choices.get(name, ()) if study["truncated"]]


@dataclass(frozen=True, eq=False)
class Reproduction(Results):
    """Content of a results folder written by :func:`papers.bench.bench`."""

    data_sets: Mapping[str, PaperResults]


def _means(first: Sequence[Row], rows: Sequence[Sequence[Row]]) -> dict[str, dict[str, float]]:
    """Means over folds of means over seeds."""
    return {
        profile: {
            metric: float(
                np.mean([np.mean([row["elsewhere"][profile][metric] for row in fold]) for fold in rows])
            )
            for metric in values
        }
        for profile, values in first[0].items()
    }


def paper_results(results: DataSetResults, variants: Sequence[str]) -> PaperResults:
    """Separate the variants from the methods, and the choices from the other studies."""
    methods = {name: folds for name, folds in results.methods.items() if name not in variants}
    variant_folds = {name: results.methods[name] for name in variants if name in results.methods}
    choices = {
        name: [rows[PREFIX + name] for rows in results.studies if PREFIX + name in rows]
        for name in results.methods
    }
    studies = [
        {name: row for name, row in rows.items() if not name.startswith(PREFIX)} for rows in results.studies
    ]
    return PaperResults(
        results.name,
        methods or variant_folds,
        results.unfinished,
        studies,
        variant_folds if methods else {},
        choices,
    )
