"""Metrics against values computed by hand, slow implementations of their rules, and other libraries."""

from __future__ import annotations

import json
import math
import pickle
import shutil
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ranksieve as rs
from ranksieve.data.dataset import Dataset
from ranksieve.metrics import (
    METRICS,
    PROFILES,
    Evaluator,
    MetricSpec,
    Profile,
    evaluate,
    parse,
)
from ranksieve.metrics.profiles import ProfileWarning
from tests.refusals import refused_data, refused_parameter
from tests.tiers import examples


def dataset(labels, qid=None):
    qid = np.zeros(len(labels), dtype=int) if qid is None else qid
    return Dataset(np.zeros((len(labels), 1)), labels, qid)


def one(metric, labels, scores=None, profile="letor", **options):
    """The value of one metric on one query; without scores, the labels are in rank order."""
    scores = -np.arange(len(labels)) if scores is None else scores
    return evaluate(scores, dataset(labels), metric, profile, **options).per_query[metric][0]


def random_case(seed, n_queries=60, longest=40, highest=4):
    """Shuffled queries of many lengths, some without relevant documents, with distinct scores."""
    rng = np.random.default_rng(seed)
    qid = rng.permutation(np.repeat(np.arange(1, n_queries + 1), rng.integers(1, longest, n_queries)))
    labels = np.minimum(
        rng.integers(0, highest + 1, len(qid)), rng.integers(0, highest + 1, n_queries + 1)[qid]
    )
    return dataset(labels.astype(float), qid), rng.permutation(len(qid)).astype(float)


# Names


def test_parse_reads_name_and_cutoff():
    assert parse("ndcg@10") == MetricSpec("ndcg", 10)
    assert parse(" MAP ") == MetricSpec("map", None)
    assert str(parse("NDCG@5")) == "ndcg@5"
    assert parse(MetricSpec("p", 3)) == MetricSpec("p", 3)


@pytest.mark.parametrize(
    ("name", "value", "word"),
    [
        ("ndgc@10", "ndgc", "'ndcg'"),
        ("", "", "unknown"),
        ("ndcg@", "ndcg@", "after @"),
        ("ndcg@ten", "ndcg@ten", "after @"),
        ("ndcg@1.5", "ndcg@1.5", "after @"),
        ("ndcg@-1", "ndcg@-1", "after @"),
        ("ndcg@0", "ndcg@0", "cut-off"),
        ("p", "p", "p@10"),
        ("r", "r", "cut-off"),
    ],
)
def test_parse_explains_bad_names(name, value, word):
    with refused_parameter("metric", value) as info:
        parse(name)
    assert word in info.value.reason


def test_unknown_profile_is_explained():
    with refused_parameter("profile", "leto") as info:
        evaluate([1.0], dataset([1.0]), "map", profile="leto")
    assert "'letor'" in info.value.reason


# LETOR by hand


def test_letor_discount_is_one_for_the_first_two_ranks():
    ranks = np.arange(1, 6)
    expected = [1, 1, 1 / math.log2(3), 1 / 2, 1 / math.log2(5)]
    np.testing.assert_allclose(PROFILES["letor"].discount(ranks), expected, rtol=1e-15)


def test_the_standard_discount_by_hand():
    np.testing.assert_array_equal(PROFILES["standard"].discount(np.array([1, 3, 7])), [1.0, 0.5, 1.0 / 3.0])


def test_letor_by_hand():
    # Ranked labels 0 2 1: DCG@3 = 0 + 3 + 1/log2(3), ideal 3 + 1 + 0; precisions at the relevant 1/2 and 2/3.
    labels = [0.0, 2.0, 1.0]
    assert one("ndcg@1", labels) == 0.0
    assert one("ndcg@2", labels) == pytest.approx(3 / 4, abs=1e-15)
    assert one("ndcg@3", labels) == pytest.approx((3 + 1 / math.log2(3)) / 4, abs=1e-15)
    assert one("dcg@3", labels) == pytest.approx(3.6309297535714573, abs=1e-12)
    assert one("map", labels) == pytest.approx(7 / 12, abs=1e-15)
    assert one("mrr", labels) == 0.5


def test_letor_short_list_has_ndcg_zero_but_precision_divides_by_k():
    labels = [2.0, 1.0, 0.0]
    assert one("ndcg@3", labels) == 1.0
    assert one("ndcg@4", labels) == 0.0
    assert one("ndcg", labels) == 1.0
    assert one("p@4", labels) == 0.5
    assert one("dcg@4", labels) == 4.0
    assert one("ndcg@4", labels, profile="standard") == 1.0


@pytest.mark.parametrize("profile", PROFILES)
def test_query_without_relevant_document(profile):
    data, scores = dataset([0.0, 0.0, 1.0, 4.0], list("aabb")), [4.0, 3.0, 2.0, 1.0]
    for metric in ("ndcg@2", "map", "r@1"):
        default = evaluate(scores, data, metric, profile=profile)
        ones = evaluate(scores, data, metric, profile=profile, empty=1)
        skipped = evaluate(scores, data, metric, profile=profile, empty="skip")
        value = default.per_query[metric][1]
        assert default.per_query[metric][0] == 0.0
        assert default.mean[metric] == pytest.approx(value / 2)
        assert ones.per_query[metric].tolist() == [1.0, value]
        assert math.isnan(skipped.per_query[metric][0])
        assert skipped.mean[metric] == value


def test_metrics_that_are_not_0_over_0_ignore_empty():
    names = ("p@1", "mrr", "err@1", "dcg@1")
    values = evaluate([1.0], dataset([0.0]), names, empty="skip").mean
    assert values == dict.fromkeys(names, 0.0)


def test_an_empty_short_list_is_treated_as_empty():
    assert one("ndcg@5", [0.0, 0.0], empty=1) == 1.0
    assert one("ndcg@5", [1.0, 0.0], empty=1) == 0.0


def test_mean_is_nan_when_every_query_is_skipped():
    assert math.isnan(evaluate([1.0], dataset([0.0]), "map", empty="skip").mean["map"])


def test_ties_keep_input_order():
    assert one("mrr", [0.0, 0.0, 1.0], [5.0, 5.0, 5.0]) == pytest.approx(1 / 3)
    assert one("mrr", [1.0, 0.0, 0.0], [0.0, -0.0, 0.0]) == 1.0
    assert one("ndcg@3", [0.0, 1.0, 2.0], [1.0, 2.0, 2.0]) == pytest.approx(1.0)


def test_mslr_relevance_begins_at_label_two():
    labels = [1.0, 2.0, 0.0, 3.0]
    assert one("map", labels, profile="mslr") == pytest.approx((1 / 2 + 2 / 4) / 2)
    assert one("p@2", labels, profile="mslr") == 0.5
    assert one("map", labels, profile="letor") == pytest.approx((1 + 1 + 3 / 4) / 3)
    assert one("ndcg@5", labels, profile="mslr") == 0.0


def test_err_by_hand():
    # letor: R = 3/4, 1/4 for labels 2, 1.
    assert one("err@1", [2.0, 1.0]) == 0.75
    assert one("err@2", [2.0, 1.0]) == pytest.approx(0.75 + 0.25 * 0.25 / 2)
    assert one("err", [0.0, 1.0, 2.0]) == pytest.approx(0.25 / 2 + 0.75 * 0.75 / 3)


def test_map_cut_divides_by_all_relevant():
    assert one("map@1", [1.0, 1.0, 0.0]) == 0.5


# Slow implementations of the rules


def slow_letor(labels, scores, relevant_from=1.0):
    """Metrics of one query with the algorithm of the LETOR 4.0 script."""
    rates = [
        y for _, _, y in sorted((-s, row, y) for row, (s, y) in enumerate(zip(scores, labels, strict=True)))
    ]
    hits, precision_at, average = 0, [], 0.0
    for position, rate in enumerate(rates + [0] * 10):
        if rate >= relevant_from:
            hits += 1
            average += hits / (position + 1)
        precision_at.append(hits / (position + 1))

    def cumulated(rates):
        sums = [2 ** rates[0] - 1]
        for position in range(1, len(rates)):
            gain = 2 ** rates[position] - 1
            sums.append(
                sums[-1] + (gain if position < 2 else gain * math.log(2.0) / math.log(position + 1.0))
            )
        return sums

    best = cumulated(sorted(rates, reverse=True))
    ndcg = [d / b if b != 0 else 0.0 for d, b in zip(cumulated(rates), best, strict=True)] + [0.0] * 10
    values = {f"ndcg@{k}": ndcg[k - 1] for k in range(1, 11)}
    values |= {f"p@{k}": precision_at[k - 1] for k in range(1, 11)}
    return values | {"map": average / hits if hits else 0.0}


def check_against_slow(data, scores, profile="letor"):
    expected = [
        slow_letor(data.y[rows], scores[rows], PROFILES[profile].relevant_from)
        for rows in (np.flatnonzero(data.qid == query) for query in data.queries.ids)
    ]
    result = evaluate(scores, data, list(expected[0]), profile=profile)
    for name, values in result.per_query.items():
        np.testing.assert_allclose(values, [e[name] for e in expected], rtol=1e-12, atol=1e-12, err_msg=name)


documents = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from([0, 0, 1, 2, 4, 0.5]), st.integers(-3, 3)),
    min_size=1,
    max_size=40,
)


@examples(80)
@given(documents, st.sampled_from(["letor", "mslr"]))
def test_letor_equals_the_scripts_rules(rows, profile):
    qid, labels, scores = (np.array(column) for column in zip(*rows, strict=True))
    check_against_slow(dataset(labels.astype(float), qid), scores.astype(float), profile)


@pytest.mark.parametrize("seed", range(3))
def test_letor_equals_the_scripts_rules_on_long_lists(seed):
    data, scores = random_case(seed, longest=200)
    check_against_slow(data, np.floor(scores / 7))


@pytest.mark.parametrize("feature", [11, 25, 45])
def test_letor_equals_the_scripts_rules_on_ohsumed(feature, letor_root):
    path = letor_root / "OHSUMED" / "Fold1" / "test.txt"
    lines = [line.split("#")[0].split() for line in path.read_text().splitlines()]
    scores = np.array([float(dict(t.split(":") for t in line[1:])[str(feature)]) for line in lines])
    check_against_slow(dataset([float(line[0]) for line in lines], [line[1] for line in lines]), scores)


def slow_err(labels, scores, k, max_label):
    total, reach = 0.0, 1.0
    ranked = [labels[i] for i in np.argsort(-scores, kind="stable")][:k]
    for rank, label in enumerate(ranked, start=1):
        stop = (2**label - 1) / 2**max_label
        total += reach * stop / rank
        reach *= 1 - stop
    return total


@pytest.mark.parametrize("profile", ["mslr", "standard", "trec"])
@pytest.mark.parametrize("k", [1, 3, 10, None])
def test_err_equals_its_definition(k, profile):
    data, scores = random_case(5)
    name = "err" if k is None else f"err@{k}"
    rows = [np.flatnonzero(data.qid == q) for q in data.queries.ids]
    expected = [slow_err(data.y[r], scores[r], k, 4) for r in rows]
    np.testing.assert_allclose(evaluate(scores, data, name, profile).per_query[name], expected, rtol=1e-12)


# Other libraries


def as_trec(data, scores):
    qrels, run = {}, {}
    for row, (query, label, score) in enumerate(zip(data.qid, data.y, scores, strict=True)):
        qrels.setdefault(str(query), {})[f"d{row}"] = int(label)
        run.setdefault(str(query), {})[f"d{row}"] = float(score)
    return qrels, run


def check_against(theirs, data, scores, name, profile, tolerance=1e-9):
    """``theirs`` maps query ids to values; queries that the other library omits must be 0."""
    ours = evaluate(scores, data, name, profile)
    expected = [theirs.get(str(query), 0.0) for query in ours.query_ids]
    assert np.count_nonzero(expected) > len(expected) / 4
    np.testing.assert_allclose(ours.per_query[name], expected, atol=tolerance)


def ir_measures_cases():
    import ir_measures as ir

    gains = {y: 2**y - 1 for y in range(5)}
    yield from (("map", ir.AP, "standard"), ("map", ir.AP(rel=2), "mslr"), ("mrr", ir.RR, "letor"))
    yield from (("mrr", ir.RR(rel=2), "mslr"), ("ndcg", ir.nDCG(gains=gains), "standard"))
    for k in (1, 3, 10):
        yield f"map@{k}", ir.AP @ k, "letor"
        yield f"mrr@{k}", ir.RR @ k, "standard"
        yield f"p@{k}", ir.P @ k, "letor"
        yield f"p@{k}", ir.P(rel=2) @ k, "mslr"
        yield f"r@{k}", ir.R @ k, "standard"
        yield f"ndcg@{k}", ir.nDCG(gains=gains) @ k, "standard"


def ir_measures_values(measure, data, scores):
    import ir_measures

    return {m.query_id: m.value for m in ir_measures.iter_calc([measure], *as_trec(data, scores))}


@pytest.mark.parametrize(
    ("name", "measure", "profile"), list(ir_measures_cases()), ids=lambda case: str(case).replace(" ", "")
)
def test_against_ir_measures(name, measure, profile):
    data, scores = random_case(1)
    check_against(ir_measures_values(measure, data, scores), data, scores, name, profile)


@pytest.mark.skipif(shutil.which("perl") is None, reason="TREC's gdeval, which ir-measures runs, needs perl")
@pytest.mark.parametrize(
    ("name", "profile"),
    [("err@5", "standard"), ("err@20", "standard"), ("err@20", "trec"), ("ndcg@10", "standard")],
)
def test_against_gdeval(name, profile):
    import ir_measures as ir

    data, scores = random_case(2)
    measure = (ir.ERR if name.startswith("err") else ir.nDCG(dcg="exp-log2")) @ int(name.split("@")[1])
    # gdeval prints five decimals.
    check_against(ir_measures_values(measure, data, scores), data, scores, name, profile, 6e-6)


@pytest.mark.parametrize(
    ("name", "theirs"),
    [("map", "map"), ("mrr", "recip_rank"), ("p@5", "P_5"), ("r@10", "recall_10"), ("map@10", "map_cut_10")],
)
def test_against_pytrec_eval(name, theirs):
    import pytrec_eval

    data, scores = random_case(3)
    qrels, run = as_trec(data, scores)
    measures = {"map", "recip_rank", "P.5", "recall.10", "map_cut.10"}
    values = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
    check_against({q: v[theirs] for q, v in values.items()}, data, scores, name, "standard")


@pytest.mark.parametrize("k", [1, 5, None])
def test_against_scikit_learn(k):
    from sklearn.metrics import ndcg_score

    data, scores = random_case(4)
    name = "ndcg" if k is None else f"ndcg@{k}"
    ours = evaluate(scores, data, name, "standard").per_query[name]
    for query, value in zip(data.queries.ids, ours, strict=True):
        rows = data.qid == query
        if rows.sum() > 1:  # scikit-learn refuses a single document
            assert value == pytest.approx(ndcg_score([2 ** data.y[rows] - 1], [scores[rows]], k=k), abs=1e-12)


# The evaluation


def test_values_are_in_order_of_the_query_ids():
    data = dataset([0.0, 1.0, 1.0, 0.0], ["b", "a", "b", "a"])
    result = evaluate([1.0, 2.0, 0.0, 1.0], data, ["mrr", "p@1"])
    assert result.query_ids.tolist() == ["b", "a"]
    assert result.per_query["mrr"].tolist() == [0.5, 1.0]
    assert result.mean == {"mrr": 0.75, "p@1": 0.5}


def test_defaults_and_profile():
    result = evaluate([2.0, 1.0], dataset([1.0, 0.0]))
    assert list(result.mean) == ["ndcg@10", "map"]
    assert result.profile == PROFILES["standard"]
    assert result.empty == 0.0


def test_a_metric_named_twice_is_computed_once():
    assert list(evaluate([1.0], dataset([1.0]), ["map", "MAP", "ndcg@1"]).mean) == ["map", "ndcg@1"]


def test_to_dict_is_json_and_skipped_queries_are_null():
    result = evaluate([1.0, 2.0], dataset([0.0, 1.0], ["a", "b"]), "map", empty="skip")
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False)) == {
        "profile": "standard",
        "empty": "skip",
        "ties": "mean",
        "n_queries": 2,
        "mean": {"map": 1.0},
        "too_short": {},
        "query_ids": ["a", "b"],
        "per_query": {"map": [None, 1.0]},
    }


def test_evaluations_can_be_pickled():
    result = pickle.loads(pickle.dumps(evaluate([1.0], dataset([1.0]), "map")))
    assert result.profile is not None
    assert result.mean == {"map": 1.0}


def linear_gain(labels):
    return labels


def test_custom_profile():
    custom = Profile("custom", gain=linear_gain, relevant_from=3.0, empty="skip")
    labels = [1.0, 3.0]
    assert one("ndcg", labels, profile=custom) == pytest.approx(
        (1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3))
    )
    assert one("map", labels, profile=custom) == 0.5
    assert math.isnan(one("map", [2.0, 0.0], profile=custom))


def test_fractional_labels_have_gains():
    expected = (2**0.5 - 1) / 1
    assert one("ndcg@1", [0.5, 1.0]) == pytest.approx(expected)


@pytest.mark.parametrize("metric", ["ndcg@5", "ndcg", "map", "err@3"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_evaluate_many_equals_one_by_one(metric, order):
    data, _ = random_case(6)
    matrix = np.asarray(np.random.default_rng(0).integers(-5, 5, (data.n_docs, 7)), order=order)
    many = Evaluator(data, "standard", empty="skip").evaluate_many(matrix, metric)
    assert many.shape == (7, data.n_queries)
    for column, values in zip(matrix.T, many, strict=True):
        single = evaluate(column, data, metric, "standard", empty="skip").per_query[metric]
        np.testing.assert_array_equal(values, single)


def test_an_evaluator_can_be_reused_for_metrics_and_cutoffs():
    data, scores = random_case(7)
    names = ["ndcg@3", "ndcg@10", "ndcg", "dcg@3", "dcg", "err@3"]
    evaluator = Evaluator(data, "standard")
    evaluator.evaluate(-scores, names[::-1])
    reused = evaluator.evaluate(scores, names)
    for name in names:
        np.testing.assert_array_equal(
            reused.per_query[name], evaluate(scores, data, name, "standard").per_query[name]
        )


# Bad input


@pytest.mark.parametrize(
    ("scores", "word"),
    [
        ([1.0, 2.0], "got shape (2,)"),
        ([[1.0], [2.0], [3.0]], "got shape (3, 1)"),
        ([1.0, float("nan"), 2.0], "row 1"),
        ([1.0, 2.0, float("inf")], "row 2"),
        (["a", "b", "c"], "numbers"),
    ],
)
def test_bad_scores(scores, word):
    with refused_parameter("scores") as info:
        evaluate(scores, dataset([0.0, 1.0, 2.0]))
    assert word in info.value.reason


def test_bad_score_matrix():
    data = dataset([0.0, 1.0])
    with refused_parameter("scores") as info:
        Evaluator(data).evaluate_many([1.0, 2.0], "map")
    assert "(2, points)" in info.value.reason
    with refused_parameter("scores") as info:
        Evaluator(data).evaluate_many([[1.0, 2.0], [1.0, math.nan]], "map")
    assert "row 1" in info.value.reason
    assert Evaluator(data).evaluate_many(np.empty((2, 0)), "map").shape == (0, 1)


@pytest.mark.parametrize("metric", ["ndcg@10", "dcg", "err@5"])
def test_negative_labels_have_no_gain(metric):
    data = dataset([1.0, 0.0, -1.0, 1.0, -2.0], list("ababa"))
    with refused_data() as info:
        evaluate(np.zeros(5), data, metric)
    assert "label of row 2" in info.value.reason
    assert evaluate(np.zeros(5), data, "map").mean["map"] > 0


def test_labels_whose_gains_overflow():
    with refused_data() as info:
        one("ndcg@10", [0.0, 2000.0])
    assert "label of row 1" in info.value.reason


def test_the_largest_gain_has_a_finite_sum():
    largest = np.finfo(np.float64).max / 2
    profile = Profile("linear", gain=lambda labels: labels)
    data = dataset([largest, largest], list("aa"))
    assert evaluate(np.zeros(2), data, "ndcg", profile=profile).mean["ndcg"] == 1.0
    larger = dataset([0.0, np.nextafter(largest, np.inf)], list("aa"))
    with refused_data() as info:
        evaluate(np.zeros(2), larger, "ndcg", profile=profile)
    assert "smaller" in info.value.reason


def test_label_above_the_scale_of_err():
    with refused_data() as info:
        one("err@10", [0.0, 3.0])
    assert "mslr" in info.value.reason
    with refused_data() as info:
        one("err@10", [0.0, 9.0], profile="standard")
    assert "at most 4" in info.value.reason
    assert one("err@10", [3.0], profile=replace(PROFILES["letor"], max_label=3.0)) == pytest.approx(7 / 8)


def test_evaluate_needs_a_dataset():
    with refused_parameter("dataset", ([1.0], [1])):
        evaluate([1.0], ([1.0], [1]))


def test_bad_empty():
    with refused_parameter("empty", 0.5):
        evaluate([1.0], dataset([1.0]), empty=0.5)
    with refused_parameter("empty", "drop"):
        Profile("mine", empty="drop")


def test_no_metric():
    with refused_parameter("metrics", []):
        evaluate([1.0], dataset([1.0]), [])


def test_every_metric_has_a_title():
    assert all(metric.title for metric in METRICS.values())


def test_a_warning_about_data_with_another_profile(tmp_path):
    data = rs.make_ranking(6, 3, 2)
    (tmp_path / "Fold1").mkdir()
    rs.io.write_letor(data, tmp_path / "Fold1" / "train.txt")
    read = rs.io.read_letor(tmp_path / "Fold1" / "train.txt")
    scores = np.arange(read.n_docs, dtype=float)
    with pytest.warns(ProfileWarning, match="letor profile"):
        assert rs.evaluate(scores, read, "ndcg@10").profile.name == "letor"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rs.evaluate(scores, read, "ndcg@10", "standard").profile.name == "standard"
        assert rs.evaluate(scores, data, "ndcg@10").profile.name == "standard"
