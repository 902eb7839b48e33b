"""Rows of a streamed matrix in another order, in a temporary file."""

from __future__ import annotations

import errno
import tempfile
from contextlib import suppress
from typing import IO

import numpy as np

from ranksieve._types import IntArray
from ranksieve.data.disk_matrix import DiskMatrix, write_block
from ranksieve.data.streamed import StreamedMatrix

ROWS_AT_ONCE = 15_000


def spooled(X: StreamedMatrix, rows: IntArray) -> DiskMatrix:
    """Some rows, in the order given, from a file in the folder for temporary files (TMPDIR).

    The file has no name there, so that it ends with the matrix, or with the process, however that ends.
    """
    starts = np.append(np.arange(0, len(rows), ROWS_AT_ONCE), len(rows))
    folder, size = tempfile.gettempdir(), len(rows) * X.shape[1] * X.dtype.itemsize
    file = tempfile.TemporaryFile()  # noqa: SIM115 — open for as long as there is the matrix
    try:
        _write(X, rows, starts, file)
    except BaseException as error:
        _closed(file)
        if not (isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)):
            raise
        raise OSError(
            f"{folder}: the disk is full, and {size / 1e6:.0f} MB are needed there for the data in another "
            "order; make room, or name another folder in TMPDIR"
        ) from None
    return SpooledMatrix(folder, starts, X.shape[1], X.dtype, file)


def _write(X: StreamedMatrix, rows: IntArray, starts: IntArray, file: IO[bytes]) -> None:
    for begin, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        write_block(file, X[rows[begin:end]], X.dtype)
    file.flush()


def _closed(file: IO[bytes]) -> None:
    """Close a file whose last bytes may have no room."""
    with suppress(OSError):
        file.close()


class SpooledMatrix(DiskMatrix):
    """A matrix whose file nobody else knows."""

    def __reduce__(self) -> tuple[object, ...]:
        raise ValueError("data in a temporary file cannot be sent to another process; write a folder")
