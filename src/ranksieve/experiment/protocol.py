"""LETOR's protocol: fit every grid point on train, choose on vali, report test, average over folds."""

from __future__ import annotations

import inspect
import itertools
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning

from ranksieve._parallel import use_threads
from ranksieve._types import BoolArray, FloatArray
from ranksieve.data.describe import varying_columns
from ranksieve.estimators.base import LinearRanker, Ranker
from ranksieve.formats.folds import Fold
from ranksieve.metrics import Evaluation, Evaluator, Profile

PAPER_METRICS = ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map")
NO_FEATURES = -1.0  # a model without features ranks by input order alone: the last choice

Point = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class FoldResult:
    """The chosen model of one fold and what it reached."""

    parameters: Mapping[str, Any]
    validation: float
    test: Evaluation
    coef: FloatArray
    varying: BoolArray
    fit_seconds: float
    grid_seconds: float

    @property
    def n_selected(self) -> float:
        """Nonzero weights; NaN for a ranker that is not linear."""
        return len(self.coef) * self.sparsity

    @property
    def sparsity(self) -> float:
        """Nonzero weights / features; NaN for a ranker that is not linear."""
        return _share(self.coef)

    @property
    def varying_sparsity(self) -> float:
        """Nonzero weights / features, both without the features that are constant within every query."""
        return _share(self.coef[self.varying])


@dataclass(frozen=True, eq=False)
class ProtocolResult:
    """All folds of one method on one data set."""

    folds: tuple[FoldResult, ...]

    def mean(self, metric: str) -> float:
        """Mean over folds of the mean over queries."""
        return float(np.mean([fold.test.mean[metric] for fold in self.folds]))

    def pooled(self, metric: str) -> FloatArray:
        """Test values of all folds' queries."""
        return np.concatenate([fold.test.per_query[metric] for fold in self.folds])

    def to_row(self) -> dict[str, float]:
        """Metrics, sparsity and time, averaged over folds."""
        means = {metric: self.mean(metric) for metric in self.folds[0].test.mean}
        shares = ("sparsity", "varying_sparsity", "n_selected")
        of = {name: [getattr(fold, name) for fold in self.folds] for name in shares}
        times = {name: sum(getattr(f, name) for f in self.folds) for name in ("fit_seconds", "grid_seconds")}
        return {**means, **{name: float(np.mean(values)) for name, values in of.items()}, **times}


@dataclass(frozen=True, eq=False)
class Trial:
    """One fitted grid point: its validation value is NO_FEATURES for a linear model without features."""

    point: int
    parameters: Mapping[str, Any]
    ranker: Ranker
    validation: float
    seconds: float


def parameter_grid(**values: Sequence[Any]) -> list[dict[str, Any]]:
    """All combinations, the last name varying fastest."""
    return [dict(zip(values, point, strict=True)) for point in itertools.product(*values.values())]


def five_fold(
    make: Callable[..., Ranker],
    grid: Sequence[Point],
    folds: Sequence[Fold],
    *,
    select: str = "ndcg@10",
    metrics: Sequence[str] = PAPER_METRICS,
    profile: str | Profile = "letor",
    n_jobs: int = 1,
) -> ProtocolResult:
    """Run the protocol; ``make(**point)`` gives a grid point's estimator. Ties go to the earlier point.

    With ``n_jobs`` > 1 the folds run in processes of their own, one thread each, with the same results.
    """
    if not grid:
        raise ValueError("the grid is empty: give at least one set of parameters")
    if n_jobs == 1:
        return ProtocolResult(tuple(_fold(make, grid, fold, select, metrics, profile) for fold in folds))
    jobs = (delayed(_fold_alone)(make, grid, fold, select, metrics, profile) for fold in folds)
    return ProtocolResult(tuple(Parallel(n_jobs=n_jobs)(jobs)))


def trials(
    make: Callable[..., Ranker],
    points: Sequence[tuple[int, Point]],
    fold: Fold,
    select: str,
    profile: str | Profile,
    start: FloatArray | None = None,
    *,
    warm: bool = False,
) -> Iterator[Trial]:
    """Fit the points one after another; ``warm`` starts each from the weights before it, at first ``start``.

    A ranker whose ``fit`` takes ``valid`` chooses among its own candidates by ``select`` on vali.
    """
    evaluator = Evaluator(fold.valid, profile)
    for number, point in points:
        ranker = make(**point)
        began = time.perf_counter()
        with warnings.catch_warnings():  # the gap of each fit is in its certificate
            warnings.simplefilter("ignore", ConvergenceWarning)
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
    fit: Any = ranker.fit
    if "valid" in inspect.signature(fit).parameters:
        ranker.set_params(metric=select, profile=profile)
        fit(fold.train, valid=fold.valid)
        return
    if start is not None:
        ranker.set_params(warm_start=True)
        ranker.coef_ = start
    fit(fold.train)


def _fold_alone(*arguments: Any) -> FoldResult:
    with use_threads(1):
        return _fold(*arguments)


def _fold(
    make: Callable[..., Ranker],
    grid: Sequence[Point],
    fold: Fold,
    select: str,
    metrics: Sequence[str],
    profile: str | Profile,
) -> FoldResult:
    start = time.perf_counter()
    best = max(trials(make, list(enumerate(grid)), fold, select, profile), key=lambda t: t.validation)
    grid_seconds = time.perf_counter() - start
    test = Evaluator(fold.test, profile).evaluate(best.ranker.predict(fold.test), metrics)
    weights = weights_of(best.ranker, fold.train.n_features)
    varying = varying_columns(fold.train)
    return FoldResult(best.parameters, best.validation, test, weights, varying, best.seconds, grid_seconds)


def _share(coef: FloatArray) -> float:
    return float("nan") if np.isnan(coef).any() else float(np.mean(coef != 0))
