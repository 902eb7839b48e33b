"""Signals, standard streams, and output: tables, text, JSON, progress and errors."""

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

import typer

from ranksieve.errors import InputError, how_to_install, on_command_line, text_of
from ranksieve.show.progress import progress_bar
from ranksieve.show.result import Part, Table, console_width, escape_controls, print_parts

if TYPE_CHECKING:
    from rich.console import Console


SIGNALS = ("SIGTERM", "SIGHUP")  # those that the system has
SIGNAL_EXIT_CODE = 128  # plus the number of the signal
SECONDS_TO_EXIT = 10.0


class SignalReceived(KeyboardInterrupt):
    """SIGTERM or SIGHUP; as after Ctrl-C, temporary files are removed before the process exits."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def raise_on_signals() -> None:
    """Turn SIGTERM and SIGHUP into an exception, unless the parent process ignores them."""

    def receive(number: int, frame: Any) -> None:
        raise SignalReceived(number)

    for name in SIGNALS:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, receive)


def force_exit_after_signal(code: object) -> None:
    """Exit within seconds after a signal: one that arrives while a thread starts can leave it waiting."""
    if isinstance(code, int) and code > SIGNAL_EXIT_CODE:
        timer = threading.Timer(SECONDS_TO_EXIT, os._exit, (code,))
        timer.daemon = True
        timer.start()


class StandardOutput(io.FileIO):
    """Standard output that names itself in errors."""

    def write(self, content: Any) -> Any:
        try:
            return super().write(content)
        except OSError as error:
            reason = f"cannot be written ({error.strerror})"
            raise OSError(error.errno, reason, "standard output") from None


def open_streams() -> None:
    """Replace closed standard streams by /dev/null, so that no other file gets their descriptors.

    Reading from a closed stream, or writing to a closed standard output, is an error. Characters that the
    encoding lacks are escaped.
    """
    for name, access, mode in STREAMS:  # in descriptor order: open() takes the lowest free one
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, access)
            setattr(sys, name, open(handle, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    if not sys.stdout.isatty():
        raw = io.BufferedWriter(StandardOutput(1, "w", closefd=False))
        sys.stdout = io.TextIOWrapper(raw, sys.stdout.encoding)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


progress = progress_bar
STREAMS = (("stdin", os.O_WRONLY, "r"), ("stdout", os.O_RDONLY, "w"), ("stderr", os.O_WRONLY, "w"))
FAILURE_EXIT_CODE = 2
WrongUsage: Any = typer.BadParameter.__base__  # UsageError of the click bundled with typer
EXTRAS = {
    "dask": "dask", "distributed": "dask", "narwhals": "frames", "polars": "frames", "pyarrow": "frames",
    "jinja2": "report",
}  # fmt: skip
GPU_MEMORY_ERROR = "OutOfMemoryError"  # of PyTorch, by name: PyTorch is imported only if used


# --- Tables, text, JSON --------------------------------------------------------------------------------


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    title: str | None = None,
    bold: Sequence[Sequence[bool]] | None = None,
) -> None:
    """Print a table."""
    print_all([Table(columns, rows, title, bold)])


def print_text(text: str) -> None:
    """Print a line of prose."""
    print_all([text])


def print_all(parts: Iterable[Part]) -> None:
    """Print sentences and tables."""
    print_parts(parts, _console())


def emit_json(content: Any) -> None:
    """Print one JSON object."""
    sys.stdout.write(json_text(content))


def json_text(content: Any) -> str:
    """JSON on one line; ids of types that JSON lacks become text."""
    return json.dumps(content, allow_nan=False, default=str) + "\n"


def _console() -> Console:
    from rich.console import Console

    class StrictConsole(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would exit with 1

    return StrictConsole(width=console_width())


# --- Errors and warnings -------------------------------------------------------------------------------


def run_command(command: Callable[[], object], options: Mapping[str, str]) -> int:
    """Run a command and return its exit code; print an error as one sentence on stderr.

    The exit code is 2 after an error, 130 after Ctrl-C, 143 after SIGTERM. ``options`` maps parameters to
    options. ``RANKSIEVE_TRACEBACK=1`` also shows the traceback. A reader that closes the pipe early is not an
    error.
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
            print_stderr(
                f"{usage.rstrip('.')} (see {error.ctx.command_path if error.ctx else 'ranksieve'} --help)"
            )
        code = error.exit_code
    except BrokenPipeError:
        _discard_stdout()
    except KeyboardInterrupt as error:
        print_stderr(interruption_text(error))
        code = exit_code(error)
    except Exception as error:
        if os.environ.get("RANKSIEVE_TRACEBACK"):
            traceback.print_exc()
        if isinstance(error, OSError):
            _discard_stdout()
        print_stderr(error_sentence(error, options))
        code = FAILURE_EXIT_CODE
    return code


def interruption_text(error: KeyboardInterrupt) -> str:
    """Reason of an interruption: a signal or Ctrl-C."""
    return (
        f"ended by {signal.Signals(error.number).name}"
        if isinstance(error, SignalReceived)
        else "interrupted"
    )


def exit_code(error: KeyboardInterrupt) -> int:
    """Exit code that shells expect after a signal."""
    return SIGNAL_EXIT_CODE + (error.number if isinstance(error, SignalReceived) else signal.SIGINT)


@contextmanager
def plain_warnings(options: Mapping[str, str]) -> Iterator[None]:
    """Show each warning once, as one line on stderr."""

    def show(message: Warning | str, *args: Any, **kwargs: Any) -> None:
        print_stderr(f"warning: {on_command_line(text_of(message), options)}")

    with warnings.catch_warnings():
        warnings.simplefilter("once", UserWarning)
        warnings.showwarning = show
        yield


def print_stderr(text: str) -> None:
    """Print one line on stderr."""
    typer.echo(f"ranksieve: {escape_controls(' '.join(text.split()))}", err=True)


def error_sentence(error: Exception, options: Mapping[str, str]) -> str:
    """The message of an error, with option names in place of parameters."""
    text = on_command_line(error.text, options) if isinstance(error, InputError) else _sentence_of(error)
    return ": ".join([*reversed(getattr(error, "__notes__", ())), text])


def _sentence_of(error: Exception) -> str:
    text = str(error)
    if isinstance(error, MemoryError):
        return f"not enough memory ({text or 'the data are too large'}); use fewer documents or features"
    if isinstance(error, ImportError):
        extra = EXTRAS.get((error.name or "").partition(".")[0])
        return f"{text}: {advice}" if extra and (advice := how_to_install(extra)) not in text else text
    if isinstance(error, FileNotFoundError) and error.filename is not None:
        return f"{error.filename}: no such file"
    if isinstance(error, OSError) and error.strerror is not None:
        return f"{error.filename or 'a file cannot be read or written'}: {error.strerror}"
    if isinstance(error, OSError | ValueError):
        return text
    if type(error).__name__ == GPU_MEMORY_ERROR:
        return "not enough memory on the GPU; leave --device out, or use fewer queries"
    return f"unexpected {type(error).__name__}: {text} (set RANKSIEVE_TRACEBACK=1 to see the traceback)"


def _discard_stdout() -> None:
    """Redirect a broken stdout to /dev/null so that the interpreter's exit does not fail."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
