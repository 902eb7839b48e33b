"""Write a file whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from ranksieve._types import PathLike
from ranksieve._util.hidden import LIKE_ANY_NEW_FILE, OWNER_ONLY, hidden_file, remove_abandoned
from ranksieve._util.written import OF_WRITING, note_output, plain_write_errors

TEMPORARY = ".tmp"
MOST_LINKS = 40
DESCRIPTOR = re.compile(r"(?:/proc/(?P<process>\d+)(?:/task/\d+)?|/dev)/fd/(?P<number>\d+)")
SYSTEM_FILES, MEMORY_FILES = ("/dev", "/proc"), "/dev/shm"


class Destination(NamedTuple):
    """Where a file is written, links followed.

    ``descriptor`` is the number of the open file of this process that the path means, as /dev/stdout does.
    ``replaced`` tells a regular file, or a new one, from a device, a pipe or an open file: these stay.
    """

    place: Path
    descriptor: int | None
    replaced: bool


def destination(path: PathLike) -> Destination:
    """Follow the links of a path, but not those of /proc: they mean files that are open."""
    place = Path(path)
    for _ in range(MOST_LINKS):
        place = Path(os.path.realpath(place.parent), place.name)
        if place.is_relative_to("/proc") or not place.is_symlink():
            break
        place = place.parent / os.readlink(place)
    else:
        raise OSError(errno.ELOOP, "cannot write there (its links lead in a circle)", os.fspath(path))
    found = DESCRIPTOR.fullmatch(str(place))
    descriptor = int(found["number"]) if found and found["process"] in (None, str(os.getpid())) else None
    of_system = any(place.is_relative_to(folder) for folder in SYSTEM_FILES)
    plain = (place.is_file() or not place.exists()) and (not of_system or place.is_relative_to(MEMORY_FILES))
    return Destination(place, descriptor, plain)


def is_standard_output(path: PathLike) -> bool:
    """Whether the path means this process's standard output, as /dev/stdout does."""
    descriptor = destination(path).descriptor
    try:
        return descriptor is not None and os.path.sameopenfile(descriptor, 1)
    except OSError:  # one of them is closed
        return False


@contextmanager
def atomic_write(path: PathLike, mode: str = "w") -> Iterator[IO[str]]:
    """Open a file that becomes the content of ``path`` on success.

    After an exception (also Ctrl-C) the old file, if any, is untouched and nothing is left behind. A
    process that is killed leaves a hidden file, which the next one that writes to ``path`` removes. A link
    stays and the file that it names is written. A file that exists keeps its permissions. A device, a pipe or
    an open file such as /dev/stdout stays what it is and gets all of the content at the end.
    """
    there = destination(path)
    if there.place.is_dir():
        raise OSError(errno.EISDIR, "cannot write there (it is a folder)", os.fspath(path))
    writing = _replace(path, there.place, mode) if there.replaced else _pass_on(path, there, mode)
    with writing as file:
        yield file


@contextmanager
def _replace(path: PathLike, target: Path, mode: str) -> Iterator[IO[Any]]:
    """A temporary file beside the target; on success it is flushed, synced and renamed."""
    with ExitStack() as until_renamed:
        with plain_write_errors(path):
            old = target.stat() if target.exists() else None
            remove_abandoned(target, TEMPORARY)
            permissions = LIKE_ANY_NEW_FILE if old is None else OWNER_ONLY
            hidden = until_renamed.enter_context(hidden_file(target, TEMPORARY, permissions))
        with (
            plain_write_errors(path, OF_WRITING),
            os.fdopen(hidden.handle, mode, encoding=_encoding(mode)) as file,
        ):
            if old is not None:
                _inherit(hidden.path, old)
            yield file
            with plain_write_errors(path):
                file.flush()
                os.fsync(file.fileno())
        with plain_write_errors(path):
            note_output(path, hidden.path, target)
            os.replace(hidden.path, target)


def _inherit(name: Path, old: os.stat_result) -> None:
    """Give a file the permissions of the old one, and its owner and group where that is allowed."""
    permissions = stat.S_IMODE(old.st_mode)
    if os.name == "posix":
        try:
            os.chown(name, -1, old.st_gid)
        except OSError:
            permissions &= ~stat.S_IRWXG  # the old group's rights are not for another group
        with suppress(OSError):
            os.chown(name, old.st_uid, -1)
    os.chmod(name, permissions)


@contextmanager
def _pass_on(path: PathLike, there: Destination, mode: str) -> Iterator[IO[Any]]:
    """A temporary file that is copied on success.

    An open file of this process is written at its own position: opened once more by its name, a regular file
    would be cut off and written from its start.
    """
    with plain_write_errors(path):
        number, flags = there.descriptor, os.O_WRONLY | os.O_TRUNC
        handle = os.open(there.place, flags) if number is None else os.dup(number)
    with (
        plain_write_errors(path, OF_WRITING),
        os.fdopen(handle, "wb") as out,
        tempfile.TemporaryFile(mode, encoding=_encoding(mode)) as file,
    ):
        yield file
        file.flush()
        file.seek(0)
        with open(file.fileno(), "rb", closefd=False) as content:
            shutil.copyfileobj(content, out)


def _encoding(mode: str) -> str | None:
    return None if "b" in mode else "utf-8"
