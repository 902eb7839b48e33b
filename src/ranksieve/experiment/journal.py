"""A file that only grows: one JSON object per line, the first says what the others belong to.

A line is written and synced whole, the first one together with the first row: work that is refused leaves no
file. A killed process or a full disk leaves at most one torn last line, which the next writer cuts off. One
process writes at a time; others wait for it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from filelock import FileLock

from ranksieve._util.files import check_inside, converted, decode_json, plain
from ranksieve._version import __version__
from ranksieve.errors import DataError

FORMAT = "ranksieve-results"
FORMAT_VERSION = 3
Entry = dict[str, Any]


class Header(msgspec.Struct, forbid_unknown_fields=True):
    """The first line of a journal."""

    kind: str
    format: str
    format_version: int
    version: str
    identity: Entry
    notes: Entry


class Journal:
    """Rows of one piece of work, kept in ``path``. ``identity`` must be the same for all who write it."""

    def __init__(self, path: Path, identity: Mapping[str, Any], notes: Mapping[str, Any]) -> None:
        self.path = path
        self.rows: list[Entry] = []
        self._header = _header(identity, notes)
        if path.exists() and (kept := _cut_torn_line(path)):
            first, *self.rows = kept
            check_format(path, first)
            _check_same(path, first, self._header)

    def append(self, row: Mapping[str, Any]) -> Entry:
        """Add a row; when this returns, it is on the disk. Gives the row as a reader would get it."""
        written: Entry = plain(row)
        self._write([written] if self.rows else [self._header, written])
        self.rows.append(written)
        return written

    def of_kind(self, kind: str) -> list[Entry]:
        return [row for row in self.rows if row["kind"] == kind]

    def _write(self, rows: Sequence[Entry]) -> None:
        lines = "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(self.path, "ab") as file:
                file.write(lines.encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            reason = f"{error.strerror} (finished fits are kept; make room and run again)"
            raise OSError(error.errno, reason, str(self.path)) from None


@contextmanager
def only_writer(path: Path) -> Iterator[None]:
    """Wait for other processes that write the file, and keep others waiting; a killed process lets go."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(_lock_of(path)):
        yield


def _lock_of(path: Path) -> Path:
    """The file that the writer of a journal holds."""
    return path.with_name(f".{path.name}.lock")


def check_begun(path: Path, identity: Mapping[str, Any], folder: Path) -> None:
    """Refuse a file that a link leads out of the folder, or that is there but damaged or begun by others."""
    for file in (path, _lock_of(path)):
        check_inside(file, folder)
    if path.exists() and (rows := _whole_rows(path)[0]):
        check_format(path, rows[0])
        if len(rows) > 1:
            _check_same(path, rows[0], _header(identity, {}))


def is_begun(path: Path) -> bool:
    """Whether the first line is whole; without it there is nothing yet."""
    with open(path, "rb") as file:
        return file.readline().endswith(b"\n")


def read_journal(path: Path) -> tuple[Entry, list[Entry]]:
    """Header and rows; a torn last line is left out."""
    rows, _ = _whole_rows(path)
    if not rows:
        raise DataError(path, None, "is empty or torn in its first line; remove it and run bench again")
    header, *rest = rows
    check_format(path, header)
    return header, rest


def check_format(path: Path, header: Mapping[str, Any]) -> None:
    """Refuse what is not a journal of this format version."""
    if header.get("format") != FORMAT:
        raise DataError(path, 1, f'not a results file (no "format": "{FORMAT}")')
    if (version := header.get("format_version")) != FORMAT_VERSION:
        reason = f"results of format version {version!r}, but this ranksieve reads {FORMAT_VERSION}"
        raise DataError(path, 1, f"{reason}; run bench into a new folder")
    try:
        converted(header, Header)
    except DataError as fault:
        raise damaged(path, 1, fault) from None


def damaged(path: Path, line: int, fault: object) -> DataError:
    """What to raise about a line that bench cannot have written."""
    return DataError(path, line, f"damaged line ({fault}); remove the file to run it again")


def _whole_rows(path: Path) -> tuple[list[Entry], int]:
    """The rows of all lines that end, and where the last of them ends."""
    content = path.read_bytes()
    end = content.rfind(b"\n") + 1
    rows = []
    for number, line in enumerate(content[:end].splitlines(), start=1):
        try:
            rows.append(_row(line, number))
        except ValueError as error:
            raise damaged(path, number, error) from None
    return rows, end


def _row(line: bytes, number: int) -> Entry:
    row = decode_json(line.decode())
    if not isinstance(row, dict) or (number > 1 and "kind" not in row):
        raise ValueError("not a row of results")
    return row


def _header(identity: Mapping[str, Any], notes: Mapping[str, Any]) -> Entry:
    """The first line, as a reader would get it."""
    ours = {"format": FORMAT, "format_version": FORMAT_VERSION, "version": __version__}
    header: Entry = plain({"kind": "header", **ours, "identity": identity, "notes": notes})
    return header


def _cut_torn_line(path: Path) -> list[Entry]:
    """The rows that are whole, all else cut off; a header alone belongs to nothing and goes too."""
    rows, end = _whole_rows(path)
    if len(rows) == 1:
        check_format(path, rows[0])
        rows, end = [], 0
    if end < path.stat().st_size:
        os.truncate(path, end)
    return rows


def _check_same(path: Path, kept: Entry, ours: Entry) -> None:
    if kept["version"] != ours["version"]:
        reason = f"was begun by ranksieve {kept['version']}, this is {ours['version']}"
        raise DataError(path, None, f"{reason}; finish it with that version or give a new folder")
    for name, value in ours["identity"].items():
        if (before := kept["identity"].get(name)) != value:
            reason = f"was begun with another {name} ({_short(before)}) than now ({_short(value)})"
            raise DataError(path, None, f"{reason}; give a new folder, or the same options to go on")


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "…"
