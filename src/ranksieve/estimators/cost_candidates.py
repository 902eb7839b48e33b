"""Candidates that know what features cost: paths whose ℓ1 weighs the costs, and sets bought for every cost.

Those within a budget do not depend on it, so that a larger budget has all candidates of a smaller one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ranksieve._types import BoolArray, FloatArray
from ranksieve.data.costs import ColumnCosts
from ranksieve.errors import ParameterError
from ranksieve.estimators.candidates import Family, plain_families
from ranksieve.estimators.choice import Budget, fits
from ranksieve.estimators.families import (
    PATH,
    Fitted,
    Task,
    l1_family,
    ridge_of,
    sizes_of,
    subset_family,
)
from ranksieve.estimators.held_out import HeldOut
from ranksieve.forward import Purchase
from ranksieve.path import collect
from ranksieve.penalties import L1

POWERS = (0.5, 1.0)
LEAST_SHARE = 0.01  # of the largest cost: a smaller one, also 0, counts as this in the ℓ1 weights


def families_by_cost(
    task: Task, held_out: HeldOut, names: Sequence[str], budget: Budget, costs: ColumnCosts
) -> tuple[Fitted, tuple[Family, ...]]:
    """(the plain path, the plain families and those that know the costs).

    Paths with ℓ1 weights v_j·cost^γ for each γ of ``POWERS``, and sets of features bought for every cost up
    to the budget; a group is paid with its first feature, so its others cost nothing more.
    """
    usable = usable_gradient(task)
    fixed = np.isin(np.arange(len(usable)), task.rules.fixed)
    check_affordable(budget, costs, usable, fixed)
    path, plain = plain_families(task, held_out, [name for name in names if name != "subset"])
    families = [*plain]
    limit = np.inf if budget.max_cost is None else budget.max_cost
    if "subset" in names:
        best = subset_family(replace(task, rules=task.rules.priced(costs, limit)))
        families += [] if best is None else [Family.of(best, held_out)]
    if PATH in names:
        families += [Family.of(l1_family(part, label), held_out) for label, part in weighted(task, costs)]
    if "forward" in names:
        bought = bought_family(task, costs, limit)
        families += [] if bought is None else [Family.of(bought, held_out)]
    return path, tuple(families)


def weighted(task: Task, costs: ColumnCosts) -> Iterator[tuple[str, Task]]:
    """The task with its ℓ1 weights times cost^γ."""
    if not isinstance(task.penalty, L1):
        return
    given = np.ones(len(costs.unit)) if task.penalty.weights is None else task.penalty.weights
    for power in POWERS:
        penalty = replace(task.penalty, weights=given * cost_weights(costs, power))
        yield f"{PATH} × cost^{power:g}", replace(task, penalty=penalty)


def bought_family(task: Task, costs: ColumnCosts, limit: float) -> Fitted | None:
    """Sets of each number of features, by rising cost up to ``limit``.

    Without a fold, a set stands for what its cost buys there. It is averaged with the best sets of one
    feature fewer and one more that its cost buys.
    """
    most, window, end = sizes_of(task)
    rules, report = task.rules.priced(costs, np.inf), task.progress.next()

    def bought(fold: int | None) -> list[list[Purchase]]:
        return task.forward.search(task, fold).purchases(end, rules, limit, report)

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
    without = None
    if task.folds is not None:
        parts = [bought(fold) for fold in task.folds.dealings[0]]
        without = np.array([[_weights(part, size, one) for part in parts] for size, one in sets])
    ridge = task.forward.search(task, None).ridge
    models = collect(np.full(len(sets), ridge), [one.result for _, one in sets], task.names)
    lacking = sum(len(one.chosen) > most for _, one in sets)
    penalties = [ridge_of(task, ridge)] * len(sets)
    return Fitted("forward by cost", models, penalties, without, window, near=near, lacking=lacking)


def _within(taken: Sequence[Purchase], cost: float) -> Purchase | None:
    """The dearest set, and so the best, that costs at most ``cost``."""
    return next((one for one in reversed(taken) if one.cost <= cost), None)


def _weights(sizes: Sequence[Sequence[Purchase]], size: int, like: Purchase) -> FloatArray:
    """The weights of what the cost of a set buys in other data: of its size, else of the next smaller one."""
    within = (_within(taken, like.cost) for taken in reversed(sizes[: size + 1]))
    return next((one.result.w for one in within if one is not None), np.zeros_like(like.result.w))


def cost_weights(costs: ColumnCosts, power: float) -> FloatArray:
    """(cost/mean)^γ with the geometric mean of the costs, none below a hundredth of the largest."""
    each = costs.of_each
    if not each.any():
        return np.ones(len(each))
    size = np.log(np.maximum(each, LEAST_SHARE * each.max()))
    return np.asarray(np.exp(power * (size - size.mean())))


def usable_gradient(task: Task) -> FloatArray:
    """|∂f/∂w_j| at w = 0 for features that vary within queries and whose weight may follow, else 0."""
    objective = task.objective
    g = objective.gradient(objective.at_zero)
    follows = np.isfinite(task.penalty.slopes(len(g)).facing(g))
    return np.where(objective.varies & follows, np.abs(g), 0.0)


def check_affordable(budget: Budget, costs: ColumnCosts, usable: FloatArray, must_have: BoolArray) -> None:
    """Refuse a budget that nothing fits into, naming the least that would do."""
    if budget.max_cost is None or not usable.any():  # without any usable feature the path says why
        return
    if usable[must_have].any():
        least = costs.of(must_have)
        why = f"must_have alone costs {least:g}"
    else:
        added = np.where(np.isin(costs.unit, costs.unit[must_have]), 0.0, costs.of_each)
        cheapest = int(np.argmin(np.where(usable > 0, added, np.inf)))
        least = costs.of(np.append(np.flatnonzero(must_have), cheapest))
        name = repr(costs.labels[costs.unit[cheapest]])
        alone = f"{name} alone costs {least:g} and is the cheapest"
        why = f"{name} is the cheapest and costs {least:g} with `must_have`" if must_have.any() else alone
    if not fits(least, budget.max_cost):
        reason = f"buys no feature to rank by: {why}; give at least {least:g}"
        raise ParameterError("max_cost", budget.max_cost, reason)
