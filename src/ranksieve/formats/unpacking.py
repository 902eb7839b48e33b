"""Gzip and parquet hold more than their size: bounds, so that no small file fills the memory."""

from __future__ import annotations

import gzip
import io
from typing import IO, Any, cast

from ranksieve.errors import DataError

MOST_TIMES = 250  # that text may be larger than its gzip; the format's own bound is 1,032
MOST_TIMES_BY_COLUMN = 2000  # of parquet, which writes a value once for any number of equal rows
ALWAYS = 2**28  # bytes that may be unpacked from however few
MEGABYTE = 1e6
PIECE = 2**20
CELL = 8  # bytes of a number


class _Counted:
    """A file that counts the bytes that are read."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.count = file, 0

    def read(self, size: int) -> bytes:
        content = self.file.read(size)
        self.count += len(content)
        return content


class Unpacked(io.RawIOBase):
    """What gzip data hold; refused as soon as that is ``MOST_TIMES`` as much as was read of them."""

    def __init__(self, packed: IO[bytes], name: str) -> None:
        self._packed = _Counted(packed)
        self._gzip: Any = gzip.GzipFile(fileobj=cast(Any, self._packed), mode="rb")
        self._count, self._name = 0, name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = int(self._gzip.readinto(buffer))
        self._count += count
        if self._count > max(ALWAYS, MOST_TIMES * self._packed.count):
            ratio = f"{self._count / MEGABYTE:.3g} MB from {self._packed.count / MEGABYTE:.3g} MB of gzip"
            reason = f"suspicious compression ratio ({ratio}); if the file is trusted, decompress it first"
            raise DataError(self._name, None, reason)
        return count


def unpacked(packed: bytes, name: str) -> bytes:
    """All that gzip data hold."""
    stream = Unpacked(io.BytesIO(packed), name)
    return b"".join(iter(lambda: stream.read(PIECE), b""))


def check_announced(n_rows: int, n_columns: int, n_bytes: int, name: str) -> None:
    """Refuse a file whose table is far larger than the file."""
    if n_rows * n_columns * CELL > max(ALWAYS, MOST_TIMES_BY_COLUMN * n_bytes):
        reason = (
            f"announces {n_rows:,} rows of {n_columns:,} columns in {n_bytes:,} bytes, which is implausible; "
            "write it again with the rows that it should have"
        )
        raise DataError(name, None, reason)
