"""Data sets on disk: the matrix in blocks of rows, temporary copies of some rows."""

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
from ranksieve.data.parts import InParts, Parts
from ranksieve.data.queries import Queries, few_queries, queries_in_order
from ranksieve.errors import DataError, ParameterError


class DiskMatrix(StreamedMatrix):
    """The numbers of a file, read where they are wanted and not kept; block b has the rows from starts[b] on.

    ``bytes_read`` counts what was read so far; ``file`` is one that is open already.
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
        finalize(self, self._file.close)  # open for as long as there is the matrix
        size, expected = os.fstat(self._file.fileno()).st_size, self.nbytes
        if size != expected:
            reason = (
                f"has {size} bytes where {expected} are expected ({self.shape[0]} × {n_columns} of "
                f"{self.dtype.name}); convert the data again"
            )
            raise DataError(self.path, None, reason)

    def __reduce__(self) -> Any:
        return DiskMatrix, (os.path.abspath(self.path), self.starts, self.shape[1], self.dtype.name)

    def read(self, first: int, last: int, columns: IntArray) -> AnyArray:
        by_column = np.empty((len(columns), last - first), self.dtype)
        for block, begin, end in self._blocks(first, last):
            rows = slice(begin - first, end - first)
            for k, stop, place in self._runs(block, begin, end, columns):
                values = by_column[k:stop, rows]
                if values.flags.c_contiguous:
                    self._fill(values, place)
                else:
                    values[:] = self._fill(np.empty(values.shape, self.dtype), place)
        return by_column.T

    def _fill(self, values: AnyArray, place: int) -> AnyArray:
        """Read a contiguous array from a place in the file."""
        buffer, done = values.reshape(-1).view(np.uint8).data, 0
        while done < len(buffer):
            count = self._read_into(buffer[done:], place + done)
            if count == 0:
                raise DataError(self.path, None, "ends in the middle; convert the data again")
            done += count
        self.bytes_read += done
        return values

    def _read_into(self, buffer: memoryview, place: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._file.fileno(), [buffer], place)
        with self._lock:  # where there is one place in a file for all threads
            self._file.seek(place)
            return self._file.readinto(buffer) or 0

    def read_ahead(self, first: int, last: int, columns: IntArray) -> None:
        if not hasattr(os, "posix_fadvise"):
            return
        for block, begin, end in self._blocks(first, last):
            for k, stop, place in self._runs(block, begin, end, columns):
                length = (stop - k) * (end - begin) * self.dtype.itemsize
                os.posix_fadvise(self._file.fileno(), place, length, os.POSIX_FADV_WILLNEED)

    def _blocks(self, first: int, last: int) -> Iterator[tuple[int, int, int]]:
        """The blocks that hold these rows: (block, first row, last row)."""
        block = int(np.searchsorted(self.starts, first, side="right")) - 1
        while first < last:
            end = min(last, int(self.starts[block + 1]))
            yield block, first, end
            first, block = end, block + 1

    def _runs(self, block: int, begin: int, end: int, columns: IntArray) -> Iterator[tuple[int, int, int]]:
        """Columns (from, to) that can be read at once because they follow each other, and their place."""
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
    """Append a block of rows (documents × features) to the file of a matrix."""
    file.write(np.ascontiguousarray(rows.T, dtype=np.dtype(dtype).newbyteorder("<")).data)


SPOOLED_ROWS = 15_000


def spooled(X: StreamedMatrix, rows: IntArray) -> DiskMatrix:
    """Some rows, in the order given, from a file in the folder for temporary files (TMPDIR).

    The file has no name there, so that it ends with the matrix, or with the process, however that ends.
    """
    starts = np.append(np.arange(0, len(rows), SPOOLED_ROWS), len(rows))
    folder, size = tempfile.gettempdir(), len(rows) * X.shape[1] * X.dtype.itemsize
    file = tempfile.TemporaryFile()  # noqa: SIM115 — open for as long as there is the matrix
    try:
        for begin, end in pairwise(starts.tolist()):
            write_block(file, X[rows[begin:end]], X.dtype)
        file.flush()
    except BaseException as error:
        with suppress(OSError):  # its last bytes may have no room
            file.close()
        if not (isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)):
            raise
        raise OSError(
            f"{folder}: the disk is full, and {size / 1e6:.0f} MB are needed there for the data in another "
            "order; make room, or name another folder in TMPDIR"
        ) from None
    return SpooledMatrix(folder, starts, X.shape[1], X.dtype, file)


class SpooledMatrix(DiskMatrix):
    """A matrix whose file nobody else knows."""

    def __reduce__(self) -> tuple[object, ...]:
        raise ValueError("data in a temporary file cannot be sent to another process; write a folder")


T = TypeVar("T")
R = TypeVar("R")
IN_MEMORY = 2**28  # bytes of chosen rows that are held in memory
PART_ROWS = 2**16  # documents that are looked at together where a part is enough


class DiskDataset(Dataset, InParts):
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
        queries = queries_in_order(self.queries.ids[query[starts]], sizes)
        return self._part(spooled(self.X, rows), rows, queries)

    def _part(self, X: StreamedMatrix, rows: IntArray | slice, queries: Queries) -> DiskDataset:
        """Some rows, whose features are X, without their names and texts."""
        return DiskDataset(
            X, self.y[rows], queries, self.feature_names, truth=self.truth, source=self.source,
            profile=self.profile, document_weight=take_rows(self.document_weight, rows),
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
        queries = queries_in_order(self.queries.ids[first:last], self.queries.sizes[first:last])
        return self._part(RowRange(self.X, begin, end), slice(begin, end), queries)

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
