"""One method on one fold, written down fit by fit, so that a killed run goes on where it stopped."""

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
from ranksieve.experiment.journal import Entry, Journal, check_begun, only_writer
from ranksieve.experiment.results import STUDIES_FOLDER, best_on_valid, dense
from ranksieve.io.folds import Fold
from ranksieve.methods import Method
from ranksieve.metrics import Evaluator, Profile
from ranksieve.model.linear import linear_scores, nonzero_weights
from ranksieve.prepare.scaling import ScaleWarning
from ranksieve.rankers.base import Ranker, started_from

CUTOFFS = range(1, 11)
ALL_METRICS = (*(f"ndcg@{k}" for k in CUTOFFS), *(f"p@{k}" for k in CUTOFFS), "map", "mrr", "err@10")
VALIDATION_METRICS = ("ndcg@10", "map")  # every fit records these, beside the metric that chooses
NO_FEATURES = -1.0  # a model without features ranks by input order alone: the last choice
UNPREPARED = {"normalise": "none", "missing": "error"}  # of rankers, because the folds are prepared
LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")

GridPoint = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Place:
    """One fold of a data set, where its results go, and what they say of the data."""

    folder: Path
    data_set: str
    number: int
    n_folds: int
    profile: str
    fold: Fold
    fingerprints: Mapping[str, str]
    notes: Mapping[str, Any]

    @contextmanager
    def journal(self, what: str, identity: Mapping[str, Any], title: str) -> Iterator[Journal]:
        """The file of one piece of work on this fold, for one process at a time."""
        with only_writer(self.path(what)):
            yield Journal(self.path(what), {**self._shared, **identity}, {**self.notes, "title": title})

    def check(self, what: str, identity: Mapping[str, Any]) -> None:
        """Refuse a file of this work that is elsewhere, or was begun with other data or options."""
        check_begun(self.path(what), {**self._shared, **identity}, self.folder)

    def check_measurable(self, metrics: Collection[str]) -> None:
        """Refuse labels that a metric cannot measure, before anything is written."""
        for data in (self.fold.valid, self.fold.test):
            Evaluator(data, self.profile).evaluate(np.zeros(data.n_docs), (*ALL_METRICS, *metrics))

    def path(self, what: str) -> Path:
        return self.folder / self.data_set / what / f"Fold{self.number}.jsonl"

    @property
    def _shared(self) -> dict[str, Any]:
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


Study = Callable[[Place], Mapping[str, Any] | None]
"""Measures something on a fold apart from the methods: plain data, or None if it skips this fold."""


def make_places(folder: Path, data_set: str, folds: Sequence[Fold], profile: str) -> list[Place]:
    """The folds of a data set, ready to be worked on."""
    return [
        Place(folder, data_set, k, len(folds), profile, fold, _by_part(fold, fingerprint), _notes(fold))
        for k, fold in enumerate(folds, start=1)
    ]


def _notes(fold: Fold) -> dict[str, Any]:
    """What a reader of the results wants to know of the data and of the software."""
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
    """A method as every fold runs it; ``select`` is the metric that chooses on valid."""

    name: str
    method: Method
    grid: Sequence[GridPoint]
    select: str
    n_seeds: int = 1

    @property
    def seeds(self) -> tuple[int | None, ...]:
        """What the method is run with, each time for itself; None for a method that draws nothing."""
        first = self.method.seed
        return (None,) if first is None else tuple(range(first, first + self.n_seeds))

    @property
    def identity(self) -> dict[str, Any]:
        """What all fits of one file share beside the data."""
        return {
            "method": self.name, "grid": self.grid, "select": self.select, "seeds": self.seeds,
            "metrics": ALL_METRICS,
            "parameters": {**self.method.parameters, **UNPREPARED},
        }  # fmt: skip


def run_fold(place: Place, plan: MethodPlan) -> None:
    """With each seed fit the points that are not in the file yet, choose one, and test it."""
    with place.journal(plan.name, plan.identity, plan.method.title) as journal:
        for seed in plan.seeds:
            fitted = _fit_missing(journal, place, plan, seed)
            point = _choose(journal, plan.select, seed)
            if not any(row["random_state"] == seed for row in journal.of_kind("tested")):
                fit = _fits_of(journal, seed)[point]
                scores = scores_on_test(place, plan, fit, fitted.get(point))
                measured = Evaluator(place.fold.test, place.profile).evaluate(scores, ALL_METRICS)
                row = {"kind": "tested", "point": point, "random_state": seed}
                journal.append({**row, "query_ids": measured.query_ids, "test": measured.per_query})


def run_studies(place: Place, studies: Mapping[str, Study]) -> None:
    """Run the studies that the fold's file does not hold yet."""
    with place.journal(STUDIES_FOLDER, {}, "Studies") as journal:
        done = {row["kind"] for row in journal.rows}
        for name, study in studies.items():
            began = time.perf_counter()
            if name not in done and (measured := study(place)) is not None:
                journal.append({"kind": name, "seconds_in_all": time.perf_counter() - began, **measured})


def _fits_of(journal: Journal, seed: int | None) -> dict[int, Entry]:
    """The rows of the fits with a seed, by grid point."""
    return {row["point"]: row for row in journal.of_kind("fit") if row["random_state"] == seed}


def _fit_missing(journal: Journal, place: Place, plan: MethodPlan, seed: int | None) -> dict[int, Ranker]:
    """Fit and write down; gives those rankers of this process that have no weights to write."""
    done = _fits_of(journal, seed)
    todo = [point for point in range(len(plan.grid)) if point not in done]
    start = dense(done[max(done)]["weights"], place.names) if done else None
    fitted = {}
    for ranker, row in fits(place, plan, todo, seed, start):
        journal.append(row)
        if not ranker.can("linear"):
            fitted[row["point"]] = ranker
    return fitted


def _certificate(ranker: Ranker) -> dict[str, float]:
    """The numbers that a linear ranker proves."""
    proof = ranker.to_model().certificate if ranker.can("linear") else {}
    return {name: value for name, value in proof.items() if isinstance(value, float)}


def _choose(journal: Journal, select: str, seed: int | None) -> int:
    """The best point on valid; it is on the disk before anything of it is measured on test."""
    for row in journal.of_kind("chosen"):
        if row["random_state"] == seed:
            return int(row["point"])
    best = best_on_valid(journal.of_kind("fit"), select, seed)
    row = {"kind": "chosen", "select": select, "random_state": seed, "point": best["point"]}
    journal.append({**row, "validation": best["validation"][select]})
    return int(best["point"])


def scores_on_test(place: Place, plan: MethodPlan, fit: Entry, ranker: Ranker | None = None) -> FloatArray:
    """Scores of the test part by the weights in the row of a fit, or by its ranker, which has no weights.

    Without the ranker, because another process fitted it, it is fitted once more, to the same.
    """
    if fit["weights"] is not None:
        coef = dense(fit["weights"], place.names)
        used = np.flatnonzero(coef)
        return linear_scores(place.fold.test.X, used, coef[used])
    again = ranker or next(fits(place, plan, [fit["point"]], fit["random_state"]))[0]
    return again.predict(place.fold.test)


def fits(
    place: Place, plan: MethodPlan, points: Sequence[int], seed: int | None, start: FloatArray | None = None
) -> Iterator[tuple[Ranker, Entry]]:
    """Fit the points one after another: each ranker and its row; a warm method starts from the last weights.

    A selector does not choose again what the one before it chose; its seconds are those of choice and base.
    A ranker that uses validation data chooses among its own candidates by the plan's metric on valid. The
    validation values of a linear model without features are NO_FEATURES.
    """
    fold, method, drawn = place.fold, plan.method, {} if seed is None else {"random_state": seed}
    evaluator, metrics = Evaluator(fold.valid, place.profile), (plan.select, *VALIDATION_METRICS)
    earlier: Ranker | None = None
    for point in points:
        ranker = method.make(**plan.grid[point]).set_params(**UNPREPARED, **drawn)
        began = time.perf_counter()
        if chosen := _same_choice(ranker, earlier):
            with _quietly():
                ranker, began = chosen.refit(fold.train), began - chosen.choice_seconds_
        else:
            _learn(ranker, fold, plan.select, place.profile, start if method.warm else None)
        seconds, earlier = time.perf_counter() - began, ranker
        linear = ranker.can("linear")
        weights = ranker.coef_ if linear else np.full(fold.train.n_features, np.nan)
        values = evaluator.evaluate(ranker.predict(fold.valid), metrics).mean
        if not np.any(weights):
            values = dict.fromkeys(values, NO_FEATURES)
        yield ranker, {
            "kind": "fit", "point": point, "random_state": seed, "parameters": plan.grid[point],
            "validation": values, "seconds": seconds,
            "weights": nonzero_weights(weights, place.names) if linear else None,
            "certificate": _certificate(ranker),
        }  # fmt: skip
        start = weights


def _same_choice(ranker: Ranker, earlier: Ranker | None) -> FeatureSelector | None:
    """The earlier selector with the parameters of this one, if both learn the same of the features."""
    if not (isinstance(ranker, FeatureSelector) and isinstance(earlier, FeatureSelector)):
        return None
    if not ranker.chooses_like(earlier):
        return None
    again = copy(earlier)
    again.set_params(**{name: getattr(ranker, name) for name in ranker.decided_last})
    return again


@contextmanager
def _quietly() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the gap of each fit is in its certificate
        warnings.simplefilter("ignore", ScaleWarning)  # bench says it once
        yield


def _learn(ranker: Ranker, fold: Fold, select: str, profile: str | Profile, start: FloatArray | None) -> None:
    with _quietly():
        if ranker.can("valid"):
            ranker.set_params(metric=select, profile=profile).fit(fold.train, valid=fold.valid)
        else:
            if start is not None:
                started_from(ranker, start, fold.train.feature_names)
            ranker.fit(fold.train)
