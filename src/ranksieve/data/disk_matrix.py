"""Features in a file, column by column in blocks of rows: what is not wanted is not read.

The file is nothing but numbers in little-endian order: block after block, in a block column after column, in
a column row after row. Parquet without compression takes three times as long to read whole, and twelve times
as long for a few columns (``python -m benchmarks.scale --only storage``).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import IO, Any
from weakref import finalize

import numpy as np

from ranksieve._types import AnyArray, IntArray, PathLike
from ranksieve.data.streamed import StreamedMatrix
from ranksieve.errors import DataError


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
