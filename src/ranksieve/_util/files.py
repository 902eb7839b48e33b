"""Files and folders: names that every system takes, atomic writes, outputs of a command."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from ranksieve.errors import DataError

if TYPE_CHECKING:
    from ranksieve._types import PathLike


MOST_BYTES = 200  # of the 255 that file systems take, with room for endings
FORBIDDEN = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|]')
DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])\s*(\..*)?", re.IGNORECASE | re.DOTALL)


def fault_of_file_name(name: str) -> str | None:
    """Why a name cannot be that of a file on every system; None if it can."""
    if not name.strip():
        return "it is empty"
    if found := FORBIDDEN.search(name):
        return f"it holds {found[0]!r}"
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
