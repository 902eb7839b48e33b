"""Small kernels against their definitions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ranksieve.baselines.kernels import dcg_along
from ranksieve.kernels.linear import descend
from ranksieve.kernels.listmle import _level_softmax
from ranksieve.kernels.pairs import sort_by_key


@pytest.mark.parametrize("k", [1, 3, 10])
def test_dcg_along_a_line_equals_that_of_sorted_scores(k):
    rng = np.random.default_rng(31)
    offsets = np.concatenate(([0], np.cumsum([1, 5, 2, 8, 6])))
    scores = rng.integers(-2, 3, offsets[-1]).astype(float)  # many ties
    column, gains = rng.integers(-1, 2, offsets[-1]).astype(float), rng.uniform(1, 9, offsets[-1])
    steps, worth = np.array([-1.0, 0.0, 0.5, 1.0]), np.array([1.0, 2.0, 0.5, 0.0, 3.0])
    discounts, values = 1.0 / np.log2(np.arange(2.0, k + 2)), np.empty(4)
    dcg_along(scores, column, steps, gains, offsets, discounts, worth, values)
    for step, value in zip(steps, values, strict=True):
        expected = 0.0
        for q in range(5):
            rows = np.arange(offsets[q], offsets[q + 1])
            order = rows[np.argsort(-(scores + step * column)[rows], kind="stable")][:k]
            expected += worth[q] * float(gains[order] @ discounts[: len(order)])
        assert value == pytest.approx(expected, rel=1e-13)


def test_every_short_list_is_sorted():
    """Short keys with ties from all orders, and longer lists, which are merged, from a few."""
    starts = [
        (key, item)
        for key in ([1, 1, 0, 2], [0, 0, 0, 0], [2, 0, 1, 0])
        for item in itertools.permutations(range(4))
    ]
    rng = np.random.default_rng(37)
    starts += [
        (rng.integers(0, 9, n), rng.permutation(n)) for n in (24, 25, 48, 73, 120, 200) for _ in range(3)
    ]
    for keys, items in starts:
        key, item, n = np.array(keys, dtype=float), np.array(items), len(keys)
        expected, key = np.lexsort((np.arange(n), key)), key[item]
        sort_by_key(key, item, np.empty(n), np.empty(n, dtype=np.int64))
        np.testing.assert_array_equal(item, expected)
        np.testing.assert_array_equal(key, np.sort(keys))


def penalty(w, t, ridge, inside):
    """½μw² inside; otherwise the line t|w| up to |w| = t/μ and a parabola beyond."""
    line = np.where(np.abs(w) <= t / ridge, t * np.abs(w), 0.5 * ridge * w**2 + 0.5 * t**2 / ridge)
    return float(np.sum(np.where(inside, 0.5 * ridge * w**2, line)))


@pytest.mark.parametrize("seed", range(6))
def test_descent_on_a_perspective_reaches_its_minimum(seed):
    rng = np.random.default_rng(seed)
    d, ridge = 5, [0.3, 2.0][seed % 2]
    A = rng.normal(size=(d + 3, d))
    H, b, t = A.T @ A, 4.0 * rng.normal(size=d), rng.uniform(0.2, 1.5, d)
    inside, signs = rng.random(d) < 0.4, rng.choice([-1.0, 0.0, 1.0], d)
    w = np.where(signs == 0, rng.normal(size=d), signs * rng.random(d))
    slope = H @ w + b
    descend(H, slope, w, t, ridge, inside, signs, 1e-13, 10_000)
    np.testing.assert_allclose(slope, H @ w + b, atol=1e-9)
    assert np.all(signs * w >= 0)

    def value(v):
        return 0.5 * v @ H @ v + b @ v + penalty(v, t, ridge, inside)

    least = value(w)
    for size in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(100):
            v = w + size * rng.normal(size=d) * (rng.random(d) < 0.5)
            assert least <= value(np.where(signs * v < 0, 0.0, v)) + 1e-12


def test_descent_stops_after_max_sweeps_or_small_changes():
    H, inside = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([True, True])
    start, b = np.zeros(2), np.array([-3.0, 1.0])

    def reached(tol, sweeps):
        w, slope = start.copy(), H @ start + b
        descend(H, slope, w, np.ones(2), 1.0, inside, np.zeros(2), tol, sweeps)
        return w

    np.testing.assert_allclose(reached(0.0, 1), [1.0, -2.0 / 3.0])  # one sweep: −b/(h + μ), sequentially
    np.testing.assert_array_equal(reached(3.0, 100), reached(0.0, 1))  # it changed slopes by 3 and by 2
    np.testing.assert_array_equal(reached(2.999, 2), reached(0.0, 2))
    assert np.any(reached(0.0, 2) != reached(0.0, 1))


def test_shares_of_levels_by_hand():
    """log Σ v·e^t of each level, and the share of each document (0 for weight 0)."""
    log_sum, peak, softmax = np.empty(2), np.empty(2), np.full(5, np.nan)
    t, weight = np.log([1.0, 3.0, 9.0, 5.0, 2.0]), np.array([1.0, 1.0, 0.0, 2.0, 5.0])
    _level_softmax(t, np.array([0, 0, 0, 1, 1]), weight, 0, 5, 2, log_sum, peak, softmax)
    np.testing.assert_allclose(log_sum, np.log([4.0, 20.0]), rtol=1e-14)
    np.testing.assert_allclose(softmax, [0.25, 0.75, 0.0, 0.5, 0.5], rtol=1e-14)
