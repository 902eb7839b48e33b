"""Candidate models: families fitted on the training data, each model measured on held-out queries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ranksieve._types import BoolArray, FloatArray
from ranksieve._util.messages import warn_caller
from ranksieve.estimators.choice import (
    Budget,
    Confidence,
    Rule,
    chosen_again,
    interval,
    tied_with,
)
from ranksieve.estimators.families import FAMILIES, PATH, Fitted, Task, l1_family
from ranksieve.estimators.held_out import HeldOut, Validation
from ranksieve.path import SparsePath

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
