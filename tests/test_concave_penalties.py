"""Concave penalties computed by hand, around the points where their formula changes."""

from __future__ import annotations

import numpy as np
import pytest

from ranksieve.penalties import MCP, SCAD, Log, Lp
from tests.refusals import refused_parameter

W = np.array([0.0, -0.5, 2.0])


def test_log_by_hand():
    penalty = Log(3.0, epsilon=0.5)
    assert penalty.value(W) == pytest.approx(3.0 * (np.log(2.0) + np.log(5.0)), rel=1e-15)
    np.testing.assert_array_equal(penalty.weights(W), [2.0, 1.0, 0.4])


def test_lp_by_hand():
    penalty = Lp(3.0, p=0.5, smoothing=0.25)
    assert penalty.value(np.array([2.0, -3.75])) == pytest.approx(3.0 * (1.5 - 0.5 + 2.0 - 0.5), rel=1e-15)
    np.testing.assert_allclose(penalty.weights(np.array([0.0, -3.75])), [1.0, 0.25], rtol=1e-15)


def test_mcp_by_hand():
    """γα = 4: t − t²/8 for t ≤ 4, then 2."""
    penalty = MCP(2.0, gamma=2.0)
    for t, g, slope in [(0.0, 0.0, 1.0), (2.0, 1.5, 0.5), (4.0, 2.0, 0.0), (9.0, 2.0, 0.0)]:
        for sign in (1.0, -1.0):
            assert penalty.value(np.array([sign * t, 0.0])) == 2.0 * g
            np.testing.assert_array_equal(penalty.weights(np.array([sign * t, 0.0])), [slope, 1.0])
    assert penalty.value(np.array([2.0, 9.0])) == 2.0 * 3.5


def test_scad_by_hand():
    """α = 2, a = 3: slope 1 for t ≤ 2, then decreasing; 4 for t ≥ 6."""
    penalty = SCAD(2.0, a=3.0)
    for t, g, slope in [(1.0, 1.0, 1.0), (2.0, 2.0, 1.0), (4.0, 3.5, 0.5), (6.0, 4.0, 0.0), (9.0, 4.0, 0.0)]:
        for sign in (1.0, -1.0):
            assert penalty.value(np.array([sign * t, 0.0])) == 2.0 * g
            np.testing.assert_array_equal(penalty.weights(np.array([sign * t, 0.0])), [slope, 1.0])
    assert penalty.value(np.array([1.0, 4.0])) == 2.0 * 4.5


@pytest.mark.parametrize("kind", [Log, Lp, MCP, SCAD])
@pytest.mark.parametrize("alpha", [-1.0, np.nan])
def test_bad_strengths_are_refused(kind, alpha):
    with refused_parameter("alpha", alpha):
        kind(alpha)


def test_small_parameters_are_accepted():
    assert Log(epsilon=1e-9).epsilon == Lp(smoothing=1e-9).smoothing == MCP(gamma=1e-9).gamma == 1e-9
    assert Lp(p=1e-9).p == 1e-9
    assert Lp(p=1 - 1e-9).p == 1 - 1e-9
    assert SCAD(a=2 + 1e-9).a == 2 + 1e-9
