"""How the C library handles memory that is freed."""

from __future__ import annotations

from functools import cache

import numpy as np

BLOCK = 31 * 2**20  # bytes; from 32 MB on glibc learns nothing


@cache
def reuse_freed_memory() -> None:
    """Let freed arrays of up to 31 MB be used again instead of going back to the system, page by page.

    glibc hands a block back at once unless it has seen one as large freed before, so it is shown one here:
    the block is asked for and freed, and never touched. Other C libraries do as they like.
    """
    np.empty(BLOCK, dtype=np.uint8)
