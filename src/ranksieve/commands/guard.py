"""Whatever goes wrong in a command reaches the user as one plain sentence."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

from ranksieve._util.extras import how_to_install

FAILURE = 2
INTERRUPTED = 130
EXTRAS = {
    "narwhals": "frames",
    "polars": "frames",
    "pyarrow": "frames",
    "jinja2": "report",
    "plotly": "report",
}


@contextmanager
def one_sentence() -> Iterator[None]:
    """End a failing command with a sentence on stderr: exit code 2, after Ctrl-C 130.

    ``RANKSIEVE_TRACEBACK=1`` shows the traceback too. A reader that closes the pipe early is no failure.
    """
    try:
        with plain_warnings():
            yield
            sys.stdout.flush()
    except (typer.Exit, typer.Abort):
        raise
    except BrokenPipeError:
        _abandon_output()
    except KeyboardInterrupt:
        say("interrupted, the output was not written")
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:
        if os.environ.get("RANKSIEVE_TRACEBACK"):
            traceback.print_exc()
        if isinstance(error, OSError):
            _abandon_output()
        say(sentence(error))
        raise typer.Exit(FAILURE) from None


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Show each warning once, as one line on stderr."""

    def show(message: Warning | str, *place: Any, **rest: Any) -> None:
        say(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("once", UserWarning)
        warnings.showwarning = show
        yield


@contextmanager
def while_doing(what: str) -> Iterator[None]:
    """Tell what was being done when a value turned out wrong."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from error


def say(words: str) -> None:
    """One line on stderr."""
    typer.echo(f"ranksieve: {' '.join(words.split())}", err=True)


def sentence(error: Exception) -> str:
    """What happened and how to mend it."""
    for kind, words in SENTENCES.items():
        if isinstance(error, kind):
            return words(error)
    return f"unexpected {type(error).__name__}: {error} (set RANKSIEVE_TRACEBACK=1 to see where)"


def _as_it_is(error: Any) -> str:
    return str(error)


def _of_file(error: Any) -> str:
    if error.strerror is None:
        return str(error)
    return f"{error.filename or 'the output cannot be written'}: {error.strerror}"


def _of_import(error: Any) -> str:
    extra = EXTRAS.get((error.name or "").partition(".")[0])
    if extra is None or how_to_install(extra) in str(error):
        return str(error)
    return f"{error}: {how_to_install(extra)}"


def _of_memory(error: Any) -> str:
    return f"not enough memory ({str(error) or 'the data are too large'}); use fewer documents or features"


SENTENCES: dict[type[Exception], Callable[[Any], str]] = {
    MemoryError: _of_memory,
    ImportError: _of_import,
    OSError: _of_file,
    ValueError: _as_it_is,
}


def _abandon_output() -> None:
    """If stdout cannot be written, let the interpreter not try again on exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
