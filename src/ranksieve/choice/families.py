"""Families of candidates, each from few features to many, and their fits without one fold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve.choice.forward import (
    NONE_FITTED,
    ForwardSearch,
    Place,
    Quadratic,
    Rules,
    Search,
    SetKey,
    fit_set,
    set_key,
)
from ranksieve.choice.leave_out import Folds, SecondOrder
from ranksieve.objective import Objective, Point
from ranksieve.path import Progress, SparsePath, collect, path_grid, walk, warn_of_gaps
from ranksieve.penalties import L1, ElasticNet, SlopedPenalty
from ranksieve.solvers import Problem, ProxNewton, Result
from ranksieve.solvers.base import Trace
from ranksieve.subset import Effort, Found, SubsetSearch

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
class Task:
    """What families are fitted to: the objective of the training data, the penalty, and the limits.

    ``most`` is the number of features that may be chosen, ``window`` the number of neighbouring points over
    which the values of a path are averaged.
    """

    objective: Objective
    names: tuple[str, ...]
    penalty: SlopedPenalty
    rules: Rules
    folds: Folds | None
    n_alphas: int
    alphas: FloatArray | None
    min_ratio: float
    tol: float
    most: int | None
    window: int
    progress: ProgressCount
    forward: ForwardSearches = field(default_factory=lambda: ForwardSearches())

    @property
    def path_end(self) -> int | None:
        """A path ends behind the first point that uses more features than this."""
        return None if self.most is None else self.most + max(2, self.most // 2)


class ForwardSearches:
    """Forward selection on all data and without each fold; the next one knows what one found."""

    def __init__(self) -> None:
        self._known: dict[int | None, Search] = {}

    def search(self, task: Task, fold: int | None, ridge: float | None = None) -> Search:
        """The search without a fold of the first dealing; None: on all data."""
        if not self._known and task.folds is None:
            self._known[None] = ForwardSearch(task.objective, task.rules.usable, task.tol, ridge)
        elif not self._known and task.folds is not None:
            whole = FoldedSearch(task.folds, task.rules.usable, task.tol, ridge)
            self._known = {None: whole, **{k: WithoutFold(whole, k) for k in task.folds.dealings[0]}}
        return self._known[fold]


@dataclass(frozen=True, eq=False)
class Fitted:
    """Models of all training data, and without each fold (points × folds × features; None: no folds).

    ``penalties`` is what each of them minimises beside the loss. Held-out values are averaged over ``window``
    neighbouring points, or those that ``near`` marks (points × points). ``ended`` says that the sequence was
    cut off before its end, so its last points, or the last ``lacking``, lack neighbours. ``found`` holds what
    is proven of each model as a set of features.
    """

    label: str
    models: SparsePath
    penalties: list[SlopedPenalty]
    without: FloatArray | None
    window: int
    ended: bool = False
    found: Sequence[Found] = ()
    near: BoolArray | None = None
    lacking: int | None = None

    @property
    def neighbours(self) -> BoolArray:
        """Which points each one is averaged with, itself included (points × points).

        A point without features counts as the worst ranking, so it is no other's neighbour.
        """
        if self.near is not None:
            return self.near
        place, used = np.arange(len(self.models)), self.models.n_nonzero > 0
        within = np.abs(np.subtract.outer(place, place)) <= self.window // 2
        return np.asarray(within & np.logical_and.outer(used, used) | np.eye(len(place), dtype=bool))

    @property
    def complete(self) -> int:
        """Points that have all their neighbours."""
        lacking = self.window // 2 if self.ended else 0
        return len(self.models) - (lacking if self.lacking is None else self.lacking)

    def then(self, other: Fitted) -> Fitted:
        """This sequence, continued by another."""
        without = None
        if self.without is not None and other.without is not None:
            without = np.concatenate([self.without, other.without])
        models, penalties = self.models.then(other.models), [*self.penalties, *other.penalties]
        return replace(other, models=models, penalties=penalties, without=without)


def l1_family(
    task: Task, label: str = PATH, grid: FloatArray | None = None, start: FloatArray | None = None
) -> Fitted:
    """The certified path; with ``grid`` and ``start`` its continuation."""
    begin: FloatArray | Point | None = start
    if grid is None:
        begin, grid = path_grid(task.objective, task.penalty, task.n_alphas, task.alphas, task.min_ratio)
    results: list[Result] = []
    without: list[FloatArray] = []
    n_folds = len(task.folds or ())
    penalties = [task.penalty.scaled(alpha) for alpha in grid.tolist()]
    for result in walk(
        task.objective, task.penalty, grid, begin, task.tol, task.path_end, task.window // 2,
        progress=task.progress.next(),
    ):  # fmt: skip
        if task.folds is not None:
            slopes = penalties[len(results)].slopes(task.objective.n_features)
            without.append(task.folds.minima(result.point, [slopes] * n_folds))
        results.append(replace(result, point=None))
    models = collect(grid[: len(results)], results, task.names)
    warn_of_gaps(models, task.tol, MAX_ITER)
    ended, folds = len(results) < len(grid), np.array(without) if without else None
    return Fitted(label, models, penalties[: len(results)], folds, task.window, ended)


def log_family(task: Task, path: Fitted) -> Fitted | None:
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

    results, without, report = [], [], task.progress.next()
    alphas, coefs = path.models.alphas.tolist(), path.models.coefs
    penalties: list[SlopedPenalty] = [reweighted(alpha, w) for alpha, w in zip(alphas, coefs, strict=True)]
    point: Point | None = None
    for k, alpha in enumerate(alphas):
        result = ProxNewton(task.tol, MAX_ITER).solve(Problem(task.objective, penalties[k]), point)
        point = result.point
        results.append(replace(result, point=None))
        if task.folds is not None and path.without is not None:
            slopes = [reweighted(alpha, part).slopes(len(size)) for part in path.without[k]]
            without.append(task.folds.minima(result.point, slopes))
        report(k + 1, len(path.models))
    models = collect(path.models.alphas, results, task.names)
    return Fitted("log", models, penalties, np.array(without) if without else None, path.window, path.ended)


def forward_family(task: Task, path: Fitted | None = None, label: str = "forward") -> Fitted | None:
    """Forward selection with swaps, one set for each number of features, fitted without ℓ1.

    Other queries may choose other features, which one Newton step does not find: so folds have selections of
    their own, in the first dealing alone (:mod:`ranksieve.choice.families`).
    """
    most, window, end = sizes_of(task)
    report = task.progress.next()

    def select(fold: int | None) -> SparsePath:
        return task.forward.search(task, fold).path(end, task.rules, task.names, report)

    models = select(None)
    if not len(models):
        return None
    return by_size(label, task, models, most, window, select)


def subset_family(task: Task, path: Fitted | None = None, label: str = "subset") -> Fitted | None:
    """The best set of each number of features, with the bound of all others that a short search proves.

    How short depends on the data's size alone, so that fits can be repeated. Folds have forward selections.
    """
    most, window, end = sizes_of(task)
    sizes = range(max(1, len(task.rules.fixed)), min(end, int(np.count_nonzero(task.rules.usable))) + 1)
    least, largest = SEARCH_NODES
    effort = Effort(
        gap=0.0, nodes=int(np.clip(SEARCH_WORK // task.objective.loss.queries.n_rows, least, largest))
    )
    search, report = SubsetSearch(task.objective, task.rules), task.progress.next()
    found = []
    for size in sizes:
        found.append(search.best(size, effort))
        report(size, end)
    if not found:
        return None
    fits = [replace(one.fit, gap=one.fit.objective - one.bound) for one in found]
    models = collect(np.full(len(fits), search.ridge), fits, task.names)

    searches = ForwardSearches()

    def select(fold: int) -> SparsePath:
        return searches.search(task, fold, search.ridge).path(end, task.rules, task.names)

    return replace(by_size(label, task, models, most, window, select), found=found)


def sizes_of(task: Task) -> tuple[int, int, int]:
    """(most features to choose, neighbours that values are averaged over, most features to fit)."""
    most = MOST_FORWARD if task.most is None else min(task.most, MOST_FORWARD)
    window = min(SIZES_WINDOW, task.window)
    return most, window, most + window // 2


def by_size(
    label: str, task: Task, models: SparsePath, most: int, window: int, select: Callable[[int], SparsePath]
) -> Fitted:
    """One model for each number of features, and without each fold those that ``select`` gives."""
    without = None
    if task.folds is not None:
        parts = [select(fold) for fold in task.folds.dealings[0]]
        without = np.stack([_of_length(part.coefs, len(models), models.coefs) for part in parts], axis=1)
    penalties = [ridge_of(task, float(ridge)) for ridge in models.alphas]
    return Fitted(label, models, penalties, without, window, ended=len(models) > most)


def _of_length(coefs: FloatArray, length: int, otherwise: FloatArray) -> FloatArray:
    """So many models, the last one again where there are fewer; without any, models that use nothing."""
    if not len(coefs):
        return np.zeros_like(otherwise)
    return coefs[np.minimum(np.arange(length), len(coefs) - 1)]


def ridge_of(task: Task, ridge: float) -> SlopedPenalty:
    return ElasticNet(ridge, signs=task.rules.signs, l1_ratio=0.0)


def refitted_family(task: Task, path: Fitted) -> Fitted:
    """The features of each point of the path, fitted again without ℓ1 (ridge of α/1000)."""
    known: dict[bytes, tuple[Result, list[FloatArray], SlopedPenalty]] = {}  # equal sets are fitted once
    results, without, penalties = [], [], []  # type: ignore[var-annotated]
    report = task.progress.next()
    for k, (alpha, w) in enumerate(zip(path.models.alphas.tolist(), path.models.coefs, strict=True)):
        versions = [w, *(() if path.without is None else path.without[k])]
        sets = [np.flatnonzero(version) for version in versions]
        key = b"|".join(chosen.tobytes() for chosen in sets)
        if key not in known:
            known[key] = (*_refitted(task, sets, w, RIDGE_SHARE * alpha), ridge_of(task, RIDGE_SHARE * alpha))
        for kept, found in zip((results, without, penalties), known[key], strict=True):
            kept.append(found)
        report(k + 1, len(path.models))
    models = collect(path.models.alphas, results, task.names)
    folds = None if path.without is None else np.array(without)
    return Fitted("refitted", models, penalties, folds, path.window, path.ended)


def _refitted(
    task: Task, sets: list[IntArray], start: FloatArray, ridge: float
) -> tuple[Result, list[FloatArray]]:
    """(fit of the first set to all data, one step from it of each other set without its fold)."""
    result = fit_set(task.objective, sets[0].tolist(), start, ridge, task.rules.signs, task.tol)
    if task.folds is None:
        return replace(result, point=None), []
    near = task.folds.near(result.point, np.unique(np.concatenate(sets)))
    weights = [
        Quadratic(part, ridge, task.rules).weights(chosen.tolist())
        for part, chosen in zip(near, sets[1:], strict=True)
    ]
    return replace(result, point=None), weights


FAMILIES: dict[str, Callable[[Task, Fitted], Fitted | None]] = {
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

    def without(self, chosen: Sequence[int], start: FloatArray, rules: Rules) -> list[SecondOrder]:
        """The models around a set, in its columns and those that may join it."""
        if (place := (set_key(chosen), rules.affordable(chosen))) not in self._without:
            self._model(place, self._fit_point(chosen, start), chosen, rules)
        return self._without[place]

    def without_of(self, chosen: Sequence[int], start: FloatArray) -> list[SecondOrder]:
        """The models around a set, in its columns at least."""
        if (key := set_key(chosen)) not in self._first:
            point = self._fit_point(chosen, start)
            shares = self._folds.gradient_shares(point)
            self._first[key] = self._folds.near_first(point, np.array(key, dtype=np.int64), shares)
        return self._first[key]

    def without_at_zero(self, chosen: Sequence[int], rules: Rules) -> list[SecondOrder]:
        """The models where all weights are 0."""
        self.near_zero(chosen, rules)
        return self._without[NONE_FITTED, rules.affordable(chosen)]

    def _model(self, place: Place, point: Point, chosen: Sequence[int], rules: Rules) -> SecondOrder:
        shares = self._folds.gradient_shares(point)
        g = np.where(self.objective.varies, shares.sum(axis=0), 0.0) / self.objective.loss.normaliser
        columns = self._columns(g, chosen, rules)
        self._without[place] = self._folds.near_first(point, columns, shares)
        self._first.setdefault(place[0], self._without[place])
        return SecondOrder(point.w, g, self.objective.hessian(point, columns), columns)


class WithoutFold(Search):
    """The search without one fold; the objective of a fit is that of the second-order model."""

    def __init__(self, whole: FoldedSearch, fold: int) -> None:
        self._whole, self._fold, self.ridge = whole, fold, whole.ridge
        self._fits: dict[SetKey, Result] = {}

    def fitted(self, chosen: Sequence[int], start: FloatArray, rules: Rules) -> Result:
        key = set_key(chosen)
        if key not in self._fits:
            model = self._whole.without_of(chosen, start)[self._fold]
            w = Quadratic(model, self.ridge, rules).weights(chosen)
            objective = model.at(w) + 0.5 * self.ridge * float(w @ w)
            self._fits[key] = Result(w, objective, np.nan, 1, True, Trace(seconds=[0.0]))
        return self._fits[key]

    def near(self, chosen: Sequence[int], start: FloatArray, rules: Rules) -> SecondOrder:
        return self._whole.without(chosen, start, rules)[self._fold]

    def near_zero(self, chosen: Sequence[int], rules: Rules) -> SecondOrder:
        return self._whole.without_at_zero(chosen, rules)[self._fold]
