"""Threads over fixed blocks of work: bit-identical results for any number of threads.

Blocks depend only on the data and their results are added in block order; the number of threads decides only
which thread computes which block. BLAS is limited to one thread for the same reason.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import cache, partial
from itertools import pairwise
from threading import Condition, Lock, local
from typing import TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from ranksieve._types import FloatArray, IntArray

S = TypeVar("S")
T = TypeVar("T")

MIN_BLOCK_ROWS = 12288
MAX_BLOCKS = 64
MIN_BLOCKS_PER_THREAD = 2  # with fewer, a thread costs more time than it saves

_threads: ContextVar[int | None] = ContextVar("ranksieve_threads", default=None)
_thread = local()  # .busy while this thread works on a block


def available_threads() -> int:
    """``RANKSIEVE_THREADS`` if set, else the cores this process may use."""
    chosen = _threads.get()
    if chosen is not None:
        return chosen
    setting = os.environ.get("RANKSIEVE_THREADS", "")
    return max(1, int(setting)) if setting.isdigit() else _cores()


@contextmanager
def use_threads(n: int | None) -> Iterator[None]:
    """Use ``n`` threads inside the ``with`` block (None: the default)."""
    token = _threads.set(n)
    try:
        yield
    finally:
        _threads.reset(token)


def split_blocks(offsets: IntArray) -> IntArray:
    """Cuts in 0..len(offsets)-1: at most 64 runs of items with about equally many rows, at least 12,288."""
    rows = int(offsets[-1])
    n_blocks = int(np.clip(rows // MIN_BLOCK_ROWS, 1, MAX_BLOCKS))
    cuts = np.searchsorted(offsets, np.linspace(0, rows, n_blocks + 1))
    cuts[0], cuts[-1] = 0, len(offsets) - 1
    return np.unique(cuts)


def map_blocks(work: Callable[[int, int], T], cuts: IntArray) -> list[T]:
    """``[work(start, stop) for each block]``, computed by several threads.

    A nested call uses only the calling thread, because all threads of the pool may be waiting for it.
    """
    blocks = list(pairwise(cuts.tolist()))
    numbered = iter(enumerate(blocks))  # shared: each free thread takes the next block
    shares = _in_threads([partial(_one_by_one, work, numbered)] * _useful_threads(len(blocks)))
    done = {number: result for share in shares for number, result in share}
    return [done[number] for number in range(len(blocks))]


def map_items(work: Callable[[S], T], items: Sequence[S], n_blocks: int) -> list[T]:
    """``[work(item) for item in items]``; several at the same time if ``work``, which computes ``n_blocks``
    blocks at a time, would use fewer threads. The calling thread takes the first item."""
    n_threads = min(threads_to_start(), len(items))
    if n_threads <= _useful_threads(n_blocks):
        return [work(item) for item in items]
    done: dict[int, T] = {}
    numbered = list(enumerate(items))
    waiting = iter(numbered[n_threads:])

    def share(first: tuple[int, S]) -> None:
        following: tuple[int, S] | None = first
        try:
            while following is not None:
                number, item = following
                done[number] = work(item)
                following = next(waiting, None)
        except BaseException:
            for _ in waiting:  # the other threads end too
                pass
            raise

    _in_threads([partial(share, first) for first in numbered[:n_threads]])
    return [done[number] for number in range(len(items))]


def map_ahead(work: Callable[[S], T], items: Iterable[S], n_ahead: int) -> Iterator[T]:
    """``work(item)`` for each item, in order, while other threads compute the next ``n_ahead`` ≥ 1 items.

    An error of ``items`` is raised after the results of the items before it.
    """

    def futures() -> Iterator[Future[T]]:
        try:
            for item in items:
                yield _pool().submit(_run, partial(work, item))
        except Exception as error:
            failed: Future[T] = Future()
            failed.set_exception(error)
            yield failed

    pending: deque[Future[T]] = deque()
    for future in futures():
        pending.append(future)
        if len(pending) > n_ahead:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()


def threads_to_start() -> int:
    """Number of threads for work that is not divided into blocks; 1 if called from within a block."""
    return 1 if getattr(_thread, "busy", False) else available_threads()


def fold_blocks(work: Callable[[int, int], T], cuts: IntArray, add: Callable[[T], None]) -> None:
    """``add(work(start, stop))`` for each block, computed by several threads and added in block order.

    A thread waits until the previous blocks have been added, so at most one result per thread is in memory.
    """
    numbered = iter(enumerate(pairwise(cuts.tolist())))
    condition, n_added, failed = Condition(), 0, False

    def share() -> None:
        nonlocal n_added, failed
        try:
            for number, (start, stop) in numbered:
                result = work(start, stop)
                with condition:
                    while n_added < number and not failed:
                        condition.wait()
                    if failed:
                        return
                    add(result)
                    n_added += 1
                    condition.notify_all()
        except BaseException:
            with condition:
                failed = True
                condition.notify_all()
            raise

    _in_threads([share] * _useful_threads(len(cuts) - 1))


def sum_blocks(work: Callable[[int, int], FloatArray], cuts: IntArray) -> FloatArray:
    """Sum of ``work(start, stop)`` over the blocks, in block order."""
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

    For compiled work whose result for each item does not depend on the cuts. Each thread takes Python's
    global lock only once.
    """
    n, last = _useful_threads(len(cuts) - 1), len(cuts) - 1
    blocks = [last * k // n for k in range(n + 1)]
    _in_threads([partial(work, a, b) for a, b in pairwise(cuts[blocks].tolist())])


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread, so that its threads do not compete with ours.

    The limit applies to the whole process: the first thread that enters sets it, and the last one that leaves
    removes it.
    """
    _blas_limit.enter()
    try:
        yield
    finally:
        _blas_limit.leave()


class _BlasLimit:
    """A limit shared by several threads.

    A separate thread sets and removes it: threadpoolctl obeys only the thread that set the first limit.
    """

    def __init__(self) -> None:
        self._lock, self._n_inside, self._limit = Lock(), 0, ExitStack()

    def enter(self) -> None:
        with self._lock:
            if self._n_inside == 0:
                _limiter().submit(
                    lambda: self._limit.enter_context(_blas().limit(limits=1, user_api="blas"))
                ).result()
            self._n_inside += 1

    def leave(self) -> None:
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                _limiter().submit(self._limit.close).result()


_blas_limit = _BlasLimit()


def _useful_threads(n_blocks: int) -> int:
    """Number of threads to use; 1 if called from within a block."""
    return (
        1
        if getattr(_thread, "busy", False)
        else max(1, min(available_threads(), n_blocks // MIN_BLOCKS_PER_THREAD))
    )


def _one_by_one(
    work: Callable[[int, int], T], blocks: Iterator[tuple[int, tuple[int, int]]]
) -> list[tuple[int, T]]:
    return [(number, work(start, stop)) for number, (start, stop) in blocks]


def _in_threads(works: Sequence[Callable[[], T]]) -> list[T]:
    """Results of all functions; the first runs in this thread, the others in the pool."""
    if len(works) == 1:
        return [works[0]()]
    others = [_pool().submit(_run, work) for work in works[1:]]
    return [_run(works[0]), *(other.result() for other in others)]


def _run(work: Callable[[], T]) -> T:
    _thread.busy = True
    try:
        return work()
    finally:
        _thread.busy = False


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=_cores(), thread_name_prefix="ranksieve")


@cache
def _limiter() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="ranksieve-blas")


def _discard_pools() -> None:
    """Discard the pools: a forked child inherits them without their threads."""
    _pool.cache_clear()
    _limiter.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_discard_pools)


@cache
def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()
