"""Every penalty of the table, free and bound to a sign: prox against a grid, slopes, scaling, pickle."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from ranksieve.penalties import PENALTIES

SIGNED = [(name, {"signs": sign}) for name in ("l1", "elastic_net") for sign in (-1, 1)]


@pytest.fixture(params=[*((name, {}) for name in PENALTIES), *SIGNED], ids=str)
def penalty(request):
    name, options = request.param
    return PENALTIES[name](0.7, **options)


def test_prox_is_the_minimum_on_a_grid(penalty):
    grid = np.linspace(-4, 4, 8001)
    values = np.array([penalty.value(np.array([z])) for z in grid])
    for v in (-3.0, -0.5, -0.01, 0.0, 0.3, 1.2, 2.5):
        for step in (0.1, 1.0):
            expected = grid[np.argmin(0.5 * (grid - v) ** 2 + step * values)]
            assert penalty.prox(np.array([v]), step)[0] == pytest.approx(expected, abs=5e-3)


def test_value_is_zero_at_zero_and_separable(penalty):
    w = np.array([1.0, -2.0, 0.0, 0.5])
    assert penalty.value(np.zeros(3)) == 0
    assert penalty.value(w) == pytest.approx(sum(penalty.value(np.array([x])) for x in w))


def test_slopes_describe_the_penalty(penalty):
    slopes = penalty.slopes(1)
    for z in (-1.5, -0.1, 0.2, 2.0):
        linear = slopes.up[0] * z if z > 0 else slopes.down[0] * -z
        assert penalty.value(np.array([z])) == pytest.approx(linear + 0.5 * slopes.ridge * z * z)


def test_violation_is_zero_exactly_at_the_prox_optimum(penalty):
    """z = prox(v) minimises ½(z − v)² + penalty, so 0 ∈ (z − v) + ∂penalty(z)."""
    v = np.array([-2.0, 0.1, 1.5, 0.0])
    z = penalty.prox(v, 1.0)
    slopes = penalty.slopes(4)
    np.testing.assert_allclose(slopes.violation(z, z - v), 0, atol=1e-12)
    assert slopes.violation(z + np.array([0.1, 0, 0, 0]), z + np.array([0.1, 0, 0, 0]) - v)[0] > 1e-3


def test_scaled_changes_only_the_strength(penalty):
    w = np.array([1.0, -2.0])
    assert penalty.scaled(1.4).value(w) == pytest.approx(2 * penalty.value(w))
    assert penalty.scaled(1.4).name == penalty.name


@pytest.mark.parametrize("alpha", [-1.0, np.nan, np.inf])
def test_bad_strength(penalty, alpha):
    with pytest.raises(ValueError, match="alpha must be a finite number ≥ 0"):
        penalty.scaled(alpha)


def test_pickle(penalty):
    assert pickle.loads(pickle.dumps(penalty)).value(np.ones(2)) == penalty.value(np.ones(2))
