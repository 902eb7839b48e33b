"""Other functions of objectives, against sums over explicit pairs: parts, samples, lines, errors."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from ranksieve import objective as base
from ranksieve.data.dataset import Dataset
from ranksieve.objective import make_objective
from tests.conftest import random_dataset
from tests.pairs import explicit_pairs, squared_hinge

CUTS = np.array([0, 2, 2, 5, 9])


def make_data(scattered=False):
    """Data of nine queries; feature 2 is constant within queries."""
    data = random_dataset(seed=1, n_queries=9)
    X = data.X.copy()
    X[:, 2] = data.qid
    data = data.replace_features(X)
    return data.select_rows(np.random.default_rng(0).permutation(data.n_docs)) if scattered else data


def explicit(data, w, queries=None):
    """(value, gradient, Hessian, gradient with respect to scores) of the sum over pairs of some queries."""
    pairs = explicit_pairs(data.y, data.qid)
    if queries is not None:
        pairs = pairs[np.isin(data.qid[pairs[:, 0]], queries)]
    value, gradient, hessian, _ = squared_hinge(data.X @ w, pairs, np.ones(len(pairs)))
    varies = np.arange(5) != 2
    block = (data.X.T @ hessian @ data.X) * np.outer(varies, varies)
    return value, data.X.T @ gradient * varies, block, gradient


@pytest.fixture(params=[False, True], ids=["together", "scattered"])
def case(request):
    """(data, objective, point, number of pairs)."""
    data = make_data(request.param)
    objective = make_objective(data)
    point = objective.evaluate(np.random.default_rng(2).normal(size=5))
    return data, objective, point, len(explicit_pairs(data.y, data.qid))


@pytest.mark.parametrize("case", [False], ids=["together"], indirect=True)
def test_parts_between_cuts(case):
    data, objective, point, _ = case
    columns = np.array([0, 2, 3])
    parts = objective.gradients(point, CUTS), objective.hessians(point, columns, CUTS)
    for k in range(4):
        _, gradient, hessian, _ = explicit(data, point.w, data.queries.ids[CUTS[k] : CUTS[k + 1]])
        varies = [0, 1, 3, 4]
        np.testing.assert_allclose(parts[0][k][varies], gradient[varies], atol=1e-11)
        np.testing.assert_allclose(parts[1][k], hessian[np.ix_(columns, columns)], atol=1e-11)


def test_cached_hessians_belong_to_their_point(case):
    """After ``hessians``: for the same columns, for fewer, for others, and at another point."""
    data, objective, point, n_pairs = case
    elsewhere = objective.evaluate(-point.w)
    whole, other = (explicit(data, w)[2] / n_pairs for w in (point.w, -point.w))
    objective.hessians(point, np.array([0, 1, 3]), CUTS)
    for columns in ([0, 1, 3], [1, 3], [3, 0], [0, 4], [4], [1, 2]):
        expected = whole[np.ix_(columns, columns)]
        np.testing.assert_allclose(objective.hessian(point, np.array(columns)), expected, atol=1e-12)
        expected = other[np.ix_(columns, columns)]
        np.testing.assert_allclose(objective.hessian(elsewhere, np.array(columns)), expected, atol=1e-12)


def test_cached_hessians_do_not_read_features(case, monkeypatch):
    _, objective, point, _ = case
    objective.hessians(point, np.array([0, 1, 3]), CUTS)
    monkeypatch.setattr(objective.features, "reader", None)
    for columns in ([0, 1, 3], [0, 3], [1]):
        assert objective.hessian(point, np.array(columns)).shape == (len(columns), len(columns))


def test_the_dual_value_of_explicit_pairs(case):
    """2c·mean ξ − c²·mean ξ²."""
    data, objective, point, n_pairs = case
    pairs = explicit_pairs(data.y, data.qid)
    value, *_, slack = squared_hinge(data.X @ point.w, pairs, np.ones(n_pairs))
    assert objective.dual(point, 0.25) == pytest.approx((0.5 * slack - value / 16.0) / n_pairs, rel=1e-11)


def test_diagonal_products_and_lines(case):
    data, objective, point, n_pairs = case
    _, gradient, hessian, _ = (part / n_pairs for part in explicit(data, point.w))
    v = np.array([0.5, -1.0, 0.0, 2.0, 0.25])
    along = objective.scores(v)
    np.testing.assert_allclose(objective.curvatures(point), np.diag(hessian), atol=1e-12)
    np.testing.assert_allclose(objective.hessian_product(point, v)[[0, 1, 3, 4]], (hessian @ v)[[0, 1, 3, 4]])
    assert objective.slope_along(point, along) == pytest.approx(gradient @ v, rel=1e-11)
    assert objective.curvature_along(point, along) == pytest.approx(v @ hessian @ v, rel=1e-11)
    slope, curvature = objective.slopes_along(point, along)(0.0)
    assert (slope, curvature) == pytest.approx((gradient @ v, v @ hessian @ v), rel=1e-11)


def test_error_bounds_equal_their_formulas(case):
    data, objective, point, n_pairs = case
    value, *_, of_scores = explicit(data, point.w)
    size, reach = np.abs(of_scores).sum() / n_pairs, objective.features.max_abs
    extent = np.abs(point.w) @ reach
    scores, pairs, reach = (
        data.X @ point.w,
        explicit_pairs(data.y, data.qid),
        np.where(objective.varies, reach, 0.0),
    )
    means = np.array([scores[data.qid == query].mean() for query in data.qid])
    active = pairs[scores[pairs[:, 0]] - scores[pairs[:, 1]] < 1.0]
    terms = 1.0 + np.abs(scores - means)[active]
    expected = (base.SUM_ROUNDING * size * (1 + extent) + base.PAIR_ROUNDING * terms.sum() / n_pairs) * reach
    np.testing.assert_allclose(objective.gradient_error(point), expected)
    expected = base.SUM_ROUNDING * (value / n_pairs + size * extent) + (base.SUM_ROUNDING * (1 + extent)) ** 2
    expected += base.PAIR_ROUNDING * np.sum(terms**2) / n_pairs
    assert objective.value_error(point) == pytest.approx(expected, rel=1e-12, abs=0.0)


def test_objective_restricted_to_columns(case):
    data, objective, _, n_pairs = case
    columns, w = np.array([4, 1]), np.array([0.5, -1.5])
    objective.gradient(objective.at_zero)
    part, full = objective.restricted(columns), np.zeros(5)
    full[columns] = w
    assert part.n_features == 2
    assert part.at_zero.w.shape == (2,)
    value, gradient, *_ = explicit(data, np.zeros(5))
    np.testing.assert_allclose(part.gradient(part.at_zero), gradient[columns] / n_pairs, atol=1e-12)
    value, gradient, *_ = explicit(data, full)
    point = part.evaluate(w)
    assert point.value == pytest.approx(value / n_pairs, rel=1e-12)
    np.testing.assert_allclose(part.gradient(point), gradient[columns] / n_pairs, atol=1e-12)


@pytest.mark.parametrize("every", [2, 4])
def test_a_sample_is_the_mean_of_its_queries(case, every):
    data, objective, point, _ = case
    chosen = data.queries.ids[::every]
    pairs = explicit_pairs(data.y, data.qid)
    n_pairs = np.isin(data.qid[pairs[:, 0]], chosen).sum()
    value, gradient, *_ = explicit(data, point.w, chosen)
    sample = objective.sample(every)
    sample_point = sample.evaluate(point.w)
    assert sample_point.value == pytest.approx(value / n_pairs, rel=1e-12)
    np.testing.assert_allclose(
        sample.gradient(sample_point)[[0, 1, 3, 4]], gradient[[0, 1, 3, 4]] / n_pairs, atol=1e-12
    )


def test_the_point_at_zero_is_cached_for_few_documents(monkeypatch):
    data = make_data()
    assert (objective := make_objective(data)).at_zero is objective.at_zero
    monkeypatch.setattr(base, "MAX_ZERO_POINT_DOCUMENTS", data.n_docs)
    assert (objective := make_objective(data)).at_zero is objective.at_zero
    monkeypatch.setattr(base, "MAX_ZERO_POINT_DOCUMENTS", data.n_docs - 1)
    assert (objective := make_objective(data)).at_zero is not objective.at_zero


def test_memory_of_a_wide_hessian_does_not_depend_on_the_number_of_parts():
    rng, (n, width) = np.random.default_rng(0), (6000, 512)
    data = Dataset(rng.normal(size=(n, width)), rng.integers(0, 3, n).astype(float), np.arange(n) // 10)
    objective, columns = make_objective(data), np.arange(width)
    point, block = objective.evaluate(np.zeros(width)), 8 * width**2
    n_parts = len(list(objective._few_queries(0, data.n_queries, width)))
    assert n_parts >= 20
    objective.hessian(point, columns)
    tracemalloc.start()
    objective.hessian(point, columns)
    one = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    objective.hessians(point, columns, np.array([0, data.n_queries // 2, data.n_queries]))
    two = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    rows_of_a_part = 4 * base.CACHE_BYTES
    assert one <= 6 * block + rows_of_a_part < n_parts * block / 2
    assert two <= 10 * block + rows_of_a_part
