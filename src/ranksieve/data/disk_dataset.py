"""A data set on disk: features are read where they are wanted, labels and names are mapped into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from ranksieve._types import AnyArray, BoolArray, FloatArray, IntArray, Matrix
from ranksieve.data.dataset import Dataset, take_rows
from ranksieve.data.matrix import is_streamed
from ranksieve.data.parts import Parts
from ranksieve.data.queries import Queries, few_queries, queries_in_order
from ranksieve.data.spool import spooled
from ranksieve.data.streamed import RowRange, StreamedMatrix
from ranksieve.errors import ParameterError

T = TypeVar("T")
R = TypeVar("R")
IN_MEMORY = 2**28  # bytes of chosen rows that are held in memory
PART_ROWS = 2**16  # documents that are looked at together where a part is enough


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
        texts: Mapping[str, Sequence[str]] | None = None,
        document_weight: FloatArray | None = None,
    ) -> None:
        self.X, self.y, self.feature_names = X, y, tuple(feature_names)
        self.__dict__["queries"] = queries
        self.doc_ids, self.comments, self.truth = doc_ids, comments, truth
        self.source, self.profile = source, profile
        self.texts, self.document_weight = dict(texts or {}), document_weight

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
            truth=truth, **self._beside_features(),
        )  # fmt: skip

    def in_query_order(self, queries: IntArray) -> Dataset:
        """The rows of the chosen queries, query after query; many of them in a temporary file."""
        sizes = self.queries.sizes[queries]
        rows = np.repeat(self.queries.offsets[queries] - np.cumsum(sizes) + sizes, sizes)
        return self._kept(rows + np.arange(len(rows)))

    def _kept(self, rows: IntArray) -> Dataset:
        """Some rows, those of a query together; many of them in a temporary file."""
        if len(rows) * self.n_features * self.X.dtype.itemsize <= IN_MEMORY:
            return self.select_rows(rows)
        query = np.searchsorted(self.queries.offsets, rows, side="right") - 1
        starts = np.flatnonzero(np.diff(query, prepend=-1))
        sizes = np.diff(np.append(starts, len(rows)))
        return DiskDataset(
            spooled(self.X, rows), self.y[rows], queries_in_order(self.queries.ids[query[starts]], sizes),
            self.feature_names, truth=self.truth, source=self.source, profile=self.profile,
            document_weight=take_rows(self.document_weight, rows),
        )  # fmt: skip

    def select_queries(self, queries: IntArray | BoolArray) -> Dataset:
        chosen = np.zeros(self.n_queries, dtype=bool)
        chosen[queries] = True
        return self.in_query_order(np.flatnonzero(chosen))

    def parts(self, make: Callable[..., T], *per_query: AnyArray | None) -> Parts[T]:
        return PartsOnDisk(self, make, per_query)

    def part(self, first: int, last: int) -> DiskDataset:
        """The queries first..last, still on disk."""
        begin, end = self.queries.offsets[[first, last]].tolist()
        ids, sizes = self.queries.ids[first:last], self.queries.sizes[first:last]
        return DiskDataset(
            RowRange(self.X, begin, end), self.y[begin:end], queries_in_order(ids, sizes), self.feature_names,
            truth=self.truth, source=self.source, profile=self.profile,
            document_weight=take_rows(self.document_weight, slice(begin, end)),
        )  # fmt: skip

    def select_rows(self, rows: IntArray | BoolArray) -> Dataset:
        """The chosen rows, in the order given, in memory."""
        given = np.asarray(rows)
        index: IntArray = np.flatnonzero(given) if given.dtype == bool else given.astype(np.int64)
        if len(index) == 0:
            raise ParameterError("rows", rows, "must choose at least one row")
        index = np.where(index < 0, index + self.n_docs, index)
        query = np.searchsorted(self.queries.offsets, index, side="right") - 1
        return Dataset(
            self.X[index], self.y[index], self.queries.ids[query],
            self.feature_names, take_rows(self.doc_ids, index),
            truth=self.truth, **self._beside_features(index),
        )  # fmt: skip


class PartsOnDisk(Parts[T]):
    """One object per run of queries, made anew each time it is asked."""

    def __init__(
        self, data: DiskDataset, make: Callable[..., T], per_query: Sequence[AnyArray | None]
    ) -> None:
        self._data, self._make, self._per_query = data, make, per_query

    def ask(self, find: Callable[..., R], *args: object) -> list[R]:
        return [find(part, *args) for part in self._parts()]

    def for_queries(self, find: Callable[..., AnyArray], *args: object) -> AnyArray:
        return np.concatenate(self.ask(find, *args))

    def _parts(self) -> Iterator[T]:
        for a, b in few_queries(self._data.queries.offsets, 0, self._data.n_queries, PART_ROWS):
            shares = (None if values is None else values[a:b] for values in self._per_query)
            yield self._make(self._data.part(a, b), *shares)
