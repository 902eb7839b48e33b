"""A verdict on one claim."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from ranksieve.errors import in_python

Finding = tuple[bool, str]
"""Whether a part of a claim holds, and the words for it."""
DAMAGED = (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError)  # parameters may cause


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds, and what was recomputed; None if it was not checked, and why.

    ``text`` names parameters in backticks, ``words`` as Python's users write them. ``left_out``: it was not
    checked because the caller asked for no new fit.
    """

    claim: str
    holds: bool | None
    text: str
    left_out: bool = False

    @property
    def words(self) -> str:
        return in_python(self.text)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"claim": self.claim, "holds": self.holds, "words": self.words, "left_out": self.left_out}


class NotChecked(Exception):
    """A claim that the file leaves no way to check: it does not hold. The words say why."""

    holds: ClassVar[bool | None] = False
    left_out: ClassVar[bool] = False

    def verdict(self, claim: str) -> Verdict:
        """The verdict on a claim whose check ended with this."""
        return Verdict(claim, self.holds, str(self), self.left_out)


class NotGiven(NotChecked):
    """Nothing is claimed, or the check needs something that the caller did not give; the words say what."""

    holds: ClassVar[bool | None] = None


class LeftOut(NotGiven):
    """A check that takes a new fit, which the caller did not ask for."""

    left_out: ClassVar[bool] = True


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
    return Verdict(claim, holds, "; ".join(words for good, words in findings if good is holds and words))


def differing(found: object, stated: object) -> str:
    """Two values that should be one."""
    return f"{_shown(found)}, stated {_shown(stated)}"


def _shown(value: object) -> str:
    return f"{value:.10g}" if isinstance(value, int | float) else str(value)
