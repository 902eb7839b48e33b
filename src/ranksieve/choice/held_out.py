"""Held-out queries: validation data, and the training queries ranked by models that have not seen them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import sha256
from typing import Any

import numpy as np

from ranksieve._types import AnyArray, BoolArray, FloatArray, IntArray
from ranksieve.data.dataset import Dataset
from ranksieve.data.matrix import dense_rows
from ranksieve.data.parts import for_queries, parts
from ranksieve.errors import DataError, warn_caller
from ranksieve.metrics import PROFILES, Evaluator, Profile, parse
from ranksieve.model.linear import LinearModel
from ranksieve.prepare import Preparation

AUTO_FOLDS = 5
ENOUGH_QUERIES = 1000  # validation queries with pairs that make cross-validation superfluous
KEPT_CELLS = 2**24  # 128 MB: up to this size the rows of each fold are kept in memory
TIED = 1.96  # standard errors of a mean within which it may be 0
Score = Callable[[FloatArray, Dataset], FloatArray]
"""From weights (models × features) and data to scores (documents × models)."""


@dataclass(frozen=True, eq=False)
class Validation:
    """Held-out metric of each model of a family: ``values`` (points × queries that have a value).

    A value is part noise, and neighbours are nearly the same model: the mean over them, ``smoothed``, is what
    models are chosen by. ``near`` (points × points) marks each point and its neighbours; None: none has any.
    """

    metric: str
    profile: Profile
    values: FloatArray
    query_ids: AnyArray
    near: BoolArray | None = None

    @cached_property
    def smoothed(self) -> FloatArray:
        """Values averaged over neighbouring points, query by query."""
        return self.values if self.near is None else averaged(self.values, self.near)

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


def averaged(values: FloatArray, near: BoolArray) -> FloatArray:
    """The mean of each row and its neighbours, itself where it has none."""
    return np.asarray((near / near.sum(axis=1, keepdims=True)) @ values)


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

    Parameters
    ----------
    preparation : Preparation
        How the models' features are prepared.
    train, valid : Dataset
        Unprepared, with the columns of the training data in their order.
    folds : sequence of array
        For each way to deal the training queries into folds, the fold of each query; empty: no folds.
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
        self.metric, self.profile = metric, profile
        self._valid = train if valid is None and not folds else valid
        score = partial(scores_of_models, names=train.feature_names, preparation=preparation)
        rankings = partial(Rankings, score=score, metric=metric, profile=profile)
        self._by_fold = parts(train, rankings, *folds) if folds else None
        self._by_all = None if self._valid is None else parts(self._valid, rankings)
        measured = [data for data in (train if folds else None, self._valid) if data is not None]
        self.query_ids: AnyArray = np.concatenate([data.query_ids for data in measured])
        self._values_of: dict[bytes, FloatArray] = {}  # searches within two limits begin alike

    def measure(
        self, coefs: FloatArray, fold_coefs: FloatArray | None = None, neighbours: BoolArray | None = None
    ) -> Validation:
        """How models rank the queries; the mean for a query that is held out more than once.

        ``fold_coefs`` (models × folds × features) are their versions without each fold.
        """
        if self._by_fold is None or fold_coefs is None:
            fold_coefs = np.empty((len(coefs), 0, 0))
        keys = [_model_key(*versions) for versions in zip(coefs, fold_coefs, strict=True)]
        new = {key: k for k, key in enumerate(keys) if key not in self._values_of}
        if new:
            some = list(new.values())
            values_of_new = self._values(coefs[some], fold_coefs[some])
            self._values_of |= dict(zip(new, values_of_new, strict=True))
        values = np.array([self._values_of[key] for key in keys])
        defined = ~np.isnan(values[0])  # whether a query has a value depends on its labels alone
        if not defined.any():
            reason = f"{self.metric} is undefined for every held-out query: none has a relevant document"
            raise DataError(None, None, reason)
        values = np.ascontiguousarray(values[:, defined])
        return Validation(self.metric, self.profile, values, self.query_ids[defined], neighbours)

    def _values(self, coefs: FloatArray, fold_coefs: FloatArray) -> FloatArray:
        """Values (models × queries)."""
        values = []
        if self._by_fold is not None and fold_coefs.shape[1]:
            values.append(self._by_fold.for_queries(Rankings.by_fold, fold_coefs))
        if self._by_all is not None:
            values.append(self._by_all.for_queries(Rankings.by_all, coefs))
        return np.concatenate(values).T


def _model_key(w: FloatArray, fold_coefs: FloatArray) -> bytes:
    """A short name for the weights of a model and of its versions without each fold."""
    return sha256(w.tobytes() + fold_coefs.tobytes()).digest()


class Rankings:
    """How models rank the queries of a part of the data; ``folds`` has their folds in each dealing."""

    def __init__(self, part: Dataset, *folds: IntArray, score: Score, metric: str, profile: Profile) -> None:
        self._data, self._score, self._metric, self._folds = part, score, metric, folds
        self._evaluator = Evaluator(part, profile)
        self._rows = {
            fold: part.queries.rows(dealing == fold)
            for dealing in folds
            for fold in np.unique(dealing).tolist()
        }
        self._data_of_fold: dict[int, Dataset] = {}
        self._small = part.n_docs * part.n_features <= KEPT_CELLS

    def by_all(self, coefs: FloatArray) -> FloatArray:
        """Values (queries × models) by models of all data."""
        return self._measured(self._score(coefs, self._data))

    def by_fold(self, fold_coefs: FloatArray) -> FloatArray:
        """Values (queries × models), each query ranked by the versions without its fold.

        ``fold_coefs`` is models × folds × features; over several ways to deal the mean is taken.
        """
        dealings = [np.unique(one).tolist() for one in self._folds]
        fitted = [one for one in dealings if max(one) < fold_coefs.shape[1]]
        return np.asarray(np.mean([self._measured(self._scores(one, fold_coefs)) for one in fitted], axis=0))

    def _scores(self, dealing: list[int], fold_coefs: FloatArray) -> FloatArray:
        """Scores (documents × models), each query's by the versions without its fold."""
        scores = np.empty((self._data.n_docs, len(fold_coefs)))
        for fold in dealing:
            scores[self._rows[fold]] = self._score(fold_coefs[:, fold], self._fold_data(fold))
        return scores

    def _fold_data(self, fold: int) -> Dataset:
        """The rows of a fold, kept if the data are small: every dealing is a copy of them."""
        if not self._small:
            return self._data.select_rows(self._rows[fold])
        if fold not in self._data_of_fold:
            self._data_of_fold[fold] = self._data.select_rows(self._rows[fold])
        return self._data_of_fold[fold]

    def _measured(self, scores: FloatArray) -> FloatArray:
        return self._evaluator.evaluate_many(scores, self._metric).T


def scores_of_models(
    coefs: FloatArray, data: Dataset, names: Sequence[str], preparation: Preparation
) -> FloatArray:
    """Scores (documents × models), the bits of ``predict``; a model without features ranks worst of all.

    ``names`` are those of the training data, whose columns the data have. Equal scores would keep the
    order of the input, which is the best one if the data are sorted by label.
    """
    used = np.flatnonzero(coefs.any(axis=0))
    model = LinearModel.of(names, used, np.ones(len(used)), preparation)
    scores = model.predict_with(coefs[:, used], data.X, data.qid)
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


def warn_of_shared_queries(train: Dataset, valid: Dataset) -> None:
    """Warn if validation queries are also training queries: same id, same content."""
    place = {query: k for k, query in enumerate(train.query_ids.tolist())}
    pairs = [(place.get(query), k) for k, query in enumerate(valid.query_ids.tolist())]
    both = [(i, k) for i, k in pairs if i is not None]
    shared = 0
    if both:
        of_train, of_valid = (
            _digests_of(data, at) for data, at in zip((train, valid), zip(*both, strict=True), strict=True)
        )
        shared = int(np.count_nonzero(of_train == of_valid))
    if shared:
        warn_caller(
            f"{shared} of the {valid.n_queries} validation queries are part of the training data, so models "
            "have seen them and the held-out metric is too high; give validation data of other queries"
        )


def _digests_of(data: Dataset, queries: Sequence[int]) -> AnyArray:
    """Short names for the content of some queries: labels and features, in order."""
    wanted = np.zeros(data.n_queries, dtype=bool)
    wanted[list(queries)] = True
    return for_queries(data, _digests, wanted)[list(queries)]


def _digests(data: Dataset, wanted: BoolArray) -> AnyArray:
    names = np.zeros(data.n_queries, dtype="S16")
    for q in np.flatnonzero(wanted):
        rows = data.queries.rows_of(int(q))
        values = np.column_stack([data.y[rows], dense_rows(data.X, rows)]) + 0.0
        values[np.isnan(values)] = np.nan
        names[q] = sha256(values.tobytes()).hexdigest()[:16]
    return names
