"""Held-out queries: validation data, and training queries ranked by models fitted without them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import sha256
from typing import Any

import numpy as np

from ranksieve._types import AnyArray, BoolArray, FloatArray, IntArray
from ranksieve._util.short_repr import ShortRepr
from ranksieve.data.dataset import Dataset
from ranksieve.data.matrix import dense_rows
from ranksieve.data.parts import make_parts, map_queries
from ranksieve.data.steps import StepMatrix
from ranksieve.errors import DataError, warn_caller
from ranksieve.metrics import PROFILES, Evaluator, Profile, parse
from ranksieve.model.linear import LinearModel
from ranksieve.prepare import Preparation

AUTO_FOLDS = 5
ENOUGH_QUERIES = 1000  # from this number of validation queries with pairs on, no cross-validation is needed
MAX_CACHED_CELLS = 2**24  # 128 MB: the rows of each fold are cached for data of at most this size
Z_95 = 1.96  # half width of a 95 % confidence interval, in standard errors
Score = Callable[[FloatArray, Dataset], FloatArray]
"""Function of weights (models × features) and data that returns scores (documents × models)."""


@dataclass(frozen=True, eq=False, repr=False)
class Validation(ShortRepr):
    """Held-out metric of each model of a family: ``values`` (points × queries that have a value).

    The values are noisy, and neighbouring models are nearly the same, so the choice uses the mean over
    neighbours, ``smoothed``. ``neighbours`` (points × points) marks each point and its neighbours; None: no
    averaging.
    """

    metric: str
    profile: Profile
    values: FloatArray
    query_ids: AnyArray
    neighbours: BoolArray | None = None

    @cached_property
    def smoothed(self) -> FloatArray:
        """Values averaged over neighbouring points, query by query."""
        return self.values if self.neighbours is None else average_over(self.values, self.neighbours)

    @property
    def mean(self) -> FloatArray:
        """Criterion of the choice: mean of the smoothed values over queries, one per point."""
        return np.asarray(self.smoothed.mean(axis=1))

    @property
    def standard_error(self) -> FloatArray:
        """Standard error of ``mean`` over queries."""
        return standard_error(self.smoothed)

    @property
    def title(self) -> str:
        """Name of the metric in models."""
        return f"held-out {self.metric} ({self.profile.title})"

    @property
    def criterion(self) -> dict[str, str] | None:
        """Metric, profile and ties as stored in model files; None for a custom profile, which has no name."""
        named = PROFILES.get(self.profile.name)
        if named is None or named.with_ties(self.profile.ties) != self.profile:
            return None
        return {"metric": str(parse(self.metric)), "profile": self.profile.name, "ties": self.profile.ties}

    def to_dict(self) -> dict[str, Any]:
        return {
            "metric": self.metric,
            "profile": self.profile.name,
            "ties": self.profile.ties,
            "mean": self.mean.tolist(),
            "standard_error": self.standard_error.tolist(),
        }


def average_over(values: FloatArray, neighbours: BoolArray) -> FloatArray:
    """Mean of each row of values over its neighbours, which include the row itself."""
    return np.asarray((neighbours / neighbours.sum(axis=1, keepdims=True)) @ values)


def tied(differences: FloatArray) -> BoolArray:
    """Whether the mean of each row is within 1.96 standard errors of 0."""
    return np.asarray(np.abs(differences.mean(axis=1)) <= Z_95 * standard_error(differences))


def standard_error(values: FloatArray) -> FloatArray:
    """Standard error of the row means; 0 for a single column."""
    n = values.shape[1]
    return np.asarray(values.std(axis=1, ddof=1) / np.sqrt(n)) if n > 1 else np.zeros(len(values))


class HeldOut:
    """The held-out queries of a choice, and the metric of models on them.

    They are the training queries, ranked by models fitted without their fold, and the queries of ``valid``.
    With neither folds nor ``valid`` they are the training queries, ranked by models fitted to them.

    The metric is the mean over the orders of documents with equal scores, whatever the profile: sparse models
    tie documents, and the order of the rows, which may depend on the labels, must not decide.

    Parameters
    ----------
    preparation : Preparation
        Preparation of the models' features.
    train, valid : Dataset
        Raw data with the same columns in the same order; for models with step columns, data with these.
    folds : sequence of array
        For each repeat of cross-validation, the fold of each training query; empty: no folds.
    """

    def __init__(
        self,
        preparation: Preparation,
        metric: str,
        profile: Profile,
        train: Dataset,
        folds: Sequence[IntArray] = (),
        valid: Dataset | None = None,
    ) -> None:
        self.metric, self.profile = metric, profile.with_ties("mean")
        self._valid = train if valid is None and not folds else valid
        score = partial(scores_of_models, names=train.feature_names, preparation=preparation)
        rankings = partial(Rankings, score=score, metric=metric, profile=self.profile)
        self._by_fold = make_parts(train, rankings, *folds) if folds else None
        self._by_all = None if self._valid is None else make_parts(self._valid, rankings)
        measured = [data for data in (train if folds else None, self._valid) if data is not None]
        self.query_ids: AnyArray = np.concatenate([data.query_ids for data in measured])
        self._values_of: dict[bytes, FloatArray] = {}  # searches with different limits share models

    def measure(
        self, coefs: FloatArray, fold_coefs: FloatArray | None = None, neighbours: BoolArray | None = None
    ) -> Validation:
        """Metric of models on the held-out queries; the mean for a query that is held out more than once.

        ``fold_coefs`` (models × folds × features) are the weights without each fold.
        """
        if self._by_fold is None or fold_coefs is None:
            fold_coefs = np.empty((len(coefs), 0, 0))
        keys = [_model_key(*versions) for versions in zip(coefs, fold_coefs, strict=True)]
        new = {key: k for k, key in enumerate(keys) if key not in self._values_of}
        if new:
            rows = list(new.values())
            self._values_of |= dict(zip(new, self._values(coefs[rows], fold_coefs[rows]), strict=True))
        values = np.array([self._values_of[key] for key in keys])
        defined = ~np.isnan(values[0])  # depends only on the labels of a query
        if not defined.any():
            reason = f"{self.metric} is undefined for every held-out query: none has a relevant document"
            raise DataError(None, None, reason)
        values = np.ascontiguousarray(values[:, defined])
        return Validation(self.metric, self.profile, values, self.query_ids[defined], neighbours)

    def _values(self, coefs: FloatArray, fold_coefs: FloatArray) -> FloatArray:
        """Values (models × queries)."""
        values = []
        if self._by_fold is not None and fold_coefs.shape[1]:
            values.append(self._by_fold.map_queries(Rankings.by_fold, fold_coefs))
        if self._by_all is not None:
            values.append(self._by_all.map_queries(Rankings.by_all, coefs))
        return np.concatenate(values).T


def _model_key(w: FloatArray, fold_coefs: FloatArray) -> bytes:
    return sha256(w.tobytes() + fold_coefs.tobytes()).digest()


class Rankings:
    """Metric of models on the queries of a part of the data; ``folds``: fold of each query in each repeat."""

    def __init__(self, part: Dataset, *folds: IntArray, score: Score, metric: str, profile: Profile) -> None:
        self._data, self._score, self._metric, self._folds = part, score, metric, folds
        self._evaluator = Evaluator(part, profile)
        self._rows = {
            fold: part.queries.rows(fold_of_query == fold)
            for fold_of_query in folds
            for fold in np.unique(fold_of_query).tolist()
        }
        self._data_of_fold: dict[int, Dataset] = {}
        self._small = part.n_docs * part.n_features <= MAX_CACHED_CELLS

    def by_all(self, coefs: FloatArray) -> FloatArray:
        """Values (queries × models) of models fitted to all data."""
        return self._metric_values(self._score(coefs, self._data))

    def by_fold(self, fold_coefs: FloatArray) -> FloatArray:
        """Values (queries × models), each query ranked by the weights without its fold; mean over repeats.

        ``fold_coefs`` is models × folds × features; repeats whose folds it lacks are left out.
        """
        splits = [np.unique(fold_of_query).tolist() for fold_of_query in self._folds]
        fitted = [split for split in splits if max(split) < fold_coefs.shape[1]]
        values = [self._metric_values(self._scores(split, fold_coefs)) for split in fitted]
        return np.asarray(np.mean(values, axis=0))

    def _scores(self, split: list[int], fold_coefs: FloatArray) -> FloatArray:
        """Scores (documents × models) by the weights without the fold of each query."""
        scores = np.empty((self._data.n_docs, len(fold_coefs)))
        for fold in split:
            scores[self._rows[fold]] = self._score(fold_coefs[:, fold], self._fold_data(fold))
        return scores

    def _fold_data(self, fold: int) -> Dataset:
        """The rows of a fold; cached if the data are small, because the cache holds them once per repeat."""
        if not self._small:
            return self._data.select_rows(self._rows[fold])
        if fold not in self._data_of_fold:
            self._data_of_fold[fold] = self._data.select_rows(self._rows[fold])
        return self._data_of_fold[fold]

    def _metric_values(self, scores: FloatArray) -> FloatArray:
        return self._evaluator.evaluate_many(scores, self._metric).T


def scores_of_models(
    coefs: FloatArray, data: Dataset, names: Sequence[str], preparation: Preparation
) -> FloatArray:
    """Scores (documents × models), identical to ``predict``; a model without features gets the worst ranking.

    ``names`` are the feature names of the training data. Equal scores would have the metric of a random
    ranking, which can be higher than that of a model with features; but a model without features is useless.
    The ``data`` of models with step columns have these columns.
    """
    if isinstance(data.X, StepMatrix):
        scores = data.X.scores_of_models(coefs)
    else:
        used = np.flatnonzero(coefs.any(axis=0))
        model = LinearModel.of(names, used, np.ones(len(used)), preparation)
        scores = model.predict_with(coefs[:, used], data.X, data.qid)
    scores[:, ~coefs.any(axis=1)] = -data.y[:, None]
    return scores


def number_of_folds(cv: int | str, data: Dataset, valid: Dataset | None) -> int:
    """Number of folds; 0 for fewer than two queries with pairs, or for "auto" with large validation data."""
    n_folds = AUTO_FOLDS if isinstance(cv, str) else cv
    if (
        isinstance(cv, str)
        and valid is not None
        and np.count_nonzero(valid.pairs_per_query) >= ENOUGH_QUERIES
    ):
        n_folds = 0
    n_folds = min(n_folds, int(np.count_nonzero(data.pairs_per_query)))
    return n_folds if n_folds > 1 else 0


def warn_of_shared_queries(train: Dataset, valid: Dataset) -> None:
    """Warn if validation queries also occur in the training data (same id and content)."""
    index = {query: k for k, query in enumerate(train.query_ids.tolist())}
    pairs = [(index.get(query), k) for k, query in enumerate(valid.query_ids.tolist())]
    same_id = [(i, k) for i, k in pairs if i is not None]
    shared = 0
    if same_id:
        in_train, in_valid = zip(*same_id, strict=True)
        shared = int(np.count_nonzero(_digests_of(train, in_train) == _digests_of(valid, in_valid)))
    if shared:
        warn_caller(
            f"{shared} of the {valid.n_queries} validation queries are also training queries, so the "
            "held-out metric is too high; use validation data of other queries"
        )


def _digests_of(data: Dataset, queries: Sequence[int]) -> AnyArray:
    """Hashes of the labels and features of some queries."""
    wanted = np.zeros(data.n_queries, dtype=bool)
    wanted[list(queries)] = True
    return map_queries(data, _digests, wanted)[list(queries)]


def _digests(data: Dataset, wanted: BoolArray) -> AnyArray:
    digests = np.zeros(data.n_queries, dtype="S16")
    for q in np.flatnonzero(wanted):
        rows = data.queries.rows_of(int(q))
        values = np.column_stack([data.y[rows], dense_rows(data.X, rows)]) + 0.0
        values[np.isnan(values)] = np.nan
        digests[q] = sha256(values.tobytes()).hexdigest()[:16]
    return digests
