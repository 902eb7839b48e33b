"""UBJSON, the binary JSON in which XGBoost saves models: decoded and checked, for XGBoost trusts it."""

from __future__ import annotations

import struct
from typing import Any

from ranksieve.errors import DataError

NUMBERS = {"i": ">b", "U": ">B", "I": ">h", "l": ">i", "L": ">q", "d": ">f", "D": ">d"}
LENGTHS = "iUIlL"
CONSTANTS = {"T": True, "F": False, "Z": None}
DEEPEST = 64


class _Reader:
    """Reads values one after another; what does not fit is a ValueError that says where."""

    def __init__(self, content: bytes) -> None:
        self.content, self.place, self.depth = content, 0, 0

    def take(self, count: int) -> bytes:
        if not 0 <= count <= len(self.content) - self.place:
            raise DataError(None, None, f"it breaks off at byte {len(self.content)}; write the file again")
        self.place += count
        return self.content[self.place - count : self.place]

    def mark(self) -> str:
        return self.take(1).decode("latin-1")

    def next_is(self, mark: str) -> bool:
        """Whether a mark comes next, which is then taken."""
        found = self.content[self.place : self.place + 1] == mark.encode()
        self.place += found
        return found

    def length(self, kind: str) -> int:
        if kind not in LENGTHS:
            raise DataError(None, None, f"byte {self.place - 1} is {kind!r}; expected the type of a length")
        return int(self.number(kind))

    def number(self, kind: str) -> Any:
        form = NUMBERS[kind]
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def text(self, kind: str) -> str:
        try:
            return self.take(self.length(kind)).decode("utf-8")
        except UnicodeDecodeError:
            raise DataError(None, None, f"the text that ends at byte {self.place} is not UTF-8") from None

    def value(self, kind: str) -> Any:
        if kind in NUMBERS:
            return self.number(kind)
        if kind in CONSTANTS:
            return CONSTANTS[kind]
        if kind == "S":
            return self.text(self.mark())
        if kind not in "[{":
            raise DataError(None, None, f"byte {self.place - 1} is {kind!r}, which does not begin a value")
        self.depth += 1
        if self.depth > DEEPEST:
            raise DataError(None, None, "it is nested too deeply")
        found = self.array() if kind == "[" else self.object()
        self.depth -= 1
        return found

    def array(self) -> list[Any]:
        kind = self.mark() if self.next_is("$") else ""
        if self.next_is("#"):
            count = self.length(self.mark())
            if kind in NUMBERS:
                width = struct.calcsize(NUMBERS[kind])
                return list(struct.unpack(f">{count}{NUMBERS[kind][1]}", self.take(max(-1, count) * width)))
            return [self.value(self.mark()) for _ in range(self.at_most(count))]
        found = []
        while not self.next_is("]"):
            found.append(self.value(self.mark()))
        return found

    def at_most(self, count: int) -> int:
        """A number of values, each of which takes a byte at least."""
        if not 0 <= count <= len(self.content) - self.place:
            raise DataError(None, None, f"it announces {count} values but breaks off; write the file again")
        return count

    def object(self) -> dict[str, Any]:
        found = {}
        while not self.next_is("}"):
            name = self.text(self.mark())
            found[name] = self.value(self.mark())
        return found


def decode_ubjson(content: bytes) -> Any:
    """What the bytes say."""
    reader = _Reader(content)
    value = reader.value(reader.mark())
    if reader.place != len(content):
        raise DataError(None, None, f"something follows the end at byte {reader.place}")
    return value
