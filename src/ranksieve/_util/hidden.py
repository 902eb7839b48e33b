"""Hidden files beside a target: held by their writer; the next one removes those of writers that died."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

OWNER_ONLY, LIKE_ANY_NEW_FILE = 0o600, 0o666  # less what the umask withholds
TOKEN_BYTES = 8
TOKEN = rf"[0-9a-f]{{{2 * TOKEN_BYTES}}}"
MOST_TRIES = 100
LONG_AGO = 24 * 3600.0  # seconds; without locks only age tells what nobody writes any more
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
LOOK = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class Hidden(NamedTuple):
    """A hidden file: its place, the token in its name, and its handle, which whoever gets it closes."""

    path: Path
    token: str
    handle: int


@contextmanager
def hidden_file(target: Path, end: str, permissions: int = LIKE_ANY_NEW_FILE) -> Iterator[Hidden]:
    """A new file ``.NAME.TOKEN`` + end beside the target, gone in the end unless it was renamed.

    It is locked all the while, also after its handle was closed, so that others know that its writer lives.
    """
    path, held, handle = target, -1, -1
    try:
        for _ in range(MOST_TRIES):
            token = secrets.token_hex(TOKEN_BYTES)
            path = target.with_name(f".{target.name}.{token}{end}")
            handle = os.open(path, NEW, permissions)
            if fcntl is None:
                break
            with suppress(OSError):  # not all file systems have locks
                fcntl.flock(handle, fcntl.LOCK_EX)
            if _is_at(path, handle):  # nobody removed it in the moment before it was locked
                held = os.dup(handle)
                break
            os.close(handle)
        else:
            raise OSError(errno.EBUSY, "others remove temporary files all the time", os.fspath(target))
        yield Hidden(path, token, handle)
    finally:
        if path != target:
            with suppress(OSError):
                os.unlink(path)
        if held >= 0:
            os.close(held)


def abandoned(target: Path, end: str) -> Iterator[tuple[Path, str]]:
    """Hidden files of processes that are gone, each with its token; nobody else takes them meanwhile."""
    named = re.compile(rf"\.{re.escape(target.name)}\.({TOKEN}){re.escape(end)}")
    for name in os.listdir(target.parent):
        if found := named.fullmatch(name):
            with suppress(OSError), _unheld(target.with_name(name)) as path:
                yield path, found[1]


def remove_abandoned(target: Path, end: str) -> None:
    """Remove what killed processes left beside the target; what cannot be removed stays."""
    with suppress(OSError):
        for path, _ in abandoned(target, end):
            with suppress(OSError):
                path.unlink()


@contextmanager
def _unheld(path: Path) -> Iterator[Path]:
    """The path of a file that nobody holds; an OSError if it is held, or no file."""
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise OSError(errno.EINVAL, "not a file", os.fspath(path))
    if fcntl is None:
        if time.time() - os.lstat(path).st_mtime < LONG_AGO:
            raise BlockingIOError(errno.EAGAIN, "perhaps in use", os.fspath(path))
        yield path
        return
    handle = os.open(path, LOOK)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield path
    finally:
        os.close(handle)


def _is_at(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(handle))
    except FileNotFoundError:
        return False
