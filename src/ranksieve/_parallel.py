"""Threads over fixed blocks of work: the same bits for any number of threads.

Blocks depend on the data alone and their results are added in block order; the number of threads decides
only who computes which block. BLAS is held to one thread meanwhile, for the same reason.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import cache, partial
from itertools import pairwise
from threading import Condition, Lock, local
from typing import TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from ranksieve._types import FloatArray, IntArray

T = TypeVar("T")

BLOCK_ROWS = 12288
MAX_BLOCKS = 64
LEAST_SHARE = 2  # blocks: with fewer a thread costs more time than it saves

_threads: ContextVar[int | None] = ContextVar("ranksieve_threads", default=None)
_here = local()  # .busy while this thread works on a block


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
    """Cuts in 0..len(offsets)-1 that split items into at most 64 runs of about equal, ≥ 12,288, rows."""
    rows = int(offsets[-1])
    n_blocks = int(np.clip(rows // BLOCK_ROWS, 1, MAX_BLOCKS))
    cuts = np.searchsorted(offsets, np.linspace(0, rows, n_blocks + 1))
    cuts[0], cuts[-1] = 0, len(offsets) - 1
    return np.unique(cuts)


def map_blocks(work: Callable[[int, int], T], cuts: IntArray) -> list[T]:
    """``[work(start, stop) for each block]``, computed by several threads.

    Called from within a block it uses no further threads: those of the pool may all be waiting for this one.
    """
    blocks = list(pairwise(cuts.tolist()))
    numbered = iter(enumerate(blocks))  # from which threads take the next one as they get free
    shares = _in_threads([partial(_one_by_one, work, numbered)] * _useful_threads(len(blocks)))
    done = {number: result for share in shares for number, result in share}
    return [done[number] for number in range(len(blocks))]


def fold_blocks(work: Callable[[int, int], T], cuts: IntArray, add: Callable[[T], None]) -> None:
    """``add(work(start, stop))`` for each block, computed by several threads and added in block order.

    A thread waits with its result for the blocks before, so that there is never more than one per thread.
    """
    numbered = iter(enumerate(pairwise(cuts.tolist())))
    turn, n_added, failed = Condition(), 0, False

    def share() -> None:
        nonlocal n_added, failed
        try:
            for number, (start, stop) in numbered:
                result = work(start, stop)
                with turn:
                    while n_added < number and not failed:
                        turn.wait()
                    if failed:
                        return
                    add(result)
                    n_added += 1
                    turn.notify_all()
        except BaseException:
            with turn:
                failed = True
                turn.notify_all()
            raise

    _in_threads([share] * _useful_threads(len(cuts) - 1))


def sum_blocks(work: Callable[[int, int], FloatArray], cuts: IntArray) -> FloatArray:
    """The sum of ``work(start, stop)`` over the blocks, from the first to the last."""
    sums: list[FloatArray] = []

    def add(block: FloatArray) -> None:
        if sums:
            sums[0] += block
        else:
            sums.append(np.array(block, dtype=np.float64))

    fold_blocks(work, cuts, add)
    return sums[0]


def map_shares(work: Callable[[int, int], None], cuts: IntArray) -> None:
    """Call ``work(start, stop)`` for one long run of blocks per thread.

    For compiled work that leaves its results item by item, so that it does not matter where it is cut:
    threads need Python's lock only once.
    """
    n, last = _useful_threads(len(cuts) - 1), len(cuts) - 1
    blocks = [last * k // n for k in range(n + 1)]
    _in_threads([partial(work, a, b) for a, b in pairwise(cuts[blocks].tolist())])


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Leave the cores to our own blocks.

    The limit holds for the whole process, so it is set when the first thread comes in and lifted when the
    last one leaves: no thread takes it away from another, and none leaves it behind.
    """
    _blas_limit.enter()
    try:
        yield
    finally:
        _blas_limit.leave()


class _BlasLimit:
    """One limit that several threads hold at a time.

    A thread of its own sets and lifts it, because threadpoolctl obeys only the thread that set a limit first.
    """

    def __init__(self) -> None:
        self._lock, self._holders, self._limit = Lock(), 0, ExitStack()

    def enter(self) -> None:
        with self._lock:
            if self._holders == 0:
                _limiter().submit(
                    lambda: self._limit.enter_context(_blas().limit(limits=1, user_api="blas"))
                ).result()
            self._holders += 1

    def leave(self) -> None:
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                _limiter().submit(self._limit.close).result()


_blas_limit = _BlasLimit()


def _useful_threads(n_blocks: int) -> int:
    """How many threads to use; one from within a block."""
    return 1 if getattr(_here, "busy", False) else max(1, min(available_threads(), n_blocks // LEAST_SHARE))


def _one_by_one(
    work: Callable[[int, int], T], blocks: Iterator[tuple[int, tuple[int, int]]]
) -> list[tuple[int, T]]:
    return [(number, work(start, stop)) for number, (start, stop) in blocks]


def _in_threads(works: Sequence[Callable[[], T]]) -> list[T]:
    """What each returns; the first is done here, the others in threads of the pool."""
    if len(works) == 1:
        return [works[0]()]
    others = [_pool().submit(_run, work) for work in works[1:]]
    return [_run(works[0]), *(other.result() for other in others)]


def _run(work: Callable[[], T]) -> T:
    _here.busy = True
    try:
        return work()
    finally:
        _here.busy = False


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=_cores(), thread_name_prefix="ranksieve")


@cache
def _limiter() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="ranksieve-blas")


def _forget_threads() -> None:
    """A forked child inherits the pools but not their threads."""
    _pool.cache_clear()
    _limiter.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


@cache
def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()
