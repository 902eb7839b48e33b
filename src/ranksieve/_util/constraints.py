"""What values a parameter may have, in words and as a check."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np

from ranksieve.errors import ParameterError

NUMBERS: dict[Any, str] = {Integral: "an int", Real: "a float"}


class Constraint(Protocol):
    """Something that a value meets or not; as text, what it asks for."""

    def allows(self, value: Any) -> bool: ...


@dataclass(frozen=True)
class Interval:
    """A number between two bounds, None for no bound; ``closed`` is "left", "right", "both" or "neither"."""

    kind: Any
    left: float | None
    right: float | None
    closed: str

    def allows(self, value: Any) -> bool:
        if not _is_a(value, self.kind):
            return False
        value = float(value) if self.kind is Real else value  # float32 may not reach the ends
        left, right = (float("-inf") if self.left is None else self.left), self.right
        above = value >= left if self.closed in ("left", "both") else value > left
        below = right is None or (value <= right if self.closed in ("right", "both") else value < right)
        return bool(above and below)

    def __str__(self) -> str:
        begin = "[" if self.closed in ("left", "both") else "("
        end = "]" if self.closed in ("right", "both") else ")"
        left, right = self._words(self.left, "-inf"), self._words(self.right, "inf")
        return f"{NUMBERS[self.kind]} in the range {begin}{left}, {right}{end}"

    def _words(self, bound: float | None, without: str) -> str:
        return without if bound is None else str(float(bound) if self.kind is Real else bound)


@dataclass(frozen=True)
class OneOf:
    """One of some values of a kind."""

    kind: Any
    values: tuple[Any, ...]

    def allows(self, value: Any) -> bool:
        return _is_a(value, self.kind) and value in self.values

    def __str__(self) -> str:
        return f"{NUMBERS.get(self.kind, 'a str')} among {{{', '.join(map(repr, self.values))}}}"


@dataclass(frozen=True)
class Text:
    """Text that has a form, and what that is in words."""

    form: re.Pattern[str]
    words: str

    def allows(self, value: Any) -> bool:
        return isinstance(value, str) and self.form.fullmatch(value) is not None

    def __str__(self) -> str:
        return self.words


class TrueOrFalse:
    """A truth value."""

    def allows(self, value: Any) -> bool:
        return isinstance(value, bool | np.bool_)

    def __str__(self) -> str:
        return "True or False"


class Nothing:
    """None."""

    def allows(self, value: Any) -> bool:
        return value is None

    def __str__(self) -> str:
        return "None"


def _is_a(value: Any, kind: Any) -> bool:
    """Whether a value is of a kind; truth values are not numbers."""
    return isinstance(value, kind) and not isinstance(value, bool | np.bool_)


def check(name: str, value: Any, constraints: Sequence[Constraint]) -> None:
    """Refuse a value that meets none of some constraints; with no constraints anything goes."""
    if constraints and not any(one.allows(value) for one in constraints):
        *others, last = map(str, constraints)
        allowed = f"{', '.join(others)} or {last}" if others else last
        raise ParameterError(name, value, f"must be {allowed}")
