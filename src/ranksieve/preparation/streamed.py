"""Prepared features of a matrix that is not in memory: prepared as they are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from ranksieve._types import AnyArray, FloatArray, IntArray
from ranksieve.data.queries import Queries, queries_in_order
from ranksieve.data.streamed import StreamedMatrix

Prepare: TypeAlias = Callable[[Sequence[str], FloatArray, Queries], FloatArray]
"""(names of features, an own array of their values, queries of its rows) → the prepared values."""


class PreparedMatrix(StreamedMatrix):
    """Features that come from those of another matrix: feature ``names[j]`` from its column ``sources[j]``.

    With ``per_query`` whole queries are read, whose rows must be together.
    """

    def __init__(
        self,
        matrix: StreamedMatrix,
        names: Sequence[str],
        sources: IntArray,
        prepare: Prepare,
        queries: Queries,
        per_query: bool,
        dtype: DTypeLike,
    ) -> None:
        super().__init__(matrix.starts, len(names), np.dtype(dtype))
        self._matrix, self._names, self._sources = matrix, np.array(names, dtype=object), sources
        self._prepare, self._queries, self._per_query = prepare, queries, per_query

    def read(self, first: int, last: int, columns: IntArray) -> AnyArray:
        begin, end, rows = first, last, queries_in_order(np.zeros(1), np.array([last - first]))
        if self._per_query and last > first:
            offsets = self._queries.offsets
            a, b = np.searchsorted(offsets, first, side="right") - 1, np.searchsorted(offsets, last)
            begin, end = int(offsets[a]), int(offsets[b])
            rows = queries_in_order(self._queries.ids[a:b], self._queries.sizes[a:b])
        values = np.array(self._matrix.read(begin, end, self._sources[columns]), dtype=self.dtype, order="F")
        prepared = self._prepare(self._names[columns].tolist(), values, rows)
        return np.asfortranarray(prepared[first - begin : last - begin])

    def read_ahead(self, first: int, last: int, columns: IntArray) -> None:
        self._matrix.read_ahead(first, last, self._sources[columns])
