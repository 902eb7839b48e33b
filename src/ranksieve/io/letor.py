"""Read and write LETOR text."""

from __future__ import annotations

import math
import os
import re
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from operator import add
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from ranksieve._parallel import map_ahead, threads_to_start
from ranksieve._types import AnyArray, FloatArray, IntArray, Matrix, PathLike
from ranksieve._util.files import atomic_write, destination
from ranksieve.data.dataset import Dataset, TextColumn
from ranksieve.data.inputs import numbered_names
from ranksieve.data.matrix import csr, find_first, pad_columns, sort_each_row, stored_rows
from ranksieve.data.queries import group_queries, ids_from_text
from ranksieve.errors import DataError, ParameterError, short_repr
from ranksieve.io.text_files import (
    STANDARD_INPUT,
    Chunk,
    content_lines,
    maybe_gzip,
    profile_of_files,
    read_text,
    source_name,
    text_chunks,
)
from ranksieve.kernels.letor_text import (
    BAD_FEATURE,
    BAD_INDEX,
    BAD_LABEL,
    GOOD,
    NO_QUERY,
    SAFE_DIGITS,
    ParsedRows,
    ParseResult,
    parse_lines,
    scatter_rows,
)
from ranksieve.prepare.missing import POLICY_ADVICE, MissingPolicy, check_policy

TOKEN = re.compile(rb"[^ \t\r\n#]*")
MAX_SHOWN_CHARACTERS = 40
LARGEST_INDEX = 10_000_000
INFINITE = {"inf", "infinity"}
NO_FEATURE = "no line has a feature; expected index:value after the query id"


def check_width(n_features: int | None) -> None:
    """Raise an error unless the number of columns is from 1 to ``LARGEST_INDEX``."""
    if n_features is not None and n_features < 1:
        raise ParameterError("n_features", n_features, "must be at least 1")
    if n_features is not None and n_features > LARGEST_INDEX:
        reason = f"must be at most {LARGEST_INDEX}; renumber the features from 1"
        raise ParameterError("n_features", n_features, reason)


# --- Errors in a line --------------------------------------------------------------------------------------

Fault: TypeAlias = tuple[int, str]
"""A line number and a message."""
FINITE_EXPECTED = "values must be finite numbers, or NULL if missing"
EXAMPLE = 'as in "2 qid:10 1:0.5"'


def _parser_fault(buffer: bytearray, parsed: ParseResult, n_features: int | None) -> Fault:
    """The error at which the parser stopped."""
    token = _token_at(buffer, parsed.fault_at)
    digits, colon, value = token.partition(b":")
    index, what = _show_token(digits.lstrip(b"0") or b"0").strip("'"), _show_token(token)
    if parsed.fault == BAD_LABEL:
        message = f"the label is {what}; expected a finite number first, {EXAMPLE}"
    elif parsed.fault == NO_QUERY:
        message = f"expected the query id after the label, {EXAMPLE}, got {what}"
    elif parsed.fault == BAD_INDEX:
        message = f"got {what}, but LETOR features are numbered from 1"
    elif parsed.fault == BAD_FEATURE:
        infinite = value.strip(b"+-").decode("ascii", "replace").lower() in INFINITE
        message = f'expected index:value, as in "7:0.5", got {what} (a missing value is NULL or NaN)'
        if colon and digits.isdigit() and infinite:
            message = f"feature {index} is {_show_token(value)}; {FINITE_EXPECTED}"
    elif len(digits) > SAFE_DIGITS and digits.startswith(b"0"):
        message = f"got {what}; write feature numbers without leading zeros"
    elif n_features is None:
        message = f"feature {index} is larger than {LARGEST_INDEX}; renumber the features from 1"
    else:
        message = (
            f"feature {index} is larger than `n_features={n_features}`; raise `n_features` or leave it out"
        )
    return parsed.lines, message


def _overflow_fault(line: int, feature: int, text: str) -> Fault:
    """A number too large for the dtype of the matrix; feature 0 is the label."""
    what = f"feature {feature}" if feature else "the label"
    return line, f"{what} is {_truncate(text)}, which overflows; {FINITE_EXPECTED}"


def _token_at(buffer: bytearray, at: int) -> bytes:
    match = TOKEN.match(buffer, at)
    return bytes(match.group()) if match else b""


def _show_token(token: bytes) -> str:
    text = token.decode("utf-8", errors="backslashreplace")
    return repr(_truncate(text)) if text else "nothing"


def _truncate(text: str) -> str:
    return text if len(text) <= MAX_SHOWN_CHARACTERS else text[:MAX_SHOWN_CHARACTERS] + "…"


# --- Names of features -------------------------------------------------------------------------------------

NAMES_SUFFIX = ".names"
NUMBERED_NAME = re.compile(r"(\d{1,8})\s*[:,;\t]\s*(.+)")


class FeatureNames(NamedTuple):
    """Names of the features 1, 2, …, and their source.

    ``exact`` is False for names with numbers: the text may then have fewer features than names.
    """

    names: tuple[str, ...]
    source: str
    exact: bool

    @property
    def min_features(self) -> int:
        """Smallest number of features of the data; missing columns are added."""
        return 0 if self.exact else len(self.names)

    def of(self, n_features: int, source: str) -> tuple[str, ...]:
        """The names of ``n_features`` features; a different number of names is an error."""
        if n_features > len(self.names) or (self.exact and n_features < len(self.names)):
            reason = f"has {n_features} features, but {self.source} has {len(self.names)} names"
            raise DataError(source, None, reason)
        return self.names


def names_for(names: PathLike | Sequence[str] | None, paths: Sequence[PathLike]) -> FeatureNames | None:
    """Feature names from a file or a sequence; by default from the names files next to the text, if any."""
    if isinstance(names, str | os.PathLike):
        return read_names(names)
    if names is not None:
        return FeatureNames(tuple(str(name) for name in names), "names=", True)
    default_names = [read_names(file) for file in map(names_file, paths) if file.is_file()]
    for other in default_names[1:]:
        if other.names != default_names[0].names:
            reason = f"names differ from {default_names[0].source}; files of one data set need the same names"
            raise DataError(other.source, None, reason)
    return default_names[0] if default_names else None


def names_file(path: PathLike) -> Path:
    """Default file of feature names: ``train.txt.names`` for ``train.txt`` and ``train.txt.gz``."""
    return Path(os.fspath(path).removesuffix(".gz") + NAMES_SUFFIX)


def read_names(path: PathLike) -> FeatureNames:
    """Read feature names: one per line, or ``1:name`` on each line, or CSV with index and name."""
    source = source_name(path)
    lines = list(content_lines(read_text(path), source))
    if not lines:
        raise DataError(source, None, "contains no names; expected one per line")
    matches = [NUMBERED_NAME.fullmatch(line) for _, line in lines]
    numbered = all(matches[1:]) and (matches[0] is not None or len(matches) > 1)
    names: dict[int, str] = {}
    seen: set[str] = set()
    for count, ((position, line), match) in enumerate(zip(lines, matches, strict=True), start=1):
        if numbered and match is None:  # the header
            continue
        number, name = (int(match[1]), match[2].strip()) if numbered and match else (count, line)
        if not 1 <= number <= LARGEST_INDEX:
            raise DataError(
                *position, f"{short_repr(name)} has number {number}; expected 1 to {LARGEST_INDEX}"
            )
        if number in names:
            raise DataError(*position, f"feature {number} has a second name; keep one of them")
        if name in seen:
            raise DataError(*position, f"two features are called {name!r}; rename one of them")
        names[number] = name
        seen.add(name)
    all_names = tuple(names.get(j + 1, default) for j, default in enumerate(numbered_names(max(names))))
    return FeatureNames(all_names, source, exact=not numbered)


@contextmanager
def writing_names(dataset: Dataset, path: PathLike) -> Iterator[None]:
    """Write the feature names next to a text while it is written, or remove an outdated names file."""
    if os.fspath(path) == STANDARD_INPUT or not destination(path).replaceable:
        yield
        return
    names, file_of_names = dataset.feature_names, names_file(path)
    if names == numbered_names(len(names)):
        yield
        file_of_names.unlink(missing_ok=True)
        return
    if file_of_names.is_symlink():
        reason = "is a link, but the feature names are written to this file; remove the link"
        raise DataError(file_of_names, None, reason)
    for name in names:
        if name.strip() != name or not name or len(name.splitlines()) > 1:
            raise DataError(
                None, None, f"the feature name {name!r} cannot be a line of {file_of_names}; rename it"
            )
    with atomic_write(file_of_names) as file:
        file.writelines(f"{number}:{name}\n" for number, name in enumerate(names, start=1))
        yield


# --- Parsing -----------------------------------------------------------------------------------------------

CHUNK_BYTES = 1 << 18  # small enough for the cache: allocating new memory takes as long as parsing
MAX_AHEAD = 3  # chunks; parsing takes two thirds of the time, so more threads would wait
PLAIN_BYTES = 1_250_000  # a smaller text is parsed without compiled code, which takes seconds to compile
NUMBER = rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
PLAIN_LINE = re.compile(rb"(%b) qid:([^\s#]+)((?: \d{1,8}:%b)+)\n" % (NUMBER, NUMBER))


class DocumentChunk(NamedTuple):
    """The documents of some whole lines of ``source``; the next chunk reuses the arrays.

    Row r has the entries ``starts[r]:starts[r + 1]`` of ``features`` and ``values``. The rows of query
    ``queries[k]`` begin at row ``first_rows[k]``, on line ``query_lines[k]``. ``bytes_read`` is the number of
    bytes read so far.
    """

    source: str
    labels: FloatArray
    starts: IntArray
    features: AnyArray
    values: AnyArray
    width: int
    queries: list[str]
    query_lines: IntArray
    first_rows: IntArray
    comments: TextColumn
    doc_ids: TextColumn
    has_missing: bool
    bytes_read: int

    @property
    def n_rows(self) -> int:
        return len(self.labels)

    def fill(self, rows: AnyArray, first: int = 0) -> None:
        """Write the features of the rows from ``first`` on to a matrix of zeros."""
        last = first + len(rows)
        begin, end = self.starts[first], self.starts[last]
        if end - begin == rows.size:  # distinct ascending indices: every row is 1, …, width
            rows[:] = self.values[begin:end].reshape(rows.shape)
        else:
            scatter_rows(self.starts[first : last + 1], self.features, self.values, rows)


def letor_documents(
    paths: Sequence[PathLike],
    n_features: int | None,
    dtype: np.dtype[Any],
    refuse_missing: bool,
    chunk_bytes: int,
    n_ahead: int = 0,
) -> Iterator[DocumentChunk]:
    """The documents of some files, chunk by chunk; the first invalid line raises an error.

    Threads parse the next ``n_ahead`` chunks meanwhile.
    """
    names, bytes_read = dict[bytes, str](), 0
    for path in paths:
        source, line = source_name(path), 0
        for chunk, arrays, parsed in _parsed_chunks(path, chunk_bytes, n_features or LARGEST_INDEX, n_ahead):
            bytes_read += chunk.end - chunk.begin
            arrays.lines[: parsed.rows + 1] += line
            line += int(parsed.lines)
            parsed = parsed._replace(
                lines=line, missing_line=parsed.missing_line and parsed.missing_line + line - parsed.lines
            )
            faults = _parse_skipped(chunk.buffer, parsed, arrays)
            if not parsed.ordered:
                faults += _sort_rows(parsed, arrays)
            values = _cast_values(dtype, parsed, arrays, faults)
            queries = _queries(chunk.buffer, parsed, arrays, names, faults)
            if parsed.missing_line and refuse_missing:
                what = f"feature {parsed.missing_feature} is missing (NULL or NaN)"
                faults.append((parsed.missing_line, f"{what}; {POLICY_ADVICE}"))
            if parsed.fault != GOOD:
                faults.append(_parser_fault(chunk.buffer, parsed, n_features))
            if faults:
                raise DataError(source, *min(faults))
            if rows := parsed.rows:
                ends, first_rows = arrays.comment_ends[:rows], arrays.run_rows[: parsed.runs]
                block = arrays.comments[: ends[-1]]
                yield DocumentChunk(
                    source, arrays.labels[:rows], arrays.starts[: rows + 1],
                    arrays.features[: parsed.entries], values, parsed.width, queries,
                    arrays.lines[first_rows], first_rows,
                    TextColumn(block, np.concatenate(([0], ends[:-1])), ends),
                    TextColumn(block, arrays.id_begins[:rows], arrays.id_ends[:rows]),
                    parsed.missing_line > 0, bytes_read,
                )  # fmt: skip


ParsedChunk: TypeAlias = tuple[Chunk, ParsedRows, ParseResult]


def _parsed_chunks(path: PathLike, chunk_bytes: int, largest: int, n_ahead: int) -> Iterator[ParsedChunk]:
    """The chunks of a file, each with its lines numbered from 1; the next one may reuse the arrays.

    Threads parse ``n_ahead`` chunks, each in its own arrays, while this one reads the file and yields.
    """
    is_small = _is_small(path)
    if is_small or not n_ahead:
        arrays, n_bytes = _allocate_rows(0), 0
        for chunk in text_chunks(path, chunk_bytes):
            if len(arrays.comments) < len(chunk.buffer):
                arrays = _allocate_rows(len(chunk.buffer))
            n_bytes += chunk.end - chunk.begin  # of gzip data, more than of the file
            yield _parse(chunk, arrays, largest, is_small and n_bytes <= PLAIN_BYTES)
        return
    free = deque([(bytearray(), _allocate_rows(0))] * (n_ahead + 1))

    def copies() -> Iterator[tuple[Chunk, ParsedRows]]:
        for chunk in text_chunks(path, chunk_bytes):
            buffer, arrays = free.popleft()
            if len(buffer) < len(chunk.buffer):
                buffer, arrays = bytearray(len(chunk.buffer)), _allocate_rows(len(chunk.buffer))
            buffer[: chunk.end] = memoryview(chunk.buffer)[: chunk.end]
            yield Chunk(buffer, chunk.begin, chunk.end), arrays

    for parsed in map_ahead(lambda copy: _parse(*copy, largest, False), copies(), n_ahead):
        yield parsed
        free.append((parsed[0].buffer, parsed[1]))


def _is_small(path: PathLike) -> bool:
    """Whether a file, if it is one, is at most as long as a text that is parsed without compiled code."""
    return os.path.isfile(path) and os.path.getsize(path) <= PLAIN_BYTES


def _parse(chunk: Chunk, arrays: ParsedRows, largest: int, plainly: bool) -> ParsedChunk:
    parsed = _parse_plain(chunk, largest, arrays) if plainly else None
    if parsed is None:
        text = np.frombuffer(chunk.buffer, dtype=np.uint8)
        parsed = parse_lines(text, chunk.begin, chunk.end, largest, arrays)
    return chunk, arrays, parsed


def _allocate_rows(size: int) -> ParsedRows:
    """Arrays for any text of ``size`` bytes: a line has at least 8 bytes and a feature 4."""
    rows, entries = size // 8 + 2, size // 4 + 1
    lengths = dict.fromkeys(ParsedRows._fields, rows)
    lengths |= dict.fromkeys(("features", "values"), entries) | {"comments": size}
    lengths |= dict.fromkeys(("repair_entries", "repair_begins"), entries + rows)
    types = {"labels": np.float64, "values": np.float64, "features": np.int32, "comments": np.uint8}
    return ParsedRows(**{name: np.empty(n, dtype=types.get(name, np.int64)) for name, n in lengths.items()})


def _parse_plain(chunk: Chunk, largest: int, out: ParsedRows) -> ParseResult | None:
    """The result of ``parse_lines``; None if a line is not plainly ``2 qid:10 1:0.5 …`` or has a fault."""
    end, rows, n_runs, query, labels, entries, lengths = chunk.begin, 0, 0, None, [], bytearray(), [0]
    while end < chunk.end:
        match = PLAIN_LINE.match(chunk.buffer, end, chunk.end)
        if match is None:
            return None
        label, row_query, row_entries = match.groups()
        if row_query != query:
            out.run_rows[n_runs], (out.run_begins[n_runs], out.run_ends[n_runs]) = rows, match.span(2)
            query, n_runs = row_query, n_runs + 1
        labels.append(float(label))
        entries += row_entries
        lengths.append(row_entries.count(b":"))
        end, rows = match.end(), rows + 1
    numbers = np.array([*map(float, entries.replace(b":", b" ").split())])
    features, values, starts = numbers[0::2], numbers[1::2], np.cumsum(lengths)
    if not np.isfinite([*labels, *values]).all() or features.min() < 1 or features.max() > largest:
        return None
    out.labels[:rows], out.lines[:rows] = labels, np.arange(1, rows + 1)
    out.starts[: rows + 1] = starts
    out.features[: len(values)], out.values[: len(values)] = features - 1, values
    out.comment_ends[:rows] = out.id_begins[:rows] = out.id_ends[:rows] = 0
    descends = np.flatnonzero(np.diff(features) <= 0) + 1
    ordered, width = bool(np.isin(descends, starts).all()), int(features.max())
    return ParseResult(rows, len(values), n_runs, 0, rows, width, ordered, 0, 0, GOOD, end)


def _parse_skipped(buffer: bytearray, parsed: ParseResult, out: ParsedRows) -> list[Fault]:
    """Parse the numbers that the parser skipped with Python's ``float``; return those that overflow."""
    faults = []
    for k in range(parsed.repairs):
        entry, token = int(out.repair_entries[k]), _token_at(buffer, int(out.repair_begins[k]))
        value = float(token)
        if entry < 0:
            out.labels[-1 - entry] = value
        else:
            out.values[entry] = value
        if math.isinf(value):
            faults.append(_overflow_fault(*_line_and_feature(entry, parsed, out), token.decode()))
    return faults


def _line_and_feature(entry: int, parsed: ParseResult, out: ParsedRows) -> tuple[int, int]:
    """Line and feature of an entry; the entry −1 − row is a label, feature 0."""
    if entry < 0:
        return int(out.lines[-1 - entry]), 0
    row = np.searchsorted(out.starts[: parsed.rows + 1], entry, side="right") - 1
    return int(out.lines[row]), int(out.features[entry]) + 1


def _sort_rows(parsed: ParseResult, out: ParsedRows) -> list[Fault]:
    """Sort the features of each whole row; return the first one that occurs twice."""
    starts = out.starts[: parsed.rows + 1]
    features, values = out.features[: starts[-1]], out.values[: starts[-1]]
    sort_each_row(starts, features, values)
    repeated = np.setdiff1d(np.flatnonzero(np.diff(features) == 0) + 1, starts)
    positions = [_line_and_feature(int(entry), parsed, out) for entry in repeated[:1]]
    return [
        (line, f"feature {feature} occurs twice on the line; give it once") for line, feature in positions
    ]


def _cast_values(dtype: np.dtype[Any], parsed: ParseResult, out: ParsedRows, faults: list[Fault]) -> AnyArray:
    """Cast the values to the dtype of the matrix; add the first overflow to the faults."""
    values = out.values[: parsed.entries]
    if dtype == values.dtype:
        return values
    with np.errstate(over="ignore"):
        cast = values.astype(dtype)
    for entry in np.flatnonzero(np.isinf(cast))[:1].tolist():
        faults.append(_overflow_fault(*_line_and_feature(entry, parsed, out), f"{values[entry]} in {dtype}"))
    return cast


def _queries(
    buffer: bytearray, parsed: ParseResult, out: ParsedRows, names: dict[bytes, str], faults: list[Fault]
) -> list[str]:
    """The query of each run of rows; ``names`` caches the strings, so that equal ids share memory."""
    queries = []
    for k in range(parsed.runs):
        token = bytes(buffer[out.run_begins[k] : out.run_ends[k]])
        try:
            queries.append(names.get(token) or names.setdefault(token, token.decode()))
        except UnicodeDecodeError:
            message = f"the query id {token[:MAX_SHOWN_CHARACTERS]!r} is not UTF-8; save the file as UTF-8"
            faults.append((int(out.lines[out.run_rows[k]]), message))
            break
    return queries


# --- Growing matrices --------------------------------------------------------------------------------------

LARGE_DENSE_CELLS, MIN_DENSE_SHARE = 2**27, 0.01


class Density:
    """Counts rows and values; raises an error if a large dense matrix would be nearly all zeros."""

    def __init__(self, width: int, advice: str) -> None:
        self.rows, self.stored, self.width, self._advice = 0, 0, width, advice

    def add(self, chunk: DocumentChunk) -> None:
        self.rows += chunk.n_rows
        self.stored += len(chunk.values)
        self.width = max(self.width, chunk.width)
        cells = self.rows * self.width
        if cells > LARGE_DENSE_CELLS and self.stored < MIN_DENSE_SHARE * cells:
            size = f"{self.stored} values for {self.rows} × {self.width} features"
            raise DataError(chunk.source, None, f"{size} are too sparse for dense rows; {self._advice}")


class DenseRows:
    """A dense matrix, as wide as the largest index so far; features absent from a line are 0."""

    def __init__(self, dtype: np.dtype[Any], n_features: int | None) -> None:
        self._density = Density(n_features or 0, "choose `sparse=True`")
        self._rows = GrowingArray(dtype, n_features or 0)

    def add(self, chunk: DocumentChunk) -> None:
        width = self._density.width
        self._density.add(chunk)
        if self._density.width > width:
            self._rows.widen(self._density.width)
        chunk.fill(self._rows.extend(chunk.n_rows))

    def finish(self) -> Matrix:
        return self._rows.finish()


class SparseRows:
    """A CSR matrix with the entries of the lines."""

    def __init__(self, dtype: np.dtype[Any], n_features: int | None) -> None:
        self._width = n_features or 0
        self._values, self._features = GrowingArray(dtype), GrowingArray(np.int32)
        self._ends = GrowingArray(np.int64)
        self._ends.append(np.zeros(1, dtype=np.int64))

    def add(self, chunk: DocumentChunk) -> None:
        self._width = max(self._width, chunk.width)
        self._ends.append(chunk.starts[1:] + len(self._values))
        self._values.append(chunk.values)
        self._features.append(chunk.features)

    def finish(self) -> Matrix:
        return csr(self._values.finish(), self._features.finish(), self._ends.finish(), self._width)


class Comments:
    """The text after ``#``, and the span of the document id in it."""

    def __init__(self) -> None:
        self._block = GrowingArray(np.uint8)
        self._ends, self._id_begins, self._id_ends = (GrowingArray(np.int64) for _ in range(3))

    def add(self, chunk: DocumentChunk) -> None:
        begin = len(self._block)
        self._block.append(chunk.comments.block)
        self._ends.append(chunk.comments.ends + begin)
        self._id_begins.append(chunk.doc_ids.begins + begin)
        self._id_ends.append(chunk.doc_ids.ends + begin)

    def finish(self) -> tuple[TextColumn | None, TextColumn | None]:
        """Comments and document ids; None if no line has a comment."""
        if len(self._block) == 0:
            return None, None
        block, ends = self._block.finish(), self._ends.finish()
        comments = TextColumn(block, np.concatenate(([0], ends[:-1])), ends)
        return comments, TextColumn(block, self._id_begins.finish(), self._id_ends.finish())


class GrowingArray:
    """An array to which rows are appended in position.

    The capacity grows by a quarter at a time: memory stays under 1.25 times the content (twice that while
    the system copies to reallocate), and copying costs O(1) per row.
    """

    def __init__(self, dtype: DTypeLike, width: int | None = None) -> None:
        self._buffer: AnyArray = np.zeros((0,) if width is None else (0, width), dtype=dtype)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def extend(self, count: int) -> AnyArray:
        """Append ``count`` rows of zeros and return a view of them, valid until the next ``extend``."""
        start, self._length = self._length, self._length + count
        if self._length > len(self._buffer):
            self._resize(max(self._length, len(self._buffer) * 5 // 4))
        return self._buffer[start : self._length]

    def append(self, rows: AnyArray) -> None:
        self.extend(len(rows))[:] = rows

    def widen(self, width: int) -> None:
        """Widen every row to ``width`` entries, the new ones 0."""
        wider = np.zeros((self._length, width), dtype=self._buffer.dtype)
        wider[:, : self._buffer.shape[1]] = self._buffer[: self._length]
        self._buffer = wider

    def finish(self) -> AnyArray:
        """The array without spare capacity; nothing may be appended afterwards."""
        self._resize(self._length)
        return self._buffer

    def _resize(self, length: int) -> None:
        self._buffer.resize((length, *self._buffer.shape[1:]), refcheck=False)


def read_letor(
    path: PathLike | Sequence[PathLike],
    *,
    n_features: int | None = None,
    missing: str = "keep",
    sparse: bool = False,
    dtype: DTypeLike = np.float64,
    names: PathLike | Sequence[str] | None = None,
    _chunk_bytes: int = CHUNK_BYTES,
) -> Dataset:
    """Read LETOR (SVMlight with query ids) text, plain or gzip.

    Numbers are parsed exactly as by Python's ``float``. Query ids are int64 if all of them are plain
    integers, else str. The text after ``#`` becomes ``comments``; a document id is X of ``docid = X``, else
    the first word of the comment. Blank lines and lines with only a comment are skipped. The data of a LETOR
    fold (``Fold1/train.txt``) use LETOR's metric conventions: their ``profile`` is ``"letor"``.

    Parameters
    ----------
    path : path or sequence of paths
        ``-`` is standard input. Several files are joined; equal ids are one query.
    n_features : int, optional
        Number of columns, at most ten million; a larger index is an error. Default: the largest index.
    missing : {"keep", "error", "zero", "query_min", "column_mean"}
        Treatment of ``NULL`` and ``NaN``, see :func:`fill_missing`; rankers handle NaN that is kept.
    sparse : bool
        Return a CSR matrix with the entries of the lines instead of a dense matrix.
    dtype : float64 or float32
        Type of the matrix.
    names : path or sequence of str, optional
        Names of the features: a file with one per line, or with their numbers (``1:bm25_title``, or CSV
        ``1,bm25_title``), or the names themselves. Default: ``PATH.names`` if there is such a file, else
        ``f1, f2, …``. If the names have numbers, there may be more of them than features in the text.
    """
    check_policy(missing)
    check_width(n_features)
    kind = np.dtype(dtype)
    if kind not in (np.float32, np.float64):
        raise ParameterError("dtype", str(kind), "must be float32 or float64")
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    source, feature_names = ", ".join(source_name(one) for one in paths), names_for(names, paths)
    matrix = SparseRows(kind, n_features) if sparse else DenseRows(kind, n_features)
    labels, first_rows, comments = GrowingArray(np.float64), GrowingArray(np.int64), Comments()
    queries, has_missing = list[str](), False
    n_ahead = min(threads_to_start(), MAX_AHEAD) if threads_to_start() > 1 else 0
    for chunk in letor_documents(paths, n_features, kind, missing == "error", _chunk_bytes, n_ahead):
        queries += chunk.queries
        first_rows.append(chunk.first_rows + len(labels))
        labels.append(chunk.labels)
        comments.add(chunk)
        matrix.add(chunk)
        has_missing |= chunk.has_missing
    if len(labels) == 0:
        raise DataError(source or "the list of files", None, "contains no documents")
    X, y = matrix.finish(), labels.finish()
    if X.shape[1] == 0:
        raise DataError(source, None, NO_FEATURE)
    if feature_names is not None and X.shape[1] < feature_names.min_features:
        X = pad_columns(X, feature_names.min_features)
    column_names = None if feature_names is None else feature_names.of(X.shape[1], source)
    qid = np.repeat(ids_from_text(queries), np.diff(np.append(first_rows.finish(), len(y))))
    if has_missing and missing != "keep":
        MissingPolicy(missing).fill(X, group_queries(qid))
    texts, doc_ids = comments.finish()
    profile = profile_of_files(paths)
    return Dataset(X, y, qid, column_names, doc_ids=doc_ids, comments=texts, source=source, profile=profile)


# --- Writing -----------------------------------------------------------------------------------------------

CELLS_PER_WRITE = 1 << 16
MIN_PLAIN, MAX_PLAIN = 1e-4, 1e16  # the text of numbers in this range has no exponent


def letor_lines(dataset: Dataset) -> Iterator[bytes]:
    """The text, several whole lines at a time."""
    queries = [text.encode() for text in _query_texts(dataset)]
    query_of_row = dataset.queries.of_rows(np.arange(dataset.n_queries)).tolist()
    cells = max(dataset.X.size, 1)  # for a sparse matrix, the stored ones
    step = max(1, CELLS_PER_WRITE * dataset.n_docs // cells)
    for first in range(0, dataset.n_docs, step):
        rows = slice(first, min(first + step, dataset.n_docs))
        block = dataset.X[rows]
        _check_finite(dataset, first, block)
        starts, column_starts, columns, values = stored_rows(block)
        labels, numbers = shortest_texts(dataset.y[rows]), shortest_texts(values)
        indices = [b" %d:" % (column + 1) for column in columns.tolist()]
        lines = []
        for k, row in enumerate(range(rows.start, rows.stop)):
            begin, end, column = starts[k], starts[k + 1], column_starts[k]
            pairs = b"".join(map(add, indices[column : column + end - begin], numbers[begin:end]))
            lines.append(
                b"%b qid:%b%b%b\n" % (labels[k], queries[query_of_row[row]], pairs, _line_end(dataset, row))
            )
        yield b"".join(lines)


def shortest_texts(values: FloatArray) -> list[bytes]:
    """Shortest text of each number that parses to the same bits, with Python's exponents; NULL for NaN."""
    from msgspec.json import encode  # only needed for writing

    if not len(values):
        return []
    decimals = _shortest_decimals(values) if values.dtype == np.float32 else values
    plain = encode(decimals.tolist())[1:-1] + b","  # eight times as fast as repr
    texts = plain.replace(b"null", b"NULL").replace(b".0,", b",")[:-1].split(b",")
    size = np.abs(values)
    for k in np.flatnonzero((values != 0) & ((size < MIN_PLAIN) | (size >= MAX_PLAIN))).tolist():
        texts[k] = _text_with_exponent(values[k]).encode()
    return texts


def _shortest_decimals(values: AnyArray) -> FloatArray:
    """For each float32, the float64 nearest to the shortest decimal that parses to it.

    Decimals of six digits survive a round trip through float32, and nine digits distinguish all float32. In
    the range without exponents, products with powers of ten round once; other numbers are unchanged.
    """
    exact, size = values.astype(np.float64), np.abs(values)
    remaining, decimals = np.flatnonzero((size >= MIN_PLAIN) & (size < MAX_PLAIN)), exact.copy()
    for digits in range(6, 10):
        value = exact[remaining]
        power = digits - 1 - np.floor(np.log10(np.abs(value)))
        ten = 10.0 ** np.abs(power)
        rounded = np.where(power >= 0, np.rint(value * ten) / ten, np.rint(value / ten) * ten)
        same = rounded.astype(np.float32) == values[remaining]
        decimals[remaining[same]] = rounded[same]
        remaining = remaining[~same]
    return decimals


def _text_with_exponent(value: np.floating) -> str:
    """NumPy's text, or eight digits for the one float32 so close to a midpoint that it would round twice."""
    text = str(value)
    return text if type(value)(float(text)) == value else f"{value:.8g}"


def _query_texts(dataset: Dataset) -> list[str]:
    """The id of each query as one token."""
    texts = [str(query) for query in dataset.queries.ids]
    for text in texts:
        if not text or "#" in text or any(c in text for c in " \t\r\n\0"):
            raise DataError(
                None, None, f"the query id {text!r} is not one word without #, as LETOR text requires"
            )
    if len(set(texts)) < len(texts):
        raise DataError(None, None, "two query ids are equal as text, so LETOR text cannot distinguish them")
    return texts


def _check_finite(dataset: Dataset, start: int, block: Matrix) -> None:
    position = find_first(block, np.isinf)
    if position is not None:
        row, column = position
        name = dataset.feature_names[column]
        raise DataError(
            None, None, f"feature {name} of row {start + row} is infinite; LETOR text needs finite values"
        )


def _line_end(dataset: Dataset, row: int) -> bytes:
    """The comment of a row, else its document id, as the end of its line."""
    comment = _raw_text(dataset.comments, row)
    if comment or dataset.doc_ids is None:
        end = b"\r" if comment.endswith(b"\r") else b""  # readers strip one as part of the line end
        return b" #" + comment + end if comment else b""
    doc_id = _raw_text(dataset.doc_ids, row)
    if len(doc_id.split()) > 1:
        raise DataError(
            None, None, f"the document id {doc_id.decode()!r} is not one word, as LETOR text requires"
        )
    return b" #docid = " + doc_id if doc_id else b""


def _raw_text(column: Sequence[Any] | None, row: int) -> bytes:
    if column is None:
        return b""
    text = column.raw(row) if isinstance(column, TextColumn) else str(column[row]).encode()
    if b"\n" in text or b"\0" in text:
        raise DataError(
            None, None, f"the comment or document id of row {row} contains a line break or NUL byte"
        )
    return text


def write_letor(dataset: Dataset, path: PathLike) -> None:
    """Write LETOR text, gzip if the name ends in ``.gz``; the file is written atomically.

    A line has every feature of a dense row, or the stored ones of a sparse row; ``NULL`` is missing. Numbers
    have the fewest digits that :func:`read_letor` parses to the same float64, or for a float32 matrix to the
    same float32 (``dtype=np.float32``, or float64 that is cast). A row without a comment gets its document id
    as ``docid = X``. Feature names other than ``f1, f2, …`` are written to ``PATH.names``.
    """
    if dataset.document_weight is not None:
        reason = (
            "LETOR text has no document weights; write parquet, CSV or a folder, or set document_weight of "
            "the data set to None"
        )
        raise DataError(path, None, reason)
    with writing_names(dataset, path), atomic_write(path, "wb") as file, maybe_gzip(file, path) as out:
        for text in letor_lines(dataset):
            out.write(text)
