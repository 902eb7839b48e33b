"""Bounds of a relaxation computed by hand, and its Newton step on a quadratic, where it is exact."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from ranksieve.data.costs import ColumnCosts
from ranksieve.subset import relaxation as module
from ranksieve.subset.allowed import Region
from ranksieve.subset.relaxation import Bounds, Relaxation
from tests.test_subset_allowed import sets_of


def region(inside, free, n=4):
    return Region(np.isin(np.arange(n), inside), np.isin(np.arange(n), free))


def test_raising_and_restricting_bounds():
    bounds = Bounds(2.0, np.array([1.0, 5.0, 3.0, 4.0]), np.array([6.0, 2.0, 3.0, 1.0]))
    raised = bounds.at_least(3.0)
    assert raised.least == 3.0
    np.testing.assert_array_equal((raised.with_each, raised.without_each), ([3, 5, 3, 4], [6, 3, 3, 3]))
    assert bounds.at_least(1.0).least == 2.0
    part = bounds.over(region([0], [1, 2]))
    assert part.least == 2.0
    np.testing.assert_array_equal(part.with_each, [1, 5, 3, np.inf])
    np.testing.assert_array_equal(part.without_each, [np.inf, 2, 3, 1])


def test_bounds_at_a_point_by_hand():
    """(mean ξ)²/(mean ξ² + T), with rounding 1/(1 + T); T is the largest (|g| + error)², the ridge ½."""
    objective = SimpleNamespace(
        gradient=lambda point: np.array([1.0, -2.0, 3.0, 9.0]),
        gradient_error=lambda point: np.array([0.0, 0.0, 0.5, 0.0]),
        value_error=lambda point: 0.25,
    )
    signs = np.array([0.0, -1.0, 0.0, 0.0])  # the sign of feature 1 is forbidden
    relaxation = Relaxation(objective, 0.5, signs, sets_of(1), np.arange(4))
    here, point = region([], [0, 1, 2]), SimpleNamespace(slack=1.25, value=0.75)
    bounds = relaxation.bounds(point, here)
    assert bounds.least == 1.0 / 13.25
    np.testing.assert_array_equal(bounds.with_each, [1.0 / 2.0, 1.0, 1.0 / 13.25, np.inf])
    np.testing.assert_array_equal(bounds.without_each, [1.0 / 13.25, 1.0 / 13.25, 1.0 / 2.0, 1.0 / 13.25])
    assert relaxation.bounds(point, here, np.array([2.0, 0.0, 0.0, 0.0])).least == 1.0 / 5.0
    assert relaxation.bounds(SimpleNamespace(slack=0.2, value=0.75), here).least == 0.0


@pytest.mark.parametrize(("most", "columns"), [(1000, [0, 1, 3]), (2, [1, 3]), (1, [3])])
def test_columns_of_the_hessian(most, columns, monkeypatch):
    monkeypatch.setattr(module, "MOST_COLUMNS", most)
    steep = np.array([-1.0, 2.0, 9.0, 0.0])
    objective = SimpleNamespace(n_features=4, at_zero=None, gradient=lambda point: steep)
    relaxation = Relaxation.of(objective, 0.5, None, sets_of(2), region([3], [0, 1]))
    assert relaxation.columns.tolist() == columns
    np.testing.assert_array_equal(relaxation.signs, np.zeros(4))


def test_shares_by_hand():
    relaxation = Relaxation(None, 0.5, np.zeros(4), sets_of(2), np.arange(4))
    shares = relaxation._shares(region([0], [1, 2]), np.array([1.0, -2.0, 9.0, 1.0]), 2.0)
    np.testing.assert_array_equal(shares, [1.0, 0.5, 1.0, 0.0])


def quadratic(signs=(0.0, 0.0, 0.0, 0.0), columns=(0, 1, 2)):
    """(relaxation, values at some weights, H, b) of ½wᵀHw + bᵀw + 7."""
    rng = np.random.default_rng(5)
    A = rng.normal(size=(6, 4))
    H, b, columns = A.T @ A, rng.normal(size=4), np.array(columns)

    def evaluate(w):
        return SimpleNamespace(w=w, value=0.5 * float(w @ H @ w) + float(b @ w) + 7.0)

    point = evaluate(np.array([0.5, -1.0, 0.25, 0.0]))
    relaxation = Relaxation(SimpleNamespace(evaluate=evaluate), 0.3, np.array(signs), sets_of(2), columns)
    state = SimpleNamespace(point=point, gradient=H @ point.w + b, hessian=H[np.ix_(columns, columns)])
    return relaxation, state, H, b


def test_a_step_is_exact_on_a_quadratic():
    relaxation, state, H, b = quadratic()
    chosen = np.array([0, 2])
    best = -np.linalg.solve(H[np.ix_(chosen, chosen)] + 0.3 * np.eye(2), b[chosen])
    least = 7.0 + 0.5 * b[chosen] @ best
    assert relaxation.step(state, chosen, np.inf) == pytest.approx(least, rel=1e-12)  # evaluated
    assert relaxation.step(state, chosen, -np.inf) == pytest.approx(least, rel=1e-12)  # predicted
    assert relaxation.step(state, np.array([0, 3]), np.inf) == np.inf  # 3 is not in the Hessian


def test_a_step_keeps_signs():
    free = quadratic()[0].step(quadratic()[1], np.array([0]), np.inf)
    follows = -np.sign(quadratic()[3][0])
    for sign, expected in ((follows, free), (-follows, 7.0)):  # at 0 the value is 7
        relaxation, state, *_ = quadratic(signs=(sign, 0.0, 0.0, 0.0))
        assert relaxation.step(state, np.array([0]), np.inf) == pytest.approx(expected, rel=1e-12)
    assert free < 7.0


def test_if_all_features_fit_the_minimum_is_that_of_a_ridge():
    relaxation, state, H, b = quadratic(columns=(0, 1, 2, 3))
    relaxation = replace(relaxation, allowed=sets_of(4))
    start, best = state.point.w, -np.linalg.solve(H + 0.3 * np.eye(4), b)
    for here in (region([0], [1, 2, 3]), region([0, 1, 2, 3], [])):
        w, _ = relaxation._model_minimum(H, state.gradient, start, here, np.arange(4), 0.1)
        np.testing.assert_allclose(w, best, rtol=1e-9)


@pytest.mark.parametrize(
    ("w", "cost"),
    [
        ([2.0, 0.0, 1.0, 0.0], [3.0 * 2.002 / 2.004, 3.0 * 0.002 / 2.004, 5.0, 0.0]),
        ([0.0] * 4, [1.5, 1.5, 5.0, 0.0]),
    ],
)
def test_features_share_the_cost_of_their_unit(w, cost, monkeypatch):
    """The cost of a unit is divided by |weight| plus a small constant; feature 3 costs nothing."""
    calls = []
    model = SimpleNamespace(minimise=lambda w, threshold, cost, max_cost: calls.append((cost, max_cost)))
    monkeypatch.setattr(module, "Perspective", lambda *problem: model)
    costs = ColumnCosts(np.array([0, 0, 1, 2]), np.array([3.0, 5.0, 0.0]), ("a", "b", "c"))
    relaxation = Relaxation(None, 0.5, np.zeros(4), sets_of(2, costs, 7.0), np.arange(4))
    relaxation._model_minimum(np.eye(4), np.ones(4), np.array(w), region([], range(4)), np.arange(4), 1.0)
    np.testing.assert_allclose(calls[0][0], cost, rtol=1e-12)
    assert calls[0][1] == 7.0
