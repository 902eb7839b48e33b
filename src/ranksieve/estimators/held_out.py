"""Held-out queries: validation data, and the training queries ranked by models that have not seen them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ranksieve._types import AnyArray, FloatArray
from ranksieve._util.messages import warn_caller
from ranksieve.data.dataset import Dataset, fingerprint
from ranksieve.estimators.families import Fitted
from ranksieve.leave_out import Folds
from ranksieve.metrics import Evaluator, Profile

Score = Callable[[FloatArray, Dataset], FloatArray]
"""From weights (models × features) and data to scores (documents × models), with the bits of ``predict``."""


@dataclass(frozen=True, eq=False)
class Validation:
    """Held-out metric of each model of a family: ``values`` (points × queries that have a value).

    Neighbours of a sequence are nearly the same model, so the mean over ``window`` of them (fewer at its
    ends) tells more of a point than its own value, which is part noise. All that is derived from values
    (``mean``, ``standard_error``) is derived from those means, ``smoothed``.
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
        """Mean over queries of the smoothed values, one per point."""
        return np.asarray(self.smoothed.mean(axis=1))

    @property
    def standard_error(self) -> FloatArray:
        """Standard error of the mean over queries."""
        return standard_error(self.smoothed)

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
    if reach == 0 or n == 0:
        return values
    sums = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    first, last = np.maximum(np.arange(n) - reach, 0), np.minimum(np.arange(n) + reach + 1, n)
    return np.asarray((sums[last] - sums[first]) / (last - first)[:, None])


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
        self._queries = [] if folds is None else folds.queries
        given = train if valid is None and folds is None else valid
        self._n_train = 0 if folds is None else train.n_queries
        parts = [train.select_queries(queries) for queries in self._queries]
        self._parts = parts if given is None else [*parts, given]
        self._evaluators = [Evaluator(part, profile) for part in self._parts]
        ids = [train.queries.ids] if folds is not None else []
        self.query_ids: AnyArray = np.concatenate(ids if given is None else [*ids, given.queries.ids])

    def measure(self, fitted: Fitted) -> Validation:
        """How the models of a family rank the queries; of a query that is held out twice the mean of both."""
        n_folds = len(self._queries)
        coefs = [*(fitted.without[:, k] for k in range(n_folds))] if fitted.without is not None else []
        coefs += [fitted.models.coefs] * (len(self._parts) - n_folds)
        measured = [
            evaluator.evaluate_many(self._score(weights, part), self.metric)
            for weights, part, evaluator in zip(coefs, self._parts, self._evaluators, strict=True)
        ]
        values = np.concatenate(
            [self._mean_of_folds(measured[:n_folds], len(fitted.models)), *measured[n_folds:]], 1
        )
        defined = ~np.isnan(values[0])  # whether a query has a value depends on its labels alone
        if not defined.any():
            raise ValueError(
                f"{self.metric} is undefined for every held-out query: none has a relevant document"
            )
        kept = np.ascontiguousarray(values[:, defined])
        return Validation(self.metric, self.profile, kept, self.query_ids[defined], fitted.window)

    def _mean_of_folds(self, measured: list[FloatArray], n_models: int) -> FloatArray:
        sums, times = np.zeros((n_models, self._n_train)), np.zeros(self._n_train)
        for queries, values in zip(self._queries, measured, strict=True):
            sums[:, queries] += values
            times[queries] += 1
        return np.asarray(sums / times)


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
    if a.queries.sizes[i] != b.queries.sizes[j] or a.X.shape[1] != b.X.shape[1]:
        return False
    one, other = a.select_queries(np.array([i])), b.select_queries(np.array([j]))
    return bool(np.array_equal(one.y, other.y)) and fingerprint(one) == fingerprint(other)
