"""Fit the families of candidates on the training data and evaluate them on held-out queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ranksieve._types import BoolArray, FloatArray
from ranksieve.choice.decide import validation_of
from ranksieve.choice.families import (
    FAMILIES,
    PATH,
    Candidate,
    Family,
    FamilyTask,
    contributing_family,
    kept_family,
    l1_family,
    size_limits,
    subset_family,
)
from ranksieve.choice.forward import CostedSet
from ranksieve.choice.held_out import HeldOut
from ranksieve.data.budget import MIN_COST_SHARE, Budget
from ranksieve.data.costs import ColumnCosts
from ranksieve.errors import warn_caller
from ranksieve.path import path_grid
from ranksieve.penalties import L1

EXTENSION_FACTOR = 10.0**0.5  # extend the grid of α by this factor if its best point is that close to its end
CURVE_EXTENSION_FACTOR = 10.0 ** (1 / 3)
MAX_EXTENSIONS = 6
COARSE_FACTOR = 5.0  # step of α beyond the budget, where models only show what the budget costs
CURVE_COARSE_FACTOR = 5.0**0.5
MAX_COARSE_STEPS = 5
COARSE_TOL = 1e-4
GRID_ROUNDING = 1e-9  # relative error of quotients of α
COST_POWERS = (0.5, 1.0)


def find_candidates(
    task: FamilyTask, held_out: HeldOut, names: Sequence[str], budget: Budget
) -> tuple[tuple[Family, ...], Family | None]:
    """(the families ``names`` of FAMILIES, some models that exceed the budget), with their validation.

    With costs there are additional families: paths with ℓ1 weights v_j·cost^γ for each γ of ``COST_POWERS``,
    and forward selection for every cost up to the budget; the first feature of a group pays for the whole
    group. ``task.budget`` has the limits of ``budget`` without the costs.
    """
    costs = budget.costs
    if costs is None:
        path, families = _plain_families(task, held_out, names)
    else:
        priced = replace(task, budget=replace(task.budget, costs=costs, max_cost=budget.max_cost))
        priced.budget.check_affordable(_can_leave_zero(task))
        path, families = _plain_families(task, held_out, [name for name in names if name != "subset"])
        more: list[Family | None] = []
        if "subset" in names:
            more.append(subset_family(priced))
        if PATH in names:
            more += [l1_family(part, label) for label, part in _weighted_by_cost(task, costs)]
        if "forward" in names:
            more.append(_forward_by_cost_family(task, priced.budget))
        families = (*families, *(family.with_validation(held_out) for family in more if family is not None))
    beyond = _beyond_budget(task, path, held_out)
    if beyond is not None and task.budget.columns is not None and "kept" in names:
        contributing = contributing_family(task, beyond)
        families = (*families, *([] if contributing is None else [contributing.with_validation(held_out)]))
    return families, beyond


def _plain_families(
    task: FamilyTask, held_out: HeldOut, names: Sequence[str]
) -> tuple[Family, tuple[Family, ...]]:
    path = _extended_path(task, held_out)
    others: dict[str, Family | None] = {}
    for name in names:
        if name == "kept":
            others[name] = kept_family(task, path, others.get("log"))
        elif name != PATH:
            others[name] = FAMILIES[name](task, path)
    evaluated = [family.with_validation(held_out) for family in others.values() if family is not None]
    return path, (*((path,) if PATH in names else ()), *evaluated)


def _extended_path(task: FamilyTask, held_out: HeldOut) -> Family:
    """The ℓ1 path, extended to smaller α while its best point is near its end."""
    path = _first_path(task, held_out)
    for _ in range(MAX_EXTENSIONS):
        if path.cut_off or task.alphas is not None or not _best_at_end(path, _extension_factor(task)):
            break
        n_more = _points_per_extension(task)
        grid = path.strengths[-1] * np.geomspace(1.0, 1.0 / _extension_factor(task), n_more + 1)[1:]
        path = path.then(l1_family(task, grid=grid, start=path.coefs[-1]).with_validation(held_out))
    if not path.cut_off and int(np.argmax(validation_of(path).mean)) == len(path) - 1 > 0:
        warn_caller(
            f"the best point of the path is its last one, α = {path.strengths[-1]:.3g} with "
            f"{path.n_nonzero[-1]} features; try smaller `alphas`"
        )
    return path


def _first_path(task: FamilyTask, held_out: HeldOut) -> Family:
    """The ℓ1 path over the grid; of curves only until the best point is no longer near its end.

    Small α give curves thousands of steps, which take most of the time.
    """
    if task.budget.columns is None or task.alphas is not None:
        return l1_family(task).with_validation(held_out)
    start, grid = path_grid(task.objective, task.penalty, task.n_alphas, None, task.min_ratio)
    n_more, end = _points_per_extension(task), task.path_end
    path = l1_family(task, grid=grid[: 2 * n_more], start=start).with_validation(held_out)
    for alpha in grid[2 * n_more :]:
        if end is not None and np.count_nonzero(path.n_nonzero > end) > task.window // 2:
            return replace(path, cut_off=True)
        if path.cut_off or (path.n_nonzero.any() and not _best_at_end(path, CURVE_EXTENSION_FACTOR)):
            break
        part = l1_family(task, grid=np.array([alpha]), start=path.coefs[-1])
        path = path.then(part.with_validation(held_out))
    return path


def _extension_factor(task: FamilyTask) -> float:
    return EXTENSION_FACTOR if task.budget.columns is None else CURVE_EXTENSION_FACTOR


def _points_per_extension(task: FamilyTask) -> int:
    points = np.log(_extension_factor(task)) / -np.log(task.min_ratio) * (task.n_alphas - 1)
    return max(1, round(float(points)))


def _best_at_end(path: Family, factor: float) -> bool:
    """Whether the α of the best model is less than ``factor`` times the last α."""
    alphas = path.strengths
    best = alphas[np.argmax(validation_of(path).mean)]
    return bool(path.n_nonzero.any() and best < (1.0 - GRID_ROUNDING) * factor * alphas[-1])


def _beyond_budget(task: FamilyTask, path: Family, held_out: HeldOut) -> Family | None:
    """Models of the path beyond the budget, in coarse steps of α, until they stop improving."""
    if not path.cut_off:
        return None
    free = replace(task.without_limit(), tol=max(task.tol, COARSE_TOL))
    family, last = None, path
    factor = COARSE_FACTOR if task.budget.columns is None else CURVE_COARSE_FACTOR
    for step in range(1, MAX_COARSE_STEPS + 1):
        grid = path.strengths[-1:] / factor**step
        last = l1_family(free, grid=grid, start=last.coefs[-1]).with_validation(held_out)
        family = last if family is None else family.then(last)
        if np.argmax(validation_of(family).mean) < step - 1:
            break
    return family


def _weighted_by_cost(task: FamilyTask, costs: ColumnCosts) -> Iterator[tuple[str, FamilyTask]]:
    """(label, the task with its ℓ1 weights multiplied by cost^γ) for each γ."""
    if not isinstance(task.penalty, L1):
        return
    plain = np.ones(len(costs.unit)) if task.penalty.weights is None else task.penalty.weights
    for power in COST_POWERS:
        penalty = replace(task.penalty, weights=plain * cost_weights(costs, power))
        yield f"{PATH} × cost^{power:g}", replace(task, penalty=penalty)


def cost_weights(costs: ColumnCosts, power: float) -> FloatArray:
    """(cost/mean)^γ with the geometric mean; costs are at least a hundredth of the largest one."""
    each = costs.of_each
    if not each.any():
        return np.ones(len(each))
    size = np.log(np.maximum(each, MIN_COST_SHARE * each.max()))
    return np.asarray(np.exp(power * (size - size.mean())))


def _forward_by_cost_family(task: FamilyTask, budget: Budget) -> Family | None:
    """Forward selection for each number of features and each cost up to the limit of the budget.

    The version of a set without a fold is the best set selected there for the same cost. Held-out values are
    averaged over the set and the best sets with one feature fewer and one more for at most the same cost.
    """
    most, window, end = size_limits(task)
    limit = np.inf if budget.max_cost is None else budget.max_cost
    report, searches = task.progress.next(), task.forward

    def select(fold: int | None) -> list[list[CostedSet]]:
        return searches[fold].sets_by_cost(end, budget, limit, report if fold is None else None)

    by_size, *by_fold = task.searched([None, *task.searched_folds], select)
    sets = [(size, one) for size, same_size in enumerate(by_size) for one in same_size]
    if not sets:
        return None
    index = {id(one): k for k, (_, one) in enumerate(sets)}
    neighbours = np.eye(len(sets), dtype=bool)
    for k, (size, one) in enumerate(sets):
        for same_size in by_size[max(0, size - window // 2) : size + window // 2 + 1]:
            other = _best_within(same_size, one.cost)
            if other is not None and (index[id(other)] < k or other.result.objective < one.result.objective):
                neighbours[k, index[id(other)]] = True
    penalty, candidates = task.ridge(searches[None].ridge), []
    for size, one in sets:
        fold_coefs = np.array([_weights(sets_of, size, one) for sets_of in by_fold]) if by_fold else None
        candidates.append(Candidate.of(one.result, penalty, fold_coefs))
    n_incomplete = sum(len(one.chosen) > most for _, one in sets)
    return Family("forward by cost", candidates, window, neighbour_mask=neighbours, n_incomplete=n_incomplete)


def _best_within(same_size: Sequence[CostedSet], cost: float) -> CostedSet | None:
    """The most expensive set, and so the best, that costs at most ``cost``."""
    return next((one for one in reversed(same_size) if one.cost <= cost), None)


def _weights(by_size: Sequence[Sequence[CostedSet]], size: int, like: CostedSet) -> FloatArray:
    """Weights of the best set of ``size`` features, or of the next smaller size, for the cost of ``like``."""
    affordable = (_best_within(same_size, like.cost) for same_size in reversed(by_size[: size + 1]))
    return next((one.result.w for one in affordable if one is not None), np.zeros_like(like.result.w))


def _can_leave_zero(task: FamilyTask) -> BoolArray:
    """Features that vary within queries and whose sign allows a step against the gradient at w = 0."""
    objective = task.objective
    g = objective.gradient(objective.at_zero)
    follows = np.isfinite(task.penalty.slopes(len(g)).facing(g))
    return np.asarray(objective.varies & follows & (g != 0))
