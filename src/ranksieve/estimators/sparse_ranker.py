"""SparseRanker: the certified path, and the point on it that ranks unseen queries best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from ranksieve._types import FloatArray, IntArray
from ranksieve.data.dataset import Dataset
from ranksieve.estimators.base import LinearRanker
from ranksieve.estimators.choice import (
    RULES,
    choose_point,
    cross_validate,
    refined_grid,
    validate,
    within_budget,
)
from ranksieve.estimators.refit import shrunk_path, unshrunk_path
from ranksieve.metrics import Profile
from ranksieve.metrics.profiles import as_profile
from ranksieve.path import Path, Progress, sparse_path
from ranksieve.penalties import SlopedPenalty

REFINEMENTS = 10
Refit = Callable[..., Path]


REFITS: dict[str, Refit] = {"shrunk": shrunk_path, "unshrunk": unshrunk_path}


@dataclass(frozen=True)
class _Plan:
    """How to get from a data set to the candidate models."""

    path_options: dict[str, Any]
    refit: Refit

    def candidates(
        self,
        data: Dataset,
        query_weight: FloatArray | None,
        alphas: FloatArray | None,
        progress: Progress | None,
    ) -> tuple[Path, Path]:
        options = (
            self.path_options
            if alphas is None
            else {**self.path_options, "alphas": alphas, "max_features": None}
        )
        path = sparse_path(data, query_weight=query_weight, progress=progress, **options)
        return path, self.refit(data, path, query_weight)


class SparseRanker(LinearRanker):
    """The best sparse linear ranker: fit the certified path, choose a point on held-out queries.

    min_w (1/p) Σ_{pairs} max(0, 1 − ⟨w, x_i − x_j⟩)² + α Σ_j v_j|w_j| for a grid of α; each point carries a
    duality gap of at most ``tol`` times its objective.

    Parameters
    ----------
    max_features : int, optional
        Choose among the points with at most this many features.
    metric : str
        What the choice maximises, such as "ndcg@10" or "map".
    profile : str or Profile
        Metric conventions: "letor", "mslr" or "standard".
    rule : "best" or "one_standard_error"
        The best point, or the one with the fewest features within a standard error (over queries) of it.
    refit : "shrunk" or "unshrunk"
        Keep the weights of the path, or refit the chosen features without ℓ1 (ridge of α/1000).
    penalty, weights, l1_ratio, n_alphas, alphas, min_ratio, tol
        As in :func:`ranksieve.sparse_path`.
    cv : int
        Query-level folds used when ``fit`` gets no validation set.
    random_state : int
        Shuffles queries into folds.

    Attributes
    ----------
    coef_, support_, alpha_, objective_, gap_, n_iter_
        The chosen ranker and its certificate.
    path_ : Path
        All points.
    validation_ : Validation
        Held-out metric of each point, per query.
    """

    def __init__(
        self,
        max_features: int | None = None,
        metric: str = "ndcg@10",
        *,
        profile: str | Profile = "letor",
        rule: str = "best",
        refit: str = "shrunk",
        penalty: str | SlopedPenalty = "l1",
        weights: Any = None,
        l1_ratio: float | None = None,
        n_alphas: int = 100,
        alphas: Any = None,
        min_ratio: float = 1e-3,
        tol: float = 1e-6,
        cv: int = 5,
        random_state: int = 0,
    ) -> None:
        self.max_features = max_features
        self.metric = metric
        self.profile = profile
        self.rule = rule
        self.refit = refit
        self.penalty = penalty
        self.weights = weights
        self.l1_ratio = l1_ratio
        self.n_alphas = n_alphas
        self.alphas = alphas
        self.min_ratio = min_ratio
        self.tol = tol
        self.cv = cv
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any = None,
        qid: Any = None,
        *,
        valid: Dataset | None = None,
        query_weight: FloatArray | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Fit the path on the data and choose its point on ``valid``, or by query-level cross-validation.

        Parameters
        ----------
        X : Dataset, array, CSR matrix or frame
        y, qid : arrays
            Labels and query ids, unless X is a Dataset.
        valid : Dataset, optional
            Held-out queries for the choice.
        query_weight : array, optional
            One weight a query, in order of first appearance.
        progress : callable, optional
            Called with (points done, points in all).
        """
        data = self._training_data(X, y, qid)
        self._fit(data, valid, query_weight, progress)
        return self

    def _fit(
        self,
        data: Dataset,
        valid: Dataset | None,
        query_weight: FloatArray | None,
        progress: Progress | None,
    ) -> None:
        if valid is not None and valid.n_features != data.n_features:
            raise ValueError(
                f"training data have {data.n_features} features but valid has {valid.n_features}"
            )
        plan = self._plan()
        n_folds = 0 if valid is not None else _folds(self.cv, data.n_queries)
        count = _Counter(progress, 1 + n_folds)
        self.path_, candidates = self._path_within_budget(plan, data, query_weight, count.next())

        def fit_part(queries: IntArray) -> Path:
            weight = None if query_weight is None else query_weight[queries]
            return plan.candidates(data.select_queries(queries), weight, candidates.alphas, count.next())[1]

        if n_folds:
            self.validation_ = cross_validate(
                data, fit_part, n_folds, self.random_state, self.metric, self.profile
            )
        else:  # one query cannot be held out from itself: it is its own validation set
            self.validation_ = validate(candidates, valid or data, self.metric, self.profile)
        chosen = choose_point(
            candidates.n_nonzero, self.validation_.values, RULES[self.rule], self.max_features
        )
        self._adopt(candidates, chosen)

    def _path_within_budget(
        self, plan: _Plan, data: Dataset, query_weight: FloatArray | None, progress: Progress | None
    ) -> tuple[Path, Path]:
        """The path, its grid refined where it would jump over the feature budget."""
        path, candidates = plan.candidates(data, query_weight, None, progress)
        for _ in range(REFINEMENTS):
            if within_budget(candidates.n_nonzero, self.max_features).any():
                break
            finer = refined_grid(candidates, self.max_features)
            path, candidates = plan.candidates(data, query_weight, finer, None)
        return path, candidates

    def _plan(self) -> _Plan:
        _check_choice("rule", self.rule, RULES)
        _check_choice("refit", self.refit, REFITS)
        if self.max_features is not None and self.max_features < 1:
            raise ValueError(f"max_features must be at least 1, got {self.max_features}")
        names = ("penalty", "weights", "l1_ratio", "n_alphas", "alphas", "min_ratio", "tol", "max_features")
        return _Plan({name: getattr(self, name) for name in names}, REFITS[self.refit])

    def _adopt(self, candidates: Path, chosen: int) -> None:
        self.chosen_ = chosen
        self.alpha_ = float(candidates.alphas[chosen])
        self.coef_ = candidates.coefs[chosen].copy()
        self.objective_ = float(candidates.objectives[chosen])
        self.gap_ = float(candidates.gaps[chosen])
        self.n_iter_ = int(candidates.n_iter.sum())
        self.trace_ = candidates.trace

    def _certificate(self) -> dict[str, float]:
        return {**super()._certificate(), "alpha": self.alpha_}

    def _measured(self) -> dict[str, float]:
        return {
            f"validation {self.metric} ({as_profile(self.profile).name})": float(
                self.validation_.mean[self.chosen_]
            )
        }


class _Counter:
    """Progress over several paths as one count."""

    def __init__(self, progress: Progress | None, n_fits: int) -> None:
        self._progress, self._n_fits, self._started = progress, n_fits, 0

    def next(self) -> Progress | None:
        if self._progress is None:
            return None
        report, n_fits, before = self._progress, self._n_fits, self._started
        self._started += 1
        return lambda done, total: report(before * total + done, n_fits * total)


def _folds(cv: int, n_queries: int) -> int:
    if cv < 2:
        raise ValueError(f"cv must be at least 2, got {cv}")
    return min(cv, n_queries) if n_queries > 1 else 0


def _check_choice(name: str, given: str, table: dict[str, Any]) -> None:
    if given not in table:
        raise ValueError(f"{name} must be one of {', '.join(table)}, got {given!r}")
