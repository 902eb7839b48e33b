"""An append-only file with one JSON object per line; the first line is a header that identifies the work.

Each line is written and synced as a whole, the header together with the first row, so that rejected work
leaves no file. A killed process or a full disk leaves at most one incomplete last line, which the next writer
removes. Only one process writes at a time; others wait for it.
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

from ranksieve._util.files import check_inside, convert_to, decode_json, to_plain
from ranksieve._version import __version__
from ranksieve.errors import DataError

RESULTS_FORMAT = "ranksieve-results"
RESULTS_FORMAT_VERSION = 3
Entry = dict[str, Any]


class JournalHeader(msgspec.Struct, forbid_unknown_fields=True):
    """The first line of a journal."""

    kind: str
    format: str
    format_version: int
    version: str
    identity: Entry
    notes: Entry


class Journal:
    """The rows of a results file. ``identity`` must be the same for every writer of the file."""

    def __init__(self, path: Path, identity: Mapping[str, Any], notes: Mapping[str, Any]) -> None:
        self.path = path
        self.rows: list[Entry] = []
        self._header = _header(identity, notes)
        if path.exists() and (rows := _remove_incomplete_line(path)):
            header, *self.rows = rows
            check_format(path, header)
            _check_identity(path, header, self._header)

    def append(self, row: Mapping[str, Any]) -> Entry:
        """Write a row to disk, and return it as a reader would get it."""
        written: Entry = to_plain(row)
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
            reason = f"{error.strerror} (finished fits are kept; free disk space and run again)"
            raise OSError(error.errno, reason, str(self.path)) from None


@contextmanager
def write_lock(path: Path) -> Iterator[None]:
    """Lock the file for writing; waits for other writers. The lock of a killed process is released."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(_lock_path(path)):
        yield


def _lock_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.lock")


def check_resumable(path: Path, identity: Mapping[str, Any], folder: Path) -> None:
    """Raise an error if a link leads out of the folder, or if the file is damaged or has another identity."""
    for file in (path, _lock_path(path)):
        check_inside(file, folder)
    if path.exists() and (rows := _complete_rows(path)[0]):
        check_format(path, rows[0])
        if len(rows) > 1:
            _check_identity(path, rows[0], _header(identity, {}))


def has_header(path: Path) -> bool:
    """Return True if the first line is complete."""
    with open(path, "rb") as file:
        return file.readline().endswith(b"\n")


def read_journal(path: Path) -> tuple[Entry, list[Entry]]:
    """Return the header and the rows, without an incomplete last line."""
    rows, _ = _complete_rows(path)
    if not rows:
        raise DataError(path, None, "has no complete first line; remove the file and run bench again")
    header, *rest = rows
    check_format(path, header)
    return header, rest


def check_format(path: Path, header: Mapping[str, Any]) -> None:
    """Raise an error if the header is not that of a results file of this format version."""
    if header.get("format") != RESULTS_FORMAT:
        raise DataError(path, 1, f'not a results file (no "format": "{RESULTS_FORMAT}")')
    if (version := header.get("format_version")) != RESULTS_FORMAT_VERSION:
        reason = f"results of format version {version!r}; this ranksieve reads version"
        raise DataError(path, 1, f"{reason} {RESULTS_FORMAT_VERSION}; run bench with a new folder")
    try:
        convert_to(header, JournalHeader)
    except DataError as error:
        raise damaged_line(path, 1, error) from None


def damaged_line(path: Path, line: int, problem: object) -> DataError:
    """Return the error for a line that bench cannot have written."""
    return DataError(path, line, f"damaged line ({problem}); remove the file and run bench again")


def _complete_rows(path: Path) -> tuple[list[Entry], int]:
    """Return the rows of all complete lines, and the offset of the end of the last one."""
    content = path.read_bytes()
    end = content.rfind(b"\n") + 1
    rows = []
    for number, line in enumerate(content[:end].splitlines(), start=1):
        try:
            rows.append(_row(line, number))
        except ValueError as error:
            raise damaged_line(path, number, error) from None
    return rows, end


def _row(line: bytes, number: int) -> Entry:
    row = decode_json(line.decode())
    if not isinstance(row, dict) or (number > 1 and "kind" not in row):
        raise ValueError("not a row of results")
    return row


def _header(identity: Mapping[str, Any], notes: Mapping[str, Any]) -> Entry:
    """Return the first line as a reader would get it."""
    software = {"format": RESULTS_FORMAT, "format_version": RESULTS_FORMAT_VERSION, "version": __version__}
    header: Entry = to_plain({"kind": "header", **software, "identity": identity, "notes": notes})
    return header


def _remove_incomplete_line(path: Path) -> list[Entry]:
    """Truncate the file to its complete lines and return them; a header without rows is removed too."""
    rows, end = _complete_rows(path)
    if len(rows) == 1:
        check_format(path, rows[0])
        rows, end = [], 0
    if end < path.stat().st_size:
        os.truncate(path, end)
    return rows


def _check_identity(path: Path, header: Entry, expected: Entry) -> None:
    if header["version"] != expected["version"]:
        reason = f"was started with ranksieve {header['version']}, but this is {expected['version']}"
        raise DataError(path, None, f"{reason}; finish it with that version or give a new folder")
    for name, value in expected["identity"].items():
        if (previous := header["identity"].get(name)) != value:
            reason = f"was started with another {name} ({_short(previous)}), now it is {_short(value)}"
            raise DataError(path, None, f"{reason}; give the same options to resume, or a new folder")


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "…"
