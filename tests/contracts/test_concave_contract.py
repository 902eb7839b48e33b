"""Every concave penalty: weights are its derivative, and it lies below its tangents."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from ranksieve.penalties import PENALTIES
from tests.solving import offering


@pytest.fixture(params=offering("concave"))
def penalty(request):
    return PENALTIES[request.param](0.3)


def test_weights_are_the_derivative(penalty):
    t = np.array([0.05, 0.2, 0.35, 0.7, 1.5, 3.0])
    h = 1e-7
    for sign in (1.0, -1.0):
        slope = [(penalty.value(np.array([x + h])) - penalty.value(np.array([x - h]))) / (2 * h) for x in t]
        np.testing.assert_allclose(0.3 * penalty.weights(sign * t), slope, rtol=1e-5, atol=1e-7)


def test_zero_at_zero_increasing_and_concave(penalty):
    t = np.linspace(0, 4, 400)
    g = np.array([penalty.value(np.array([x])) for x in t])
    assert g[0] == 0
    assert np.all(np.diff(g) >= -1e-12)
    assert np.all(np.diff(g, 2) <= 1e-12)


def test_below_every_tangent(penalty):
    rng = np.random.default_rng(0)
    for _ in range(50):
        u, v = rng.normal(size=(2, 4))
        tangent = penalty.value(v) + 0.3 * penalty.weights(v) @ (np.abs(u) - np.abs(v))
        assert penalty.value(u) <= tangent + 1e-12


def test_penalty_is_zero_at_strength_zero(penalty):
    free = penalty.scaled(0.0)
    assert free.value(np.array([1.0, -2.0])) == 0
    assert np.all(np.isfinite(free.weights(np.array([0.0, 1.0]))))


def test_pickle(penalty):
    assert pickle.loads(pickle.dumps(penalty)) == penalty
