"""Gather the documents of LETOR text, chunk by chunk."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import DTypeLike

from ranksieve._types import AnyArray, FloatArray, IntArray, Matrix, PathLike
from ranksieve.data.matrix import csr, sort_each_row
from ranksieve.data.queries import ids_from_text
from ranksieve.data.row_values import TextColumn
from ranksieve.errors import DataError
from ranksieve.formats.letor_faults import (
    LARGEST_INDEX,
    Fault,
    feature_twice,
    infinite_value,
    kernel_fault,
    missing_value,
    query_not_utf8,
    token_at,
)
from ranksieve.formats.text_files import Chunk, source_name, text_chunks
from ranksieve.kernels.letor_text import GOOD, Parsed, Rows, parse_lines, scatter_rows

LARGE_DENSE_CELLS, LEAST_DENSE_SHARE = 2**27, 0.01


class Entries(NamedTuple):
    """The features of some rows: row r has ``starts[r]:starts[r + 1]`` of ``features`` and ``values``."""

    starts: IntArray
    features: AnyArray
    values: AnyArray
    width: int


class Features(Protocol):
    """Where the rows of the matrix go."""

    def add(self, name: str, entries: Entries) -> None: ...
    def finish(self) -> Matrix: ...


class DenseFeatures:
    """Rows of a dense matrix, as wide as the largest index so far; what a line leaves out is 0."""

    def __init__(self, dtype: np.dtype[np.floating], n_features: int | None) -> None:
        self.width = n_features or 0
        self.stored = 0
        self.rows = GrowingArray(dtype, self.width)

    def add(self, name: str, entries: Entries) -> None:
        count = len(entries.starts) - 1
        self.stored += len(entries.values)
        self._widen(name, max(self.width, entries.width), len(self.rows) + count)
        rows = self.rows.extend(count)
        if len(entries.values) == rows.size:  # distinct ascending indices: every row is 1, …, width
            rows[:] = entries.values.reshape(rows.shape)
            return
        scatter_rows(entries.starts, entries.features, entries.values, rows)

    def _widen(self, name: str, width: int, count: int) -> None:
        cells = count * width
        if cells > LARGE_DENSE_CELLS and self.stored < LEAST_DENSE_SHARE * cells:
            reason = (
                f"{self.stored} values for {count} × {width} features would make a dense matrix of zeros; "
                "choose `sparse=True`"
            )
            raise DataError(name, None, reason)
        if width > self.width:
            self.width = width
            self.rows.widen(width)

    def finish(self) -> Matrix:
        return self.rows.finish()


class SparseFeatures:
    """Compressed rows with the entries that the lines give."""

    def __init__(self, dtype: np.dtype[np.floating], n_features: int | None) -> None:
        self.width = n_features or 0
        self.values, self.features = GrowingArray(dtype), GrowingArray(np.int32)
        self.ends = GrowingArray(np.int64)
        self.ends.append(np.zeros(1, dtype=np.int64))

    def add(self, name: str, entries: Entries) -> None:
        self.width = max(self.width, entries.width)
        self.ends.append(entries.starts[1:] + len(self.values))
        self.values.append(entries.values)
        self.features.append(entries.features)

    def finish(self) -> Matrix:
        return csr(self.values.finish(), self.features.finish(), self.ends.finish(), self.width)


class QueryRuns:
    """Query ids, one per run of rows."""

    def __init__(self) -> None:
        self.tokens: list[bytes] = []
        self.first_rows = GrowingArray(np.int64)
        self.names: dict[bytes, str] = {}

    def add(self, tokens: list[bytes], first_rows: IntArray) -> None:
        self.tokens += tokens
        self.first_rows.append(first_rows)

    def undecodable(self, tokens: list[bytes]) -> int | None:
        """Decode the tokens not seen before; the number of the first that is not UTF-8."""
        for k, token in enumerate(tokens):
            if token not in self.names:
                try:
                    self.names[token] = token.decode()
                except UnicodeDecodeError:
                    return k
        return None

    def finish(self, n_rows: int) -> AnyArray:
        """One id per row: int64 if every id is a plain integer, else str."""
        ids = ids_from_text([self.names[token] for token in self.tokens])
        return np.repeat(ids, np.diff(np.append(self.first_rows.finish(), n_rows)))


class Comments:
    """The text after ``#``, and where the document id is in it."""

    def __init__(self) -> None:
        self.block = GrowingArray(np.uint8)
        self.ends, self.id_begins, self.id_ends = (GrowingArray(np.int64) for _ in range(3))

    def add(self, out: Rows, rows: int) -> None:
        before = len(self.block)
        self.block.append(out.comments[: out.comment_ends[rows - 1]])
        self.ends.append(out.comment_ends[:rows] + before)
        self.id_begins.append(out.id_begins[:rows] + before)
        self.id_ends.append(out.id_ends[:rows] + before)

    def finish(self) -> tuple[TextColumn | None, TextColumn | None]:
        """Comments and document ids, None if no line has any."""
        if len(self.block) == 0:
            return None, None
        block, ends = self.block.finish(), self.ends.finish()
        begins = np.concatenate(([0], ends[:-1]))
        return TextColumn(block, begins, ends), TextColumn(
            block, self.id_begins.finish(), self.id_ends.finish()
        )


class LetorRows:
    """The documents read so far; the parser writes to ``room``, which another may have used before."""

    def __init__(
        self,
        features: Features,
        n_features: int | None,
        dtype: np.dtype[np.floating],
        room: Rows | None = None,
    ) -> None:
        self.features = features
        self.n_features = n_features
        self.dtype = dtype
        self.labels = GrowingArray(np.float64)
        self.queries = QueryRuns()
        self.comments = Comments()
        self.has_missing = False
        self.room = _room(0) if room is None else room

    def read(self, path: PathLike, chunk_bytes: int, refuse_missing: bool) -> None:
        """Add every document of one file; the first faulty line raises."""
        line = 0
        for chunk in text_chunks(path, chunk_bytes):
            line = self.add(source_name(path), line, chunk, refuse_missing)

    def add(self, name: str, line: int, chunk: Chunk, refuse_missing: bool) -> int:
        if len(self.room.comments) < len(chunk.buffer):
            self.room = _room(len(chunk.buffer))
        out, text = self.room, np.frombuffer(chunk.buffer, dtype=np.uint8)
        parsed = parse_lines(text, chunk.begin, chunk.end, line, self.n_features or LARGEST_INDEX, out)
        faults = _repair(chunk.buffer, parsed, out)
        if not parsed.ordered:
            faults += _sort_rows(parsed, out)
        values, overflow = _cast(out.values[: parsed.entries], self.dtype, parsed, out)
        faults += overflow
        tokens = _query_tokens(chunk.buffer, parsed, out)
        undecodable = self.queries.undecodable(tokens)
        if undecodable is not None:
            faults.append(query_not_utf8(out.lines[out.run_rows[undecodable]], tokens[undecodable]))
        if parsed.missing_line and refuse_missing:
            faults.append(missing_value(parsed))
        if parsed.fault != GOOD:
            faults.append(kernel_fault(chunk.buffer, parsed, self.n_features))
        if faults:
            raise min(faults).error(name)
        if parsed.rows:
            self._keep(name, parsed, tokens, values)
        return int(parsed.lines)

    def _keep(self, name: str, parsed: Parsed, tokens: list[bytes], values: AnyArray) -> None:
        out, rows = self.room, parsed.rows
        self.queries.add(tokens, out.run_rows[: parsed.runs] + len(self.labels))
        self.labels.append(out.labels[:rows])
        self.comments.add(out, rows)
        self.has_missing |= parsed.missing_line > 0
        features = out.features[: parsed.entries]
        self.features.add(name, Entries(out.starts[: rows + 1], features, values, parsed.width))


def _room(size: int) -> Rows:
    """Room for any text of ``size`` bytes: a line has at least 8 of them and a feature 4."""
    rows, entries = size // 8 + 2, size // 4 + 1
    lengths = dict.fromkeys(Rows._fields, rows)
    lengths |= dict.fromkeys(("features", "values"), entries) | {"comments": size}
    lengths |= dict.fromkeys(("repair_entries", "repair_begins"), entries + rows)
    types = {"labels": np.float64, "values": np.float64, "features": np.int32, "comments": np.uint8}
    return Rows(**{name: np.empty(n, dtype=types.get(name, np.int64)) for name, n in lengths.items()})


def _query_tokens(buffer: bytearray, parsed: Parsed, out: Rows) -> list[bytes]:
    begins, ends = out.run_begins[: parsed.runs].tolist(), out.run_ends[: parsed.runs].tolist()
    return [bytes(buffer[begin:end]) for begin, end in zip(begins, ends, strict=True)]


def _repair(buffer: bytearray, parsed: Parsed, out: Rows) -> list[Fault]:
    """Read the numbers the parser left over with Python's ``float``; list those that overflow."""
    faults = []
    for k in range(parsed.repairs):
        entry, token = int(out.repair_entries[k]), token_at(buffer, int(out.repair_begins[k]))
        value = float(token)
        if entry < 0:
            out.labels[-1 - entry] = value
        else:
            out.values[entry] = value
        if math.isinf(value):
            faults.append(infinite_value(*_place(entry, parsed, out), token.decode()))
    return faults


def _place(entry: int, parsed: Parsed, out: Rows) -> tuple[int, int]:
    """Line and feature of an entry; −1 − row means a label, feature 0."""
    if entry < 0:
        return int(out.lines[-1 - entry]), 0
    row = np.searchsorted(out.starts[: parsed.rows + 1], entry, side="right") - 1
    return int(out.lines[row]), int(out.features[entry]) + 1


def _sort_rows(parsed: Parsed, out: Rows) -> list[Fault]:
    """Put the features of each whole row in ascending order; name the first that occurs twice."""
    starts = out.starts[: parsed.rows + 1]
    features, values = out.features[: starts[-1]], out.values[: starts[-1]]
    sort_each_row(starts, features, values)
    repeated = np.setdiff1d(np.flatnonzero(np.diff(features) == 0) + 1, starts)
    return [feature_twice(*_place(int(entry), parsed, out)) for entry in repeated[:1]]


def _cast(
    values: FloatArray, dtype: np.dtype[np.floating], parsed: Parsed, out: Rows
) -> tuple[AnyArray, list[Fault]]:
    """The values in the matrix's type; name the first that overflows in it."""
    if dtype == values.dtype:
        return values, []
    with np.errstate(over="ignore"):
        cast = values.astype(dtype)
    overflows = np.flatnonzero(np.isinf(cast))[:1]
    return cast, [infinite_value(*_place(int(e), parsed, out), f"{values[e]} in {dtype}") for e in overflows]


class GrowingArray:
    """Rows of a fixed width, appended in place.

    Room grows by a quarter at a time: memory stays under 1.25 times what is held (twice that while a system
    copies to reallocate), and copying costs O(1) per row.
    """

    def __init__(self, dtype: DTypeLike, width: int | None = None) -> None:
        self._room: AnyArray = np.zeros((0,) if width is None else (0, width), dtype=dtype)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def held(self) -> AnyArray:
        """What has been appended; not to be kept over the next ``extend``."""
        return self._room[: self._length]

    def extend(self, count: int) -> AnyArray:
        """``count`` more rows of zeros, as a view to write to at once."""
        start, self._length = self._length, self._length + count
        if self._length > len(self._room):
            self._resize(max(self._length, len(self._room) * 5 // 4))
        return self._room[start : self._length]

    def append(self, rows: AnyArray) -> None:
        self.extend(len(rows))[:] = rows

    def widen(self, width: int) -> None:
        """Give every row ``width`` entries, the new ones 0."""
        wider = np.zeros((self._length, width), dtype=self._room.dtype)
        wider[:, : self._room.shape[1]] = self.held
        self._room = wider

    def finish(self) -> AnyArray:
        """The array, without spare room; nothing may be appended afterwards."""
        self._resize(self._length)
        return self._room

    def _resize(self, length: int) -> None:
        self._room.resize((length, *self._room.shape[1:]), refcheck=False)
