"""Blocks and threads."""

from __future__ import annotations

import itertools
import os

import numpy as np
import pytest

from ranksieve._parallel import available_threads, map_blocks, split_blocks, use_threads


@pytest.mark.parametrize("sizes", [[5], [1] * 5000, [3000, 1, 1, 4000], [100_000], [1500] * 200])
def test_blocks_cover_every_item_once(sizes):
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    cuts = split_blocks(offsets)
    assert cuts[0] == 0
    assert cuts[-1] == len(sizes)
    assert np.all(np.diff(cuts) > 0)
    assert len(cuts) - 1 <= 64


@pytest.mark.parametrize("n_threads", [1, 2, 3, 7])
def test_results_come_in_block_order(n_threads):
    cuts = np.arange(0, 60, 5)
    with use_threads(n_threads):
        assert map_blocks(lambda a, b: (a, b), cuts) == list(itertools.pairwise(cuts))


def test_an_error_in_a_block_is_raised():
    def work(start, stop):
        if start == 20:
            raise ValueError("block 20")

    with use_threads(2), pytest.raises(ValueError, match="block 20"):
        map_blocks(work, np.arange(0, 60, 5))


def test_threads_from_the_environment(monkeypatch):
    monkeypatch.setenv("RANKSIEVE_THREADS", "3")
    assert available_threads() == 3
    with use_threads(1):
        assert available_threads() == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own():
    cuts = np.arange(0, 60, 5)
    with use_threads(2):
        map_blocks(lambda a, b: a, cuts)
        child = os.fork()
        if child == 0:
            os._exit(0 if len(map_blocks(lambda a, b: a, cuts)) == 11 else 1)
        assert os.waitpid(child, 0)[1] == 0
