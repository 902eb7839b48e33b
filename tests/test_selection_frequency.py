"""Selection frequencies of features in refits on random parts of the queries."""

from __future__ import annotations

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.metrics import PROFILES
from ranksieve.rankers.measures import single_feature
from ranksieve.report.calls import feature_strength
from tests.pairs import sqrt_query_weight
from tests.refusals import refused_data, refused_parameter


@pytest.fixture(scope="module")
def data():
    return rs.make_ranking(40, 10, 2, docs_per_query=(8, 12), noise=0.1, random_state=0)


@pytest.fixture(scope="module")
def ranker(data):
    """A ranker at a point of the path."""
    options = {"n_alphas": 20, "profile": "standard", "normalise": "z", "families": ["l1"]}
    return rs.SparseRanker(2, **options).fit(data)


def test_shares_of_refits_at_the_selected_point(data, ranker):
    calls = []
    shares = rs.selection_frequency(ranker, data, 20, progress=lambda *count: calls.append(count))
    np.testing.assert_allclose(shares * 20, (shares * 20).round(), atol=1e-9)
    assert shares[np.flatnonzero(data.truth)].min() > 0.9
    assert calls == [(done, 20) for done in range(1, 21)]


def test_a_refit_equals_the_path_on_the_drawn_queries(data, ranker):
    queries = np.flatnonzero(data.pairs_per_query)
    part = np.sort(np.random.default_rng(7).choice(queries, int(0.3 * len(queries)), replace=False))
    z_scores = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0)
    normalised = data.replace_features(z_scores, data.feature_names).select_queries(part)
    alphas, weight = [ranker.choice_.candidate.strength], sqrt_query_weight(normalised)
    expected = rs.sparse_path(normalised, alphas=alphas, query_weight=weight).coefs[0] != 0
    np.testing.assert_array_equal(
        rs.selection_frequency(ranker, data, 1, share=0.3, random_state=7), expected
    )


@pytest.mark.parametrize("family", ["log", "forward", "refitted"])
def test_refits_use_the_selected_family(data, family):
    options = {"n_alphas": 20, "profile": "standard", "families": [family]}
    ranker = rs.SparseRanker(3, **options).fit(data)
    assert ranker.choice_.family.label == family
    shares = rs.selection_frequency(ranker, data, 10)
    assert shares[np.flatnonzero(data.truth)].min() > 0.8
    if family == "forward":  # every refit has a set of the same size
        assert shares.sum() == pytest.approx(len(ranker.support_))


def test_constraints_apply_to_every_refit(data):
    banned = int(np.flatnonzero(data.truth)[0])
    options = {"must_not": [banned], "must_have": ["f9"], "penalty": "elastic_net", "l1_ratio": 0.9}
    for families in (["l1"], ["forward"]):
        ranker = rs.SparseRanker(n_alphas=20, profile="standard", families=families, **options).fit(data)
        shares = rs.selection_frequency(ranker, data, 10)
        assert shares[banned] == 0.0
        assert shares[8] == 1.0


def test_missing_values_are_filled_as_in_the_fit(data):
    X = data.X.copy()
    X[::5, 3] = np.nan
    holes = data.replace_features(X, data.feature_names)
    filled = data.replace_features(np.nan_to_num(X), data.feature_names)
    options = {"n_alphas": 10, "profile": "standard", "shape": "linear"}
    ours = rs.SparseRanker(missing="zero", **options).fit(holes)
    theirs = rs.SparseRanker(**options).fit(filled)
    np.testing.assert_array_equal(
        rs.selection_frequency(ours, holes, 5), rs.selection_frequency(theirs, filled, 5)
    )


@pytest.mark.parametrize(
    "options",
    [
        {"n_subsamples": 0},
        {"share": 1.0},
    ],
)
def test_refusals(data, ranker, options):
    with refused_parameter(*next(iter(options.items()))):
        rs.selection_frequency(ranker, data, **options)


def test_one_query_cannot_be_halved(data, ranker):
    with refused_data() as info:
        rs.selection_frequency(ranker, data.select_queries([0]))
    assert "at least 2" in info.value.reason


def test_a_selection_by_cost_has_no_frequencies(data):
    costs = dict.fromkeys(data.feature_names, 1.0)
    ranker = rs.SparseRanker(n_alphas=10, feature_costs=costs, max_cost=3.0, profile="standard")
    ranker.fit(data)
    with refused_parameter("ranker", ranker):
        rs.selection_frequency(ranker, data)
    assert feature_strength(ranker, data).strength is not None


def test_strength_is_the_metric_of_single_features(data, ranker):
    support = feature_strength(ranker, data)
    assert (support.metric, support.profile) == ("ndcg@10", "standard")
    np.testing.assert_allclose(
        support.strength,
        single_feature(ranker.preparation_.for_learning(data), "ndcg@10", None, PROFILES["standard"]),
    )
