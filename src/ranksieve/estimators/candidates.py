"""Candidate models: paths fitted on the data, each point measured on queries it has not seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ranksieve._parallel import single_threaded_blas
from ranksieve._types import FloatArray, IntArray
from ranksieve.data.dataset import Dataset
from ranksieve.estimators.choice import (
    Budget,
    Rule,
    Score,
    Validation,
    choose_point,
    cross_validate,
    refined_grid,
    validate,
    within_budget,
)
from ranksieve.metrics import Profile
from ranksieve.objective import make_objective
from ranksieve.path import Progress, SparsePath, sparse_path
from ranksieve.penalties import ElasticNet
from ranksieve.solvers import Problem, ProxNewton, Result

REFINEMENTS = 10
RIDGE_SHARE = 1e-3  # of α: keeps the refit bounded when the chosen features separate every pair
REFIT_TOL = 1e-6
Refit = Callable[[Dataset, SparsePath, FloatArray | None, FloatArray | None], SparsePath]


@dataclass(frozen=True)
class Recipe:
    """How to get from a data set to a family of models: the options of the path, and the refit.

    ``options`` hold ``signs`` as an array or None.
    """

    label: str
    options: Mapping[str, Any]
    refit: Refit

    def with_weights(self, label: str, weights: FloatArray | None) -> Self:
        """The same with other ℓ1 weights."""
        return replace(self, label=label, options={**self.options, "weights": weights})

    def fit(
        self,
        data: Dataset,
        query_weight: FloatArray | None,
        alphas: FloatArray | None,
        progress: Progress | None,
    ) -> tuple[SparsePath, SparsePath]:
        """(the path, its models refitted); ``alphas`` replaces the grid."""
        options = self.options if alphas is None else {**self.options, "alphas": alphas, "max_features": None}
        path = sparse_path(data, query_weight=query_weight, progress=progress, **options)
        return path, self.refit(data, path, query_weight, options["signs"])


@dataclass(frozen=True, eq=False)
class Family:
    """The points of one path: as fitted (``path``), as refitted (``models``), and how these rank."""

    label: str
    path: SparsePath
    models: SparsePath
    validation: Validation


@dataclass(frozen=True, eq=False)
class Candidates:
    """All models a choice is made from, and the budget that limits it."""

    families: tuple[Family, ...]
    budget: Budget

    @property
    def coefs(self) -> FloatArray:
        """Weights, one row per model, family after family."""
        return np.concatenate([family.models.coefs for family in self.families])

    @property
    def values(self) -> FloatArray:
        """Held-out metric (models × queries)."""
        return np.concatenate([family.validation.values for family in self.families])

    def choose(self, rule: Rule) -> tuple[Family, int]:
        """The family and the point in it that ``rule`` prefers within the budget."""
        chosen = choose_point(self.coefs, self.values, rule, self.budget)
        for family in self.families:
            if chosen < len(family.models):
                break
            chosen -= len(family.models)
        return family, chosen


@dataclass(frozen=True, eq=False)
class Search:
    """Fits families on ``data`` and measures them on ``measured``.

    These are validation data, or with ``n_folds`` the training data as they were given, fold by fold.
    """

    data: Dataset
    measured: Dataset
    score: Score
    query_weight: FloatArray | None
    metric: str
    profile: str | Profile
    n_folds: int
    seed: int
    max_features: int | None
    count: ProgressCount

    def family(self, recipe: Recipe) -> Family:
        """Fit and measure one recipe."""
        path, models = self._fit_within_budget(recipe)

        def fit_part(queries: IntArray) -> SparsePath:
            weight = None if self.query_weight is None else self.query_weight[queries]
            part = self.data.select_queries(queries)
            return recipe.fit(part, weight, models.alphas, self.count.next())[1]

        if self.n_folds:
            validation = cross_validate(
                self.measured, self.score, fit_part, self.n_folds, self.seed, self.metric, self.profile
            )
        else:
            validation = validate(models, self.measured, self.score, self.metric, self.profile)
        return Family(recipe.label, path, models, validation)

    def _fit_within_budget(self, recipe: Recipe) -> tuple[SparsePath, SparsePath]:
        """The path, its grid refined where it would jump over the feature budget."""
        path, models = recipe.fit(self.data, self.query_weight, None, self.count.next())
        for _ in range(REFINEMENTS):
            if within_budget(models.n_nonzero, self.max_features).any():
                break
            finer = refined_grid(models, self.max_features)
            path, models = recipe.fit(self.data, self.query_weight, finer, None)
        return path, models


class ProgressCount:
    """Progress over several paths as one count."""

    def __init__(self, progress: Progress | None, n_fits: int) -> None:
        self._progress, self.n_fits, self._started = progress, n_fits, 0

    def next(self) -> Progress | None:
        if self._progress is None:
            return None
        report, before = self._progress, self._started
        self._started += 1
        return lambda done, total: report(before * total + done, self.n_fits * total)


def shrunk_path(
    data: Dataset, path: SparsePath, query_weight: FloatArray | None, signs: FloatArray | None = None
) -> SparsePath:
    """The path as it is."""
    return path


def unshrunk_path(
    data: Dataset, path: SparsePath, query_weight: FloatArray | None, signs: FloatArray | None = None
) -> SparsePath:
    """Each point's features refitted: min f(w) + ½(α/1000)‖w‖² over the support, with the signs it must have.

    Objectives and gaps are those of the refits.
    """
    coefs, results = np.zeros_like(path.coefs), []
    with single_threaded_blas():
        for k, alpha in enumerate(path.alphas):
            support = np.flatnonzero(path.coefs[k])
            results.append(_refit(data, support, float(alpha), query_weight, signs))
            coefs[k, support] = results[-1].w
    return replace(
        path,
        coefs=coefs,
        objectives=np.array([r.objective for r in results]),
        gaps=np.array([r.gap for r in results]),
        n_iter=path.n_iter + np.array([r.n_iter for r in results]),
        converged=np.array([r.converged for r in results]),
    )


def _refit(
    data: Dataset,
    support: IntArray,
    alpha: float,
    query_weight: FloatArray | None,
    signs: FloatArray | None,
) -> Result:
    columns = support if len(support) else np.array([0])
    narrow = data.replace_features(data.X[:, columns], [data.feature_names[j] for j in columns])
    objective = make_objective(narrow, query_weight=query_weight)
    bound = None if signs is None else signs[columns]
    ridge = ElasticNet(RIDGE_SHARE * alpha, signs=bound, l1_ratio=0.0)
    result = ProxNewton(REFIT_TOL, 100 if len(support) else 0).solve(Problem(objective, ridge))
    return replace(result, w=result.w[: len(support)], point=None)


REFITS: dict[str, Refit] = {"shrunk": shrunk_path, "unshrunk": unshrunk_path}
