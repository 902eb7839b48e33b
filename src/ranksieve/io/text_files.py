"""Text files: encodings, compression, lines with their numbers, names of LETOR's folds."""

from __future__ import annotations

import csv
import gzip
import io
import math
import os
import re
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, NamedTuple, TypeAlias, cast

from ranksieve._types import PathLike
from ranksieve.errors import DataError, ParameterError

FOLD = re.compile(r"Fold(\d+)")
SPLITS = {
    "train": ("train", "training", "trainingset"),
    "validation": ("vali", "valid", "validation", "validationset"),
    "test": ("test", "testing", "testset"),
}
SUFFIXES = (".txt", ".txt.gz")


def file_names(split: str) -> list[str]:
    """What the file of a split may be called."""
    return [name + suffix for name in SPLITS[split] for suffix in SUFFIXES]


def profile_of_files(paths: Sequence[PathLike]) -> str | None:
    """The metric conventions that files come with: ``letor`` if all are parts of LETOR folds, else None."""
    return "letor" if all(_is_part_of_fold(Path(path).absolute()) for path in paths) else None


def _is_part_of_fold(path: Path) -> bool:
    in_fold = FOLD.fullmatch(path.parent.name) is not None
    return in_fold and any(path.name in file_names(split) for split in SPLITS)


MOST_TIMES = 250  # that text may be larger than its gzip; the format's own bound is 1,032
MOST_TIMES_BY_COLUMN = 2000  # of parquet, which writes a value once for any number of equal rows
ALWAYS = 2**28  # bytes that may be unpacked from however few
MEGABYTE = 1e6
PIECE = 2**20
CELL = 8  # bytes of a number


class Unpacked(io.RawIOBase):
    """What gzip data hold; refused as soon as that is ``MOST_TIMES`` as much as was read of them."""

    def __init__(self, packed: IO[bytes], name: str) -> None:
        self._packed, self._n_packed, self._count, self._name = packed, 0, 0, name
        self._gzip: Any = gzip.GzipFile(fileobj=cast(Any, SimpleNamespace(read=self._read_packed)), mode="rb")

    def _read_packed(self, size: int) -> bytes:
        content = self._packed.read(size)
        self._n_packed += len(content)
        return content

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = int(self._gzip.readinto(buffer))
        self._count += count
        if self._count > max(ALWAYS, MOST_TIMES * self._n_packed):
            ratio = f"{self._count / MEGABYTE:.3g} MB from {self._n_packed / MEGABYTE:.3g} MB of gzip"
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


GZIP_MAGIC = b"\x1f\x8b"
PARQUET_MAGIC = b"PAR1"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
STANDARD_INPUT = "-"
LONGEST_LINE = 2**27  # bytes: eight million features of one document
Place: TypeAlias = tuple[str, int]
"""A file and the number of a line."""
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def source_name(path: PathLike) -> str:
    """The path as messages show it."""
    return "standard input" if os.fspath(path) == STANDARD_INPUT else os.fspath(path)


@contextmanager
def plain_file_errors(path: PathLike) -> Iterator[None]:
    """Say in one sentence why a file cannot be read."""
    name = source_name(path)
    try:
        yield
    except EOFError:
        raise DataError(name, None, "the gzip data are truncated; fetch the file again") from None
    except (zlib.error, gzip.BadGzipFile) as error:
        raise DataError(name, None, f"the gzip data are corrupt ({error}); fetch the file again") from None
    except FileNotFoundError:
        raise FileNotFoundError(f"{name}: there is no such file") from None
    except IsADirectoryError:
        raise IsADirectoryError(
            f"{name}: is a folder; give a file, or a folder that ranksieve convert made"
        ) from None
    except OSError as error:
        raise OSError(f"{name}: cannot be read ({error.strerror or ' '.join(str(error).split())})") from None


@contextmanager
def in_file(name: str) -> Iterator[None]:
    """Errors about data are about this file."""
    try:
        yield
    except ParameterError:
        raise
    except ValueError as error:
        about = error if isinstance(error, DataError) else DataError(None, None, str(error))
        raise about.at(name) from None


def read_bytes(path: PathLike) -> bytes:
    """The content of a file, plain or gzip; ``-`` is standard input."""
    with plain_file_errors(path):
        raw = sys.stdin.buffer.read() if str(path) == STANDARD_INPUT else Path(path).read_bytes()
        return unpacked(raw, source_name(path)) if raw.startswith(GZIP_MAGIC) else raw


def read_text(path: PathLike) -> str:
    """A UTF-8 file, plain or gzip; ``-`` is standard input."""
    return as_text(read_bytes(path), source_name(path))


def as_text(raw: bytes, name: str) -> str:
    """The text that bytes are in UTF-8."""
    try:
        return raw.removeprefix(BYTE_ORDER_MARK).decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(name, line, "is not UTF-8 text; save it as UTF-8") from None


def first_bytes(path: PathLike, count: int) -> bytes:
    """The beginning of what a file holds, plain or gzip; nothing if it cannot be read."""
    try:
        with open(path, "rb") as file:
            if not file.peek(len(GZIP_MAGIC)).startswith(GZIP_MAGIC):
                return file.read(count)
            return gzip.GzipFile(fileobj=file).read(count)
    except (OSError, EOFError, zlib.error):
        return b""


@contextmanager
def maybe_gzip(file: IO[Any], path: PathLike) -> Iterator[IO[Any]]:
    """The open file, or if the name ends in ``.gz`` one that packs what is written into it."""
    if not os.fspath(path).endswith(".gz"):
        yield file
        return
    with gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as zipped:
        yield cast(IO[Any], zipped)


def text_lines(text: str) -> list[str]:
    """The lines with their ends, which are those of any system (\\n, \\r\\n, \\r) and nothing else."""
    return list(io.StringIO(text, newline=""))


def content_lines(text: str, name: str) -> Iterator[tuple[Place, str]]:
    """Each line that is not blank, with its place."""
    for number, line in enumerate(text_lines(text), start=1):
        if line.strip():
            yield (name, number), line.strip()


def first_content(lines: Iterable[str]) -> str:
    """The first line that is not blank; nothing if all are."""
    return next((line for line in lines if line.strip()), "")


DELIMITERS = ("\t", ";", ",")


def delimiter_of(header: str) -> str:
    """What separates the cells of a header: tab, semicolon or comma, whichever makes most cells of it."""
    return max(DELIMITERS, key=lambda delimiter: len(cells_of(header, delimiter)))


def cells_of(line: str, delimiter: str) -> list[str]:
    """The cells of one line, which may be quoted; of a damaged line one cell."""
    try:
        return next(csv.reader([line.strip("\r\n")], delimiter=delimiter), [])
    except csv.Error:
        return [line]


def csv_rows(lines: Iterable[str], delimiter: str, name: str) -> Iterator[tuple[Place, list[str]]]:
    """The cells of each row that is not blank, with its place."""
    reader = csv.reader(lines, delimiter=delimiter)
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield (name, reader.line_num), cells
    except csv.Error as error:
        raise DataError(name, reader.line_num, f"damaged CSV ({error})") from None


def finite_number(text: str, place: tuple[str, int | None], what: str) -> float:
    """A number in ASCII digits; anything else is refused, naming the place (1_000 is a number to Python)."""
    word = text.strip()  # float itself does not take all blanks away
    value = float(word) if NUMBER.fullmatch(word) else math.nan
    if not math.isfinite(value):
        raise DataError(*place, f"the {what} is {text[:40]!r}; expected a finite number")
    return value


class Chunk(NamedTuple):
    """The whole lines ``buffer[begin:end]``; the buffer is used again for the next chunk."""

    buffer: bytearray
    begin: int
    end: int


def text_chunks(path: PathLike, chunk_bytes: int) -> Iterator[Chunk]:
    """The lines of a text file, each chunk ending in a newline; problems come as one sentence."""
    with plain_file_errors(path), _open(path) as raw:
        start = raw.peek(len(PARQUET_MAGIC))[: len(PARQUET_MAGIC)]
        if start == PARQUET_MAGIC:
            raise DataError(
                source_name(path), None, "is parquet, not LETOR text; its name must end in .parquet"
            )
        zipped = start.startswith(GZIP_MAGIC) or os.fspath(path).endswith(".gz")
        stream = Unpacked(raw, source_name(path)) if zipped else raw
        yield from _whole_lines(stream, source_name(path), chunk_bytes)


@contextmanager
def _open(path: PathLike) -> Iterator[io.BufferedReader]:
    if os.fspath(path) != STANDARD_INPUT:
        with open(path, "rb") as file:
            yield file
    elif isinstance(sys.stdin.buffer, io.BufferedReader):
        yield sys.stdin.buffer
    else:  # standard input was replaced by something in memory
        yield io.BufferedReader(io.BytesIO(sys.stdin.buffer.read()))


def _whole_lines(stream: io.BufferedIOBase | io.RawIOBase, name: str, size: int) -> Iterator[Chunk]:
    """Fill a buffer, hand out the lines that end in it, move the rest to its front."""
    buffer, kept, first = bytearray(size + 1), 0, True
    while count := _fill(stream, buffer, kept, name):
        begin = len(BYTE_ORDER_MARK) if first and buffer.startswith(BYTE_ORDER_MARK) else 0
        end = buffer.rfind(b"\n", 0, kept + count) + 1
        if end > begin:
            yield Chunk(buffer, begin, end)
            first = False
        rest = kept + count - end
        buffer[:rest] = buffer[end : end + rest]
        kept = rest
        if kept == len(buffer) - 1:  # one line fills the buffer
            if kept >= LONGEST_LINE:
                raise DataError(
                    name, None, f"a line has over {LONGEST_LINE} bytes; expected one document per line"
                )
            buffer = buffer + bytearray(len(buffer))
    if kept:
        begin = len(BYTE_ORDER_MARK) if first and buffer.startswith(BYTE_ORDER_MARK) else 0
        buffer[kept] = ord("\n")
        yield Chunk(buffer, begin, kept + 1)


def _fill(stream: io.BufferedIOBase | io.RawIOBase, buffer: bytearray, kept: int, name: str) -> int:
    """Read behind the ``kept`` bytes, leaving one byte for a last newline; return how many came."""
    count = stream.readinto(memoryview(buffer)[kept:-1])
    if buffer.find(0, kept, kept + count) >= 0:
        raise DataError(name, None, "holds NUL bytes, so it is not LETOR text")
    return count
