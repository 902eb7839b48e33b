"""Concave penalties: bad parameters, strength 0, no certificate."""

from __future__ import annotations

import numpy as np
import pytest

from ranksieve.penalties import MCP, SCAD, Log, Lp
from tests.refusals import refused_parameter


@pytest.mark.parametrize(
    ("make", "name", "value"),
    [
        (lambda: Log(1.0, epsilon=0.0), "epsilon", 0.0),
        (lambda: Lp(1.0, p=1.0), "p", 1.0),
        (lambda: Lp(1.0, p=0.0), "p", 0.0),
        (lambda: Lp(1.0, smoothing=0.0), "smoothing", 0.0),
        (lambda: MCP(1.0, gamma=0.0), "gamma", 0.0),
        (lambda: SCAD(1.0, a=2.0), "a", 2.0),
        (lambda: Log(-1.0), "alpha", -1.0),
    ],
)
def test_bad_parameters_are_refused(make, name, value):
    with refused_parameter(name, value):
        make()


@pytest.mark.parametrize("kind", [Log, Lp, MCP, SCAD])
def test_concave_penalties_have_no_gap_and_are_zero_at_strength_zero(kind):
    w = np.array([1.0, -0.2, 0.0])
    assert np.isnan(kind(1.0).gap(None, None, w))
    assert kind(0.0).value(w) == 0.0


@pytest.mark.parametrize("kind", [MCP, SCAD])
def test_weights_are_zero_at_strength_zero(kind):
    np.testing.assert_array_equal(kind(0.0).weights(np.array([1.0, -0.2, 0.0])), np.zeros(3))
