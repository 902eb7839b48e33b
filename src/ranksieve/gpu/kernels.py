"""Triton kernels for features, pairs and Hessians; sums have a fixed order."""

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


@triton.jit
def documents(offsets, task_query, task_row, ROWS: tl.constexpr):
    """The query of a program and where it begins and ends; the rows of the program, and which are real."""
    task = tl.program_id(0)
    query, first = tl.load(task_query + task), tl.load(task_row + task)
    begin, end = tl.load(offsets + query), tl.load(offsets + query + 1)
    i = first + tl.arange(0, ROWS)
    return query, begin, end, i, i < end


@triton.jit
def slacks(s_i, s_j, code_i, code_j, there):
    """ξ = max(0, 1 − (s_upper − s_lower)) of each pair, 0 where there is none; and whether i is the upper."""
    upper = code_i[:, None] > code_j[None, :]
    ahead = s_i[:, None] - s_j[None, :]
    xi = 1.0 - tl.where(upper, ahead, -ahead)
    pair = (code_i[:, None] != code_j[None, :]) & there[None, :]
    return tl.where(pair & (xi > 0.0), xi, 0.0), upper


@triton.jit
def pair_weights(
    mass, table, code_i, code_j, j, there, n_levels, HAS_MASS: tl.constexpr, HAS_TABLE: tl.constexpr
):
    """What a pair weighs but for the weights of i and of the query: [1 or rows, documents j]."""
    weight = tl.full((1, j.shape[0]), 1.0, mass.dtype.element_ty)
    if HAS_MASS:
        weight = tl.load(mass + j, there, 0.0)[None, :]
    if HAS_TABLE:
        weight = weight * tl.load(table + code_i[:, None] * n_levels + code_j[None, :])
    return weight


@triton.jit
def squared_hinge(
    s, code, mass, table, n_levels, offsets, query_weight, task_query, task_row, gradient, sums,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, HAS_MASS: tl.constexpr, HAS_TABLE: tl.constexpr,
):  # fmt: skip
    """The gradient of Σ ωξ² in the scores; of each task Σ ωξ, Σ ωξ² and Σ |gradient|."""
    query, begin, end, i, mine = documents(offsets, task_query, task_row, ROWS)
    s_i, code_i = tl.load(s + i, mine, 0.0), tl.load(code + i, mine, 0)
    slack = tl.zeros((ROWS, COLUMNS), tl.float64)
    square = tl.zeros((ROWS, COLUMNS), tl.float64)
    push = tl.zeros((ROWS, COLUMNS), tl.float64)
    for start in range(begin, end, COLUMNS):
        j = start + tl.arange(0, COLUMNS)
        there = j < end
        s_j, code_j = tl.load(s + j, there, 0.0), tl.load(code + j, there, 0)
        xi, upper = slacks(s_i, s_j, code_i, code_j, there)
        weighed = xi
        if HAS_MASS or HAS_TABLE:
            weighed = xi * pair_weights(mass, table, code_i, code_j, j, there, n_levels, HAS_MASS, HAS_TABLE)
        slack += weighed
        square += weighed * xi
        push += tl.where(upper, -weighed, weighed)
    weight = tl.full((ROWS,), 1.0, tl.float64) * tl.load(query_weight + query)
    if HAS_MASS:
        weight = weight * tl.load(mass + i, mine, 0.0)
    g = 2.0 * weight * tl.sum(push, 1)
    tl.store(gradient + i, g, mine)
    weight = tl.where(mine, weight, 0.0)
    task = tl.program_id(0)
    tl.store(sums + 3 * task, 0.5 * tl.sum(weight * tl.sum(slack, 1), 0))
    tl.store(sums + 3 * task + 1, 0.5 * tl.sum(weight * tl.sum(square, 1), 0))
    tl.store(sums + 3 * task + 2, tl.sum(tl.where(mine, tl.abs(g), 0.0), 0))


@triton.jit
def squared_hinge_along(
    s, d, step, code, mass, table, n_levels, offsets, query_weight, task_query, task_row, sums,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, HAS_MASS: tl.constexpr, HAS_TABLE: tl.constexpr,
):  # fmt: skip
    """Of each task both derivatives of Σ ωξ² along d, at s + step·d."""
    query, begin, end, i, mine = documents(offsets, task_query, task_row, ROWS)
    mu = tl.load(step)
    d_i, code_i = tl.load(d + i, mine, 0.0), tl.load(code + i, mine, 0)
    s_i = tl.load(s + i, mine, 0.0) + mu * d_i
    slope = tl.zeros((ROWS, COLUMNS), tl.float64)
    curvature = tl.zeros((ROWS, COLUMNS), tl.float64)
    for start in range(begin, end, COLUMNS):
        j = start + tl.arange(0, COLUMNS)
        there = j < end
        d_j, code_j = tl.load(d + j, there, 0.0), tl.load(code + j, there, 0)
        xi, upper = slacks(s_i, tl.load(s + j, there, 0.0) + mu * d_j, code_i, code_j, there)
        weight = pair_weights(mass, table, code_i, code_j, j, there, n_levels, HAS_MASS, HAS_TABLE)
        gap = d_i[:, None] - d_j[None, :]
        slope += weight * xi * tl.where(upper, -gap, gap)
        curvature += tl.where(xi > 0.0, weight * gap * gap, 0.0)
    weight_i = tl.where(mine, 1.0, 0.0).to(tl.float64) * tl.load(query_weight + query)
    if HAS_MASS:
        weight_i = weight_i * tl.load(mass + i, mine, 0.0)
    task = tl.program_id(0)
    tl.store(sums + 2 * task, tl.sum(weight_i * tl.sum(slope, 1), 0))
    tl.store(sums + 2 * task + 1, tl.sum(weight_i * tl.sum(curvature, 1), 0))


@triton.jit
def hessian_product(
    s, v, code, mass, table, n_levels, offsets, query_weight, task_query, task_row, product,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, HAS_MASS: tl.constexpr, HAS_TABLE: tl.constexpr,
):  # fmt: skip
    """Sv, S the generalised Hessian of Σ ωξ² in the scores."""
    query, begin, end, i, mine = documents(offsets, task_query, task_row, ROWS)
    s_i, v_i, code_i = tl.load(s + i, mine, 0.0), tl.load(v + i, mine, 0.0), tl.load(code + i, mine, 0)
    total = tl.zeros((ROWS, COLUMNS), tl.float64)
    for start in range(begin, end, COLUMNS):
        j = start + tl.arange(0, COLUMNS)
        there = j < end
        v_j, code_j = tl.load(v + j, there, 0.0), tl.load(code + j, there, 0)
        xi, _upper = slacks(s_i, tl.load(s + j, there, 0.0), code_i, code_j, there)
        weight = pair_weights(mass, table, code_i, code_j, j, there, n_levels, HAS_MASS, HAS_TABLE)
        total += tl.where(xi > 0.0, weight * (v_i[:, None] - v_j[None, :]), 0.0)
    weight_i = tl.full((ROWS,), 2.0, tl.float64) * tl.load(query_weight + query)
    if HAS_MASS:
        weight_i = weight_i * tl.load(mass + i, mine, 0.0)
    tl.store(product + i, weight_i * tl.sum(total, 1), mine)


@triton.jit
def total_weights(
    code, mass, table, n_levels, offsets, query_weight, task_query, task_row, sums,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, HAS_MASS: tl.constexpr, HAS_TABLE: tl.constexpr,
):  # fmt: skip
    """Σ ω over the pairs of each task."""
    query, begin, end, i, mine = documents(offsets, task_query, task_row, ROWS)
    code_i, total = tl.load(code + i, mine, 0), tl.zeros((ROWS, COLUMNS), tl.float64)
    for start in range(begin, end, COLUMNS):
        j = start + tl.arange(0, COLUMNS)
        there = j < end
        code_j = tl.load(code + j, there, 0)
        weight = pair_weights(mass, table, code_i, code_j, j, there, n_levels, HAS_MASS, HAS_TABLE)
        pair = (code_i[:, None] != code_j[None, :]) & there[None, :] & mine[:, None]
        total += tl.where(pair, weight, 0.0)
    weight_i = tl.full((ROWS,), 0.5, tl.float64) * tl.load(query_weight + query)
    if HAS_MASS:
        weight_i = weight_i * tl.load(mass + i, mine, 0.0)
    tl.store(sums + tl.program_id(0), tl.sum(weight_i * tl.sum(total, 1), 0))


@triton.jit
def hessian_blocks(
    V, stride, left, right, s, code, mass, table, n_levels, offsets, query_weight, task_query, task_row,
    firsts, lasts, out,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, WIDTH: tl.constexpr, WHOLE: tl.constexpr,
    HAS_MASS: tl.constexpr, HAS_TABLE: tl.constexpr,
):  # fmt: skip
    """The blocks (left, right) of columns of VᵀSV, summed over the tasks firsts..lasts of each program.

    Where lists are ``WHOLE``, a task has all documents of its query.
    """
    program, block = tl.program_id(0), tl.program_id(1)
    wide = tl.arange(0, WIDTH)
    a, b = tl.load(left + block) * WIDTH + wide, tl.load(right + block) * WIDTH + wide
    total = tl.zeros((WIDTH, WIDTH), tl.float32)
    for task in range(tl.load(firsts + program), tl.load(lasts + program)):
        query, first = tl.load(task_query + task), tl.load(task_row + task)
        begin, end = tl.load(offsets + query), tl.load(offsets + query + 1)
        i, zero = first + tl.arange(0, ROWS), tl.load(s + begin)
        mine = i < end
        s_i, code_i = (tl.load(s + i, mine, 0.0) - zero).to(tl.float32), tl.load(code + i, mine, 0)
        rows_i = V + first * stride + tl.arange(0, ROWS)[:, None] * stride
        V_b = tl.load(rows_i + b[None, :], mine[:, None], 0.0)
        near, degree = tl.zeros((ROWS, WIDTH), tl.float32), tl.zeros((ROWS,), tl.float32)
        if WHOLE:
            xi, _upper = slacks(s_i, s_i, code_i, code_i, mine)
            active = (xi > 0.0).to(tl.float32)
            if HAS_MASS or HAS_TABLE:
                active *= pair_weights(mass, table, code_i, code_i, i, mine, n_levels, HAS_MASS, HAS_TABLE)
            near = tl.dot(active.to(V_b.dtype), V_b, near, input_precision="tf32x3")
            degree = tl.sum(active, 1)
        else:
            for start in range(begin, end, COLUMNS):
                j = start + tl.arange(0, COLUMNS)
                there = j < end
                s_j, code_j = (tl.load(s + j, there, 0.0) - zero).to(tl.float32), tl.load(code + j, there, 0)
                xi, _upper = slacks(s_i, s_j, code_i, code_j, there)
                active = (xi > 0.0).to(tl.float32)
                if HAS_MASS or HAS_TABLE:
                    active *= pair_weights(
                        mass, table, code_i, code_j, j, there, n_levels, HAS_MASS, HAS_TABLE
                    )
                rows_j = V + start * stride + tl.arange(0, COLUMNS)[:, None] * stride
                V_j = tl.load(rows_j + b[None, :], there[:, None], 0.0)
                near = tl.dot(active.to(V_j.dtype), V_j, near, input_precision="tf32x3")
                degree += tl.sum(active, 1)
        length = (end - begin).to(tl.float32)  # by which sums are divided, so that short numbers hold them
        weight_i = tl.where(mine, 2.0, 0.0) / length
        if HAS_MASS:
            weight_i = weight_i * tl.load(mass + i, mine, 0.0)
        N = weight_i[:, None] * (degree[:, None] * V_b.to(tl.float32) - near)
        V_a = tl.load(rows_i + a[None, :], mine[:, None], 0.0)
        part = tl.dot(tl.trans(V_a), N.to(V_a.dtype), input_precision="tf32x3")
        total += (length * tl.load(query_weight + query)) * part
    place = (program * tl.num_programs(1) + block).to(tl.int64) * WIDTH * WIDTH
    tl.store(out + place + wide[:, None] * WIDTH + wide[None, :], total)
