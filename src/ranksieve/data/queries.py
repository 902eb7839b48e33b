"""Rows grouped by query, for query ids of any type in any order."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ranksieve._types import AnyArray, BoolArray, FloatArray, IntArray
from ranksieve.errors import DataError, ParameterError
from ranksieve.kernels.pairs import pairs_of_levels

FEW_LABELS = 64
MAX_FIXED_CHARS = (
    128  # of an id stored as fixed-width text, where every row takes as much memory as the longest
)
PLAIN_INTEGER = re.compile("0|-?[1-9][0-9]{0,18}")


@dataclass(frozen=True)
class Queries:
    """Rows grouped by query: query q has the rows ``order[offsets[q]:offsets[q + 1]]``.

    Queries are in order of first appearance and the rows of a query keep their order. If the rows of every
    query are contiguous, ``order`` is the identity; then ``row_order`` is None, and :meth:`group` and
    :meth:`restore` cost nothing.
    """

    ids: AnyArray
    row_order: IntArray | None
    offsets: IntArray

    @property
    def order(self) -> IntArray:
        """Rows in grouped order."""
        return np.arange(self.n_rows) if self.row_order is None else self.row_order

    @property
    def n_queries(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_rows(self) -> int:
        return int(self.offsets[-1])

    @cached_property
    def sizes(self) -> IntArray:
        """Documents per query."""
        return np.diff(self.offsets)

    @property
    def longest(self) -> tuple[Any, int]:
        """Id and size of the query with the most documents; the first one if tied."""
        query = int(np.argmax(self.sizes))
        return self.ids[query], int(self.sizes[query])

    @cached_property
    def contiguous(self) -> bool:
        """Whether the input is already in grouped order."""
        return self.row_order is None or bool(np.array_equal(self.row_order, np.arange(self.n_rows)))

    @property
    def query_of_grouped(self) -> IntArray:
        """Query index of each row, in grouped order."""
        return np.repeat(np.arange(self.n_queries), self.sizes)

    def rows_between(self, first: int, last: int) -> IntArray:
        """``order[first:last]``."""
        return np.arange(first, last) if self.row_order is None else self.row_order[first:last]

    def rows_of(self, query: int) -> IntArray:
        return self.rows_between(int(self.offsets[query]), int(self.offsets[query + 1]))

    def group(self, values: AnyArray) -> AnyArray:
        """Reorder row values from input order to grouped order."""
        return values if self.contiguous else values[self.row_order]

    def restore(self, grouped: AnyArray) -> AnyArray:
        """Reorder row values from grouped order to input order."""
        if self.contiguous:
            return grouped
        restored = np.empty_like(grouped)
        restored[self.row_order] = grouped
        return restored

    def centred(self, grouped: FloatArray) -> FloatArray:
        """Values in grouped order minus the mean of their query."""
        means = np.add.reduceat(grouped, self.offsets[:-1]) / self.sizes
        return np.asarray(grouped - np.repeat(means, self.sizes))

    def of_rows(self, per_query: AnyArray) -> AnyArray:
        """Value of the query of each row, in input order."""
        return self.restore(np.repeat(per_query, self.sizes))

    def rows(self, queries: IntArray | BoolArray) -> IntArray:
        """Row indices, ascending, of the chosen queries (indices or mask)."""
        chosen = np.zeros(self.n_queries, dtype=bool)
        chosen[queries] = True
        grouped = np.flatnonzero(np.repeat(chosen, self.sizes))
        return grouped if self.row_order is None else np.sort(self.row_order[grouped])


def query_ranges(offsets: IntArray, first: int, last: int, n_rows: int) -> Iterator[tuple[int, int]]:
    """Split the queries first..last into ranges of at most ``n_rows`` rows, or of one query."""
    while first < last:
        end = int(np.searchsorted(offsets, offsets[first] + n_rows, side="right")) - 1
        end = min(max(end, first + 1), last)
        yield first, end
        first = end


def contiguous_queries(ids: AnyArray, sizes: IntArray) -> Queries:
    """Queries of these sizes whose rows follow one another."""
    return Queries(ids, None, np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))))


def one_query(n_rows: int) -> Queries:
    """All rows in one query."""
    return Queries(np.zeros(1, dtype=np.int64), None, np.array([0, n_rows]))


def group_queries(qid: Sequence[Hashable] | AnyArray) -> Queries:
    """Group rows by query id; ids may be any hashables, in any order."""
    ids = as_id_array(qid)
    if ids.dtype == object:
        return _from_codes(*_codes_of_objects(ids))
    starts = np.flatnonzero(np.concatenate(([True], ids[1:] != ids[:-1])))
    run_ids = ids[starts]
    distinct, first, code = np.unique(run_ids, return_index=True, return_inverse=True)
    if len(distinct) == len(run_ids):
        return Queries(run_ids, None, np.append(starts, len(ids)))
    appearance = np.empty(len(distinct), dtype=np.int64)
    appearance[np.argsort(first)] = np.arange(len(distinct))
    run_codes = appearance[code]
    return _from_codes(np.repeat(run_codes, np.diff(np.append(starts, len(ids)))), run_ids[np.sort(first)])


def as_id_array(qid: Sequence[Hashable] | AnyArray, first: int = 0) -> AnyArray:
    """Query ids as a one-dimensional array, none missing. ``first``: index of the first row, for errors."""
    ids = _as_array(qid)
    if ids.ndim != 1:
        raise ParameterError("qid", ids, f"must have one query id per row, got shape {ids.shape}")
    if len(ids) == 0:
        raise DataError(None, None, "there are no rows; a data set needs at least one document")
    missing = _missing_ids(ids)
    if missing.any():
        row = first + int(np.argmax(missing))
        raise DataError(None, None, f"the query id of row {row} is missing (None, NaN or NaT)")
    return ids


def text_array(texts: list[str]) -> AnyArray:
    """Fixed-width text; objects if an id is very long, or contains a NUL, which NumPy would cut off."""
    wide = max(map(len, texts), default=0) > MAX_FIXED_CHARS
    return _object_array(texts) if wide or "\0" in "".join(texts) else np.array(texts)


def ids_from_text(texts: list[str]) -> AnyArray:
    """Convert query ids from a file: int64 if all are plain integers, else text.

    A plain integer is in Python's notation: -5 and 0, but not 007, +5 or -0.
    """
    integers = all(_is_int64(text) for text in set(texts))
    return np.array([int(text) for text in texts], dtype=np.int64) if integers else text_array(texts)


def _is_int64(text: str) -> bool:
    return PLAIN_INTEGER.fullmatch(text) is not None and -(2**63) <= int(text) < 2**63


def _as_array(qid: Any) -> AnyArray:
    if not hasattr(qid, "__array__"):
        return _array_of(list(qid))
    ids = np.asarray(qid)
    if ids.dtype.kind == "T":  # variable-width text, where a missing id may be any object
        return ids.astype(object)
    if (
        ids.dtype.kind == "U" and ids.ndim == 1 and not isinstance(qid, np.ndarray)
    ):  # a text column of a frame
        return text_array(list(qid))
    return ids


def _array_of(ids: list[Any]) -> AnyArray:
    """Numbers or text if NumPy represents all ids exactly, else objects.

    NumPy turns [1, "1"] into text, tuples into rows, and integers into floats if they fit neither int64 nor
    uint64.
    """
    kinds = {type(query_id) for query_id in ids}
    if kinds == {str}:
        return text_array(ids)
    if kinds <= {int, float}:
        numbers = np.asarray(ids)
        if numbers.dtype.kind in "iu" or (float in kinds and numbers.tolist() == ids):
            return numbers
    return _object_array(ids)


def _missing_ids(ids: AnyArray) -> BoolArray:
    if ids.dtype == object:
        return np.array([_is_missing(i) for i in ids], dtype=bool)
    if ids.dtype.kind in "mM":
        return np.isnat(ids)
    return np.isnan(ids) if ids.dtype.kind in "fc" else np.zeros(len(ids), dtype=bool)


def _is_missing(query_id: Hashable) -> bool:
    """None, NaN, NaT, or a marker such as pandas.NA that cannot be compared with itself."""
    try:
        return query_id is None or bool(query_id != query_id)
    except TypeError:
        return True


def _object_array(values: Sequence[Hashable] | AnyArray) -> AnyArray:
    ids = np.empty(len(values), dtype=object)
    ids[:] = list(values)
    return ids


def _codes_of_objects(ids: AnyArray) -> tuple[IntArray, AnyArray]:
    seen: dict[Hashable, int] = {}
    codes = np.fromiter((seen.setdefault(i, len(seen)) for i in ids), dtype=np.int64, count=len(ids))
    return codes, _object_array(list(seen))


def _from_codes(codes: IntArray, ids: AnyArray) -> Queries:
    order = np.argsort(codes, kind="stable")
    return Queries(ids, order, np.concatenate(([0], np.cumsum(np.bincount(codes, minlength=len(ids))))))


def local_levels(y: FloatArray, queries: Queries) -> IntArray:
    """Dense ranks of the labels within each query, 0 for the lowest; all in grouped order."""
    query, labels = queries.query_of_grouped, np.unique(y)
    if len(labels) <= FEW_LABELS:
        code = np.searchsorted(labels, y)
        present = np.zeros((queries.n_queries, len(labels)), dtype=bool)
        present[query, code] = True
        return np.asarray((np.cumsum(present, axis=1) - 1)[query, code])
    order = np.lexsort((y, query))
    starts = np.ones(len(y), dtype=bool)
    starts[1:] = query[order][1:] != query[order][:-1]
    rises = np.ones(len(y), dtype=np.int64)
    rises[1:] = y[order][1:] != y[order][:-1]
    running = np.cumsum(np.where(starts, 0, rises))
    first = running[np.flatnonzero(starts)]
    levels = np.empty(len(y), dtype=np.int64)
    levels[order] = running - np.repeat(first, queries.sizes)
    return levels


def pairs_per_query(levels: IntArray, queries: Queries) -> IntArray:
    """Number of pairs with different levels of each query: (n² − Σ_level n_level²)/2."""
    width = int(levels.max()) + 1
    cells = queries.query_of_grouped * width + levels
    if width <= FEW_LABELS:
        counts = np.bincount(cells, minlength=queries.n_queries * width)
        return np.asarray((queries.sizes**2 - (counts.reshape(-1, width) ** 2).sum(axis=1)) // 2)
    cells, counts = np.unique(cells, return_counts=True)
    same = np.bincount(cells // width, weights=counts.astype(np.float64) ** 2, minlength=queries.n_queries)
    pairs: IntArray = (queries.sizes**2 - same.astype(np.int64)) // 2
    return pairs


def pair_weights(levels: IntArray, queries: Queries, weight: FloatArray | None) -> FloatArray:
    """Σ weight_i·weight_j over the pairs of each query (default weight 1); all in grouped order."""
    if weight is None:
        return pairs_per_query(levels, queries).astype(np.float64)
    width = int(levels.max()) + 1
    cells, cell = np.unique(queries.query_of_grouped * width + levels, return_inverse=True)
    starts = np.searchsorted(cells, np.arange(queries.n_queries + 1) * width)
    pairs = np.empty(queries.n_queries)
    pairs_of_levels(np.bincount(cell, weight), starts, pairs)
    return pairs
