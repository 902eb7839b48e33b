"""Run one method on one fold. Every fit is written to a journal, so that an interrupted run can resume."""

from __future__ import annotations

import platform
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ranksieve._types import FloatArray
from ranksieve.baselines.selector import FeatureSelector
from ranksieve.data.dataset import fingerprint
from ranksieve.data.describe import varying_columns
from ranksieve.experiment.journal import Entry, Journal, check_resumable, write_lock
from ranksieve.experiment.results import STUDIES_FOLDER, best_on_valid, dense_weights
from ranksieve.io.folds import Fold
from ranksieve.methods import Method
from ranksieve.metrics import Evaluator, Profile
from ranksieve.model.linear import linear_scores, nonzero_weights
from ranksieve.prepare.scaling import ScaleWarning
from ranksieve.rankers.base import Ranker, start_from

CUTOFFS = range(1, 11)
ALL_METRICS = (*(f"ndcg@{k}" for k in CUTOFFS), *(f"p@{k}" for k in CUTOFFS), "map", "mrr", "err@10")
VALIDATION_METRICS = ("ndcg@10", "map")  # recorded for every fit, in addition to the selection metric
NO_FEATURES = -1.0  # validation value of a model without features, so that it is selected last
PREPARATION_OFF = {"normalise": "none", "missing": "error"}  # the folds are already prepared
LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")

GridPoint = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class FoldContext:
    """One fold of a data set, its results folder, and the notes on data and software for its files."""

    folder: Path
    data_set: str
    number: int
    n_folds: int
    profile: str
    fold: Fold
    fingerprints: Mapping[str, str]
    notes: Mapping[str, Any]

    @contextmanager
    def journal(self, name: str, identity: Mapping[str, Any], title: str) -> Iterator[Journal]:
        """Open the results file of a method or of the studies; only one process at a time can."""
        with write_lock(self.path(name)):
            yield Journal(self.path(name), {**self._identity, **identity}, {**self.notes, "title": title})

    def check(self, name: str, identity: Mapping[str, Any]) -> None:
        """Raise an error if the results file is outside the folder or belongs to other data or options."""
        check_resumable(self.path(name), {**self._identity, **identity}, self.folder)

    def check_labels(self, metrics: Collection[str]) -> None:
        """Raise an error if a metric cannot be computed from the labels, before anything is written."""
        for data in (self.fold.valid, self.fold.test):
            Evaluator(data, self.profile).evaluate(np.zeros(data.n_docs), (*ALL_METRICS, *metrics))

    def path(self, name: str) -> Path:
        return self.folder / self.data_set / name / f"Fold{self.number}.jsonl"

    @property
    def _identity(self) -> dict[str, Any]:
        return {
            "data_set": self.data_set, "fold": self.number, "n_folds": self.n_folds, "profile": self.profile,
            "fingerprints": self.fingerprints,
        }  # fmt: skip

    @property
    def names(self) -> tuple[str, ...]:
        return self.fold.train.feature_names

    @property
    def label(self) -> str:
        return f"{self.data_set}, fold {self.number}"


Study = Callable[[FoldContext], Mapping[str, Any] | None]
"""A measurement on a fold besides the methods: returns plain data, or None to skip the fold."""


def fold_contexts(folder: Path, data_set: str, folds: Sequence[Fold], profile: str) -> list[FoldContext]:
    return [
        FoldContext(folder, data_set, k, len(folds), profile, fold, _by_part(fold, fingerprint), _notes(fold))
        for k, fold in enumerate(folds, start=1)
    ]


def _notes(fold: Fold) -> dict[str, Any]:
    """Return facts about the data and the software for readers of the results."""
    return {
        "features": fold.train.feature_names,
        "varying": varying_columns(fold.train),
        "n_queries": _by_part(fold, lambda data: data.n_queries),
        "n_docs": _by_part(fold, lambda data: data.n_docs),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}},
    }


def _by_part(fold: Fold, value: Any) -> dict[str, Any]:
    return {part: value(getattr(fold, part)) for part in ("train", "valid", "test")}


@dataclass(frozen=True, eq=False)
class MethodPlan:
    """A method with its grid and seeds; ``select`` is the selection metric on validation data."""

    name: str
    method: Method
    grid: Sequence[GridPoint]
    select: str
    n_seeds: int = 1

    @property
    def seeds(self) -> tuple[int | None, ...]:
        """One seed per run; (None,) for a method without randomness."""
        first = self.method.seed
        return (None,) if first is None else tuple(range(first, first + self.n_seeds))

    @property
    def identity(self) -> dict[str, Any]:
        """Settings that all fits in a results file have in common, besides the data."""
        return {
            "method": self.name, "grid": self.grid, "select": self.select, "seeds": self.seeds,
            "metrics": ALL_METRICS,
            "parameters": {**self.method.parameters, **PREPARATION_OFF},
        }  # fmt: skip


def run_fold(context: FoldContext, plan: MethodPlan) -> None:
    """For each seed: fit the grid points not yet in the file, select one, and evaluate it on test."""
    with context.journal(plan.name, plan.identity, plan.method.title) as journal:
        for seed in plan.seeds:
            fitted = _fit_missing(journal, context, plan, seed)
            point = _choose(journal, plan.select, seed)
            if not any(row["random_state"] == seed for row in journal.of_kind("tested")):
                fit = _fits_of(journal, seed)[point]
                scores = scores_on_test(context, plan, fit, fitted.get(point))
                measured = Evaluator(context.fold.test, context.profile).evaluate(scores, ALL_METRICS)
                row = {"kind": "tested", "point": point, "random_state": seed}
                journal.append({**row, "query_ids": measured.query_ids, "test": measured.per_query})


def run_studies(context: FoldContext, studies: Mapping[str, Study]) -> None:
    """Run the studies that are not yet in the fold's file."""
    with context.journal(STUDIES_FOLDER, {}, "Studies") as journal:
        done = {row["kind"] for row in journal.rows}
        for name, study in studies.items():
            start = time.perf_counter()
            if name not in done and (measured := study(context)) is not None:
                journal.append({"kind": name, "seconds_in_all": time.perf_counter() - start, **measured})


def _fits_of(journal: Journal, seed: int | None) -> dict[int, Entry]:
    """Return the rows of the fits with this seed, by grid point."""
    return {row["point"]: row for row in journal.of_kind("fit") if row["random_state"] == seed}


def _fit_missing(
    journal: Journal, context: FoldContext, plan: MethodPlan, seed: int | None
) -> dict[int, Ranker]:
    """Fit the missing grid points and write their rows; return the rankers that are not linear.

    Only linear rankers can be restored from their row.
    """
    done = _fits_of(journal, seed)
    todo = [point for point in range(len(plan.grid)) if point not in done]
    start = dense_weights(done[max(done)]["weights"], context.names) if done else None
    fitted = {}
    for ranker, row in fit_points(context, plan, todo, seed, start):
        journal.append(row)
        if not ranker.can("linear"):
            fitted[row["point"]] = ranker
    return fitted


def _certificate(ranker: Ranker) -> dict[str, float]:
    """Return the numbers in the certificate of a linear ranker."""
    certificate = ranker.to_model().certificate if ranker.can("linear") else {}
    return {name: value for name, value in certificate.items() if isinstance(value, float)}


def _choose(journal: Journal, select: str, seed: int | None) -> int:
    """Return the best point on validation data, after writing it: the choice precedes the test evaluation."""
    for row in journal.of_kind("chosen"):
        if row["random_state"] == seed:
            return int(row["point"])
    best = best_on_valid(journal.of_kind("fit"), select, seed)
    row = {"kind": "chosen", "select": select, "random_state": seed, "point": best["point"]}
    journal.append({**row, "validation": best["validation"][select]})
    return int(best["point"])


def scores_on_test(
    context: FoldContext, plan: MethodPlan, fit: Entry, ranker: Ranker | None = None
) -> FloatArray:
    """Score the test part with the weights in the row of a fit, or with its ranker if it is not linear.

    A ranker fitted by another process is not available: it is fitted again, with the same result.
    """
    if fit["weights"] is not None:
        coef = dense_weights(fit["weights"], context.names)
        used = np.flatnonzero(coef)
        return linear_scores(context.fold.test.X, used, coef[used])
    fitted = ranker or next(fit_points(context, plan, [fit["point"]], fit["random_state"]))[0]
    return fitted.predict(context.fold.test)


def fit_points(
    context: FoldContext,
    plan: MethodPlan,
    points: Sequence[int],
    seed: int | None,
    start: FloatArray | None = None,
) -> Iterator[tuple[Ranker, Entry]]:
    """Fit the grid points in order and yield each ranker with its row.

    A method with ``warm`` starts from the previous weights. A selector reuses the features of the previous
    one if it would choose the same; its seconds include the time of that choice. A ranker that uses
    validation data selects among its own candidates by the plan's metric. The validation values of a linear
    model without features are NO_FEATURES.
    """
    fold, method, seeded = context.fold, plan.method, {} if seed is None else {"random_state": seed}
    evaluator, metrics = Evaluator(fold.valid, context.profile), (plan.select, *VALIDATION_METRICS)
    previous: Ranker | None = None
    for point in points:
        ranker = method.make(**plan.grid[point]).set_params(**PREPARATION_OFF, **seeded)
        start_time = time.perf_counter()
        if selector := _reusable_selector(ranker, previous):
            with _ignore_expected_warnings():
                ranker, start_time = selector.refit(fold.train), start_time - selector.choice_seconds_
        else:
            _fit_ranker(ranker, fold, plan.select, context.profile, start if method.warm else None)
        seconds, previous = time.perf_counter() - start_time, ranker
        linear = ranker.can("linear")
        weights = ranker.coef_ if linear else np.full(fold.train.n_features, np.nan)
        values = evaluator.evaluate(ranker.predict(fold.valid), metrics).mean
        if not np.any(weights):
            values = dict.fromkeys(values, NO_FEATURES)
        yield ranker, {
            "kind": "fit", "point": point, "random_state": seed, "parameters": plan.grid[point],
            "validation": values, "seconds": seconds,
            "weights": nonzero_weights(weights, context.names) if linear else None,
            "certificate": _certificate(ranker),
        }  # fmt: skip
        start = weights


def _reusable_selector(ranker: Ranker, previous: Ranker | None) -> FeatureSelector | None:
    """Return the previous selector with the parameters of this one, if both choose features the same way."""
    if not (isinstance(ranker, FeatureSelector) and isinstance(previous, FeatureSelector)):
        return None
    if not ranker.chooses_like(previous):
        return None
    selector = copy(previous)
    selector.set_params(**{name: getattr(ranker, name) for name in ranker.refit_parameters})
    return selector


@contextmanager
def _ignore_expected_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the certificate of each fit has the gap
        warnings.simplefilter("ignore", ScaleWarning)  # bench has already warned
        yield


def _fit_ranker(
    ranker: Ranker, fold: Fold, select: str, profile: str | Profile, start: FloatArray | None
) -> None:
    with _ignore_expected_warnings():
        if ranker.can("valid"):
            ranker.set_params(metric=select, profile=profile).fit(fold.train, valid=fold.valid)
        else:
            if start is not None:
                start_from(ranker, start, fold.train.feature_names)
            ranker.fit(fold.train)
