"""What each of the papers' metrics chooses on valid, and what that reaches by their conventions.

:func:`ranksieve.bench` lets one metric choose. The papers choose by NDCG@10 or by MAP, by other conventions;
so a study per method measures the other choices on the fits that are in the folder.
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
PREFIX = "choices of "  # of the names of these studies

Row = Mapping[str, Any]


@dataclass(frozen=True)
class ChoiceStudy:
    """Choices of a method, once all its fits on a fold are there, by each of SELECTIONS and with each seed.

    ``profiles`` are further conventions, by data set, under which the chosen models are measured, as means.
    """

    name: str
    method: Method
    profiles: Mapping[str, Sequence[Profile]]

    def __call__(self, context: FoldContext) -> dict[str, Any]:
        fold = read_fold(context.path(self.name))
        identity = fold.header["identity"]
        own, seeds = identity["select"], identity["seeds"]
        plan = MethodPlan(self.name, self.method, identity["grid"], own, len(seeds))
        # A ranker that chooses by itself on validation data has one choice.
        selects = (own,) if self.method.can("valid") else tuple(dict.fromkeys((own, *SELECTIONS)))
        rows = []
        for seed in seeds:
            fits = {select: best_on_valid(fold.fits, select, seed) for select in selects}
            measured: dict[int, dict[str, Any]] = {}
            for select, fit in fits.items():
                if (point := fit["point"]) not in measured:
                    measured[point] = self._measured(context, scores_on_test(context, plan, fit))
                choice = {"select": select, "random_state": seed, "point": point}
                rows.append({**choice, "validation": fit["validation"][select], **measured[point]})
        weights = best_on_valid(fold.fits, own, seeds[0])["weights"]
        evaluator = Evaluator(context.fold.test, context.profile)
        curve = (
            None
            if weights is None
            else truncated(dense_weights(weights, context.names), context.fold, evaluator)
        )
        return {"choices": rows, "truncated": curve}

    def _measured(self, context: FoldContext, scores: FloatArray) -> dict[str, Any]:
        test = context.fold.test
        measured = Evaluator(test, context.profile).evaluate(scores, ALL_METRICS)
        elsewhere = {
            profile.name: Evaluator(test, profile).evaluate(scores, TABLE_METRICS).mean
            for profile in self.profiles.get(context.data_set, ())
        }
        return {"query_ids": measured.query_ids, "test": measured.per_query, "elsewhere": elsewhere}


def truncated(coef: FloatArray, fold: Fold, evaluator: Evaluator) -> dict[str, list[float]]:
    """Test metrics of the model cut to its k largest weights, k = 1, 2, …"""
    place = np.argsort(np.argsort(-np.abs(coef), kind="stable"))  # 0: the largest weight
    coefs = np.where(place <= np.arange(np.count_nonzero(coef))[:, None], coef, 0.0)
    scores = linear_scores_of_models(fold.test.X, coefs)
    return {metric: evaluator.evaluate_many(scores, metric).mean(axis=1).tolist() for metric in CURVE_METRICS}


@dataclass(frozen=True, eq=False)
class ChosenResult(MethodResult):
    """What some metric chose; ``elsewhere[profile][metric]`` are means by other conventions."""

    elsewhere: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class PaperResults(DataSetResults):
    """The results of a data set, with variants of methods and with the choices of other metrics."""

    variants: Mapping[str, Sequence[MethodFold]] = field(default_factory=dict)
    """Methods that tables leave out."""
    choices: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    """By method, fold after fold: what its study found."""

    def chosen_by(self, name: str, select: str) -> ChosenResult | None:
        """The result of a method or variant if ``select`` chooses on valid; None if there is none."""
        folds, studies = {**self.variants, **self.methods}.get(name, ()), self.choices.get(name, ())
        rows = [[row for row in study["choices"] if row["select"] == select] for study in studies]
        if not folds or not rows or not all(rows):
            return None
        results = []
        for fold, chosen in zip(folds, rows, strict=True):
            by_seed = {row["random_state"]: row for row in chosen}
            results.append(replace(fold, choices=by_seed, tested=by_seed).result)
        return ChosenResult(tuple(results), _means([row["elsewhere"] for row in rows[0]], rows))

    def curves(self, name: str) -> list[dict[str, list[float]]]:
        """Fold after fold, the metrics of the chosen model cut to its largest weights; none if not linear."""
        return [study["truncated"] for study in self.choices.get(name, ()) if study["truncated"]]


@dataclass(frozen=True, eq=False)
class Reproduction(Results):
    """The content of a results folder of :func:`papers.bench.bench`."""

    data_sets: Mapping[str, PaperResults]


def _means(first: Sequence[Row], rows: Sequence[Sequence[Row]]) -> dict[str, dict[str, float]]:
    """Means over folds of means over seeds."""
    return {
        profile: {
            metric: float(np.mean([np.mean([row["elsewhere"][profile][metric] for row in f]) for f in rows]))
            for metric in values
        }
        for profile, values in first[0].items()
    }


def paper_results(results: DataSetResults, variants: Sequence[str]) -> PaperResults:
    """Results with variants apart from methods, and choices apart from the other studies."""
    methods = {name: folds for name, folds in results.methods.items() if name not in variants}
    apart = {name: results.methods[name] for name in variants if name in results.methods}
    choices = {
        name: [rows[PREFIX + name] for rows in results.studies if PREFIX + name in rows]
        for name in results.methods
    }
    studies = [
        {name: row for name, row in rows.items() if not name.startswith(PREFIX)} for rows in results.studies
    ]
    return PaperResults(
        results.name, methods or apart, results.unfinished, studies, apart if methods else {}, choices
    )
