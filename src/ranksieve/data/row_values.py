"""Values with one entry per row that are not features: texts in one block, and columns with gaps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from ranksieve._types import AnyArray, BoolArray, IntArray


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


class WithGaps(Sequence[Any]):
    """The values of a column, None where ``gaps`` says so."""

    def __init__(self, values: Sequence[Any] | AnyArray, gaps: BoolArray) -> None:
        self.values, self.gaps = values, gaps

    def __len__(self) -> int:
        return len(self.gaps)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice | AnyArray) -> WithGaps: ...
    def __getitem__(self, index: int | slice | AnyArray) -> Any:
        values: Any = self.values
        if isinstance(index, slice) or np.ndim(index) > 0:
            return WithGaps(values[index], self.gaps[index])
        return None if self.gaps[index] else values[index]
