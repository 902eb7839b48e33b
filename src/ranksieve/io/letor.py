"""LETOR text: read, written, and what can be wrong with a line."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from operator import add
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from ranksieve._types import AnyArray, FloatArray, IntArray, Matrix, PathLike
from ranksieve._util.files import atomic_write, destination
from ranksieve.data.dataset import Dataset, TextColumn
from ranksieve.data.inputs import numbered_names
from ranksieve.data.matrix import csr, first_place, sort_each_row, stored_rows, widened
from ranksieve.data.queries import group_queries, ids_from_text
from ranksieve.errors import DataError, ParameterError, shown
from ranksieve.io.text_files import (
    STANDARD_INPUT,
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
    Parsed,
    Rows,
    parse_lines,
    scatter_rows,
)
from ranksieve.prepare.missing import OTHER_POLICIES, MissingPolicy, check_policy

TOKEN = re.compile(rb"[^ \t\r\n#]*")
LONGEST_SHOWN = 40
LARGEST_INDEX = 10_000_000
INFINITE = {"inf", "infinity"}
NO_FEATURE = "no line has a feature; expected index:value after the query id"


def check_width(n_features: int | None) -> None:
    """Refuse a number of columns that is not from 1 to those that can have names."""
    if n_features is not None and n_features < 1:
        raise ParameterError("n_features", n_features, "must be at least 1")
    if n_features is not None and n_features > LARGEST_INDEX:
        reason = f"must be at most {LARGEST_INDEX}; number the features that occur from 1 on"
        raise ParameterError("n_features", n_features, reason)


# --- What can be wrong with a line -------------------------------------------------------------------------

Fault: TypeAlias = tuple[int, str]
"""A line, and a sentence about it."""
FINITE = "values must be finite numbers, or NULL where missing"
EXAMPLE = 'as in "2 qid:10 1:0.5"'


def _parser_fault(buffer: bytearray, parsed: Parsed, n_features: int | None) -> Fault:
    """The fault that the parser stopped at."""
    token = _token_at(buffer, parsed.fault_at)
    digits, colon, value = token.partition(b":")
    index, what = _shown(digits.lstrip(b"0") or b"0").strip("'"), _shown(token)
    if parsed.fault == BAD_LABEL:
        sentence = f"the label is {what}; expected a finite number first, {EXAMPLE}"
    elif parsed.fault == NO_QUERY:
        sentence = f"found {what} after the label; expected the query id there, {EXAMPLE}"
    elif parsed.fault == BAD_INDEX:
        sentence = f"found {what}; LETOR features count from 1"
    elif parsed.fault == BAD_FEATURE:
        infinite = value.strip(b"+-").decode("ascii", "replace").lower() in INFINITE
        sentence = f'found {what}; expected index:value, as in "7:0.5" (a missing value is NULL or NaN)'
        if colon and digits.isdigit() and infinite:
            sentence = f"feature {index} is {_shown(value)}; {FINITE}"
    elif len(digits) > SAFE_DIGITS and digits.startswith(b"0"):
        sentence = f"found {what}; write feature numbers without leading zeros"
    elif n_features is None:
        sentence = f"feature {index} is beyond {LARGEST_INDEX}; number the features that occur from 1 on"
    else:
        sentence = f"feature {index} is beyond `n_features={n_features}`; raise `n_features` or leave it out"
    return parsed.lines, sentence


def _infinite(place: tuple[int, int], text: str) -> Fault:
    """A number too large for the matrix; feature 0 is the label."""
    line, feature = place
    what = f"feature {feature}" if feature else "the label"
    return line, f"{what} is {_beginning(text)}, which overflows; {FINITE}"


def _token_at(buffer: bytearray, at: int) -> bytes:
    match = TOKEN.match(buffer, at)
    return bytes(match.group()) if match else b""


def _shown(token: bytes) -> str:
    text = token.decode("utf-8", errors="backslashreplace")
    return repr(_beginning(text)) if text else "nothing"


def _beginning(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…"


# --- Names of features -------------------------------------------------------------------------------------

SUFFIX = ".names"
NUMBERED = re.compile(r"(\d{1,8})\s*[:,;\t]\s*(.+)")


class FeatureNames(NamedTuple):
    """Names of the features 1, 2, …, and where they come from.

    Without ``exact`` they were given with their numbers, so that data may have fewer features.
    """

    names: tuple[str, ...]
    source: str
    exact: bool

    @property
    def least(self) -> int:
        """How many features the data get at least."""
        return 0 if self.exact else len(self.names)

    def of(self, n_features: int, source: str) -> tuple[str, ...]:
        """The names of so many features; another number of names is refused."""
        if n_features > len(self.names) or (self.exact and n_features < len(self.names)):
            reason = f"has {n_features} features, but {self.source} has {len(self.names)} names"
            raise DataError(source, None, reason)
        return self.names


def names_for(given: PathLike | Sequence[str] | None, paths: Sequence[PathLike]) -> FeatureNames | None:
    """The names that are given, as a file or a sequence, else those of a file beside the text, if any."""
    if isinstance(given, str | os.PathLike):
        return read_names(given)
    if given is not None:
        return FeatureNames(tuple(str(name) for name in given), "names=", True)
    found = [read_names(place) for place in map(names_beside, paths) if place.is_file()]
    for other in found[1:]:
        if other.names != found[0].names:
            reason = f"has other names than {found[0].source}; files of one data set need the same features"
            raise DataError(other.source, None, reason)
    return found[0] if found else None


def names_beside(path: PathLike) -> Path:
    """Where the names of a text's features are looked for: ``train.txt.names``, also for train.txt.gz."""
    return Path(os.fspath(path).removesuffix(".gz") + SUFFIX)


def read_names(path: PathLike) -> FeatureNames:
    """Read the names of features: one per line, or ``1:name`` on each line, or CSV with index and name."""
    source = source_name(path)
    lines = list(content_lines(read_text(path), source))
    if not lines:
        raise DataError(source, None, "holds no names; expected one per line")
    matches = [NUMBERED.fullmatch(line) for _, line in lines]
    numbered = all(matches[1:]) and (matches[0] is not None or len(matches) > 1)
    names: dict[int, str] = {}
    taken: set[str] = set()
    for count, ((place, line), match) in enumerate(zip(lines, matches, strict=True), start=1):
        if numbered and match is None:  # the header
            continue
        number, name = (int(match[1]), match[2].strip()) if numbered and match else (count, line)
        if not 1 <= number <= LARGEST_INDEX:
            raise DataError(*place, f"{shown(name)} has number {number}; expected 1 to {LARGEST_INDEX}")
        if number in names:
            raise DataError(*place, f"feature {number} has a second name; give it one")
        if name in taken:
            raise DataError(*place, f"two features are called {name!r}; rename one of them")
        names[number] = name
        taken.add(name)
    every = tuple(names.get(j + 1, default) for j, default in enumerate(numbered_names(max(names))))
    return FeatureNames(every, source, exact=not numbered)


@contextmanager
def names_written(dataset: Dataset, path: PathLike) -> Iterator[None]:
    """While a text is written: leave the names of its features beside it, or remove those of an older one."""
    if os.fspath(path) == STANDARD_INPUT or not destination(path).replaced:
        yield
        return
    names, beside = dataset.feature_names, names_beside(path)
    if names == numbered_names(len(names)):
        yield
        beside.unlink(missing_ok=True)
        return
    if beside.is_symlink():
        raise DataError(beside, None, "is a link, but the feature names are written there; remove the link")
    for name in names:
        if name.strip() != name or not name or len(name.splitlines()) > 1:
            raise DataError(
                None, None, f"the feature name {name!r} does not fit on a line of {beside}; rename it"
            )
    with atomic_write(beside) as file:
        file.writelines(f"{number}:{name}\n" for number, name in enumerate(names, start=1))
        yield


# --- From chunks of text to documents ----------------------------------------------------------------------

CHUNK_BYTES = 1 << 18  # small, because fresh memory costs as much time as parsing: buffers stay in the cache


class Documents(NamedTuple):
    """The documents of some whole lines of ``source``; its arrays are used again for the next ones.

    Row r has the entries ``starts[r]:starts[r + 1]`` of ``features`` and ``values``. The rows of query
    ``queries[k]``, which the line ``query_lines[k]`` begins, are those from ``first_rows[k]`` to the next.
    ``bytes_read`` counts the text up to here.
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
        """Write the features of the rows from ``first`` on into a matrix of zeros."""
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
) -> Iterator[Documents]:
    """The documents of some files, chunk by chunk; the first line with a fault raises."""
    room, names, bytes_read = _room(0), dict[bytes, str](), 0
    for path in paths:
        source, line = source_name(path), 0
        for chunk in text_chunks(path, chunk_bytes):
            bytes_read += chunk.end - chunk.begin
            room = room if len(room.comments) >= len(chunk.buffer) else _room(len(chunk.buffer))
            text = np.frombuffer(chunk.buffer, dtype=np.uint8)
            parsed = parse_lines(text, chunk.begin, chunk.end, line, n_features or LARGEST_INDEX, room)
            line = int(parsed.lines)
            faults = _repair(chunk.buffer, parsed, room)
            if not parsed.ordered:
                faults += _sort_rows(parsed, room)
            values = _cast(dtype, parsed, room, faults)
            queries = _queries(chunk.buffer, parsed, room, names, faults)
            if parsed.missing_line and refuse_missing:
                what = f"feature {parsed.missing_feature} is missing (NULL or NaN)"
                faults.append((parsed.missing_line, f"{what}; {OTHER_POLICIES}"))
            if parsed.fault != GOOD:
                faults.append(_parser_fault(chunk.buffer, parsed, n_features))
            if faults:
                raise DataError(source, *min(faults))
            if rows := parsed.rows:
                ends, first_rows = room.comment_ends[:rows], room.run_rows[: parsed.runs]
                block = room.comments[: ends[-1]]
                yield Documents(
                    source, room.labels[:rows], room.starts[: rows + 1], room.features[: parsed.entries],
                    values, parsed.width, queries, room.lines[first_rows], first_rows,
                    TextColumn(block, np.concatenate(([0], ends[:-1])), ends),
                    TextColumn(block, room.id_begins[:rows], room.id_ends[:rows]),
                    parsed.missing_line > 0, bytes_read,
                )  # fmt: skip


def _room(size: int) -> Rows:
    """Room for any text of ``size`` bytes: a line has at least 8 of them and a feature 4."""
    rows, entries = size // 8 + 2, size // 4 + 1
    lengths = dict.fromkeys(Rows._fields, rows)
    lengths |= dict.fromkeys(("features", "values"), entries) | {"comments": size}
    lengths |= dict.fromkeys(("repair_entries", "repair_begins"), entries + rows)
    types = {"labels": np.float64, "values": np.float64, "features": np.int32, "comments": np.uint8}
    return Rows(**{name: np.empty(n, dtype=types.get(name, np.int64)) for name, n in lengths.items()})


def _repair(buffer: bytearray, parsed: Parsed, out: Rows) -> list[Fault]:
    """Read the numbers the parser left over with Python's ``float``; list those that overflow."""
    faults = []
    for k in range(parsed.repairs):
        entry, token = int(out.repair_entries[k]), _token_at(buffer, int(out.repair_begins[k]))
        value = float(token)
        if entry < 0:
            out.labels[-1 - entry] = value
        else:
            out.values[entry] = value
        if math.isinf(value):
            faults.append(_infinite(_place(entry, parsed, out), token.decode()))
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
    places = [_place(int(entry), parsed, out) for entry in repeated[:1]]
    return [(line, f"feature {feature} occurs twice on the line; give it once") for line, feature in places]


def _cast(dtype: np.dtype[Any], parsed: Parsed, out: Rows, faults: list[Fault]) -> AnyArray:
    """The values in the matrix's type; the first that overflows in it is a fault."""
    values = out.values[: parsed.entries]
    if dtype == values.dtype:
        return values
    with np.errstate(over="ignore"):
        cast = values.astype(dtype)
    for entry in np.flatnonzero(np.isinf(cast))[:1].tolist():
        faults.append(_infinite(_place(entry, parsed, out), f"{values[entry]} in {dtype}"))
    return cast


def _queries(
    buffer: bytearray, parsed: Parsed, out: Rows, names: dict[bytes, str], faults: list[Fault]
) -> list[str]:
    """The query of each run of rows; ``names`` has those of earlier runs, which share the memory."""
    queries = []
    for k in range(parsed.runs):
        token = bytes(buffer[out.run_begins[k] : out.run_ends[k]])
        try:
            queries.append(names.get(token) or names.setdefault(token, token.decode()))
        except UnicodeDecodeError:
            sentence = f"the query id {token[:LONGEST_SHOWN]!r} is not UTF-8; save the file as UTF-8"
            faults.append((int(out.lines[out.run_rows[k]]), sentence))
            break
    return queries


# --- Matrices that grow ------------------------------------------------------------------------------------

LARGE_DENSE_CELLS, LEAST_DENSE_SHARE = 2**27, 0.01


class Density:
    """Counts rows and values; refuses text so sparse that dense rows of it would be nearly all zeros."""

    def __init__(self, width: int, advice: str) -> None:
        self.rows, self.stored, self.width, self._advice = 0, 0, width, advice

    def add(self, part: Documents) -> None:
        self.rows += part.n_rows
        self.stored += len(part.values)
        self.width = max(self.width, part.width)
        cells = self.rows * self.width
        if cells > LARGE_DENSE_CELLS and self.stored < LEAST_DENSE_SHARE * cells:
            size = f"{self.stored} values for {self.rows} × {self.width} features"
            raise DataError(part.source, None, f"{size} would be dense rows of zeros; {self._advice}")


class DenseRows:
    """A dense matrix, as wide as the largest index so far; what a line leaves out is 0."""

    def __init__(self, dtype: np.dtype[Any], n_features: int | None) -> None:
        self._density = Density(n_features or 0, "choose `sparse=True`")
        self._rows = GrowingArray(dtype, n_features or 0)

    def add(self, part: Documents) -> None:
        width = self._density.width
        self._density.add(part)
        if self._density.width > width:
            self._rows.widen(self._density.width)
        part.fill(self._rows.extend(part.n_rows))

    def finish(self) -> Matrix:
        return self._rows.finish()


class SparseRows:
    """Compressed rows with the entries that the lines have."""

    def __init__(self, dtype: np.dtype[Any], n_features: int | None) -> None:
        self._width = n_features or 0
        self._values, self._features = GrowingArray(dtype), GrowingArray(np.int32)
        self._ends = GrowingArray(np.int64)
        self._ends.append(np.zeros(1, dtype=np.int64))

    def add(self, part: Documents) -> None:
        self._width = max(self._width, part.width)
        self._ends.append(part.starts[1:] + len(self._values))
        self._values.append(part.values)
        self._features.append(part.features)

    def finish(self) -> Matrix:
        return csr(self._values.finish(), self._features.finish(), self._ends.finish(), self._width)


class Comments:
    """The text after ``#``, and where the document id is in it."""

    def __init__(self) -> None:
        self._block = GrowingArray(np.uint8)
        self._ends, self._id_begins, self._id_ends = (GrowingArray(np.int64) for _ in range(3))

    def add(self, part: Documents) -> None:
        before = len(self._block)
        self._block.append(part.comments.block)
        self._ends.append(part.comments.ends + before)
        self._id_begins.append(part.doc_ids.begins + before)
        self._id_ends.append(part.doc_ids.ends + before)

    def finish(self) -> tuple[TextColumn | None, TextColumn | None]:
        """Comments and document ids, None if no line has any."""
        if len(self._block) == 0:
            return None, None
        block, ends = self._block.finish(), self._ends.finish()
        comments = TextColumn(block, np.concatenate(([0], ends[:-1])), ends)
        return comments, TextColumn(block, self._id_begins.finish(), self._id_ends.finish())


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

    Numbers have the bits of Python's ``float``. Query ids are int64 if all of them are plain integers, else
    str. The text after ``#`` becomes ``comments``; ``doc_ids`` holds X of ``docid = X``, else the first
    word of the comment. Blank lines and lines with a comment only are skipped. A file of a LETOR fold
    (``Fold1/train.txt``) comes with LETOR's conventions: the ``profile`` of its data is ``"letor"``.

    Parameters
    ----------
    path : path or sequence of paths
        ``-`` is standard input. Several files make one data set; equal ids are one query.
    n_features : int, optional
        Number of columns; at most ten million; default: the largest index. A larger index is an error.
    missing : {"keep", "error", "zero", "query_min", "column_mean"}
        What becomes of ``NULL`` and ``NaN``, see :func:`fill_missing`; rankers deal with NaN that is kept.
    sparse : bool
        CSR with the features that the lines give, instead of a dense matrix.
    dtype : float64 or float32
        Type of the matrix.
    names : path or sequence of str, optional
        Names of the features: a file with one per line, or with their numbers (``1:bm25_title``, or CSV
        ``1,bm25_title``), or the names themselves. Default: ``PATH.names`` if there is such a file, else
        ``f1, f2, …``. Names that come with numbers may be more than the features of the text.
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
    for part in letor_documents(paths, n_features, kind, missing == "error", _chunk_bytes):
        queries += part.queries
        first_rows.append(part.first_rows + len(labels))
        labels.append(part.labels)
        comments.add(part)
        matrix.add(part)
        has_missing |= part.has_missing
    if len(labels) == 0:
        raise DataError(source or "the list of files", None, "holds no documents")
    X, y = matrix.finish(), labels.finish()
    if X.shape[1] == 0:
        raise DataError(source, None, NO_FEATURE)
    if feature_names is not None and X.shape[1] < feature_names.least:
        X = widened(X, feature_names.least)
    called = None if feature_names is None else feature_names.of(X.shape[1], source)
    qid = np.repeat(ids_from_text(queries), np.diff(np.append(first_rows.finish(), len(y))))
    if has_missing and missing != "keep":
        MissingPolicy(missing).fill(X, group_queries(qid))
    texts, doc_ids = comments.finish()
    profile = profile_of_files(paths)
    return Dataset(X, y, qid, called, doc_ids=doc_ids, comments=texts, source=source, profile=profile)


# --- Written ------------------------------------------------------------------------------------------------

CELLS_AT_ONCE = 1 << 16  # of the rows that are written together
PLAIN = (1e-4, 1e16)  # numbers from here to there have no exponent in their text


def letor_lines(dataset: Dataset) -> Iterator[bytes]:
    """The text, some whole lines at a time."""
    queries = [text.encode() for text in _query_texts(dataset)]
    query_of_row = dataset.queries.of_rows(np.arange(dataset.n_queries)).tolist()
    cells = max(dataset.X.size, 1)  # of a sparse matrix the stored ones
    step = max(1, CELLS_AT_ONCE * dataset.n_docs // cells)
    for first in range(0, dataset.n_docs, step):
        rows = slice(first, min(first + step, dataset.n_docs))
        block = dataset.X[rows]
        _check_finite(dataset, first, block)
        starts, places, columns, values = stored_rows(block)
        labels, numbers = shortest_texts(dataset.y[rows]), shortest_texts(values)
        indices = [b" %d:" % (column + 1) for column in columns.tolist()]
        lines = []
        for k, row in enumerate(range(rows.start, rows.stop)):
            begin, end, place = starts[k], starts[k + 1], places[k]
            pairs = b"".join(map(add, indices[place : place + end - begin], numbers[begin:end]))
            lines.append(
                b"%b qid:%b%b%b\n" % (labels[k], queries[query_of_row[row]], pairs, _tail(dataset, row))
            )
        yield b"".join(lines)


def shortest_texts(values: FloatArray) -> list[bytes]:
    """The shortest text of each number that reads back to its bits, with Python's exponents; NULL for NaN."""
    from msgspec.json import encode  # only writing needs it

    if not len(values):
        return []
    decimals = _shortest_decimals(values) if values.dtype == np.float32 else values
    plain = encode(decimals.tolist())[1:-1] + b","  # eight times as fast as repr
    texts = plain.replace(b"null", b"NULL").replace(b".0,", b",")[:-1].split(b",")
    size = np.abs(values)
    for k in np.flatnonzero((values != 0) & ((size < PLAIN[0]) | (size >= PLAIN[1]))).tolist():
        texts[k] = _text_with_exponent(values[k]).encode()
    return texts


def _shortest_decimals(values: AnyArray) -> FloatArray:
    """Of each float32 the float64 nearest to the decimal of fewest digits that reads back to it.

    A decimal of six digits comes back from float32, and nine digits tell all float32 apart. Products with
    powers of ten round once here, where texts have no exponent; other numbers are unchanged.
    """
    exact, size = values.astype(np.float64), np.abs(values)
    open_ones, decimals = np.flatnonzero((size >= PLAIN[0]) & (size < PLAIN[1])), exact.copy()
    for digits in range(6, 10):
        value = exact[open_ones]
        power = digits - 1 - np.floor(np.log10(np.abs(value)))
        ten = 10.0 ** np.abs(power)
        rounded = np.where(power >= 0, np.rint(value * ten) / ten, np.rint(value / ten) * ten)
        same = rounded.astype(np.float32) == values[open_ones]
        decimals[open_ones[same]] = rounded[same]
        open_ones = open_ones[~same]
    return decimals


def _text_with_exponent(value: np.floating) -> str:
    """NumPy's text; eight digits of the one float32 that is so near a midpoint that it would round twice."""
    text = str(value)
    return text if type(value)(float(text)) == value else f"{value:.8g}"


def _query_texts(dataset: Dataset) -> list[str]:
    """The id of each query as one token."""
    texts = [str(query) for query in dataset.queries.ids]
    for text in texts:
        if not text or "#" in text or any(c in text for c in " \t\r\n\0"):
            raise DataError(
                None, None, f"the query id {text!r} is not one word without #; LETOR text cannot hold it"
            )
    if len(set(texts)) < len(texts):
        raise DataError(None, None, "two query ids look the same as text; LETOR text cannot tell them apart")
    return texts


def _check_finite(dataset: Dataset, start: int, block: Matrix) -> None:
    place = first_place(block, np.isinf)
    if place is not None:
        row, column = place
        name = dataset.feature_names[column]
        raise DataError(
            None, None, f"feature {name} of row {start + row} is infinite; LETOR text cannot hold it"
        )


def _tail(dataset: Dataset, row: int) -> bytes:
    """What follows the features of a row: its comment, else its document id."""
    comment = _raw(dataset.comments, row)
    if comment or dataset.doc_ids is None:
        end = b"\r" if comment.endswith(b"\r") else b""  # readers take one away, as part of the line's end
        return b" #" + comment + end if comment else b""
    doc_id = _raw(dataset.doc_ids, row)
    if len(doc_id.split()) > 1:
        raise DataError(
            None, None, f"the document id {doc_id.decode()!r} is not one word; LETOR text cannot hold it"
        )
    return b" #docid = " + doc_id if doc_id else b""


def _raw(column: Sequence[Any] | None, row: int) -> bytes:
    if column is None:
        return b""
    text = column.raw(row) if isinstance(column, TextColumn) else str(column[row]).encode()
    if b"\n" in text or b"\0" in text:
        raise DataError(None, None, f"the comment or document id of row {row} holds a line break or NUL byte")
    return text


def write_letor(dataset: Dataset, path: PathLike) -> None:
    """Write LETOR text, gzip if the name ends in ``.gz``; the file appears whole or not at all.

    :func:`read_letor` gives the same bits back: every feature of a dense row, the stored ones of a sparse
    row, ``NULL`` where missing. A number has the shortest form for the matrix's own type: the fewest digits
    that read back to the same float64, or for a float32 matrix to the same float32 (``dtype=np.float32``, or
    float64 that is cast). The comment is kept, else the document id is written as ``docid = X``. Features
    with names of their own have them written beside it, in ``PATH.names``.
    """
    if dataset.document_weight is not None:
        reason = (
            "LETOR text cannot hold document weights; write parquet, CSV or a folder, or set "
            "document_weight of the data set to None"
        )
        raise DataError(path, None, reason)
    with names_written(dataset, path), atomic_write(path, "wb") as file, maybe_gzip(file, path) as out:
        for text in letor_lines(dataset):
            out.write(text)
