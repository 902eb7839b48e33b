"""A data set whose rows are elsewhere, in parts that hold whole queries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np

from ranksieve._types import AnyArray, BoolArray, FloatArray, IntArray
from ranksieve.data.dataset import Dataset, Parts
from ranksieve.errors import DataError

T = TypeVar("T")
ELSEWHERE = "{what} needs the data in memory, and these are distributed; see docs/scale.md for what works"
ROWS = ("X", "y", "qid", "doc_ids", "comments")


class RemoteDataset(Dataset, ABC):
    """Judged documents that this process does not hold; it knows their queries and the names of features.

    Whatever needs rows is asked of the parts (:meth:`ranksieve.Dataset.parts`), each a Dataset in memory
    somewhere else. What needs all rows at once is refused.
    """

    feature_names: tuple[str, ...]
    texts: dict[str, Sequence[str]] = {}  # noqa: RUF012
    document_weight: FloatArray | None = None

    def __init__(
        self, feature_names: tuple[str, ...], query_ids: AnyArray, source: str | None, profile: str | None
    ) -> None:
        self.feature_names, self._query_ids = feature_names, query_ids
        self.source, self.profile, self.truth = source, profile, None

    def __getattr__(self, name: str) -> Any:
        if name in ROWS:
            raise DataError(None, None, ELSEWHERE.format(what="this"))
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    @property
    def n_features(self) -> int:
        return len(self.feature_names)

    @property
    def n_queries(self) -> int:
        return len(self._query_ids)

    @property
    def query_ids(self) -> AnyArray:
        return self._query_ids

    @cached_property
    def query_sizes(self) -> IntArray:
        """Documents per query."""
        return self.for_queries(_sizes)

    @cached_property
    def pairs_per_query(self) -> IntArray:
        return self.for_queries(_pairs)

    @cached_property
    def pair_weights(self) -> FloatArray:
        return self.for_queries(_pair_weights)

    @property
    def n_docs(self) -> int:
        return int(self.query_sizes.sum())

    def select_features(self, columns: Any) -> Dataset:
        return self.changed(partial(_with_columns, columns=self._columns(columns)))

    def select_queries(self, queries: IntArray | BoolArray) -> Dataset:
        chosen = np.zeros(self.n_queries, dtype=bool)
        chosen[queries] = True
        return self.in_query_order(np.flatnonzero(chosen))

    def without_weightless(self) -> tuple[Dataset, IntArray]:
        sizes = self.for_queries(_sizes_without_weightless)
        numbers = np.flatnonzero(sizes)
        if len(numbers) == 0 or (sizes == self.query_sizes).all():
            return self, np.arange(self.n_queries)
        kept = self if len(numbers) == self.n_queries else self.select_queries(numbers)
        return kept.changed(_without_weightless), numbers

    @abstractmethod
    def parts(self, make: Callable[..., T], *per_query: AnyArray | None) -> Parts[T]: ...

    @abstractmethod
    def in_parts(self, find: Callable[..., T], *per_query: AnyArray | None) -> list[T]: ...

    @abstractmethod
    def for_queries(self, find: Callable[..., AnyArray], *per_query: AnyArray | None) -> AnyArray: ...

    @abstractmethod
    def changed(self, change: Callable[[Dataset], Dataset]) -> Dataset: ...

    @abstractmethod
    def in_query_order(self, queries: IntArray) -> Dataset: ...

    @abstractmethod
    def joined(self, other: Dataset) -> Dataset:
        """The rows of both; queries of the other stay apart from those of this one."""

    @abstractmethod
    def objective(self, loss: Any, query_weight: AnyArray | None) -> Any:
        """The mean loss as a function of weights: a :class:`ranksieve.objective.Objective`."""

    @abstractmethod
    def in_order_of_queries(self, found: Sequence[AnyArray]) -> AnyArray:
        """What was found for the queries of each part, as one array for all queries."""

    @abstractmethod
    def measured(self, scores: Any, measure: Callable[[Dataset, AnyArray], T]) -> list[T]:
        """What ``measure(part, its scores)`` gives for each part.

        Scores are as :meth:`predicted` gives them, or something with a method ``predict``.
        """

    @abstractmethod
    def predicted(self, score: Callable[[Dataset], AnyArray]) -> Any:
        """What ``score`` gives for the rows of each part, in the row order of the source, still elsewhere."""


def _sizes(part: Dataset) -> IntArray:
    return part.queries.sizes


def _sizes_without_weightless(part: Dataset) -> IntArray:
    if part.document_weight is None:
        return part.queries.sizes
    present = part.queries.group(part.document_weight) > 0
    return np.add.reduceat(present, part.queries.offsets[:-1], dtype=np.int64)


def _without_weightless(part: Dataset) -> Dataset:
    """In query order, since a query must not come later because its first document is absent."""
    if part.document_weight is None:
        return part
    order = part.queries.order
    return part.select_rows(order[part.document_weight[order] > 0])


def _pairs(part: Dataset) -> IntArray:
    return part.pairs_per_query


def _pair_weights(part: Dataset) -> FloatArray:
    return part.pair_weights


def _with_columns(part: Dataset, columns: IntArray) -> Dataset:
    return part.select_features(columns)
