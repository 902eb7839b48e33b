"""Feature matrices that are read a part at a time: some columns of some rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from ranksieve._types import AnyArray, FloatArray, IntArray

ROWS_AT_ONCE = 16384  # of gathered rows
NEAR_ROWS = 64  # rows wanted of a run: a gap of this many is read with them


class StreamedMatrix(ABC):
    """A dense matrix whose values are somewhere else; ``read`` gets those that are wanted.

    The rows between two ``starts`` are together: reading all of them takes the least time for a row.

    It stands where an array stands: rows and single values are arrays, some of the columns are again a
    streamed matrix, and NumPy reads all of it where a function cannot do with less.
    """

    ndim = 2

    def __init__(self, starts: IntArray, n_columns: int, dtype: np.dtype[Any]) -> None:
        self.starts, self.dtype = starts, dtype
        self.shape = (int(starts[-1]), n_columns)

    @abstractmethod
    def read(self, first: int, last: int, columns: IntArray) -> AnyArray:
        """The rows first..last of some columns, as an own array in column order."""

    @abstractmethod
    def read_ahead(self, first: int, last: int, columns: IntArray) -> None:
        """Say that these will be wanted soon."""

    def spread_and_largest(self, queries: Any) -> tuple[FloatArray, FloatArray] | None:
        """Of each column the largest max − min within a query, and the largest |x|; None: read them."""
        return None

    def taken(self, rows: IntArray) -> Any:
        """Some rows."""
        return self[rows]

    def pieces(self, first: int, last: int, most: int) -> Iterator[tuple[int, int]]:
        """The runs of at most so many rows, of one block each, that hold the rows first..last."""
        block = int(np.searchsorted(self.starts, first, side="right")) - 1
        while first < last:
            begin, end = self.starts[block : block + 2].tolist()
            n_pieces = max(1, -(-(end - begin) // most))
            cuts = np.linspace(begin, end, n_pieces + 1).astype(np.int64)
            for a, b in pairwise(cuts.tolist()):
                if b > first and a < last:
                    yield a, b
            first, block = end, block + 1

    @cached_property
    def value_range(self) -> tuple[float, float]:
        """The least and the largest value; NaN if one is missing."""
        blocks = (self.read(a, b, np.arange(self.shape[1])) for a, b in pairwise(self.starts.tolist()))
        ranges = [(block.min(), block.max()) for block in blocks if block.size]
        low, high = np.min(ranges, axis=0)[0], np.max(ranges, axis=0)[1]
        return float(low), float(high)

    @property
    def size(self) -> int:
        return self.shape[0] * self.shape[1]

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        if copy is False:
            raise ValueError("features that are not in memory cannot become an array without a copy")
        return np.asarray(self[:], dtype=dtype)

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, tuple):
            return self._rows(index)
        rows, columns = index
        if isinstance(rows, int | np.integer) and isinstance(columns, int | np.integer):
            return self.read(int(rows), int(rows) + 1, np.array([columns]))[0, 0]
        if isinstance(rows, slice) and rows == slice(None):
            numbers = np.arange(self.shape[1])[columns]
            if numbers.ndim == 0:
                return self.read(0, self.shape[0], numbers[None])[:, 0]
            return SomeColumns(self, numbers)
        return self._rows(rows)[:, columns]

    def _rows(self, rows: Any) -> AnyArray:
        """Whole rows, in row order."""
        everything = np.arange(self.shape[1])
        if isinstance(rows, slice):
            first, last, step = rows.indices(self.shape[0])
            if step == 1:
                return np.ascontiguousarray(self.read(first, max(first, last), everything))
        wanted = np.arange(self.shape[0])[rows]
        if wanted.ndim == 0:
            return np.asarray(self.read(int(wanted), int(wanted) + 1, everything)[0])
        values = np.empty((len(wanted), self.shape[1]), self.dtype)
        order = np.argsort(wanted, kind="stable")
        for first, last in _runs(wanted[order]):
            some = order[first:last]
            begin = int(wanted[some[0]])
            values[some] = self.read(begin, int(wanted[some[-1]]) + 1, everything)[wanted[some] - begin]
        return values


def _runs(ascending: IntArray) -> list[tuple[int, int]]:
    """Row numbers in runs that are near enough to be read together, and not too long."""
    near = np.diff(ascending) > NEAR_ROWS
    starts = np.union1d(np.flatnonzero(near) + 1, np.arange(0, len(ascending), ROWS_AT_ONCE))
    return list(zip(starts.tolist(), [*starts[1:].tolist(), len(ascending)], strict=True))


class SomeColumns(StreamedMatrix):
    """Some columns of a streamed matrix, in the order given."""

    def __init__(self, matrix: StreamedMatrix, columns: IntArray) -> None:
        super().__init__(matrix.starts, len(columns), matrix.dtype)
        self._matrix, self._columns = matrix, columns

    def read(self, first: int, last: int, columns: IntArray) -> AnyArray:
        return self._matrix.read(first, last, self._columns[columns])

    def read_ahead(self, first: int, last: int, columns: IntArray) -> None:
        self._matrix.read_ahead(first, last, self._columns[columns])


class RowRange(StreamedMatrix):
    """Some neighbouring rows of a streamed matrix."""

    def __init__(self, matrix: StreamedMatrix, first: int, last: int) -> None:
        super().__init__(
            np.unique(np.clip(matrix.starts, first, last)) - first, matrix.shape[1], matrix.dtype
        )
        self._matrix, self._first = matrix, first

    def read(self, first: int, last: int, columns: IntArray) -> AnyArray:
        return self._matrix.read(self._first + first, self._first + last, columns)

    def read_ahead(self, first: int, last: int, columns: IntArray) -> None:
        self._matrix.read_ahead(self._first + first, self._first + last, columns)


class Widened(StreamedMatrix):
    """A streamed matrix with columns of zeros behind its own."""

    def __init__(self, matrix: StreamedMatrix, n_columns: int) -> None:
        super().__init__(matrix.starts, n_columns, matrix.dtype)
        self._matrix = matrix

    def read(self, first: int, last: int, columns: IntArray) -> AnyArray:
        there = np.flatnonzero(columns < self._matrix.shape[1])
        values = np.zeros((last - first, len(columns)), self.dtype, order="F")
        values[:, there] = self._matrix.read(first, last, columns[there])
        return values

    def read_ahead(self, first: int, last: int, columns: IntArray) -> None:
        self._matrix.read_ahead(first, last, columns[columns < self._matrix.shape[1]])
