"""Short one-line reprs of results that hold arrays and long lists."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from dataclasses import fields
from typing import Any

MAX_VALUE = 60  # characters of a value
MAX_SHOWN = 1000  # characters of a repr


class ShortRepr:
    """A dataclass whose ``repr`` shows shapes in place of arrays, and lengths in place of long lists."""

    def __repr__(self) -> str:
        values = (f"{one.name}={short_value(getattr(self, one.name))}" for one in fields(self) if one.repr)  # type: ignore[arg-type]
        text = ", ".join(values)
        return f"{type(self).__name__}({text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + '…'})"


def short_value(value: Any) -> str:
    """``repr`` of a value if it is short, else what it is and how large."""
    if (shape := getattr(value, "shape", None)) is not None and shape != ():
        return f"<array of {' × '.join(map(str, shape))}>"
    if isinstance(value, list | tuple | Mapping) and len(value) > 5:
        return f"<{type(value).__name__} of {len(value)}>"
    text = " ".join(repr(value).split())
    if len(text) <= MAX_VALUE:
        return text
    size = f" of {len(value)}" if isinstance(value, Sized) and not isinstance(value, str) else ""
    return f"{text[: MAX_VALUE - 1]}…" if isinstance(value, str) else f"<{type(value).__name__}{size}>"
