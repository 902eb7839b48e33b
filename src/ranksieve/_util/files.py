"""Files and folders: portable names, JSON, atomic writes."""

from __future__ import annotations

import ctypes
import errno
import glob
import json
import math
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

import msgspec

from ranksieve.errors import DataError

if TYPE_CHECKING:
    from ranksieve._types import PathLike

# --- Names -----------------------------------------------------------------------------------------------

MAX_NAME_BYTES = 200  # file systems allow 255; the rest is for suffixes
FORBIDDEN = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|]')
DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])\s*(\..*)?", re.IGNORECASE | re.DOTALL)


def file_name_problem(name: str) -> str | None:
    """Reason why a file cannot have this name on every system; None if it can."""
    if not name.strip():
        return "it is empty"
    if match := FORBIDDEN.search(name):
        return f"it contains {match[0]!r}"
    if name != name.strip() or name.endswith(".") or name.startswith("."):
        return "it begins or ends with a space or a dot"
    if DEVICE.fullmatch(name):
        return "it is a device name on Windows"
    try:
        n_bytes = len(name.encode())
    except UnicodeEncodeError:
        return "it contains an unpaired surrogate"
    return f"it has {n_bytes} bytes, more than {MAX_NAME_BYTES}" if n_bytes > MAX_NAME_BYTES else None


def check_inside(path: Path, folder: Path) -> None:
    """Refuse a path that leads out of the folder through a symbolic link."""
    if not path.resolve().is_relative_to(folder.resolve()):
        raise DataError(path, None, f"leads out of {folder} through a symbolic link; remove the link")


def file_identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of a file or folder; None if it does not exist."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


# --- JSON ------------------------------------------------------------------------------------------------

Type = TypeVar("Type")
MAX_FLOAT = sys.float_info.max
Finite = Annotated[float, msgspec.Meta(ge=-MAX_FLOAT, le=MAX_FLOAT)]
SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
MAX_FAULT_CHARS = 100
MAX_INTEGER_DIGITS = 308  # an integer with more digits may not fit into a float


def decode_json(text: str, **options: Any) -> Any:
    """Decode JSON; every error is a JSONDecodeError, and integers too large for a float become infinity."""
    try:
        value = json.loads(text, parse_int=_integer, **options)
        if surrogate := SURROGATE_ESCAPE.search(text):
            json.dumps(value, ensure_ascii=False).encode()  # fails if a surrogate is unpaired
    except RecursionError:
        raise json.JSONDecodeError("nested too deeply", text, 0) from None
    except UnicodeEncodeError:
        raise json.JSONDecodeError(
            "unpaired surrogate", text, surrogate.start() if surrogate else 0
        ) from None
    return value


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= MAX_INTEGER_DIGITS else float(digits)


def convert_to(value: Any, kind: type[Type], what: str = "") -> Type:
    """Convert to a msgspec type (a Struct, ``list[str]``, …) or raise DataError, with the name ``what``."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        text = str(error) if str(error).isprintable() else ascii(error.args[0])[1:-1]
        fault, _, path = text.replace("`", "'").partition(" - at ")
        name = (what + path.strip("'").removeprefix("$")).removeprefix(".")
        reason = (
            "expected a finite number"
            if str(MAX_FLOAT) in fault
            else fault[:1].lower() + fault[1:MAX_FAULT_CHARS]
        )
        raise DataError(None, None, f"{name}: {reason}" if name else reason) from None


def to_plain(value: Any) -> Any:
    """Convert to JSON values: arrays to lists, NaN to None, infinities and other objects to ``repr``."""
    if type(value).__module__.partition(".")[0] == "numpy" and hasattr(value, "tolist"):
        return to_plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else repr(value)
    return value if isinstance(value, str | int | float | bool | type(None)) else repr(value)


# --- Why a file or folder cannot be written ----------------------------------------------------------------

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
WRITE_ERRORS = (*DISK_FULL, errno.EFBIG)  # raised by writing only
PROTECTED = (errno.EACCES, errno.EROFS, errno.EPERM)
LINK_LOOP = "cannot write there (its symbolic links form a loop)"


@contextmanager
def plain_write_errors(path: PathLike, only: tuple[int, ...] | None = None) -> Iterator[None]:
    """Add the path to errors of writing: to all, or ``only`` to these numbers if they have no file name."""
    try:
        yield
    except OSError as error:
        foreign = error.errno is None or (only is not None and (error.errno not in only or error.filename))
        if foreign or isinstance(error, BrokenPipeError):
            raise
        raise _cannot_write(path, error) from None


def _cannot_write(path: PathLike, error: OSError) -> OSError:
    reason = error.strerror or str(error)
    if error.errno in DISK_FULL:
        reason = "the disk is full; free some space or choose another folder"
    elif not reason.startswith("cannot write there"):
        reason = f"cannot write there ({reason})"
    return OSError(error.errno, reason, os.fspath(path))


def make_folder(path: PathLike) -> None:
    """Create a folder and its parents, if they do not exist."""
    try:
        os.makedirs(path, exist_ok=True)
    except FileExistsError:
        raise not_a_folder(path, "give the path of a folder") from None
    except OSError as error:
        raise _cannot_write(path, error) from None


def not_a_folder(path: PathLike, advice: str) -> DataError:
    """Error for a path that is not a folder."""
    what = "file" if os.path.exists(path) else "broken symbolic link"
    return DataError(path, None, f"is a {what}; {advice}")


# --- Files -------------------------------------------------------------------------------------------------

MAX_LINKS = 40
OWNER_ONLY, DEFAULT_PERMISSIONS = 0o600, 0o666  # before the umask
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
TOKEN_BYTES = 8


class Destination(NamedTuple):
    """Where a file is written, after following links.

    ``descriptor``: file descriptor of this process that the path refers to, as /dev/stdout does.
    ``replaceable``: a regular or a new file, not a device, a pipe or an open file.
    """

    path: Path
    descriptor: int | None
    replaceable: bool


def destination(path: PathLike) -> Destination:
    """Follow the links of a path to a file, a device or an open file of this process."""
    descriptor = _descriptor(path)
    if descriptor is not None:
        return Destination(Path(path), descriptor, False)
    target = Path(os.path.realpath(path))
    if target.is_symlink():  # still a link after following all
        raise OSError(errno.ELOOP, LINK_LOOP, os.fspath(path))
    return Destination(target, None, target.is_file() or not target.exists())


def _descriptor(path: PathLike) -> int | None:
    """File descriptor that /dev/stdout, /dev/fd/N or a link to these refers to; None for other paths."""
    link = Path(path)
    for _ in range(MAX_LINKS):
        folder = Path(os.path.realpath(link.parent))
        ours = folder.is_relative_to(f"/proc/{os.getpid()}") or str(folder) == "/dev/fd"
        if ours and folder.name == "fd" and link.name.isdecimal():
            return int(link.name)
        if not link.is_symlink():
            break
        link = folder / os.readlink(link)
    return None


def is_standard_output(path: PathLike) -> bool:
    """Whether the path refers to the standard output of this process, as /dev/stdout does."""
    descriptor = _descriptor(path)
    try:
        return descriptor is not None and os.path.sameopenfile(descriptor, 1)
    except OSError:  # one of them is closed
        return False


@contextmanager
def atomic_write(path: PathLike, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a temporary file that replaces ``path`` on success.

    After an exception (also Ctrl-C) the old file, if any, is unchanged and the temporary file is removed; a
    process that is killed leaves a hidden file. A link is followed. An existing file keeps its permissions.
    Devices, pipes and open files such as /dev/stdout are not replaced; the content is written to them at the
    end.
    """
    there, encoding = destination(path), None if "b" in mode else "utf-8"
    if there.path.is_dir():
        raise OSError(errno.EISDIR, "cannot write there (it is a folder)", os.fspath(path))
    with (_replace if there.replaceable else _pass_on)(path, there, mode, encoding) as file:
        yield file


@contextmanager
def _replace(path: PathLike, there: Destination, mode: str, encoding: str | None) -> Iterator[IO[Any]]:
    """A temporary file next to the target; on success it is synced and renamed."""
    target = there.path
    temporary = _hidden(target, ".tmp")
    try:
        with plain_write_errors(path):
            old = target.stat() if target.exists() else None
            permissions = DEFAULT_PERMISSIONS if old is None else OWNER_ONLY
            file = open(os.open(temporary, NEW_FILE, permissions), mode, encoding=encoding)  # noqa: SIM115
        with plain_write_errors(path, WRITE_ERRORS), file:
            if old is not None:
                os.chmod(temporary, stat.S_IMODE(old.st_mode))
            yield file
            with plain_write_errors(path):
                file.flush()
                os.fsync(file.fileno())
        with plain_write_errors(path):
            os.replace(temporary, target)
    finally:
        with suppress(OSError):
            os.unlink(temporary)


def _hidden(target: Path, end: str = "") -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(TOKEN_BYTES)}{end}")


@contextmanager
def _pass_on(path: PathLike, there: Destination, mode: str, encoding: str | None) -> Iterator[IO[Any]]:
    """A temporary file that is copied to the destination on success.

    An open file of this process is written at its current position: reopening it by name would truncate a
    regular file.
    """
    with plain_write_errors(path):
        descriptor, flags = there.descriptor, os.O_WRONLY | os.O_TRUNC
        handle = os.open(there.path, flags) if descriptor is None else os.dup(descriptor)
    with (
        plain_write_errors(path, WRITE_ERRORS),
        open(handle, "wb") as out,
        tempfile.TemporaryFile(mode, encoding=encoding) as file,
    ):
        yield file
        file.flush()
        file.seek(0)
        with open(file.fileno(), "rb", closefd=False) as content:
            shutil.copyfileobj(content, out)


# --- Folders -----------------------------------------------------------------------------------------------

OLD_SUFFIX = ".old"
MAX_TRIES = 100
AT_FDCWD, RENAME_EXCHANGE = -100, 2  # constants of Linux


@contextmanager
def atomic_folder(path: PathLike, may_replace: Callable[[Path], bool]) -> Iterator[Path]:
    """Create a hidden folder next to ``path`` that replaces it on success.

    After an exception (also Ctrl-C) the old folder, if any, is unchanged and the hidden one is removed; a
    process that is killed leaves a hidden folder. If two processes write at the same time, the last one to
    finish wins. ``may_replace`` decides whether an existing folder may be replaced.
    """
    target = Path(os.path.realpath(path))
    check_replaceable(path, may_replace)
    folder = _hidden(target)
    try:
        with plain_write_errors(path):
            _restore(target)
            folder.mkdir()
        with plain_write_errors(path, (*WRITE_ERRORS, *PROTECTED)):
            yield folder
            for written in (*folder.iterdir(), folder):
                _sync(written)
            check_replaceable(path, may_replace)
            _publish(folder, target)
            _sync(target.parent)
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # after an exchange this is the old folder
        _restore(target)


def check_replaceable(path: PathLike, may_replace: Callable[[Path], bool]) -> None:
    """Refuse a path that may not be replaced or cannot be created."""
    target = Path(os.path.realpath(path))
    if target.is_symlink():  # still a link after following all
        raise OSError(errno.ELOOP, LINK_LOOP, os.fspath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path}: the folder {Path(path).parent} does not exist; create it first")
    if target.exists() and not (target.is_dir() and may_replace(target)):
        what = "folder with other content" if target.is_dir() else "file"
        raise FileExistsError(f"{path}: is a {what}; choose another name or remove it")


def _publish(folder: Path, target: Path) -> None:
    """Move the folder to its path, atomically if the system can; else the old one is renamed first."""
    aside = folder.with_name(folder.name + OLD_SUFFIX)
    for _ in range(MAX_TRIES):
        if _exchange(folder, target):
            return
        try:
            with suppress(FileNotFoundError):
                os.rename(target, aside)
            os.rename(folder, target)
            return
        except OSError:
            if not target.exists():
                raise
        finally:
            if target.exists():  # from this or another process
                shutil.rmtree(aside, ignore_errors=True)
    raise OSError(errno.EBUSY, "another process keeps writing there", os.fspath(target))


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders atomically; False if the system cannot or one of them does not exist."""
    try:
        rename = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    paths = (ctypes.c_char_p(os.fsencode(path)) for path in (one, other))
    return bool(rename(AT_FDCWD, next(paths), AT_FDCWD, next(paths), RENAME_EXCHANGE) == 0)


def _restore(target: Path) -> None:
    """Restore the old folder if a process was killed after renaming it and before replacing it."""
    token = "[0-9a-f]" * 2 * TOKEN_BYTES
    for aside in target.parent.glob(f".{glob.escape(target.name)}.{token}{OLD_SUFFIX}"):
        if not target.exists():
            with suppress(OSError):
                os.rename(aside, target)


def _sync(path: Path) -> None:
    if os.name == "posix":
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
