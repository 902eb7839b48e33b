"""Second-order models: working sets computed by hand, and exact minima."""

from __future__ import annotations

import numpy as np
import pytest

from ranksieve.kernels.linear import minimise_quadratic
from ranksieve.penalties.base import Slopes
from ranksieve.solvers import prox_newton
from ranksieve.solvers.prox_newton import minimum_by_products, model_minimum, steepest, working_set
from ranksieve.subset import relaxation as module
from ranksieve.subset.relaxation import Perspective

ONES = Slopes(np.ones(4), np.ones(4))


@pytest.mark.parametrize(
    ("w", "g", "most", "chosen"),
    [
        ([1.0, 0.0, 0.0, 0.0], [0.0, 0.8, -0.79, -0.8], 9, [0, 1, 3]),  # features in use, or near the slope 1
        (
            [0.5, 0.0, 0.0, 0.0],
            [0.0, 2.0, 3.0, 0.0],
            2,
            [0, 2],
        ),  # limited to features in use and the steepest others
        ([0.5, 0.0, 0.0, 0.0], [0.0, 2.0, 3.0, 4.0], 1, [0, 3]),  # at least twice the number in use
        ([0.0, 0.0, 0.0, 0.0], [1.0, 2.0, 2.0, 1.0], 1, [1]),
    ],
)
def test_working_sets_by_hand(w, g, most, chosen):
    assert working_set(ONES, np.array(w), np.array(g), 0.8, most).tolist() == chosen


def test_working_sets_of_other_slopes_by_hand():
    slopes = Slopes(np.array([1.0, 9.0, 0.0, np.inf]), np.array([9.0, 2.0, 0.0, 1.0]))
    w, g = np.zeros(4), np.array([-1.5, 2.0, 0.1, -5.0])
    assert working_set(slopes, w, g, 0.8, 9).tolist() == [0, 1, 2]
    assert working_set(slopes, w, g, 0.8, 2).tolist() == [0, 2]  # slope 0 first, then by |g|/slope
    usable = np.array([True, True, False, True])
    assert working_set(slopes, w, g, 0.8, 9, usable).tolist() == [0, 1]
    assert steepest(np.array([3, 5, 8]), np.array([1.0, 2.0, 2.0]), 2).tolist() == [5, 8]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_the_minimum_of_a_model_is_exact(seed, ridge):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(9, 6)) * 10.0 ** rng.integers(-2, 3, 6)  # features of different scales
    H, w, columns = A.T @ A, np.zeros(8), np.array([0, 2, 3, 4, 6, 7])
    slopes = Slopes(rng.uniform(0.1, 1.0, 8), rng.uniform(0.1, 1.0, 8), ridge)
    g = 3.0 * rng.normal(size=8)
    w[columns[:3]] = rng.normal(size=3)
    z = w.copy()
    z[columns] = model_minimum(H, slopes, w, g, columns)
    there = g.copy()
    there[columns] += H @ (z - w)[columns]
    assert np.any(z[columns] != 0)
    assert np.max(slopes.violation(z, there)[columns]) <= 1e-9 * np.max(np.abs(g))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("ridge", [0.0, 0.01])
def test_the_minimum_by_products_meets_the_tolerance(seed, ridge):
    """Also with fewer rows than features, with signs, and with unpenalised and excluded features."""
    rng, n_rows, d = np.random.default_rng(seed), (30, 200)[seed % 2], 60
    A = rng.normal(size=(n_rows, d)) * np.exp(rng.normal(size=d)) * (rng.random((n_rows, d)) < 0.3)
    A[:, 7] = 0.0  # without a ridge, a feature without curvature keeps its weight
    H, g = A.T @ A / n_rows, A.T @ rng.normal(size=n_rows) / n_rows  # g is in the range of H
    w, up, down = np.where(rng.random(d) < 0.2, rng.normal(size=d), 0.0), np.full(d, 0.05), np.full(d, 0.03)
    up[:5], down[5:10], up[10:12], down[10:12], up[12], down[12] = np.inf, np.inf, 0.0, 0.0, np.inf, np.inf
    w[:5], w[5:10], w[12] = -np.abs(w[:5]), np.abs(w[5:10]), 0.0
    slopes, wrong_scale = Slopes(up, down, ridge), rng.uniform(0.5, 2.0, size=d)

    def model(z):
        return g @ (z - w) + 0.5 * (z - w) @ H @ (z - w) + slopes.value(z)

    z = minimum_by_products(lambda v: H @ v, wrong_scale * np.diag(H), slopes, w, g, 1e-9)
    others = (np.arange(d) != 7) | (ridge > 0)
    assert ridge > 0 or z[7] == w[7]
    assert np.max(slopes.violation(z, g + H @ (z - w)), where=others, initial=0.0) <= 1e-9
    exact = minimise_quadratic(H, g, w, up, down, ridge, 1e-12, 100_000)
    assert model(z) == pytest.approx(model(exact), abs=1e-9 * abs(model(w) - model(exact)))


@pytest.mark.parametrize("seed", range(6))
def test_the_minimum_of_a_perspective_is_exact_after_few_descents(seed, monkeypatch):
    rng, calls = np.random.default_rng(seed), []
    descend = module.descend
    monkeypatch.setattr(module, "descend", lambda *problem: (calls.append(1), descend(*problem)))
    A = rng.normal(size=(9, 6))
    H, b, ridge = A.T @ A, 5.0 * rng.normal(size=6), 2.0
    inside, signs = np.arange(6) == 1, np.where(np.arange(6) == 2, 1.0, 0.0)
    model = Perspective(H, b, ridge, inside, signs, 2)
    w, t = model.minimise(np.zeros(6), 0.5, np.zeros(6), np.inf)
    slope, size = H @ w + b, np.abs(w)
    pull = np.where(inside | (ridge * size > t), ridge * size, t)
    follows = np.where(signs * slope > 0, 0.0, np.abs(slope))
    off = np.where(w == 0, np.maximum(0.0, follows - t), np.abs(slope + np.sign(w) * pull))
    assert np.max(off) <= 1e-5 * t
    assert np.sum(np.minimum(1.0, ridge * size / t)[~inside]) == pytest.approx(2.0, abs=1e-5)
    assert np.all(signs * w >= 0)
    assert len(calls) <= 8


def test_thresholds_by_hand():
    model = Perspective(np.eye(2), np.ones(2), 0.5, np.zeros(2, bool), np.zeros(2), 1)
    np.testing.assert_array_equal(model._thresholds(3.0, np.array([0.0, 7.0])), [3.0, 4.0])


def test_a_cost_limit_of_half_a_feature():
    """½w² − w + ½w²/u has its minimum at w = u/(u + 1)."""
    model = Perspective(np.eye(2), -np.ones(2), 1.0, np.zeros(2, bool), np.zeros(2), 2)
    both, _ = model.minimise(np.zeros(2), 0.1, np.ones(2), 1.0)
    np.testing.assert_allclose(both, [1 / 3, 1 / 3], rtol=1e-3)
    one, _ = model.minimise(np.zeros(2), 0.1, np.array([1.0, 0.0]), 0.5)
    np.testing.assert_allclose(one, [1 / 3, 1 / 2], rtol=1e-3)


def test_a_start_at_the_minimum_needs_one_descent(monkeypatch):
    calls, descend, rng = [], module.descend, np.random.default_rng(3)
    monkeypatch.setattr(module, "descend", lambda *problem: (calls.append(1), descend(*problem)))
    A = rng.normal(size=(9, 6))
    model = Perspective(A.T @ A, 5.0 * rng.normal(size=6), 2.0, np.zeros(6, bool), np.zeros(6), 2)
    w, t = model.minimise(np.zeros(6), 0.5, np.zeros(6), np.inf)
    calls.clear()
    model.minimise(w, t, np.zeros(6), np.inf)
    assert len(calls) == 1


def test_the_linear_system_of_a_model_by_hand():
    model = Perspective(np.eye(2), np.array([-4.0, -1.0]), 2.0, np.zeros(2, bool), np.zeros(2), 2)
    w, t = model._exact(np.array([1.0, 0.1]), 1.0)  # the first one is on the parabola: w + 2w = 4
    np.testing.assert_allclose(
        w, [4 / 3, 1 / 3], rtol=1e-9
    )  # the second one is on the line: w + t = 1, 2w = t
    assert t == pytest.approx(2 / 3, rel=1e-9)


@pytest.mark.parametrize(
    ("b", "sign", "t", "optimal"),
    [
        (0.7, 1.0, 0.5, True),  # must not follow its slope because of its sign
        (0.7, 0.0, 0.5, False),
        (-(1.0 + 1e-6), 0.0, 1.0, True),  # above the threshold by the tolerance
        (-(1.0 + 2e-6), 0.0, 1.0, False),
    ],
)
def test_weights_of_zero_in_a_minimum(b, sign, t, optimal):
    model = Perspective(np.eye(2), np.array([-4.0, b]), 2.0, np.zeros(2, bool), np.array([0.0, sign]), 1)
    assert model._is_minimum(np.array([4 / 3, 0.0]), t) == optimal


def test_bisection_ends_with_a_narrow_interval():
    tried = []
    module._bisect(lambda x: tried.append(x) or x < 3.7, 1.0, 100.0)
    assert 3.7 <= tried[-1] <= 3.7 * (1.0 + 1e-4)
    assert tried[:2] == [10.0, pytest.approx(10.0**0.5)]
    assert len(tried) == 17


@pytest.mark.parametrize(("rounding", "accepted"), [(0.11, False), (0.12, True)])
def test_a_polished_minimum_is_accepted_if_worse_only_by_rounding(rounding, accepted, monkeypatch):
    monkeypatch.setattr(prox_newton, "OBJECTIVE_ROUNDING", rounding)
    one, z = np.ones(1), np.ones(1)
    polished = prox_newton._polish(-np.eye(1), Slopes(one, one), np.zeros(1), 3.0 * one, z)
    # 4v − ½v² is stationary at 4 with a value 4.5 above that at 1, where its terms are of size 4
    np.testing.assert_array_equal(polished, [4.0] if accepted else z)


def test_an_exact_minimum_with_other_signs_is_rejected():
    hessian, slopes = np.array([[1.0, 0.9], [0.9, 1.0]]), Slopes(np.full(2, 0.1), np.full(2, 0.1))
    z = np.array([1.0, 0.1])  # the linear system for its signs has the solution 8.1, −6.9
    polished = prox_newton._polish(hessian, slopes, np.zeros(2), np.array([-2.0, -0.5]), z)
    np.testing.assert_array_equal(polished, z)
