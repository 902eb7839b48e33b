"""Choose a candidate by how it ranks queries it has not seen, within a budget, and say how sure that is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ranksieve._types import AnyArray, BoolArray, FloatArray, IntArray
from ranksieve.choice.families import Candidate, Family
from ranksieve.choice.held_out import TIED, Validation, standard_error, tied
from ranksieve.data.budget import Budget
from ranksieve.errors import warn_caller

Rule = Callable[[FloatArray, AnyArray], int]
"""From held-out values (models × queries) and the models' sizes to the preferred model."""
DRAWS = 200  # bootstrap samples of the held-out queries


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
        For each feature the share of bootstrap samples of the held-out queries whose best model uses it,
        averaged over its versions without each fold where there are folds. No model is fitted again:
        :func:`ranksieve.selection_frequency` counts how often refits use a feature.
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


@dataclass(frozen=True, eq=False)
class Choice:
    """The candidate that was chosen, and all that it was chosen from.

    Attributes
    ----------
    families : sequence of Family
        The candidates and how they rank held-out queries.
    budget : Budget
        What limits the choice.
    row : int
        The number of the chosen candidate among those of all families, family after family.
    feature_names : tuple of str
        Names of the weights.
    beyond : Family or None
        Candidates that exceed the budget, to compare with; a fit without a budget has more of them.
    random_state : int
        Draws the bootstrap samples of :attr:`confidence`.
    """

    families: Sequence[Family]
    budget: Budget
    row: int
    feature_names: tuple[str, ...]
    beyond: Family | None = None
    random_state: int = 0

    @property
    def family(self) -> Family:
        """The family of the chosen candidate."""
        return self.place(self.row)[0]

    @property
    def index(self) -> int:
        """The number of the chosen candidate in its family."""
        return self.place(self.row)[1]

    @property
    def candidate(self) -> Candidate:
        """The chosen candidate."""
        family, k = self.place(self.row)
        return family.candidates[k]

    @property
    def n_candidates(self) -> int:
        """How many candidates there were to choose from."""
        return sum(len(family) for family in self.families)

    @property
    def validation(self) -> Validation:
        """How the chosen family ranks held-out queries."""
        return validation_of(self.family)

    @cached_property
    def coefs(self) -> FloatArray:
        """Weights, one row per candidate."""
        return np.concatenate([family.coefs for family in self.families])

    @cached_property
    def values(self) -> FloatArray:
        """Held-out metric, averaged over neighbours (candidates × queries)."""
        return smoothed_values(self.families)

    @cached_property
    def allowed(self) -> BoolArray:
        """Which candidates may be chosen."""
        return allowed(self.families, self.budget)

    def place(self, row: int) -> tuple[Family, int]:
        """The family of a candidate, and its number there."""
        for family in self.families:
            if row < len(family):
                return family, row
            row -= len(family)
        raise IndexError(row)

    @cached_property
    def confidence(self) -> Confidence:
        """How sure the choice is."""
        points, used = np.flatnonzero(self.allowed), np.count_nonzero(self.coefs, axis=1)
        values = self.values[points]
        tied = points[tied_with(values, int(np.searchsorted(points, self.row)))]
        again = points[chosen_again(values, self.budget.sizes(self.coefs[points]), self.random_state)]
        own, (best_values, best_features, beyond) = self.validation.values[self.index], self.best()
        return Confidence(
            *interval(own), len(own), len(tied) - 1, int(used[tied].min()),
            np.mean([self._uses(row) for row in again], axis=0), *interval(best_values - own),
            best_features, beyond,
        )  # fmt: skip

    def _uses(self, row: int) -> FloatArray:
        """How often a candidate uses each feature: the share of its versions without each fold that do."""
        family, k = self.place(row)
        one = family.candidates[k]
        versions = one.coef[None] if one.fold_coefs is None else one.fold_coefs
        return np.asarray(np.mean(versions != 0, axis=0))

    def densest(self) -> tuple[FloatArray, int]:
        """The held-out values of the candidate with the most features, and how many these are."""
        family = max(self.families, key=lambda one: int(one.n_nonzero.max()))
        k = int(np.argmax(family.n_nonzero))
        return validation_of(family).values[k], int(family.n_nonzero[k])

    def best(self) -> tuple[FloatArray, int, bool]:
        """The best candidate that may be chosen or is beyond the budget: values, features, is it beyond."""
        families = [*self.families, *([] if self.beyond is None else [self.beyond])]
        mean = np.concatenate([validation_of(family).mean for family in families])
        used = np.concatenate([family.n_nonzero for family in families])
        values = np.concatenate([validation_of(family).values for family in families])
        within = self.budget.allows(np.concatenate([family.coefs for family in families]))
        may_be_chosen = np.append(self.allowed, np.zeros(len(within) - len(self.allowed), dtype=bool))
        mean[within & ~may_be_chosen | (used == 0)] = -np.inf
        top = int(np.lexsort((used, -mean))[0])
        return values[top], int(used[top]), not within[top]


def choose(
    families: Sequence[Family],
    budget: Budget,
    feature_names: tuple[str, ...],
    rule: Rule = best,
    *,
    beyond: Family | None = None,
    row: int | None = None,
    random_state: int = 0,
) -> Choice:
    """The candidate that ``rule`` prefers among those that the budget allows; ``row``: this one.

    The families have been measured on the same held-out queries.
    """
    if row is None:
        points = np.flatnonzero(allowed(families, budget))
        if len(points) == 0:
            raise budget.nothing_fits()
        coefs = np.concatenate([family.coefs for family in families])[points]
        row = int(points[rule(smoothed_values(families)[points], budget.sizes(coefs))])
    return Choice(families, budget, row, feature_names, beyond, random_state)


def validation_of(family: Family) -> Validation:
    assert family.validation is not None, f"the family {family.label} has not been measured"
    return family.validation


def smoothed_values(families: Sequence[Family]) -> FloatArray:
    """Held-out metric, averaged over neighbours (candidates × queries)."""
    return np.concatenate([validation_of(family).smoothed for family in families])


def allowed(families: Sequence[Family], budget: Budget) -> BoolArray:
    """Which candidates may be chosen: those within the budget that have all their neighbours."""
    complete = [np.arange(len(family)) < family.complete for family in families]
    within = budget.allows(np.concatenate([family.coefs for family in families]))
    return within & np.concatenate(complete)


def interval(values: FloatArray) -> tuple[float, float, float]:
    """(mean, low, high): the mean over queries and its 95 % interval."""
    mean, error = float(values.mean()), TIED * float(standard_error(values[None])[0])
    return mean, mean - error, mean + error


def tied_with(values: FloatArray, chosen: int) -> BoolArray:
    """Which models (rows) are tied with one of them, itself included."""
    return tied(values - values[chosen])


def chosen_again(values: FloatArray, sizes: AnyArray, random_state: int) -> IntArray:
    """The best model of each bootstrap sample of the queries."""
    n = values.shape[1]
    draws = np.random.default_rng(random_state).multinomial(n, np.full(n, 1.0 / n), size=DRAWS)
    means = draws @ values.T / n
    return np.array([_highest(mean, sizes) for mean in means])


def warn_if_blind(families: Sequence[Family]) -> None:
    """Warn if the metric cannot tell any candidate from another."""
    first = validation_of(families[0])
    mean = np.concatenate([validation_of(family).values.mean(axis=1) for family in families])
    if len(mean) > 1 and np.ptp(mean) == 0:
        warn_caller(
            f"{first.metric} ({first.profile.name} profile) is {mean[0]:.4g} for every candidate, so it "
            "cannot guide the choice; use another `metric` or `profile` (letor gives lists shorter than k an "
            "NDCG@k of 0)"
        )
