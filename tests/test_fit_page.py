"""How sure each feature of a fit is."""

from __future__ import annotations

import numpy as np

from ranksieve.commands.fit_page import N_SUBSAMPLES, selection_frequency, support_of
from ranksieve.estimators import FenchelRank, SparseRanker
from ranksieve.generators.ranking import make_ranking
from ranksieve.measures.importance import single_feature


def test_selection_frequency_counts_refits_at_the_chosen_point():
    data = make_ranking(40, 10, 2, docs_per_query=(8, 12), noise=0.1, seed=0)
    ranker = SparseRanker(2, n_alphas=20, profile="standard", normalise="z").fit(data, valid=data)
    support = support_of(ranker, data)
    assert support.n_subsamples == N_SUBSAMPLES
    counts = support.frequency * N_SUBSAMPLES
    np.testing.assert_allclose(counts, counts.round(), atol=1e-9)
    assert support.frequency[np.flatnonzero(data.truth)].min() > 0.9
    prepared = ranker.normalisation_.for_learning(data)
    np.testing.assert_array_equal(support.frequency, selection_frequency(ranker, prepared))
    assert not np.array_equal(support.frequency, selection_frequency(ranker, data))  # of other columns
    np.testing.assert_allclose(support.strength, single_feature(prepared, "ndcg@10", None))


def test_selection_frequency_obeys_the_demands_on_features():
    data = make_ranking(40, 10, 2, docs_per_query=(8, 12), noise=0.1, seed=0)
    banned = int(np.flatnonzero(data.truth)[0])
    ranker = SparseRanker(n_alphas=20, profile="standard", must_not=[banned]).fit(data, valid=data)
    assert selection_frequency(ranker, data)[banned] == 0.0


def test_only_a_path_is_refitted():
    """Neither a ranker without a path nor a choice by cost has frequencies."""
    data = make_ranking(20, 6, 2, docs_per_query=(8, 12), seed=0)
    assert support_of(FenchelRank().fit(data), data).frequency is None
    costs = dict.fromkeys(data.feature_names, 1.0)
    ranker = SparseRanker(n_alphas=10, feature_costs=costs, max_cost=3.0, profile="standard")
    support = support_of(ranker.fit(data, valid=data), data)
    assert support.frequency is None
    assert support.strength is not None
