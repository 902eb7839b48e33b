"""Candidates under a cost budget: paths that weigh the costs, and paths over the features it can pay for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve.data.costs import ColumnCosts
from ranksieve.estimators.candidates import Family, Recipe, Search
from ranksieve.estimators.choice import Budget, fits
from ranksieve.objective import make_objective
from ranksieve.path import SparsePath, as_penalty

POWERS = (0.0, 0.5, 1.0)
LEAST_SHARE = 0.01  # of the largest cost: a smaller one, also 0, counts as this in the ℓ1 weights


def families_by_cost(
    search: Search, base: Recipe, budget: Budget, costs: ColumnCosts, must_have: BoolArray, n_budgets: int = 1
) -> tuple[Family, ...]:
    """Families that know the costs.

    Weighted paths: ℓ1 weights cost^γ for each γ of ``POWERS``, γ = 0 being the plain path. Restricted paths:
    for each of these and each of ``n_budgets`` limits, cost units are selected in the order in which they
    enter the path, those of the columns ``must_have`` first, each one that still fits the limit; then a plain
    path uses the features of the selected units and no others. There a group is paid already, so its other
    features cost nothing more.
    """
    usable = usable_gradient(search, base)
    check_affordable(budget, costs, usable, must_have)
    recipes = list(weighted_recipes(base, costs))
    search.count.n_fits = len(recipes) * (1 + search.n_folds)
    weighted = [search.family(recipe) for recipe in recipes]
    restricted: dict[bytes, Recipe] = {}
    for limit in cost_limits(budget, costs, usable, n_budgets):
        for family in weighted:
            kept = affordable_columns(entry_order(family.path, usable, costs), costs, limit, must_have)
            if (kept & (usable > 0)).any():
                label = f"{family.label}, features within {limit:g}"
                weights = np.where(kept, _given_weights(base, len(kept)), np.inf)
                restricted.setdefault(kept.tobytes(), base.with_weights(label, weights))
    search.count.n_fits += len(restricted) * (1 + search.n_folds)
    return (*weighted, *(search.family(recipe) for recipe in restricted.values()))


def weighted_recipes(base: Recipe, costs: ColumnCosts) -> Iterator[Recipe]:
    """The recipe with its ℓ1 weights times cost^γ."""
    for power in POWERS:
        label = f"{base.label} × cost^{power:g}" if power else base.label
        yield base.with_weights(label, _given_weights(base, len(costs.unit)) * cost_weights(costs, power))


def cost_weights(costs: ColumnCosts, power: float) -> FloatArray:
    """(cost/mean)^γ with the geometric mean of the costs, none below a hundredth of the largest."""
    each = costs.of_each
    if not each.any():
        return np.ones(len(each))
    size = np.log(np.maximum(each, LEAST_SHARE * each.max()))
    return np.asarray(np.exp(power * (size - size.mean())))


def usable_gradient(search: Search, base: Recipe) -> FloatArray:
    """|∂f/∂w_j| at w = 0 for features that vary within queries and whose weight may follow, else 0."""
    options, objective = base.options, make_objective(search.data, query_weight=search.query_weight)
    g = objective.gradient(objective.at_zero)
    penalty = as_penalty(options["penalty"], options["weights"], options["l1_ratio"], options["signs"])
    follows = np.isfinite(penalty.slopes(len(g)).facing(g))
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


def cost_limits(budget: Budget, costs: ColumnCosts, usable: FloatArray, n_budgets: int) -> Sequence[float]:
    """``max_cost`` alone; or limits from the cheapest unit to it (without it: to all), evenly in log."""
    if n_budgets == 1:
        return [] if budget.max_cost is None else [budget.max_cost]
    most = costs.of(usable > 0) if budget.max_cost is None else budget.max_cost
    paid = usable * costs.of_each > 0
    least = float(costs.of_each[paid].min()) if paid.any() else most
    return [most] if least >= most else np.geomspace(least, most, n_budgets).tolist()


def entry_order(path: SparsePath, usable: FloatArray, costs: ColumnCosts) -> IntArray:
    """Units in the order in which they enter the path, then the other usable ones, the cheapest first."""
    used = path.coefs != 0
    entry = np.where(used.any(axis=0), used.argmax(axis=0), len(path))
    earliest, of_use = np.full(len(costs.prices), len(path)), np.zeros(len(costs.prices), dtype=bool)
    np.minimum.at(earliest, costs.unit, entry)
    np.logical_or.at(of_use, costs.unit, usable > 0)
    order = np.lexsort((costs.prices, earliest))
    return np.asarray(order[of_use[order]])


def affordable_columns(order: IntArray, costs: ColumnCosts, limit: float, must_have: BoolArray) -> BoolArray:
    """Columns of the selected units: those of ``must_have``, then each in ``order`` that still fits."""
    selected = np.zeros(len(costs.prices), dtype=bool)
    selected[costs.unit[must_have]] = True
    for unit in order:
        if fits(costs.prices[selected].sum() + costs.prices[unit] * (not selected[unit]), limit):
            selected[unit] = True
    return np.asarray(selected[costs.unit])


def _given_weights(base: Recipe, n_features: int) -> FloatArray:
    weights = base.options["weights"]
    return np.ones(n_features) if weights is None else np.asarray(weights, dtype=np.float64)
