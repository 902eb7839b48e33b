"""Candidates under a cost budget: paths that see the costs, and paths over what the budget can buy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve.data.costs import ColumnCosts
from ranksieve.data.matrix import largest_of_columns
from ranksieve.estimators.candidates import Family, Recipe, Search
from ranksieve.estimators.choice import Budget, fits
from ranksieve.objective import make_objective
from ranksieve.path import Path, as_penalty

POWERS = (0.0, 0.5, 1.0)
ROUNDING = 1e-12  # share of the largest value of a feature that its mean gradient may be off by
LEAST_SHARE = 0.01  # of the largest cost: a smaller one, also 0, counts as this in the ℓ1 weights


def families_by_cost(
    search: Search, base: Recipe, budget: Budget, costs: ColumnCosts, first: BoolArray, n_budgets: int = 1
) -> tuple[Family, ...]:
    """Families that know the costs.

    Weighted paths: ℓ1 weights cost^γ for each γ of ``POWERS``, γ = 0 being the plain path. Bought paths: for
    each of these and each of ``n_budgets`` limits, units are bought in the order in which they enter the
    path, those of the columns ``first`` before all, each one that still fits; then a plain path uses the
    features of the bought units and no others. There a group is paid already, so its other features come for
    nothing.
    """
    pull = useful_pull(search, base)
    check_affordable(budget, costs, pull, first)
    recipes = list(weighted_recipes(base, costs))
    search.count.n_fits = len(recipes) * (1 + search.n_folds)
    weighted = [search.family(recipe) for recipe in recipes]
    baskets: dict[bytes, Recipe] = {}
    for limit in budget_steps(budget, costs, pull, n_budgets):
        for family in weighted:
            bought = buy(entry_order(family.path, pull, costs), costs, limit, first)
            if (bought & (pull > 0)).any():
                label = f"{family.label}, bought for {limit:g}"
                baskets.setdefault(bought.tobytes(), restricted(base, bought, label))
    search.count.n_fits += len(baskets) * (1 + search.n_folds)
    return (*weighted, *(search.family(recipe) for recipe in baskets.values()))


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


def restricted(base: Recipe, columns: BoolArray, label: str) -> Recipe:
    """The recipe with every other column forbidden."""
    return base.with_weights(label, np.where(columns, _given_weights(base, len(columns)), np.inf))


def useful_pull(search: Search, base: Recipe) -> FloatArray:
    """|∂f/∂w_j| at w = 0 where w_j may follow, else 0: a feature without it cannot rank on its own.

    What is below the rounding of the sum counts as 0: a feature that is constant within queries.
    """
    options, objective = base.options, make_objective(search.data, query_weight=search.query_weight)
    g = objective.gradient(objective.at_zero)
    penalty = as_penalty(options["penalty"], options["weights"], options["l1_ratio"], options["signs"])
    follows = np.isfinite(penalty.slopes(len(g)).facing(g)) & (
        np.abs(g) > ROUNDING * largest_of_columns(objective.X)
    )
    return np.where(follows, np.abs(g), 0.0)


def check_affordable(budget: Budget, costs: ColumnCosts, pull: FloatArray, first: BoolArray) -> None:
    """Refuse a budget that nothing fits into, naming the least that would do."""
    if budget.max_cost is None or not pull.any():  # without any pull the path says why
        return
    if pull[first].any():
        least = costs.of(first)
        why = f"must_have alone costs {least:g}"
    else:
        cheapest = _cheapest(costs, pull, first)
        least = costs.of(np.append(np.flatnonzero(first), cheapest))
        name = repr(costs.labels[costs.unit[cheapest]])
        alone = f"{name} alone costs {least:g} and is the cheapest"
        why = f"{name} is the cheapest and costs {least:g} with must_have" if first.any() else alone
    if not fits(least, budget.max_cost):
        raise ValueError(
            f"max_cost={budget.max_cost:g} buys nothing to rank by: {why}; "
            f"raise max_cost to at least {least:g}"
        )


def budget_steps(budget: Budget, costs: ColumnCosts, pull: FloatArray, n_budgets: int) -> Sequence[float]:
    """``max_cost`` alone; or limits from the cheapest unit to it (without it: to all), evenly in log."""
    if n_budgets == 1:
        return [] if budget.max_cost is None else [budget.max_cost]
    most = costs.of(pull > 0) if budget.max_cost is None else budget.max_cost
    paid = pull * costs.of_each > 0
    least = float(costs.of_each[paid].min()) if paid.any() else most
    return [most] if least >= most else np.geomspace(least, most, n_budgets).tolist()


def entry_order(path: Path, pull: FloatArray, costs: ColumnCosts) -> IntArray:
    """Units in the order in which they enter the path, then the useful others, the cheapest first."""
    used = path.coefs != 0
    entry = np.where(used.any(axis=0), used.argmax(axis=0), len(path))
    first, useful = np.full(len(costs.prices), len(path)), np.zeros(len(costs.prices), dtype=bool)
    np.minimum.at(first, costs.unit, entry)
    np.logical_or.at(useful, costs.unit, pull > 0)
    order = np.lexsort((costs.prices, first))
    return np.asarray(order[useful[order]])


def buy(order: IntArray, costs: ColumnCosts, limit: float, first: BoolArray) -> BoolArray:
    """Columns of the units bought: those of the columns ``first``, then each in ``order`` that still fits."""
    bought = np.zeros(len(costs.prices), dtype=bool)
    bought[costs.unit[first]] = True
    for unit in order:
        if fits(costs.prices[bought].sum() + costs.prices[unit] * (not bought[unit]), limit):
            bought[unit] = True
    return np.asarray(bought[costs.unit])


def _cheapest(costs: ColumnCosts, pull: FloatArray, paid: BoolArray) -> int:
    """The column that can rank and adds least to the cost of those paid."""
    added = np.where(np.isin(costs.unit, costs.unit[paid]), 0.0, costs.of_each)
    return int(np.argmin(np.where(pull > 0, added, np.inf)))


def _given_weights(base: Recipe, n_features: int) -> FloatArray:
    weights = base.options["weights"]
    return np.ones(n_features) if weights is None else np.asarray(weights, dtype=np.float64)
