"""Write a folder whole or not at all."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ranksieve._types import PathLike
from ranksieve._util.files import (
    OF_WRITING,
    TOKEN,
    abandoned,
    hidden_file,
    identity,
    note_output,
    plain_write_errors,
)

LOCK, ASIDE = ".lock", ".old"
SECONDS_TO_LOCK = 60.0  # what has no lock is removed if it is older than this
MOST_TRIES = 100
HERE, EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
PROTECTED = (errno.EACCES, errno.EROFS, errno.EPERM)


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
    with ExitStack() as until_published:
        with plain_write_errors(path):
            _tidy(target)
            lock = until_published.enter_context(hidden_file(target, LOCK))
            os.close(lock.handle)
            folder = target.with_name(f".{target.name}.{lock.token}")
            until_published.callback(shutil.rmtree, folder, ignore_errors=True)
            folder.mkdir()
        with plain_write_errors(path, (*OF_WRITING, *PROTECTED)):
            yield folder
            _sync(folder)
            check_replaceable(path, may_replace)
            note_output(path, folder, target)
            _publish(folder, target)


def check_replaceable(path: PathLike, may_replace: Callable[[Path], bool]) -> None:
    """Refuse a place where there is something that may not be replaced, or nothing can be written."""
    target = Path(os.path.realpath(path))
    if target.is_symlink():  # still a link when all are followed
        raise OSError(errno.ELOOP, "cannot write there (its links lead in a circle)", os.fspath(path))
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
            os.rename(target, folder.with_name(folder.name + ASIDE))
    else:
        raise OSError(errno.EBUSY, "others write there all the time", os.fspath(target))
    _sync_entry(target.parent)
    shutil.rmtree(folder.with_name(folder.name + ASIDE), ignore_errors=True)


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
    for lock, token in abandoned(target, LOCK):
        _settle(target, target.with_name(f".{target.name}.{token}"))
        with suppress(OSError):
            lock.unlink()
    hidden = re.compile(rf"\.{re.escape(target.name)}\.{TOKEN}")
    for entry in target.parent.iterdir():  # nobody is left who made them without a lock
        folder = entry.with_name(entry.name.removesuffix(ASIDE))
        unlocked = hidden.fullmatch(folder.name) and not folder.with_name(folder.name + LOCK).exists()
        if unlocked and (entry != folder or _is_old(entry)):
            _settle(target, folder)


def _settle(target: Path, folder: Path) -> None:
    """Remove the hidden folder; put the target back that was moved aside for it."""
    aside = folder.with_name(folder.name + ASIDE)
    if not target.exists():
        with suppress(OSError):
            os.rename(aside, target)
    for left in (folder, aside):
        shutil.rmtree(left, ignore_errors=True)


def _is_old(folder: Path) -> bool:
    try:
        return time.time() - folder.stat().st_mtime > SECONDS_TO_LOCK
    except OSError:
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
