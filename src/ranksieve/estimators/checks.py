"""Checks of constructor parameters: one sentence with what was given and what is expected."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Real
from typing import Any


def check_positive(name: str, value: Any) -> None:
    if not (is_finite(value) and value > 0):
        raise ValueError(f"{name} must be a finite number > 0, got {value}")


def check_not_negative(name: str, value: Any) -> None:
    if not (is_finite(value) and value >= 0):
        raise ValueError(f"{name} must be a finite number ≥ 0, got {value}")


def check_at_least(name: str, value: Any, least: int) -> None:
    if not is_finite(value) or value != int(value) or value < least:
        raise ValueError(f"{name} must be a whole number, at least {least}, got {value}")


def check_between(name: str, value: Any, low: float, high: float) -> None:
    if not (is_finite(value) and low < value < high):
        raise ValueError(f"{name} must be between {low:g} and {high:g}, got {value}")


def check_choice(name: str, given: str, table: Iterable[str]) -> None:
    if given not in (choices := list(table)):
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {given!r}")


def is_finite(value: Any) -> bool:
    """Whether it is a number, and a finite one."""
    return isinstance(value, Real) and math.isfinite(value)
