"""An array that grows at its end."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from ranksieve._types import AnyArray


class GrowingArray:
    """Rows of a fixed width, appended in place.

    Room grows by a quarter at a time: memory stays under 1.25 times what is held (twice that while a system
    copies to reallocate), and copying costs O(1) a row.
    """

    def __init__(self, dtype: DTypeLike, width: int | None = None) -> None:
        self._room: AnyArray = np.zeros((0,) if width is None else (0, width), dtype=dtype)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def held(self) -> AnyArray:
        """What has been appended; not to be kept over the next ``extend``."""
        return self._room[: self._length]

    def extend(self, count: int) -> AnyArray:
        """``count`` more rows of zeros, as a view to write to at once."""
        start, self._length = self._length, self._length + count
        if self._length > len(self._room):
            self._resize(max(self._length, len(self._room) * 5 // 4))
        return self._room[start : self._length]

    def append(self, rows: AnyArray) -> None:
        self.extend(len(rows))[:] = rows

    def widen(self, width: int) -> None:
        """Give every row ``width`` entries, the new ones 0."""
        wider = np.zeros((self._length, width), dtype=self._room.dtype)
        wider[:, : self._room.shape[1]] = self.held
        self._room = wider

    def finish(self) -> AnyArray:
        """The array, without spare room; nothing may be appended afterwards."""
        self._resize(self._length)
        return self._room

    def _resize(self, length: int) -> None:
        self._room.resize((length, *self._room.shape[1:]), refcheck=False)
