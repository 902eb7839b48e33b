"""Error classes, warnings, and helpers for their messages.

A reason may contain parameters in backticks: ``needs `costs` `` or ``choose `missing='zero'` ``. In Python,
``str`` shows ``costs`` and ``missing='zero'``; :func:`on_command_line` shows ``--costs`` and
``--missing zero``.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

MAX_SHOWN_CHARS = 60
QUOTES = "\"'"
PARAMETER = re.compile(r"`([a-zA-Z_]\w*)(?:=([^`]*))?`")


class InputError(ValueError):
    """A value or a file that cannot be used."""

    @property
    def text(self) -> str:
        """The message, with parameters in backticks."""
        raise NotImplementedError

    def __str__(self) -> str:
        return in_python(self.text)


class ParameterError(InputError):
    """A parameter has an invalid value.

    ``reason`` states what is expected or what to do: "must be at least 1". The value is not shown if it is an
    array, a data set or a model.
    """

    def __init__(self, name: str, value: Any, reason: str) -> None:
        super().__init__(name, value, reason)  # for pickle
        self.name, self.value, self.reason = name, value, reason

    @property
    def text(self) -> str:
        large = getattr(self.value, "shape", ()) or hasattr(self.value, "n_features")
        value = "" if large else "=" + short_repr(self.value).replace("`", "'")
        return f"`{self.name}{value}`: {self.reason}"


class DataError(InputError):
    """Invalid data, or an invalid file.

    ``file`` is None for data in memory, ``line`` (from 1) is None if the reason is about the whole file.
    """

    def __init__(self, file: Any, line: int | None, reason: str) -> None:
        super().__init__(file, line, reason)
        self.file, self.line, self.reason = None if file is None else str(file), line, reason

    def at(self, file: Any, line: int | None = None) -> DataError:
        """The same error with its file and line, for callers that know them."""
        return DataError(file, line if self.line is None else self.line, self.reason)

    @property
    def text(self) -> str:
        location = ":".join(str(part) for part in (self.file, self.line) if part is not None)
        return f"{location}: {self.reason}" if location else self.reason


@contextmanager
def while_doing(what: str) -> Iterator[None]:
    """Add a note to a ValueError; the command line begins the message with it."""
    try:
        yield
    except ValueError as error:
        error.add_note(what)
        raise


def in_python(text: str) -> str:
    """Show parameters in Python notation."""
    return PARAMETER.sub(lambda m: m[1] if m[2] is None else f"{m[1]}={m[2]}", text)


def on_command_line(text: str, options: Mapping[str, str]) -> str:
    """Show parameters as options; those that are not in ``options`` are shown in Python notation."""

    def option(match: re.Match[str]) -> str:
        name, value = match[1], match[2]
        if name not in options:
            return in_python(match[0])
        flag = options[name]
        if value is None or (value in ("None", "True") and " " not in flag):
            return flag
        return f"{flag}{'=' if ' ' in flag else ' '}{value.strip(QUOTES)}"  # --set name=value

    return PARAMETER.sub(option, text)


def short_repr(value: object) -> str:
    """``repr`` of a value, without control characters and shortened."""
    text = repr(value)
    text = text if text.isprintable() else " ".join(ascii(value).split())
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}…"


Entry = TypeVar("Entry")


def lookup(
    table: Mapping[str, Entry], name: str, parameter: str, known_as: Mapping[str, str] | None = None
) -> Entry:
    """``table[name]``, or an error that lists the known names and suggests the nearest.

    ``parameter`` is the parameter that has the name as its value. ``known_as`` maps synonyms, in lower case,
    to names of the table.
    """
    if name in table:
        return table[name]
    folded = {**(known_as or {}), **{key.lower(): key for key in table}}
    nearest = get_close_matches(name.lower(), folded, n=1)
    hint = f" (did you mean {folded[nearest[0]]!r}?)" if nearest else ""
    raise ParameterError(parameter, name, f"unknown{hint}; choose one of {', '.join(table)}")


def short_list(names: Sequence[str], most: int) -> str:
    """Join names by commas, at most the first ``most``: "f1, f2 and 3 more"."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def printable(name: str) -> str:
    """A name for use in a message: its :func:`short_repr` if it is long or has unprintable characters."""
    return name if name.isprintable() and len(name) <= MAX_SHOWN_CHARS else short_repr(name)


def how_to_install(extra: str) -> str:
    """Advice on how to install an extra; ranksieve is not on PyPI yet."""
    return f'run pip install ".[{extra}]" in the checkout of ranksieve'


def text_of(warning: Warning | str) -> str:
    """Text of a warning, with parameters in backticks if it is from :func:`warn_caller`."""
    return getattr(warning, "text", str(warning))


PACKAGE_FOLDER = str(Path(__file__).parent) + os.sep


Warned = tuple[str, type[Warning]]
_recorded: ContextVar[list[Warned] | None] = ContextVar("_recorded", default=None)


@contextmanager
def recorded_warnings() -> Iterator[list[Warned]]:
    """Collect the arguments of :func:`warn_caller` in this thread instead of warning."""
    recorded: list[Warned] = []
    token = _recorded.set(recorded)
    try:
        yield recorded
    finally:
        _recorded.reset(token)


def warn_caller(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn with the caller's line outside ranksieve; ``text`` may contain parameters in backticks."""
    if (recorded := _recorded.get()) is not None:
        recorded.append((text, category))
        return
    warning = category(in_python(text))
    warning.text = text  # type: ignore[attr-defined]  # for the command line
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE_FOLDER):
        frame, level = frame.f_back, level + 1
    warnings.warn(warning, stacklevel=level)
