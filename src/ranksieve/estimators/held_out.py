"""Held-out queries: validation data, and the training queries ranked by models that have not seen them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ranksieve._types import AnyArray, BoolArray, FloatArray
from ranksieve._util.messages import warn_caller
from ranksieve.data.dataset import Dataset
from ranksieve.data.matrix import dense_rows
from ranksieve.estimators.families import Fitted
from ranksieve.leave_out import Folds
from ranksieve.metrics import PROFILES, Evaluator, Profile, parse

AUTO_FOLDS = 5
ENOUGH_QUERIES = 1000  # validation queries with pairs: so many tell more than cross-validation could add
TIED = 1.96  # standard errors of a mean within which it may be 0
Score = Callable[[FloatArray, Dataset], FloatArray]
"""From weights (models × features) and data to scores (documents × models), with the bits of ``predict``."""


@dataclass(frozen=True, eq=False)
class Validation:
    """Held-out metric of each model of a family: ``values`` (points × queries that have a value).

    A value is part noise, and neighbours of a sequence are nearly the same model: the mean over ``window`` of
    them (fewer at the ends), ``smoothed``, is what models are chosen by.
    """

    metric: str
    profile: Profile
    values: FloatArray
    query_ids: AnyArray
    window: int = 1

    @cached_property
    def smoothed(self) -> FloatArray:
        """Values averaged over neighbouring points, query by query."""
        return averaged(self.values, self.window)

    @property
    def mean(self) -> FloatArray:
        """What models are chosen by: the mean over queries of the smoothed values, one per point."""
        return np.asarray(self.smoothed.mean(axis=1))

    @property
    def standard_error(self) -> FloatArray:
        """Standard error over queries of ``mean``."""
        return standard_error(self.smoothed)

    @property
    def title(self) -> str:
        """What models call the metric."""
        return f"held-out {self.metric} ({self.profile.name})"

    @property
    def criterion(self) -> dict[str, str] | None:
        """Metric and profile, as model files keep them.

        None for a profile of the caller's own, which has no name that a file could tell.
        """
        if PROFILES.get(self.profile.name) != self.profile:
            return None
        return {"metric": str(parse(self.metric)), "profile": self.profile.name}

    def to_dict(self) -> dict[str, Any]:
        return {
            "metric": self.metric,
            "profile": self.profile.name,
            "mean": self.mean.tolist(),
            "standard_error": self.standard_error.tolist(),
        }


def averaged(values: FloatArray, window: int) -> FloatArray:
    """The mean of each row and its ``window // 2`` neighbours on either side, as far as there are any."""
    reach, n = window // 2, len(values)
    near = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) <= reach
    return np.asarray((near / near.sum(axis=1, keepdims=True)) @ values) if reach else values


def tied(differences: FloatArray) -> BoolArray:
    """Whether the mean of each row is within 1.96 standard errors of 0."""
    return np.asarray(np.abs(differences.mean(axis=1)) <= TIED * standard_error(differences))


def standard_error(values: FloatArray) -> FloatArray:
    """Standard error of the row means; 0 for a single column."""
    n = values.shape[1]
    return np.asarray(values.std(axis=1, ddof=1) / np.sqrt(n)) if n > 1 else np.zeros(len(values))


class HeldOut:
    """The queries that a choice is made on, and how models rank them.

    These are the training queries, each ranked by the models without its fold, and the queries of ``valid``.
    With neither they are the training queries, ranked by models that have seen them.
    """

    def __init__(
        self,
        score: Score,
        metric: str,
        profile: Profile,
        train: Dataset,
        folds: Folds | None,
        valid: Dataset | None,
    ) -> None:
        self._score, self.metric, self.profile = score, metric, profile
        self._train, self._folds = train, folds
        self._rows = [] if folds is None else [train.queries.rows(queries) for queries in folds.queries]
        self._parts = [train.select_rows(rows) for rows in self._rows]
        self._valid = train if valid is None and folds is None else valid
        self._given = [data for data in (train if folds else None, self._valid) if data is not None]
        self._evaluators = [Evaluator(data, profile) for data in self._given]
        self.query_ids: AnyArray = np.concatenate([data.queries.ids for data in self._given])

    def measure(self, fitted: Fitted) -> Validation:
        """How the models of a family rank the queries; of one that is held out more than once the mean."""
        rankings = []
        if self._folds is not None and fitted.without is not None:
            dealings = [one for one in self._folds.dealings if one.stop <= fitted.without.shape[1]]
            rankings.append([self._scores_of(dealing, fitted.without) for dealing in dealings])
        if self._valid is not None:
            rankings.append([scores_to_measure(self._score, fitted.models.coefs, self._valid)])
        values = np.concatenate(
            [
                np.mean([evaluator.evaluate_many(scores, self.metric) for scores in given], axis=0)
                for evaluator, given in zip(self._evaluators, rankings, strict=True)
            ],
            axis=1,
        )
        defined = ~np.isnan(values[0])  # whether a query has a value depends on its labels alone
        if not defined.any():
            raise ValueError(
                f"{self.metric} is undefined for every held-out query: none has a relevant document"
            )
        kept = np.ascontiguousarray(values[:, defined])
        return Validation(self.metric, self.profile, kept, self.query_ids[defined], fitted.window)

    def _scores_of(self, dealing: range, without: FloatArray) -> FloatArray:
        """Scores of the training data (documents × models), each query's by the models without its fold."""
        scores = np.empty((self._train.n_docs, len(without)))
        for fold in dealing:
            scores[self._rows[fold]] = scores_to_measure(self._score, without[:, fold], self._parts[fold])
        return scores


def scores_to_measure(score: Score, coefs: FloatArray, data: Dataset) -> FloatArray:
    """Scores (documents × models); without features a model ranks as badly as can be.

    Equal scores would keep the order of the input, the best one in data that are sorted by label.
    """
    scores = score(coefs, data)
    scores[:, ~coefs.any(axis=1)] = -data.y[:, None]
    return scores


def number_of_folds(cv: int | str, data: Dataset, valid: Dataset | None) -> int:
    """Folds to hold out in turn: none of too few queries, nor, if ``cv`` is "auto", beside enough others."""
    n_folds = AUTO_FOLDS if isinstance(cv, str) else cv
    if (
        isinstance(cv, str)
        and valid is not None
        and np.count_nonzero(valid.pairs_per_query) >= ENOUGH_QUERIES
    ):
        n_folds = 0
    n_folds = min(n_folds, int(np.count_nonzero(data.pairs_per_query)))
    return n_folds if n_folds > 1 else 0


def check_valid(valid: Any) -> None:
    """Validation data are a Dataset in which some ranking is better than another, or None."""
    if valid is None:
        return
    if not isinstance(valid, Dataset):
        raise ValueError(f"valid must be a Dataset, got {type(valid).__name__}; give Dataset(X, y, qid)")
    if not valid.pairs_per_query.any():
        raise ValueError(
            "no query of the validation data has documents of different labels, so all models rank them "
            "equally well; give other validation data, or none for cross-validation"
        )


def warn_of_shared_queries(train: Dataset, valid: Dataset) -> None:
    """Say it when validation queries are training queries too: of the same id and content."""
    place = {query: k for k, query in enumerate(train.queries.ids.tolist())}
    pairs = [(place.get(query), k) for k, query in enumerate(valid.queries.ids.tolist())]
    shared = sum(i is not None and _same_query(train, i, valid, k) for i, k in pairs)
    if shared:
        warn_caller(
            f"{shared} of the {valid.n_queries} validation queries are part of the training data, so models "
            "have seen them and the held-out metric is too high; give validation data of other queries"
        )


def _same_query(a: Dataset, i: int, b: Dataset, j: int) -> bool:
    rows = [data.queries.rows_of(q) for data, q in ((a, i), (b, j))]
    if not np.array_equal(a.y[rows[0]], b.y[rows[1]]):
        return False
    return np.array_equal(dense_rows(a.X, rows[0]), dense_rows(b.X, rows[1]), equal_nan=True)
