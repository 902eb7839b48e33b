"""Where candidates come from: families fitted on the training data and measured on held-out queries."""

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
    l1_family,
    sizes_of,
    subset_family,
)
from ranksieve.choice.forward import Purchase
from ranksieve.choice.held_out import HeldOut
from ranksieve.data.budget import LEAST_COST_SHARE, Budget
from ranksieve.data.costs import ColumnCosts
from ranksieve.errors import warn_caller
from ranksieve.penalties import L1

EXTENSION = 10.0**0.5  # the factor by which a grid goes on, as long as its best point is within it of its end
MAX_EXTENSIONS = 6
COARSE = 5.0  # beyond the budget a path goes on in steps of this factor, to see what the budget costs
MAX_COARSE = 5
COARSE_TOL = 1e-4
GRID_ROUNDING = 1e-9  # relative error of quotients of α
COST_POWERS = (0.5, 1.0)


def find_candidates(
    task: FamilyTask, held_out: HeldOut, names: Sequence[str], budget: Budget
) -> tuple[tuple[Family, ...], Family | None]:
    """(families of these names in FAMILIES, some models that exceed the budget), measured.

    With costs there are also families that know them: paths with ℓ1 weights v_j·cost^γ for each γ of
    ``COST_POWERS``, and sets of features bought for every cost up to the budget; a group is paid with its
    first feature, so its others cost nothing more. The task has the limits of the budget, but not its costs.
    """
    costs = budget.costs
    if costs is None:
        path, families = _plain_families(task, held_out, names)
    else:
        priced = replace(task, budget=replace(task.budget, costs=costs, max_cost=budget.max_cost))
        priced.budget.check_affordable(_may_move(task))
        path, families = _plain_families(task, held_out, [name for name in names if name != "subset"])
        more: list[Family | None] = []
        if "subset" in names:
            more.append(subset_family(priced))
        if PATH in names:
            more += [l1_family(part, label) for label, part in _weighted_by_cost(task, costs)]
        if "forward" in names:
            more.append(_bought_family(task, priced.budget))
        families = (*families, *(family.measured(held_out) for family in more if family is not None))
    return families, _beyond_budget(task, path, held_out)


def _plain_families(
    task: FamilyTask, held_out: HeldOut, names: Sequence[str]
) -> tuple[Family, tuple[Family, ...]]:
    """(the path, the families of these names)."""
    path = _extended_path(task, held_out)
    others = [FAMILIES[name](task, path) for name in names if name != PATH]
    measured = [family.measured(held_out) for family in others if family is not None]
    return path, (*((path,) if PATH in names else ()), *measured)


def _extended_path(task: FamilyTask, held_out: HeldOut) -> Family:
    """The path; if its end is the best of it, its grid goes on to smaller α."""
    path = l1_family(task).measured(held_out)
    for _ in range(MAX_EXTENSIONS):
        if path.cut_off or task.alphas is not None or not _best_at_end(path):
            break
        n_more = max(1, round(np.log(EXTENSION) / -np.log(task.min_ratio) * (task.n_alphas - 1)))
        grid = path.strengths[-1] * np.geomspace(1.0, 1.0 / EXTENSION, n_more + 1)[1:]
        path = path.then(l1_family(task, grid=grid, start=path.coefs[-1]).measured(held_out))
    if not path.cut_off and int(np.argmax(validation_of(path).mean)) == len(path) - 1 > 0:
        warn_caller(
            f"the best point of the path is its last, α = {path.strengths[-1]:.3g} with "
            f"{path.n_nonzero[-1]} features; smaller `alphas` may be better still"
        )
    return path


def _best_at_end(path: Family) -> bool:
    """Whether the best model of a path is so near its end that a better one may lie beyond."""
    alphas = path.strengths
    reach = (1.0 - GRID_ROUNDING) * EXTENSION  # a whole extension from the end is not near it
    best = alphas[np.argmax(validation_of(path).mean)]
    return bool(path.n_nonzero.any() and best < reach * alphas[-1])


def _beyond_budget(task: FamilyTask, path: Family, held_out: HeldOut) -> Family | None:
    """Models of the path that exceed the budget, in coarse steps of α, as long as they become better."""
    if not path.cut_off:
        return None
    free = replace(task.without_limit(), tol=max(task.tol, COARSE_TOL))
    family, last = None, path
    for step in range(1, MAX_COARSE + 1):
        grid = path.strengths[-1:] / COARSE**step
        last = l1_family(free, grid=grid, start=last.coefs[-1]).measured(held_out)
        family = last if family is None else family.then(last)
        if np.argmax(validation_of(family).mean) < step - 1:
            break
    return family


def _weighted_by_cost(task: FamilyTask, costs: ColumnCosts) -> Iterator[tuple[str, FamilyTask]]:
    """The task with its ℓ1 weights times cost^γ."""
    if not isinstance(task.penalty, L1):
        return
    plain = np.ones(len(costs.unit)) if task.penalty.weights is None else task.penalty.weights
    for power in COST_POWERS:
        penalty = replace(task.penalty, weights=plain * cost_weights(costs, power))
        yield f"{PATH} × cost^{power:g}", replace(task, penalty=penalty)


def cost_weights(costs: ColumnCosts, power: float) -> FloatArray:
    """(cost/mean)^γ with the geometric mean of the costs, none below a hundredth of the largest."""
    each = costs.of_each
    if not each.any():
        return np.ones(len(each))
    size = np.log(np.maximum(each, LEAST_COST_SHARE * each.max()))
    return np.asarray(np.exp(power * (size - size.mean())))


def _bought_family(task: FamilyTask, budget: Budget) -> Family | None:
    """Sets of each number of features, by rising cost up to the limit of the budget.

    Without a fold, a set stands for what its cost buys there. It is averaged with the best sets of one
    feature fewer and one more that its cost buys.
    """
    most, window, end = sizes_of(task)
    limit = np.inf if budget.max_cost is None else budget.max_cost
    report = task.progress.next()

    def bought(fold: int | None) -> list[list[Purchase]]:
        return task.forward[fold].purchases(end, budget, limit, report)

    sizes = bought(None)
    sets = [(size, one) for size, taken in enumerate(sizes) for one in taken]
    if not sets:
        return None
    place = {id(one): k for k, (_, one) in enumerate(sets)}
    near = np.eye(len(sets), dtype=bool)
    for k, (size, one) in enumerate(sets):
        for taken in sizes[max(0, size - window // 2) : size + window // 2 + 1]:
            other = _within(taken, one.cost)
            if other is not None and (place[id(other)] < k or other.result.objective < one.result.objective):
                near[k, place[id(other)]] = True
    parts = [] if task.folds is None else [bought(fold) for fold in task.folds.dealings[0]]
    penalty, candidates = task.ridge(task.forward[None].ridge), []
    for size, one in sets:
        fold_coefs = np.array([_weights(part, size, one) for part in parts]) if parts else None
        candidates.append(Candidate.of(one.result, penalty, fold_coefs))
    lacking = sum(len(one.chosen) > most for _, one in sets)
    return Family("forward by cost", candidates, window, near=near, lacking=lacking)


def _within(taken: Sequence[Purchase], cost: float) -> Purchase | None:
    """The dearest set, and so the best, that costs at most ``cost``."""
    return next((one for one in reversed(taken) if one.cost <= cost), None)


def _weights(sizes: Sequence[Sequence[Purchase]], size: int, like: Purchase) -> FloatArray:
    """The weights of what the cost of a set buys in other data: of its size, else of the next smaller one."""
    within = (_within(taken, like.cost) for taken in reversed(sizes[: size + 1]))
    return next((one.result.w for one in within if one is not None), np.zeros_like(like.result.w))


def _may_move(task: FamilyTask) -> BoolArray:
    """Features that vary within queries and whose weight may follow the gradient at w = 0."""
    objective = task.objective
    g = objective.gradient(objective.at_zero)
    follows = np.isfinite(task.penalty.slopes(len(g)).facing(g))
    return np.asarray(objective.varies & follows & (g != 0))
