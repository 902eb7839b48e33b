"""Choose a candidate within a budget by its metric on held-out queries, with the confidence of the choice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ranksieve._types import AnyArray, BoolArray, FloatArray, IntArray
from ranksieve._util.short_repr import ShortRepr
from ranksieve.choice.families import Candidate, Family
from ranksieve.choice.held_out import Z_95, Validation, standard_error, tied
from ranksieve.data.budget import Budget
from ranksieve.data.steps import features_in_use
from ranksieve.errors import warn_caller
from ranksieve.show.formats import metric_title, percent_text, plural
from ranksieve.show.result import Part, Shown, Table
from ranksieve.show.sentences import family_title
from ranksieve.show.upwards import Drawn

ChoiceRule = Callable[[FloatArray, AnyArray], int]
"""Function of held-out values (models × queries) and model sizes that returns the preferred model."""
BOOTSTRAP_SAMPLES = 200  # of the held-out queries
MAX_SHOWN_FEATURES = 20


def best(values: FloatArray, sizes: AnyArray) -> int:
    """Highest mean; ties are broken by the smaller size, then by the stronger regularisation."""
    return _highest(values.mean(axis=1), sizes)


def one_standard_error(values: FloatArray, sizes: AnyArray) -> int:
    """The smallest model within one standard error of the best mean; ties are broken by the higher mean."""
    mean, top = values.mean(axis=1), best(values, sizes)
    close = np.flatnonzero(mean >= mean[top] - standard_error(values)[top])
    return int(close[np.lexsort((-mean[close], sizes[close]))[0]])


RULES: dict[str, ChoiceRule] = {"best": best, "one_standard_error": one_standard_error}


def _highest(mean: FloatArray, sizes: AnyArray) -> int:
    return int(np.lexsort((sizes, -mean))[0])


@dataclass(frozen=True, eq=False, repr=False)
class Confidence(ShortRepr):
    """Confidence of a choice.

    Attributes
    ----------
    mean, low, high : float
        Held-out metric of the chosen model with its 95 % confidence interval over queries.
    n_queries : int
        Number of held-out queries.
    n_tied : int
        Number of other models whose mean differs from that of the chosen one by at most 1.96 standard errors
        of the paired differences.
    fewest_tied : int
        Smallest number of features among the chosen model and those tied with it.
    frequency : array
        For each feature the share of bootstrap samples of the held-out queries whose best model uses it,
        averaged over the model's versions without each fold if there are folds. No model is refitted:
        :func:`ranksieve.selection_frequency` counts how often refits use a feature.
    loss, loss_low, loss_high : float
        Mean of the best candidate minus that of the chosen one, and its 95 % confidence interval. With a
        budget, a few candidates beyond it are fitted for comparison; a fit without a budget may find a better
        one.
    best_features : int
        Number of features of the best candidate.
    best_is_beyond : bool
        Whether the best candidate exceeds the budget.
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


@dataclass(frozen=True, eq=False, repr=False)
class Rival(ShortRepr):
    """A candidate to compare the chosen one with."""

    values: FloatArray
    n_features: int
    coef: FloatArray
    is_beyond: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Choice(Drawn, Shown):
    """The chosen candidate and all candidates.

    Attributes
    ----------
    families : sequence of Family
        The candidates and their held-out metric.
    budget : Budget
        Limits of the choice.
    row : int
        Index of the chosen candidate among the candidates of all families, one family after the other.
    feature_names : tuple of str
        Names of the features, which for lines are those of the weights.
    beyond : Family or None
        A few candidates that exceed the budget, for comparison.
    random_state : int
        Seed of the bootstrap samples of :attr:`confidence`.
    """

    families: Sequence[Family]
    budget: Budget
    row: int
    feature_names: tuple[str, ...]
    beyond: Family | None = None
    random_state: int = 0

    @property
    def family(self) -> Family:
        """Family of the chosen candidate."""
        return self.locate(self.row)[0]

    @property
    def index(self) -> int:
        """Index of the chosen candidate in its family."""
        return self.locate(self.row)[1]

    @property
    def candidate(self) -> Candidate:
        """The chosen candidate."""
        family, k = self.locate(self.row)
        return family.candidates[k]

    @property
    def chosen_values(self) -> FloatArray:
        """Held-out metric of the chosen candidate, averaged over its neighbours, by query."""
        return np.asarray(self.values[self.row])

    @property
    def n_candidates(self) -> int:
        """Number of candidates of all families."""
        return sum(len(family) for family in self.families)

    @property
    def validation(self) -> Validation:
        """Held-out metric of the chosen family."""
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
        """Mask of the candidates that may be chosen."""
        return allowed(self.families, self.budget)

    def _line(self) -> str:
        mean, low, high = interval(self.validation.values[self.index])
        size = plural(int(self.family.n_nonzero[self.index]), "feature")
        return (
            f"{size} ({family_title(self.family.label)}) of {plural(self.n_candidates, 'candidate')}; "
            f"held-out {metric_title(self.validation.metric)} {mean:.4f} (95 % CI {low:.4f} to {high:.4f})"
        )

    def shown(self) -> Sequence[Part]:
        """The best candidate of each family, and the chosen one."""
        rows = [
            (
                family_title(family.label),
                len(family),
                f"{family.n_nonzero.min()} to {family.n_nonzero.max()}",
                int(family.n_nonzero[k]),
                f"{validation_of(family).mean[k]:.4f}",
                "chosen" if family is self.family else "",
            )
            for family in self.families
            for k in [self.index if family is self.family else int(np.argmax(validation_of(family).mean))]
        ]
        confidence, names = self.confidence, self.feature_names
        metric = metric_title(self.validation.metric)
        heads = ["family", "candidates", "features", "best or chosen", f"held-out {metric}", ""]
        used = [(names[j], float(share)) for j, share in enumerate(confidence.frequency) if share > 0]
        used.sort(key=lambda one: -one[1])
        often = [(name, percent_text(share)) for name, share in used[:MAX_SHOWN_FEATURES]]
        parts: list[Part] = [f"{self._line()}.", Table(heads, rows)]
        return [*parts, Table(["feature", "selected"], often)] if often else parts

    def frame_columns(self) -> Mapping[str, Sequence[Any]]:
        """All candidates with their held-out metric."""
        labels = [family.label for family in self.families for _ in family.candidates]
        parts = [validation_of(family) for family in self.families]
        return {
            "family": labels,
            "strength": np.concatenate([family.strengths for family in self.families]).tolist(),
            "features": np.concatenate([family.n_nonzero for family in self.families]).tolist(),
            "mean": np.concatenate([part.mean for part in parts]).tolist(),
            "standard_error": np.concatenate([part.standard_error for part in parts]).tolist(),
            "within_budget": self.allowed.tolist(),
            "chosen": [row == self.row for row in range(self.n_candidates)],
        }

    def locate(self, row: int) -> tuple[Family, int]:
        """(family of a candidate, its index in the family)."""
        for family in self.families:
            if row < len(family):
                return family, row
            row -= len(family)
        raise IndexError(row)

    @cached_property
    def confidence(self) -> Confidence:
        points, used = np.flatnonzero(self.allowed), self.budget.counts(self.coefs)
        values = self.values[points]
        tied = points[tied_with(values, int(np.searchsorted(points, self.row)))]
        winners = points[bootstrap_choices(values, self.budget.sizes(self.coefs[points]), self.random_state)]
        chosen_values, top = self.validation.values[self.index], self.best()
        return Confidence(
            *interval(chosen_values), len(chosen_values), len(tied) - 1, int(used[tied].min()),
            np.mean([self._uses(row) for row in winners], axis=0), *interval(top.values - chosen_values),
            top.n_features, top.is_beyond,
        )  # fmt: skip

    def _uses(self, row: int) -> FloatArray:
        """For each feature, the share of the candidate's versions without each fold that use it."""
        family, k = self.locate(row)
        one = family.candidates[k]
        versions = one.coef[None] if one.fold_coefs is None else one.fold_coefs
        return np.asarray(np.mean(features_in_use(versions, self.budget.columns), axis=0))

    def densest(self) -> Rival:
        """The candidate with the most features."""
        family = max(self.families, key=lambda one: int(one.n_nonzero.max()))
        k = int(np.argmax(family.n_nonzero))
        return Rival(validation_of(family).values[k], int(family.n_nonzero[k]), family.coefs[k])

    @property
    def measured_families(self) -> Sequence[Family]:
        """The families, and the candidates beyond the budget."""
        return [*self.families, *([] if self.beyond is None else [self.beyond])]

    def best(self) -> Rival:
        """The best candidate, within or beyond the budget."""
        families = self.measured_families
        mean = np.concatenate([validation_of(family).mean for family in families])
        used = np.concatenate([family.n_nonzero for family in families])
        values = np.concatenate([validation_of(family).values for family in families])
        coefs = np.concatenate([family.coefs for family in families])
        within = self.budget.allows(coefs)
        may_be_chosen = np.append(self.allowed, np.zeros(len(within) - len(self.allowed), dtype=bool))
        mean[within & ~may_be_chosen | (used == 0)] = -np.inf
        top = int(np.lexsort((used, -mean))[0])
        return Rival(values[top], int(used[top]), coefs[top], not within[top])


def choose(
    families: Sequence[Family],
    budget: Budget,
    feature_names: tuple[str, ...],
    rule: ChoiceRule = best,
    *,
    beyond: Family | None = None,
    row: int | None = None,
    random_state: int = 0,
) -> Choice:
    """Choose the candidate that ``rule`` prefers among those the budget allows, or the candidate ``row``.

    All families must have a validation on the same held-out queries.
    """
    if row is None:
        points = np.flatnonzero(allowed(families, budget))
        if len(points) == 0:
            raise budget.no_candidate_error()
        coefs = np.concatenate([family.coefs for family in families])[points]
        row = int(points[rule(smoothed_values(families)[points], budget.sizes(coefs))])
    return Choice(families, budget, row, feature_names, beyond, random_state)


def validation_of(family: Family) -> Validation:
    assert family.validation is not None, f"the family {family.label} has no validation"
    return family.validation


def smoothed_values(families: Sequence[Family]) -> FloatArray:
    """Held-out metric, averaged over neighbours (candidates × queries)."""
    return np.concatenate([validation_of(family).smoothed for family in families])


def allowed(families: Sequence[Family], budget: Budget) -> BoolArray:
    """Mask of the candidates that may be chosen: within the budget and with all their neighbours."""
    complete = [np.arange(len(family)) < family.n_complete for family in families]
    within = budget.allows(np.concatenate([family.coefs for family in families]))
    return within & np.concatenate(complete)


def interval(values: FloatArray) -> tuple[float, float, float]:
    """(mean, low, high): the mean over queries and its 95 % confidence interval."""
    mean, error = float(values.mean()), Z_95 * float(standard_error(values[None])[0])
    return mean, mean - error, mean + error


def tied_with(values: FloatArray, chosen: int) -> BoolArray:
    """Mask of the models (rows) tied with the model ``chosen``, which is included."""
    return tied(values - values[chosen])


def bootstrap_choices(values: FloatArray, sizes: AnyArray, random_state: int) -> IntArray:
    """Index of the best model in each bootstrap sample of the queries."""
    n = values.shape[1]
    draws = np.random.default_rng(random_state).multinomial(n, np.full(n, 1.0 / n), size=BOOTSTRAP_SAMPLES)
    means = draws @ values.T / n
    return np.array([_highest(mean, sizes) for mean in means])


def warn_if_metric_constant(families: Sequence[Family]) -> None:
    """Warn if the metric is the same for all candidates."""
    first = validation_of(families[0])
    mean = np.concatenate([validation_of(family).values.mean(axis=1) for family in families])
    if len(mean) > 1 and np.ptp(mean) == 0:
        warn_caller(
            f"{first.metric} ({first.profile.name} profile) is {mean[0]:.4g} for every candidate, so it "
            "cannot guide the choice; use another `metric` or `profile` (in the letor profile NDCG@k is 0 "
            "for queries with fewer than k documents)"
        )
