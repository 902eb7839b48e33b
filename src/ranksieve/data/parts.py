"""What is known of each part of a data set, kept where the part is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

from ranksieve._types import AnyArray

T = TypeVar("T")
R = TypeVar("R")


class Parts(ABC, Generic[T]):
    """One object per part of a data set."""

    @abstractmethod
    def ask(self, find: Callable[..., R], *args: object) -> list[R]:
        """What ``find(object, *args)`` gives for each part."""

    @abstractmethod
    def for_queries(self, find: Callable[..., AnyArray], *args: object) -> AnyArray:
        """What ``find(object, *args)`` gives for each query of a part, for all queries in their order."""


class PartsInMemory(Parts[T]):
    """The one object of data in memory."""

    def __init__(self, part: T) -> None:
        self._part = part

    def ask(self, find: Callable[..., R], *args: object) -> list[R]:
        return [find(self._part, *args)]

    def for_queries(self, find: Callable[..., AnyArray], *args: object) -> AnyArray:
        return find(self._part, *args)
