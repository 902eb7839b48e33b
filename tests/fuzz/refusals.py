"""A proper refusal: one sentence of this package, not a message of a library."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ranksieve.errors import DataError, ParameterError

REFUSALS = (DataError, ParameterError, OSError, FileNotFoundError, IsADirectoryError, ImportError)
LONGEST = 1500
RAW = re.compile(
    r"could not convert|cannot convert|invalid literal for|Exceeds the limit|unpack|out of bounds"
    r"|subscriptable|has no attribute|object is not|unhashable|NoneType|embedded null|Traceback"
    r"|unexpected \w+Error|dimension mismatch|broadcast|\bnarwhals\b|ArrowInvalid|\.cc:|argument must be"
)


class Outcome(NamedTuple):
    """The value that a reader returned, or the message of its refusal."""

    accepted: bool
    value: Any = None
    sentence: str = ""


def outcome(read: Callable[..., Any], *arguments: Any, **options: Any) -> Outcome:
    """Call a reader; errors that are not proper refusals are raised."""
    try:
        return Outcome(True, read(*arguments, **options))
    except REFUSALS as error:
        if type(error) not in REFUSALS:
            raise
        check_sentence(str(error))
        return Outcome(False, sentence=str(error))


def check_sentence(message: str) -> None:
    """One line, not too long, without typical messages of Python and libraries."""
    assert message.strip(), "an empty message"
    assert len(message) <= LONGEST, f"{len(message)} letters: {message[:200]}"
    assert "\n" not in message, f"several lines: {message!r}"
    raw = RAW.search(message)
    assert raw is None, f"raw words {raw.group()!r}: {message}"


class Place:
    """A file that is overwritten for every input."""

    def __init__(self, name: str) -> None:
        self.path = scratch() / name

    def holding(self, content: bytes) -> Path:
        self.path.write_bytes(content)
        return self.path


def scratch() -> Path:
    """The folder of this process for inputs; deleted by the parent process."""
    folder = Path(os.environ["RANKSIEVE_FUZZ_FOLDER"])
    folder.mkdir(exist_ok=True)
    return folder
