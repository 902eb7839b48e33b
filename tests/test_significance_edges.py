"""Edge cases of paired tests: one permutation, pairs without a difference."""

from __future__ import annotations

import numpy as np

from ranksieve.metrics.significance import paired_t, randomisation


def test_one_permutation():
    """With one random pattern in addition to the observed one, p is ½ or 1."""
    assert randomisation(np.array([3.0, 2.0, 1.0]), np.zeros(3), n_permutations=1) in (0.5, 1.0)


def test_ties_are_ignored_so_the_test_stays_exact():
    """Three of forty pairs differ, so there are only eight patterns, and two are as extreme."""
    a = np.zeros(40)
    a[[4, 17, 31]] = [1.0, 2.0, 4.0]
    assert randomisation(a, np.zeros(40), n_permutations=8) == 0.25
    assert randomisation(a, np.zeros(40), n_permutations=8, alternative="greater") == 0.125


def test_large_differences_are_equal_up_to_rounding():
    assert paired_t(np.array([1000.0, 1000.0 * (1.0 + 4e-13), 1000.0]), np.zeros(3)) == 0.0


def test_random_signs_are_bits_of_random_bytes():
    """Nine pairs need two bytes per pattern; the p-value of a seed is the same in every version."""
    difference = np.random.default_rng(5).normal(0.4, 1.0, 9)
    bits = np.random.default_rng(3).integers(0, 256, size=(300, 2), dtype=np.uint8)
    flipped = np.unpackbits(bits, axis=1)[:, :9].astype(float)
    extreme = np.sum(np.abs((1.0 - 2.0 * flipped) @ difference) >= abs(difference.sum()) - 1e-9)
    assert randomisation(difference, np.zeros(9), n_permutations=300, random_state=3) == (1 + extreme) / 301


def test_random_signs_are_drawn_in_chunks(monkeypatch):
    """The observed sum is 0, so every pattern is as extreme."""
    monkeypatch.setattr("ranksieve.metrics.significance._CHUNK_CELLS", 8)
    difference = np.array([1.0, -1.0, 1.0, -1.0])
    assert randomisation(difference, np.zeros(4), n_permutations=10) == 1.0
