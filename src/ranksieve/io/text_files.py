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

FOLD_NAME = re.compile(r"Fold(\d+)")
SPLITS = {
    "train": ("train", "training", "trainingset"),
    "validation": ("vali", "valid", "validation", "validationset"),
    "test": ("test", "testing", "testset"),
}
LETOR_SUFFIXES = (".txt", ".txt.gz")


def file_names(split: str) -> list[str]:
    """Possible file names of a split."""
    return [name + suffix for name in SPLITS[split] for suffix in LETOR_SUFFIXES]


def profile_of_files(paths: Sequence[PathLike]) -> str | None:
    """The metric profile of files: ``letor`` if all of them are part of a LETOR fold, else None."""
    return "letor" if all(_is_part_of_fold(Path(path).absolute()) for path in paths) else None


def _is_part_of_fold(path: Path) -> bool:
    in_fold = FOLD_NAME.fullmatch(path.parent.name) is not None
    return in_fold and any(path.name in file_names(split) for split in SPLITS)


MAX_GZIP_RATIO = 250  # size of the text over that of its gzip data; the format allows up to 1,032
MAX_PARQUET_RATIO = 2000  # parquet stores a value once for any number of equal rows
ALWAYS_ALLOWED_BYTES = 2**28  # decompressed size that is allowed at any ratio
MEGABYTE = 1e6
GZIP_READ_BYTES = 2**20
CELL_BYTES = 8


class GzipReader(io.RawIOBase):
    """Decompressed gzip data; raises an error as soon as their size exceeds ``MAX_GZIP_RATIO``."""

    def __init__(self, compressed: IO[bytes], name: str) -> None:
        self._compressed, self._n_compressed, self._n_decompressed, self._name = compressed, 0, 0, name
        source = SimpleNamespace(read=self._read_compressed)
        self._gzip: Any = gzip.GzipFile(fileobj=cast(Any, source), mode="rb")

    def _read_compressed(self, size: int) -> bytes:
        content = self._compressed.read(size)
        self._n_compressed += len(content)
        return content

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = int(self._gzip.readinto(buffer))
        self._n_decompressed += count
        if self._n_decompressed > max(ALWAYS_ALLOWED_BYTES, MAX_GZIP_RATIO * self._n_compressed):
            ratio = (
                f"{self._n_decompressed / MEGABYTE:.3g} MB from "
                f"{self._n_compressed / MEGABYTE:.3g} MB of gzip"
            )
            reason = f"suspicious compression ratio ({ratio}); if the file is trusted, decompress it first"
            raise DataError(self._name, None, reason)
        return count


def decompress(data: bytes, name: str) -> bytes:
    """Decompress gzip data."""
    stream = GzipReader(io.BytesIO(data), name)
    return b"".join(iter(lambda: stream.read(GZIP_READ_BYTES), b""))


def check_parquet_size(n_rows: int, n_columns: int, n_bytes: int, name: str) -> None:
    """Raise an error if the table is implausibly large for the size of its file."""
    if n_rows * n_columns * CELL_BYTES > max(ALWAYS_ALLOWED_BYTES, MAX_PARQUET_RATIO * n_bytes):
        reason = (
            f"claims {n_rows:,} rows of {n_columns:,} columns in {n_bytes:,} bytes, which is implausible; "
            "check the file and write it again"
        )
        raise DataError(name, None, reason)


GZIP_MAGIC = b"\x1f\x8b"
PARQUET_MAGIC = b"PAR1"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
STANDARD_INPUT = "-"
MAX_LINE_BYTES = 2**27  # eight million features of one document
LinePosition: TypeAlias = tuple[str, int]
"""A file name and a line number."""
DECIMAL_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def source_name(path: PathLike) -> str:
    """The path as shown in messages."""
    return "standard input" if os.fspath(path) == STANDARD_INPUT else os.fspath(path)


@contextmanager
def plain_file_errors(path: PathLike) -> Iterator[None]:
    """Turn the exceptions of reading a file into messages of one sentence."""
    name = source_name(path)
    try:
        yield
    except EOFError:
        raise DataError(name, None, "the gzip data are truncated; fetch the file again") from None
    except (zlib.error, gzip.BadGzipFile) as error:
        raise DataError(name, None, f"the gzip data are corrupt ({error}); fetch the file again") from None
    except FileNotFoundError:
        raise FileNotFoundError(f"{name}: no such file") from None
    except IsADirectoryError:
        raise IsADirectoryError(
            f"{name}: is a folder; give a file, or a folder written by ranksieve convert"
        ) from None
    except OSError as error:
        raise OSError(f"{name}: cannot be read ({error.strerror or ' '.join(str(error).split())})") from None


@contextmanager
def in_file(name: str) -> Iterator[None]:
    """Add the file name to errors about data."""
    try:
        yield
    except ParameterError:
        raise
    except ValueError as error:
        data_error = error if isinstance(error, DataError) else DataError(None, None, str(error))
        raise data_error.at(name) from None


def read_bytes(path: PathLike) -> bytes:
    """The content of a file, plain or gzip; ``-`` is standard input."""
    with plain_file_errors(path):
        raw = sys.stdin.buffer.read() if str(path) == STANDARD_INPUT else Path(path).read_bytes()
        return decompress(raw, source_name(path)) if raw.startswith(GZIP_MAGIC) else raw


def read_text(path: PathLike) -> str:
    """A UTF-8 file, plain or gzip; ``-`` is standard input."""
    return as_text(read_bytes(path), source_name(path))


def as_text(raw: bytes, name: str) -> str:
    """Decode UTF-8; the error names the line."""
    try:
        return raw.removeprefix(BYTE_ORDER_MARK).decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(name, line, "is not UTF-8 text; save it as UTF-8") from None


def first_bytes(path: PathLike, count: int) -> bytes:
    """First bytes of the content of a file, plain or gzip; empty if it cannot be read."""
    try:
        with open(path, "rb") as file:
            if not file.peek(len(GZIP_MAGIC)).startswith(GZIP_MAGIC):
                return file.read(count)
            return gzip.GzipFile(fileobj=file).read(count)
    except (OSError, EOFError, zlib.error):
        return b""


@contextmanager
def maybe_gzip(file: IO[Any], path: PathLike) -> Iterator[IO[Any]]:
    """The open file, or a gzip stream that writes to it if the name ends in ``.gz``."""
    if not os.fspath(path).endswith(".gz"):
        yield file
        return
    with gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as zipped:
        yield cast(IO[Any], zipped)


def text_lines(text: str) -> list[str]:
    """The lines with their line ends: \\n, \\r\\n or \\r, and no other character."""
    return list(io.StringIO(text, newline=""))


def content_lines(text: str, name: str) -> Iterator[tuple[LinePosition, str]]:
    """Each line that is not blank, with its position."""
    for number, line in enumerate(text_lines(text), start=1):
        if line.strip():
            yield (name, number), line.strip()


def first_content(lines: Iterable[str]) -> str:
    """The first line that is not blank, else an empty string."""
    return next((line for line in lines if line.strip()), "")


DELIMITERS = ("\t", ";", ",")


def delimiter_of(header: str) -> str:
    """The delimiter of a header: tab, semicolon or comma, whichever gives the most cells."""
    return max(DELIMITERS, key=lambda delimiter: len(cells_of(header, delimiter)))


def cells_of(line: str, delimiter: str) -> list[str]:
    """The cells of one line, which may be quoted; a damaged line is one cell."""
    try:
        return next(csv.reader([line.strip("\r\n")], delimiter=delimiter), [])
    except csv.Error:
        return [line]


def csv_rows(lines: Iterable[str], delimiter: str, name: str) -> Iterator[tuple[LinePosition, list[str]]]:
    """The cells of each row that is not blank, with its position."""
    reader = csv.reader(lines, delimiter=delimiter)
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield (name, reader.line_num), cells
    except csv.Error as error:
        raise DataError(name, reader.line_num, f"damaged CSV ({error})") from None


def finite_number(text: str, position: tuple[str, int | None], what: str) -> float:
    """Parse a finite number in ASCII digits; stricter than ``float``, which accepts 1_000."""
    stripped = text.strip()  # float does not strip all blanks
    value = float(stripped) if DECIMAL_NUMBER.fullmatch(stripped) else math.nan
    if not math.isfinite(value):
        raise DataError(*position, f"the {what} is {text[:40]!r}; expected a finite number")
    return value


class Chunk(NamedTuple):
    """The whole lines ``buffer[begin:end]``; the next chunk reuses the buffer."""

    buffer: bytearray
    begin: int
    end: int


def text_chunks(path: PathLike, chunk_bytes: int) -> Iterator[Chunk]:
    """The lines of a text file in chunks, each ending in a newline."""
    with plain_file_errors(path), _open(path) as raw:
        start = raw.peek(len(PARQUET_MAGIC))[: len(PARQUET_MAGIC)]
        if start == PARQUET_MAGIC:
            raise DataError(
                source_name(path), None, "is parquet, not LETOR text; its name must end in .parquet"
            )
        is_gzip = start.startswith(GZIP_MAGIC) or os.fspath(path).endswith(".gz")
        stream = GzipReader(raw, source_name(path)) if is_gzip else raw
        yield from _whole_lines(stream, source_name(path), chunk_bytes)


@contextmanager
def _open(path: PathLike) -> Iterator[io.BufferedReader]:
    if os.fspath(path) != STANDARD_INPUT:
        with open(path, "rb") as file:
            yield file
    elif isinstance(sys.stdin.buffer, io.BufferedReader):
        yield sys.stdin.buffer
    else:  # standard input is a stream in memory
        yield io.BufferedReader(io.BytesIO(sys.stdin.buffer.read()))


def _whole_lines(stream: io.BufferedIOBase | io.RawIOBase, name: str, size: int) -> Iterator[Chunk]:
    """Fill a buffer, yield the lines that end in it, move the rest to its front."""
    buffer, n_kept, first = bytearray(size + 1), 0, True
    while count := _fill(stream, buffer, n_kept, name):
        begin = len(BYTE_ORDER_MARK) if first and buffer.startswith(BYTE_ORDER_MARK) else 0
        end = buffer.rfind(b"\n", 0, n_kept + count) + 1
        if end > begin:
            yield Chunk(buffer, begin, end)
            first = False
        rest = n_kept + count - end
        buffer[:rest] = buffer[end : end + rest]
        n_kept = rest
        if n_kept == len(buffer) - 1:  # one line fills the buffer
            if n_kept >= MAX_LINE_BYTES:
                raise DataError(
                    name, None, f"a line has over {MAX_LINE_BYTES} bytes; expected one document per line"
                )
            buffer = buffer + bytearray(len(buffer))
    if n_kept:
        begin = len(BYTE_ORDER_MARK) if first and buffer.startswith(BYTE_ORDER_MARK) else 0
        buffer[n_kept] = ord("\n")
        yield Chunk(buffer, begin, n_kept + 1)


def _fill(stream: io.BufferedIOBase | io.RawIOBase, buffer: bytearray, n_kept: int, name: str) -> int:
    """Read after the ``n_kept`` bytes, leaving one byte for a last newline; return the bytes read."""
    count = stream.readinto(memoryview(buffer)[n_kept:-1])
    if buffer.find(0, n_kept, n_kept + count) >= 0:
        raise DataError(name, None, "contains NUL bytes, so it is not LETOR text")
    return count
