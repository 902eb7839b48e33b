"""Data in parts of whole queries: operations that work wherever the rows are.

Data in memory are one part, data on disk are read in many parts, and the parts of :class:`RemoteData` are on
other machines. Each part is a Dataset. ``per_query`` are arrays with one entry per query; each part gets the
entries of its queries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ranksieve._types import AnyArray

if TYPE_CHECKING:
    from ranksieve.data.dataset import Dataset

T = TypeVar("T")
R = TypeVar("R")
NEEDS_MEMORY = "{what} needs the data in memory, but they are distributed; see docs/cluster.md for what works"


class PartObjects(ABC, Generic[T]):
    """One object per part of a data set."""

    @abstractmethod
    def map(self, function: Callable[..., R], *args: object) -> list[R]:
        """``function(object, *args)`` of each part."""

    @abstractmethod
    def map_queries(self, function: Callable[..., AnyArray], *args: object) -> AnyArray:
        """``function(object, *args)``, which has one entry per query of a part, joined in query order."""


class OnePart(PartObjects[T]):
    """The one object of data in memory."""

    def __init__(self, part: T) -> None:
        self._part = part

    def map(self, function: Callable[..., R], *args: object) -> list[R]:
        return [function(self._part, *args)]

    def map_queries(self, function: Callable[..., AnyArray], *args: object) -> AnyArray:
        return function(self._part, *args)


class PartitionedData(ABC):
    """A data set that is processed in several parts."""

    @abstractmethod
    def make_parts(self, make: Callable[..., T], *per_query: AnyArray | None) -> PartObjects[T]:
        """See :func:`make_parts`."""


class RemoteData(PartitionedData):
    """A data set whose rows are on other machines: this process has only query ids and feature names."""

    @property
    @abstractmethod
    def query_ids(self) -> AnyArray:
        """One id per query."""

    @abstractmethod
    def map_parts(self, function: Callable[..., T], *per_query: AnyArray | None) -> list[T]:
        """See :func:`map_parts`."""

    @abstractmethod
    def to_query_order(self, values: Sequence[AnyArray]) -> AnyArray:
        """Join arrays with one entry per query of each part, in query order."""

    @abstractmethod
    def transform_parts(self, change: Callable[[Dataset], Dataset]) -> Dataset:
        """See :func:`transform_parts`."""

    @abstractmethod
    def objective(self, loss: Any, query_weight: AnyArray | None) -> Any:
        """The mean loss as a function of weights: a :class:`ranksieve.objective.Objective`."""

    @abstractmethod
    def measure_parts(self, scores: Any, measure: Callable[[Dataset, AnyArray], T]) -> list[T]:
        """``measure(part, its scores)`` of each part.

        ``scores`` is the result of :meth:`predict_parts`, or an object with a method ``predict``.
        """

    @abstractmethod
    def predict_parts(self, score: Callable[[Dataset], AnyArray]) -> Any:
        """``score(part)`` of each part, in the row order of the source; the scores stay on the workers."""


def make_parts(data: Dataset, make: Callable[..., T], *per_query: AnyArray | None) -> PartObjects[T]:
    """Create ``make(part, *shares)`` for each part, where the part is."""
    if isinstance(data, PartitionedData):
        return data.make_parts(make, *per_query)
    return OnePart(make(data, *per_query))


def map_parts(data: Dataset, function: Callable[..., T], *per_query: AnyArray | None) -> list[T]:
    """``function(part, *shares)`` of each part."""
    return (
        data.map_parts(function, *per_query) if isinstance(data, RemoteData) else [function(data, *per_query)]
    )


def map_queries(data: Dataset, function: Callable[..., AnyArray], *per_query: AnyArray | None) -> AnyArray:
    """``function(part, *shares)``, which has one entry per query of a part, for all queries."""
    if isinstance(data, RemoteData):
        return data.to_query_order(data.map_parts(function, *per_query))
    return function(data, *per_query)


def transform_parts(data: Dataset, change: Callable[[Dataset], Dataset]) -> Dataset:
    """Apply ``change`` to each part; it must keep the queries and their order."""
    return data.transform_parts(change) if isinstance(data, RemoteData) else change(data)
