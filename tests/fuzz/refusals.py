"""What counts as a refusal: one sentence of the project's own, not what a library happened to say."""

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
    """What a reader gave, or the sentence of its refusal."""

    accepted: bool
    value: Any = None
    sentence: str = ""


def outcome(read: Callable[..., Any], *given: Any, **options: Any) -> Outcome:
    """Read something; whatever is neither accepted nor refused in a sentence is raised."""
    try:
        return Outcome(True, read(*given, **options))
    except REFUSALS as error:
        if type(error) not in REFUSALS:
            raise
        check_sentence(str(error))
        return Outcome(False, sentence=str(error))


def check_sentence(said: str) -> None:
    """One line, not too long, and none of what Python and libraries say by themselves."""
    assert said.strip(), "a refusal without a word"
    assert len(said) <= LONGEST, f"{len(said)} letters: {said[:200]}"
    assert "\n" not in said, f"several lines: {said!r}"
    raw = RAW.search(said)
    assert raw is None, f"raw words {raw.group()!r}: {said}"


class Place:
    """One file that is written again and again."""

    def __init__(self, name: str) -> None:
        self.path = scratch() / name

    def holding(self, content: bytes) -> Path:
        self.path.write_bytes(content)
        return self.path


def scratch() -> Path:
    """The folder of this process for inputs; the one who starts it removes it."""
    folder = Path(os.environ["RANKSIEVE_FUZZ_FOLDER"])
    folder.mkdir(exist_ok=True)
    return folder
