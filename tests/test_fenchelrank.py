"""FenchelRank: Frank–Wolfe on the ℓ1 ball."""

from __future__ import annotations

import numpy as np
import pytest
from papers.studies.theory import fenchelrank_iterations, l1_ball_gap
from scipy.optimize import minimize_scalar

from ranksieve.data.dataset import Dataset
from ranksieve.objective import make_objective
from ranksieve.penalties import L1, L1Ball
from ranksieve.rankers import FenchelRank
from ranksieve.solvers.base import exact_step
from ranksieve.solvers.frank_wolfe import VARIANTS
from tests.conftest import random_dataset
from tests.pairs import explicit_pairs
from tests.refusals import refused_data, refused_parameter
from tests.solving import frank_wolfe, prox_newton, proximal_gradient


@pytest.fixture(scope="module")
def data():
    return random_dataset(seed=41, n_queries=30, n_features=8, longest=20)


@pytest.fixture(scope="module")
def unit_data(data):
    """Features in [0, 1], as the paper's bounds assume."""
    X = (data.X - data.X.min(axis=0)) / (data.X.max(axis=0) - data.X.min(axis=0))
    return data.replace_features(X)


@pytest.mark.parametrize("limit", [0.05, 1.0, 50.0])
@pytest.mark.parametrize("seed", range(5))
def test_the_step_is_the_exact_minimiser(data, limit, seed):
    objective = make_objective(data)
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=8)
    point = objective.evaluate(rng.normal(size=8) * 0.1)
    slide = objective.scores(direction)
    if objective.slope_along(point, slide) > 0:
        direction, slide = -direction, -slide
    step, moved = exact_step(objective, point, direction, slide, limit)

    def along(mu):
        return objective.evaluate(point.w + mu * direction).value

    best = minimize_scalar(along, bounds=(0, limit), method="bounded", options={"xatol": 1e-12})
    assert moved.value <= best.fun + 1e-12
    assert 0 < step <= limit
    np.testing.assert_allclose(moved.w, point.w + step * direction)


def test_no_step_uphill(data):
    objective = make_objective(data)
    point = objective.at_zero
    g = objective.gradient(point)
    step, moved = exact_step(objective, point, g, objective.scores(g), 1.0)
    assert step == 0
    assert moved is point


@pytest.mark.parametrize("variant", VARIANTS)
def test_monotone_within_the_ball_and_certified(data, variant):
    objective = make_objective(data)
    exact = proximal_gradient(
        objective,
        L1Ball(2.0),
        lipschitz=1.0,
        stop="change",
        tol=0.0,
        max_iter=5000,
        accelerated=True,
        restart=True,
    )
    result = frank_wolfe(objective, L1Ball(2.0), variant=variant, tol=1e-4, max_iter=5000)
    assert result.converged
    assert np.abs(result.w).sum() <= 2.0 * (1 + 1e-12)
    # The paper's dual objective is −f: it rises monotonically.
    assert np.all(np.diff(result.trace.objective) <= 1e-14)
    for value, gap in zip(result.trace.objective, result.trace.gap, strict=True):
        assert value - gap <= exact.objective + 1e-12
    assert result.objective - exact.objective <= 1e-4


@pytest.mark.parametrize("variant", ["away", "pairwise"])
def test_away_and_pairwise_steps_end_the_zigzag(data, variant):
    objective = make_objective(data)
    classic = frank_wolfe(objective, L1Ball(1.2), tol=1e-8, max_iter=2000)
    other = frank_wolfe(objective, L1Ball(1.2), variant=variant, tol=1e-8, max_iter=2000)
    assert other.converged
    assert other.n_iter < classic.n_iter


def test_literal_transcription_of_algorithm_1(data):
    """The paper's algorithm on explicit pairs, scaled to the unit ball, step by golden section."""
    r, T = 4.0, 12
    pairs = explicit_pairs(data.y, data.qid)
    K = data.X[pairs[:, 0]] - data.X[pairs[:, 1]]
    p, w = len(K), np.zeros(8)

    def G(v):
        return r**2 / p * np.sum(np.maximum(0, 1 / r - K @ v) ** 2)

    for _ in range(T):
        d = 2 * r**2 / p * np.maximum(0, 1 / r - K @ w)
        g = d @ K
        j = np.argmax(np.abs(g))
        vertex = np.zeros(8)
        vertex[j] = 1.0 if g[j] >= 0 else -1.0
        line = minimize_scalar(
            lambda mu, w=w, vertex=vertex: G((1 - mu) * w + mu * vertex), bounds=(0, 1), method="bounded",
            options={"xatol": 1e-13},
        )  # fmt: skip
        w = (1 - line.x) * w + line.x * vertex
    ours = FenchelRank(r, tol=1e-12, max_iter=T).fit(data)
    np.testing.assert_allclose(ours.coef_, r * w, atol=1e-5)


@pytest.mark.parametrize("radius", [0.5, 1.0, 2.0])
def test_theorem_1_bounds_the_iterations(unit_data, radius):
    epsilon = 0.01
    fitted = FenchelRank(radius, tol=epsilon, max_iter=10**6).fit(unit_data)
    assert fitted.gap_ <= epsilon
    assert fitted.n_iter_ <= fenchelrank_iterations(radius, epsilon)
    objective = make_objective(unit_data)
    g = objective.gradient(objective.evaluate(fitted.coef_))
    assert l1_ball_gap(radius, fitted.coef_, g) == pytest.approx(fitted.gap_, abs=1e-12)


def test_agrees_with_the_penalised_problem_at_the_matching_alpha(data):
    """The minimiser for α has some norm r; the minimiser over the ball of that radius is the same."""
    objective = make_objective(data)
    penalised = prox_newton(objective, L1(0.02), tol=1e-10)
    r = float(np.abs(penalised.w).sum())
    fitted = FenchelRank(r, tol=1e-8, max_iter=20000, variant="away").fit(data)
    f = penalised.objective - 0.02 * r
    assert fitted.converged_
    assert fitted.objective_ == pytest.approx(f, rel=1e-6)


def test_warm_start_continues(data):
    cold = FenchelRank(2.0, tol=1e-4).fit(data)
    warm = FenchelRank(2.0, tol=1e-4, warm_start=True).fit(data)
    assert warm.n_iter_ == cold.n_iter_
    assert warm.fit(data).n_iter_ == 0 or warm.n_iter_ < cold.n_iter_


def test_projection_onto_the_ball():
    rng = np.random.default_rng(0)
    ball = L1Ball(1.5)
    for _ in range(20):
        v = rng.normal(size=6) * 2
        z = ball.prox(v, 1.0)
        assert ball.value(z) == 0
        for _ in range(50):
            other = rng.normal(size=6)
            other *= min(1.0, 1.5 / np.abs(other).sum())
            assert (v - z) @ (other - z) <= 1e-9
    inside = np.array([0.1, -0.2])
    np.testing.assert_array_equal(ball.prox(inside, 1.0), inside)
    assert ball.value(np.array([1.0, 1.0])) == np.inf


@pytest.mark.parametrize(
    "parameters",
    [
        {"radius": 0},
        {"radius": -1.0},
        {"radius": np.nan},
        {"tol": 0.0},
        {"max_iter": 0},
        {"variant": "fast"},
    ],
)
def test_bad_parameters(data, parameters):
    with refused_parameter(*next(iter(parameters.items()))):
        FenchelRank(**parameters).fit(data)


def test_one_level_everywhere():
    with refused_data() as info:
        FenchelRank().fit(Dataset(np.eye(3), np.zeros(3), [1, 1, 2]))
    assert "pair" in info.value.reason
