"""The formulas that certificates are made of, by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from ranksieve.penalties import L1, L1Ball
from ranksieve.penalties.base import Slopes, duality_gap

SLOPES = Slopes(np.array([1.0, 2.0, np.inf, 0.0]), np.array([3.0, 0.5, 1.0, 0.0]), ridge=0.5)


def stub(dual=lambda scale: 0.0, gradient_error=0.0, value_error=0.0):
    """An objective that knows its dual values and rounding errors."""
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


def test_slopes_that_a_gradient_meets_by_hand():
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
        ([-4.0, 1.0, -7.0, 0.0], 1.0, 0.2),  # 1/(4 + 1)
        ([-0.5, 0.25, -7.0, 0.0], 0.0, 1.0),
        ([-1.0, 0.5, -7.0, 0.0], 0.0, 1.0),  # as large as the slope: feasible
        ([2.0, -1.0, 3.0, 0.0], 0.0, 1 / 3),
        ([-0.5, 0.25, 0.0, 0.125], 0.125, 1.0),  # an unpenalised feature within its rounding error
        ([-0.5, 0.25, 0.0, 0.126], 0.125, 0.0),
    ],
)
def test_the_scale_of_a_dual_point_by_hand(g, error, scale):
    assert SLOPES.dual_scale(np.array(g), error) == scale


def test_what_a_ridge_pays_for_by_hand():
    g = np.array([-4.0, 1.0, -7.0, 0.5])
    assert SLOPES.excess(g) == 9.0 + 0.25 + 0.25
    assert SLOPES.excess(g, 0.5) == 3.5**2 + 1.0 + 1.0


def test_a_duality_gap_by_hand():
    """F = 2 + 1·|w|; the gradient must shrink to ½ of itself, and the dual there is 3·½."""
    slopes, point = Slopes(np.ones(1), np.ones(1)), SimpleNamespace(w=np.array([4.0]), value=2.0)
    objective = stub(dual=lambda scale: 3.0 * scale, value_error=0.125)
    assert duality_gap(objective, slopes, point, np.array([-2.0])) == (6.0, 4.5 + 0.125)
    above = stub(dual=lambda scale: 30.0 * scale, value_error=0.125)
    assert duality_gap(above, slopes, point, np.array([-2.0])) == (6.0, 0.125)  # no gap is negative
    unsure = stub(dual=lambda scale: 3.0 * scale, gradient_error=2.0)
    assert duality_gap(unsure, slopes, point, np.array([-2.0])) == (6.0, 6.0 - 0.75)


def test_the_gap_of_a_penalty_is_that_of_its_slopes():
    point = SimpleNamespace(w=np.array([4.0]), value=2.0)
    assert L1(1.0).gap(stub(dual=lambda scale: 3.0 * scale), point, np.array([-2.0])) == 4.5


@pytest.mark.parametrize("alpha", [-0.5, np.inf, np.nan])
def test_a_strength_is_finite_and_not_negative(alpha):
    assert L1(0.0).alpha == 0.0
    with pytest.raises(ValueError, match=f"alpha must be a finite number ≥ 0, got {alpha}"):
        L1(alpha)


@pytest.mark.parametrize(("ridge", "dual"), [(2.0, 3.0 - 1.0 / 4.0), (0.5, 3.0 - 1.0), (0.25, 3.0 * 0.5)])
def test_with_a_ridge_the_better_of_two_dual_points_counts(ridge, dual):
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
    with pytest.raises(ValueError, match=f"radius must be a finite number > 0, got {radius}"):
        L1Ball(radius)
