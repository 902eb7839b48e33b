"""Running sums within groups of neighbouring entries."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def running_sums(values, starts, out, n_entries, BLOCK: tl.constexpr):
    """Of each row of ``values`` the sum down to each entry, from the start of its group on."""
    group, row = tl.program_id(0), tl.program_id(1).to(tl.int64) * n_entries
    begin, end = tl.load(starts + group), tl.load(starts + group + 1)
    before = tl.zeros((1,), tl.float64)
    for start in range(begin, end, BLOCK):
        at = start + tl.arange(0, BLOCK)
        there = at < end
        x = tl.load(values + row + at, there, 0.0)
        tl.store(out + row + at, tl.cumsum(x, 0) + before, there)
        before += tl.sum(x, 0)
