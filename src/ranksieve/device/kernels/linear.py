"""Products with the feature matrix, float32 in rows, by sums in float64; and the ranges of features."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def row_products(
    X, w, out, n_rows, n_columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr, ALIGNED: tl.constexpr
):
    """Xw."""
    stride = n_columns // ALIGNED * ALIGNED  # the same number, known to be a multiple
    first = tl.program_id(0).to(tl.int64) * ROWS
    rows, chunk = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    there, cells = first + rows < n_rows, rows[:, None] * stride + chunk[None, :]
    total, here = tl.zeros((ROWS, COLUMNS), tl.float64), X + first * stride
    for start in range(0, n_columns, COLUMNS):
        wanted = start + chunk < n_columns
        x = tl.load(here + start + cells, there[:, None] & wanted[None, :], 0.0)
        total += x.to(tl.float64) * tl.load(w + start + chunk, wanted, 0.0)[None, :]
    tl.store(out + first + rows, tl.sum(total, 1), there)


@triton.jit
def column_sums(X, g, firsts, lasts, out, n_columns, n_rows, CELLS: tl.constexpr, ALIGNED: tl.constexpr):
    """Xᵀg of the rows of each task, in ``n_rows`` sums: of every n_rows-th row, from each of the first on.

    So many rows are read as one run of cells, or some of one row where they are too many.
    """
    stride = n_columns // ALIGNED * ALIGNED  # the same number, known to be a multiple
    task, column = tl.program_id(0), tl.program_id(1) * CELLS
    first, last = tl.load(firsts + task), tl.load(lasts + task)
    cell, total = tl.arange(0, CELLS), tl.zeros((CELLS,), tl.float64)
    row, inside = cell // stride, column + cell < n_rows * stride
    for start in range(first, last, n_rows):
        there = inside & (start + row < last)
        x = tl.load(X + start * stride + column + cell, there, 0.0)
        total += x.to(tl.float64) * tl.load(g + start + row, there, 0.0)
    tl.store(out + task.to(tl.int64) * n_rows * stride + column + cell, total, inside)


@triton.jit
def extremes(
    X, offsets, firsts, lasts, spread, largest, n_columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    """Of the queries of each task the largest max − min of each feature, and its largest |x|."""
    task, columns = tl.program_id(0), tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    rows, wanted = tl.arange(0, ROWS), columns < n_columns
    cells = rows[:, None] * n_columns + columns[None, :]
    widest, size = tl.zeros((COLUMNS,), tl.float32), tl.zeros((COLUMNS,), tl.float32)
    for query in range(tl.load(firsts + task), tl.load(lasts + task)):
        begin, end = tl.load(offsets + query), tl.load(offsets + query + 1)
        low = tl.full((ROWS, COLUMNS), float("inf"), tl.float32)
        high = tl.full((ROWS, COLUMNS), float("-inf"), tl.float32)
        for start in range(begin, end, ROWS):
            real = (start + rows < end)[:, None] & wanted[None, :]
            at = X + start * n_columns + cells
            low = tl.minimum(low, tl.load(at, real, float("inf")))
            high = tl.maximum(high, tl.load(at, real, float("-inf")))
        least, most = tl.min(low, 0), tl.max(high, 0)
        widest = tl.maximum(widest, most - least)
        size = tl.maximum(size, tl.maximum(most, -least))
    place = task.to(tl.int64) * n_columns + columns
    tl.store(spread + place, widest, wanted)
    tl.store(largest + place, size, wanted)


@triton.jit
def columns_in_units(
    X, columns, unit, row_query, offsets, out, n_rows, n_columns, n_chosen, width,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Some columns, less their values in the query's first document, times ``unit``; then zeros."""
    first = tl.program_id(0).to(tl.int64) * ROWS
    rows, place = first + tl.arange(0, ROWS), tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    there, wanted = rows < n_rows, place < n_chosen
    column = tl.load(columns + place, wanted, 0)
    origin = tl.load(offsets + tl.load(row_query + rows, there, 0)) * n_columns
    cells = there[:, None] & wanted[None, :]
    x = tl.load(X + rows[:, None] * n_columns + column[None, :], cells, 0.0)
    x -= tl.load(X + origin[:, None] + column[None, :], cells, 0.0)
    x *= tl.load(unit + place, wanted, 0.0)[None, :]
    tl.store(out + rows[:, None] * width + place[None, :], x.to(out.dtype.element_ty), there[:, None])


@triton.jit
def prepared_sums(X, columns, weights, centre, scale, fill, out, n_rows, stride, n_terms, ROWS: tl.constexpr):
    """Σ_k weight_k · (x_k − centre_k) / scale_k of each row, added in that order; a missing x is its fill."""
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    there, total = rows < n_rows, tl.zeros((ROWS,), tl.float64)
    for k in range(n_terms):
        x = tl.load(X + rows * stride + tl.load(columns + k), there, 0.0).to(tl.float64)
        x = tl.where(x == x, x, tl.load(fill + k))
        total += tl.load(weights + k) * ((x - tl.load(centre + k)) / tl.load(scale + k))
    tl.store(out + rows, total, there)
