"""AdaRank: a literal implementation of its definition, the stopping rule, errors, results on LETOR."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp

from ranksieve.baselines import AdaRank
from ranksieve.data.dataset import Dataset
from ranksieve.io.folds import load_letor_folds
from ranksieve.methods import parameter_grid
from ranksieve.metrics import evaluate
from tests.conftest import random_dataset
from tests.protocol import five_fold
from tests.refusals import refused_data, refused_parameter


def letor_ndcg(labels, k):
    """NDCG@k of labels in rank order as in LETOR's script: discount 1 at ranks 1 and 2, 0 for short lists."""

    def dcg(ranked):
        return sum((2**label - 1) / math.log2(max(rank, 2)) for rank, label in enumerate(ranked[:k], start=1))

    ideal = dcg(sorted(labels, reverse=True))
    return 0.0 if len(labels) < k or ideal == 0 else dcg(labels) / ideal


def average_precision(labels, _):
    n_relevant, total = 0, 0.0
    for rank, label in enumerate(labels, start=1):
        if label >= 1:
            n_relevant += 1
            total += n_relevant / rank
    return total / n_relevant if n_relevant else 0.0


def literal(data, metric, k, n_rounds, repeat):
    """The algorithm of the paper by loops over queries: [(feature, weight, Σ exp(−E))]."""
    rows_of = [np.flatnonzero(data.qid == q) for q in dict.fromkeys(data.qid.tolist())]

    def performance(scores):
        return [metric([data.y[i] for i in sorted(rows, key=lambda i: -scores[i])], k) for rows in rows_of]

    single = [performance(data.X[:, j]) for j in range(data.n_features)]
    P, f, rounds = [1 / len(rows_of)] * len(rows_of), np.zeros(data.n_docs), []
    for _ in range(n_rounds):
        values = [sum(p * e for p, e in zip(P, single[j], strict=True)) for j in range(data.n_features)]
        if rounds and not repeat:
            values[rounds[-1][0]] = -1.0
        j = max(range(data.n_features), key=values.__getitem__)
        gain = sum(p * (1 + e) for p, e in zip(P, single[j], strict=True))
        lack = sum(p * (1 - e) for p, e in zip(P, single[j], strict=True))
        alpha = 0.5 * math.log(gain / lack)
        f = f + alpha * data.X[:, j]
        losses = [math.exp(-e) for e in performance(f)]
        P = [loss / sum(losses) for loss in losses]
        rounds.append((j, alpha, sum(losses)))
    return rounds


@pytest.mark.parametrize("repeat", [False, True])
@pytest.mark.parametrize(
    ("name", "metric", "k"), [("ndcg@3", letor_ndcg, 3), ("map", average_precision, None)]
)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_equals_the_literal_definition(seed, name, metric, k, repeat):
    data = random_dataset(seed=seed, n_queries=12, n_features=6)
    fitted = AdaRank(name, 15, tol=np.inf, repeat=repeat).fit(data)
    features, weights, losses = zip(*literal(data, metric, k, 15, repeat), strict=True)
    np.testing.assert_array_equal(fitted.chosen_, features)
    np.testing.assert_allclose(fitted.round_weights_, weights, rtol=1e-10)
    np.testing.assert_allclose(fitted.trace_.objective, losses, rtol=1e-10)
    np.testing.assert_allclose(fitted.coef_, np.bincount(features, weights, minlength=6), rtol=1e-10)
    assert fitted.objective_ == fitted.trace_.objective[-1]
    assert fitted.n_iter_ == 15
    assert np.isnan(fitted.gap_)


def test_a_feature_is_not_selected_twice_in_a_row_unless_allowed():
    data = random_dataset(seed=4, n_queries=20)
    assert np.all(np.diff(AdaRank("map", 30, tol=np.inf).fit(data).chosen_) != 0)
    stuck = AdaRank("map", 30, tol=np.inf, repeat=True).fit(data).chosen_
    assert np.any(np.diff(stuck) == 0)


def test_stops_before_the_metric_decreases():
    data = random_dataset(seed=0, n_queries=12, n_features=6)
    free = AdaRank("map", 40, tol=np.inf).fit(data)
    falls = np.flatnonzero(np.diff(free.performance_) < -0.01)
    assert len(falls) > 0
    stopped = AdaRank("map", 40, tol=0.01).fit(data)
    assert stopped.n_iter_ == falls[0] + 1
    np.testing.assert_array_equal(stopped.performance_, free.performance_[: stopped.n_iter_])


def test_a_query_of_weight_two_counts_as_two():
    data = random_dataset(seed=5, n_queries=8)
    weight = np.array([1.0, 2.0, 1.0, 1.0, 0.0, 1.0, 2.0, 1.0])
    copies = [np.flatnonzero(data.qid == q) for q in range(8) for _ in range(int(weight[q]))]
    qid = np.repeat(np.arange(len(copies)), [len(rows) for rows in copies])
    rows = np.concatenate(copies)
    weighted = AdaRank("map", 10, tol=np.inf).fit(data, query_weight=weight)
    repeated = AdaRank("map", 10, tol=np.inf).fit(data.X[rows], data.y[rows], qid=qid)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-10)
    assert weighted.objective_ == pytest.approx(repeated.objective_)


def test_constant_features_are_never_selected():
    data = random_dataset(seed=6, n_queries=10, n_features=3)
    # The rows are sorted by label, so a constant feature has a perfect metric.
    rows = np.lexsort((-data.y, data.qid))
    X = np.column_stack([data.X[rows], data.qid[rows]])
    fitted = AdaRank("map", 20, tol=np.inf).fit(X, data.y[rows], qid=data.qid[rows])
    assert fitted.coef_[3] == 0.0
    assert np.any(fitted.coef_[:3])


def test_a_perfect_feature_gets_a_finite_weight():
    data = random_dataset(seed=7, n_queries=10)
    judged = data.select_rows(
        np.isin(data.qid, [q for q in range(10) if data.y[data.qid == q].max(initial=0) >= 1])
    )
    X = np.column_stack([judged.X, judged.y])
    fitted = AdaRank("map", 1).fit(X, judged.y, qid=judged.qid)
    assert fitted.chosen_.tolist() == [5]
    assert 10 < fitted.coef_[5] < 100
    assert fitted.performance_[-1] == pytest.approx(1.0)


def test_sparse_features_have_the_same_result():
    data = random_dataset(seed=8)
    sparse = AdaRank("map").fit(sp.csr_array(data.X), data.y, qid=data.qid)
    np.testing.assert_array_equal(sparse.coef_, AdaRank("map").fit(data).coef_)


def test_callback_is_called_after_every_round():
    calls = []
    fitted = AdaRank("map", 5, tol=np.inf).fit(random_dataset(), callback=lambda *news: calls.append(news))
    assert [news[0] for news in calls] == [1, 2, 3, 4, 5]
    np.testing.assert_array_equal(calls[-1][1], fitted.coef_)
    assert [news[2] for news in calls] == fitted.trace_.objective
    assert not np.array_equal(calls[0][1], calls[-1][1])


def test_a_metric_that_is_always_zero_causes_a_warning():
    data = Dataset([[1.0], [0.0], [3.0]], [1, 0, 0], [0, 0, 0])
    with pytest.warns(UserWarning, match=r"ndcg@10 \(letor profile\) is 0 for every feature"):
        fitted = AdaRank().fit(data)
    assert not np.any(fitted.coef_)
    assert np.any(AdaRank(profile="standard").fit(data).coef_)


@pytest.mark.parametrize(
    "parameters",
    [
        {"metric": "dcg@10"},
        {"metric": "ndgc"},
        {"n_rounds": 0},
        {"tol": -0.1},
        {"tol": np.nan},
    ],
)
def test_bad_parameters(parameters, small):
    with refused_parameter(*next(iter(parameters.items()))):
        AdaRank(**parameters).fit(small)


def test_negative_labels_need_another_metric(small):
    shifted = Dataset(small.X, small.y - 1.0, small.qid)
    with refused_data() as info:
        AdaRank("ndcg@10").fit(shifted)
    assert "label of row" in info.value.reason
    assert np.any(AdaRank("map").fit(shifted).coef_)


PUBLISHED = {"OHSUMED": (0.4496, 0.4498), "MQ2008": (0.2307, 0.4824)}  # AdaRank-NDCG, N@10 and MAP


@pytest.mark.letor
@pytest.mark.parametrize("data_set", PUBLISHED)
def test_published_numbers(letor_root, data_set):
    grid = parameter_grid(n_rounds=[1, 2, 3, 4, 5, 7, 10, 14, 20, 30, 50, 70, 100, 140, 200], tol=[np.inf])
    row = five_fold(AdaRank, grid, load_letor_folds(data_set, letor_root), n_jobs=2).to_row()
    assert (row["ndcg@10"], row["map"]) == pytest.approx(PUBLISHED[data_set], abs=0.012)


def test_the_reported_performance_equals_evaluate_bit_for_bit():
    for seed in range(4):
        data = random_dataset(seed=seed, n_queries=60, n_features=12, longest=40)
        data = data.replace_features(data.X.round(0) * 10.0 ** np.array([-16, -8, 0] * 4))
        fitted = AdaRank("map", 20, tol=np.inf).fit(data)
        assert fitted.performance_[-1] == evaluate(fitted.predict(data), data, "map", "letor").mean["map"]
