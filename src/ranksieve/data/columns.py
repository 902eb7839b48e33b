"""A feature matrix column by column, as dense arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import DTypeLike

from ranksieve._parallel import map_blocks
from ranksieve._types import AnyArray, FloatArray, IntArray, Matrix
from ranksieve.data.matrix import is_sparse, is_streamed

COLUMNS_AT_ONCE = 64
CELLS_AT_ONCE = 2**21  # 16 MB of float64
T = TypeVar("T")


def dense_columns(X: Matrix, dtype: DTypeLike = np.float64) -> Iterator[AnyArray]:
    """Every column in turn, as a contiguous array."""
    by_column = X.tocsc() if is_sparse(X) else X
    step = COLUMNS_AT_ONCE
    if is_streamed(X):
        step = max(1, min(step, CELLS_AT_ONCE // X.shape[0]))
    for first in range(0, X.shape[1], step):
        block = by_column[:, first : first + step]
        yield from np.array(_as_array(block).T, dtype=dtype, order="C")


def _as_array(block: Matrix) -> AnyArray:
    """A part of a matrix as an array."""
    return np.asarray(block.toarray() if is_sparse(block) else block)


def column_blocks(X: Matrix) -> Iterator[tuple[slice, FloatArray]]:
    """All columns as own float64 arrays, about 16 MB at a time."""
    read, cuts = _by_columns(X)
    for first, last in pairwise(cuts.tolist()):
        yield slice(first, last), read(first, last)


def map_column_blocks(work: Callable[[slice, FloatArray], T], X: Matrix) -> list[T]:
    """``work`` of each of :func:`column_blocks`, by several threads where X is in memory."""
    if is_streamed(X):
        return [work(columns, block) for columns, block in column_blocks(X)]
    read, cuts = _by_columns(X)
    return map_blocks(lambda first, last: work(slice(first, last), read(first, last)), cuts)


def _by_columns(X: Matrix) -> tuple[Callable[[int, int], FloatArray], IntArray]:
    """A function that gives some columns as an own float64 array, and where such blocks begin and end."""
    by_column = X.tocsc() if is_sparse(X) else X
    step = max(1, CELLS_AT_ONCE // X.shape[0])

    def read(first: int, last: int) -> FloatArray:
        return np.array(_as_array(by_column[:, first:last]), dtype=np.float64, order="C")

    return read, np.append(np.arange(0, X.shape[1], step), X.shape[1])


def column_reader(X: Matrix) -> Callable[[int], AnyArray]:
    """A function that gives single columns as arrays; a sparse matrix is sorted by column once."""
    if not is_sparse(X):
        return lambda j: np.asarray(X[:, j])
    by_column = X.tocsc()
    return lambda j: np.asarray(by_column[:, [j]].toarray().ravel())
