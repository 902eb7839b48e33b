"""The process, its streams and signals; tables, JSON and sentences on the terminal."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unicodedata import category

import typer

from ranksieve.errors import InputError, how_to_install, on_command_line, text_of

if TYPE_CHECKING:
    from rich.console import Console

    from ranksieve.path import Progress


ENDING = ("SIGTERM", "SIGHUP")  # as far as the system has them
BY_SIGNAL = 128  # and the number of the signal is the exit code
SECONDS_TO_LEAVE = 10.0
ESCAPES = "backslashreplace"


class Ended(KeyboardInterrupt):
    """A signal asked the process to end; as after Ctrl-C, temporary files are removed first."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def end_orderly() -> None:
    """Let signals that end the process do so by an exception, unless whoever started it ignores them."""

    def end(number: int, frame: Any) -> None:
        raise Ended(number)

    for name in ENDING:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, end)


def leave_soon_if_ended(code: object) -> None:
    """After a signal, end within seconds: a signal during the start of a thread can leave one that waits."""
    if isinstance(code, int) and code > BY_SIGNAL:
        last = threading.Timer(SECONDS_TO_LEAVE, os._exit, (code,))
        last.daemon = True
        last.start()


class StandardOutput(io.FileIO):
    """Standard output whose errors name it."""

    def write(self, content: Any) -> Any:
        try:
            return super().write(content)
        except OSError as error:
            reason = f"cannot be written ({error.strerror})"
            raise OSError(error.errno, reason, "standard output") from None


def open_streams() -> None:
    """Let closed standard streams be devices, so that no other file gets their numbers.

    Reading from a closed one, or writing to a closed standard output, is an error. A terminal without Unicode
    gets escapes.
    """
    for name, access, mode in STREAMS:  # in the order of their numbers: a new file has the lowest free one
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, access)
            setattr(sys, name, open(handle, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    if not sys.stdout.isatty():
        raw = io.BufferedWriter(StandardOutput(1, "w", closefd=False))
        sys.stdout = io.TextIOWrapper(raw, sys.stdout.encoding)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors=ESCAPES)  # type: ignore[union-attr]


STREAMS = (("stdin", os.O_WRONLY, "r"), ("stdout", os.O_RDONLY, "w"), ("stderr", os.O_WRONLY, "w"))
FAILURE = 2
WrongUsage: Any = typer.BadParameter.__base__  # UsageError of the click that typer brings along
WIDTH_WITHOUT_TERMINAL = 120
MARKS = " %*†‡"  # what may stand beside a number in a table
EXTRAS = {
    "dask": "dask", "distributed": "dask", "narwhals": "frames", "polars": "frames", "pyarrow": "frames",
    "jinja2": "report",
}  # fmt: skip
GPU_IS_FULL = "OutOfMemoryError"  # of PyTorch, which is imported only where it is used
UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # categories: controls, formats, halves of pairs, ends of lines


# --- Tables, words, JSON -------------------------------------------------------------------------------


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    title: str | None = None,
    bold: Sequence[Sequence[bool]] | None = None,
) -> None:
    """Print a table; floats have four significant digits, numbers stand right, ``bold`` cells are bold."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    cells = [
        [f"{value:.4g}" if isinstance(value, float) else harmless(str(value)) for value in row]
        for row in rows
    ]
    view = Table(title=title and Text(harmless(title)), title_justify="left", box=box.SIMPLE, pad_edge=False)
    for column, name in enumerate(columns):
        numeric = bool(cells) and all(_is_number(row[column]) for row in cells)
        view.add_column(Text(harmless(name)), justify="right" if numeric else "left", overflow="fold")
    for number, row in enumerate(cells):
        styles = ["bold" if bold and bold[number][column] else "" for column in range(len(row))]
        view.add_row(*(Text(cell, style) for cell, style in zip(row, styles, strict=True)))
    _console().print(view)


def words(text: str) -> None:
    """Print a line of prose."""
    from rich.text import Text

    _console().print(Text(harmless(text)), soft_wrap=True)


def harmless(text: str) -> str:
    """Escape characters that control a terminal, reverse the direction of reading or are invisible."""
    if text.isprintable():
        return text
    return "".join(ascii(one)[1:-1] if one not in "\t\n" and category(one) in UNSEEN else one for one in text)


def emit_json(content: Any) -> None:
    """Print one JSON object."""
    sys.stdout.write(json_text(content))


def json_text(content: Any) -> str:
    """JSON on one line; ids that JSON does not know become text."""
    return json.dumps(content, allow_nan=False, default=str) + "\n"


def _console() -> Console:
    from rich.console import Console

    class Shown(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would end the program with 1

    return Shown(width=None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL)


def _is_number(cell: str) -> bool:
    try:
        float(cell.rstrip(MARKS) if cell != "–" else "0")
    except ValueError:
        return False
    return True


# --- Progress ------------------------------------------------------------------------------------------


@contextmanager
def progress(title: str) -> Iterator[Progress | None]:
    """A bar with the time left on stderr, driven by (done, total); None unless stderr is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress as rich
    from rich.console import Console

    columns = (
        rich.TextColumn("{task.description}", markup=False),
        rich.BarColumn(),
        rich.TaskProgressColumn(),
        rich.TimeElapsedColumn(),
        rich.TimeRemainingColumn(),
    )
    with rich.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


# --- One sentence for whatever goes wrong --------------------------------------------------------------


def run_command(command: Callable[[], object], options: Mapping[str, str]) -> int:
    """Run a command and return its exit code; a failing one ends with a sentence on stderr.

    The exit code is then 2, after Ctrl-C 130, after SIGTERM 143. ``options`` are those of the command, by the
    names of the arguments that they set. ``RANKSIEVE_TRACEBACK=1`` shows the traceback too. A reader that
    closes the pipe early is not a failure.
    """
    code = 0
    try:
        with plain_warnings(options):
            try:
                command()
            except typer.Exit as end:
                code = end.exit_code
            sys.stdout.flush()
    except WrongUsage as error:
        usage = error.format_message()
        if "\n" in usage:
            typer.echo(usage, err=True)
        else:
            say(f"{usage.rstrip('.')} (see {error.ctx.command_path if error.ctx else 'ranksieve'} --help)")
        code = error.exit_code
    except BrokenPipeError:
        _give_up_stdout()
    except KeyboardInterrupt as error:
        say(how_ended(error))
        code = exit_code(error)
    except Exception as error:
        if os.environ.get("RANKSIEVE_TRACEBACK"):
            traceback.print_exc()
        if isinstance(error, OSError):
            _give_up_stdout()
        say(sentence(error, options))
        code = FAILURE
    return code


def how_ended(error: KeyboardInterrupt) -> str:
    """What the user did to end the process."""
    return f"ended by {signal.Signals(error.number).name}" if isinstance(error, Ended) else "interrupted"


def exit_code(error: KeyboardInterrupt) -> int:
    """The one that shells expect after a signal."""
    return BY_SIGNAL + (error.number if isinstance(error, Ended) else signal.SIGINT)


@contextmanager
def plain_warnings(options: Mapping[str, str]) -> Iterator[None]:
    """Show each warning once, as one line on stderr."""

    def show(message: Warning | str, *place: Any, **rest: Any) -> None:
        say(f"warning: {on_command_line(text_of(message), options)}")

    with warnings.catch_warnings():
        warnings.simplefilter("once", UserWarning)
        warnings.showwarning = show
        yield


def say(text: str) -> None:
    """One line on stderr."""
    typer.echo(f"ranksieve: {harmless(' '.join(text.split()))}", err=True)


def sentence(error: Exception, options: Mapping[str, str]) -> str:
    """What happened and how to mend it, in words of the options."""
    text = on_command_line(error.text, options) if isinstance(error, InputError) else _sentence(error)
    return ": ".join([*reversed(getattr(error, "__notes__", ())), text])


def _sentence(error: Exception) -> str:
    text = str(error)
    if isinstance(error, MemoryError):
        return f"not enough memory ({text or 'the data are too large'}); use fewer documents or features"
    if isinstance(error, ImportError):
        extra = EXTRAS.get((error.name or "").partition(".")[0])
        return f"{text}: {advice}" if extra and (advice := how_to_install(extra)) not in text else text
    if isinstance(error, OSError) and error.strerror is not None:
        return f"{error.filename or 'a file cannot be read or written'}: {error.strerror}"
    if isinstance(error, OSError | ValueError):
        return text
    if type(error).__name__ == GPU_IS_FULL:
        return "not enough memory on the GPU; leave --device out, or fit on a part of the queries"
    return f"unexpected {type(error).__name__}: {text} (set RANKSIEVE_TRACEBACK=1 to see where)"


def _give_up_stdout() -> None:
    """Redirect a broken stdout to /dev/null so that the interpreter's exit does not fail."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
