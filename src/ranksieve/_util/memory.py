"""How the C library handles memory that is freed."""

from __future__ import annotations

import ctypes
import os
from functools import cache

import numpy as np

BLOCK = 31 * 2**20  # bytes; from 32 MB on glibc learns nothing
KEPT = 4 * BLOCK  # bytes that may lie unused before they go back to the system
FIXED = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_")  # with one of these glibc does not learn at all
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # names that glibc's malloc.h has for what mallopt sets


@cache
def reuse_freed_memory() -> None:
    """Let freed arrays of up to 31 MB be used again instead of going back to the system, page by page.

    glibc hands a block back at once unless it has seen one as large freed before, so it is shown one here:
    the block is asked for and freed, and never touched. Where the environment forbids it to learn, as Dask
    does for its workers, it is told: evaluating a loss takes half the time then. Other C libraries do as they
    like.
    """
    if any(name in os.environ for name in FIXED):
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
        if mallopt is not None:
            mallopt(M_MMAP_THRESHOLD, BLOCK)
            mallopt(M_TRIM_THRESHOLD, KEPT)
    np.empty(BLOCK, dtype=np.uint8)
