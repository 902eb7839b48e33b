"""What importance and similarity share: weights and standardised columns."""

from __future__ import annotations

import numpy as np

from ranksieve._parallel import map_blocks, split_blocks
from ranksieve._types import BoolArray, FloatArray, Matrix
from ranksieve.data.matrix import dense_rows


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
