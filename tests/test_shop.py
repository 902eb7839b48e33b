"""make_shop: names, costs, correlations, truth, seed."""

from __future__ import annotations

import numpy as np
import pytest

from ranksieve.data.describe import describe
from ranksieve.synthetic import QUERY_PROPERTIES, SOURCES, make_shop, shop_costs
from tests.refusals import refused_parameter


@pytest.fixture(scope="module")
def data():
    return make_shop(200, random_state=1)


def column(data, name):
    return data.X[:, data.feature_names.index(name)]


def test_shape_names_and_costs(data):
    assert data.n_queries == 200
    assert data.n_features == 43
    assert {"bm25_title", "price", "clicks_7d", "cross_encoder"} <= set(data.feature_names)
    costs = shop_costs()
    each = costs.columns(data.feature_names).of_each
    assert each.min() > 0
    assert costs.of(data.feature_names) == pytest.approx(54.87)
    assert costs.of(["clicks_1d", "clicks_7d", "orders_7d"]) == SOURCES["counters"].cost


def test_values_lie_between_0_and_1_and_lists_are_long_enough_for_ndcg_10(data):
    assert data.X.min() >= 0
    assert data.X.max() <= 1
    assert data.queries.sizes.min() >= 12
    assert set(data.y) == {0, 1, 2, 3}


def test_query_properties_are_constant_within_queries(data):
    assert sorted(describe(data).constant_within_queries) == sorted(QUERY_PROPERTIES)


def test_cheap_proxies_correlate_with_expensive_features(data):
    for cheap, dear in (("bm25_title", "cross_encoder"), ("rating_mean", "review_sentiment")):
        assert np.corrcoef(column(data, cheap), column(data, dear))[0, 1] > 0.3
    assert np.corrcoef(column(data, "price"), column(data, "discount"))[0, 1] < -0.5
    assert abs(np.corrcoef(column(data, "age_days"), column(data, "clicks_7d"))[0, 1]) < 0.1


def test_labels_follow_the_truth_and_clicks_help(data):
    weights = dict(zip(data.feature_names, data.truth, strict=True))
    assert weights["clicks_7d"] > 0 > weights["price"]
    assert np.count_nonzero(data.truth) == 8
    assert np.corrcoef(data.X @ data.truth, data.y)[0, 1] > 0.5


def test_the_same_seed_gives_the_same_bits():
    first, again, other = (make_shop(20, random_state=seed) for seed in (4, 4, 5))
    assert first.X.tobytes() == again.X.tobytes()
    assert first.y.tobytes() == again.y.tobytes()
    assert first.X.tobytes() != other.X.tobytes()


def test_no_queries():
    with refused_parameter("n_queries", 0):
        make_shop(0)
