"""Families of models to choose from: each a sequence from few features to many, fitted on all training data
and without each fold.

One function and one line in FAMILIES adds a family.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.forward import Rules, forward_path
from ranksieve.leave_out import Folds
from ranksieve.objective import Objective
from ranksieve.path import Progress, SparsePath, collect, path_grid, walk, warn_of_gaps
from ranksieve.penalties import L1, SlopedPenalty
from ranksieve.solvers import Problem, ProxNewton

MAX_ITER = 100
NEGLIGIBLE = 0.1  # share of the largest weight at which the log penalty's slope has halved
MOST_FORWARD = 15  # features that forward selection goes up to
EXTENSION = 10.0  # the factor by which a grid grows whose end is the best
MAX_EXTENSIONS = 2
SIZES_WINDOW = 3  # sizes of a forward selection over which held-out values are averaged


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

    @property
    def path_end(self) -> int | None:
        """A path ends behind the first point that uses more features than this."""
        return None if self.most is None else self.most + max(2, self.most // 2)


@dataclass(frozen=True, eq=False)
class Fitted:
    """Models of all training data, and without each fold (points × folds × features; None: no folds).

    Values are averaged over ``window`` neighbouring points. ``ended`` says that the sequence was cut off
    before its end, so the last points lack neighbours.
    """

    label: str
    models: SparsePath
    without: FloatArray | None
    window: int
    ended: bool = False

    @property
    def complete(self) -> int:
        """Points that have all their neighbours."""
        return len(self.models) - (self.window // 2 if self.ended else 0)

    def then(self, other: Fitted) -> Fitted:
        """This sequence, continued by another."""
        without = None
        if self.without is not None and other.without is not None:
            without = np.concatenate([self.without, other.without])
        return replace(other, models=self.models.then(other.models), without=without)


def l1_family(
    task: Task, label: str = "ℓ1", grid: FloatArray | None = None, start: FloatArray | None = None
) -> Fitted:
    """The certified path; with ``grid`` and ``start`` its continuation."""
    point, whole = path_grid(task.objective, task.penalty, task.n_alphas, task.alphas, task.min_ratio)
    grid = whole if grid is None else grid
    beyond = task.window // 2
    results = walk(
        task.objective, task.penalty, grid, point if start is None else start, task.tol, task.path_end, beyond
    )
    models = collect(grid[: len(results)], results, task.names)
    warn_of_gaps(models, task.tol, MAX_ITER)
    without = None
    if task.folds is not None:
        n_folds, d = len(task.folds), task.objective.n_features
        without = np.array(
            [
                task.folds.minima(w, [task.penalty.scaled(float(alpha)).slopes(d)] * n_folds)
                for alpha, w in zip(models.alphas, models.coefs, strict=True)
            ]
        )
    return Fitted(label, models, without, task.window, len(results) < len(grid))


def log_family(task: Task, path: Fitted) -> Fitted | None:
    """The log penalty by reweighted ℓ1: each point of the path again, with weights that spare what it uses.

    α Σ_j v_j|w_j| with v_j = 1/(1 + t_j/ε), t_j = |w_j|·√h_j as a share of the largest, w the weights of the
    path's point and h_j the curvature of the feature alone: one step of the log penalty's majorisation.
    """
    if not isinstance(task.penalty, L1):
        return None
    base = np.ones(task.objective.n_features) if task.penalty.weights is None else task.penalty.weights
    size = np.sqrt(task.objective.curvatures(task.objective.at_zero))

    def reweighted(alpha: float, w: FloatArray) -> L1:
        importance = np.abs(w) * size
        share = importance / max(float(importance.max()), np.finfo(np.float64).tiny)
        return replace(task.penalty, alpha=alpha, weights=base / (1.0 + share / NEGLIGIBLE))

    results, without = [], []
    for k, alpha in enumerate(path.models.alphas.tolist()):
        w = path.models.coefs[k]
        problem = Problem(task.objective, reweighted(alpha, w))
        results.append(replace(ProxNewton(task.tol, MAX_ITER).solve(problem, w), point=None))
        if task.folds is not None and path.without is not None:
            slopes = [reweighted(alpha, part).slopes(len(w)) for part in path.without[k]]
            without.append(task.folds.minima(results[-1].w, slopes))
    models = collect(path.models.alphas, results, task.names)
    return Fitted("log", models, np.array(without) if without else None, path.window, path.ended)


def forward_family(task: Task, path: Fitted, label: str = "forward") -> Fitted | None:
    """Forward selection with swaps, one set for each number of features, fitted without ℓ1."""
    most = MOST_FORWARD if task.most is None else min(task.most, MOST_FORWARD)
    models, without = forward_path(
        task.objective, most + SIZES_WINDOW // 2, task.rules, task.folds, names=task.names, tol=task.tol
    )
    if not len(models):
        return None
    return Fitted(label, models, without, SIZES_WINDOW, ended=len(models) > most)


FAMILIES: dict[str, Callable[[Task, Fitted], Fitted | None]] = {
    "l1": lambda task, path: path,
    "log": log_family,
    "forward": forward_family,
}
