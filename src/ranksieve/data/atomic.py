"""Write a file whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

OWNER_ONLY, LIKE_ANY_NEW_FILE = 0o600, 0o666  # less what the umask withholds


@contextmanager
def atomic_write(path: str | os.PathLike[str], mode: str = "w") -> Iterator[IO[str]]:
    """Open a temporary file beside ``path``; on success flush, fsync and rename it over ``path``.

    After an exception (also Ctrl-C) the old file, if any, is untouched and nothing is left behind. A link
    stays and the file that it names is written. A file that exists keeps its permissions.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "cannot write there (not a regular file)", os.fspath(path))
    name = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        old = target.stat() if target.exists() else None
        permissions = LIKE_ANY_NEW_FILE if old is None else OWNER_ONLY
        handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, permissions)
    except OSError as error:
        raise OSError(error.errno, f"cannot write there ({error.strerror})", os.fspath(path)) from None
    try:
        with os.fdopen(handle, mode, encoding=None if "b" in mode else "utf-8") as file:
            if old is not None:
                _inherit(name, old)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


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
