"""A verdict on one claim."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

Finding = tuple[bool, str]
"""Whether a part of a claim holds, and the words for it."""
DAMAGED = (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError)  # parameters may cause


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds, None if it was not checked, and what was recomputed, or why it was not."""

    claim: str
    holds: bool | None
    words: str


class NotChecked(Exception):
    """A claim that cannot be checked; the words say why, or what it would take."""


@contextmanager
def told_if_damaged(what: str) -> Iterator[None]:
    """Say that something could not be done with what the file holds, which may be anything."""
    try:
        yield
    except DAMAGED as error:
        text = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise NotChecked(f"{what}: {text}") from None


def judged(claim: str, findings: Sequence[Finding]) -> Verdict:
    """The verdict on a claim of several parts: all that is right, or else what is wrong."""
    holds = all(good for good, _ in findings)
    return Verdict(claim, holds, "; ".join(words for good, words in findings if good is holds))


def differing(found: float, stated: float) -> str:
    """Two numbers that should be one."""
    return f"{found:.10g}, stated {stated:.10g}"
