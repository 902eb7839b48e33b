"""Subgradient descent against a literal implementation and the certified optimum."""

from __future__ import annotations

import numpy as np
import pytest

from ranksieve.baselines.losses import Hinge
from ranksieve.losses import SquaredHinge
from ranksieve.objective import LocalObjective
from ranksieve.penalties import L1
from tests.conftest import random_dataset
from tests.pairs import explicit_pairs, squared_hinge
from tests.solving import prox_newton, subgradient


@pytest.fixture(scope="module")
def data():
    return random_dataset(seed=31, n_queries=12, n_features=6)


@pytest.fixture(scope="module")
def objective(data):
    return LocalObjective(data.X, SquaredHinge().bind(data.y, data.queries))


def test_steps_equal_the_definition(data, objective):
    steps = []
    subgradient(
        objective, L1(0.05), step=0.3, max_iter=6, callback=lambda n, w, value, gap: steps.append((w, value))
    )
    pairs, w = explicit_pairs(data.y, data.qid), np.zeros(6)
    assert len(steps) == 7
    for t, (step_w, value) in enumerate(steps, start=1):
        np.testing.assert_allclose(step_w, w, atol=1e-12)
        loss, gradient, _, _ = squared_hinge(data.X @ w, pairs, np.ones(len(pairs)))
        assert value == pytest.approx(loss / len(pairs) + 0.05 * np.abs(w).sum())
        w = w - 0.3 / np.sqrt(t) * (data.X.T @ gradient / len(pairs) + 0.05 * np.sign(w))


def test_it_approaches_the_optimum_slowly(objective):
    best = prox_newton(objective, L1(0.3), tol=1e-12)
    assert 0 < np.count_nonzero(best.w) < 6
    results = [subgradient(objective, L1(0.3), step=0.3, max_iter=n) for n in (10, 100, 3000)]
    errors = [result.objective - best.objective for result in results]
    assert errors[0] > errors[1] > errors[2] > 1e-7  # it cannot descend along the kinks at zero
    assert errors[2] < 1e-4
    assert np.count_nonzero(results[2].w) == 6


def test_the_result_is_the_best_step_with_a_valid_gap(objective):
    best = prox_newton(objective, L1(0.3), tol=1e-10)
    result = subgradient(objective, L1(0.3), step=2.0, max_iter=50)
    assert np.any(np.diff(result.trace.objective) > 0)  # steps of this size overshoot
    assert result.objective == min(result.trace.objective)
    at = int(np.argmin(result.trace.objective))
    assert result.gap == result.trace.gap[at]
    assert result.objective - best.objective <= result.gap
    assert not result.converged
    assert result.n_iter == 50


def test_it_stops_at_an_optimal_start(objective):
    largest = np.abs(objective.gradient(objective.at_zero)).max()
    at_once = subgradient(objective, L1(1.1 * largest))
    assert at_once.converged
    assert at_once.n_iter == 0
    best = prox_newton(objective, L1(0.05), tol=1e-9)
    assert subgradient(objective, L1(0.05), best.w, tol=1e-6).n_iter == 0


def test_forbidden_signs_and_features_stay_at_zero(objective):
    signs, weights = np.array([1, -1, 1, -1, 0, 0]), np.array([1, 1, 1, 1, 1, np.inf])
    penalty, iterates = L1(0.05, weights, signs), []
    best = prox_newton(objective, penalty, tol=1e-10)
    result = subgradient(
        objective, penalty, step=0.5, max_iter=300, callback=lambda n, w, *_: iterates.append(w)
    )
    assert all(np.all(signs * w >= 0) and w[5] == 0 for w in iterates)
    assert 0 <= result.objective - best.objective <= min(result.gap, 1e-3)


def test_subgradients_of_the_hinge(data):
    objective = LocalObjective(data.X, Hinge().bind(data.y, data.queries))
    result = subgradient(objective, L1(0.01), step=0.5, max_iter=200)
    assert result.objective < 0.95 * result.trace.objective[0]
