"""Threads over fixed blocks of work: the same bits for any number of threads.

Blocks depend on the data alone and their results are added in block order; the number of threads decides
only who computes which block. BLAS is held to one thread meanwhile, for the same reason.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from ranksieve._types import IntArray

T = TypeVar("T")

BLOCK_ROWS = 1024
MAX_BLOCKS = 64

_threads: ContextVar[int | None] = ContextVar("ranksieve_threads", default=None)


def available_threads() -> int:
    """``RANKSIEVE_THREADS`` if set, else the cores this process may use."""
    chosen = _threads.get()
    if chosen is not None:
        return chosen
    given = os.environ.get("RANKSIEVE_THREADS", "")
    return max(1, int(given)) if given.isdigit() else _cores()


@contextmanager
def use_threads(n: int | None) -> Iterator[None]:
    """Use ``n`` threads inside the block (None: the default)."""
    token = _threads.set(n)
    try:
        yield
    finally:
        _threads.reset(token)


def split_blocks(offsets: IntArray) -> IntArray:
    """Cut points in 0..len(offsets)-1 that split items into at most 64 runs of about equal, ≥ 1024, rows."""
    rows = int(offsets[-1])
    n_blocks = int(np.clip(rows // BLOCK_ROWS, 1, MAX_BLOCKS))
    cuts = np.searchsorted(offsets, np.linspace(0, rows, n_blocks + 1))
    cuts[0], cuts[-1] = 0, len(offsets) - 1
    return np.unique(cuts)


def map_blocks(work: Callable[[int, int], T], cuts: IntArray) -> list[T]:
    """``[work(start, stop) for each block]``, computed by several threads."""
    blocks = list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))
    n_threads = min(available_threads(), len(blocks))
    if n_threads <= 1:
        return [work(start, stop) for start, stop in blocks]
    shares = [blocks[k::n_threads] for k in range(n_threads)]
    others = [_pool().submit(_run, work, share) for share in shares[1:]]
    done = [_run(work, shares[0]), *(other.result() for other in others)]
    return [done[k % n_threads][k // n_threads] for k in range(len(blocks))]


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Leave the cores to our own blocks."""
    with _blas().limit(limits=1, user_api="blas"):
        yield


def _run(work: Callable[[int, int], T], blocks: list[tuple[int, int]]) -> list[T]:
    return [work(start, stop) for start, stop in blocks]


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=_cores(), thread_name_prefix="ranksieve")


if hasattr(os, "register_at_fork"):  # a forked child inherits the pool but not its threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


@cache
def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()
