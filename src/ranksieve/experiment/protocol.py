"""LETOR's protocol: fit every grid point on train, choose on vali, report test, average over folds."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from ranksieve._parallel import use_threads
from ranksieve._types import BoolArray, FloatArray
from ranksieve.data.describe import varying_columns
from ranksieve.data.folds import Fold
from ranksieve.estimators.base import LinearRanker, Ranker
from ranksieve.metrics import Evaluation, Evaluator, Profile

PAPER_METRICS = ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map")


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
        of = {name: [getattr(fold, name) for fold in self.folds] for name in ("sparsity", "varying_sparsity")}
        times = {name: sum(getattr(f, name) for f in self.folds) for name in ("fit_seconds", "grid_seconds")}
        return {**means, **{name: float(np.mean(values)) for name, values in of.items()}, **times}


def parameter_grid(**values: Sequence[Any]) -> list[dict[str, Any]]:
    """All combinations, the last name varying fastest."""
    return [dict(zip(values, point, strict=True)) for point in itertools.product(*values.values())]


def five_fold(
    make: Callable[..., Ranker],
    grid: Sequence[Mapping[str, Any]],
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


def _fold_alone(*arguments: Any) -> FoldResult:
    with use_threads(1):
        return _fold(*arguments)


def _fold(
    make: Callable[..., Ranker],
    grid: Sequence[Mapping[str, Any]],
    fold: Fold,
    select: str,
    metrics: Sequence[str],
    profile: str | Profile,
) -> FoldResult:
    validation = Evaluator(fold.vali, profile)
    best: tuple[float, Ranker, Mapping[str, Any], float] = (-np.inf, make(**grid[0]), grid[0], 0.0)
    start = time.perf_counter()
    for point in grid:
        began = time.perf_counter()
        ranker = make(**point).fit(fold.train)
        seconds = time.perf_counter() - began
        value = validation.evaluate(ranker.predict(fold.vali), select).mean[select]
        if not np.any(_weights(ranker, fold.train.n_features)):
            value = -1.0  # a model without features ranks by input order alone: the last choice
        if value > best[0]:
            best = (value, ranker, point, seconds)
    grid_seconds = time.perf_counter() - start
    value, ranker, point, seconds = best
    test = Evaluator(fold.test, profile).evaluate(ranker.predict(fold.test), metrics)
    weights = _weights(ranker, fold.train.n_features)
    return FoldResult(point, value, test, weights, varying_columns(fold.train), seconds, grid_seconds)


def _weights(ranker: Ranker, n_features: int) -> FloatArray:
    """The weights of a linear ranker; NaN for one that has none."""
    return ranker.coef_ if isinstance(ranker, LinearRanker) else np.full(n_features, np.nan)


def _share(coef: FloatArray) -> float:
    return float("nan") if np.isnan(coef).any() else float(np.mean(coef != 0))
