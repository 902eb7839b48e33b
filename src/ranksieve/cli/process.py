"""The process that a command runs in: its standard streams, and the signals that end it."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from contextlib import suppress
from typing import Any

ENDING = ("SIGTERM", "SIGHUP")  # as far as the system has them
BY_SIGNAL = 128  # and the number of the signal is the exit code
SECONDS_TO_LEAVE = 10.0
AGAIN = 0.01  # seconds after which a signal that was ignored is raised again
ESCAPES = "backslashreplace"


class Ended(KeyboardInterrupt):
    """A signal asked the process to end; as after Ctrl-C, what was begun is cleaned up first."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def end_orderly() -> None:
    """Let signals that end the process do so by an exception, unless whoever started it ignores them.

    Where Python ignores exceptions, as in a destructor, a signal is raised again.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    if sys.unraisablehook is sys.__unraisablehook__:
        sys.unraisablehook = _raise_again
    for name in ENDING:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _end)


def _end(number: int, frame: Any) -> None:
    raise Ended(number)


def _raise_again(ignored: Any) -> None:
    error = ignored.exc_value
    if not isinstance(error, KeyboardInterrupt):
        sys.__unraisablehook__(ignored)
        return
    number = error.number if isinstance(error, Ended) else signal.SIGINT
    again = threading.Timer(AGAIN, _signal_main_thread, (number,))  # when the destructor has ended
    again.daemon = True
    again.start()


def _signal_main_thread(number: int) -> None:
    main = threading.main_thread().ident
    if main is not None and hasattr(signal, "pthread_kill"):
        signal.pthread_kill(main, number)  # which also ends its waiting
    else:
        signal.raise_signal(number)


def leave_soon_if_ended(code: object) -> None:
    """After a signal, end within seconds: all that had to be cleaned up is cleaned up by now.

    An exception while a thread is being started can leave one that waits for ever, and Python waits for it.
    """
    if isinstance(code, int) and code > BY_SIGNAL:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()
        last = threading.Timer(SECONDS_TO_LEAVE, os._exit, (code,))
        last.daemon = True
        last.start()


class StandardOutput(io.FileIO):
    """Standard output that says in its errors what it is."""

    def write(self, content: Any) -> Any:
        try:
            return super().write(content)
        except OSError as error:
            reason = f"cannot be written ({error.strerror})"
            raise OSError(error.errno, reason, "standard output") from None


class StandardError(io.FileIO):
    """Standard error where what cannot be written vanishes: nobody is left to be told."""

    def write(self, content: Any) -> Any:
        with suppress(OSError):
            return super().write(content)
        return len(content)


def open_streams() -> None:
    """Make standard streams that are closed, or full, fail in words.

    A closed one gets its number back, so that no other file is taken for it. A terminal without Unicode gets
    escapes, not an error.
    """
    if sys.stdin is None:
        _occupy(0, os.O_WRONLY)
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8")
    for number, name, kind, access in OUTPUTS:
        stream = getattr(sys, name)
        if stream is None:
            _occupy(number, access)
        elif stream.isatty():
            stream.reconfigure(errors=ESCAPES)
            continue
        raw, encoding = kind(number, "w", closefd=False), getattr(stream, "encoding", "utf-8")
        setattr(
            sys, name, io.TextIOWrapper(io.BufferedWriter(raw), encoding, ESCAPES, line_buffering=number == 2)
        )


OUTPUTS: tuple[tuple[int, str, type[io.FileIO], int], ...] = (
    (1, "stdout", StandardOutput, os.O_RDONLY),
    (2, "stderr", StandardError, os.O_WRONLY),
)


def _occupy(number: int, access: int) -> None:
    """Let a closed number mean a device, which cannot be used the other way than ``access`` says."""
    try:
        os.fstat(number)
    except OSError:
        handle = os.open(os.devnull, access)
        if handle != number:
            os.dup2(handle, number)
            os.close(handle)
