"""Parts of messages: the nearest known name, shortened lists, how to install an extra, the caller's line."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from types import FrameType
from typing import TypeVar

from ranksieve.errors import LONGEST_SHOWN, ParameterError, in_python, shown

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


PACKAGE = str(Path(__file__).parents[1]) + os.sep


def warn_caller(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the nearest line that is not part of ranksieve; ``text`` may name parameters in backticks."""
    warning = category(in_python(text))
    warning.text = text  # type: ignore[attr-defined]  # for the command line
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(warning, stacklevel=level)
