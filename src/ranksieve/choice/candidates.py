"""Candidate models: families fitted on the training data, each model measured on held-out queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ranksieve._types import BoolArray, FloatArray
from ranksieve._util.messages import warn_caller
from ranksieve.choice.budget import (
    Budget,
    Confidence,
    Rule,
    chosen_again,
    fits,
    interval,
    tied_with,
)
from ranksieve.choice.families import (
    FAMILIES,
    PATH,
    Fitted,
    Task,
    l1_family,
    ridge_of,
    sizes_of,
    subset_family,
)
from ranksieve.choice.forward import Purchase
from ranksieve.choice.held_out import HeldOut, Validation
from ranksieve.data.costs import ColumnCosts
from ranksieve.errors import ParameterError
from ranksieve.path import SparsePath, collect
from ranksieve.penalties import L1

EXTENSION = 10.0**0.5  # the factor by which a grid goes on, as long as its best point is within it of its end
MAX_EXTENSIONS = 6
COARSE = 5.0  # beyond the budget a path goes on in steps of this factor, to see what the budget costs
MAX_COARSE = 5
COARSE_TOL = 1e-4
ROUNDING = 1e-9  # of quotients of α


@dataclass(frozen=True, eq=False)
class Family:
    """A family of models and how they rank held-out queries."""

    fitted: Fitted
    validation: Validation

    @classmethod
    def of(cls, fitted: Fitted, held_out: HeldOut) -> Family:
        """Measure what was fitted."""
        return cls(fitted, held_out.measure(fitted))

    def then(self, other: Family) -> Family:
        """This family, continued by another."""
        fitted, values = self.fitted.then(other.fitted), [self.validation.values, other.validation.values]
        return Family(
            fitted, replace(other.validation, values=np.concatenate(values), near=fitted.neighbours)
        )

    @property
    def label(self) -> str:
        return self.fitted.label

    @property
    def models(self) -> SparsePath:
        return self.fitted.models


@dataclass(frozen=True, eq=False)
class Candidates:
    """All models that a choice is made from, and the budget that limits it.

    ``beyond`` holds models that exceed the budget, to compare with; a fit without a budget has more of them.
    ``preferred`` is the model to keep unless another one is better by more than chance, which none is.
    """

    families: tuple[Family, ...]
    budget: Budget
    beyond: Family | None = None
    preferred: int | None = None

    @property
    def coefs(self) -> FloatArray:
        """Weights, one row per model, family after family."""
        return np.concatenate([family.models.coefs for family in self.families])

    @property
    def values(self) -> FloatArray:
        """Held-out metric, averaged over neighbours (models × queries)."""
        return np.concatenate([family.validation.smoothed for family in self.families])

    @property
    def allowed(self) -> BoolArray:
        """Which models may be chosen: those within the budget that have neighbours to be averaged with."""
        complete = [np.arange(len(family.models)) < family.fitted.complete for family in self.families]
        return self.budget.allows(self.coefs) & np.concatenate(complete)

    def choose(self, rule: Rule) -> int:
        """The model (row) that ``rule`` prefers among those that may be chosen."""
        if self.preferred is not None:
            return self.preferred
        points = np.flatnonzero(self.allowed)
        if len(points) == 0:
            raise self.budget.nothing_fits()
        coefs = self.coefs[points]
        return int(points[rule(self.values[points], self.budget.sizes(coefs))])

    def place(self, row: int) -> tuple[Family, int]:
        """The family of a model, and its number there."""
        for family in self.families:
            if row < len(family.models):
                return family, row
            row -= len(family.models)
        raise IndexError(row)

    def confidence(self, chosen: int, seed: int) -> Confidence:
        """How sure the choice is."""
        points, used = np.flatnonzero(self.allowed), np.count_nonzero(self.coefs, axis=1)
        values = self.values[points]
        tied = points[tied_with(values, int(np.searchsorted(points, chosen)))]
        again = points[chosen_again(values, self.budget.sizes(self.coefs[points]), seed)]
        family, k = self.place(chosen)
        own, (best, best_features, beyond) = family.validation.values[k], self.best()
        return Confidence(
            *interval(own), len(own), len(tied) - 1, int(used[tied].min()),
            np.mean([self._uses(row) for row in again], axis=0), *interval(best - own), best_features, beyond,
        )  # fmt: skip

    def _uses(self, row: int) -> FloatArray:
        """How often a model uses each feature: the share of its versions without each fold that do."""
        family, k = self.place(row)
        without = family.fitted.without
        versions = family.models.coefs[k][None] if without is None else without[k]
        return np.asarray(np.mean(versions != 0, axis=0))

    def densest(self) -> tuple[FloatArray, int]:
        """The held-out values of the model with the most features, and how many these are."""
        family = max(self.families, key=lambda one: int(one.models.n_nonzero.max()))
        k = int(np.argmax(family.models.n_nonzero))
        return family.validation.values[k], int(family.models.n_nonzero[k])

    def best(self) -> tuple[FloatArray, int, bool]:
        """Of models that may be chosen or are beyond the budget the best: values, features, is it beyond."""
        families = [*self.families, *([] if self.beyond is None else [self.beyond])]
        mean = np.concatenate([family.validation.mean for family in families])
        used = np.concatenate([family.models.n_nonzero for family in families])
        values = np.concatenate([family.validation.values for family in families])
        within = self.budget.allows(np.concatenate([family.models.coefs for family in families]))
        allowed = np.append(self.allowed, np.zeros(len(within) - len(self.allowed), dtype=bool))
        mean[within & ~allowed | (used == 0)] = -np.inf
        best = int(np.lexsort((used, -mean))[0])
        return values[best], int(used[best]), not within[best]


def plain_families(task: Task, held_out: HeldOut, names: Sequence[str]) -> tuple[Fitted, tuple[Family, ...]]:
    """(the path, the families of these names in FAMILIES)."""
    path, measured = extended_path(task, held_out)
    fitted = (FAMILIES[name](task, path) for name in names if name != PATH)
    first = (measured,) if PATH in names else ()
    return path, (*first, *(Family.of(family, held_out) for family in fitted if family is not None))


def extended_path(task: Task, held_out: HeldOut) -> tuple[Fitted, Family]:
    """The path; if its end is the best of it, its grid goes on to smaller α."""
    path = l1_family(task)
    family = Family.of(path, held_out)
    for _ in range(MAX_EXTENSIONS):
        if path.ended or task.alphas is not None or not _best_at_end(family):
            break
        n_more = max(1, round(np.log(EXTENSION) / -np.log(task.min_ratio) * (task.n_alphas - 1)))
        grid = path.models.alphas[-1] * np.geomspace(1.0, 1.0 / EXTENSION, n_more + 1)[1:]
        family = family.then(Family.of(l1_family(task, grid=grid, start=path.models.coefs[-1]), held_out))
        path = family.fitted
    if not path.ended and int(np.argmax(family.validation.mean)) == len(path.models) - 1 > 0:
        warn_caller(
            f"the best point of the path is its last, α = {path.models.alphas[-1]:.3g} with "
            f"{path.models.n_nonzero[-1]} features; smaller `alphas` may be better still"
        )
    return path, family


def _best_at_end(family: Family) -> bool:
    """Whether the best model of a path is so near its end that a better one may lie beyond."""
    best = family.models.alphas[np.argmax(family.validation.mean)]
    reach = (1.0 - ROUNDING) * EXTENSION  # a whole extension from the end is not near it
    return bool(family.models.n_nonzero.any() and best < reach * family.models.alphas[-1])


def beyond_budget(task: Task, path: Fitted, held_out: HeldOut) -> Family | None:
    """Models of the path that exceed the budget, in coarse steps of α, as long as they become better."""
    if not path.ended:
        return None
    free = replace(task, most=None, window=1, tol=max(task.tol, COARSE_TOL))
    family, last = None, path
    for step in range(1, MAX_COARSE + 1):
        grid = path.models.alphas[-1:] / COARSE**step
        last = l1_family(free, grid=grid, start=last.models.coefs[-1])
        point = Family.of(last, held_out)
        family = point if family is None else family.then(point)
        if np.argmax(family.validation.mean) < step - 1:
            break
    return family


def warn_if_blind(families: Iterable[Family]) -> None:
    """Warn when the metric cannot tell any candidate from another."""
    validations = [family.validation for family in families]
    mean, first = np.concatenate([v.values.mean(axis=1) for v in validations]), validations[0]
    if len(mean) > 1 and np.ptp(mean) == 0:
        warn_caller(
            f"{first.metric} ({first.profile.name} profile) is {mean[0]:.4g} for every candidate, so it "
            "cannot guide the choice; use another `metric` or `profile` (letor gives lists shorter than k an "
            "NDCG@k of 0)"
        )


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
