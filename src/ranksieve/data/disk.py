"""Data sets on disk: a matrix file in blocks of rows, and temporary copies of rows."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import IO, Any, TypeVar
from weakref import finalize

import numpy as np

from ranksieve._types import AnyArray, BoolArray, FloatArray, IntArray, Matrix, PathLike
from ranksieve.data.dataset import Dataset, take_rows
from ranksieve.data.matrix import RowRange, StreamedMatrix, is_streamed
from ranksieve.data.parts import PartitionedData, PartObjects
from ranksieve.data.queries import Queries, contiguous_queries, query_ranges
from ranksieve.errors import DataError, ParameterError


class DiskMatrix(StreamedMatrix):
    """Matrix in a file, read on demand; block b has the rows ``starts[b]:starts[b + 1]``.

    ``bytes_read`` counts the bytes read so far; ``file`` is the open file, if it has no path.
    """

    def __init__(
        self,
        path: PathLike,
        starts: Sequence[int] | IntArray,
        n_columns: int,
        dtype: Any,
        file: IO[bytes] | None = None,
    ) -> None:
        super().__init__(np.asarray(starts, dtype=np.int64), n_columns, np.dtype(dtype).newbyteorder("<"))
        self.path = Path(path)
        self.bytes_read = 0
        self._file: Any = self.path.open("rb", buffering=0) if file is None else file
        self._lock = Lock()
        finalize(self, self._file.close)
        size, expected = os.fstat(self._file.fileno()).st_size, self.nbytes
        if size != expected:
            reason = (
                f"has {size} bytes, expected {expected} ({self.shape[0]} × {n_columns} values of "
                f"{self.dtype.name}); convert the data again"
            )
            raise DataError(self.path, None, reason)

    def __reduce__(self) -> Any:
        return DiskMatrix, (os.path.abspath(self.path), self.starts, self.shape[1], self.dtype.name)

    def read(self, first: int, last: int, columns: IntArray) -> AnyArray:
        by_column = np.empty((len(columns), last - first), self.dtype)
        for block, begin, end in self._blocks(first, last):
            rows = slice(begin - first, end - first)
            for k, stop, position in self._runs(block, begin, end, columns):
                values = by_column[k:stop, rows]
                if values.flags.c_contiguous:
                    self._fill(values, position)
                else:
                    values[:] = self._fill(np.empty(values.shape, self.dtype), position)
        return by_column.T

    def _fill(self, values: AnyArray, position: int) -> AnyArray:
        """Read a contiguous array from a position in the file."""
        buffer, done = values.reshape(-1).view(np.uint8).data, 0
        while done < len(buffer):
            count = self._read_into(buffer[done:], position + done)
            if count == 0:
                raise DataError(self.path, None, "is truncated; convert the data again")
            done += count
        self.bytes_read += done
        return values

    def _read_into(self, buffer: memoryview, position: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._file.fileno(), [buffer], position)
        with self._lock:  # threads share the position of the file
            self._file.seek(position)
            return self._file.readinto(buffer) or 0

    def read_ahead(self, first: int, last: int, columns: IntArray) -> None:
        if not hasattr(os, "posix_fadvise"):
            return
        for block, begin, end in self._blocks(first, last):
            for k, stop, position in self._runs(block, begin, end, columns):
                length = (stop - k) * (end - begin) * self.dtype.itemsize
                os.posix_fadvise(self._file.fileno(), position, length, os.POSIX_FADV_WILLNEED)

    def _blocks(self, first: int, last: int) -> Iterator[tuple[int, int, int]]:
        """Blocks that contain these rows: (block, first row, last row)."""
        block = int(np.searchsorted(self.starts, first, side="right")) - 1
        while first < last:
            end = min(last, int(self.starts[block + 1]))
            yield block, first, end
            first, block = end, block + 1

    def _runs(self, block: int, begin: int, end: int, columns: IntArray) -> Iterator[tuple[int, int, int]]:
        """Columns (from, to) that are contiguous in the file, and their position there."""
        start, size = int(self.starts[block]), int(self.starts[block + 1] - self.starts[block])
        whole, k = end - begin == size, 0
        while k < len(columns):
            stop = k + 1
            while whole and stop < len(columns) and columns[stop] == columns[stop - 1] + 1:
                stop += 1
            cells = start * self.shape[1] + int(columns[k]) * size + begin - start
            yield k, stop, cells * self.dtype.itemsize
            k = stop


def write_block(file: IO[bytes], rows: AnyArray, dtype: Any) -> None:
    """Append a block of rows (documents × features) to a matrix file."""
    file.write(np.ascontiguousarray(rows.T, dtype=np.dtype(dtype).newbyteorder("<")).data)


TEMPORARY_BLOCK_ROWS = 15_000


def temporary_matrix(X: StreamedMatrix, rows: IntArray) -> DiskMatrix:
    """Copy rows, in this order, to an anonymous file in the temporary folder (TMPDIR).

    The system deletes the file when the matrix is freed or the process ends, even if it is killed.
    """
    starts = np.append(np.arange(0, len(rows), TEMPORARY_BLOCK_ROWS), len(rows))
    folder, size = tempfile.gettempdir(), len(rows) * X.shape[1] * X.dtype.itemsize
    file = tempfile.TemporaryFile()  # noqa: SIM115 — closed with the matrix
    try:
        for begin, end in pairwise(starts.tolist()):
            write_block(file, X[rows[begin:end]], X.dtype)
        file.flush()
    except BaseException as error:
        with suppress(OSError):  # closing flushes, which fails on a full disk
            file.close()
        if not (isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)):
            raise
        raise OSError(
            f"{folder}: the disk is full, and {size / 1e6:.0f} MB are needed there for a temporary copy of "
            "the data; free some space, or set TMPDIR to another folder"
        ) from None
    return TemporaryMatrix(folder, starts, X.shape[1], X.dtype, file)


class TemporaryMatrix(DiskMatrix):
    """A matrix in an anonymous temporary file."""

    def __reduce__(self) -> tuple[object, ...]:
        raise ValueError(
            "data in a temporary file cannot be sent to another process; write the data to a folder first"
        )


T = TypeVar("T")
R = TypeVar("R")
MAX_MEMORY_BYTES = 2**28  # larger selections of rows go to a temporary file
PART_ROWS = 2**16  # documents in a part


class DiskDataset(Dataset, PartitionedData):
    """Judged documents on disk, query by query; features are read on demand.

    ``X`` is a :class:`StreamedMatrix`. The rows of a query are contiguous; ``qid``, which repeats the id of
    each query, is computed on each access.
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
        return np.repeat(self.queries.ids, self.queries.sizes)

    def replace_features(self, X: Matrix, feature_names: Sequence[str] | None = None) -> Dataset:
        if not is_streamed(X):
            return super().replace_features(X, feature_names)
        truth = self.truth if X.shape[1] == self.n_features else None
        return DiskDataset(
            X, self.y, self.queries, feature_names or self.feature_names, self.doc_ids,
            truth=truth, **self._other_fields(),
        )  # fmt: skip

    def in_query_order(self, queries: IntArray) -> Dataset:
        """Rows of the chosen queries, query after query; many rows go to a temporary file."""
        sizes = self.queries.sizes[queries]
        rows = np.repeat(self.queries.offsets[queries] - np.cumsum(sizes) + sizes, sizes)
        return self._select_grouped(rows + np.arange(len(rows)))

    def _select_grouped(self, rows: IntArray) -> Dataset:
        """Chosen rows, those of a query together; many rows go to a temporary file."""
        if len(rows) * self.n_features * self.X.dtype.itemsize <= MAX_MEMORY_BYTES:
            return self.select_rows(rows)
        query = np.searchsorted(self.queries.offsets, rows, side="right") - 1
        starts = np.flatnonzero(np.diff(query, prepend=-1))
        sizes = np.diff(np.append(starts, len(rows)))
        queries = contiguous_queries(self.queries.ids[query[starts]], sizes)
        return self._part(temporary_matrix(self.X, rows), rows, queries)

    def _part(self, X: StreamedMatrix, rows: IntArray | slice, queries: Queries) -> DiskDataset:
        """Rows with the features X, without document ids and texts."""
        return DiskDataset(
            X, self.y[rows], queries, self.feature_names, truth=self.truth, source=self.source,
            profile=self.profile, document_weight=take_rows(self.document_weight, rows),
        )  # fmt: skip

    def select_queries(self, queries: IntArray | BoolArray) -> Dataset:
        chosen = np.zeros(self.n_queries, dtype=bool)
        chosen[queries] = True
        return self.in_query_order(np.flatnonzero(chosen))

    def make_parts(self, make: Callable[..., T], *per_query: AnyArray | None) -> PartObjects[T]:
        return PartsOnDisk(self, make, per_query)

    def part(self, first: int, last: int) -> DiskDataset:
        """The queries first..last; the features stay on disk."""
        begin, end = self.queries.offsets[[first, last]].tolist()
        queries = contiguous_queries(self.queries.ids[first:last], self.queries.sizes[first:last])
        return self._part(RowRange(self.X, begin, end), slice(begin, end), queries)

    def select_rows(self, rows: IntArray | BoolArray) -> Dataset:
        """Chosen rows (indices or a mask), in this order, in memory."""
        chosen = np.asarray(rows)
        index: IntArray = np.flatnonzero(chosen) if chosen.dtype == bool else chosen.astype(np.int64)
        if len(index) == 0:
            raise ParameterError("rows", rows, "must choose at least one row")
        index = np.where(index < 0, index + self.n_docs, index)
        query = np.searchsorted(self.queries.offsets, index, side="right") - 1
        return Dataset(
            self.X[index], self.y[index], self.queries.ids[query],
            self.feature_names, take_rows(self.doc_ids, index),
            truth=self.truth, **self._other_fields(index),
        )  # fmt: skip


class PartsOnDisk(PartObjects[T]):
    """One object per range of queries, created again for each call."""

    def __init__(
        self, data: DiskDataset, make: Callable[..., T], per_query: Sequence[AnyArray | None]
    ) -> None:
        self._data, self._make, self._per_query = data, make, per_query

    def map(self, function: Callable[..., R], *args: object) -> list[R]:
        return [function(part, *args) for part in self._parts()]

    def map_queries(self, function: Callable[..., AnyArray], *args: object) -> AnyArray:
        return np.concatenate(self.map(function, *args))

    def _parts(self) -> Iterator[T]:
        for a, b in query_ranges(self._data.queries.offsets, 0, self._data.n_queries, PART_ROWS):
            shares = (None if values is None else values[a:b] for values in self._per_query)
            yield self._make(self._data.part(a, b), *shares)
