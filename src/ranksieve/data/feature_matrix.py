"""Products with the feature matrix and access to its columns, in memory or block by block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import local
from typing import Any, ClassVar, TypeAlias

import numpy as np

from ranksieve._parallel import map_blocks, map_shares, split_blocks
from ranksieve._types import AnyArray, BoolArray, FloatArray, IntArray, Matrix
from ranksieve.data.inputs import check_features
from ranksieve.data.matrix import (
    StreamedMatrix,
    as_c_order,
    dense_block,
    is_sparse,
    replace_columns,
    rows_to_multiply,
    spread_and_largest,
)
from ranksieve.data.queries import Queries
from ranksieve.data.steps import MISSING, StepMatrix
from ranksieve.kernels.linear import (
    StoredRows,
    add_column_sums,
    add_columns,
    add_stored,
    chosen_products,
    column_sums,
    copy_stored,
    count_stored,
    gather,
    row_products,
    stored_column_sums,
    stored_products,
)
from ranksieve.kernels.steps import add_levels, put_steps, step_sums

MAX_OFFSET = 32.0  # × spread of a feature: a larger offset costs digits of its differences
MAX_CONSTANT = 2.0**20  # × smallest spread: rounding errors of a larger constant could look like a feature
MAX_COPIED_BYTES = 13 * 2**22  # of the columns copied side by side
LARGE_COPY = 2**24  # bytes; the C library would keep the memory of a larger copy after it is freed …
RETURNED_BLOCK = 2**25 + 1  # … but returns blocks of this size; pages that are never touched cost nothing
MAX_COLUMN_CELLS = 2**23  # of single columns: 64 MB
MAX_SPARSE_SHARE = (
    8  # if at most 1 in 8 values of some columns is stored, their Hessian is computed from these
)
SPARSE_WEIGHTS = 4  # if at most 1 in 4 weights is nonzero, only the columns of these are multiplied

ColumnReader: TypeAlias = Callable[[int, int], tuple[AnyArray, IntArray]]
"""(first, last) → rows first..last, and the positions of the columns in them."""
StoredReader: TypeAlias = Callable[[int, int], tuple[StoredRows, IntArray]]
"""(first, last) → CSR rows first..last, and the position of each of their columns (−1: left out)."""


def feature_matrix(
    X: Matrix,
    queries: Queries,
    cuts: IntArray,
    names: Sequence[str] | None = None,
    extremes: tuple[FloatArray, FloatArray] | None = None,
) -> FeatureMatrix:
    """Feature matrix for an objective; ``cuts`` splits the queries into blocks of work.

    ``extremes``: spread and largest |x| of each feature, if X is only a part of the data. Columns of a sparse
    matrix with a large offset are centred here, once.
    """
    if isinstance(X, StepMatrix):
        return step_features(X, queries)
    spread, max_abs = extremes or spread_and_largest(X, queries, cuts)
    varies = spread > 0
    least = float(np.min(spread[varies], initial=np.inf))
    columns = np.flatnonzero(max_abs > np.where(varies, MAX_OFFSET * spread, MAX_CONSTANT * least))
    max_abs[columns] = spread[columns]
    check_features(spread, max_abs, names)
    centred = NO_CENTRED
    if len(columns):
        first = dense_block(X, queries.order[queries.offsets[:-1]], columns)
        centred = CentredColumns(columns, first, queries.restore(queries.query_of_grouped))
        if is_sparse(X):
            values = dense_block(X, slice(None), columns)
            X, centred = replace_columns(X, columns, values - first[centred.query]), NO_CENTRED
    return _features(X, queries, centred, varies, max_abs)


def _features(X: Matrix, *args: Any) -> FeatureMatrix:
    if isinstance(X, StepMatrix):
        return StepFeatures(X, *args)
    if isinstance(X, StreamedMatrix):
        return StreamedFeatures(X, *args)
    if is_sparse(X):
        return SparseFeatures(X, *args)
    values = as_c_order(X)
    return FeaturesByRows(X, *args) if values is None else DenseFeatures(values, *args)


@dataclass(frozen=True, eq=False)
class CentredColumns:
    """Columns with a large offset relative to their spread, which are centred when they are read.

    Only differences within a query matter, so the value of the query's first document is subtracted, and
    differences keep their digits. ``first`` has these values, one row per query; ``query`` is the query of
    each row of X.
    """

    columns: IntArray
    first: FloatArray
    query: IntArray

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def arrays(self) -> tuple[IntArray, FloatArray, IntArray]:
        """Arguments for kernels."""
        return self.columns, self.first, self.query

    def weighted(self, w: FloatArray) -> tuple[IntArray, FloatArray, FloatArray, IntArray]:
        """Arguments for kernels, with the weights of the columns."""
        return self.columns, w[self.columns], self.first, self.query

    def centre(self, rows: IntArray, columns: IntArray, block: AnyArray) -> None:
        """Centre a block of some rows and columns of X, in place."""
        _, in_block, in_self = np.intersect1d(columns, self.columns, return_indices=True)
        if len(in_self):
            block[:, in_block] -= self.first[self.query[rows]][:, in_self]

    def restricted(self, columns: IntArray) -> CentredColumns:
        """For the matrix ``X[:, columns]``."""
        if not len(self):
            return self
        _, positions, in_self = np.intersect1d(columns, self.columns, return_indices=True)
        return CentredColumns(positions, np.ascontiguousarray(self.first[:, in_self]), self.query)


NO_COLUMNS = np.empty(0, dtype=np.int64)
NO_CENTRED = CentredColumns(NO_COLUMNS, np.empty((0, 0)), NO_COLUMNS)


@dataclass(frozen=True, eq=False)
class CopiedColumns:
    """Copy of some columns side by side, ascending, with the rows in grouped order."""

    columns: IntArray
    values: Any

    def positions(self, columns: IntArray) -> IntArray:
        return np.searchsorted(self.columns, columns)


class FeatureMatrix(ABC):
    """X in fixed blocks of rows, after :class:`CentredColumns` are centred.

    Sums are in float64. Partial sums are added in block order, so results do not depend on the number of
    threads or on where the values are stored. Subclasses differ in how they multiply a block of rows.

    Attributes
    ----------
    max_abs : array
        max |x_j| of each feature after centring.
    varies : array of bool
        Features that are not constant within every query.
    cell_bytes : int
        Memory of one value in blocks of the Hessian.
    """

    cell_bytes: ClassVar[int] = 8

    def __init__(
        self, X: Matrix, queries: Queries, centred: CentredColumns, varies: BoolArray, max_abs: FloatArray
    ) -> None:
        self.X, self.queries, self.centred, self.varies, self.max_abs = X, queries, centred, varies, max_abs
        self.n_features = int(X.shape[1])
        self._cuts = split_blocks(np.arange(X.shape[0] + 1))
        self._copied: CopiedColumns | None = None
        self._columns: dict[int, FloatArray] = {}

    @abstractmethod
    def scores_of(self, w: FloatArray, first: int, last: int) -> FloatArray:
        """X[first:last] w."""

    @abstractmethod
    def transposed_of(self, g: FloatArray, first: int, last: int) -> FloatArray:
        """X[first:last]ᵀ g, where g has one entry per row."""

    @abstractmethod
    def transposed_parts(self, g: FloatArray, cuts: IntArray) -> FloatArray:
        """Xᵀg of the rows between consecutive cuts."""

    @abstractmethod
    def _put_columns(self, start: int, stop: int, columns: IntArray, block: AnyArray) -> None:
        """Write some columns of the rows start..stop, in grouped order, to ``block``."""

    def scores(self, w: FloatArray) -> FloatArray:
        """Xw, in input order."""
        used, scores = self._used(w), np.empty(self.X.shape[0])
        if used is not None and (copied := self._copy_with(used)) is not None:
            values, positions, weights = copied.values, copied.positions(used), w[used]
            centred = NO_CENTRED.weighted(w)  # the copied columns are already centred
            map_shares(
                lambda a, b: chosen_products(values, positions, weights, *centred, a, b, scores[a:b]),
                self._cuts,
            )
            return np.asarray(self.queries.restore(scores))

        def work(first: int, last: int) -> None:
            scores[first:last] = self.scores_of(w, first, last)

        map_shares(work, self._cuts)
        return scores

    def _used(self, w: FloatArray) -> IntArray | None:
        """Columns of the nonzero weights, centred columns last; None if there are many."""
        used, centred = np.flatnonzero(w), self.centred.columns
        if SPARSE_WEIGHTS * len(used) > self.n_features:
            return None
        return np.concatenate([np.setdiff1d(used, centred), np.intersect1d(used, centred)])

    def transposed(self, g: FloatArray) -> FloatArray:
        """Xᵀg, g in input order."""
        return ordered_sum(self.transposed_parts(g, self._cuts))

    def transposed_columns(self, g: FloatArray, columns: IntArray) -> FloatArray:
        """Some entries of Xᵀg, g in input order."""
        return self.transposed(g)[columns]

    def keep(self, columns: IntArray) -> None:
        """Copy some columns side by side, so that scores and Hessians of these read less of X."""
        copied, self._copied = np.sort(columns), None  # free the previous copy first
        dtype = np.dtype(np.float64) if len(np.intersect1d(copied, self.centred.columns)) else self.X.dtype
        n_bytes = self.queries.n_rows * len(copied) * dtype.itemsize
        if n_bytes > MAX_COPIED_BYTES or 2 * len(copied) > self.n_features:
            return
        block = np.empty(n_bytes if n_bytes < LARGE_COPY else max(n_bytes, RETURNED_BLOCK), np.uint8)
        values = block[:n_bytes].view(dtype).reshape(self.queries.n_rows, len(copied))

        def work(first: int, last: int) -> None:
            self._put_columns(first, last, copied, values[first:last])

        map_shares(work, self._cuts)
        self._copied = CopiedColumns(copied, values)

    def keeps(self, columns: IntArray) -> bool:
        """Whether these columns are copied side by side."""
        return self._copy_with(columns) is not None

    def _copy_with(self, columns: IntArray) -> CopiedColumns | None:
        copied = self._copied  # read once: another thread may replace it
        if copied is None or not set(copied.columns.tolist()) >= set(columns.tolist()):
            return None
        return copied

    def reader(self, columns: IntArray) -> ColumnReader:
        """Read-only access to some columns, by ranges of rows in grouped order."""
        if (copied := self._copy_with(columns)) is not None:
            values, positions = copied.values, copied.positions(columns)
            return lambda a, b: (values[a:b], positions)
        positions = np.arange(len(columns))
        return lambda a, b: (self._grouped_columns(a, b, columns), positions)

    def stored_reader(self, columns: IntArray) -> StoredReader | None:
        """Read-only access to the entries of some columns; None if dense rows are faster for Hessians."""
        return None

    def stored_rows(self, columns: IntArray) -> StoredRows | None:
        """Copy of the entries of some columns, in grouped order; None if the columns are dense.

        Columns that are constant within every query have none.
        """
        return None

    def column(self, j: int) -> FloatArray:
        """Column ``j``, in input order; read-only.

        Columns are cached, because callers read the same few again.
        """
        columns = self._columns
        if j not in columns:
            if (len(columns) + 1) * self.queries.n_rows > MAX_COLUMN_CELLS:
                columns = self._columns = {}
            rows = self._grouped_columns(0, self.queries.n_rows, np.array([j]))
            columns[j] = np.asarray(self.queries.restore(np.ascontiguousarray(rows[:, 0])))
        return columns[j]

    def _grouped_columns(self, start: int, stop: int, columns: IntArray) -> FloatArray:
        block = np.empty((stop - start, len(columns)))
        self._put_columns(start, stop, columns, block)
        return block

    def restricted(self, columns: IntArray) -> FeatureMatrix:
        X, centred = self._some_columns(columns), self.centred.restricted(columns)
        return _features(X, self.queries, centred, self.varies[columns], self.max_abs[columns])

    def _some_columns(self, columns: IntArray) -> Matrix:
        return self.X[:, columns]


class DenseFeatures(FeatureMatrix):
    """A dense float32 or float64 array in C order (also memory-mapped), read by kernels."""

    def scores_of(self, w: FloatArray, first: int, last: int) -> FloatArray:
        scores, centred, used = np.empty(last - first), self.centred.weighted(w), self._used(w)
        if used is None:
            other_weights = w.copy()
            other_weights[self.centred.columns] = 0.0
            row_products(self.X, other_weights, *centred, first, last, scores)
        else:
            columns = used[: len(used) - np.count_nonzero(centred[1])]
            chosen_products(self.X, columns, w[columns], *centred, first, last, scores)
        return scores

    def transposed_of(self, g: FloatArray, first: int, last: int) -> FloatArray:
        sums = np.zeros((1, self.n_features))
        column_sums(self.X, g, *self.centred.arrays, np.array([first, last]), sums)
        return np.asarray(sums[0])

    def transposed_parts(self, g: FloatArray, cuts: IntArray) -> FloatArray:
        sums = np.zeros((len(cuts) - 1, self.n_features))

        def work(first: int, last: int) -> None:
            rows = cuts[first : last + 1]
            column_sums(self.X, g[rows[0] : rows[-1]], *self.centred.arrays, rows, sums[first:last])

        map_shares(work, np.arange(len(cuts)))
        return sums

    def reader(self, columns: IntArray) -> ColumnReader:
        if self.keeps(columns) or len(self.centred) or not self.queries.contiguous:
            return super().reader(columns)
        return lambda a, b: (self.X[a:b], columns)

    def _put_columns(self, start: int, stop: int, columns: IntArray, block: AnyArray) -> None:
        rows = self.queries.rows_between(start, stop)
        gather(self.X, rows, columns, block)
        self.centred.centre(rows, columns, block)

    def _some_columns(self, columns: IntArray) -> Matrix:
        return np.take(self.X, columns, axis=1)


class SparseFeatures(FeatureMatrix):
    """A CSR matrix; copied columns are CSR too, unless they are dense."""

    def __init__(self, X: Matrix, *args: Any) -> None:
        super().__init__(X, *args)
        self._rows = StoredRows(X.data, X.indices, X.indptr)

    @cached_property
    def _stored(self) -> IntArray:
        """Number of entries of each column."""
        return np.bincount(self.X.indices, minlength=self.n_features)

    def scores(self, w: FloatArray) -> FloatArray:
        copied = self._copy_with(np.flatnonzero(w))
        if copied is None or not isinstance(copied.values, StoredRows):
            return super().scores(w)
        rows, weights, scores = copied.values, w[copied.columns], np.empty(self.X.shape[0])
        map_shares(lambda a, b: stored_products(rows, weights, a, b, scores[a:b]), self._cuts)
        return np.asarray(self.queries.restore(scores))

    def scores_of(self, w: FloatArray, first: int, last: int) -> FloatArray:
        scores = np.empty(last - first)
        stored_products(self._rows, w, first, last, scores)
        return scores

    def transposed_of(self, g: FloatArray, first: int, last: int) -> FloatArray:
        sums = np.zeros((1, self.n_features))
        stored_column_sums(self._rows, g, np.array([first, last]), sums)
        return np.asarray(sums[0])

    def transposed_parts(self, g: FloatArray, cuts: IntArray) -> FloatArray:
        sums = np.zeros((len(cuts) - 1, self.n_features))

        def work(first: int, last: int) -> None:
            rows = cuts[first : last + 1]
            stored_column_sums(self._rows, g[rows[0] : rows[-1]], rows, sums[first:last])

        map_shares(work, np.arange(len(cuts)))
        return sums

    def keep(self, columns: IntArray) -> None:
        if not self._are_sparse(columns):
            super().keep(columns)
            return
        copied, n_entries = np.sort(columns), int(self._stored[columns].sum())
        self._copied = None
        if n_entries * (self.X.dtype.itemsize + self.X.indices.itemsize) <= MAX_COPIED_BYTES:
            self._copied = CopiedColumns(copied, self._take(self._positions(copied), 0, self.queries.n_rows))

    def _are_sparse(self, columns: IntArray) -> bool:
        """Whether Hessians of these columns are computed from their entries."""
        return MAX_SPARSE_SHARE * int(self._stored[columns].sum()) <= self.queries.n_rows * len(columns)

    def stored_rows(self, columns: IntArray) -> StoredRows | None:
        if not self._are_sparse(columns):
            return None
        return self._take(np.where(self.varies, self._positions(columns), -1), 0, self.queries.n_rows)

    def _positions(self, columns: IntArray) -> IntArray:
        """Position of each feature among ``columns``, −1 for the others."""
        position = np.full(self.n_features, -1)
        position[columns] = np.arange(len(columns))
        return position

    def _take(self, position: IntArray, start: int, stop: int) -> StoredRows:
        """Copy of the columns with a position ≥ 0 of the rows start..stop in grouped order."""
        order = self.queries.rows_between(start, stop)
        starts = np.zeros(stop - start + 1, self.X.indptr.dtype)
        count_stored(self._rows, order, position, starts[1:])
        np.cumsum(starts, out=starts)
        values, indices = (np.empty(starts[-1], a.dtype) for a in (self.X.data, self.X.indices))
        rows = StoredRows(values, indices, starts)
        copy_stored(self._rows, order, position, rows)
        return rows

    def stored_reader(self, columns: IntArray) -> StoredReader | None:
        copied, position = self._copy_with(columns), self._positions(columns)
        if copied is None and self._are_sparse(columns):
            return lambda a, b: (self._take(position, a, b), np.arange(len(columns)))
        if copied is None or not isinstance(copied.values, StoredRows):
            return None
        values, indices, starts = copied.values
        return lambda a, b: (StoredRows(values, indices, starts[a : b + 1]), position[copied.columns])

    def reader(self, columns: IntArray) -> ColumnReader:
        if (stored := self.stored_reader(columns)) is None:
            return super().reader(columns)

        def read(start: int, stop: int) -> tuple[AnyArray, IntArray]:
            (values, indices, starts), position = stored(start, stop)
            block = np.zeros((stop - start, len(columns)))
            add_stored(values, indices, starts, 0, position, block)
            return block, np.arange(len(columns))

        return read

    def _put_columns(self, start: int, stop: int, columns: IntArray, block: AnyArray) -> None:
        rows = slice(start, stop) if self.queries.contiguous else self.queries.rows_between(start, stop)
        block[:] = dense_block(self.X, rows, columns)


class FeaturesByRows(FeatureMatrix):
    """An array too large to be copied to C order, multiplied in blocks of rows."""

    def scores_of(self, w: FloatArray, first: int, last: int) -> FloatArray:
        return np.asarray(self._rows(first, last) @ w)

    def transposed_of(self, g: FloatArray, first: int, last: int) -> FloatArray:
        return np.asarray(self._rows(first, last).T @ g)

    def transposed_parts(self, g: FloatArray, cuts: IntArray) -> FloatArray:
        return np.array(map_blocks(lambda a, b: self._rows(a, b).T @ g[a:b], cuts))

    def _rows(self, start: int, stop: int) -> Matrix:
        block = rows_to_multiply(self.X, start, stop)
        if not len(self.centred):
            return block
        block = block.copy() if np.may_share_memory(block, self.X) else block
        block[:, self.centred.columns] -= self.centred.first[self.centred.query[start:stop]]
        return block

    def _put_columns(self, start: int, stop: int, columns: IntArray, block: AnyArray) -> None:
        rows = self.queries.rows_between(start, stop)
        block[:] = dense_block(self.X, slice(start, stop) if self.queries.contiguous else rows, columns)
        self.centred.centre(rows, columns, block)


class StepFeatures(FeatureMatrix):
    """A :class:`StepMatrix`: scores by looking up levels, gradients by one histogram per feature."""

    X: StepMatrix
    cell_bytes = 4  # a Hessian in float32 gives nearly the same Newton steps

    def scores(self, w: FloatArray) -> FloatArray:
        scores, (used, levels) = np.zeros(self.X.shape[0]), self._levels(w)
        map_shares(lambda a, b: add_levels(self.X.codes, used, levels, a, b, scores[a:b]), self._cuts)
        return scores

    def scores_of(self, w: FloatArray, first: int, last: int) -> FloatArray:
        scores = np.zeros(last - first)
        add_levels(self.X.codes, *self._levels(w), first, last, scores)
        return scores

    def _levels(self, w: FloatArray) -> tuple[IntArray, FloatArray]:
        used = self.X.columns.used(w)
        return used, self.X.columns.levels(w, used)

    def transposed_of(self, g: FloatArray, first: int, last: int) -> FloatArray:
        return np.asarray(self._sums(g, np.array([first, last]))[0])

    def transposed_parts(self, g: FloatArray, cuts: IntArray) -> FloatArray:
        sums = np.empty((len(cuts) - 1, self.n_features))

        def work(first: int, last: int) -> None:
            rows = cuts[first : last + 1]
            sums[first:last] = self._sums(g[rows[0] : rows[-1]], rows)

        map_shares(work, np.arange(len(cuts)))
        return sums

    def _sums(self, g: FloatArray, cuts: IntArray) -> FloatArray:
        columns = self.X.columns
        features, place = np.unique(columns.feature, return_inverse=True)
        sums = np.empty((len(cuts) - 1, len(features), MISSING + 1))
        step_sums(self.X.codes, features, g, cuts, sums)
        return sums[:, place, columns.slot]

    def contributions(self, w: FloatArray) -> FloatArray:
        """Variance within queries of what each feature adds to the scores."""
        variance, (used, levels), offsets = np.zeros(len(self.X.codes)), self._levels(w), self.queries.offsets
        for j, level in zip(used.tolist(), levels, strict=True):
            added = self.queries.group(level[self.X.codes[j]])
            means = np.add.reduceat(added, offsets[:-1]) / self.queries.sizes
            variance[j] = np.mean((added - np.repeat(means, self.queries.sizes)) ** 2)
        return variance

    def keeps(self, columns: IntArray) -> bool:
        """True: columns are computed from the codes, so none needs a copy."""
        return True

    def reader(self, columns: IntArray) -> ColumnReader:
        positions = np.arange(len(columns))
        return lambda a, b: (self.X.block(self.queries.rows_between(a, b), columns), positions)

    def _put_columns(self, start: int, stop: int, columns: IntArray, block: AnyArray) -> None:
        some, rows = self.X.columns[columns], self.queries.rows_between(start, stop)
        put_steps(self.X.codes, some.feature, some.slot, rows, block)


def step_features(X: StepMatrix, queries: Queries) -> StepFeatures:
    """Step columns for an objective; a column varies if it is not constant within every query."""
    varies = np.array([_varying_slots(codes[queries.order], queries.offsets) for codes in X.codes])
    of_columns = varies[X.columns.feature, X.columns.slot]
    return StepFeatures(X, queries, NO_CENTRED, of_columns, np.ones(len(X.columns)))


def _varying_slots(codes: AnyArray, offsets: IntArray) -> AnyArray:
    """For each slot of a feature, whether it is not constant within every query."""
    starts, is_missing = offsets[:-1][np.diff(offsets) > 0], codes == MISSING
    codes = np.where(is_missing, 0, codes)  # no threshold is below a missing value
    low, high = np.minimum.reduceat(codes, starts), np.maximum.reduceat(codes, starts)
    ends = np.bincount(low + 1, minlength=MISSING + 1) - np.bincount(high + 1, minlength=MISSING + 1)
    varies = np.cumsum(ends) > 0  # the slots low + 1, …, high of a query vary
    varies[MISSING] = np.any(
        np.logical_or.reduceat(is_missing, starts) & ~np.logical_and.reduceat(is_missing, starts)
    )
    return varies


PIECE_ROWS = 20_000  # read at a time
CHUNK_ROWS = 5000  # transposed at a time: fits into the cache


@dataclass
class PassCounter:
    """Passes over the data: ``full`` passes read all features, ``partial`` passes ``columns`` in total."""

    n_features: int
    full: int = 0
    partial: int = 0
    columns: int = 0

    def add(self, n_columns: int) -> None:
        if n_columns == self.n_features:
            self.full += 1
        elif n_columns:
            self.partial += 1
            self.columns += n_columns

    @property
    def equivalent(self) -> float:
        """Number of full passes that read as much."""
        return self.full + self.columns / self.n_features

    def __str__(self) -> str:
        return (
            f"{self.full} full passes over the features and {self.partial} partial passes, equivalent to "
            f"{self.equivalent:.3g} full passes"
        )


class StreamedFeatures(FeatureMatrix):
    """A :class:`FeatureMatrix` of a :class:`StreamedMatrix`, read in pieces; results are bit-identical.

    Only the columns that an operation needs are read; ``passes`` counts the passes.
    """

    def __init__(
        self,
        X: StreamedMatrix,
        queries: Queries,
        centred: CentredColumns,
        varies: BoolArray,
        max_abs: FloatArray,
    ) -> None:
        super().__init__(X, queries, centred, varies, max_abs)
        self.passes, self._latest = PassCounter(self.n_features), local()
        self.passes.add(self.n_features)  # for the spread and largest value of the features

    def restricted(self, columns: IntArray) -> FeatureMatrix:
        part: Any = super().restricted(columns)
        part.passes = self.passes
        return part  # type: ignore[no-any-return]

    def scores(self, w: FloatArray) -> FloatArray:
        used = np.flatnonzero(w)
        if not (self._used(w) is not None and self.keeps(used)):
            self.passes.add(len(used))
        return super().scores(w)

    def scores_of(self, w: FloatArray, first: int, last: int) -> FloatArray:
        used, scores = self._used(w), np.zeros(last - first)
        if used is None:
            return self._scores_of_many(w, first, last)
        centred = np.intersect1d(used, self.centred.columns)
        among, weights = np.searchsorted(self.centred.columns, centred), w[used]
        for a, b, columns in self._pieces(first, last, used):
            part = scores[a - first : b - first]
            add_columns(columns, weights, len(used) - len(centred), *self._shifts(a, b, among), part)
        return scores

    def _scores_of_many(self, w: FloatArray, first: int, last: int) -> FloatArray:
        used, scores, other_weights = np.flatnonzero(w), np.empty(last - first), w.copy()
        other_weights[self.centred.columns] = 0.0
        for a, b, values in self._chunks(first, last, used):
            wide = np.zeros((b - a, self.n_features), values.dtype)
            wide[:, used] = values
            centred = (self.centred.columns, w[self.centred.columns], *self._shifts(a, b))
            row_products(wide, other_weights, *centred, 0, b - a, scores[a - first : b - first])
        return scores

    def transposed_of(self, g: FloatArray, first: int, last: int) -> FloatArray:
        sums = np.zeros((1, self.n_features))
        self._add_sums(g, first, last, np.arange(self.n_features), sums)
        return np.asarray(sums[0])

    def transposed_parts(self, g: FloatArray, cuts: IntArray) -> FloatArray:
        self.passes.add(self.n_features)
        return self._sums_of_parts(g, cuts, np.arange(self.n_features))

    def transposed_columns(self, g: FloatArray, columns: IntArray) -> FloatArray:
        self.passes.add(len(columns))
        return ordered_sum(self._sums_of_parts(g, self._cuts, columns))

    def _sums_of_parts(self, g: FloatArray, cuts: IntArray, columns: IntArray) -> FloatArray:
        sums = np.zeros((len(cuts) - 1, len(columns)))

        def work(first: int, last: int) -> None:
            for part in range(first, last):
                begin, end = cuts[part : part + 2].tolist()
                self._add_sums(g[begin:end], begin, end, columns, sums[part : part + 1])

        map_shares(work, np.arange(len(cuts)))
        return sums

    def _add_sums(self, g: FloatArray, first: int, last: int, columns: IntArray, sums: FloatArray) -> None:
        """Add X[first:last]ᵀ g, for some columns, to ``sums[0]``."""
        _, centred, among = np.intersect1d(columns, self.centred.columns, return_indices=True)
        for a, b, values in self._pieces(first, last, columns):
            add_column_sums(values, g[a - first : b - first], centred, *self._shifts(a, b, among), sums[0])

    def reader(self, columns: IntArray) -> ColumnReader:
        if not self.keeps(columns):
            self.passes.add(len(columns))
        return super().reader(columns)

    def _put_columns(self, start: int, stop: int, columns: IntArray, block: AnyArray) -> None:
        if not self.queries.contiguous:
            rows = self.queries.rows_between(start, stop)
            block[:] = dense_block(self.X, rows, columns)
            self.centred.centre(rows, columns, block)
            return
        for a, b, values in self._chunks(start, stop, columns):
            block[a - start : b - start] = values
            self.centred.centre(np.arange(a, b), columns, block[a - start : b - start])

    def _shifts(self, first: int, last: int, among: IntArray | None = None) -> tuple[FloatArray, IntArray]:
        """Values to subtract from centred columns (all or ``among``), one row per query; each row's query."""
        if not len(self.centred):
            return NO_CENTRED.first, NO_CENTRED.query
        query = self.centred.query[first:last]
        if among is None:
            return self.centred.first, query
        queries, index = np.unique(query, return_inverse=True)
        return np.ascontiguousarray(self.centred.first[queries][:, among]), index

    def _chunks(self, first: int, last: int, columns: IntArray) -> Iterator[tuple[int, int, AnyArray]]:
        """(from, to, values in C order) of some columns, ``CHUNK_ROWS`` rows at a time."""
        for begin, end, values in self._pieces(first, last, columns):
            for a in range(begin, end, CHUNK_ROWS):
                b = min(a + CHUNK_ROWS, end)
                yield a, b, np.ascontiguousarray(values[:, a - begin : b - begin].T)

    def _pieces(self, first: int, last: int, columns: IntArray) -> Iterator[tuple[int, int, AnyArray]]:
        """(from, to, values transposed) of some columns, ``PIECE_ROWS`` rows at a time."""
        for begin, end in self.X.pieces(first, last, PIECE_ROWS):
            a, b = max(begin, first), min(end, last)
            yield a, b, self._piece(begin, end, columns)[:, a - begin : b - begin]

    def _piece(self, begin: int, end: int, columns: IntArray) -> AnyArray:
        """Columns of the rows begin..end, transposed; each thread caches its latest piece."""
        latest = getattr(self._latest, "piece", None)
        if latest is None or latest[0] != (begin, end) or not np.array_equal(latest[1], columns):
            self.X.read_ahead(end, min(2 * end - begin, self.X.shape[0]), columns)
            latest = self._latest.piece = ((begin, end), columns, self.X.read(begin, end, columns).T)
        return np.asarray(latest[2])


def chosen_columns(values: AnyArray, positions: IntArray) -> FloatArray:
    """Columns in float64 and C order."""
    return np.ascontiguousarray(values[:, positions], dtype=np.float64)


def ordered_sum(parts: Iterable[FloatArray]) -> FloatArray:
    """Sum of arrays in their order; the iterable is consumed one array at a time."""
    parts = iter(parts)
    total = np.array(next(parts), dtype=np.float64)
    for part in parts:
        total += part
    return total
