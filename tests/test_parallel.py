"""Blocks and threads."""

from __future__ import annotations

import itertools
import os
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import ranksieve as rs
from ranksieve._parallel import (
    _limiter,
    available_threads,
    fold_blocks,
    map_ahead,
    map_blocks,
    map_items,
    single_threaded_blas,
    split_blocks,
    sum_blocks,
    use_threads,
)


@pytest.fixture
def two_blas_threads():
    """Two BLAS threads, set in the thread that later limits them, as the limits require."""
    limit = _limiter().submit(threadpool_limits, 2, "blas").result()
    yield
    _limiter().submit(limit.restore_original_limits).result()


@pytest.mark.parametrize("sizes", [[5], [1] * 5000, [3000, 1, 1, 4000], [100_000], [1500] * 200])
def test_blocks_cover_every_item_once(sizes):
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    cuts = split_blocks(offsets)
    assert cuts[0] == 0
    assert cuts[-1] == len(sizes)
    assert np.all(np.diff(cuts) > 0)
    assert len(cuts) - 1 <= 64


@pytest.mark.parametrize("n_threads", [1, 2, 3, 7])
def test_results_are_in_block_order(n_threads):
    cuts = np.arange(0, 60, 5)
    with use_threads(n_threads):
        assert map_blocks(lambda a, b: (a, b), cuts) == list(itertools.pairwise(cuts))


@pytest.mark.parametrize("n_threads", [1, 2, 3, 7])
def test_results_are_added_in_block_order_with_one_pending_per_thread(n_threads):
    cuts, added, lock, waiting, most = np.arange(0, 300, 5), [], threading.Lock(), 0, 0

    def work(start, stop):
        nonlocal waiting, most
        with lock:
            waiting += 1
            most = max(most, waiting)
        return start, stop

    def add(block):
        nonlocal waiting
        added.append(block)
        with lock:
            waiting -= 1

    with use_threads(n_threads):
        fold_blocks(work, cuts, add)
    assert added == list(itertools.pairwise(cuts))
    assert most <= n_threads


def test_blocks_are_summed_in_order():
    parts = np.random.default_rng(0).normal(size=(12, 3)) * 10.0 ** np.arange(12)[:, None]
    for n_threads in (1, 3):
        with use_threads(n_threads):
            total = sum_blocks(lambda a, b: parts[a], np.arange(13))
        np.testing.assert_array_equal(total, sum(parts[1:], start=parts[0]))


@pytest.mark.parametrize("run", [map_blocks, sum_blocks])
def test_an_error_in_a_block_is_raised(run):
    def work(start, stop):
        if start == 20:
            raise ValueError("block 20")
        return np.zeros(1)

    with use_threads(2), pytest.raises(ValueError, match="block 20"):
        run(work, np.arange(0, 60, 5))


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_items_are_computed_in_order_and_the_first_by_the_caller(n_threads):
    with use_threads(n_threads):
        done = map_items(lambda item: (item, threading.get_ident()), range(9), n_blocks=1)
    assert [item for item, _ in done] == list(range(9))
    assert done[0][1] == threading.get_ident()


def test_items_of_many_blocks_leave_the_threads_to_the_blocks():
    with use_threads(2):
        assert set(map_items(lambda _: threading.get_ident(), range(4), n_blocks=8)) == {
            threading.get_ident()
        }


def test_no_item_begins_after_an_error():
    begun = []

    def work(item):
        begun.append(item)
        raise ValueError(item)

    with use_threads(2), pytest.raises(ValueError, match="0"):
        map_items(work, range(50), n_blocks=1)
    assert len(begun) <= 2


def test_an_error_of_the_items_follows_the_results_before_it():
    def items():
        yield from range(3)
        raise ValueError("no more")

    results = map_ahead(lambda item: 10 * item, items(), 2)
    assert [next(results) for _ in range(3)] == [0, 10, 20]
    with pytest.raises(ValueError, match="no more"):
        next(results)


def test_threads_from_the_environment(monkeypatch):
    monkeypatch.setenv("RANKSIEVE_THREADS", "3")
    assert available_threads() == 3
    with use_threads(1):
        assert available_threads() == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_its_own_threads():
    cuts = np.arange(0, 60, 5)
    with use_threads(2):
        map_blocks(lambda a, b: a, cuts)
        child = os.fork()
        if child == 0:
            os._exit(0 if len(map_blocks(lambda a, b: a, cuts)) == 11 else 1)
        assert os.waitpid(child, 0)[1] == 0


def finished(work, seconds=60):
    """Whether ``work`` ends in time; otherwise its daemon thread keeps running."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    return not thread.is_alive()


def test_nested_blocks_do_not_deadlock():
    inner = np.arange(0, 8, 2)
    results = []

    def nested():
        with use_threads(4):
            results.append(
                map_blocks(lambda a, b: map_blocks(lambda c, d: a + c, inner), np.arange(0, 60, 5))
            )

    assert finished(nested)
    assert results == [[[a, a + 2, a + 4] for a in range(0, 55, 5)]]


@pytest.mark.parametrize(
    "kind",
    [
        rs.FSMRank,
        rs.baselines.FSMSVM,
        rs.baselines.FBPCRank,
        rs.baselines.BFSWrapper,
        rs.baselines.GreedyRankRLS,
    ],
)
@pytest.mark.full
def test_concurrent_fits_with_more_threads_than_cores_end(kind):
    data = rs.make_ranking(120, 12, 3, docs_per_query=(35, 45), random_state=1)
    with use_threads(1):
        expected = kind().fit(data).coef_
    coefs = []

    def fit():
        with use_threads(4):
            coefs.append(kind().fit(data).coef_)

    threads = [threading.Thread(target=fit, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(coefs) == 3
    for coef in coefs:
        np.testing.assert_array_equal(coef, expected)


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_the_blas_limit_ends_with_its_last_user(two_blas_threads):
    assert set(blas_threads()) == {2}
    first, second = single_threaded_blas(), single_threaded_blas()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert set(blas_threads()) == {1}, "the first to leave must not take the limit from the second"
    second.__exit__(None, None, None)
    assert set(blas_threads()) == {2}


@pytest.mark.full
def test_concurrent_paths_are_bit_identical(two_blas_threads):
    data = rs.make_ranking(60, 400, 20, docs_per_query=(20, 30), random_state=4)

    def path():
        return rs.sparse_path(data, n_alphas=15, tol=1e-4).coefs

    expected, results = path(), []
    threads = [threading.Thread(target=lambda: results.append(path())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 3
    for coefs in results:
        np.testing.assert_array_equal(coefs, expected)
