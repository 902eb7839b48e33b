"""Kernels against brute force."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ranksieve.data.queries import contiguous_queries, local_levels
from ranksieve.kernels import sorted_pairs
from ranksieve.kernels.linear import minimise_quadratic
from ranksieve.kernels.pairs import (
    GroupedDocuments,
    Ranking,
    active_partners,
    centre_and_sort,
    partner_rows,
    sort_by_key,
)
from tests.tiers import examples

coarse = st.integers(-12, 12).map(lambda k: k / 4)  # many ties, many differences of exactly 1


@examples(200)
@given(hnp.arrays(float, st.integers(1, 200), elements=coarse), st.integers(0, 2**31))
def test_sort_orders_by_key_then_item_from_any_initial_order(key, seed):
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
    worse_sums, better_sums = np.zeros_like(rows), np.zeros_like(rows)
    for lo, hi in itertools.pairwise(offsets):
        for i in range(lo, hi):
            for j in range(lo, hi):
                xi = 1.0 - (t[i] - t[j])
                if level[i] > level[j] and xi > 0:
                    omega = weights[level[i], level[j]]
                    for target, at, amount in zip(sums, (i, i, j, j), (1, xi, 1, xi), strict=True):
                        target[at] += omega * amount
                    worse_sums[i] += omega * rows[j]
                    better_sums[j] += omega * rows[i]
    return sums, worse_sums, better_sums


@examples(200)
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
    documents, ranking = GroupedDocuments(offsets, level, np.ones(last), None), Ranking(t, order)
    centre_and_sort(s, offsets, 0, last, ranking)
    for q in range(last):
        np.testing.assert_allclose(t[offsets[q] : offsets[q + 1]].mean(), 0, atol=1e-12)
    expected, worse_sums, better_sums = brute_force(t, level, offsets, table, rows)
    for side, numbers, summed in ((1, expected[:2], worse_sums), (-1, expected[2:], better_sums)):
        result, sums = [np.empty(len(s)), np.empty(len(s))], np.zeros_like(rows)
        sweep = (documents, ranking, 0, last, side, table if weighted else None)
        active_partners(*sweep, *result)
        partner_rows(*sweep, rows, sums)
        for actual, desired in zip(result, numbers, strict=True):
            np.testing.assert_allclose(actual, desired, atol=1e-10)
        np.testing.assert_allclose(sums, summed, atol=1e-10)


@examples(150)
@given(grouped_scores(), st.integers(0, 2**31))
def test_squared_hinge_and_derivatives_from_lists_of_better_documents(case, seed):
    """Against sums over all pairs, for any initial order of the lists and any initial counts."""
    s, level, offsets = case
    queries = contiguous_queries(np.arange(len(offsets) - 1), np.diff(offsets))
    level = local_levels(level.astype(float), queries).astype(np.int8)  # consecutive, as in losses
    assume(is_decided(s, level, offsets))
    rng = np.random.default_rng(seed)
    n, last = len(s), len(offsets) - 1
    weight, d, step = rng.uniform(0, 2, size=last), rng.normal(size=n), rng.normal()
    rows, v = rng.normal(size=(n, 3)), rng.normal(size=n)
    lists, listed = sorted_pairs.make_lists(level, offsets)
    active_better = shuffled_lists(rng, lists, listed, n)
    gradient, sums, slopes = (np.empty(shape) for shape in (n, (last, 4), (last, 2)))
    active = np.empty(n, dtype=np.int32)
    fixed = (GroupedDocuments(offsets, level, weight, None), lists)
    sorted_pairs.squared_hinge(
        *fixed, s, 0, last, sorted_pairs.HingeArrays(listed, active_better, active, gradient), sums
    )
    state = sorted_pairs.HingeArrays(listed.copy(), active_better.copy(), active, gradient)
    product, parts = np.empty(n), sorted_pairs.HessianParts(*(np.empty(rows.shape) for _ in range(3)))
    sorted_pairs.hessian_product(*fixed, state, 0, last, v, product)
    values = np.hstack([v[:, None], rows])
    n_scaled, n_better = sorted_pairs.hessian_parts(*fixed, state, 0, last, values, np.arange(1, 4), parts)
    A, U, N = parts.scaled[:n_scaled], parts.better_rows[:n_better], parts.sums[:n_better]
    for mu in (0.0, step):
        sorted_pairs.squared_hinge_along(
            *fixed, s, d, mu, 0, last, sorted_pairs.SortedLists(listed, active_better), slopes
        )
    t, turn = centred(s, offsets), centred(d, offsets)
    moved = t + step * turn

    want_sums, want_slopes = np.zeros((last, 4)), np.zeros((last, 2))
    want_active, want_gradient, hessian = np.zeros(n), np.zeros(n), np.zeros((n, n))
    for q, i, j in ordered_pairs(level, offsets):
        xi, xi_moved = 1.0 - (t[i] - t[j]), 1.0 - (moved[i] - moved[j])
        if xi > 0:
            terms = 1.0 + np.abs(t[[i, j]])
            want_sums[q] += weight[q] * np.array([xi, xi**2, terms.sum(), np.sum(terms**2)])
            want_active[[i, j]] += 1
            want_gradient[[i, j]] += 2 * weight[q] * xi * np.array([-1, 1])
            hessian[np.ix_([i, j], [i, j])] += 2 * weight[q] * np.array([[1, -1], [-1, 1]])
        if xi_moved > 0:
            want_slopes[q] += 2 * weight[q] * np.array([-xi_moved * (d[i] - d[j]), (d[i] - d[j]) ** 2])
    size = 1e-10 * n * (1.0 + np.abs(s).max() + abs(step) * np.abs(d).max())
    np.testing.assert_allclose(sums, want_sums, rtol=1e-9, atol=n * size)
    np.testing.assert_array_equal(active, want_active)
    np.testing.assert_allclose(gradient, want_gradient, atol=size)
    np.testing.assert_allclose(slopes, want_slopes, rtol=1e-9, atol=n * size)
    np.testing.assert_allclose(product, hessian @ v, atol=1e-10 * n)
    np.testing.assert_allclose(A.T @ A + U.T @ N + N.T @ U, rows.T @ hessian @ rows, atol=1e-10 * n)


def centred(values, offsets):
    """Bit-identical to the kernels, because rounding decides whether a pair at the margin is active."""
    parts = [values[lo:hi] for lo, hi in itertools.pairwise(offsets)]
    return np.concatenate([part - (sum((part - part[0]).tolist()) / len(part) + part[0]) for part in parts])


def shuffled_lists(rng, lists, listed, n):
    """Shuffle the lists of each query in place; returns random valid counts."""
    active_better = np.zeros(n, dtype=np.int32)
    for k in range(len(lists.begin) - 1):
        lo, hi = lists.begin[k : k + 2]
        rng.shuffle(listed[lo:hi])
        worse = lists.worse[lists.worse_begin[k] : lists.worse_begin[k + 1]]
        active_better[worse] = rng.integers(0, hi - lo + 1, len(worse))
    return active_better


def is_decided(s, level, offsets):
    """Whether rounding cannot change the active pairs: no pair is at the margin, or the means are exact."""
    exact = [_has_exact_mean(s[lo:hi]) for lo, hi in itertools.pairwise(offsets)]
    return all(exact[q] or abs(1.0 - (s[i] - s[j])) > 1e-9 for q, i, j in ordered_pairs(level, offsets))


def _has_exact_mean(values):
    mean = sum(map(Fraction, values.tolist())) / len(values)
    return all((Fraction(value) - mean) * 2**20 % 1 == 0 for value in values.tolist())


def ordered_pairs(level, offsets):
    """(query, better document, worse document)."""
    for q, (lo, hi) in enumerate(itertools.pairwise(offsets)):
        for i, j in itertools.product(range(lo, hi), repeat=2):
            if level[i] > level[j]:
                yield q, i, j


def test_a_range_of_queries_does_not_change_other_queries():
    offsets = np.array([0, 4, 9, 12])
    rng = np.random.default_rng(1)
    s, level = rng.normal(size=12), rng.integers(0, 3, 12)
    t, order = np.full(12, np.nan), np.arange(12)
    outputs = [np.full(12, np.nan) for _ in range(2)]
    ranking = Ranking(t, order)
    centre_and_sort(s, offsets, 1, 2, ranking)
    active_partners(GroupedDocuments(offsets, level, np.ones(3), None), ranking, 1, 2, -1, None, *outputs)
    for array in (t, *outputs):
        assert np.isnan(np.delete(array, np.s_[4:9])).all()
        assert np.isfinite(array[4:9]).all()


@examples(50)
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
