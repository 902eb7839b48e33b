"""Errors that carry their facts, and what messages need.

Python words errors by ``str``, the command line by :func:`on_command_line`.

A reason may name parameters in backticks: ``needs `costs` `` or ``choose `missing='zero'` ``. Python shows
``costs`` and ``missing='zero'``, the command line ``--costs`` and ``--missing zero``.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

LONGEST_SHOWN = 60
QUOTES = "\"'"
PARAMETER = re.compile(r"`([a-zA-Z_]\w*)(?:=([^`]*))?`")


class InputError(ValueError):
    """A value or a file that cannot be used."""

    @property
    def text(self) -> str:
        """The sentence, with parameters in backticks."""
        raise NotImplementedError

    def __str__(self) -> str:
        return in_python(self.text)


class ParameterError(InputError):
    """A parameter has a value that cannot be used.

    ``reason`` says what is expected or what to do: "must be at least 1". Arrays, data sets and models are not
    shown.
    """

    def __init__(self, name: str, value: Any, reason: str) -> None:
        super().__init__(name, value, reason)  # so it can be pickled
        self.name, self.value, self.reason = name, value, reason

    @property
    def text(self) -> str:
        large = getattr(self.value, "shape", ()) or hasattr(self.value, "n_features")
        given = "" if large else "=" + shown(self.value).replace("`", "'")
        return f"`{self.name}{given}`: {self.reason}"


class DataError(InputError):
    """Data, or a file, that cannot be used.

    ``file`` is None for data in memory, ``line`` (from 1) where the reason is about the whole file.
    """

    def __init__(self, file: Any, line: int | None, reason: str) -> None:
        super().__init__(file, line, reason)
        self.file, self.line, self.reason = None if file is None else str(file), line, reason

    def at(self, file: Any, line: int | None = None) -> DataError:
        """The same error with its place, for a caller that knows it."""
        return DataError(file, line if self.line is None else self.line, self.reason)

    @property
    def text(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line) if part is not None)
        return f"{place}: {self.reason}" if place else self.reason


@contextmanager
def while_doing(what: str) -> Iterator[None]:
    """Note what was being done on an error about a value; the command line begins its sentence with it."""
    try:
        yield
    except ValueError as error:
        error.add_note(what)
        raise


def in_python(text: str) -> str:
    """Show parameters as Python's users write them."""
    return PARAMETER.sub(lambda m: m[1] if m[2] is None else f"{m[1]}={m[2]}", text)


def on_command_line(text: str, options: Mapping[str, str]) -> str:
    """Show parameters as options; ``options`` maps parameters to them, others are shown as in Python."""

    def option(match: re.Match[str]) -> str:
        name, value = match[1], match[2]
        if name not in options:
            return in_python(match[0])
        given = options[name]
        if value is None or (value in ("None", "True") and " " not in given):
            return given
        return f"{given}{'=' if ' ' in given else ' '}{value.strip(QUOTES)}"  # --set name=value

    return PARAMETER.sub(option, text)


def shown(value: object) -> str:
    """A value as Python writes it, without control characters; of a long one the beginning."""
    text = repr(value)
    text = text if text.isprintable() else " ".join(ascii(value).split())
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


Entry = TypeVar("Entry")


def lookup(
    table: Mapping[str, Entry], name: str, parameter: str, known_as: Mapping[str, str] | None = None
) -> Entry:
    """``table[name]``; for an unknown name an error that lists the known ones and suggests the nearest.

    ``parameter`` is the one whose value the name is. ``known_as`` gives other words, in lower case, for names
    of the table.
    """
    if name in table:
        return table[name]
    folded = {**(known_as or {}), **{key.lower(): key for key in table}}
    nearest = get_close_matches(name.lower(), folded, n=1)
    hint = f" (did you mean {folded[nearest[0]]!r}?)" if nearest else ""
    raise ParameterError(parameter, name, f"unknown{hint}; choose one of {', '.join(table)}")


def shortened(names: Sequence[str], most: int) -> str:
    """The names with commas between them; of more than ``most`` the first ones: "f1, f2 and 3 more"."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def safe(name: str) -> str:
    """A name inside a sentence; one that would break the line, or is very long, as Python writes it."""
    return name if name.isprintable() and len(name) <= LONGEST_SHOWN else shown(name)


def how_to_install(extra: str) -> str:
    """The advice in a message; ranksieve is not on PyPI yet, so it is installed from a checkout."""
    return f'run pip install ".[{extra}]" in the checkout of ranksieve'


def text_of(warning: Warning | str) -> str:
    """The text of a warning, with parameters in backticks if :func:`warn_caller` gave it."""
    return getattr(warning, "text", str(warning))


PACKAGE = str(Path(__file__).parent) + os.sep


def warn_caller(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the nearest line that is not part of ranksieve; ``text`` may name parameters in backticks."""
    warning = category(in_python(text))
    warning.text = text  # type: ignore[attr-defined]  # for the command line
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(warning, stacklevel=level)
