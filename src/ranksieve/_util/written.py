"""What was written when something fails later, and why something could not be written."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

from ranksieve.errors import DataError

if TYPE_CHECKING:  # it loads numpy, which help does without
    from ranksieve._types import PathLike

FULL = (errno.ENOSPC, errno.EDQUOT)
OF_WRITING = (*FULL, errno.EFBIG)  # what only writing can meet


class Outputs:
    """Files and folders that were put in their places, by the names that the caller gave them."""

    def __init__(self) -> None:
        self._put: dict[str, tuple[Path, tuple[int, int] | None]] = {}

    def about_to_put(self, path: PathLike, content: Path, target: Path) -> None:
        """Say what comes to the target next; it is written when it is there, and not before."""
        self._put[os.fspath(path)] = (target, identity(content))

    @property
    def written(self) -> list[str]:
        """Those that are where they belong."""
        return [name for name, (target, what) in self._put.items() if what and identity(target) == what]


_outputs: ContextVar[Outputs | None] = ContextVar("ranksieve_outputs", default=None)


@contextmanager
def outputs_noted() -> Iterator[Outputs]:
    """Note what is written in the block."""
    token = _outputs.set(Outputs())
    try:
        yield _outputs.get() or Outputs()
    finally:
        _outputs.reset(token)


def note_output(path: PathLike, content: Path, target: Path) -> None:
    """Note that ``content`` is about to be renamed to ``target``, which the caller calls ``path``."""
    outputs = _outputs.get()
    if outputs is not None:
        outputs.about_to_put(path, content, target)


def identity(place: Path) -> tuple[int, int] | None:
    """Which file or folder is there now; None if there is none."""
    try:
        about = place.stat()
    except OSError:
        return None
    return about.st_dev, about.st_ino


@contextmanager
def plain_write_errors(path: PathLike, only: tuple[int, ...] | None = None) -> Iterator[None]:
    """Name the path in errors of writing it: in all, or in those with certain numbers that name no file."""
    try:
        yield
    except OSError as error:
        foreign = error.errno is None or (only is not None and (error.errno not in only or error.filename))
        if foreign or isinstance(error, BrokenPipeError):
            raise
        raise OSError(error.errno, why_not(error), os.fspath(path)) from None


def make_folder(path: PathLike) -> None:
    """Make a folder, and those above it, unless it is there."""
    try:
        os.makedirs(path, exist_ok=True)
    except FileExistsError:
        raise not_a_folder(path, "name a folder") from None
    except OSError as error:
        raise OSError(error.errno, why_not(error), os.fspath(path)) from None


def not_a_folder(path: PathLike, advice: str) -> DataError:
    """What to raise where something else is in the place of a folder."""
    what = "file" if os.path.exists(path) else "link that leads nowhere"
    return DataError(path, None, f"is a {what}; {advice}")


def why_not(error: OSError) -> str:
    """Why something cannot be written, and what to do."""
    if error.errno in FULL:
        return "the disk is full; make room or choose another place"
    reason = error.strerror or str(error)
    return reason if reason.startswith("cannot write there") else f"cannot write there ({reason})"
