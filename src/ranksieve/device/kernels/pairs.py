"""Sums over the pairs of each query, all of which are looked at: in float64, a block of rows per program.

A program has some documents i of one query, and goes through all documents j of it. Every pair is met from
either side, so one from each side gives the gradient without a sum across programs, and sums count twice.
"""

from __future__ import annotations

import triton
import triton.language as tl


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
