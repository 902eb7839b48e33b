"""make_ranking: true weights, LETOR-like statistics, seeds, refusals."""

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from ranksieve import synthetic as module
from ranksieve.data.describe import describe
from ranksieve.synthetic import make_ranking
from tests.refusals import refused_parameter


def test_shape_and_truth():
    data = make_ranking(n_queries=50, n_features=30, n_informative=5, random_state=3)
    assert data.n_queries == 50
    assert data.X.shape[1] == 30
    assert data.truth.shape == (30,)
    assert np.count_nonzero(data.truth) == 5
    assert np.abs(data.truth[data.truth != 0]).min() >= 0.5


def test_informative_features_are_at_random_positions():
    supports = [set(np.flatnonzero(make_ranking(n_queries=3, random_state=seed).truth)) for seed in range(10)]
    assert len(set.union(*supports)) > 35


@pytest.mark.parametrize("d", [1, 5, 6, 12, 57])
def test_informative_features_are_spread_over_blocks(d):
    order = module._one_of_each_block_first(np.random.default_rng(d), d)
    assert sorted(order) == list(range(d))
    n_blocks = -(-d // module.BLOCK_FEATURES)
    assert sorted(order[:n_blocks] % n_blocks) == list(range(n_blocks))


def test_the_same_seed_gives_the_same_bits():
    first, again, other = (make_ranking(n_queries=20, random_state=seed) for seed in (4, 4, 5))
    assert first.X.tobytes() == again.X.tobytes()
    assert first.y.tobytes() == again.y.tobytes()
    assert first.truth.tobytes() == again.truth.tobytes()
    assert first.X.tobytes() != other.X.tobytes()


def test_values_are_scaled_within_queries():
    data = make_ranking(n_queries=40, n_constant=0, random_state=1)
    for q in range(data.n_queries):
        block = data.X[data.qid == data.queries.ids[q]]
        assert block.min() == 0
        np.testing.assert_array_equal(block.max(axis=0)[block.max(axis=0) > 0], 1)


def test_statistics_are_like_letor():
    figures = describe(make_ranking(n_queries=300))
    assert (figures.list_length_min, figures.list_length_max) == (5, 40)
    assert 8 < figures.list_length_median < 25
    zeros, ones, twos = (figures.label_counts[label] for label in (0.0, 1.0, 2.0))
    assert zeros > 2 * (ones + twos)
    assert ones > twos > 0
    assert 0 < figures.n_queries_without_pairs < 30
    assert 0.2 < figures.zero_share < 0.6


def test_list_lengths():
    assert set(make_ranking(n_queries=9, docs_per_query=7).queries.sizes) == {7}
    sizes = make_ranking(n_queries=200, docs_per_query=(2, 100)).queries.sizes
    assert sizes.min() >= 2
    assert sizes.max() <= 100
    assert len(set(sizes)) > 20


def test_constant_features_are_never_informative():
    data = make_ranking(n_features=25, n_constant=10, n_informative=15, random_state=2)
    constant = describe(data).constant_within_queries
    assert len(constant) == 10
    assert all(data.truth[data.feature_names.index(name)] == 0 for name in constant)
    assert describe(data).constant_features == ()
    assert len(describe(make_ranking()).constant_within_queries) == 3
    assert describe(make_ranking(n_features=3, n_informative=3)).constant_within_queries == ()


def within_query_correlation(data):
    centred = data.X - np.array([data.X[data.qid == q].mean(axis=0) for q in data.queries.ids])[data.qid - 1]
    return np.corrcoef(centred.T)


def test_informative_features_have_correlated_distractors():
    data = make_ranking(n_queries=300, n_constant=0, correlation=0.8, random_state=0)
    correlations = within_query_correlation(data)
    for j in np.flatnonzero(data.truth):
        others = np.delete(correlations[j], j)
        assert np.sum(others > 0.4) == 4
    independent = within_query_correlation(make_ranking(n_queries=300, n_constant=0, correlation=0.0))
    assert np.abs(independent - np.eye(60)).max() < 0.15


def test_labels_follow_the_planted_score():
    data = make_ranking(n_queries=100, noise=0.0, n_levels=4, random_state=6)
    scores = data.X @ data.truth
    for q in data.queries.ids:
        rows = data.qid == q
        in_order = data.y[rows][np.argsort(-scores[rows], kind="stable")]
        assert (np.diff(in_order) <= 0).all()
    assert set(data.y) == {0, 1, 2, 3}


def test_feature_names_are_used():
    data = make_ranking(n_features=3, n_informative=1, feature_names=["bm25", "age", "clicks"])
    assert data.feature_names == ("bm25", "age", "clicks")


@pytest.mark.parametrize("seed", [0, 1])
def test_an_l1_ranker_recovers_most_of_the_truth(seed):
    data = make_ranking(random_state=seed)
    upper, lower = np.nonzero((data.qid[:, None] == data.qid) & (data.y[:, None] > data.y))
    differences = data.X[upper] - data.X[lower]
    sign = np.where(np.arange(len(differences)) % 2, 1.0, -1.0)
    ranker = LinearSVC(penalty="l1", dual=False, C=20 / len(sign), fit_intercept=False, max_iter=5000)
    weights = ranker.fit(differences * sign[:, None], sign).coef_[0]
    selected = np.flatnonzero(weights)
    planted = np.flatnonzero(data.truth)
    assert len(np.intersect1d(selected, planted)) >= 7
    assert len(np.setdiff1d(selected, planted)) <= 3


@pytest.mark.parametrize(
    "options",
    [
        {"n_queries": 0},
        {"n_informative": 0},
        {"n_informative": 61},
        {"n_constant": 53},
        {"n_constant": -1},
        {"n_levels": 1},
        {"docs_per_query": 1},
        {"docs_per_query": (9, 3)},
        {"correlation": 1.0},
        {"correlation": -0.1},
        {"noise": -1},
        {"noise": float("nan")},
        {"feature_names": ["a"]},
    ],
)
def test_bad_options(options):
    with refused_parameter(*options):
        make_ranking(**options)
