"""Families of candidates, each from few features to many, with their versions without each fold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np

from ranksieve._parallel import map_items
from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve._util.short_repr import ShortRepr
from ranksieve.choice.folds import Folds
from ranksieve.choice.forward import LEAST_DEPTH, MAX_ITER, ForwardSearch, SetQuadratic, fit_set
from ranksieve.choice.held_out import HeldOut, Validation
from ranksieve.data.budget import Budget
from ranksieve.data.steps import StepColumns, features_in_use
from ranksieve.objective import LocalObjective, Objective, Point
from ranksieve.path import Progress, path_grid, solve_path, warn_of_gaps
from ranksieve.penalties import L1, ElasticNet, SlopedPenalty
from ranksieve.solvers import Problem, ProxNewton, Result, Trace
from ranksieve.subset import Effort, SubsetResult, SubsetSearch

T = TypeVar("T")

HALF_SLOPE_SHARE = 0.1  # ε: share of the largest weight at which the slope of the log penalty has halved
PATH = "l1"  # the family that others start from
SIZE_FAMILIES = ("forward", "subset")  # families with one model for each number of features
RIDGE_FAMILIES = (*SIZE_FAMILIES, "refitted")  # families without ℓ1
REFIT_RIDGE_SHARE = 1e-3  # share of α: keeps a refit bounded when its features separate every pair
FEW_STEPS = 100  # of curves; fits with as many take little time
KEPT_RATIO = 1e-2  # of the smallest to the largest α of a path over kept features
SUBSET_WORK = 5_000_000  # nodes times documents in the search for one subset
SUBSET_NODES = (20, 500)  # least and largest number of nodes
FOLD_TOL = 1e-2  # relative duality gap of fits without a fold, which only measure held-out queries
SIZE_WINDOW = 3  # sizes of a forward selection over which held-out values are averaged
MAX_FORWARD_FEATURES = LEAST_DEPTH - SIZE_WINDOW // 2


@dataclass(frozen=True, eq=False, repr=False)
class Candidate(ShortRepr):
    """A model fitted to the training data: weights, penalty, objective and duality gap.

    ``fold_coefs`` (folds × features) are the weights without each fold, None without folds; ``subset`` is the
    proof about its set of features, if any.
    """

    coef: FloatArray
    penalty: Any
    objective: float
    gap: float
    fold_coefs: FloatArray | None = None
    n_iter: int = 1
    seconds: float = 0.0
    subset: SubsetResult | None = None

    @classmethod
    def of(cls, result: Result, penalty: SlopedPenalty, fold_coefs: FloatArray | None = None) -> Candidate:
        seconds, n_iter = float(result.trace.seconds[-1]), int(result.n_iter)
        return cls(result.w, penalty, float(result.objective), float(result.gap), fold_coefs, n_iter, seconds)

    @property
    def strength(self) -> float:
        """α of the ℓ1 penalty, or the ridge of a penalty without ℓ1; NaN without a penalty."""
        return float(getattr(self.penalty, "alpha", np.nan))


@dataclass(frozen=True, eq=False, repr=False)
class Family(ShortRepr):
    """Candidates of one kind, by descending strength or by ascending number of features.

    Held-out values are averaged over ``window`` neighbouring points, or over those that ``neighbour_mask``
    marks (points × points). In a family that was ``cut_off`` before its end, the last ``window // 2`` points,
    or the last ``n_incomplete``, lack neighbours. ``validation`` is the held-out metric of the candidates.
    ``columns`` are the step columns of the weights; None: each weight is that of one feature.
    """

    label: str
    candidates: Sequence[Candidate]
    window: int = 1
    cut_off: bool = False
    neighbour_mask: BoolArray | None = None
    n_incomplete: int | None = None
    validation: Validation | None = None
    columns: StepColumns | None = None

    def __len__(self) -> int:
        return len(self.candidates)

    @cached_property
    def coefs(self) -> FloatArray:
        """Weights, one row per candidate."""
        return np.array([one.coef for one in self.candidates])

    @cached_property
    def fold_coefs(self) -> FloatArray | None:
        """Weights without each fold (candidates × folds × features); None without folds."""
        versions = [one.fold_coefs for one in self.candidates if one.fold_coefs is not None]
        return np.array(versions) if versions else None

    @property
    def strengths(self) -> FloatArray:
        return np.array([one.strength for one in self.candidates])

    @property
    def objectives(self) -> FloatArray:
        return np.array([one.objective for one in self.candidates])

    @property
    def gaps(self) -> FloatArray:
        return np.array([one.gap for one in self.candidates])

    @property
    def n_nonzero(self) -> IntArray:
        """Number of features of each candidate."""
        return np.asarray(np.count_nonzero(features_in_use(self.coefs, self.columns), axis=1))

    @property
    def trace(self) -> Trace:
        """Objective, gap, features and seconds since the start, one entry per candidate."""
        seconds = np.cumsum([one.seconds for one in self.candidates])
        columns = (self.objectives, self.gaps, self.n_nonzero, seconds)
        return Trace(*(column.tolist() for column in columns))

    @property
    def neighbours(self) -> BoolArray:
        """The points over which each point is averaged, itself included (points × points).

        A point without features counts as the worst ranking, so it is not a neighbour of any other point.
        """
        if self.neighbour_mask is not None:
            return self.neighbour_mask
        index, used = np.arange(len(self)), self.n_nonzero > 0
        within = np.abs(np.subtract.outer(index, index)) <= self.window // 2
        return np.asarray(within & np.logical_and.outer(used, used) | np.eye(len(index), dtype=bool))

    @property
    def n_complete(self) -> int:
        """Number of points that have all their neighbours; they come first."""
        cut = self.window // 2 if self.cut_off else 0
        return len(self) - (cut if self.n_incomplete is None else self.n_incomplete)

    def with_validation(self, held_out: HeldOut) -> Family:
        return replace(self, validation=held_out.measure(self.coefs, self.fold_coefs, self.neighbours))

    def then(self, other: Family) -> Family:
        """This family followed by another."""
        joined = replace(other, candidates=[*self.candidates, *other.candidates])
        if self.validation is None or other.validation is None:
            return joined
        values = np.concatenate([self.validation.values, other.validation.values])
        validation = replace(other.validation, values=values, neighbours=joined.neighbours)
        return replace(joined, validation=validation)


class ProgressCount:
    """Reports the progress of several sequences of fits as one."""

    def __init__(self, progress: Progress | None, n_fits: int) -> None:
        self._progress, self.n_fits, self._started = progress, n_fits, 0

    def next(self) -> Progress:
        """Progress callback of the next sequence."""
        if self._progress is None:
            return lambda done, total: None
        report, finished = self._progress, self._started
        self._started += 1
        self.n_fits = max(self.n_fits, self._started)
        return lambda done, total: report(finished * total + done, self.n_fits * total)


@dataclass(frozen=True, eq=False)
class FamilyTask:
    """Input of the families: the objective of the training data, the penalty and the limits.

    ``budget`` limits the sets of features; held-out values of a path are averaged over ``window`` points.
    """

    objective: Objective
    names: tuple[str, ...]
    penalty: SlopedPenalty
    budget: Budget
    folds: Folds | None
    n_alphas: int
    alphas: FloatArray | None
    min_ratio: float
    tol: float
    window: int
    progress: ProgressCount

    @property
    def path_end(self) -> int | None:
        """A path ends after the first point with more features than this."""
        most = self.budget.max_features
        return None if most is None else most + max(2, most // 2)

    @cached_property
    def forward(self) -> ForwardSearches:
        """Forward selection; the families of this task share its fits."""
        return ForwardSearches(self)

    @property
    def searched_folds(self) -> Sequence[int]:
        """The folds without which a selection is repeated: those of the first split."""
        return () if self.folds is None else self.folds.splits[0]

    def searched(self, folds: Sequence[int | None], search: Callable[[int | None], T]) -> list[T]:
        """``search(fold)`` for each fold (None: all data); at the same time for data in memory."""
        if type(self.objective) is not LocalObjective:
            return [search(fold) for fold in folds]
        return map_items(search, folds, len(self.objective.loss.cuts) - 1)

    def ridge(self, strength: float) -> SlopedPenalty:
        return ElasticNet(strength, signs=self.budget.signs, l1_ratio=0.0)

    def without_limit(self) -> FamilyTask:
        """The task without a limit on the number of features."""
        return replace(self, budget=replace(self.budget, max_features=None), window=1)


class ForwardSearches:
    """Forward selection on all data and, with less effort, without each fold of the first split."""

    def __init__(self, task: FamilyTask) -> None:
        self._folds = task.folds
        self._new, self._tol = partial(ForwardSearch, usable=task.budget.usable), task.tol
        whole = self._new(task.objective, tol=task.tol)
        self._searches: dict[int | None, ForwardSearch] = {None: whole}

    def __getitem__(self, fold: int | None) -> ForwardSearch:
        """The search without ``fold``; None: on all data."""
        if fold is not None and fold not in self._searches:
            assert self._folds is not None
            objective = self._folds.objective_without(fold)
            tol, ridge = max(self._tol, FOLD_TOL), self._searches[None].ridge
            self._searches[fold] = self._new(objective, tol=tol, ridge=ridge, first_tries=1)
        return self._searches[fold]


def l1_family(
    task: FamilyTask,
    label: str = PATH,
    grid: FloatArray | None = None,
    start: FloatArray | Point | None = None,
) -> Family:
    """The path with its certificates; with ``grid`` and ``start``, its continuation."""
    if grid is None:
        start, grid = path_grid(task.objective, task.penalty, task.n_alphas, task.alphas, task.min_ratio)
    candidates: list[Candidate] = []
    converged: list[bool] = []
    points = solve_path(
        task.objective, task.penalty, grid, start, task.tol, task.path_end, task.window // 2,
        columns=task.budget.columns, progress=task.progress.next(),
    )  # fmt: skip
    for result, alpha in zip(points, grid.tolist(), strict=False):  # the path may end before its grid
        penalty, fold_coefs = task.penalty.scaled(alpha), None
        if task.folds is not None:
            slopes = penalty.slopes(task.objective.n_features)
            fold_coefs = task.folds.minima(result.point, [slopes] * len(task.folds))
        candidates.append(Candidate.of(result, penalty, fold_coefs))
        converged.append(result.converged)
    cut_off, columns = len(candidates) < len(grid), task.budget.columns
    family = Family(label, candidates, task.window, cut_off=cut_off, columns=columns)
    warn_of_gaps(np.array(converged), family.gaps / family.objectives, task.tol, MAX_ITER)
    return family


def log_family(task: FamilyTask, path: Family) -> Family | None:
    """The log penalty by reweighted ℓ1: refit each point of the path with smaller weights for its features.

    α Σ_j v_j|w_j| with v_j = 1/(1 + t_j/ε), t_j = |w_j|·√h_j as a share of the largest, where w are the
    weights of the point and h_j is the curvature of feature j: one majorisation step of the log penalty. For
    all step columns of a feature, t is the total variation of its curve: Σ |steps| + |missing level|, and the
    family ends when it has more than ``FEW_STEPS`` and half as many again as the best point of the path.
    """
    penalty = task.penalty
    if not isinstance(penalty, L1):
        return None
    base = np.ones(task.objective.n_features) if penalty.weights is None else penalty.weights
    columns = task.budget.columns
    size = np.sqrt(task.objective.curvatures(task.objective.at_zero)) if columns is None else None

    def reweighted(alpha: float, w: FloatArray) -> L1:
        importance = np.abs(w) * size if columns is None else columns.variation(w)
        share = importance / max(float(importance.max()), np.finfo(np.float64).tiny)
        return replace(penalty, alpha=alpha, weights=base / (1.0 + share / HALF_SLOPE_SHARE))

    candidates: list[Candidate] = []
    best = -1 if path.validation is None else int(np.argmax(path.validation.mean))
    report, point = task.progress.next(), None
    most_steps = max(FEW_STEPS, 1.5 * np.count_nonzero(path.coefs[best]))
    for k, on_path in enumerate(path.candidates):
        log_penalty = reweighted(on_path.strength, on_path.coef)
        result = ProxNewton(task.tol, MAX_ITER).solve(Problem(task.objective, log_penalty), point)
        point, fold_coefs = result.point, None
        if task.folds is not None and on_path.fold_coefs is not None:
            slopes = [reweighted(on_path.strength, w).slopes(len(base)) for w in on_path.fold_coefs]
            fold_coefs = task.folds.minima(result.point, slopes)
        candidates.append(Candidate.of(result, log_penalty, fold_coefs))
        report(k + 1, len(path))
        if columns is not None and np.count_nonzero(result.w) > most_steps:
            break
    cut_off = path.cut_off or len(candidates) < len(path)
    return replace(path, label="log", candidates=candidates, validation=None, cut_off=cut_off)


def kept_family(task: FamilyTask, path: Family, log: Family | None = None) -> Family | None:
    """The path over the features that the log penalty keeps: their weights, or all steps of their curves.

    These are the ``max_features`` features with the largest |weight| or total variation in the first model of
    the ``log`` family that has as many, and without each fold in the model without the fold.
    """
    log = log or log_family(task, path)
    if log is None or not log.n_nonzero.any():
        return None
    most = task.budget.max_features or task.objective.n_features
    last = log.candidates[int(np.argmax(log.n_nonzero >= min(most, int(log.n_nonzero.max()))))]
    columns = task.budget.columns
    feature = np.arange(task.objective.n_features) if columns is None else columns.feature
    return _path_over_largest(
        task, last, "kept", lambda w: np.bincount(feature, np.abs(w)).astype(np.float64)
    )


def contributing_family(task: FamilyTask, larger: Family) -> Family | None:
    """The path over the features whose curves contribute most to the best of some larger models."""
    assert larger.validation is not None
    features = task.objective.features
    best = larger.candidates[int(np.argmax(larger.validation.mean))]
    return _path_over_largest(task, best, "kept by contribution", features.contributions)


def _path_over_largest(
    task: FamilyTask, last: Candidate, label: str, size_of: Callable[[FloatArray], FloatArray]
) -> Family | None:
    """The path over the largest features of a model, and without each fold over those of its version.

    ``size_of`` returns the size of each feature, given the weights.
    """
    penalty, columns, n_columns = task.penalty, task.budget.columns, task.objective.n_features
    if not isinstance(penalty, L1):
        return None
    most = task.budget.max_features or n_columns
    feature = np.arange(n_columns) if columns is None else columns.feature
    base = np.ones(n_columns) if penalty.weights is None else penalty.weights

    def largest(w: FloatArray) -> BoolArray:
        size = size_of(w)
        size[feature[task.budget.fixed]] = np.inf
        order = np.argsort(-size, kind="stable")
        return np.isin(feature, order[: min(most, np.count_nonzero(size))])

    def only(columns: BoolArray) -> L1:
        return replace(penalty, weights=np.where(columns, base, np.inf))

    chosen = largest(last.coef)
    kept = only(chosen)
    versions = None if last.fold_coefs is None else [only(largest(w)) for w in last.fold_coefs]
    grid = last.strength * np.geomspace(1.0, KEPT_RATIO, task.n_alphas)
    candidates, report = [], task.progress.next()
    points = solve_path(task.objective, kept, grid, np.where(chosen, last.coef, 0.0), task.tol)
    for k, (result, alpha) in enumerate(zip(points, grid.tolist(), strict=True)):
        fold_coefs = None
        if task.folds is not None and versions is not None:
            slopes = [one.scaled(alpha).slopes(len(base)) for one in versions]
            fold_coefs = task.folds.minima(result.point, slopes)
        candidates.append(Candidate.of(result, kept.scaled(alpha), fold_coefs))
        report(k + 1, len(grid))
    return Family(label, candidates, task.window, columns=columns)


def forward_family(task: FamilyTask, path: Family | None = None, label: str = "forward") -> Family | None:
    """Forward selection with swaps, one set for each number of features, fitted without ℓ1.

    The selection is repeated without each fold of the first split: one Newton step from the fit to all data
    cannot find other features.
    """
    most, window, end = size_limits(task)
    report, searches = task.progress.next(), task.forward

    def select(fold: int | None) -> list[Result]:
        return searches[fold].path(end, task.budget, report if fold is None else None)

    results, *by_fold = task.searched([None, *task.searched_folds], select)
    return family_by_size(label, task, results, searches[None].ridge, most, window, by_fold)


def subset_family(task: FamilyTask, path: Family | None = None, label: str = "subset") -> Family | None:
    """The best subset of each size that a short search finds, with a proven bound for all others.

    The effort depends only on the size of the data, so that fits are reproducible. The versions without each
    fold are forward selections.
    """
    most, window, end = size_limits(task)
    sizes = range(max(1, len(task.budget.fixed)), min(end, int(np.count_nonzero(task.budget.usable))) + 1)
    nodes = int(np.clip(SUBSET_WORK // task.objective.loss.queries.n_rows, *SUBSET_NODES))
    search, report = SubsetSearch(task.objective, task.budget), task.progress.next()
    best = []
    for size in sizes:
        best.append(search.best(size, Effort(gap=0.0, nodes=nodes)))
        report(size, end)
    if not best:
        return None
    searches = task.forward

    def select(fold: int | None) -> list[Result]:
        return searches[fold].path(end, task.budget)

    by_fold = task.searched(task.searched_folds, select)
    fits = [replace(one.fit, gap=one.fit.objective - one.bound) for one in best]
    family = family_by_size(label, task, fits, search.ridge, most, window, by_fold)
    assert family is not None
    proven = [replace(one, subset=subset) for one, subset in zip(family.candidates, best, strict=True)]
    return replace(family, candidates=proven)


def size_limits(task: FamilyTask) -> tuple[int, int, int]:
    """(most features to choose, sizes to average over, most features to fit)."""
    limit = task.budget.max_features
    most = MAX_FORWARD_FEATURES if limit is None else min(limit, MAX_FORWARD_FEATURES)
    window = min(SIZE_WINDOW, task.window)
    return most, window, most + window // 2


def family_by_size(
    label: str,
    task: FamilyTask,
    results: Sequence[Result],
    ridge: float,
    most: int,
    window: int,
    by_fold: Sequence[list[Result]],
) -> Family | None:
    """One candidate for each of the ``results``; ``by_fold`` has the results without each fold.

    If these have fewer sizes, the largest set is repeated; if there are none, all weights are 0.
    """
    if not results:
        return None
    fold_coefs: Iterable[FloatArray | None] = [None] * len(results)
    if task.folds is not None:
        versions = np.zeros((len(results), len(by_fold), len(results[0].w)))
        for k, selected in enumerate(by_fold):
            for size in range(len(results) if selected else 0):
                versions[size, k] = selected[min(size, len(selected) - 1)].w
        fold_coefs = versions
    penalty = task.ridge(ridge)
    candidates = [
        Candidate.of(result, penalty, versions) for result, versions in zip(results, fold_coefs, strict=True)
    ]
    return Family(label, candidates, window, cut_off=len(results) > most)


def refitted_family(task: FamilyTask, path: Family) -> Family:
    """The features of each point of the path, refitted without ℓ1 (ridge α/1000).

    Points with the same features on all data and without each fold are refitted once.
    """
    fits: dict[bytes, Candidate] = {}
    candidates, report = [], task.progress.next()
    for k, on_path in enumerate(path.candidates):
        versions = [on_path.coef, *(() if on_path.fold_coefs is None else on_path.fold_coefs)]
        sets = [np.flatnonzero(version) for version in versions]
        key = b"|".join(columns.tobytes() for columns in sets)
        if key not in fits:
            fits[key] = _refit(task, sets, on_path.coef, REFIT_RIDGE_SHARE * on_path.strength)
        candidates.append(fits[key])
        report(k + 1, len(path))
    return replace(path, label="refitted", candidates=candidates, validation=None)


def _refit(task: FamilyTask, sets: list[IntArray], start: FloatArray, ridge: float) -> Candidate:
    """Fit the first set to all data, and each other set without its fold by one Newton step from there."""
    result = fit_set(task.objective, sets[0].tolist(), start, ridge, task.budget.signs, task.tol)
    if task.folds is None:
        return Candidate.of(result, task.ridge(ridge))
    columns = np.unique(np.concatenate(sets))
    models = task.folds.second_order(result.point, columns)
    fold_coefs = [
        SetQuadratic(model, ridge, task.budget).weights(chosen.tolist())
        for model, chosen in zip(models, sets[1:], strict=True)
    ]
    return Candidate.of(result, task.ridge(ridge), np.array(fold_coefs))


FAMILIES: dict[str, Callable[[FamilyTask, Family], Family | None]] = {
    PATH: lambda task, path: path,
    "log": log_family,
    "kept": kept_family,
    "refitted": refitted_family,
    "forward": forward_family,
    "subset": subset_family,
}
DEFAULT_FAMILIES = (PATH, "log", "forward")
CURVE_FAMILIES = (PATH, "log", "kept")
