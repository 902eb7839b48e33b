"""Line searches in one weight with known minimum and number of evaluations."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from ranksieve.solvers.base import exact_step, first_decrease


class Line:
    """A function of one weight; records evaluations and slopes."""

    def __init__(self, value=None, slope=None, curvature=None):
        self.value, self.slope, self.curvature, self.evaluated, self.slopes = value, slope, curvature, [], []

    def scores(self, w):
        return 3.0 * w

    def evaluate(self, w):
        return self.evaluate_scores(w, self.scores(w))

    def evaluate_scores(self, w, scores):
        np.testing.assert_allclose(scores, 3.0 * w, rtol=1e-15)
        self.evaluated.append(float(w[0]))
        return SimpleNamespace(w=w, scores=scores, value=self.value(w[0]) if self.value else math.nan)

    def slope_along(self, point, direction_scores):
        return self.slope(float(point.w[0])) * float(direction_scores[0]) / 3.0

    def slopes_along(self, point, direction_scores):
        start, turn = float(point.w[0]), float(direction_scores[0]) / 3.0

        def along(step):
            self.slopes.append(step)
            at = start + step * turn
            return turn * self.slope(at), turn**2 * self.curvature(at)

        return along


def at(w):
    return SimpleNamespace(w=np.array([w]), scores=np.array([3.0 * w]))


def nothing(w):
    return 0.0


def decreased(line, start, direction, decrease, value, penalty=nothing):
    return first_decrease(line, penalty, at(start), np.array([direction]), decrease, value)


def test_the_full_step_if_it_decreases_the_objective():
    line = Line(value=lambda w: w * w)
    assert decreased(line, 1.0, -1.0, -2.0, 1.0).w == 0.0
    assert line.evaluated == [0.0]


def test_otherwise_half_and_quarter_steps():
    line = Line(value=lambda w: w * w)
    assert decreased(line, 1.0, -4.0, -8.0, 1.0).w == 0.0
    assert line.evaluated == [-3.0, -1.0, 0.0, 0.0]  # the result is evaluated at its weights


def test_the_penalty_is_evaluated_at_the_end_of_the_step():
    line = Line(value=lambda w: 0.0)
    assert decreased(line, 4.0, -8.0, -4.0, 4.0, lambda w: abs(w[0])).w == 0.0
    assert line.evaluated == [-4.0, 0.0, 0.0]


@pytest.mark.parametrize(("share", "accepted"), [(0.9e-4, False), (1.1e-4, True)])
def test_a_step_must_reach_a_share_of_the_predicted_decrease(share, accepted):
    line = Line(value=lambda w: -share * w)
    assert (decreased(line, 0.0, 1.0, -1.0, 0.0) is not None) == accepted
    assert len(line.evaluated) == (1 if accepted else 34)  # 2⁻³³ is the last step above 1e-10


def test_a_shorter_step_has_a_smaller_predicted_decrease():
    """Half of the step only needs half of the decrease, 0.5e-4."""
    line = Line(value=lambda w: 1.0 if w > 0.5 else -0.8e-4)
    assert decreased(line, 0.0, 1.0, -1.0, 0.0).w == 0.5


@pytest.mark.parametrize(("rise", "accepted"), [(0.0, True), (2**-51, True), (2**-48, False)])
def test_increases_by_rounding_are_accepted(rise, accepted):
    line = Line(value=lambda w: 1.0 + rise)
    assert (decreased(line, 0.0, 1.0, 0.0, 1.0) is not None) == accepted


def test_a_step_without_change_is_accepted_if_none_is_predicted():
    assert decreased(Line(value=lambda w: 0.0), 0.0, 1.0, 0.0, 0.0) is not None


def stepped(line, limit, start=0.0, direction=1.0):
    slide = np.array([3.0 * direction])
    return exact_step(line, at(start), np.array([direction]), slide, limit)


def test_a_parabola_needs_one_newton_step():
    line = Line(slope=lambda w: 2.0 * (w - 3.0), curvature=lambda w: 2.0)
    step, end = stepped(line, 10.0)
    assert (step, end.w) == (3.0, 3.0)
    assert (line.slopes, line.evaluated) == ([0.0, 3.0], [3.0])


def test_another_start_and_direction():
    line = Line(slope=lambda w: 2.0 * (w - 3.0), curvature=lambda w: 2.0)
    step, end = stepped(line, 10.0, start=5.0, direction=-0.5)
    assert (step, end.w) == (4.0, 3.0)


@pytest.mark.parametrize("root", [10.0, 30.0])
def test_a_minimum_at_or_beyond_the_limit_returns_the_limit(root):
    line = Line(slope=lambda w: 2.0 * (w - root), curvature=lambda w: 2.0)
    step, end = stepped(line, 10.0)
    assert (step, end.w) == (10.0, 10.0)
    assert (line.slopes, line.evaluated) == ([0.0, 10.0], [10.0])


@pytest.mark.parametrize("first", [1.0, 1024.0])
def test_a_slope_of_1e_10_of_the_first_is_treated_as_zero(first):
    line = Line(slope=lambda w: -first if w < 1.0 else 1e-10 * first, curvature=lambda w: first)
    assert stepped(line, 1.0)[0] == 1.0
    assert line.slopes == [0.0, 1.0]


@pytest.mark.parametrize("slope", [0.0, 1.0])
def test_no_step_along_an_ascending_direction(slope):
    line, start = Line(slope=lambda w: slope, curvature=lambda w: 1.0), at(0.0)
    step, end = exact_step(line, start, np.ones(1), np.full(1, 3.0), 1.0)
    assert step == 0.0
    assert end is start
    assert line.evaluated == line.slopes == []


def test_a_bracket_of_adjacent_floats_ends_the_search():
    below = 0.5 - 2.0**-52
    line = Line(slope=lambda w: -1.0 if w <= below else 1.0, curvature=lambda w: 2.0 if w == 0.0 else 2.0**52)
    step, end = stepped(line, 1.0)
    assert step == end.w == pytest.approx(0.5, abs=1e-15)
    assert line.slopes[:3] == [0.0, 0.5, below]
    assert len(line.slopes) == 4


def test_without_curvature_the_interval_is_bisected():
    line = Line(slope=lambda w: -1.0 if w < 2.3 else 1.0, curvature=lambda w: 0.0)
    step, end = stepped(line, 8.0)
    assert step == pytest.approx(2.3, abs=1e-13)
    assert end.w == step
    assert line.slopes[:5] == [0.0, 8.0, 4.0, 2.0, 3.0]
    assert len(line.slopes) <= 51


def test_a_step_that_leaves_the_bracket_is_replaced_by_bisection():
    """Flat, then steep: Newton steps from either side overshoot."""
    line = Line(
        slope=lambda w: math.atan(20.0 * (w - 1.0)), curvature=lambda w: 20.0 / (1.0 + 400.0 * (w - 1.0) ** 2)
    )
    step, _ = stepped(line, 5.0)
    assert step == pytest.approx(1.0, abs=1e-11)
    assert line.slopes[:4] == [0.0, 5.0, 2.5, 1.25]
    assert len(line.slopes) + len(line.evaluated) < 15


def test_the_last_step_is_not_evaluated_twice():
    line = Line(slope=lambda w: math.exp(w) - 5.0, curvature=math.exp)
    step, end = stepped(line, 3.0)
    assert step == pytest.approx(math.log(5.0), abs=1e-10)
    assert end.w == step
    assert len(line.slopes) <= 7
    assert len(line.evaluated) <= 2  # the end point is not evaluated again


@pytest.mark.parametrize("length", [2.0**-20, 2.0**20])
def test_the_length_of_the_direction_only_scales_the_step(length):
    for slope, curvature in [(lambda w: math.exp(w) - 5.0, math.exp), (lambda w: w - 2.3, lambda w: 0.0)]:
        one, other = Line(slope=slope, curvature=curvature), Line(slope=slope, curvature=curvature)
        stepped(one, 3.0)
        stepped(other, 3.0 / length, direction=length)
        assert [step * length for step in other.slopes] == one.slopes
        assert other.evaluated == one.evaluated
