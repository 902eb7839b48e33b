"""Properties of every metric in every profile."""

from __future__ import annotations

import numpy as np
import pytest

from ranksieve.data.dataset import Dataset
from ranksieve.metrics import METRICS, PROFILES, evaluate
from tests.tiers import tiered

CUTOFFS = (1, 3, 10)
NAMES = [f"{name}@{k}" for name in METRICS for k in CUTOFFS]
NAMES += [name for name, metric in METRICS.items() if not metric.needs_k]
BEST_WHEN_SORTED = [n for n in NAMES if n.split("@")[0] in ("ndcg", "dcg", "map", "mrr", "err")]

every_metric = pytest.mark.parametrize("name", NAMES)
every_profile = pytest.mark.parametrize("profile", tiered(PROFILES, {"letor", "standard"}))


def make_case(seed):
    """Interleaved queries of 1 to 30 documents, some without relevant documents, and distinct scores."""
    rng = np.random.default_rng(seed)
    qid = rng.permutation(np.repeat(np.arange(40), rng.integers(1, 31, 40)))
    labels = np.minimum(rng.integers(0, 3, len(qid)), rng.choice([0, 1, 2, 2, 2], 40)[qid]).astype(float)
    return Dataset(np.zeros((len(qid), 1)), labels, qid), rng.permutation(len(qid)) / 8.0


def values(name, data, scores, profile, ties=None):
    return evaluate(scores, data, name, profile, ties=ties).per_query[name]


@every_profile
@every_metric
def test_one_finite_value_per_query(name, profile):
    data, scores = make_case(0)
    result = values(name, data, scores, profile)
    assert result.shape == (data.n_queries,)
    assert np.isfinite(result).all()
    assert (result >= 0).all()
    assert np.ptp(result) > 0
    if METRICS[name.split("@")[0]].at_most_one:
        assert (result <= 1 + 1e-12).all()


@every_profile
@every_metric
def test_a_constant_per_query_changes_nothing(name, profile):
    data, scores = make_case(1)
    shifted = scores + np.arange(40)[data.qid] * 256.0
    np.testing.assert_array_equal(values(name, data, shifted, profile), values(name, data, scores, profile))


@every_profile
@every_metric
def test_row_order_does_not_matter_for_distinct_scores(name, profile):
    data, scores = make_case(2)
    rows = np.random.default_rng(0).permutation(data.n_docs)
    shuffled = data.select_rows(rows)
    other = dict(zip(shuffled.queries.ids, values(name, shuffled, scores[rows], profile), strict=True))
    expected = values(name, data, scores, profile)
    np.testing.assert_array_equal([other[query] for query in data.queries.ids], expected)


@every_profile
@every_metric
def test_scattered_queries_equal_each_query_alone(name, profile):
    data, scores = make_case(3)
    together = values(name, data, scores, profile)
    for query, value in enumerate(together):
        rows = data.queries.rows(np.array([query]))
        alone = values(name, data.select_rows(rows), scores[rows], profile)
        assert alone.tolist() == pytest.approx([value], abs=1e-15)


@every_profile
@pytest.mark.parametrize("name", BEST_WHEN_SORTED)
def test_the_perfect_ranking_is_the_best(name, profile):
    data, _ = make_case(4)
    best = values(name, data, data.y, profile)
    rng = np.random.default_rng(0)
    others = [values(name, data, rng.random(data.n_docs), profile) for _ in range(20)]
    assert (best >= np.max(others, axis=0) - 1e-12).all()
    assert (best > np.min(others, axis=0)).any()


@every_profile
@every_metric
def test_ties_in_order_keep_input_order(name, profile):
    data, scores = make_case(5)
    tied = np.floor(scores / 10)
    untied = tied - np.arange(data.n_docs) * 1e-6
    in_order = values(name, data, tied, profile, "order")
    np.testing.assert_array_equal(in_order, values(name, data, untied, profile))


@every_metric
def test_inputs_are_not_modified(name):
    data, scores = make_case(6)
    contiguous = data.select_rows(data.queries.order)
    labels, original_scores = contiguous.y.copy(), scores.copy()
    evaluate(original_scores, contiguous, name, "standard")
    np.testing.assert_array_equal(contiguous.y, labels)
    np.testing.assert_array_equal(original_scores, scores)
