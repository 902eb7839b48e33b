"""Held-out queries: validation data, and the training queries ranked by models that have not seen them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import sha256
from typing import Any

import numpy as np

from ranksieve._types import AnyArray, BoolArray, FloatArray, IntArray
from ranksieve._util.messages import warn_caller
from ranksieve.choice.families import Fitted
from ranksieve.choice.leave_out import Folds
from ranksieve.data.dataset import Dataset
from ranksieve.data.matrix import dense_rows
from ranksieve.data.parts import for_queries, parts
from ranksieve.errors import DataError
from ranksieve.metrics import PROFILES, Evaluator, Profile, parse

AUTO_FOLDS = 5
ENOUGH_QUERIES = 1000  # validation queries with pairs: so many tell more than cross-validation could add
KEPT_CELLS = 2**24  # of features, 128 MB: up to so many the rows of folds are kept apart
TIED = 1.96  # standard errors of a mean within which it may be 0
Score = Callable[[FloatArray, Dataset], FloatArray]
"""From weights (models × features) and data to scores (documents × models), with the bits of ``predict``."""


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
        self.metric, self.profile, self._folds = metric, profile, folds
        rankings = partial(Rankings, score=score, metric=metric, profile=profile)
        self._valid = train if valid is None and folds is None else valid
        self._seen = None if self._valid is None else parts(self._valid, rankings)
        given = [data for data in (train if folds else None, self._valid) if data is not None]
        if folds is not None:
            self._crossed = parts(train, rankings, *(_fold_of_queries(folds, one) for one in folds.dealings))
        self.query_ids: AnyArray = np.concatenate([data.query_ids for data in given])
        self._known: dict[bytes, FloatArray] = {}  # selections within two limits begin alike

    def measure(self, fitted: Fitted) -> Validation:
        """How the models of a family rank the queries; of one that is held out more than once the mean."""
        coefs, without = fitted.models.coefs, fitted.without
        if self._folds is None or without is None:
            without = np.empty((len(coefs), 0, 0))
        keys = [_name_of_model(*versions) for versions in zip(coefs, without, strict=True)]
        new = {key: k for k, key in enumerate(keys) if key not in self._known}
        if new:
            some = list(new.values())
            self._known |= dict(zip(new, self._values(coefs[some], without[some]), strict=True))
        values = np.array([self._known[key] for key in keys])
        defined = ~np.isnan(values[0])  # whether a query has a value depends on its labels alone
        if not defined.any():
            reason = f"{self.metric} is undefined for every held-out query: none has a relevant document"
            raise DataError(None, None, reason)
        kept = np.ascontiguousarray(values[:, defined])
        return Validation(self.metric, self.profile, kept, self.query_ids[defined], fitted.neighbours)

    def _values(self, coefs: FloatArray, without: FloatArray) -> FloatArray:
        """Values (models × queries) of models of all data and without each fold."""
        found = []
        if without.shape[1]:
            found.append(self._crossed.for_queries(Rankings.crossed, without))
        if self._seen is not None:
            found.append(self._seen.for_queries(Rankings.plain, coefs))
        return np.concatenate(found).T


def _name_of_model(w: FloatArray, without: FloatArray) -> bytes:
    """A short name for the weights of a model and of its versions without each fold."""
    return sha256(w.tobytes() + without.tobytes()).digest()


def _fold_of_queries(folds: Folds, dealing: range) -> IntArray:
    """The fold of each query in one way to deal."""
    fold = np.empty(sum(len(folds.queries[k]) for k in dealing), dtype=np.int64)
    for k in dealing:
        fold[folds.queries[k]] = k
    return fold


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
        self._kept: dict[int, Dataset] | None = {} if part.n_docs * part.n_features <= KEPT_CELLS else None

    def plain(self, coefs: FloatArray) -> FloatArray:
        """Values (queries × models)."""
        return self._measured(scores_to_measure(self._score, coefs, self._data))

    def crossed(self, without: FloatArray) -> FloatArray:
        """Values (queries × points), each query ranked by the models without its fold.

        ``without`` is points × folds × features; of several ways to deal the mean is taken.
        """
        dealings = [np.unique(one).tolist() for one in self._folds]
        known = [one for one in dealings if max(one) < without.shape[1]]
        return np.asarray(np.mean([self._measured(self._scores_of(one, without)) for one in known], axis=0))

    def _scores_of(self, dealing: list[int], without: FloatArray) -> FloatArray:
        """Scores (documents × models), each query's by the models without its fold."""
        scores = np.empty((self._data.n_docs, len(without)))
        for fold in dealing:
            scores[self._rows[fold]] = scores_to_measure(self._score, without[:, fold], self._of_fold(fold))
        return scores

    def _of_fold(self, fold: int) -> Dataset:
        """The rows of a fold, kept if all of them are few: every dealing is a copy of the data."""
        if self._kept is None:
            return self._data.select_rows(self._rows[fold])
        if fold not in self._kept:
            self._kept[fold] = self._data.select_rows(self._rows[fold])
        return self._kept[fold]

    def _measured(self, scores: FloatArray) -> FloatArray:
        return self._evaluator.evaluate_many(scores, self._metric).T


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


def warn_of_shared_queries(train: Dataset, valid: Dataset) -> None:
    """Say it when validation queries are training queries too: of the same id and content."""
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
