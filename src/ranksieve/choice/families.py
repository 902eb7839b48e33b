"""Families of candidates, each from few features to many, and their versions without one fold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve.choice.folds import Folds, SecondOrder
from ranksieve.choice.forward import (
    NONE_FITTED,
    ForwardSearch,
    Place,
    Quadratic,
    Search,
    SetKey,
    fit_set,
    set_key,
)
from ranksieve.choice.held_out import HeldOut, Validation
from ranksieve.data.budget import Budget
from ranksieve.objective import Objective, Point
from ranksieve.path import Progress, path_grid, walk, warn_of_gaps
from ranksieve.penalties import L1, ElasticNet, SlopedPenalty
from ranksieve.solvers import Problem, ProxNewton, Result, Trace
from ranksieve.subset import Effort, SubsetResult, SubsetSearch

MAX_ITER = 100
NEGLIGIBLE = 0.1  # share of the largest weight at which the log penalty's slope has halved
MOST_FORWARD = 12  # features that forward selection goes up to
PATH = "l1"  # the family that others start from
SIZED = ("forward", "subset")  # families with one model for each number of features
RIDGED = (*SIZED, "refitted")  # families without ℓ1
RIDGE_SHARE = 1e-3  # of α: keeps a refit bounded when its features separate every pair
SEARCH_WORK = 5_000_000  # regions times documents that the proof of one size may take
SEARCH_NODES = (20, 500)  # regions that it may take at least and at most
SIZES_WINDOW = 3  # sizes of a forward selection over which held-out values are averaged


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model of the training data: its weights, the penalty beside the loss, objective and gap.

    ``fold_coefs`` (folds × features) are its versions without each fold, None without folds; ``subset`` is
    what is proven of its features as a set, if anything.
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


@dataclass(frozen=True, eq=False)
class Family:
    """Candidates of one kind, by falling strength or by rising number of features.

    Held-out values are averaged over ``window`` neighbouring points, or over those that ``near`` marks
    (points × points). A family that was ``cut_off`` before its end has neighbours for all points but the
    last ``window // 2``, or the last ``lacking``. ``validation`` is how the candidates rank held-out queries.
    """

    label: str
    candidates: Sequence[Candidate]
    window: int = 1
    cut_off: bool = False
    near: BoolArray | None = None
    lacking: int | None = None
    validation: Validation | None = None

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
        """Features in use by each candidate."""
        return np.asarray(np.count_nonzero(self.coefs, axis=1))

    @property
    def trace(self) -> Trace:
        """Objective, gap, features and seconds since the start, one entry per candidate."""
        seconds = np.cumsum([one.seconds for one in self.candidates])
        columns = (self.objectives, self.gaps, self.n_nonzero, seconds)
        return Trace(*(column.tolist() for column in columns))

    @property
    def neighbours(self) -> BoolArray:
        """Which points each one is averaged with, itself included (points × points).

        A point without features counts as the worst ranking, so it is nobody's neighbour.
        """
        if self.near is not None:
            return self.near
        place, used = np.arange(len(self)), self.n_nonzero > 0
        within = np.abs(np.subtract.outer(place, place)) <= self.window // 2
        return np.asarray(within & np.logical_and.outer(used, used) | np.eye(len(place), dtype=bool))

    @property
    def complete(self) -> int:
        """Points that have all their neighbours."""
        lacking = self.window // 2 if self.cut_off else 0
        return len(self) - (lacking if self.lacking is None else self.lacking)

    def measured(self, held_out: HeldOut) -> Family:
        """The family with its validation."""
        return replace(self, validation=held_out.measure(self.coefs, self.fold_coefs, self.neighbours))

    def then(self, other: Family) -> Family:
        """This family, continued by another."""
        joined = replace(other, candidates=[*self.candidates, *other.candidates])
        if self.validation is None or other.validation is None:
            return joined
        values = np.concatenate([self.validation.values, other.validation.values])
        return replace(joined, validation=replace(other.validation, values=values, near=joined.neighbours))


class ProgressCount:
    """Progress over several sequences of fits as one count."""

    def __init__(self, progress: Progress | None, n_fits: int) -> None:
        self._progress, self.n_fits, self._started = progress, n_fits, 0

    def next(self) -> Progress:
        """What the next sequence reports to."""
        if self._progress is None:
            return lambda done, total: None
        report, before = self._progress, self._started
        self._started += 1
        self.n_fits = max(self.n_fits, self._started)
        return lambda done, total: report(before * total + done, self.n_fits * total)


@dataclass(frozen=True, eq=False)
class FamilyTask:
    """What families are fitted to: the objective of the training data, the penalty, and the limits.

    ``budget`` limits the sets of features; values of a path are averaged over ``window`` neighbouring points.
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
        """A path ends behind the first point that uses more features than this."""
        most = self.budget.max_features
        return None if most is None else most + max(2, most // 2)

    @cached_property
    def forward(self) -> ForwardSearches:
        """Forward selection, which fits each set once for all families of this task."""
        return ForwardSearches(self)

    def ridge(self, strength: float) -> SlopedPenalty:
        return ElasticNet(strength, signs=self.budget.signs, l1_ratio=0.0)

    def without_limit(self) -> FamilyTask:
        """The same with any number of features."""
        return replace(self, budget=replace(self.budget, max_features=None), window=1)


class ForwardSearches:
    """Forward selection on all data and without each fold of the first dealing."""

    def __init__(self, task: FamilyTask, ridge: float | None = None) -> None:
        usable, tol = task.budget.usable, task.tol
        self._searches: dict[int | None, Search] = {}
        if task.folds is None:
            self._searches[None] = ForwardSearch(task.objective, usable, tol, ridge)
        else:
            whole = FoldedSearch(task.folds, usable, tol, ridge)
            self._searches = {None: whole, **{k: WithoutFold(whole, k) for k in task.folds.dealings[0]}}

    def __getitem__(self, fold: int | None) -> Search:
        """The search without a fold; None: on all data."""
        return self._searches[fold]


def l1_family(
    task: FamilyTask, label: str = PATH, grid: FloatArray | None = None, start: FloatArray | None = None
) -> Family:
    """The certified path; with ``grid`` and ``start`` its continuation."""
    begin: FloatArray | Point | None = start
    if grid is None:
        begin, grid = path_grid(task.objective, task.penalty, task.n_alphas, task.alphas, task.min_ratio)
    candidates: list[Candidate] = []
    converged: list[bool] = []
    points = walk(
        task.objective, task.penalty, grid, begin, task.tol, task.path_end, task.window // 2,
        progress=task.progress.next(),
    )  # fmt: skip
    for result, alpha in zip(points, grid.tolist(), strict=False):  # a path may end before its grid
        penalty, fold_coefs = task.penalty.scaled(alpha), None
        if task.folds is not None:
            slopes = penalty.slopes(task.objective.n_features)
            fold_coefs = task.folds.minima(result.point, [slopes] * len(task.folds))
        candidates.append(Candidate.of(result, penalty, fold_coefs))
        converged.append(result.converged)
    family = Family(label, candidates, task.window, cut_off=len(candidates) < len(grid))
    warn_of_gaps(np.array(converged), family.gaps / family.objectives, task.tol, MAX_ITER)
    return family


def log_family(task: FamilyTask, path: Family) -> Family | None:
    """The log penalty by reweighted ℓ1: each point of the path again, with weights that spare what it uses.

    α Σ_j v_j|w_j| with v_j = 1/(1 + t_j/ε), t_j = |w_j|·√h_j as a share of the largest, w the weights of the
    path's point and h_j the curvature of the feature alone: one step of the log penalty's majorisation.
    """
    penalty = task.penalty
    if not isinstance(penalty, L1):
        return None
    base = np.ones(task.objective.n_features) if penalty.weights is None else penalty.weights
    size = np.sqrt(task.objective.curvatures(task.objective.at_zero))

    def reweighted(alpha: float, w: FloatArray) -> L1:
        importance = np.abs(w) * size
        share = importance / max(float(importance.max()), np.finfo(np.float64).tiny)
        return replace(penalty, alpha=alpha, weights=base / (1.0 + share / NEGLIGIBLE))

    candidates: list[Candidate] = []
    report, point = task.progress.next(), None
    for k, before in enumerate(path.candidates):
        own = reweighted(before.strength, before.coef)
        result = ProxNewton(task.tol, MAX_ITER).solve(Problem(task.objective, own), point)
        point, fold_coefs = result.point, None
        if task.folds is not None and before.fold_coefs is not None:
            slopes = [reweighted(before.strength, w).slopes(len(size)) for w in before.fold_coefs]
            fold_coefs = task.folds.minima(result.point, slopes)
        candidates.append(Candidate.of(result, own, fold_coefs))
        report(k + 1, len(path))
    return replace(path, label="log", candidates=candidates, validation=None)


def forward_family(task: FamilyTask, path: Family | None = None, label: str = "forward") -> Family | None:
    """Forward selection with swaps, one set for each number of features, fitted without ℓ1.

    Other queries may select other features, which one Newton step does not find: so folds have selections of
    their own, in the first dealing alone.
    """
    most, window, end = sizes_of(task)
    report = task.progress.next()

    def select(fold: int | None) -> list[Result]:
        return task.forward[fold].path(end, task.budget, report)

    return by_size(label, task, select(None), task.forward[None].ridge, most, window, select)


def subset_family(task: FamilyTask, path: Family | None = None, label: str = "subset") -> Family | None:
    """The best set of each number of features, with the bound of all others that a short search proves.

    How short depends on the data's size alone, so that fits can be repeated. Folds have forward selections.
    """
    most, window, end = sizes_of(task)
    sizes = range(max(1, len(task.budget.fixed)), min(end, int(np.count_nonzero(task.budget.usable))) + 1)
    least, largest = SEARCH_NODES
    nodes = int(np.clip(SEARCH_WORK // task.objective.loss.queries.n_rows, least, largest))
    search, report = SubsetSearch(task.objective, task.budget), task.progress.next()
    best = []
    for size in sizes:
        best.append(search.best(size, Effort(gap=0.0, nodes=nodes)))
        report(size, end)
    if not best:
        return None
    searches = ForwardSearches(task, search.ridge)

    def select(fold: int) -> list[Result]:
        return searches[fold].path(end, task.budget)

    fits = [replace(one.fit, gap=one.fit.objective - one.bound) for one in best]
    family = by_size(label, task, fits, search.ridge, most, window, select)
    assert family is not None
    proven = [replace(one, subset=subset) for one, subset in zip(family.candidates, best, strict=True)]
    return replace(family, candidates=proven)


def sizes_of(task: FamilyTask) -> tuple[int, int, int]:
    """(most features to choose, neighbours that values are averaged over, most features to fit)."""
    limit = task.budget.max_features
    most = MOST_FORWARD if limit is None else min(limit, MOST_FORWARD)
    window = min(SIZES_WINDOW, task.window)
    return most, window, most + window // 2


def by_size(
    label: str,
    task: FamilyTask,
    results: Sequence[Result],
    ridge: float,
    most: int,
    window: int,
    select: Callable[[int], list[Result]],
) -> Family | None:
    """One candidate for each number of features, and without each fold those that ``select`` gives.

    A fold that has fewer sizes repeats its largest set; one that has none uses no feature.
    """
    if not results:
        return None
    fold_coefs: Iterable[FloatArray | None] = [None] * len(results)
    if task.folds is not None:
        versions = np.zeros((len(results), len(task.folds.dealings[0]), len(results[0].w)))
        for place, fold in enumerate(task.folds.dealings[0]):
            selected = select(fold)
            for size in range(len(results) if selected else 0):
                versions[size, place] = selected[min(size, len(selected) - 1)].w
        fold_coefs = versions
    penalty = task.ridge(ridge)
    candidates = [
        Candidate.of(result, penalty, versions) for result, versions in zip(results, fold_coefs, strict=True)
    ]
    return Family(label, candidates, window, cut_off=len(results) > most)


def refitted_family(task: FamilyTask, path: Family) -> Family:
    """The features of each point of the path, fitted again without ℓ1 (ridge of α/1000).

    Points with the same features, also without each fold, are fitted once.
    """
    fits: dict[bytes, Candidate] = {}
    candidates, report = [], task.progress.next()
    for k, before in enumerate(path.candidates):
        versions = [before.coef, *(() if before.fold_coefs is None else before.fold_coefs)]
        sets = [np.flatnonzero(version) for version in versions]
        key = b"|".join(columns.tobytes() for columns in sets)
        if key not in fits:
            fits[key] = _refitted(task, sets, before.coef, RIDGE_SHARE * before.strength)
        candidates.append(fits[key])
        report(k + 1, len(path))
    return replace(path, label="refitted", candidates=candidates, validation=None)


def _refitted(task: FamilyTask, sets: list[IntArray], start: FloatArray, ridge: float) -> Candidate:
    """The fit of the first set to all data, and one step from it of each other set without its fold."""
    result = fit_set(task.objective, sets[0].tolist(), start, ridge, task.budget.signs, task.tol)
    if task.folds is None:
        return Candidate.of(result, task.ridge(ridge))
    columns = np.unique(np.concatenate(sets))
    around = task.folds.second_order(result.point, columns, task.folds.every)
    fold_coefs = [
        Quadratic(model, ridge, task.budget).weights(chosen.tolist())
        for model, chosen in zip(around, sets[1:], strict=True)
    ]
    return Candidate.of(result, task.ridge(ridge), np.array(fold_coefs))


FAMILIES: dict[str, Callable[[FamilyTask, Family], Family | None]] = {
    PATH: lambda task, path: path,
    "log": log_family,
    "refitted": refitted_family,
    "forward": forward_family,
    "subset": subset_family,
}
DEFAULT_FAMILIES = (PATH, "log", "forward")


class FoldedSearch(ForwardSearch):
    """The search on all data, which keeps the second-order models without each fold of the first dealing.

    A set that it has fitted is looked at there; another, which only folds came upon, where the second-order
    model of its predecessor has its minimum.
    """

    def __init__(
        self, folds: Folds, usable: BoolArray, tol: float = 1e-6, ridge: float | None = None
    ) -> None:
        super().__init__(folds.objective, usable, tol, ridge)
        self._folds = folds
        self._without: dict[Place, list[SecondOrder]] = {}
        self._first: dict[SetKey, list[SecondOrder]] = {}

    def without(self, chosen: Sequence[int], start: FloatArray, budget: Budget) -> list[SecondOrder]:
        """The models around a set, in its columns and those that may join it."""
        if (place := (set_key(chosen), budget.affordable(chosen))) not in self._without:
            self._model(place, self._fit_point(chosen, start), chosen, budget)
        return self._without[place]

    def without_of(self, chosen: Sequence[int], start: FloatArray) -> list[SecondOrder]:
        """The models around a set, in its columns at least."""
        if (key := set_key(chosen)) not in self._first:
            point, columns = self._fit_point(chosen, start), np.array(key, dtype=np.int64)
            self._first[key] = self._folds.second_order(point, columns, self._folds.first)
        return self._first[key]

    def without_at_zero(self, chosen: Sequence[int], budget: Budget) -> list[SecondOrder]:
        """The models where all weights are 0."""
        self.near_zero(chosen, budget)
        return self._without[NONE_FITTED, budget.affordable(chosen)]

    def _model(self, place: Place, point: Point, chosen: Sequence[int], budget: Budget) -> SecondOrder:
        first = self._folds.first
        sums = self.objective.gradients(point, first.cuts)
        g = np.where(self.objective.varies, sums.sum(axis=0), 0.0) / self.objective.loss.normaliser
        columns = self._columns(g, chosen, budget)
        self._without[place] = self._folds.second_order(point, columns, first, sums)
        self._first.setdefault(place[0], self._without[place])
        return SecondOrder(point.w, g, self.objective.hessian(point, columns), columns)


class WithoutFold(Search):
    """The search without one fold; the objective of a fit is that of the second-order model."""

    def __init__(self, whole: FoldedSearch, fold: int) -> None:
        self._whole, self._fold, self.ridge = whole, fold, whole.ridge
        self._fits: dict[SetKey, Result] = {}

    def fitted(self, chosen: Sequence[int], start: FloatArray, budget: Budget) -> Result:
        key = set_key(chosen)
        if key not in self._fits:
            model = self._whole.without_of(chosen, start)[self._fold]
            w = Quadratic(model, self.ridge, budget).weights(chosen)
            objective = model.at(w) + 0.5 * self.ridge * float(w @ w)
            self._fits[key] = Result(w, objective, np.nan, 1, True, Trace(seconds=[0.0]))
        return self._fits[key]

    def near(self, chosen: Sequence[int], start: FloatArray, budget: Budget) -> SecondOrder:
        return self._whole.without(chosen, start, budget)[self._fold]

    def near_zero(self, chosen: Sequence[int], budget: Budget) -> SecondOrder:
        return self._whole.without_at_zero(chosen, budget)[self._fold]
