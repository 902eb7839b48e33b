"""RSRank and the weighted modified Huber loss against literal sums over pairs and NDCG swaps."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranksieve.baselines import RSRank
from ranksieve.baselines.modified_huber import ModifiedHuber
from ranksieve.baselines.sparse import SwapWeights
from ranksieve.data.dataset import Dataset
from ranksieve.metrics.profiles import PROFILES
from ranksieve.objective import LocalObjective
from ranksieve.penalties import L1
from tests.conftest import random_dataset
from tests.pairs import explicit_pairs
from tests.refusals import refused_data, refused_parameter
from tests.solving import prox_newton
from tests.tiers import examples


@pytest.fixture(scope="module")
def data():
    return random_dataset(seed=63, n_queries=25, n_features=6, longest=14)


# ---------------------------------------------------------------- the loss with fixed weights


def psi(t):
    return np.where(t >= -1, np.maximum(0, 1 - t) ** 2, -4 * t)


def psi_slope(t):
    return np.where(t >= -1, -2 * np.maximum(0, 1 - t), -4)


def literal_loss(s, pairs, omega):
    """(Σ ωψ, gradient, Σ ω(ψ − tψ′))."""
    t = s[pairs[:, 0]] - s[pairs[:, 1]]
    gradient = np.zeros(len(s))
    np.add.at(gradient, pairs[:, 0], omega * psi_slope(t))
    np.add.at(gradient, pairs[:, 1], -omega * psi_slope(t))
    return omega @ psi(t), gradient, omega @ (psi(t) - t * psi_slope(t))


@examples(60)
@given(
    st.integers(0, 2**31), st.sampled_from([0.1, 1.0, 3.0, 1e4]), st.booleans(), st.booleans(), st.booleans()
)
def test_value_gradient_and_curvature(seed, scale, with_gain, with_discount, weighted):
    rng = np.random.default_rng(seed)
    n = 20
    qid, y = rng.integers(0, 4, n), np.append(rng.integers(0, 3, n - 2), [0.0, 1.0])
    qid[-2:] = 0
    data = Dataset(np.zeros((n, 1)), y, qid)
    gain, discount, s = rng.random(n), rng.random(n), scale * rng.normal(size=n)
    weight = rng.uniform(0.1, 2, data.n_queries) if weighted else np.ones(data.n_queries)
    pairs = explicit_pairs(y, qid)
    i, j = pairs.T
    ids = data.queries.ids.tolist()
    omega = np.array([weight[ids.index(qid[a])] for a in i])
    omega = omega * (np.abs(gain[i] - gain[j]) if with_gain else 1.0)
    omega = omega * (np.abs(discount[i] - discount[j]) if with_discount else 1.0)
    loss = ModifiedHuber(gain if with_gain else None, discount if with_discount else None)
    bound = loss.bind(y, data.queries, weight if weighted else None)
    at = bound.evaluate(data.queries.group(s))
    value, gradient, slack = literal_loss(s, pairs, omega)
    assert bound.normaliser == pytest.approx(omega.sum(), rel=1e-12)
    assert at.value == pytest.approx(value, rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(data.queries.restore(at.gradient), gradient, rtol=1e-10, atol=1e-11)
    assert at.slack == pytest.approx(slack, rel=1e-9, abs=1e-9)
    v = rng.normal(size=n)
    on_parabola = np.abs(s[i] - s[j]) < 1
    V = data.queries.group(v)[:, None]
    curvature = float(bound.curvature_of(at, 0, data.n_queries, V).diagonal().sum())
    assert curvature == pytest.approx(
        2 * np.sum(omega * (v[i] - v[j]) ** 2 * on_parabola), rel=1e-10, abs=1e-12
    )


def test_gradient_and_curvature_with_weights_against_differences(data):
    rng = np.random.default_rng(1)
    bound = ModifiedHuber(rng.random(data.n_docs), rng.random(data.n_docs)).bind(data.y, data.queries)
    s, v, h = 2 * rng.normal(size=data.n_docs), rng.normal(size=data.n_docs), 1e-6
    at, ahead, back = (bound.evaluate(s + step * v) for step in (0.0, h, -h))
    assert at.gradient @ v == pytest.approx((ahead.value - back.value) / (2 * h), rel=1e-7)
    (curvature,) = bound.curvature_of(at, 0, data.n_queries, v[:, None]).diagonal()
    assert curvature == pytest.approx(v @ (ahead.gradient - back.gradient) / (2 * h), rel=1e-6)


@pytest.mark.parametrize("alpha", [0.1, 0.01])
def test_the_dual_value_is_never_above_the_minimum(data, alpha):
    """Weak duality at random points, strong duality at the optimum."""
    rng = np.random.default_rng(2)
    loss = ModifiedHuber(rng.random(data.n_docs), rng.random(data.n_docs)).bind(data.y, data.queries)
    objective = LocalObjective(data.X, loss)
    best = prox_newton(objective, L1(alpha), tol=1e-9)
    assert best.converged
    for _ in range(50):
        point = objective.evaluate(rng.choice([0.1, 1.0, 10.0]) * rng.normal(size=6))
        scale = min(1.0, alpha / np.abs(objective.gradient(point)).max())
        assert objective.dual(point, scale) <= best.objective * (1 + 1e-12)


# ---------------------------------------------------------------- weights of pairs


def ndcg_of(order, y, discount):
    gains = 2.0**y - 1
    return gains[order] @ discount / (np.sort(gains)[::-1] @ discount)


def swap_costs(s, y, profile):
    """{(i, j): |NDCG − NDCG after swapping i and j|} of one query, for y_i > y_j."""
    discount = profile.discount(np.arange(1, len(y) + 1))
    order = np.argsort(-s, kind="stable")
    before, costs = ndcg_of(order, y, discount), {}
    for a in range(len(y)):
        for b in range(len(y)):
            swapped = order.copy()
            swapped[[a, b]] = order[[b, a]]
            costs[order[a], order[b]] = abs(before - ndcg_of(swapped, y, discount))
    return {pair: cost for pair, cost in costs.items() if y[pair[0]] > y[pair[1]]}


@pytest.mark.parametrize("profile", ["standard", "letor"])
def test_weights_are_ndcg_changes_by_swaps(data, profile):
    rng = np.random.default_rng(3)
    rows = rng.permutation(data.n_docs)
    shuffled, w = data.select_rows(rows), rng.normal(size=6)
    stakes = SwapWeights(shuffled, PROFILES[profile])
    loss = stakes.loss(stakes.discounts(w))
    for q in range(data.n_queries):
        members = np.flatnonzero(shuffled.qid == q)
        y = shuffled.y[members]
        for (i, j), cost in swap_costs(shuffled.X[members] @ w, y, PROFILES[profile]).items():
            a, b = members[i], members[j]
            weight = abs(loss.gain[a] - loss.gain[b]) * abs(loss.discount[a] - loss.discount[b])
            assert weight == pytest.approx(cost, rel=1e-10, abs=1e-15)


@pytest.mark.parametrize("w", [None, np.zeros(1)])
def test_initial_weights_are_means_over_all_rankings(w):
    y = np.array([2.0, 0.0, 1.0, 0.0])
    stakes = SwapWeights(Dataset(np.eye(4)[:, :1], y, [0, 0, 0, 0]), PROFILES["standard"])
    loss = stakes.loss(stakes.discounts(w))
    assert loss.discount is None
    all_costs = [
        swap_costs(np.array(s, dtype=float), y, PROFILES["standard"]) for s in permutations(range(4))
    ]
    for i, j in all_costs[0]:
        mean = np.mean([costs[i, j] for costs in all_costs])
        assert abs(loss.gain[i] - loss.gain[j]) == pytest.approx(mean, rel=1e-12)


# ---------------------------------------------------------------- the estimator


@pytest.mark.parametrize("alpha", [0.0, 0.01])
def test_the_objective_decreases_within_each_round(data, alpha):
    fitted = RSRank(alpha, n_rounds=4, tol=1e-8, max_iter=30).fit(data)
    rounds = fitted.round_iterations_
    assert len(rounds) >= 2
    assert sum(rounds) == fitted.n_iter_ == len(fitted.trace_) - 1
    for part in np.split(np.array(fitted.trace_.objective), 1 + np.cumsum(rounds)[:-1]):
        assert np.all(np.diff(part) <= 1e-14)
        assert len(part) == 1 or part[-1] < part[0]


@pytest.mark.parametrize("profile", ["standard", "letor"])
def test_rounds_solve_problems_with_weights_of_the_previous_ranking(data, profile):
    """Each of four rounds solves the problem with the swap weights of the previous ranking."""
    fitted = RSRank(0.02, profile=profile, n_rounds=4, tol=1e-9, max_iter=20_000).fit(data)
    stakes, w = SwapWeights(data, PROFILES[profile]), None
    for _ in fitted.round_iterations_:
        loss = stakes.loss(stakes.discounts(w))
        result = prox_newton(LocalObjective(data.X, loss.bind(data.y, data.queries)), L1(0.02), tol=1e-12)
        w = result.w
    assert fitted.objective_ == pytest.approx(result.objective, rel=1e-8)
    np.testing.assert_allclose(fitted.coef_, w, atol=1e-3)
    assert 0 <= fitted.objective_ - result.objective <= fitted.gap_ <= 1e-9 * fitted.objective_


def test_weights_change_the_model(data):
    one, more = (RSRank(0.02, n_rounds=n, tol=1e-8, max_iter=5000).fit(data) for n in (1, 5))
    assert np.abs(one.coef_ - more.coef_).max() > 1e-3


@pytest.fixture(scope="module")
def clear():
    """Labels without noise in wide steps, so that the ranking soon stops changing."""
    rng = np.random.default_rng(5)
    y = rng.integers(0, 3, 40).astype(float)
    return Dataset(
        np.column_stack([y + 0.1 * rng.normal(size=40), rng.normal(size=40)]), y, np.repeat(range(8), 5)
    )


def test_an_unchanged_ranking_ends_the_rounds(clear):
    settled = RSRank(0.05, n_rounds=50, tol=1e-6, max_iter=2000).fit(clear)
    assert settled.converged_
    assert 1 < len(settled.round_iterations_) < 50
    assert not RSRank(0.05, n_rounds=1, tol=1e-6, max_iter=2000).fit(clear).converged_


def test_alpha_max_has_the_empty_model_after_one_round(data):
    fitted = RSRank(100.0).fit(data)
    assert len(fitted.support_) == 0
    assert fitted.converged_
    assert fitted.round_iterations_ == [0]


def test_constant_features_get_no_weight_even_without_penalty(data):
    per_query = np.random.default_rng(0).normal(size=(data.n_queries, 1))[data.qid]
    fitted = RSRank(0.0, n_rounds=2, max_iter=20).fit(
        Dataset(np.hstack([data.X, per_query]), data.y, data.qid)
    )
    assert list(fitted.support_) == list(range(6))


def test_the_certificate_is_about_the_last_round_only(data):
    certificate = RSRank().fit(data).to_model().certificate
    assert set(certificate) == {"objective", "gap_of_last_round"}


def test_callback_counts_iterations_over_all_rounds(data):
    calls = []
    fitted = RSRank(0.02, n_rounds=3).fit(data, callback=lambda *step: calls.append(step))
    assert len(fitted.round_iterations_) == 3
    assert [n for n, *_ in calls] == list(range(fitted.n_iter_ + 1))
    assert [objective for *_, objective, _ in calls] == fitted.trace_.objective
    assert [gap for *_, gap in calls] == fitted.trace_.gap
    assert [np.count_nonzero(w) for _, w, *_ in calls] == fitted.trace_.n_nonzero
    assert (fitted.objective_, fitted.gap_) == (fitted.trace_.objective[-1], fitted.trace_.gap[-1])


def test_warm_start_begins_with_the_ranking_of_the_last_fit(clear):
    ranker = RSRank(0.05, n_rounds=50, tol=1e-6, max_iter=2000, warm_start=True).fit(clear)
    before = ranker.coef_
    assert ranker.fit(clear).round_iterations_ == [0]
    np.testing.assert_allclose(ranker.coef_, before, atol=1e-3)


@pytest.mark.parametrize(
    "parameters",
    [
        {"alpha": -1.0},
        {"n_rounds": 0},
        {"tol": 0.0},
        {"max_iter": 0},
        {"profile": "gov2"},
    ],
)
def test_bad_parameters(data, parameters):
    with refused_parameter(*next(iter(parameters.items()))):
        RSRank(**parameters).fit(data)


def test_negative_labels():
    with refused_data() as info:
        RSRank().fit(np.eye(3), [1.0, -1.0, 0.0], qid=[0, 0, 0])
    assert "label of row 1" in info.value.reason


def test_pairs_of_weight_zero_are_refused():
    """LETOR's discount is the same at ranks 1 and 2."""
    X, y, qid = np.array([[1.0], [0.0], [2.0], [0.0]]), [1.0, 0.0, 1.0, 0.0], [0, 0, 1, 1]
    with refused_data() as info:
        RSRank(profile="letor").fit(X, y, qid=qid)
    assert "weight 0" in info.value.reason


@pytest.mark.parametrize("gain", [np.ones(3), np.full(4, np.nan)])
def test_gains_of_wrong_length_or_value(gain):
    data = Dataset(np.eye(4), [1.0, 0.0, 1.0, 0.0], [0, 0, 1, 1])
    with refused_parameter("gain"):
        ModifiedHuber(gain).bind(data.y, data.queries)
