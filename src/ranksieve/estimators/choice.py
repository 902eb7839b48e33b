"""Choose a point of a path by how it ranks queries it has not seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from ranksieve._types import AnyArray, BoolArray, FloatArray, IntArray
from ranksieve._util.messages import warn_caller
from ranksieve.data.costs import ColumnCosts
from ranksieve.data.dataset import Dataset
from ranksieve.metrics import Profile, evaluate_many
from ranksieve.metrics.profiles import as_profile
from ranksieve.path import SparsePath

Score = Callable[[FloatArray, Dataset], FloatArray]
"""From weights (models × features) and data to scores (documents × models), with the bits of ``predict``."""
Rule = Callable[[FloatArray, AnyArray], int]
"""From values (points × queries) and the points' sizes to the point preferred."""
ROUNDING = 1e-9  # share of a cost budget that sums of costs may be off by


@dataclass(frozen=True, eq=False)
class Validation:
    """Held-out metric of each point of a path (points × queries that have a value)."""

    metric: str
    profile: str | Profile
    values: FloatArray
    query_ids: AnyArray

    @property
    def mean(self) -> FloatArray:
        """Mean over queries, one a point."""
        return np.asarray(self.values.mean(axis=1))

    @property
    def standard_error(self) -> FloatArray:
        """Standard error of the mean over queries."""
        return standard_error(self.values)

    def to_dict(self) -> dict[str, Any]:
        return {
            "metric": self.metric,
            "profile": as_profile(self.profile).name,
            "mean": self.mean.tolist(),
            "standard_error": self.standard_error.tolist(),
        }


def standard_error(values: FloatArray) -> FloatArray:
    """Standard error of the row means; 0 for a single column."""
    n = values.shape[1]
    return np.asarray(values.std(axis=1, ddof=1) / np.sqrt(n)) if n > 1 else np.zeros(len(values))


def validate(
    path: SparsePath, data: Dataset, score: Score, metric: str, profile: str | Profile
) -> Validation:
    """Evaluate every point of a path on held-out queries."""
    values = evaluate_many(score(path.coefs, data), data, metric, profile)
    return _validation(metric, profile, values, data)


def cross_validate(
    data: Dataset,
    score: Score,
    fit_part: Callable[[IntArray], SparsePath],
    n_folds: int,
    seed: int,
    metric: str,
    profile: str | Profile,
) -> Validation:
    """Deal the queries into folds; each fold is ranked by the path fitted on the others."""
    fold_of = np.random.default_rng(seed).permutation(data.n_queries) % n_folds
    parts = []
    for fold in range(n_folds):
        path = _fit_without(fold, n_folds, fold_of, fit_part)
        held_out = data.select_queries(np.flatnonzero(fold_of == fold))
        parts.append(evaluate_many(score(path.coefs, held_out), held_out, metric, profile))
    values = np.empty((len(parts[0]), data.n_queries))
    for fold, part in enumerate(parts):
        values[:, fold_of == fold] = part
    return _validation(metric, profile, values, data)


def _fit_without(
    fold: int, n_folds: int, fold_of: IntArray, fit_part: Callable[[IntArray], SparsePath]
) -> SparsePath:
    try:
        return fit_part(np.flatnonzero(fold_of != fold))
    except ValueError as error:
        raise ValueError(
            f"cross-validation fails without the queries of fold {fold + 1} of {n_folds}: {error}; give "
            "validation data, or another cv or random_state"
        ) from None


def fits(cost: Any, limit: float) -> Any:
    """Whether a cost, or each of an array, is within the limit, up to the rounding of sums."""
    return cost <= limit * (1.0 + ROUNDING)


@dataclass(frozen=True, eq=False)
class Budget:
    """At least one feature, at most ``max_features``, and a cost of at most ``max_cost``; None: no limit."""

    max_features: int | None = None
    max_cost: float | None = None
    costs: ColumnCosts | None = None

    def __post_init__(self) -> None:
        if self.max_cost is None:
            return
        if not (isinstance(self.max_cost, Real) and self.max_cost >= 0):
            raise ValueError(f"max_cost must be a number ≥ 0, got {self.max_cost}")
        if self.costs is None:
            raise ValueError(f"max_cost={self.max_cost:g} needs feature_costs: what each feature costs")

    def check_must_have(self, columns: BoolArray) -> None:
        """Refuse more features that must be there than there may be."""
        count = np.count_nonzero(columns)
        if self.max_features is not None and count > self.max_features:
            raise ValueError(
                f"must_have names {count} features but max_features is {self.max_features}; "
                f"raise max_features to {count} or shorten must_have"
            )

    def allows(self, coefs: FloatArray) -> BoolArray:
        """Which models (rows) are within the budget."""
        allowed = within_budget(np.count_nonzero(coefs, axis=1), self.max_features)
        if self.costs is None or self.max_cost is None:
            return allowed
        return np.asarray(allowed & fits(self.costs.of_models(coefs), self.max_cost))

    def sizes(self, coefs: FloatArray) -> AnyArray:
        """What a rule keeps small: the cost where there are costs, else the number of features."""
        return np.count_nonzero(coefs, axis=1) if self.costs is None else self.costs.of_models(coefs)


def choose_point(coefs: FloatArray, values: FloatArray, rule: Rule, budget: Budget) -> int:
    """The model (row) that ``rule`` prefers among those within the budget."""
    points = np.flatnonzero(budget.allows(coefs))
    if len(points) == 0:
        cost = "" if budget.max_cost is None else f" at a cost of at most {budget.max_cost:g}"
        raise ValueError(
            f"no point of the path uses 1 to {budget.max_features or 'all'} features{cost}; "
            "give smaller alphas, or a larger budget (equal features enter an elastic net together)"
        )
    return int(points[rule(values[points], budget.sizes(coefs[points]))])


def within_budget(n_nonzero: IntArray, max_features: int | None) -> BoolArray:
    """Points that use a feature, but no more than allowed."""
    return np.asarray((n_nonzero >= 1) & (n_nonzero <= (np.inf if max_features is None else max_features)))


def refined_grid(path: SparsePath, max_features: int | None) -> FloatArray:
    """The grid with nine more points where the path jumps from no feature to more than allowed."""
    beyond = np.flatnonzero(path.n_nonzero > (np.inf if max_features is None else max_features))
    if len(beyond) == 0 or beyond[0] == 0:
        return path.alphas
    first = beyond[0]
    between = np.geomspace(path.alphas[first - 1], path.alphas[first], 11)[1:-1]
    return np.concatenate([path.alphas[:first], between, path.alphas[first:]])


def best(values: FloatArray, sizes: AnyArray) -> int:
    """Highest mean; among equals the smallest, then the strongest regularisation."""
    mean = values.mean(axis=1)
    return int(np.lexsort((sizes, -mean))[0])


def one_standard_error(values: FloatArray, sizes: AnyArray) -> int:
    """The smallest with a mean within one standard error of the best; among equals the highest mean."""
    mean, top = values.mean(axis=1), best(values, sizes)
    near = np.flatnonzero(mean >= mean[top] - standard_error(values)[top])
    return int(near[np.lexsort((-mean[near], sizes[near]))[0]])


RULES: dict[str, Rule] = {"best": best, "one_standard_error": one_standard_error}


def _validation(metric: str, profile: str | Profile, values: FloatArray, data: Dataset) -> Validation:
    defined = ~np.isnan(values[0])  # whether a query has a value depends on its labels alone
    if not defined.any():
        raise ValueError(f"{metric} is undefined for every validation query: none has a relevant document")
    kept = np.ascontiguousarray(values[:, defined])  # the mean of a row is then that of evaluate, bit by bit
    return Validation(metric, profile, kept, data.queries.ids[defined])


def warn_if_blind(validations: Sequence[Validation]) -> None:
    """Warn when the metric cannot tell any candidate from another."""
    mean, first = np.concatenate([v.mean for v in validations]), validations[0]
    if len(mean) > 1 and mean.max() == mean.min():
        warn_caller(
            f"{first.metric} ({as_profile(first.profile).name} profile) is {mean[0]:.4g} for every model on "
            "the path, so it cannot guide the choice; use another metric or profile (letor gives lists "
            "shorter than k an NDCG@k of 0)"
        )
