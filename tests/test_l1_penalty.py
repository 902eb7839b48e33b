"""ℓ1 and the elastic net with weights and signs: slopes, alpha_max, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from ranksieve.penalties import L1, ElasticNet
from tests.refusals import refused_parameter

WEIGHTS, SIGNS = [1.0, 2.0, 0.0, np.inf, 0.5], [0, 1, -1, 0, -1]
GRADIENTS = [  # with the largest |g_j|/v_j among the features that may move along −g_j
    ([3.0, -4.0, 0.0, 9.0, 1.0], 3.0),
    ([-3.0, 6.0, 0.0, -9.0, 2.0], 4.0),
    ([1.0, -4.0, 0.0, 9.0, -7.0], 2.0),
    ([0.0, 4.0, 0.0, 9.0, -7.0], 0.0),
]


def is_zero_optimal(penalty, g):
    """No step from 0 along −g gains more than its penalty."""
    slopes = penalty.slopes(len(g))
    return bool(np.all((-g <= slopes.up) & (g <= slopes.down)))


def test_slopes_by_hand():
    slopes = L1(4.0, weights=WEIGHTS, signs=SIGNS).slopes(5)
    np.testing.assert_array_equal(slopes.up, [4.0, 8.0, np.inf, np.inf, np.inf])
    np.testing.assert_array_equal(slopes.down, [4.0, np.inf, 0.0, np.inf, 2.0])
    assert slopes.ridge == 0.0


@pytest.mark.parametrize(("sign", "up", "down"), [(1, 3.0, np.inf), (0, 3.0, 3.0), (-1, np.inf, 3.0)])
def test_one_sign_applies_to_all_features(sign, up, down):
    slopes = L1(3.0, signs=sign).slopes(2)
    np.testing.assert_array_equal((slopes.up, slopes.down), ([up, up], [down, down]))


def test_slopes_of_an_elastic_net_by_hand():
    slopes = ElasticNet(4.0, weights=WEIGHTS, signs=SIGNS, l1_ratio=0.25).slopes(5)
    np.testing.assert_array_equal(slopes.up, [1.0, 2.0, np.inf, np.inf, np.inf])
    np.testing.assert_array_equal(slopes.down, [1.0, np.inf, 0.0, np.inf, 0.5])
    assert slopes.ridge == 3.0
    assert ElasticNet(4.0).slopes(1).ridge == 2.0


def test_forbidden_features_stay_forbidden_at_strength_zero():
    for penalty in (L1(0.0, weights=WEIGHTS), ElasticNet(1.0, weights=WEIGHTS, l1_ratio=0.0)):
        np.testing.assert_array_equal(penalty.slopes(5).up, [0.0, 0.0, 0.0, np.inf, 0.0])


@pytest.mark.parametrize(("g", "largest"), GRADIENTS)
@pytest.mark.parametrize("ratio", [0.25, 1.0])
def test_alpha_max_is_the_least_strength_with_optimum_zero(g, largest, ratio):
    g = np.array(g)
    plain, net = L1(weights=WEIGHTS, signs=SIGNS), ElasticNet(weights=WEIGHTS, signs=SIGNS, l1_ratio=ratio)
    for penalty, expected in ((plain, largest), (net, largest / ratio)):
        assert penalty.alpha_max(g) == expected
        assert is_zero_optimal(penalty.scaled(expected), g)
        if expected > 0:
            assert not is_zero_optimal(penalty.scaled(expected * (1 - 1e-9)), g)


def test_alpha_max_with_unpenalised_features_and_with_a_ridge():
    g = np.array([1.0, 0.0, 0.5])
    assert L1(weights=[1.0, 1.0, 0.0]).alpha_max(g) == np.inf
    assert L1(weights=[1.0, 0.0, 1.0]).alpha_max(g) == 1.0
    assert ElasticNet(l1_ratio=0.0).alpha_max(g) == np.inf
    assert L1().alpha_max(np.zeros(3)) == 0.0


@pytest.mark.parametrize(
    ("use", "name", "value"),
    [
        (lambda: L1(1.0, weights=[1.0, 2.0]).slopes(3), "weights", [1.0, 2.0]),
        (lambda: L1(1.0, signs=[1, 0]).slopes(3), "signs", [1, 0]),
        (lambda: L1(signs=[1, 0]).alpha_max(np.ones(3)), "signs", [1, 0]),
        (lambda: ElasticNet(1.0, l1_ratio=1.5), "l1_ratio", 1.5),
        (lambda: ElasticNet(1.0, l1_ratio=-0.5), "l1_ratio", -0.5),
        (lambda: ElasticNet(-1.0), "alpha", -1.0),
        (lambda: L1(signs=[1, 2]), "signs", [1, 2]),
        (lambda: L1(signs=[[1, 0]]), "signs", [[1, 0]]),
    ],
)
def test_refusals(use, name, value):
    with refused_parameter(name, value):
        use()


@pytest.mark.parametrize("weights", [2.0, [[1.0, 2.0]], [1.0, np.nan], [1.0, -0.5]])
def test_invalid_weights_are_refused(weights):
    with refused_parameter("weights"):
        L1(weights=weights)
