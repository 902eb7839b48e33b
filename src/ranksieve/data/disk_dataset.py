"""A data set on disk: features are read where they are wanted, labels and names are mapped into memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ranksieve._types import AnyArray, BoolArray, FloatArray, IntArray, Matrix
from ranksieve.data.dataset import Dataset, take_rows
from ranksieve.data.matrix import is_streamed
from ranksieve.data.queries import Queries
from ranksieve.data.streamed import StreamedMatrix


class DiskDataset(Dataset):
    """Judged documents on disk, query by query; only what is asked for is read.

    ``X`` is a :class:`StreamedMatrix`. Rows of one query are together, so ``queries`` needs sizes alone, and
    ``qid``, which repeats the id of each query, is made when it is asked for and not kept.
    """

    def __init__(
        self,
        X: StreamedMatrix,
        y: FloatArray,
        queries: Queries,
        feature_names: Sequence[str],
        doc_ids: Sequence[Any] | None = None,
        *,
        comments: Sequence[str] | None = None,
        truth: AnyArray | None = None,
        source: str | None = None,
        profile: str | None = None,
    ) -> None:
        self.X, self.y, self.feature_names = X, y, tuple(feature_names)
        self.__dict__["queries"] = queries
        self.doc_ids, self.comments, self.truth = doc_ids, comments, truth
        self.source, self.profile = source, profile

    @property
    def qid(self) -> AnyArray:  # type: ignore[override]
        """Query id of each row."""
        return np.repeat(self.queries.ids, self.queries.sizes)

    def replace_features(self, X: Matrix, feature_names: Sequence[str] | None = None) -> Dataset:
        if not is_streamed(X):
            return super().replace_features(X, feature_names)
        truth = self.truth if X.shape[1] == self.n_features else None
        return DiskDataset(
            X, self.y, self.queries, feature_names or self.feature_names, self.doc_ids,
            comments=self.comments, truth=truth, source=self.source, profile=self.profile,
        )  # fmt: skip

    def select_rows(self, rows: IntArray | BoolArray) -> Dataset:
        """The chosen rows, in the order given, in memory."""
        given = np.asarray(rows)
        index: IntArray = np.flatnonzero(given) if given.dtype == bool else given.astype(np.int64)
        if len(index) == 0:
            raise ValueError("no row was chosen: a data set needs at least one document")
        index = np.where(index < 0, index + self.n_docs, index)
        query = np.searchsorted(self.queries.offsets, index, side="right") - 1
        return Dataset(
            self.X[index], self.y[index], self.queries.ids[query],
            self.feature_names, take_rows(self.doc_ids, index),
            comments=take_rows(self.comments, index), truth=self.truth, source=self.source,
            profile=self.profile,
        )  # fmt: skip
