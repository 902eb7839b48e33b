"""Kernels against brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ranksieve.kernels import pairs
from ranksieve.kernels.linear import minimise_quadratic
from ranksieve.kernels.ordering import centre_and_sort, sort_by_key
from ranksieve.kernels.pairs import (
    active_partners,
    partner_rows,
    weighted_partner_rows,
    weighted_partners,
)

coarse = st.integers(-12, 12).map(lambda k: k / 4)  # many ties, many differences of exactly 1


@settings(max_examples=200, deadline=None)
@given(hnp.arrays(float, st.integers(1, 200), elements=coarse), st.integers(0, 2**31))
def test_sort_is_the_total_order_by_key_then_item_from_any_start(key, seed):
    item = np.random.default_rng(seed).permutation(len(key))
    expected = np.lexsort((np.arange(len(key)), key))
    shuffled = key[item]
    sort_by_key(shuffled, item, np.empty(len(key)), np.empty(len(key), dtype=np.int64))
    np.testing.assert_array_equal(item, expected)
    np.testing.assert_array_equal(shuffled, np.sort(key))


@st.composite
def grouped_scores(draw):
    sizes = draw(st.lists(st.integers(1, 30), min_size=1, max_size=4))
    n = sum(sizes)
    s = draw(hnp.arrays(float, n, elements=st.one_of(coarse, st.floats(-3, 3))))
    level = draw(hnp.arrays(np.int64, n, elements=st.integers(0, draw(st.integers(0, 9)))))
    return s, level, np.concatenate(([0], np.cumsum(sizes)))


def brute_force(t, level, offsets, weights, rows):
    n = len(t)
    sums = [np.zeros(n) for _ in range(4)]
    lower, upper = np.zeros_like(rows), np.zeros_like(rows)
    for lo, hi in itertools.pairwise(offsets):
        for i in range(lo, hi):
            for j in range(lo, hi):
                xi = 1.0 - (t[i] - t[j])
                if level[i] > level[j] and xi > 0:
                    omega = weights[level[i], level[j]]
                    for target, at, amount in zip(sums, (i, i, j, j), (1, xi, 1, xi), strict=True):
                        target[at] += omega * amount
                    lower[i] += omega * rows[j]
                    upper[j] += omega * rows[i]
    return sums, lower, upper


@settings(max_examples=200, deadline=None)
@given(grouped_scores(), st.booleans(), st.integers(0, 2**31))
def test_active_pair_sums(case, weighted, seed):
    s, level, offsets = case
    rng = np.random.default_rng(seed)
    table = np.tril(rng.uniform(0, 2, size=(10, 10)), -1)
    table = table + table.T if weighted else np.ones((10, 10))
    rows = rng.normal(size=(len(s), 3))
    t, order = (
        np.empty(len(s)),
        np.concatenate([lo + rng.permutation(hi - lo) for lo, hi in itertools.pairwise(offsets)]),
    )
    last = len(offsets) - 1
    centre_and_sort(s, t, order, offsets, 0, last)
    for q in range(last):
        np.testing.assert_allclose(t[offsets[q] : offsets[q + 1]].mean(), 0, atol=1e-12)
    expected, lower, upper = brute_force(t, level, offsets, table, rows)
    for side, numbers, summed in ((1, expected[:2], lower), (-1, expected[2:], upper)):
        found, sums = [np.empty(len(s)), np.empty(len(s))], np.zeros_like(rows)
        sweep = (t, level, order, offsets, 0, last, side)
        if weighted:
            weighted_partners(*sweep, table, *found)
            weighted_partner_rows(*sweep, table, rows, sums)
        else:
            active_partners(*sweep, *found)
            partner_rows(*sweep, rows, sums)
        for got, want in zip(found, numbers, strict=True):
            np.testing.assert_allclose(got, want, atol=1e-10)
        np.testing.assert_allclose(sums, summed, atol=1e-10)


@settings(max_examples=100, deadline=None)
@given(grouped_scores(), st.integers(0, 2**31))
def test_the_squared_hinge_and_its_slopes(case, seed):
    """Against sums over all pairs."""
    s, level, offsets = case
    rng = np.random.default_rng(seed)
    n, last = len(s), len(offsets) - 1
    weight, d, step = rng.uniform(0, 2, size=last), rng.normal(size=n), rng.normal()
    d -= np.repeat([d[lo:hi].mean() for lo, hi in itertools.pairwise(offsets)], np.diff(offsets))
    t, order, degree, gradient = np.empty(n), np.arange(n), np.empty(n), np.empty(n)
    total = pairs.squared_hinge(s, level, weight, offsets, 0, last, t, order, degree, gradient)
    key, sorted_, at = np.empty(n), order.copy(), np.empty(n)
    line = (t, d, level)
    by_order = tuple(values[sorted_] for values in line)
    for mu in (0.0, step):
        slopes = pairs.squared_hinge_along(*line, mu, weight, offsets, 0, last, sorted_, key, by_order)
    np.testing.assert_array_equal(key, (t + step * d)[sorted_])
    for lo, hi in itertools.pairwise(offsets):
        assert np.all(np.diff(key[lo:hi]) >= 0)
    at[sorted_] = key
    slack, want_degree, want_gradient, want_slopes = 0.0, np.zeros(n), np.zeros(n), np.zeros(2)
    for q, (lo, hi) in enumerate(itertools.pairwise(offsets)):
        for i, j in itertools.product(range(lo, hi), repeat=2):
            if level[i] <= level[j]:
                continue
            xi, xi_moved = 1.0 - (t[i] - t[j]), 1.0 - (at[i] - at[j])
            if xi > 0:
                slack += weight[q] * xi
                want_degree[[i, j]] += weight[q]
                want_gradient[i] -= 2 * weight[q] * xi
                want_gradient[j] += 2 * weight[q] * xi
            if xi_moved > 0:
                want_slopes += 2 * weight[q] * np.array([-xi_moved * (d[i] - d[j]), (d[i] - d[j]) ** 2])
    size = 1.0 + np.abs(s).max() + abs(step) * np.abs(d).max()
    assert total == pytest.approx(slack, abs=1e-10 * n * size)
    np.testing.assert_allclose(degree, want_degree, atol=1e-10)
    np.testing.assert_allclose(gradient, want_gradient, atol=1e-10 * n * size)
    np.testing.assert_allclose(slopes, want_slopes, rtol=1e-9, atol=1e-10 * n * n * size)


def test_a_range_of_queries_touches_no_other_query():
    offsets = np.array([0, 4, 9, 12])
    rng = np.random.default_rng(1)
    s, level = rng.normal(size=12), rng.integers(0, 3, 12)
    t, order = np.full(12, np.nan), np.arange(12)
    found = [np.full(12, np.nan) for _ in range(2)]
    centre_and_sort(s, t, order, offsets, 1, 2)
    active_partners(t, level, order, offsets, 1, 2, -1, *found)
    for array in (t, *found):
        assert np.isnan(np.delete(array, np.s_[4:9])).all()
        assert np.isfinite(array[4:9]).all()


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**31), st.booleans())
def test_coordinate_descent_reaches_the_minimum_of_the_model(seed, one_sided):
    rng = np.random.default_rng(seed)
    d = 4
    A = rng.normal(size=(d + 2, d))
    H, g, w = A.T @ A, rng.normal(size=d), rng.normal(size=d)
    up = rng.uniform(0, 1, d)
    down = np.where(rng.uniform(size=d) < 0.5, np.inf, 0.3) if one_sided else up
    w = np.where(np.isinf(down), np.abs(w), w)
    ridge = 0.1
    z = minimise_quadratic(H, g, w, up, down, ridge, 1e-13, 100000)

    def model(v):
        penalty = np.where(v > 0, up * v, 0) + np.where(v < 0, np.where(np.isinf(down), 1e9, down) * -v, 0)
        return g @ (v - w) + (v - w) @ H @ (v - w) / 2 + penalty.sum() + ridge * v @ v / 2

    assert np.all(z[np.isinf(down)] >= 0)
    for _ in range(200):
        assert model(z) <= model(z + rng.normal(size=d) * 10.0 ** rng.uniform(-4, 0)) + 1e-9
