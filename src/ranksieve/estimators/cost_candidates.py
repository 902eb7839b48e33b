"""Candidates that know what features cost: paths whose ℓ1 weighs the costs, and sets bought for budgets.

None of them depends on the budget at hand, so that a larger budget has all candidates of a smaller one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ranksieve._types import BoolArray, FloatArray
from ranksieve.data.costs import ColumnCosts
from ranksieve.estimators.candidates import Family, plain_families
from ranksieve.estimators.choice import Budget, fits
from ranksieve.estimators.families import (
    PATH,
    Fitted,
    Task,
    forward_family,
    l1_family,
    subset_family,
)
from ranksieve.estimators.held_out import HeldOut
from ranksieve.penalties import L1

POWERS = (0.5, 1.0)
RANGE = 50.0  # times the smallest limit is the cost of all features, unless the cheapest costs more than that
LEAST_SHARE = 0.01  # of the largest cost: a smaller one, also 0, counts as this in the ℓ1 weights


def families_by_cost(
    task: Task, held_out: HeldOut, names: Sequence[str], budget: Budget, costs: ColumnCosts, n_budgets: int
) -> tuple[Fitted, tuple[Family, ...]]:
    """(the plain path, the plain families and those that know the costs).

    Paths with ℓ1 weights v_j·cost^γ for each γ of ``POWERS``. Forward selections within each of ``n_budgets``
    limits up to the cost of all features, evenly in their logarithm, by gain and by gain per cost; a group is
    paid with its first feature, so its others cost nothing more.
    """
    usable = usable_gradient(task)
    fixed = np.isin(np.arange(len(usable)), task.rules.fixed)
    check_affordable(budget, costs, usable, fixed)
    path, plain = plain_families(task, held_out, [name for name in names if name != "subset"])
    families = [*plain]
    if "subset" in names:
        limit = np.inf if budget.max_cost is None else budget.max_cost
        best = subset_family(replace(task, rules=task.rules.priced(costs, limit)))
        families += [] if best is None else [Family.of(best, held_out)]
    if PATH in names:
        families += [Family.of(l1_family(part, label), held_out) for label, part in weighted(task, costs)]
    if "forward" in names:
        limits = cost_limits(costs, usable, fixed, n_budgets)
        within = [limit for limit in limits if budget.max_cost is None or fits(limit, budget.max_cost)]
        bought = (_bought(task, costs, limit, power) for limit in within for power in (0.0, 1.0))
        families += [Family.of(family, held_out) for family in bought if family is not None]
    return path, tuple(families)


def weighted(task: Task, costs: ColumnCosts) -> Iterator[tuple[str, Task]]:
    """The task with its ℓ1 weights times cost^γ."""
    if not isinstance(task.penalty, L1):
        return
    given = np.ones(len(costs.unit)) if task.penalty.weights is None else task.penalty.weights
    for power in POWERS:
        penalty = replace(task.penalty, weights=given * cost_weights(costs, power))
        yield f"{PATH} × cost^{power:g}", replace(task, penalty=penalty)


def _bought(task: Task, costs: ColumnCosts, limit: float, power: float) -> Fitted | None:
    rules = replace(task.rules.priced(costs, limit), power=power)
    label = f"forward within {limit:g}" if power == 0 else f"forward by cost within {limit:g}"
    return forward_family(replace(task, rules=rules), label=label)


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
        why = f"{name} is the cheapest and costs {least:g} with must_have" if must_have.any() else alone
    if not fits(least, budget.max_cost):
        raise ValueError(
            f"max_cost={budget.max_cost:g} buys nothing to rank by: {why}; "
            f"raise max_cost to at least {least:g}"
        )


def cost_limits(
    costs: ColumnCosts, usable: FloatArray, must_have: BoolArray, n_budgets: int
) -> Sequence[float]:
    """The least that buys anything, and limits up to the cost of all features, evenly in their logarithm."""
    base, most = costs.of(must_have), costs.of((usable > 0) | must_have)
    added = np.where(np.isin(costs.unit, costs.unit[must_have]), 0.0, costs.of_each)[usable > 0]
    least = base + float(np.min(added, initial=np.inf))
    paid = base + float(np.min(added[added > 0], initial=np.inf))
    first = max(paid, most / RANGE)
    ladder = np.geomspace(first, most, n_budgets).tolist() if 0 < first < most else []
    return sorted({min(least, most), *ladder, most})
