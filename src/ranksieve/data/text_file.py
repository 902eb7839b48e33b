"""Small text files read whole: runs, judgements, logs and models of other programs."""

from __future__ import annotations

import csv
import gzip
import math
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from ranksieve.data.byte_source import (
    BYTE_ORDER_MARK,
    GZIP_MAGIC,
    STANDARD_INPUT,
    PathLike,
    plain_file_errors,
    source_name,
)


def read_text(path: PathLike) -> str:
    """A UTF-8 file, plain or gzip; ``-`` is standard input."""
    with plain_file_errors(path):
        raw = sys.stdin.buffer.read() if str(path) == STANDARD_INPUT else Path(path).read_bytes()
        raw = gzip.decompress(raw) if raw.startswith(GZIP_MAGIC) else raw
    try:
        return raw.removeprefix(BYTE_ORDER_MARK).decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{source_name(path)}:{line}: is not UTF-8 text; save it as UTF-8") from None


def content_lines(text: str, name: str) -> Iterator[tuple[str, str]]:
    """Each line that is not blank, with its place ``file:line``."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield f"{name}:{number}", line.strip()


def csv_rows(lines: Iterable[str], delimiter: str, name: str) -> Iterator[tuple[str, list[str]]]:
    """The cells of each row that is not blank, with its place ``file:line``."""
    reader = csv.reader(lines, delimiter=delimiter)
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield f"{name}:{reader.line_num}", cells
    except csv.Error as error:
        raise ValueError(f"{name}:{reader.line_num}: damaged CSV ({error})") from None


def finite_number(text: str, place: str, what: str) -> float:
    """A number; anything else is refused, naming the place."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{place}: the {what} is {text[:40]!r}; expected a finite number")
    return value
