"""JSON that people may have damaged: decoded and checked, each fault in one sentence."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.errors import DataError, shown

HALF = re.compile(r"\\u[dD][89a-fA-F]")  # of those that UTF-16 writes in two
LONGEST = 308  # digits of a whole number that fits into a float
KINDS: dict[type, str] = {
    str: "text", int: "a whole number", float: "a finite number", list: "a list", dict: "an object"
}  # fmt: skip
TAKEN: dict[type, Any] = {list: list | tuple, dict: Mapping, float: int | float}


def decode_json(text: str, **options: Any) -> Any:
    """What a text says; every fault is a JSONDecodeError, and a whole number beyond floats is infinite."""
    try:
        value = json.loads(text, parse_int=_whole, **options)
        if half := HALF.search(text):
            json.dumps(value, ensure_ascii=False).encode()  # two halves make a character
    except RecursionError:
        raise json.JSONDecodeError("nested too deeply", text, 0) from None
    except UnicodeEncodeError:
        raise json.JSONDecodeError(
            "half of a pair of characters", text, half.start() if half else 0
        ) from None
    return value


def checked(value: Any, shape: Any, what: str) -> Any:
    """The value if it has the shape, else a DataError that says what it is and should be.

    A shape is str, int, float (finite; a whole number becomes one), list or dict; ``[shape]``, a list of
    such; or ``{entry: shape}``, an object with these entries and no others. ``(shape, default)`` is an
    entry that may be absent.
    """
    if isinstance(shape, dict):
        return _checked_object(checked(value, dict, what), shape, what)
    if isinstance(shape, list):
        return [checked(one, shape[0], f"an entry of {what}") for one in checked(value, list, what)]
    fits = isinstance(value, TAKEN.get(shape, shape)) and not isinstance(value, bool)
    if not fits or (shape is float and not math.isfinite(value)):
        raise DataError(None, None, f"{what} is {shown(value)}; expected {KINDS[shape]}")
    return float(value) if shape is float else value


def _checked_object(value: Mapping[str, Any], shape: Mapping[str, Any], what: str) -> dict[str, Any]:
    unknown = next((name for name in value if name not in shape), None)
    if unknown is not None:
        reason = f"{what} has the unknown entry {unknown!r}; known are {', '.join(shape)}"
        raise DataError(None, None, reason)
    return {name: _entry(value, name, inner, what) for name, inner in shape.items()}


def _entry(value: Mapping[str, Any], name: str, shape: Any, what: str) -> Any:
    if isinstance(shape, tuple):
        shape, default = shape
        if name not in value or (default is None and value[name] is None):
            return default
    if name not in value:
        raise DataError(None, None, f"{what} has no {name}")
    return checked(value[name], shape, name)


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) <= LONGEST else float(digits)


def plain(value: Any) -> Any:
    """Arrays as lists, NaN as None, infinities and objects that JSON does not know as their text."""
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else repr(value)
    return value if isinstance(value, str | int | float | bool | type(None)) else repr(value)


def nonzero_weights(coef: FloatArray, names: Sequence[str]) -> dict[str, float]:
    """Nonzero weights by feature name, as files of results and pages hold them."""
    return {names[j]: float(coef[j]) for j in np.flatnonzero(coef).tolist()}
