"""Files and folders: names that every system takes, JSON content, atomic writes."""

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

MOST_BYTES = 200  # of the 255 that file systems take, with room for endings
FORBIDDEN = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|]')
DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])\s*(\..*)?", re.IGNORECASE | re.DOTALL)


def fault_of_file_name(name: str) -> str | None:
    """Why a name cannot be that of a file on every system; None if it can."""
    if not name.strip():
        return "it is empty"
    if match := FORBIDDEN.search(name):
        return f"it holds {match[0]!r}"
    if name != name.strip() or name.endswith(".") or name.startswith("."):
        return "it begins or ends with a blank or a dot"
    if DEVICE.fullmatch(name):
        return "Windows has a device of this name"
    try:
        n_bytes = len(name.encode())
    except UnicodeEncodeError:
        return "it holds half of a pair of characters"
    return f"it has {n_bytes} bytes, and {MOST_BYTES} are the most" if n_bytes > MOST_BYTES else None


def check_inside(path: Path, folder: Path) -> None:
    """Refuse a file whose place is outside the folder, because something on the way there is a link."""
    if not path.resolve().is_relative_to(folder.resolve()):
        raise DataError(path, None, f"leads out of {folder} by a link; remove the link")


def identity(place: Path) -> tuple[int, int] | None:
    """Which file or folder is there now; None if there is none."""
    try:
        about = place.stat()
    except OSError:
        return None
    return about.st_dev, about.st_ino


# --- JSON ------------------------------------------------------------------------------------------------

Type = TypeVar("Type")
LARGEST = sys.float_info.max
Finite = Annotated[float, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
HALF = re.compile(r"\\u[dD][89a-fA-F]")  # of those that UTF-16 writes in two
LONGEST_FAULT = 100  # characters
LONGEST = 308  # digits of an integer that fits into a float


def decode_json(text: str, **options: Any) -> Any:
    """The value of a text; every fault is a JSONDecodeError, and an integer beyond floats is infinite."""
    try:
        value = json.loads(text, parse_int=_integer, **options)
        if half := HALF.search(text):
            json.dumps(value, ensure_ascii=False).encode()  # two halves make a character
    except RecursionError:
        raise json.JSONDecodeError("nested too deeply", text, 0) from None
    except UnicodeEncodeError:
        raise json.JSONDecodeError(
            "half of a pair of characters", text, half.start() if half else 0
        ) from None
    return value


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= LONGEST else float(digits)


def converted(value: Any, kind: type[Type], what: str = "") -> Type:
    """The value as a msgspec type (a Struct, ``list[str]``, …), else a DataError; ``what`` names it there."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        text = str(error) if str(error).isprintable() else ascii(error.args[0])[1:-1]
        fault, _, place = text.replace("`", "'").partition(" - at ")
        name = (what + place.strip("'").removeprefix("$")).removeprefix(".")
        reason = (
            "expected a finite number"
            if str(LARGEST) in fault
            else fault[:1].lower() + fault[1:LONGEST_FAULT]
        )
        raise DataError(None, None, f"{name}: {reason}" if name else reason) from None


def plain(value: Any) -> Any:
    """Arrays as lists, NaN as None, infinities and objects that JSON does not know as their text."""
    if type(value).__module__.partition(".")[0] == "numpy" and hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else repr(value)
    return value if isinstance(value, str | int | float | bool | type(None)) else repr(value)


# --- Why a file or folder cannot be written ----------------------------------------------------------------

FULL = (errno.ENOSPC, errno.EDQUOT)
OF_WRITING = (*FULL, errno.EFBIG)  # only writing raises these
PROTECTED = (errno.EACCES, errno.EROFS, errno.EPERM)
CIRCLE = "cannot write there (its links lead in a circle)"


@contextmanager
def plain_write_errors(path: PathLike, only: tuple[int, ...] | None = None) -> Iterator[None]:
    """Name the path in errors of writing it: in all, or in those with certain numbers that name no file."""
    try:
        yield
    except OSError as error:
        foreign = error.errno is None or (only is not None and (error.errno not in only or error.filename))
        if foreign or isinstance(error, BrokenPipeError):
            raise
        raise _cannot_write(path, error) from None


def _cannot_write(path: PathLike, error: OSError) -> OSError:
    reason = error.strerror or str(error)
    if error.errno in FULL:
        reason = "the disk is full; make room or choose another place"
    elif not reason.startswith("cannot write there"):
        reason = f"cannot write there ({reason})"
    return OSError(error.errno, reason, os.fspath(path))


def make_folder(path: PathLike) -> None:
    """Make a folder, and those above it, unless it is there."""
    try:
        os.makedirs(path, exist_ok=True)
    except FileExistsError:
        raise not_a_folder(path, "name a folder") from None
    except OSError as error:
        raise _cannot_write(path, error) from None


def not_a_folder(path: PathLike, advice: str) -> DataError:
    """The error for something else in the place of a folder."""
    what = "file" if os.path.exists(path) else "link that leads nowhere"
    return DataError(path, None, f"is a {what}; {advice}")


# --- Files -------------------------------------------------------------------------------------------------

MOST_LINKS = 40
OWNER_ONLY, LIKE_ANY_NEW_FILE = 0o600, 0o666  # less the umask
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
TOKEN_BYTES = 8


class Destination(NamedTuple):
    """Where a file is written, links followed.

    ``descriptor`` is the number of the open file of this process that the path means, as /dev/stdout does.
    ``replaced``: a regular file, or a new one; not a device, a pipe or an open file.
    """

    place: Path
    descriptor: int | None
    replaced: bool


def destination(path: PathLike) -> Destination:
    """Follow the links of a path up to a file, a device or an open file of this process."""
    descriptor = _descriptor(path)
    if descriptor is not None:
        return Destination(Path(path), descriptor, False)
    place = Path(os.path.realpath(path))
    if place.is_symlink():  # still a link when all are followed
        raise OSError(errno.ELOOP, CIRCLE, os.fspath(path))
    return Destination(place, None, place.is_file() or not place.exists())


def _descriptor(path: PathLike) -> int | None:
    """The number of the open file that /dev/stdout, /dev/fd/N or a link to them means; None for others."""
    place = Path(path)
    for _ in range(MOST_LINKS):
        folder = Path(os.path.realpath(place.parent))
        own = folder.is_relative_to(f"/proc/{os.getpid()}") or str(folder) == "/dev/fd"
        if own and folder.name == "fd" and place.name.isdecimal():
            return int(place.name)
        if not place.is_symlink():
            break
        place = folder / os.readlink(place)
    return None


def is_standard_output(path: PathLike) -> bool:
    """Whether the path means this process's standard output, as /dev/stdout does."""
    descriptor = _descriptor(path)
    try:
        return descriptor is not None and os.path.sameopenfile(descriptor, 1)
    except OSError:  # one of them is closed
        return False


@contextmanager
def atomic_write(path: PathLike, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a file that becomes the content of ``path`` on success.

    After an exception (also Ctrl-C) the old file, if any, is untouched and nothing is left behind; a process
    that is killed leaves a hidden file. A link stays and the file that it names is written. A file that
    exists keeps its permissions. A device, a pipe or an open file such as /dev/stdout stays what it is and
    gets all of the content at the end.
    """
    there, encoding = destination(path), None if "b" in mode else "utf-8"
    if there.place.is_dir():
        raise OSError(errno.EISDIR, "cannot write there (it is a folder)", os.fspath(path))
    with (_replace if there.replaced else _pass_on)(path, there, mode, encoding) as file:
        yield file


@contextmanager
def _replace(path: PathLike, there: Destination, mode: str, encoding: str | None) -> Iterator[IO[Any]]:
    """A temporary file beside the target; on success it is flushed, synced and renamed."""
    target = there.place
    temporary = _hidden(target, ".tmp")
    try:
        with plain_write_errors(path):
            old = target.stat() if target.exists() else None
            permissions = LIKE_ANY_NEW_FILE if old is None else OWNER_ONLY
            file = open(os.open(temporary, NEW, permissions), mode, encoding=encoding)  # noqa: SIM115
        with plain_write_errors(path, OF_WRITING), file:
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
    """A temporary file that is copied on success.

    An open file of this process is written at its own position: opened once more by its name, a regular file
    would be cut off and written from its start.
    """
    with plain_write_errors(path):
        number, flags = there.descriptor, os.O_WRONLY | os.O_TRUNC
        handle = os.open(there.place, flags) if number is None else os.dup(number)
    with (
        plain_write_errors(path, OF_WRITING),
        open(handle, "wb") as out,
        tempfile.TemporaryFile(mode, encoding=encoding) as file,
    ):
        yield file
        file.flush()
        file.seek(0)
        with open(file.fileno(), "rb", closefd=False) as content:
            shutil.copyfileobj(content, out)


# --- Folders -----------------------------------------------------------------------------------------------

ASIDE = ".old"
MOST_TRIES = 100
HERE, EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux


@contextmanager
def atomic_folder(path: PathLike, may_replace: Callable[[Path], bool]) -> Iterator[Path]:
    """A hidden folder beside ``path`` that takes its place on success.

    After an exception (also Ctrl-C) the old folder, if any, is untouched and nothing is left behind; a
    process that is killed leaves a hidden folder. Of two that write at the same time, the one that ends last
    stays. ``may_replace`` decides whether a folder that is there already may be replaced.
    """
    target = Path(os.path.realpath(path))
    check_replaceable(path, may_replace)
    folder = _hidden(target)
    try:
        with plain_write_errors(path):
            _bring_back(target)
            folder.mkdir()
        with plain_write_errors(path, (*OF_WRITING, *PROTECTED)):
            yield folder
            for place in (*folder.iterdir(), folder):
                _sync(place)
            check_replaceable(path, may_replace)
            _publish(folder, target)
            _sync(target.parent)
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # after an exchange the old one
        _bring_back(target)


def check_replaceable(path: PathLike, may_replace: Callable[[Path], bool]) -> None:
    """Refuse a place where there is something that may not be replaced, or nothing can be written."""
    target = Path(os.path.realpath(path))
    if target.is_symlink():  # still a link when all are followed
        raise OSError(errno.ELOOP, CIRCLE, os.fspath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path}: the folder {Path(path).parent} does not exist; create it first")
    if target.exists() and not (target.is_dir() and may_replace(target)):
        what = "folder with something else in it" if target.is_dir() else "file"
        raise FileExistsError(f"{path}: is a {what}; choose another name or remove it")


def _publish(folder: Path, target: Path) -> None:
    """Put the folder in its place, at once where the system can; else the old one is moved aside first."""
    aside = folder.with_name(folder.name + ASIDE)
    for _ in range(MOST_TRIES):
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
            if target.exists():  # ours, or that of another process
                shutil.rmtree(aside, ignore_errors=True)
    raise OSError(errno.EBUSY, "another process keeps writing there", os.fspath(target))


def _exchange(one: Path, other: Path) -> bool:
    """Let two folders change places at once; False where the system cannot, or one of them is not there."""
    try:
        rename = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    paths = (ctypes.c_char_p(os.fsencode(place)) for place in (one, other))
    return bool(rename(HERE, next(paths), HERE, next(paths), EXCHANGE) == 0)


def _bring_back(target: Path) -> None:
    """Restore a folder that a process moved aside, if it was killed before it put a new one in its place."""
    token = "[0-9a-f]" * 2 * TOKEN_BYTES
    for aside in target.parent.glob(f".{glob.escape(target.name)}.{token}{ASIDE}"):
        if not target.exists():
            with suppress(OSError):
                os.rename(aside, target)


def _sync(place: Path) -> None:
    """Have the system write a file or folder to the disk."""
    if os.name == "posix":
        handle = os.open(place, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
