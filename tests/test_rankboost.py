"""RankBoost: a literal implementation on explicit pairs, thresholds, stopping, results on LETOR."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranksieve._parallel import use_threads
from ranksieve.baselines import RankBoost
from ranksieve.baselines.boosting import MARGIN_TIE, WeightedPairs, feature_thresholds
from ranksieve.data.dataset import Dataset
from ranksieve.io.folds import load_letor_folds
from ranksieve.methods import METHODS
from tests.conftest import random_dataset
from tests.pairs import explicit_pairs
from tests.protocol import five_fold
from tests.refusals import refused_parameter
from tests.tiers import examples


def literal(data, n_rounds, n_thresholds, query_weight=None):
    """RankBoost on explicit pairs: [(feature, threshold, weight, mean exponential loss)]."""
    pairs = explicit_pairs(data.y, data.qid)
    weight = np.array([1.0 if query_weight is None else query_weight[data.qid[i]] for i, _ in pairs])
    of_row = np.ones(data.n_docs) if query_weight is None else query_weight[data.qid]
    stumps = [
        (j, theta)
        for j in range(data.n_features)
        for theta in feature_thresholds(data.X[:, j], of_row, n_thresholds)
    ]
    D, rounds = weight / weight.sum(), []
    mean_loss = 1.0
    for _ in range(n_rounds):
        r = np.array([sum(D * _difference(data.X[:, j] > theta, pairs)) for j, theta in stumps])
        best = next(k for k in range(len(stumps)) if abs(r[k]) >= np.abs(r).max() - MARGIN_TIE)
        j, theta = stumps[best]
        alpha = 0.5 * math.log((1 + r[best]) / (1 - r[best]))
        D = D * np.exp(-alpha * _difference(data.X[:, j] > theta, pairs))
        mean_loss *= D.sum()
        D = D / D.sum()
        rounds.append((j, theta, alpha, mean_loss))
    return rounds


def _difference(h, pairs):
    return h[pairs[:, 0]].astype(float) - h[pairs[:, 1]]


@pytest.mark.parametrize("n_levels", [2, 3, 9])
@pytest.mark.parametrize("n_thresholds", [4, 255])
@pytest.mark.parametrize("weighted", [False, True])
def test_equals_the_literal_definition(n_levels, n_thresholds, weighted):
    data = random_dataset(seed=n_levels, n_queries=7, n_features=3, n_levels=n_levels)
    weight = np.random.default_rng(0).uniform(0, 2, 7) if weighted else None
    fitted = RankBoost(25, n_thresholds=n_thresholds).fit(data, query_weight=weight)
    features, thresholds, alphas, losses = zip(*literal(data, 25, n_thresholds, weight), strict=True)
    np.testing.assert_array_equal(fitted.chosen_, features)
    np.testing.assert_array_equal(fitted.thresholds_, thresholds)
    np.testing.assert_allclose(fitted.round_weights_, alphas, rtol=0, atol=1e-10)
    np.testing.assert_allclose(fitted.trace_.objective, losses, rtol=1e-9)
    assert fitted.objective_ == fitted.trace_.objective[-1]
    assert any(alpha < 0 for alpha in alphas)


def test_scores_are_sums_of_the_weak_rankers():
    data, other = random_dataset(seed=1, n_queries=20), random_dataset(seed=2, n_queries=20)
    fitted = RankBoost(60, n_thresholds=10).fit(data.X, data.y, qid=data.qid)
    rounds = list(zip(fitted.chosen_, fitted.thresholds_, fitted.round_weights_, strict=True))
    on_thresholds = np.tile(fitted.thresholds_[:, None], 5)
    for X in (data.X, other.X, on_thresholds):
        expected = sum(alpha * (X[:, j] > theta) for j, theta, alpha in rounds)
        np.testing.assert_allclose(fitted.predict(X), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(fitted.support_, np.unique(fitted.chosen_))


@examples(40)
@given(st.integers(0, 10_000), st.sampled_from([0.1, 1.0, 30.0]))
def test_potentials_without_pairs(seed, spread):
    data = random_dataset(seed=seed % 50, n_queries=5, longest=8, n_levels=4)
    pairs = explicit_pairs(data.y, data.qid)
    rng = np.random.default_rng(seed)
    s, weight = rng.normal(scale=spread, size=data.n_docs), rng.uniform(0.1, 2, 5)
    if len(pairs) == 0:
        return
    D = np.array([weight[data.qid[i]] for i, _ in pairs]) * np.exp(s[pairs[:, 1]] - s[pairs[:, 0]])
    expected = np.zeros(data.n_docs)
    np.add.at(expected, pairs[:, 0], D / D.sum())
    np.add.at(expected, pairs[:, 1], -D / D.sum())
    potential, loss = WeightedPairs(data, weight).potentials(s)
    np.testing.assert_allclose(potential, expected, rtol=1e-9, atol=1e-13)
    assert loss == pytest.approx(D.sum() / sum(weight[data.qid[i]] for i, _ in pairs))


def test_very_different_scores_do_not_overflow():
    data = Dataset(np.zeros((3, 1)), [2, 1, 0], [0, 0, 0])
    potential, loss = WeightedPairs(data, np.ones(1)).potentials(np.array([900.0, 0.0, -900.0]))
    assert np.all(np.isfinite(potential))
    assert 0 <= loss < 1e-200


def test_thresholds_lie_between_neighbouring_values():
    np.testing.assert_array_equal(
        feature_thresholds(np.array([3.0, 1.0, 1.0, 2.0]), np.ones(4), 9), [1.5, 2.5]
    )
    assert len(feature_thresholds(np.ones(5), np.ones(5), 9)) == 0
    one_up = np.nextafter(1.0, 2.0)
    (theta,) = feature_thresholds(np.array([1.0, one_up]), np.ones(2), 9)
    assert theta == 1.0
    huge = feature_thresholds(np.array([-1.7e308, 1.7e308, 1.6e308]), np.ones(3), 9)
    assert np.all(np.isfinite(huge))


def test_few_thresholds_follow_the_quantiles():
    column = np.concatenate([np.zeros(50), np.arange(1, 51)])
    assert feature_thresholds(column, np.ones(len(column)), 3).tolist() == [
        0.5,
        25.5,
    ]  # quantiles 25 and 50 % are both 0
    thresholds = feature_thresholds(np.arange(1000.0), np.ones(1000), 9)
    np.testing.assert_allclose(thresholds, np.arange(1, 10) * 100.0 - 0.5)


def test_stops_when_one_weak_ranker_orders_all_pairs():
    X = np.array([[0.0, 5.0], [1.0, 1.0], [2.0, 3.0], [0.5, 0.0]])
    fitted = RankBoost().fit(X, [0, 1, 1, 0], qid=[0, 0, 1, 1])
    assert fitted.n_iter_ == 1
    assert fitted.chosen_.tolist() == [0]
    assert np.isfinite(fitted.predict(X)).all()
    assert fitted.objective_ < 1e-6


def test_stops_when_no_feature_helps():
    qid = np.repeat(np.arange(4), 3)
    fitted = RankBoost().fit(qid[:, None].astype(float), np.tile([0, 1, 2], 4), qid=qid)
    assert fitted.n_iter_ == 0
    assert fitted.objective_ == pytest.approx(1.0)
    np.testing.assert_array_equal(fitted.predict(np.array([[1.0], [9.0]])), [0.0, 0.0])


def test_the_loss_decreases_in_every_round():
    trace = RankBoost(100).fit(random_dataset(seed=3, n_queries=30)).trace_
    assert np.all(np.diff([1.0, *trace.objective]) < 0)
    assert np.all(np.diff(trace.n_nonzero) >= 0)


def test_threads_do_not_change_results(small_blocks):
    data = random_dataset(seed=9, n_queries=400, longest=30)
    fits = []
    for n in (1, 2):
        with use_threads(n):
            fits.append(RankBoost(20).fit(data))
    np.testing.assert_array_equal(fits[0].round_weights_, fits[1].round_weights_)


def test_callback_is_called_after_every_round(small):
    calls = []
    fitted = RankBoost(4).fit(small, callback=lambda *news: calls.append(news))
    assert [news[0] for news in calls] == [1, 2, 3, 4]
    np.testing.assert_array_equal(calls[-1][1], fitted.round_weights_)
    assert [news[2] for news in calls] == fitted.trace_.objective


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_rounds": 0},
        {"n_thresholds": 0},
        {"n_thresholds": 2**16},
    ],
)
def test_bad_parameters(parameters, small):
    with refused_parameter(*next(iter(parameters.items()))):
        RankBoost(**parameters).fit(small)


PUBLISHED = {"OHSUMED": (0.4302, 0.4411), "MQ2008": (0.2255, 0.4775)}  # N@10 and MAP


@pytest.mark.letor
@pytest.mark.parametrize("data_set", PUBLISHED)
def test_published_numbers(letor_root, data_set):
    method = METHODS["rankboost"]
    row = five_fold(method.make, method.grid, load_letor_folds(data_set, letor_root), n_jobs=2).to_row()
    assert (row["ndcg@10"], row["map"]) == pytest.approx(PUBLISHED[data_set], abs=0.02)
