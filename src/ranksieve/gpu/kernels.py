"""Triton kernels for features, pairs and Hessians; sums are added in a fixed order.

The more relevant document of a pair is called the better one.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def row_products(
    X, w, out, n_rows, n_columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr, ALIGNED: tl.constexpr
):
    """Xw."""
    stride = n_columns // ALIGNED * ALIGNED  # equals n_columns; tells the compiler the alignment
    first = tl.program_id(0).to(tl.int64) * ROWS
    rows, chunk = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    row_mask, cells = first + rows < n_rows, rows[:, None] * stride + chunk[None, :]
    total, block = tl.zeros((ROWS, COLUMNS), tl.float64), X + first * stride
    for start in range(0, n_columns, COLUMNS):
        column_mask = start + chunk < n_columns
        x = tl.load(block + start + cells, row_mask[:, None] & column_mask[None, :], 0.0)
        total += x.to(tl.float64) * tl.load(w + start + chunk, column_mask, 0.0)[None, :]
    tl.store(out + first + rows, tl.sum(total, 1), row_mask)


@triton.jit
def column_sums(X, g, firsts, lasts, out, n_columns, n_rows, CELLS: tl.constexpr, ALIGNED: tl.constexpr):
    """Xᵀg of the rows of each task, in ``n_rows`` partial sums, each over every n_rows-th row.

    A block of ``n_rows`` rows is read as one run of cells, or a part of one row if rows are long.
    """
    stride = n_columns // ALIGNED * ALIGNED  # equals n_columns; tells the compiler the alignment
    task, column = tl.program_id(0), tl.program_id(1) * CELLS
    first, last = tl.load(firsts + task), tl.load(lasts + task)
    cell, total = tl.arange(0, CELLS), tl.zeros((CELLS,), tl.float64)
    row, inside = cell // stride, column + cell < n_rows * stride
    for start in range(first, last, n_rows):
        mask = inside & (start + row < last)
        x = tl.load(X + start * stride + column + cell, mask, 0.0)
        total += x.to(tl.float64) * tl.load(g + start + row, mask, 0.0)
    tl.store(out + task.to(tl.int64) * n_rows * stride + column + cell, total, inside)


@triton.jit
def extremes(
    X, offsets, firsts, lasts, spread, largest, n_columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    """Per task and feature, the largest max − min within a query and the largest |x|."""
    task, columns = tl.program_id(0), tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    rows, column_mask = tl.arange(0, ROWS), columns < n_columns
    cells = rows[:, None] * n_columns + columns[None, :]
    widest, size = tl.zeros((COLUMNS,), tl.float32), tl.zeros((COLUMNS,), tl.float32)
    for query in range(tl.load(firsts + task), tl.load(lasts + task)):
        begin, end = tl.load(offsets + query), tl.load(offsets + query + 1)
        low = tl.full((ROWS, COLUMNS), float("inf"), tl.float32)
        high = tl.full((ROWS, COLUMNS), float("-inf"), tl.float32)
        for start in range(begin, end, ROWS):
            mask = (start + rows < end)[:, None] & column_mask[None, :]
            at = X + start * n_columns + cells
            low = tl.minimum(low, tl.load(at, mask, float("inf")))
            high = tl.maximum(high, tl.load(at, mask, float("-inf")))
        least, most = tl.min(low, 0), tl.max(high, 0)
        widest = tl.maximum(widest, most - least)
        size = tl.maximum(size, tl.maximum(most, -least))
    target = task.to(tl.int64) * n_columns + columns
    tl.store(spread + target, widest, column_mask)
    tl.store(largest + target, size, column_mask)


@triton.jit
def columns_in_units(
    X, columns, unit, row_query, offsets, out, n_rows, n_columns, n_chosen, width,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Columns minus their values in the query's first document, times ``unit``; padded with zeros."""
    first = tl.program_id(0).to(tl.int64) * ROWS
    rows, position = first + tl.arange(0, ROWS), tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    row_mask, column_mask = rows < n_rows, position < n_chosen
    column = tl.load(columns + position, column_mask, 0)
    origin = tl.load(offsets + tl.load(row_query + rows, row_mask, 0)) * n_columns
    cells = row_mask[:, None] & column_mask[None, :]
    x = tl.load(X + rows[:, None] * n_columns + column[None, :], cells, 0.0)
    x -= tl.load(X + origin[:, None] + column[None, :], cells, 0.0)
    x *= tl.load(unit + position, column_mask, 0.0)[None, :]
    tl.store(out + rows[:, None] * width + position[None, :], x.to(out.dtype.element_ty), row_mask[:, None])


@triton.jit
def prepared_sums(X, columns, weights, centre, scale, fill, out, n_rows, stride, n_terms, ROWS: tl.constexpr):
    """Σ_k weight_k · (x_k − centre_k) / scale_k of each row, added in that order; a missing x is ``fill``."""
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    mask, total = rows < n_rows, tl.zeros((ROWS,), tl.float64)
    for k in range(n_terms):
        x = tl.load(X + rows * stride + tl.load(columns + k), mask, 0.0).to(tl.float64)
        x = tl.where(x == x, x, tl.load(fill + k))
        total += tl.load(weights + k) * ((x - tl.load(centre + k)) / tl.load(scale + k))
    tl.store(out + rows, total, mask)


@triton.jit
def documents(offsets, task_query, task_row, ROWS: tl.constexpr):
    """The query of a task with its begin and end; the rows of the task, and their mask."""
    task = tl.program_id(0)
    query, first = tl.load(task_query + task), tl.load(task_row + task)
    begin, end = tl.load(offsets + query), tl.load(offsets + query + 1)
    i = first + tl.arange(0, ROWS)
    return query, begin, end, i, i < end


@triton.jit
def slacks(s_i, s_j, code_i, code_j, mask_j):
    """ξ = max(0, 1 − (s_better − s_worse)) of each pair, else 0; and whether i is the better document."""
    i_is_better = code_i[:, None] > code_j[None, :]
    difference = s_i[:, None] - s_j[None, :]
    xi = 1.0 - tl.where(i_is_better, difference, -difference)
    pair = (code_i[:, None] != code_j[None, :]) & mask_j[None, :]
    return tl.where(pair & (xi > 0.0), xi, 0.0), i_is_better


@triton.jit
def pair_weights(
    document_weight, table, code_i, code_j, j, mask_j, n_levels,
    HAS_WEIGHTS: tl.constexpr, HAS_TABLE: tl.constexpr,
):  # fmt: skip
    """Weights of pairs without the factors of i and of the query: [1 or rows, documents j]."""
    weight = tl.full((1, j.shape[0]), 1.0, document_weight.dtype.element_ty)
    if HAS_WEIGHTS:
        weight = tl.load(document_weight + j, mask_j, 0.0)[None, :]
    if HAS_TABLE:
        weight = weight * tl.load(table + code_i[:, None] * n_levels + code_j[None, :])
    return weight


@triton.jit
def squared_hinge(
    s, code, document_weight, table, n_levels, offsets, query_weight, task_query, task_row, gradient, sums,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, HAS_WEIGHTS: tl.constexpr, HAS_TABLE: tl.constexpr,
):  # fmt: skip
    """The gradient of Σ ωξ² in the scores; per task, Σ ωξ, Σ ωξ² and Σ |gradient|."""
    query, begin, end, i, mask_i = documents(offsets, task_query, task_row, ROWS)
    s_i, code_i = tl.load(s + i, mask_i, 0.0), tl.load(code + i, mask_i, 0)
    slack = tl.zeros((ROWS, COLUMNS), tl.float64)
    square = tl.zeros((ROWS, COLUMNS), tl.float64)
    signed_slack = tl.zeros((ROWS, COLUMNS), tl.float64)
    for start in range(begin, end, COLUMNS):
        j = start + tl.arange(0, COLUMNS)
        mask_j = j < end
        s_j, code_j = tl.load(s + j, mask_j, 0.0), tl.load(code + j, mask_j, 0)
        xi, i_is_better = slacks(s_i, s_j, code_i, code_j, mask_j)
        weighted_xi = xi
        if HAS_WEIGHTS or HAS_TABLE:
            weighted_xi = xi * pair_weights(
                document_weight, table, code_i, code_j, j, mask_j, n_levels, HAS_WEIGHTS, HAS_TABLE
            )
        slack += weighted_xi
        square += weighted_xi * xi
        signed_slack += tl.where(i_is_better, -weighted_xi, weighted_xi)
    weight = tl.full((ROWS,), 1.0, tl.float64) * tl.load(query_weight + query)
    if HAS_WEIGHTS:
        weight = weight * tl.load(document_weight + i, mask_i, 0.0)
    g = 2.0 * weight * tl.sum(signed_slack, 1)
    tl.store(gradient + i, g, mask_i)
    weight = tl.where(mask_i, weight, 0.0)
    task = tl.program_id(0)
    tl.store(sums + 3 * task, 0.5 * tl.sum(weight * tl.sum(slack, 1), 0))
    tl.store(sums + 3 * task + 1, 0.5 * tl.sum(weight * tl.sum(square, 1), 0))
    tl.store(sums + 3 * task + 2, tl.sum(tl.where(mask_i, tl.abs(g), 0.0), 0))


@triton.jit
def squared_hinge_along(
    s, d, step, code, document_weight, table, n_levels, offsets, query_weight, task_query, task_row, sums,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, HAS_WEIGHTS: tl.constexpr, HAS_TABLE: tl.constexpr,
):  # fmt: skip
    """Both derivatives of Σ ωξ² along d at s + step·d, per task."""
    query, begin, end, i, mask_i = documents(offsets, task_query, task_row, ROWS)
    mu = tl.load(step)
    d_i, code_i = tl.load(d + i, mask_i, 0.0), tl.load(code + i, mask_i, 0)
    s_i = tl.load(s + i, mask_i, 0.0) + mu * d_i
    slope = tl.zeros((ROWS, COLUMNS), tl.float64)
    curvature = tl.zeros((ROWS, COLUMNS), tl.float64)
    for start in range(begin, end, COLUMNS):
        j = start + tl.arange(0, COLUMNS)
        mask_j = j < end
        d_j, code_j = tl.load(d + j, mask_j, 0.0), tl.load(code + j, mask_j, 0)
        xi, i_is_better = slacks(s_i, tl.load(s + j, mask_j, 0.0) + mu * d_j, code_i, code_j, mask_j)
        weight = pair_weights(
            document_weight, table, code_i, code_j, j, mask_j, n_levels, HAS_WEIGHTS, HAS_TABLE
        )
        difference = d_i[:, None] - d_j[None, :]
        slope += weight * xi * tl.where(i_is_better, -difference, difference)
        curvature += tl.where(xi > 0.0, weight * difference * difference, 0.0)
    weight_i = tl.where(mask_i, 1.0, 0.0).to(tl.float64) * tl.load(query_weight + query)
    if HAS_WEIGHTS:
        weight_i = weight_i * tl.load(document_weight + i, mask_i, 0.0)
    task = tl.program_id(0)
    tl.store(sums + 2 * task, tl.sum(weight_i * tl.sum(slope, 1), 0))
    tl.store(sums + 2 * task + 1, tl.sum(weight_i * tl.sum(curvature, 1), 0))


@triton.jit
def hessian_product(
    s, v, code, document_weight, table, n_levels, offsets, query_weight, task_query, task_row, product,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, HAS_WEIGHTS: tl.constexpr, HAS_TABLE: tl.constexpr,
):  # fmt: skip
    """Sv, S the generalised Hessian of Σ ωξ² in the scores."""
    query, begin, end, i, mask_i = documents(offsets, task_query, task_row, ROWS)
    s_i, v_i, code_i = tl.load(s + i, mask_i, 0.0), tl.load(v + i, mask_i, 0.0), tl.load(code + i, mask_i, 0)
    total = tl.zeros((ROWS, COLUMNS), tl.float64)
    for start in range(begin, end, COLUMNS):
        j = start + tl.arange(0, COLUMNS)
        mask_j = j < end
        v_j, code_j = tl.load(v + j, mask_j, 0.0), tl.load(code + j, mask_j, 0)
        xi, _i_is_better = slacks(s_i, tl.load(s + j, mask_j, 0.0), code_i, code_j, mask_j)
        weight = pair_weights(
            document_weight, table, code_i, code_j, j, mask_j, n_levels, HAS_WEIGHTS, HAS_TABLE
        )
        total += tl.where(xi > 0.0, weight * (v_i[:, None] - v_j[None, :]), 0.0)
    weight_i = tl.full((ROWS,), 2.0, tl.float64) * tl.load(query_weight + query)
    if HAS_WEIGHTS:
        weight_i = weight_i * tl.load(document_weight + i, mask_i, 0.0)
    tl.store(product + i, weight_i * tl.sum(total, 1), mask_i)


@triton.jit
def total_weights(
    code, document_weight, table, n_levels, offsets, query_weight, task_query, task_row, sums,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, HAS_WEIGHTS: tl.constexpr, HAS_TABLE: tl.constexpr,
):  # fmt: skip
    """Σ ω over the pairs of each task."""
    query, begin, end, i, mask_i = documents(offsets, task_query, task_row, ROWS)
    code_i, total = tl.load(code + i, mask_i, 0), tl.zeros((ROWS, COLUMNS), tl.float64)
    for start in range(begin, end, COLUMNS):
        j = start + tl.arange(0, COLUMNS)
        mask_j = j < end
        code_j = tl.load(code + j, mask_j, 0)
        weight = pair_weights(
            document_weight, table, code_i, code_j, j, mask_j, n_levels, HAS_WEIGHTS, HAS_TABLE
        )
        pair = (code_i[:, None] != code_j[None, :]) & mask_j[None, :] & mask_i[:, None]
        total += tl.where(pair, weight, 0.0)
    weight_i = tl.full((ROWS,), 0.5, tl.float64) * tl.load(query_weight + query)
    if HAS_WEIGHTS:
        weight_i = weight_i * tl.load(document_weight + i, mask_i, 0.0)
    tl.store(sums + tl.program_id(0), tl.sum(weight_i * tl.sum(total, 1), 0))


@triton.jit
def hessian_blocks(
    V, stride, left, right, s, code, document_weight, table, n_levels, offsets, query_weight,
    task_query, task_row, firsts, lasts, out,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, WIDTH: tl.constexpr, WHOLE: tl.constexpr,
    HAS_WEIGHTS: tl.constexpr, HAS_TABLE: tl.constexpr,
):  # fmt: skip
    """The blocks (left, right) of columns of VᵀSV, summed over the tasks firsts..lasts of each program.

    If ``WHOLE``, each task has all documents of its query.
    """
    program, block = tl.program_id(0), tl.program_id(1)
    column = tl.arange(0, WIDTH)
    a, b = tl.load(left + block) * WIDTH + column, tl.load(right + block) * WIDTH + column
    total = tl.zeros((WIDTH, WIDTH), tl.float32)
    for task in range(tl.load(firsts + program), tl.load(lasts + program)):
        query, first = tl.load(task_query + task), tl.load(task_row + task)
        begin, end = tl.load(offsets + query), tl.load(offsets + query + 1)
        i, origin = first + tl.arange(0, ROWS), tl.load(s + begin)
        mask_i = i < end
        s_i, code_i = (tl.load(s + i, mask_i, 0.0) - origin).to(tl.float32), tl.load(code + i, mask_i, 0)
        rows_i = V + first * stride + tl.arange(0, ROWS)[:, None] * stride
        V_b = tl.load(rows_i + b[None, :], mask_i[:, None], 0.0)
        partner_sums, degree = tl.zeros((ROWS, WIDTH), tl.float32), tl.zeros((ROWS,), tl.float32)
        if WHOLE:
            xi, _i_is_better = slacks(s_i, s_i, code_i, code_i, mask_i)
            active = (xi > 0.0).to(tl.float32)
            if HAS_WEIGHTS or HAS_TABLE:
                active *= pair_weights(
                    document_weight, table, code_i, code_i, i, mask_i, n_levels, HAS_WEIGHTS, HAS_TABLE
                )
            partner_sums = tl.dot(active.to(V_b.dtype), V_b, partner_sums, input_precision="tf32x3")
            degree = tl.sum(active, 1)
        else:
            for start in range(begin, end, COLUMNS):
                j = start + tl.arange(0, COLUMNS)
                mask_j = j < end
                s_j = (tl.load(s + j, mask_j, 0.0) - origin).to(tl.float32)
                code_j = tl.load(code + j, mask_j, 0)
                xi, _i_is_better = slacks(s_i, s_j, code_i, code_j, mask_j)
                active = (xi > 0.0).to(tl.float32)
                if HAS_WEIGHTS or HAS_TABLE:
                    active *= pair_weights(
                        document_weight, table, code_i, code_j, j, mask_j, n_levels, HAS_WEIGHTS, HAS_TABLE
                    )
                rows_j = V + start * stride + tl.arange(0, COLUMNS)[:, None] * stride
                V_j = tl.load(rows_j + b[None, :], mask_j[:, None], 0.0)
                partner_sums = tl.dot(active.to(V_j.dtype), V_j, partner_sums, input_precision="tf32x3")
                degree += tl.sum(active, 1)
        length = (end - begin).to(tl.float32)  # sums are divided by it to avoid overflow in float16
        weight_i = tl.where(mask_i, 2.0, 0.0) / length
        if HAS_WEIGHTS:
            weight_i = weight_i * tl.load(document_weight + i, mask_i, 0.0)
        N = weight_i[:, None] * (degree[:, None] * V_b.to(tl.float32) - partner_sums)
        V_a = tl.load(rows_i + a[None, :], mask_i[:, None], 0.0)
        part = tl.dot(tl.trans(V_a), N.to(V_a.dtype), input_precision="tf32x3")
        total += (length * tl.load(query_weight + query)) * part
    target = (program * tl.num_programs(1) + block).to(tl.int64) * WIDTH * WIDTH
    tl.store(out + target + column[:, None] * WIDTH + column[None, :], total)
