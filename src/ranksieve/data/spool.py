"""Rows of a streamed matrix in another order, in a temporary file."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import IO
from weakref import finalize

import numpy as np

from ranksieve._types import IntArray
from ranksieve.data.disk_matrix import DiskMatrix, write_block
from ranksieve.data.streamed import StreamedMatrix

ROWS_AT_ONCE = 15_000


def spooled(X: StreamedMatrix, rows: IntArray) -> DiskMatrix:
    """Some rows, in the order given, from a file in the folder for temporary files (TMPDIR)."""
    starts = np.append(np.arange(0, len(rows), ROWS_AT_ONCE), len(rows))
    folder, size = tempfile.gettempdir(), len(rows) * X.shape[1] * X.dtype.itemsize
    try:
        with tempfile.NamedTemporaryFile(suffix=".ranksieve", delete=False) as file:
            path = Path(file.name)
            _write(X, rows, starts, file)
    except OSError as error:
        path.unlink(missing_ok=True)
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise OSError(
            f"{folder}: the disk is full, and {size / 1e6:.0f} MB are needed there for the data in another "
            "order; make room, or name another folder in TMPDIR"
        ) from None
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return SpooledMatrix(path, starts, X.shape[1], X.dtype)


def _write(X: StreamedMatrix, rows: IntArray, starts: IntArray, file: IO[bytes]) -> None:
    for begin, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        write_block(file, X[rows[begin:end]], X.dtype)
    file.flush()


class SpooledMatrix(DiskMatrix):
    """A matrix whose file nobody else knows; it ends with the matrix, or with the process."""

    def __init__(self, path: Path, starts: IntArray, n_columns: int, dtype: np.dtype[np.generic]) -> None:
        super().__init__(path, starts, n_columns, dtype)
        if os.name == "posix":
            path.unlink()  # it is there as long as it is open
        else:
            finalize(self, path.unlink, missing_ok=True)

    def __reduce__(self) -> tuple[object, ...]:
        raise ValueError("data in a temporary file cannot be sent to another process; write a folder")
