"""Checks of constructor parameters: one sentence with what was given and what is expected."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np


def check_positive(name: str, value: float) -> None:
    if not (np.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be a finite number > 0, got {value}")


def check_not_negative(name: str, value: float) -> None:
    if not (np.isfinite(value) and value >= 0):
        raise ValueError(f"{name} must be a finite number ≥ 0, got {value}")


def check_at_least(name: str, value: int, least: int) -> None:
    if value != int(value) or value < least:
        raise ValueError(f"{name} must be a whole number, at least {least}, got {value}")


def check_between(name: str, value: float, low: float, high: float) -> None:
    if not low < value < high:
        raise ValueError(f"{name} must be between {low:g} and {high:g}, got {value}")


def check_choice(name: str, given: str, table: Iterable[str]) -> None:
    if given not in (choices := list(table)):
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {given!r}")
