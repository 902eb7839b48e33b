"""The formulas of certificates, computed by hand."""

from __future__ import annotations

import warnings
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from ranksieve.data.dataset import Dataset
from ranksieve.objective import make_objective
from ranksieve.path import sparse_path
from ranksieve.penalties import L1, L1Ball, base
from ranksieve.penalties.base import Slopes, duality_gap
from ranksieve.rankers import RankSVM
from tests.conftest import random_dataset
from tests.pairs import explicit_pairs
from tests.refusals import refused_parameter

SLOPES = Slopes(np.array([1.0, 2.0, np.inf, 0.0]), np.array([3.0, 0.5, 1.0, 0.0]), ridge=0.5)


def stub(dual=lambda scale: 0.0, gradient_error=0.0, value_error=0.0):
    """An objective with given dual values and rounding errors."""
    return SimpleNamespace(
        dual=lambda point, scale: dual(scale),
        gradient_error=lambda point: np.asarray(gradient_error),
        value_error=lambda point: value_error,
    )


def test_a_penalty_of_slopes_by_hand():
    assert SLOPES.value(np.array([2.0, -4.0, -1.0, 5.0])) == 2.0 + 2.0 + 1.0 + 0.25 * (4 + 16 + 1 + 25)
    assert SLOPES.value(np.array([-2.0, 4.0, 0.0, 0.0])) == 6.0 + 8.0 + 0.25 * (4 + 16)
    np.testing.assert_array_equal(SLOPES.prox(np.array([3.0, -3.0, 5.0, 1.0]), 2.0), [0.5, -1.0, 0.0, 0.5])
    np.testing.assert_array_equal(SLOPES.prox(np.array([-8.0, 3.0, -5.0, 0.0]), 2.0), [-1.0, 0.0, -1.5, 0.0])


def test_feasible_slopes_by_hand():
    np.testing.assert_array_equal(SLOPES.facing(np.array([-1.0, 1.0, 0.0, -2.0])), [1.0, 0.5, 1.0, 0.0])
    g = np.array([-4.0, 2.0, -9.0, -3.0])
    np.testing.assert_array_equal(SLOPES.violation(np.array([0.0, 0.0, 0.0, 2.0]), g), [3.0, 1.5, 0.0, 2.0])
    g = np.array([5.0, -3.0, 1.5, 1.0])
    expected = [abs(5 - 3 - 1), abs(-3 + 2 + 2), 0.5, abs(1 - 0 - 0.5)]
    np.testing.assert_array_equal(SLOPES.violation(np.array([-2.0, 4.0, 0.0, -1.0]), g), expected)


@pytest.mark.parametrize(
    ("g", "error", "scale"),
    [
        ([-4.0, 1.0, -7.0, 0.0], 0.0, 0.25),
        ([-0.5, 0.25, -7.0, 0.0], 0.0, 1.0),
        ([-1.0, 0.5, -7.0, 0.0], 0.0, 1.0),  # as large as the slope: feasible
        ([2.0, -1.0, 3.0, 0.0], 0.0, 1 / 3),
        ([-4.0, 1.0, -7.0, 0.0], [1.0, 0.0, 0.0, 0.0], 0.2),  # 1/(4 + 1)
        ([-0.5, 0.25, -7.0, 0.0], [0.0, 0.0, 0.0, 0.125], 0.0),  # a slope of 0 allows only g = 0
        ([0.5, 0.25, -7.0, 0.0], [2.5, 0.0, 0.0, 0.0], 0.5),  # between −2 and 3: −2 is twice the slope up
    ],
)
def test_the_scale_of_a_dual_point_by_hand(g, error, scale):
    assert SLOPES.dual_scale(np.array(g), np.array(error)) == scale


def test_excess_over_slopes_by_hand():
    g = np.array([-4.0, 1.0, -7.0, 0.5])
    assert SLOPES.excess(g) == 9.0 + 0.25 + 0.25
    assert SLOPES.excess(g, 0.5) == 3.5**2 + 1.0 + 1.0
    assert SLOPES.excess(np.array([0.5, 0.0, -8.0, 0.0]), np.array([2.0, 0.0, 0.0, 0.0])) == 0.5**2  # −1.5


def test_a_duality_gap_by_hand():
    """F = 2 + 1·|w|; the gradient is scaled by ½, and the dual there is 3·½."""
    slopes, point = Slopes(np.ones(1), np.ones(1)), SimpleNamespace(w=np.array([4.0]), value=2.0)
    objective = stub(dual=lambda scale: 3.0 * scale, value_error=0.125)
    assert duality_gap(objective, slopes, point, np.array([-2.0])) == (6.0, 4.5 + 0.125)
    above = stub(dual=lambda scale: 30.0 * scale, value_error=0.125)
    assert duality_gap(above, slopes, point, np.array([-2.0])) == (6.0, 0.125)  # a gap is never negative
    unsure = stub(dual=lambda scale: 3.0 * scale, gradient_error=2.0)
    assert duality_gap(unsure, slopes, point, np.array([-2.0])) == (6.0, 6.0 - 0.75)


def test_the_gap_of_a_penalty_equals_the_gap_of_its_slopes():
    point = SimpleNamespace(w=np.array([4.0]), value=2.0)
    assert L1(1.0).gap(stub(dual=lambda scale: 3.0 * scale), point, np.array([-2.0])) == 4.5


@pytest.mark.parametrize("alpha", [-0.5, np.inf, np.nan])
def test_a_strength_is_finite_and_not_negative(alpha):
    assert L1(0.0).alpha == 0.0
    with refused_parameter("alpha", alpha):
        L1(alpha)


@pytest.mark.parametrize(("ridge", "dual"), [(2.0, 3.0 - 1.0 / 4.0), (0.5, 3.0 - 1.0), (0.25, 3.0 * 0.5)])
def test_with_a_ridge_the_better_of_two_dual_points_is_used(ridge, dual):
    slopes, point = Slopes(np.ones(1), np.ones(1), ridge), SimpleNamespace(w=np.array([4.0]), value=2.0)
    primal, gap = duality_gap(stub(dual=lambda scale: 3.0 * scale), slopes, point, np.array([-2.0]))
    assert primal == 2.0 + 4.0 + 0.5 * ridge * 16.0
    assert gap == primal - dual


def test_the_gap_of_a_ball_by_hand():
    point = SimpleNamespace(w=np.array([1.0, -0.5]))
    objective = stub(gradient_error=[0.25, 0.125], value_error=0.0625)
    assert L1Ball(2.0).gap(objective, point, np.array([-3.0, 1.0])) == (6.0 - 3.5) + 0.5 + 0.0625
    assert L1Ball(1.0).gap(stub(), SimpleNamespace(w=np.array([2.0, 0.0])), np.array([-3.0, 1.0])) == 0.0


def test_the_nearest_point_of_a_ball_by_hand():
    ball = L1Ball(2.0)
    assert ball.value(np.array([-2.0 * (1.0 + 1e-12)])) == 0.0
    assert ball.value(np.array([2.0 * (1.0 + 2e-12)])) == np.inf
    np.testing.assert_array_equal(ball.prox(np.array([3.0, -2.0, 0.5]), 1.0), [1.5, -0.5, 0.0])
    np.testing.assert_array_equal(ball.prox(np.array([5.0, -2.0, 0.5]), 9.0), [2.0, 0.0, 0.0])
    inside = np.array([1.0, -1.0, 0.0])
    nearest = ball.prox(inside, 1.0)
    np.testing.assert_array_equal(nearest, inside)
    assert nearest is not inside
    assert ball.value(inside) == 0.0
    assert ball.value(inside * (1.0 + 1e-9)) == np.inf


@pytest.mark.parametrize("radius", [0.0, -1.0, np.inf, np.nan])
def test_a_ball_without_a_size_is_refused(radius):
    with refused_parameter("radius", radius):
        L1Ball(radius)


def exact_hinge(data, w):
    """The mean squared hinge over pairs, in rational arithmetic."""
    pairs, w = explicit_pairs(data.y, data.qid), [Fraction(float(weight)) for weight in w]
    rows = [[Fraction(float(x)) for x in row] for row in data.X]
    margins = (sum(a * (x - z) for a, x, z in zip(w, rows[i], rows[j], strict=True)) for i, j in pairs)
    return sum(max(Fraction(0), 1 - margin) ** 2 for margin in margins) / len(pairs)


def near_copies(size, noise, seed=4, n=16):
    """Two features that differ by informative noise, and a third one."""
    rng = np.random.default_rng(seed)
    y, z, third = np.tile([0.0, 1.0], n // 2), rng.normal(size=n), rng.normal(size=n)
    return Dataset(np.c_[size * z, size * z + size * noise * (y + 0.1 * third), third], y, np.arange(n) // 4)


def difference_of_copies(data):
    """Weights that rank by the difference of the first two features."""
    gain = 1.0 / np.median((data.X[:, 1] - data.X[:, 0])[data.y == 1.0])
    return np.array([-gain, gain, 0.0])


@pytest.mark.parametrize("size", [1e6, 1e8, 1e12])
def test_gaps_are_valid_for_near_copies_with_a_ridge(size):
    data = near_copies(size, noise=1e-9)
    better = difference_of_copies(data)
    C = 100.0 * float(better @ better)  # small enough a ridge to use the difference
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about scales and tolerances
        ranker = RankSVM(C=C, average=True).fit(data)
    reached = exact_hinge(data, better) + sum(Fraction(float(w)) ** 2 for w in better) / Fraction(2.0 * C)
    assert reached < Fraction(1, 5)
    assert ranker.objective_ - ranker.gap_ <= reached


@pytest.mark.parametrize(("size", "noise"), [(1e3, 1e-10), (1e6, 1e-9), (1e8, 1e-8)])
def test_gaps_are_valid_for_near_copies_without_a_penalty(size, noise):
    data = near_copies(size, noise, seed=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about scales and tolerances
        path = sparse_path(data, n_alphas=4, must_have=[0, 1])
    reached = exact_hinge(data, difference_of_copies(data))
    assert reached < Fraction(1, 5)
    assert np.all(path.objectives - path.gaps <= float(reached))


def test_unpenalised_features_of_different_scales_converge():
    """Every point of the path converges with features of different scales."""
    data = random_dataset(seed=8, n_queries=12)
    scaled = Dataset(data.X * 10.0 ** np.arange(-3, data.n_features - 3), data.y, data.qid)
    path = sparse_path(scaled, n_alphas=10, must_have=[0, 1, 2])
    assert np.all(path.converged)
    assert np.all(path.coefs[:, :3])


def test_cuts_bound_the_distance_of_unpenalised_weights_to_the_optimum():
    """The bound on the distance to the optimum, at points near and far."""
    data, free = random_dataset(seed=8, n_queries=12), np.array([True, True, False, False, False])
    objective = make_objective(data, "squared_hinge")
    assert objective.n_features == len(free)
    forbidden = np.full(len(free), np.inf)
    others = Slopes(forbidden, forbidden)
    best = sparse_path(data, alphas=[1e6], must_have=[0, 1], tol=1e-12).coefs[0]
    for off in ([0.0, 0.0], [1e-6, 0.0], [1e-4, -1e-4]):
        point = objective.evaluate(best + np.array([*off, 0.0, 0.0, 0.0]))
        bound = base._largest_moves(objective, others, point, point.value, free)
        assert np.all(np.abs(point.w - best)[:2] <= bound)
        assert np.all(bound < 0.1)
