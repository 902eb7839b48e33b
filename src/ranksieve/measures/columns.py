"""What importance and similarity share: weights, standardised columns, sums over blocks of rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ranksieve._parallel import map_blocks, split_blocks
from ranksieve._types import BoolArray, FloatArray, IntArray, Matrix
from ranksieve.data.matrix import dense_rows

PARTS_AT_ONCE = 8  # partial results held at a time: they may be as large as d × d


def sum_blocks(work: Callable[[int, int], FloatArray], cuts: IntArray) -> FloatArray:
    """Σ work(start, stop) over the blocks between cuts, by several threads, added in block order."""
    total: FloatArray | None = None
    for first in range(0, len(cuts) - 1, PARTS_AT_ONCE):
        for part in map_blocks(work, cuts[first : first + PARTS_AT_ONCE + 1]):
            total = part if total is None else np.add(total, part, out=total)
    if total is None:
        raise ValueError("there is no block to sum over")
    return total


class Standard:
    """Columns as z = (x − mean)/reach, reach = max|x − mean|; a constant column is exactly 0.

    Rows count ``weight`` times. Dividing by the reach keeps squares from overflowing or vanishing.
    """

    def __init__(self, X: Matrix, weight: FloatArray) -> None:
        self._X, self._weight = X, weight
        self.cuts = split_blocks(np.arange(X.shape[0] + 1))
        self._centre, self._reach, self.constant = self._shape()

    def rows(self, start: int, stop: int) -> FloatArray:
        """√weight · z of some rows."""
        z = (dense_rows(self._X, slice(start, stop)) - self._centre) / self._reach
        return np.asarray(np.sqrt(self._weight[start:stop, None]) * z)

    def _shape(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        def work(start: int, stop: int) -> tuple[FloatArray, FloatArray, FloatArray]:
            x = dense_rows(self._X, slice(start, stop))
            return x.min(axis=0), x.max(axis=0), self._weight[start:stop] @ x

        low, high, total = zip(*map_blocks(work, self.cuts), strict=True)
        lowest, highest = np.min(low, axis=0), np.max(high, axis=0)
        centre = np.clip(np.sum(total, axis=0) / self._weight.sum(), lowest, highest)
        constant = lowest == highest
        reach = np.where(constant, 1.0, np.maximum(highest - centre, centre - lowest))
        return centre, reach, constant
