"""Choose a model by how it ranks queries it has not seen, within a budget; and say how sure the choice is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from ranksieve._types import AnyArray, BoolArray, FloatArray, IntArray
from ranksieve.choice.forward import ROUNDING
from ranksieve.choice.held_out import TIED, standard_error, tied
from ranksieve.data.costs import ColumnCosts
from ranksieve.errors import ParameterError

Rule = Callable[[FloatArray, AnyArray], int]
"""From held-out values (models × queries) and the models' sizes to the model preferred."""
DRAWS = 200  # bootstrap samples of the held-out queries


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
            raise ParameterError("max_cost", self.max_cost, "must be a number ≥ 0")
        if self.costs is None:
            raise ParameterError("max_cost", self.max_cost, "needs `feature_costs`, the cost of each feature")

    def check_must_have(self, columns: BoolArray) -> None:
        """Refuse more features that must be there than there may be."""
        count = np.count_nonzero(columns)
        if self.max_features is not None and count > self.max_features:
            reason = f"`must_have` names {count} features; give at least {count} or shorten `must_have`"
            raise ParameterError("max_features", self.max_features, reason)

    def allows(self, coefs: FloatArray) -> BoolArray:
        """Which models (rows) are within the budget."""
        count = np.count_nonzero(coefs, axis=1)
        allowed = (count >= 1) & (count <= (np.inf if self.max_features is None else self.max_features))
        if self.costs is None or self.max_cost is None:
            return np.asarray(allowed)
        return np.asarray(allowed & fits(self.costs.of_models(coefs), self.max_cost))

    def nothing_fits(self) -> ParameterError:
        """The error for a choice among no models."""
        name = "max_features" if self.max_cost is None else "max_cost"
        return ParameterError(
            name,
            getattr(self, name),
            "no candidate within the budget uses a feature; give a larger budget, smaller `alphas`, or all "
            "`families` (equal features enter an elastic net together)",
        )

    def sizes(self, coefs: FloatArray) -> AnyArray:
        """What a rule keeps small: the cost where there are costs, else the number of features."""
        return np.count_nonzero(coefs, axis=1) if self.costs is None else self.costs.of_models(coefs)


def best(values: FloatArray, sizes: AnyArray) -> int:
    """Highest mean; among equals the smallest, then the strongest regularisation."""
    return _highest(values.mean(axis=1), sizes)


def one_standard_error(values: FloatArray, sizes: AnyArray) -> int:
    """The smallest with a mean within one standard error of the best; among equals the highest mean."""
    mean, top = values.mean(axis=1), best(values, sizes)
    near = np.flatnonzero(mean >= mean[top] - standard_error(values)[top])
    return int(near[np.lexsort((-mean[near], sizes[near]))[0]])


RULES: dict[str, Rule] = {"best": best, "one_standard_error": one_standard_error}


def _highest(mean: FloatArray, sizes: AnyArray) -> int:
    return int(np.lexsort((sizes, -mean))[0])


@dataclass(frozen=True, eq=False)
class Confidence:
    """How sure a choice is.

    Attributes
    ----------
    mean, low, high : float
        Held-out metric of the chosen model and its 95 % interval over queries.
    n_queries : int
        Held-out queries.
    n_tied : int
        Further models whose mean differs from the chosen one's by no more than 1.96 standard errors of the
        difference, query by query.
    fewest_tied : int
        The fewest features of the chosen model and those tied with it.
    frequency : array
        Of each feature the share of bootstrap samples of the held-out queries whose best model uses it,
        averaged over its versions without each fold where there are folds. No model is fitted again: how
        often refits use a feature, :func:`ranksieve.selection_frequency` counts.
    loss, loss_low, loss_high : float
        Mean of the best candidate less that of the chosen one, and its 95 % interval. With a budget, a few
        candidates are fitted beyond it to compare with; a fit without a budget may find a better one.
    best_features : int
        Features of the best candidate.
    best_is_beyond : bool
        Whether it is beyond the budget.
    """

    mean: float
    low: float
    high: float
    n_queries: int
    n_tied: int
    fewest_tied: int
    frequency: FloatArray
    loss: float
    loss_low: float
    loss_high: float
    best_features: int
    best_is_beyond: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {name: np.asarray(value).tolist() for name, value in vars(self).items()}


def interval(values: FloatArray) -> tuple[float, float, float]:
    """(mean, low, high): the mean over queries and its 95 % interval."""
    mean, error = float(values.mean()), TIED * float(standard_error(values[None])[0])
    return mean, mean - error, mean + error


def tied_with(values: FloatArray, chosen: int) -> BoolArray:
    """Which models (rows) are tied with one of them, itself included."""
    return tied(values - values[chosen])


def chosen_again(values: FloatArray, sizes: AnyArray, seed: int) -> IntArray:
    """The best model of each bootstrap sample of the queries."""
    n = values.shape[1]
    draws = np.random.default_rng(seed).multinomial(n, np.full(n, 1.0 / n), size=DRAWS)
    means = draws @ values.T / n
    return np.array([_highest(mean, sizes) for mean in means])
