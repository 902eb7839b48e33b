"""Write a folder whole or not at all."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from ranksieve._types import PathLike

LOCK = "being-written"
TOKEN_BYTES = 8
SECONDS_TO_LOCK = 60.0  # a folder that is younger than this may be about to get a lock
MOST_TRIES = 100
HERE, EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def atomic_folder(path: PathLike, may_replace: Callable[[Path], bool]) -> Iterator[Path]:
    """A hidden folder beside ``path`` that takes its place on success.

    After an exception (also Ctrl-C) the old folder, if any, is untouched and nothing is left behind. A
    process that is killed leaves its hidden folder, which the next one that writes to ``path`` removes. Of
    two that write at the same time, the one that ends last stays. ``may_replace`` says of a folder that is
    there already whether it may be replaced.
    """
    target = Path(os.path.realpath(path))
    check_replaceable(path, may_replace)
    with _errors_of(path):
        _tidy(target)
        folder = target.with_name(f".{target.name}.{secrets.token_hex(TOKEN_BYTES)}")
        folder.mkdir()
    lock = FileLock(folder / LOCK)
    try:
        with _errors_of(path), lock:
            yield folder
            _sync(folder)
            check_replaceable(path, may_replace)
            (folder / LOCK).unlink(missing_ok=True)  # it is young now, so nobody takes it for abandoned
            _publish(folder, target)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def check_replaceable(path: PathLike, may_replace: Callable[[Path], bool]) -> None:
    """Refuse a place where there is something that may not be replaced, or nothing can be written."""
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path}: the folder {Path(path).parent} does not exist; create it first")
    if os.path.lexists(target) and not _is_replaceable(target, may_replace):
        what = "folder with something else in it" if target.is_dir() else "file"
        raise FileExistsError(f"{path}: is a {what}; choose another name or remove it")


def _is_replaceable(target: Path, may_replace: Callable[[Path], bool]) -> bool:
    """Whether a folder may be replaced, also while another process replaces it."""
    for _ in range(MOST_TRIES):
        before = identity(target)
        if before is None or (target.is_dir() and may_replace(target)):
            return True
        if identity(target) == before:
            break
    return False


def identity(place: Path) -> tuple[int, int] | None:
    """Which file or folder is there now; None if there is none."""
    try:
        about = place.stat()
    except OSError:
        return None
    return about.st_dev, about.st_ino


def _publish(folder: Path, target: Path) -> None:
    """Put the folder in its place; one that is there is removed."""
    for _ in range(MOST_TRIES):
        try:
            os.rename(folder, target)
            break
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.EACCES) or not target.exists():
                raise
        if _exchange(folder, target):
            shutil.rmtree(folder, ignore_errors=True)
            break
        with suppress(FileNotFoundError):  # another process has just moved it
            os.rename(target, folder.with_name(folder.name + ".old"))
    else:
        raise OSError(errno.EBUSY, "others write there all the time", os.fspath(target))
    _sync_entry(target.parent)
    shutil.rmtree(folder.with_name(folder.name + ".old"), ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Let two folders change places at once; False where the system cannot."""
    try:
        rename = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    paths = (os.fsencode(one), os.fsencode(other))
    return bool(rename(HERE, ctypes.c_char_p(paths[0]), HERE, ctypes.c_char_p(paths[1]), EXCHANGE) == 0)


def _tidy(target: Path) -> None:
    """Remove what processes that were killed left beside the target, or bring back what they moved aside."""
    hidden = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{{2 * TOKEN_BYTES}}}(?P<old>\.old)?")
    for entry in target.parent.iterdir():
        found = hidden.fullmatch(entry.name)
        if found is None:
            continue
        with suppress(OSError):
            if found["old"] and not target.exists():
                os.rename(entry, target)
            elif found["old"] or _is_abandoned(entry):
                shutil.rmtree(entry, ignore_errors=True)


def _is_abandoned(folder: Path) -> bool:
    """Whether nobody writes there: whoever does holds the lock before there is any other file.

    Of a folder without a lock, or with nothing else, only its age tells: the lock is about to be taken, or
    the folder about to be put in its place.
    """
    names = {entry.name for entry in folder.iterdir()}
    if LOCK not in names or names == {LOCK}:
        return time.time() - folder.stat().st_mtime > SECONDS_TO_LOCK
    try:
        with FileLock(folder / LOCK, timeout=0):
            return True
    except Timeout:
        return False


def _sync(folder: Path) -> None:
    """Have the system write all files of a folder to the disk."""
    for file in folder.iterdir():
        _sync_entry(file)
    _sync_entry(folder)


def _sync_entry(path: Path) -> None:
    if os.name != "posix":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _errors_of(path: PathLike) -> Iterator[None]:
    """Say in one sentence that the disk is full, or that nothing can be written there."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise OSError(f"{path}: the disk is full; make room or choose another place") from None
        if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
            raise OSError(f"{path}: cannot write there ({error.strerror}); choose another place") from None
        raise
