"""One method on one fold, written down fit by fit, so that a killed run goes on where it stopped."""

from __future__ import annotations

import platform
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ranksieve._types import FloatArray
from ranksieve._util.json_values import nonzero_weights
from ranksieve.data.dataset import fingerprint
from ranksieve.data.describe import varying_columns
from ranksieve.estimators.base import LinearRanker, Ranker
from ranksieve.experiment.journal import Entry, Journal, check_begun, only_writer
from ranksieve.experiment.results import PAPER_METRICS, dense
from ranksieve.formats.folds import Fold
from ranksieve.methods import Method
from ranksieve.metrics import Evaluator, Profile
from ranksieve.model import linear_scores, linear_scores_of_models
from ranksieve.preparation.scales import ScaleWarning

CUTOFFS = range(1, 11)
ALL_METRICS = (*(f"ndcg@{k}" for k in CUTOFFS), *(f"p@{k}" for k in CUTOFFS), "map", "mrr", "err@10")
CURVE_METRICS = ("ndcg@10", "map")
NO_FEATURES = -1.0  # a model without features ranks by input order alone: the last choice
UNPREPARED = {
    "normalise": "none",
    "missing": "error",
}  # parameters of rankers: the folds are prepared already
LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")

GridPoint = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Trial:
    """One fitted grid point: its validation value is NO_FEATURES for a linear model without features."""

    point: int
    parameters: Mapping[str, Any]
    ranker: Ranker
    validation: float
    seconds: float


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
        with only_writer(self._path(what)):
            yield Journal(self._path(what), {**self._shared, **identity}, {**self.notes, "title": title})

    def check(self, what: str, identity: Mapping[str, Any]) -> None:
        """Refuse a file of this work that was begun with other data or options."""
        check_begun(self._path(what), {**self._shared, **identity})

    def _path(self, what: str) -> Path:
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
    return {part: value(getattr(fold, part)) for part in ("train", "vali", "test")}


def identity_of(name: str, method: Method, grid: Sequence[GridPoint], select: str) -> dict[str, Any]:
    """What all fits of one file share beside the data."""
    return {
        "method": name, "grid": grid, "select": select, "metrics": ALL_METRICS,
        "parameters": {**method.parameters, **UNPREPARED},
    }  # fmt: skip


def run_fold(place: Place, name: str, method: Method, grid: Sequence[GridPoint], select: str) -> None:
    """Fit the grid points that are not in the file yet, then choose and test."""
    with place.journal(name, identity_of(name, method, grid, select), method.title) as journal:
        if not journal.of_kind("chosen"):
            fitted = _fit_missing(journal, place, method, grid, select)
            _choose(journal, place, method, grid, select, fitted)
        if len(grid) > 1 and method.linear and not method.uses_valid:
            _rechoose(journal, place, select)


def _fit_missing(
    journal: Journal, place: Place, method: Method, grid: Sequence[GridPoint], select: str
) -> dict[int, Ranker]:
    """Fit and write down; gives those rankers of this process that have no weights to write."""
    done = {row["point"]: row for row in journal.of_kind("fit")}
    todo = [(k, point) for k, point in enumerate(grid) if k not in done]
    start = dense(done[max(done)]["weights"], place.names) if done else None
    fitted = {}
    for trial in trials(method.make, todo, place.fold, select, place.profile, start, warm=method.warm):
        journal.append(_fit_row(trial, place.names))
        if not isinstance(trial.ranker, LinearRanker):
            fitted[trial.point] = trial.ranker
    return fitted


def _fit_row(trial: Trial, names: Sequence[str]) -> Entry:
    row: Entry = {
        "kind": "fit", "point": trial.point, "parameters": trial.parameters, "validation": trial.validation,
        "seconds": trial.seconds, "weights": None, "certificate": {},
    }  # fmt: skip
    if isinstance(trial.ranker, LinearRanker):
        row["weights"] = nonzero_weights(trial.ranker.coef_, names)
        proof = trial.ranker.to_model().certificate
        row["certificate"] = {name: value for name, value in proof.items() if isinstance(value, float)}
    return row


def _choose(
    journal: Journal, place: Place, method: Method, grid: Sequence[GridPoint], select: str,
    fitted: Mapping[int, Ranker],
) -> None:  # fmt: skip
    """The best on validation, the earlier of equals, with its test values query by query."""
    fits = sorted(journal.of_kind("fit"), key=lambda row: row["point"])
    best = max(fits, key=lambda row: row["validation"])
    point, test = best["point"], place.fold.test
    evaluator = Evaluator(test, place.profile)
    if best["weights"] is None:  # the file does not hold such a ranker: fit it once more, to the same
        again = trials(method.make, [(point, grid[point])], place.fold, select, place.profile)
        ranker = fitted[point] if point in fitted else next(again).ranker
        scores, curve = ranker.predict(test), None
    else:
        coef = dense(best["weights"], place.names)
        used = np.flatnonzero(coef)
        scores, curve = linear_scores(test.X, used, coef[used]), truncated(coef, place.fold, evaluator)
    measured = evaluator.evaluate(scores, ALL_METRICS)
    chosen = {key: value for key, value in best.items() if key not in ("kind", "seconds")}
    journal.append({
        "kind": "chosen", **chosen, "query_ids": measured.query_ids, "test": measured.per_query,
        "truncated": curve, "fit_seconds": best["seconds"],
        "grid_seconds": sum(row["seconds"] for row in fits),
    })  # fmt: skip


def _rechoose(journal: Journal, place: Place, select: str) -> None:
    """What the other usual metrics would have chosen, as some papers choose all methods by one metric."""
    done = {row["select"] for row in journal.of_kind("rechosen")} | {select}
    fits = sorted(journal.of_kind("fit"), key=lambda row: row["point"])
    coefs = np.array([dense(row["weights"], place.names) for row in fits])
    scores = linear_scores_of_models(place.fold.valid.X, coefs)
    for metric in (metric for metric in CURVE_METRICS if metric not in done):
        values = Evaluator(place.fold.valid, place.profile).evaluate_many(scores, metric).mean(axis=1)
        best = int(np.argmax(np.where(coefs.any(axis=1), values, NO_FEATURES)))
        used = np.flatnonzero(coefs[best])
        found = linear_scores(place.fold.test.X, used, coefs[best][used])
        measured = Evaluator(place.fold.test, place.profile).evaluate(found, PAPER_METRICS)
        journal.append({
            "kind": "rechosen", "select": metric, "validation": values[best],
            **{key: fits[best][key] for key in ("point", "parameters", "weights")},
            "query_ids": measured.query_ids, "test": measured.per_query,
        })  # fmt: skip


def truncated(coef: FloatArray, fold: Fold, evaluator: Evaluator) -> dict[str, list[float]]:
    """Test metrics of the model cut to its k largest weights, k = 1, 2, … (FSMRank's protocol)."""
    place = np.argsort(np.argsort(-np.abs(coef), kind="stable"))  # 0: the largest weight
    coefs = np.where(place <= np.arange(np.count_nonzero(coef))[:, None], coef, 0.0)
    scores = linear_scores_of_models(fold.test.X, coefs)
    return {metric: evaluator.evaluate_many(scores, metric).mean(axis=1).tolist() for metric in CURVE_METRICS}


def trials(
    make: Callable[..., Ranker],
    points: Sequence[tuple[int, GridPoint]],
    fold: Fold,
    select: str,
    profile: str | Profile,
    start: FloatArray | None = None,
    *,
    warm: bool = False,
) -> Iterator[Trial]:
    """Fit the points one after another; ``warm`` starts each from the weights before it, at first ``start``.

    A ranker that uses validation data chooses among its own candidates by ``select`` on vali.
    """
    evaluator = Evaluator(fold.valid, profile)
    for number, point in points:
        ranker = make(**point).set_params(**UNPREPARED)
        began = time.perf_counter()
        _learn(ranker, fold, select, profile, start if warm else None)
        seconds = time.perf_counter() - began
        value = evaluator.evaluate(ranker.predict(fold.valid), select).mean[select]
        weights = weights_of(ranker, fold.train.n_features)
        yield Trial(number, point, ranker, value if np.any(weights) else NO_FEATURES, seconds)
        start = weights


def weights_of(ranker: Ranker, n_features: int) -> FloatArray:
    """The weights of a linear ranker; NaN for one that has none."""
    return ranker.coef_ if isinstance(ranker, LinearRanker) else np.full(n_features, np.nan)


def _learn(ranker: Ranker, fold: Fold, select: str, profile: str | Profile, start: FloatArray | None) -> None:
    with warnings.catch_warnings():  # the gap of each fit is in its certificate
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", ScaleWarning)  # bench says it once
        if ranker.uses_valid:
            ranker.set_params(metric=select, profile=profile).fit(fold.train, valid=fold.valid)
        else:
            if start is not None:
                ranker.set_params(warm_start=True).coef_ = start
            ranker.fit(fold.train)
