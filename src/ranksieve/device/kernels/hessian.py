"""Blocks of the Hessian, by matrix units: VᵀSV, V some columns of X and S = 2(D − A) of all active pairs.

S does not see what is the same for all documents of a query, so V holds differences from the query's first
document, in units of their ranges: they keep their digits in the short numbers that matrix units take.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ranksieve.device.kernels.pairs import pair_weights, slacks


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
