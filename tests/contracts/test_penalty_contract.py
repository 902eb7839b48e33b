"""Every penalty, with and without sign constraints: capabilities, prox, slopes, scaling."""

from __future__ import annotations

import pickle
from dataclasses import fields

import numpy as np
import pytest

from ranksieve.penalties import PENALTIES, Quadratic
from ranksieve.solvers.base import CAPABILITIES
from tests.refusals import refused_parameter
from tests.solving import offering

SIGNED = [(name, {"signs": sign}) for name in ("l1", "elastic_net") for sign in (-1, 1)]
CASES = [*((name, {}) for name in PENALTIES), *SIGNED]
STRENGTH = [name for name, make in PENALTIES.items() if hasattr(make(), "alpha")]


def cases(names):
    return pytest.mark.parametrize(
        "penalty", [case for case in CASES if case[0] in names], ids=str, indirect=True
    )


@pytest.fixture(params=CASES, ids=str)
def penalty(request):
    name, options = request.param
    return PENALTIES[name](0.7, **options)


def test_capabilities_are_used_by_some_solver_and_implemented(penalty):
    assert penalty.offers
    assert penalty.offers <= CAPABILITIES.keys()
    gives = {
        "prox": ["prox"],
        "slopes": ["slopes", "alpha_max"],
        "quadratic": ["times", "matrix"],
        "ball": ["radius"],
        "concave": ["weights"],
    }
    for capability in penalty.offers:
        assert all(hasattr(penalty, name) for name in gives[capability])


@cases(offering("prox"))
def test_prox_is_the_minimum_on_a_grid(penalty):
    grid = np.linspace(-4, 4, 8001)
    values = np.array([penalty.value(np.array([z])) for z in grid])
    for v in (-3.0, -0.5, -0.01, 0.0, 0.3, 1.2, 2.5):
        for step in (0.1, 1.0):
            expected = grid[np.argmin(0.5 * (grid - v) ** 2 + step * values)]
            assert penalty.prox(np.array([v]), step)[0] == pytest.approx(expected, abs=5e-3)


@cases(offering("prox"))
def test_prox_is_the_minimum_among_random_points(penalty):
    """With several features: no other point has a lower ½‖z − v‖² + step·penalty(z)."""
    rng = np.random.default_rng(0)
    for step in (0.1, 1.0):
        v = 2.0 * rng.normal(size=4)
        z = penalty.prox(v, step)
        least = 0.5 * np.sum((z - v) ** 2) + step * penalty.value(z)
        assert np.isfinite(least)
        for size in (1e-4, 1e-2, 1.0):
            for other in z + size * rng.normal(size=(200, 4)):
                assert 0.5 * np.sum((other - v) ** 2) + step * penalty.value(other) >= least - 1e-12


def test_value_is_zero_at_zero_and_separable(penalty):
    w = np.array([1.0, -2.0, 0.0, 0.5])
    assert penalty.value(np.zeros(3)) == 0
    assert penalty.value(w) == pytest.approx(sum(penalty.value(np.array([x])) for x in w))


@cases(offering("slopes"))
def test_slopes_describe_the_penalty(penalty):
    slopes = penalty.slopes(1)
    for z in (-1.5, -0.1, 0.2, 2.0):
        linear = slopes.up[0] * z if z > 0 else slopes.down[0] * -z
        assert penalty.value(np.array([z])) == pytest.approx(linear + 0.5 * slopes.ridge * z * z)


@cases(offering("slopes"))
def test_violation_is_zero_exactly_at_the_prox_optimum(penalty):
    """z = prox(v) minimises ½(z − v)² + penalty, so 0 ∈ (z − v) + ∂penalty(z)."""
    v = np.array([-2.0, 0.1, 1.5, 0.0])
    z = penalty.prox(v, 1.0)
    slopes = penalty.slopes(4)
    np.testing.assert_allclose(slopes.violation(z, z - v), 0, atol=1e-12)
    assert slopes.violation(z + np.array([0.1, 0, 0, 0]), z + np.array([0.1, 0, 0, 0]) - v)[0] > 1e-3


@cases(offering("slopes"))
def test_scaled_slopes_give_the_scaled_value(penalty):
    w = np.array([1.0, -2.0])
    assert penalty.scaled(1.4).value(w) == pytest.approx(2 * penalty.value(w))


@cases(STRENGTH)
def test_scaled_changes_only_the_strength(penalty):
    scaled = penalty.scaled(1.4)
    assert type(scaled) is type(penalty)
    assert scaled.alpha == 1.4
    others = [field.name for field in fields(penalty) if field.name != "alpha"]
    assert all(getattr(scaled, name) == getattr(penalty, name) for name in others)
    near = np.array([1e-7, -2e-7])  # where concave penalties are nearly linear
    assert scaled.value(near) == pytest.approx(2 * penalty.value(near), rel=1e-3)


@pytest.mark.parametrize("alpha", [-1.0, np.nan, np.inf])
@cases(STRENGTH)
def test_bad_strength(penalty, alpha):
    with refused_parameter("alpha", alpha):
        penalty.scaled(alpha)


@pytest.mark.parametrize("radius", [0.0, -1.0, np.nan, np.inf])
@pytest.mark.parametrize("name", offering("ball"))
def test_bad_radius(name, radius):
    with refused_parameter("radius", radius):
        PENALTIES[name](radius)


@pytest.mark.parametrize("name", [*offering("quadratic"), "matrix"])
def test_quadratic_penalties_give_gradient_and_hessian(name):
    root = np.random.default_rng(0).normal(size=(3, 3))
    penalty = Quadratic(root @ root.T) if name == "matrix" else PENALTIES[name](0.7)
    w, h = np.array([0.3, -1.0, 2.0]), 1e-5
    by_differences = [(penalty.value(w + h * e) - penalty.value(w - h * e)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(penalty.times(w), by_differences, rtol=1e-7)
    np.testing.assert_allclose(penalty.matrix(3) @ w, penalty.times(w), rtol=1e-14)


def test_pickle(penalty):
    assert pickle.loads(pickle.dumps(penalty)).value(np.ones(2)) == penalty.value(np.ones(2))
