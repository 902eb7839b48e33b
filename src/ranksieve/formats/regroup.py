"""Bring the rows of each query together when they do not fit into memory.

Every row is first copied into the part of a temporary file that belongs to its block, in the order of the
input; then one block after another is sorted in memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np

from ranksieve._types import AnyArray, IntArray

ROWS_AT_ONCE = 2**16
RUNS_AT_ONCE = 2**16
CODES, PARTS, NEW = "codes.tmp", "parts.tmp", "new.tmp"


class Regrouping:
    """Rows in the order of the input -> blocks of whole queries, rows of a query in the order of the input.

    ``runs`` is a file of (query, rows that follow each other), ``sizes`` has the documents of each query and
    ``starts`` the first row of each block, in the new order.
    """

    def __init__(self, folder: Path, runs: Path, sizes: IntArray, starts: IntArray) -> None:
        self._folder, self._runs, self._starts = folder, runs, starts
        first_rows = np.concatenate(([0], np.cumsum(sizes)[:-1]))
        self._block_of = np.searchsorted(starts, first_rows, side="right") - 1
        self._n_rows = int(starts[-1])
        self._open_files = ExitStack()
        self._codes = self._distributed(self._all_codes(), self._folder / CODES, np.dtype("<i8"))

    def __enter__(self) -> Regrouping:
        return self

    def __exit__(self, *error: object) -> None:
        self._open_files.close()
        (self._folder / CODES).unlink(missing_ok=True)

    def blocks(self, rows: Iterator[AnyArray], drop: Path | None = None) -> Iterator[AnyArray]:
        """The blocks of an array that is given in pieces; ``drop`` is a file not needed once all are read."""
        first = next(rows)
        kind = np.dtype((first.dtype, first.shape[1:]))
        path = self._folder / PARTS
        with self._distributed(_chained(first, rows), path, kind) as file:
            if drop is not None:
                drop.unlink()
            for begin, end in zip(self._starts[:-1].tolist(), self._starts[1:].tolist(), strict=True):
                order = np.argsort(_read(self._codes, begin, end, np.dtype("<i8")), kind="stable")
                yield _read(file, begin, end, kind)[order]
        path.unlink()

    def rewrite(self, path: Path, kind: np.dtype[Any]) -> None:
        """Regroup a file that has one entry per row."""
        with (self._folder / NEW).open("wb") as new:
            for block in self.blocks(_pieces(path, kind, self._n_rows)):
                new.write(block.data)
        os.replace(self._folder / NEW, path)

    def _all_codes(self) -> Iterator[IntArray]:
        """The query of each row."""
        with self._runs.open("rb") as file:
            while raw := file.read(16 * RUNS_AT_ONCE):
                runs = np.frombuffer(raw, dtype="<i8").reshape(-1, 2)
                ends = np.cumsum(runs[:, 1])
                for begin in range(0, int(ends[-1]), ROWS_AT_ONCE):
                    rows = np.arange(begin, min(begin + ROWS_AT_ONCE, int(ends[-1])))
                    yield runs[np.searchsorted(ends, rows, side="right"), 0]

    def _distributed(self, pieces: Iterator[AnyArray], path: Path, kind: np.dtype[Any]) -> IO[bytes]:
        """A file with the rows of each block together, in the order of the input."""
        filled, codes = self._starts[:-1].copy(), _Stream(self._all_codes())
        with path.open("wb") as file:
            for rows in pieces:
                block = self._block_of[codes.take(len(rows))]
                order = np.argsort(block, kind="stable")
                cuts = np.flatnonzero(np.diff(block[order])) + 1
                for some in np.split(order, cuts):
                    place = int(block[some[0]])
                    file.seek(int(filled[place]) * kind.itemsize)
                    file.write(np.ascontiguousarray(rows[some]).data)
                    filled[place] += len(some)
        return self._open_files.enter_context(path.open("rb"))


class _Stream:
    """An array that comes in pieces, taken in pieces of other lengths."""

    def __init__(self, pieces: Iterator[IntArray]) -> None:
        self._pieces, self._rest = pieces, np.empty(0, dtype=np.int64)

    def take(self, count: int) -> IntArray:
        parts = [self._rest]
        while sum(map(len, parts)) < count:
            parts.append(next(self._pieces))
        joined = np.concatenate(parts)
        self._rest = joined[count:]
        return joined[:count]


def _chained(first: AnyArray, rest: Iterator[AnyArray]) -> Iterator[AnyArray]:
    yield first
    yield from rest


def _pieces(path: Path, kind: np.dtype[Any], n_rows: int) -> Iterator[AnyArray]:
    with path.open("rb") as file:
        for begin in range(0, n_rows, ROWS_AT_ONCE):
            yield _read(file, begin, min(begin + ROWS_AT_ONCE, n_rows), kind)


def _read(file: IO[bytes], begin: int, end: int, kind: np.dtype[Any]) -> AnyArray:
    file.seek(begin * kind.itemsize)
    values = np.empty((end - begin, *kind.shape), kind.base)
    file.readinto(values.reshape(-1).view(np.uint8).data)  # type: ignore[attr-defined]
    return values
