"""Errors that carry their facts. Python words them by ``str``, the command line by :func:`on_command_line`.

A reason may name parameters in backticks: ``needs `costs` `` or ``choose `missing='zero'` ``. Python shows
``costs`` and ``missing='zero'``, the command line ``--costs`` and ``--missing zero``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

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
