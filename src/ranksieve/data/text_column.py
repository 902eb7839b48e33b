"""A column of strings held as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import numpy as np

from ranksieve._types import AnyArray, IntArray


class TextColumn(Sequence[str]):
    """Strings in one block of UTF-8: entry i is ``block[begins[i]:ends[i]]``, decoded when asked for."""

    __slots__ = ("begins", "block", "ends")

    def __init__(self, block: AnyArray, begins: IntArray, ends: IntArray) -> None:
        self.block = block
        self.begins = begins
        self.ends = ends

    def __len__(self) -> int:
        return len(self.begins)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice | AnyArray) -> TextColumn: ...
    def __getitem__(self, index: int | slice | AnyArray) -> str | TextColumn:
        if isinstance(index, slice) or np.ndim(index) > 0:
            return TextColumn(self.block, self.begins[index], self.ends[index])
        return self.raw(int(index)).decode("utf-8", errors="replace")

    def raw(self, row: int) -> bytes:
        """The undecoded bytes of one entry."""
        return self.block[self.begins[row] : self.ends[row]].tobytes()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(repr(text) for text in self[:3])
        return f"TextColumn([{shown}{', …' if len(self) > 3 else ''}], {len(self)} strings)"
