"""Feature matrices: dense arrays, CSR matrices, and streamed matrices that are read in parts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from pkgutil import resolve_name
from typing import Any

import numpy as np
import scipy  # loads its submodules on first use

from ranksieve._parallel import map_blocks
from ranksieve._types import AnyArray, BoolArray, FloatArray, IntArray, Matrix
from ranksieve.data.queries import Queries, query_ranges
from ranksieve.kernels.linear import add_stored, dense_extremes, sparse_extremes

FLOATS = (np.float32, np.float64)
ROWS_AT_ONCE = 65536
CELLS_AT_ONCE = 2**21  # 16 MB of float64
MAX_COPIED_CELLS = 2**26  # 512 MB of float64
MAX_RUN_ROWS = 16384  # rows of a streamed matrix that are read at once
MAX_GAP_ROWS = 64  # rows closer than this are read together, with the rows between them
BACKENDS = {2: "ranksieve.gpu.matrix:from_gpu"}  # converters by DLPack device type


# Kinds of matrices


def is_sparse(X: Any) -> bool:
    """Whether X is a scipy sparse matrix."""
    return not isinstance(X, np.ndarray) and bool(scipy.sparse.issparse(X))


def is_streamed(X: Any) -> bool:
    """Whether the values of X are not in memory but read on demand."""
    return isinstance(X, StreamedMatrix)


def dlpack_matrix(X: Any) -> Matrix | None:
    """Matrix of a device array (PyTorch, CuPy, …) if there is a backend for the device, else None."""
    if isinstance(X, np.ndarray) or not hasattr(X, "__dlpack_device__"):
        return None
    backend = BACKENDS.get(int(X.__dlpack_device__()[0]))
    return None if backend is None else resolve_name(backend)(X)


def as_csr(X: Matrix) -> Matrix:
    """Convert a scipy sparse matrix to canonical CSR of float32 or float64: sorted columns, no duplicates.

    Duplicate entries add up, so operations on single values need their sum.
    """
    matrix = scipy.sparse.csr_array(X)
    if matrix.dtype not in FLOATS:
        matrix = matrix.astype(np.float64)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()  # sum_duplicates changes the arrays of the caller in place
        matrix.sum_duplicates()
    return matrix


def csr(values: AnyArray, columns: AnyArray, starts: IntArray, n_columns: int) -> Matrix:
    """CSR matrix whose row r has the entries ``starts[r]:starts[r + 1]`` of ``columns`` and ``values``."""
    return scipy.sparse.csr_array((values, columns, starts), shape=(len(starts) - 1, n_columns))


def as_plain(X: Matrix) -> Matrix:
    """An ndarray, or a ``csr_matrix``, which LightGBM requires instead of a ``csr_array``."""
    return scipy.sparse.csr_matrix(X) if is_sparse(X) else np.asarray(X)


def writable_copy(X: Matrix) -> Matrix:
    return X.copy() if is_sparse(X) else np.array(X)


def stored_values(X: Matrix) -> AnyArray:
    """All values of a dense matrix, the stored values of a sparse one."""
    return np.asarray(X.data if is_sparse(X) else X)


def value_range(X: Matrix) -> tuple[float, float]:
    """Minimum and maximum of the values and 0; NaN if a value is missing."""
    if is_streamed(X):
        low, high = X.value_range
        return float(np.minimum(low, 0.0)), float(np.maximum(high, 0.0))
    values = stored_values(X)
    return float(np.min(values, initial=0.0)), float(np.max(values, initial=0.0))


def buffers(X: Matrix) -> Iterator[AnyArray]:
    """Contiguous arrays that together contain all of X except its shape."""
    parts = (X.indptr, X.indices, X.data) if is_sparse(X) else (rows for _, rows in _row_slices(X))
    for part in parts:
        yield np.ascontiguousarray(part)


def _row_slices(X: Matrix) -> Iterator[tuple[int, Matrix]]:
    """Blocks of rows with the index of their first row; about 16 MB each for a streamed matrix."""
    step = max(1, min(ROWS_AT_ONCE, CELLS_AT_ONCE // X.shape[1])) if is_streamed(X) else ROWS_AT_ONCE
    for start in range(0, X.shape[0], step):
        yield start, X[start : start + step]


def take_matrix_rows(X: Matrix, rows: IntArray) -> Matrix:
    """Rows as a matrix of the same kind; rows of a matrix on disk are read into memory."""
    return X.take_rows(rows) if is_streamed(X) else X[rows]


# Finding values


def find_first(X: Matrix, wanted: Callable[[AnyArray], BoolArray]) -> tuple[int, int] | None:
    """(row, column) of the first wanted value in row order; only stored values of a sparse matrix count."""
    for start, block in _row_slices(X):
        position = _first_in_block(block, wanted)
        if position is not None:
            return start + position[0], position[1]
    return None


def _first_in_block(block: Matrix, wanted: Callable[[AnyArray], BoolArray]) -> tuple[int, int] | None:
    if not wanted(stored_values(block)).any():
        return None
    if not is_sparse(block):
        row, column = np.argwhere(wanted(np.asarray(block)))[0]
        return int(row), int(column)
    block = block.copy()
    block.sum_duplicates()  # also sorts the columns of each row
    entry = int(np.argmax(wanted(block.data)))
    return int(np.searchsorted(block.indptr, entry, side="right")) - 1, int(block.indices[entry])


def first_not_finite(X: Matrix, allow_nan: bool = False) -> tuple[int, int] | None:
    """(row, column) of the first value that is infinite or, unless allowed, NaN."""
    if is_streamed(X) and np.isfinite(X.value_range).all():
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        sums = [np.sum(stored_values(block)) for _, block in _row_slices(X)]
    if np.isfinite(sums).all():
        return None
    # a sum of finite values may overflow, so look at the values
    return find_first(X, np.isinf if allow_nan else lambda values: ~np.isfinite(values))


def nonzero_entries(X: Matrix) -> tuple[IntArray, IntArray, AnyArray]:
    """Rows, columns and values of the nonzero entries of a CSR matrix."""
    entries = X.copy()
    entries.sum_duplicates()
    entries.eliminate_zeros()
    rows = np.repeat(np.arange(X.shape[0]), np.diff(entries.indptr))
    return rows, entries.indices, entries.data


def stored_rows(X: Matrix) -> tuple[IntArray, IntArray, IntArray, AnyArray]:
    """All values of a dense matrix or the stored values of a sparse one, row by row.

    Row r has the values ``starts[r]:starts[r + 1]``; their columns begin at ``columns[column_starts[r]]``.
    Returns (starts, column_starts, columns, values); the values may be a view.
    """
    if not is_sparse(X):
        starts, column_starts = X.shape[1] * np.arange(X.shape[0] + 1), np.zeros(X.shape[0], dtype=np.int64)
        return starts, column_starts, np.arange(X.shape[1]), np.asarray(X).ravel()
    rows = X.copy()
    rows.sum_duplicates()
    starts = rows.indptr.astype(np.int64)
    return starts, starts[:-1], rows.indices.astype(np.int64), rows.data


# Parts of a matrix as dense arrays


def dense_rows(X: Matrix, rows: slice | IntArray) -> FloatArray:
    """Rows in float64; may be a view."""
    block = X[rows]
    return np.asarray(block.toarray() if is_sparse(block) else block, dtype=np.float64)


def dense_block(X: Matrix, rows: slice | IntArray, columns: IntArray) -> FloatArray:
    """Copy of some rows and columns in float64 and C order."""
    if is_streamed(X):
        return np.array(X[:, columns][rows], dtype=np.float64, order="C")
    if not is_sparse(X):
        return np.array(X[rows][:, columns], dtype=np.float64, order="C")
    if not isinstance(rows, slice):
        X, rows = X[rows], slice(None)
    first, last, _ = rows.indices(X.shape[0])
    position = np.full(X.shape[1], -1)
    position[columns] = np.arange(len(columns))
    values = np.zeros((last - first, len(columns)))
    add_stored(X.data, X.indices, X.indptr, first, position, values)
    source = position[columns]  # ``columns`` may contain a column twice
    return values if (source == np.arange(len(columns))).all() else values[:, source]


def dense_stored_columns(X: Matrix) -> tuple[FloatArray, IntArray]:
    """Columns with a stored value, as a float64 array in C order, and their indices."""
    columns = np.unique(X.indices).astype(np.int64) if is_sparse(X) else np.arange(X.shape[1])
    dense = X[:, columns].toarray() if is_sparse(X) else X
    return np.ascontiguousarray(dense, dtype=np.float64), columns


def value_blocks(
    X: Matrix, columns: IntArray, rows_at_once: int, copy: bool
) -> Iterator[tuple[slice, AnyArray, IntArray]]:
    """Values of some columns, in blocks: (rows, array, positions of the columns in the array).

    A dense array is one block and not copied unless ``copy``; copies may be written to.
    """
    if not (copy or is_sparse(X) or is_streamed(X)):
        yield slice(None), np.asarray(X), columns
        return
    for start in range(0, X.shape[0], rows_at_once):
        rows = slice(start, start + rows_at_once)
        yield rows, dense_block(X, rows, columns), np.arange(len(columns))


# Products with blocks of rows


def rows_to_multiply(X: Matrix, start: int, stop: int) -> Matrix:
    """Rows for float64 products: a dense float64 array, or CSR that shares the entries of X."""
    if not is_sparse(X):
        return np.asarray(X[start:stop], dtype=np.float64)
    lo, hi = X.indptr[start], X.indptr[stop]
    block = scipy.sparse.csr_array((stop - start, X.shape[1]), dtype=X.dtype)
    # set as attributes, because the constructor copies small slices of large arrays
    block.data, block.indices, block.indptr = X.data[lo:hi], X.indices[lo:hi], X.indptr[start : stop + 1] - lo
    return block


def is_float64_in_place(X: Matrix) -> bool:
    """Whether X is a dense float64 array in C order, which kernels read without a copy."""
    return isinstance(X, np.ndarray) and X.dtype == np.float64 and bool(X.flags.carray)


def as_c_order(X: Matrix) -> AnyArray | None:
    """X as an array of float32 or float64 in C order, as kernels require; None if it is not dense.

    An array in another order (most data frames) is copied, or None if the copy would need too much memory.
    """
    if not isinstance(X, np.ndarray) or X.dtype not in FLOATS:
        return None
    if not X.flags.c_contiguous and X.size > MAX_COPIED_CELLS:
        return None
    return np.ascontiguousarray(X).view(np.ndarray)


# Statistics of columns


def spread_and_largest(X: Matrix, queries: Queries, cuts: IntArray) -> tuple[FloatArray, FloatArray]:
    """Largest max − min within a query, and largest |x|, of each column.

    ``cuts`` splits the queries into blocks of work.
    """
    if is_sparse(X):
        spread, largest = np.zeros(X.shape[1]), np.zeros(X.shape[1])
        sparse_extremes(X.data, X.indices, X.indptr, queries.order, queries.offsets, spread, largest)
        return spread, largest

    if is_streamed(X) and (extremes := X.spread_and_largest(queries)) is not None:
        return extremes  # type: ignore[no-any-return]
    order = queries.order

    def work(first: int, last: int) -> tuple[FloatArray, FloatArray]:
        spread, largest = np.zeros(X.shape[1]), np.zeros(X.shape[1])
        if is_streamed(X):
            for values, offsets in _query_slices(X, queries, first, last):
                dense_extremes(values, np.arange(len(values)), offsets, 0, len(offsets) - 1, spread, largest)
        else:
            dense_extremes(np.asarray(X), order, queries.offsets, first, last, spread, largest)
        return spread, largest

    spreads, magnitudes = zip(*map_blocks(work, cuts), strict=True)
    return np.max(spreads, axis=0), np.max(magnitudes, axis=0)


def _query_slices(X: Matrix, queries: Queries, first: int, last: int) -> Iterator[tuple[AnyArray, IntArray]]:
    """Rows of whole queries in blocks of about 16 MB, with the offsets of the queries in the block."""
    for begin, end in query_ranges(queries.offsets, first, last, CELLS_AT_ONCE // X.shape[1]):
        rows = queries.offsets[begin : end + 1]
        start, stop = int(rows[0]), int(rows[-1])
        yield X[slice(start, stop) if queries.contiguous else queries.order[start:stop]], rows - start


def missing_per_column(X: Matrix) -> IntArray:
    """Number of NaN values of each column."""
    if is_sparse(X):
        return np.bincount(X.indices[np.isnan(X.data)], minlength=X.shape[1])
    return np.asarray(sum(np.isnan(block).sum(axis=0) for _, block in _row_slices(X)))


# Changes of a matrix


def mark_missing(X: Matrix, columns: IntArray) -> None:
    """Replace NaN values of these columns by 1 and the others by 0, in place."""
    if is_sparse(X):
        entries = np.isin(X.indices, columns)
        X.data[entries] = np.isnan(X.data[entries])
    else:
        X[:, columns] = np.isnan(X[:, columns])


def replace_missing(X: Matrix, fill: Callable[[int, FloatArray], FloatArray]) -> None:
    """Replace NaN in column j by the entries of ``fill(j, column)``, in place."""
    if is_sparse(X):
        _replace_stored(X, fill)
        return
    for j in np.flatnonzero(np.isnan(X.min(axis=0))).tolist():
        column = X[:, j].astype(np.float64)
        X[:, j] = np.where(np.isnan(column), fill(j, column), column)


def _replace_stored(X: Matrix, fill: Callable[[int, FloatArray], FloatArray]) -> None:
    entries = np.flatnonzero(np.isnan(X.data))
    if len(entries) == 0:
        return
    entries = entries[np.argsort(X.indices[entries], kind="stable")]
    rows = np.searchsorted(X.indptr, entries, side="right") - 1
    columns, starts = np.unique(X.indices[entries], return_index=True)
    values = X.tocsc()[:, columns]
    for k, missing in enumerate(np.split(np.arange(len(entries)), starts[1:])):
        column, stored = np.zeros(X.shape[0]), slice(values.indptr[k], values.indptr[k + 1])
        column[values.indices[stored]] = values.data[stored]
        X.data[entries[missing]] = fill(int(columns[k]), column)[rows[missing]]


def divide_columns(X: Matrix, scale: FloatArray) -> Matrix:
    """Divide column j of a CSR matrix by ``scale[j]``."""
    return csr(X.data / scale[X.indices], X.indices, X.indptr, X.shape[1])


def replace_columns(X: Matrix, columns: IntArray, values: FloatArray) -> Matrix:
    """Copy of a CSR matrix with other values in some columns."""
    new = scipy.sparse.csr_array(values)
    others = np.where(np.isin(X.indices, columns), 0.0, X.data)
    replaced = csr(new.data, columns[new.indices], new.indptr, X.shape[1])
    return scipy.sparse.csr_array(csr(others, X.indices, X.indptr, X.shape[1]) + replaced)


def pad_columns(X: Matrix, n_columns: int) -> Matrix:
    """Append columns of zeros up to ``n_columns``."""
    if is_streamed(X):
        return PaddedColumns(X, n_columns)
    if is_sparse(X):
        return csr(X.data, X.indices, X.indptr, n_columns)
    return np.pad(X, ((0, 0), (0, n_columns - X.shape[1])))


def stack(parts: Sequence[Matrix]) -> Matrix:
    """Rows of several matrices of the same kind, one after another."""
    return scipy.sparse.vstack(parts) if is_sparse(parts[0]) else np.concatenate(parts)


def sort_each_row(starts: IntArray, columns: AnyArray, values: AnyArray) -> None:
    """Sort the entries of each row by column, in place."""
    rows = csr(values, columns, starts, int(columns.max(initial=0)) + 1)
    rows.sort_indices()
    columns[:], values[:] = rows.indices, rows.data


# Streamed matrices


class StreamedMatrix(ABC):
    """A dense matrix that is not in memory; ``read`` reads some rows and columns.

    The values are stored in blocks of rows, which begin at ``starts``: reading whole blocks is fastest.

    It can be indexed like an array: rows and single values are read into arrays, a selection of columns is a
    streamed matrix, and NumPy functions read all of it.
    """

    ndim = 2

    def __init__(self, starts: IntArray, n_columns: int, dtype: np.dtype[Any]) -> None:
        self.starts, self.dtype = starts, dtype
        self.shape = (int(starts[-1]), n_columns)

    @abstractmethod
    def read(self, first: int, last: int, columns: IntArray) -> AnyArray:
        """Rows first..last of some columns, as a new array in column order."""

    @abstractmethod
    def read_ahead(self, first: int, last: int, columns: IntArray) -> None:
        """Prefetch values that will be read soon."""

    def spread_and_largest(self, queries: Any) -> tuple[FloatArray, FloatArray] | None:
        """Result of :func:`spread_and_largest` if known without reading the values, else None."""
        return None

    def objective(self, data: Any, loss: Any, query_weight: FloatArray | None) -> Any:
        """Objective of a data set with this matrix; None for the one of all streamed matrices."""
        return None

    def take_rows(self, rows: IntArray) -> Any:
        return self[rows]

    def pieces(self, first: int, last: int, most: int) -> Iterator[tuple[int, int]]:
        """Ranges of at most ``most`` rows, each within one block, that cover the rows first..last."""
        block = int(np.searchsorted(self.starts, first, side="right")) - 1
        while first < last:
            begin, end = self.starts[block : block + 2].tolist()
            n_pieces = max(1, -(-(end - begin) // most))
            cuts = np.linspace(begin, end, n_pieces + 1).astype(np.int64)
            for a, b in pairwise(cuts.tolist()):
                if b > first and a < last:
                    yield a, b
            first, block = end, block + 1

    @cached_property
    def value_range(self) -> tuple[float, float]:
        """Minimum and maximum; NaN if a value is missing."""
        blocks = (self.read(a, b, np.arange(self.shape[1])) for a, b in pairwise(self.starts.tolist()))
        ranges = [(block.min(), block.max()) for block in blocks if block.size]
        low, high = np.min(ranges, axis=0)[0], np.max(ranges, axis=0)[1]
        return float(low), float(high)

    @property
    def size(self) -> int:
        return self.shape[0] * self.shape[1]

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        if copy is False:
            raise ValueError("features that are not in memory cannot become an array without a copy")
        return np.asarray(self[:], dtype=dtype)

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, tuple):
            return self._rows(index)
        rows, columns = index
        if isinstance(rows, int | np.integer) and isinstance(columns, int | np.integer):
            return self.read(int(rows), int(rows) + 1, np.array([columns]))[0, 0]
        if isinstance(rows, slice) and rows == slice(None):
            index = np.arange(self.shape[1])[columns]
            if index.ndim == 0:
                return self.read(0, self.shape[0], index[None])[:, 0]
            return SomeColumns(self, index)
        return self._rows(rows)[:, columns]

    def _rows(self, rows: Any) -> AnyArray:
        """Whole rows, in C order."""
        all_columns = np.arange(self.shape[1])
        if isinstance(rows, slice):
            first, last, step = rows.indices(self.shape[0])
            if step == 1:
                return np.ascontiguousarray(self.read(first, max(first, last), all_columns))
        wanted = np.arange(self.shape[0])[rows]
        if wanted.ndim == 0:
            return np.asarray(self.read(int(wanted), int(wanted) + 1, all_columns)[0])
        values = np.empty((len(wanted), self.shape[1]), self.dtype)
        order = np.argsort(wanted, kind="stable")
        for first, last in _runs(wanted[order]):
            some = order[first:last]
            begin = int(wanted[some[0]])
            values[some] = self.read(begin, int(wanted[some[-1]]) + 1, all_columns)[wanted[some] - begin]
        return values


def _runs(ascending: IntArray) -> list[tuple[int, int]]:
    """Split ascending row indices into runs that are read together."""
    gaps = np.diff(ascending) > MAX_GAP_ROWS
    starts = np.union1d(np.flatnonzero(gaps) + 1, np.arange(0, len(ascending), MAX_RUN_ROWS))
    return list(zip(starts.tolist(), [*starts[1:].tolist(), len(ascending)], strict=True))


class SomeColumns(StreamedMatrix):
    """Some columns of a streamed matrix, in this order."""

    def __init__(self, matrix: StreamedMatrix, columns: IntArray) -> None:
        super().__init__(matrix.starts, len(columns), matrix.dtype)
        self._matrix, self._columns = matrix, columns

    def read(self, first: int, last: int, columns: IntArray) -> AnyArray:
        return self._matrix.read(first, last, self._columns[columns])

    def read_ahead(self, first: int, last: int, columns: IntArray) -> None:
        self._matrix.read_ahead(first, last, self._columns[columns])


class RowRange(StreamedMatrix):
    """A contiguous range of rows of a streamed matrix."""

    def __init__(self, matrix: StreamedMatrix, first: int, last: int) -> None:
        super().__init__(
            np.unique(np.clip(matrix.starts, first, last)) - first, matrix.shape[1], matrix.dtype
        )
        self._matrix, self._first = matrix, first

    def read(self, first: int, last: int, columns: IntArray) -> AnyArray:
        return self._matrix.read(self._first + first, self._first + last, columns)

    def read_ahead(self, first: int, last: int, columns: IntArray) -> None:
        self._matrix.read_ahead(self._first + first, self._first + last, columns)


class PaddedColumns(StreamedMatrix):
    """A streamed matrix with columns of zeros appended."""

    def __init__(self, matrix: StreamedMatrix, n_columns: int) -> None:
        super().__init__(matrix.starts, n_columns, matrix.dtype)
        self._matrix = matrix

    def read(self, first: int, last: int, columns: IntArray) -> AnyArray:
        stored = np.flatnonzero(columns < self._matrix.shape[1])
        values = np.zeros((last - first, len(columns)), self.dtype, order="F")
        values[:, stored] = self._matrix.read(first, last, columns[stored])
        return values

    def read_ahead(self, first: int, last: int, columns: IntArray) -> None:
        self._matrix.read_ahead(first, last, columns[columns < self._matrix.shape[1]])
