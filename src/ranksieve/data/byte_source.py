"""Whole lines of text files, plain or gzip, in large chunks of bytes."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

GZIP_MAGIC = b"\x1f\x8b"
PARQUET_MAGIC = b"PAR1"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
STANDARD_INPUT = "-"

PathLike = str | os.PathLike[str]


class Chunk(NamedTuple):
    """The whole lines ``buffer[begin:end]``; the buffer is used again for the next chunk."""

    buffer: bytearray
    begin: int
    end: int


def source_name(path: PathLike) -> str:
    """The path as it stands in messages."""
    return "standard input" if os.fspath(path) == STANDARD_INPUT else os.fspath(path)


def text_chunks(path: PathLike, chunk_bytes: int) -> Iterator[Chunk]:
    """The lines of a text file, each chunk ending in a newline; problems come as one sentence."""
    with plain_file_errors(path), _open(path) as raw:
        start = raw.peek(len(PARQUET_MAGIC))[: len(PARQUET_MAGIC)]
        if start == PARQUET_MAGIC:
            raise ValueError(f"{source_name(path)}: is a parquet file, not LETOR text; use read_parquet")
        zipped = start.startswith(GZIP_MAGIC) or os.fspath(path).endswith(".gz")
        stream = gzip.GzipFile(fileobj=raw) if zipped else raw
        yield from _whole_lines(stream, source_name(path), chunk_bytes)


@contextmanager
def plain_file_errors(path: PathLike) -> Iterator[None]:
    """Say in one sentence why a file cannot be read."""
    name = source_name(path)
    try:
        yield
    except EOFError:
        raise ValueError(f"{name}: the gzip data break off; the file is truncated, fetch it again") from None
    except (zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{name}: the gzip data are corrupt ({error}); fetch the file again") from None
    except FileNotFoundError:
        raise FileNotFoundError(f"{name}: there is no such file") from None
    except IsADirectoryError:
        raise IsADirectoryError(
            f"{name}: is a folder; give a file, or use load_letor_folds for a folder of folds"
        ) from None
    except OSError as error:
        raise OSError(f"{name}: cannot be read ({error.strerror or error})") from None


@contextmanager
def _open(path: PathLike) -> Iterator[io.BufferedReader]:
    if os.fspath(path) != STANDARD_INPUT:
        with open(path, "rb") as file:
            yield file
    elif isinstance(sys.stdin.buffer, io.BufferedReader):
        yield sys.stdin.buffer
    else:  # standard input was replaced by something in memory
        yield io.BufferedReader(io.BytesIO(sys.stdin.buffer.read()))


def _whole_lines(stream: io.BufferedIOBase, name: str, size: int) -> Iterator[Chunk]:
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
            buffer = buffer + bytearray(len(buffer))
    if kept:
        begin = len(BYTE_ORDER_MARK) if first and buffer.startswith(BYTE_ORDER_MARK) else 0
        buffer[kept] = ord("\n")
        yield Chunk(buffer, begin, kept + 1)


def _fill(stream: io.BufferedIOBase, buffer: bytearray, kept: int, name: str) -> int:
    """Read behind the ``kept`` bytes, leaving one byte for a last newline; return how many came."""
    count = stream.readinto(memoryview(buffer)[kept:-1])
    if buffer.find(0, kept, kept + count) >= 0:
        raise ValueError(f"{name}: holds NUL bytes, so it is not LETOR text")
    return count
