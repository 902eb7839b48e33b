"""Write a file whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


@contextmanager
def atomic_write(path: str | os.PathLike[str], mode: str = "w") -> Iterator[IO[str]]:
    """Open a temporary file beside ``path``; on success flush, fsync and rename it over ``path``.

    After an exception (also Ctrl-C) the old file, if any, is untouched and nothing is left behind.
    """
    target = Path(path)
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "cannot write there (not a regular file)", str(target))
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise OSError(error.errno, f"cannot write there ({error.strerror})", str(target)) from None
    try:
        with os.fdopen(handle, mode, encoding=None if "b" in mode else "utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
