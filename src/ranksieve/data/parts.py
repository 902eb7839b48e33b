"""Data in parts of whole queries: what can be asked of data wherever their rows are.

Data in memory are one part, those on disk are many where a part is enough, and the parts of
:class:`RemoteRows` are on other machines. A part is a Dataset in its own right. ``per_query`` are arrays with
one entry per query, of which each part gets its own.
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
ELSEWHERE = "{what} needs the data in memory, and these are distributed; see docs/scale.md for what works"


class Parts(ABC, Generic[T]):
    """One object per part of a data set."""

    @abstractmethod
    def ask(self, find: Callable[..., R], *args: object) -> list[R]:
        """What ``find(object, *args)`` gives for each part."""

    @abstractmethod
    def for_queries(self, find: Callable[..., AnyArray], *args: object) -> AnyArray:
        """What ``find(object, *args)`` gives for each query of a part, for all queries in their order."""


class OnePart(Parts[T]):
    """The one object of data in memory."""

    def __init__(self, part: T) -> None:
        self._part = part

    def ask(self, find: Callable[..., R], *args: object) -> list[R]:
        return [find(self._part, *args)]

    def for_queries(self, find: Callable[..., AnyArray], *args: object) -> AnyArray:
        return find(self._part, *args)


class InParts(ABC):
    """A data set that is looked at in several parts."""

    @abstractmethod
    def parts(self, make: Callable[..., T], *per_query: AnyArray | None) -> Parts[T]:
        """See :func:`parts`."""


class RemoteRows(InParts):
    """A data set whose rows are elsewhere: this process knows their queries and the names of features."""

    @property
    @abstractmethod
    def query_ids(self) -> AnyArray:
        """One id per query."""

    @abstractmethod
    def in_parts(self, find: Callable[..., T], *per_query: AnyArray | None) -> list[T]:
        """See :func:`in_parts`."""

    @abstractmethod
    def in_order_of_queries(self, found: Sequence[AnyArray]) -> AnyArray:
        """What was found for the queries of each part, as one array for all queries."""

    @abstractmethod
    def changed(self, change: Callable[[Dataset], Dataset]) -> Dataset:
        """See :func:`changed`."""

    @abstractmethod
    def objective(self, loss: Any, query_weight: AnyArray | None) -> Any:
        """The mean loss as a function of weights: a :class:`ranksieve.objective.Objective`."""

    @abstractmethod
    def measured(self, scores: Any, measure: Callable[[Dataset, AnyArray], T]) -> list[T]:
        """What ``measure(part, its scores)`` gives for each part.

        Scores are as :meth:`predicted` gives them, or something with a method ``predict``.
        """

    @abstractmethod
    def predicted(self, score: Callable[[Dataset], AnyArray]) -> Any:
        """What ``score`` gives for the rows of each part, in the row order of the source, still elsewhere."""


def parts(data: Dataset, make: Callable[..., T], *per_query: AnyArray | None) -> Parts[T]:
    """What ``make(part, *shares)`` gives for each part, kept where the part is, to be asked for results."""
    return data.parts(make, *per_query) if isinstance(data, InParts) else OnePart(make(data, *per_query))


def in_parts(data: Dataset, find: Callable[..., T], *per_query: AnyArray | None) -> list[T]:
    """What ``find(part, *shares)`` gives for each part."""
    return data.in_parts(find, *per_query) if isinstance(data, RemoteRows) else [find(data, *per_query)]


def for_queries(data: Dataset, find: Callable[..., AnyArray], *per_query: AnyArray | None) -> AnyArray:
    """What ``find(part, *shares)`` gives for each query of a part, for all queries."""
    if isinstance(data, RemoteRows):
        return data.in_order_of_queries(data.in_parts(find, *per_query))
    return find(data, *per_query)


def changed(data: Dataset, change: Callable[[Dataset], Dataset]) -> Dataset:
    """The data with ``change`` made to each part; queries and their order stay."""
    return data.changed(change) if isinstance(data, RemoteRows) else change(data)
