"""Extreme numbers: cases found by ``python -m tests.extremes``, and limits shared by all methods."""

from __future__ import annotations

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.data.inputs import MAX_MAGNITUDE, MIN_MAGNITUDE
from ranksieve.methods import METHODS
from tests.conftest import random_dataset
from tests.extremes.cases import Case, draw
from tests.extremes.data import FEATURES, IDS, KINDS
from tests.extremes.judging import judge
from tests.refusals import refused_data

FITTED = [
    Case("ranksvmstruct", parameters={"C": 1e-17}),
    Case("ranksvmstruct", parameters={"C": 1e17}),
    Case("svmmap", features="1e+28", parameters={"max_iter": 1000}),
    Case("svmmap", features="1e-28", parameters={"max_iter": 1000}),
    Case("fenchelrank", features="1e+20"),
    Case("fenchelrank", features="mixed within 1e±20"),
    Case("ranksvm", shape="wide", parameters={"C": 1e8}),
    Case("csranksvm", shape="wide", features="1e+28", parameters={"normalise": "none"}),
    Case("ranksvm-l1", features="one 1e+20"),
    Case("ranksvm", features="constant", parameters={"tol": 1e-28}),
    Case("rankrls", features="opposite copies", parameters={"alpha": 1e-28}),
    Case("greedyrankrls", features="1e+28", query_weight="all 1e+28"),
    Case("fsmsvm", features="one 1e+28", parameters={"C": 1e8}),
    Case("lambdamart", query_weight="all 1e+28"),
    Case("fbpcrank", query_weight="all 1e-28", document_weight="all 1e-28"),
    Case("rankboost", document_weight="some 1e+28"),
    Case("sparseranker", shape="some queries of one document", query_weight="some 1e+28"),
    Case("fenchelrank", parameters={"radius": 1e28}),
]
REFUSED = [
    (Case("ranksvm-scad", parameters={"alpha": 1e-308}), "alpha=1e-308"),
    (Case("bestsubset", parameters={"ridge": 1e308}), "ridge=1e+308"),
    (Case("ranksvm", document_weight="some 1e-310"), "1e-310"),
    (Case("rankrls", features="one large constant"), "feature f1"),
    (Case("rankrls", labels="large"), "label is 1e+300"),
]


@pytest.mark.parametrize("case", FITTED, ids=str)
def test_cases_that_must_be_fitted(case):
    outcome = judge(case)
    assert outcome.what == "fitted", outcome


@pytest.mark.parametrize(("case", "word"), REFUSED, ids=str)
def test_cases_that_must_be_refused(case, word):
    outcome = judge(case)
    assert (outcome.what, word in outcome.words) == ("refused", True), outcome


def test_cases_are_determined_by_seed_and_number():
    cases = [draw(3, number) for number in range(2 * len(METHODS))]
    assert cases == [draw(3, number) for number in range(2 * len(METHODS))]
    assert {case.method for case in cases} == set(METHODS)
    assert cases != [draw(4, number) for number in range(2 * len(METHODS))]
    assert eval(str(cases[0])) == cases[0]


def test_with_a_small_cost_weights_follow_the_gradient():
    """With C = 1e-17 the optimum is w = −C·∇f(0) + O(C²)."""
    data = random_dataset(seed=5)
    weak = rs.baselines.RankSVMStruct(C=1e-17).fit(data).coef_
    less_weak = rs.baselines.RankSVMStruct(C=1e-6).fit(data).coef_
    np.testing.assert_allclose(weak * 1e11, less_weak, rtol=1e-9)


@pytest.mark.parametrize("method", ["ranksvm-l1", "lambdamart", "rankboost", "gas"])
@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_arrays_with_the_same_values_give_the_same_scores(method, kind):
    case = Case(method, kind=kind, features="whole")
    X, y, qid = case.arrays()
    plain = np.array(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    scores, same = (case.ranker().fit(features, y, qid=qid).predict(plain) for features in (X, plain))
    np.testing.assert_allclose(scores, same, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("ids", [name for name in IDS if name not in ("bool", "interleaved")])
def test_query_ids_of_any_type(ids):
    X, y, qid = Case("ranksvm", ids=ids).arrays()
    plain = Case("ranksvm").data()
    data = rs.Dataset(X, y, qid)
    assert data.n_queries == plain.n_queries
    np.testing.assert_array_equal(rs.RankSVM().fit(data).coef_, rs.RankSVM().fit(plain).coef_)
    weights = dict.fromkeys(data.query_ids.tolist()[:3], 2.0)
    assert np.isfinite(rs.RankSVM().fit(data, query_weight=weights).coef_).all()


@pytest.mark.parametrize("features", FEATURES)
def test_data_of_any_scale_can_be_inspected(features):
    data = Case("ranksvm", features=features).data()
    figures = rs.inspect_features(data).features
    assert all(np.isfinite([one.deviation, one.minimum, one.maximum]).all() for one in figures)
    assert all(one.deviation > 0 or one.constant_within_queries for one in figures)
    assert rs.describe(data)
    column = np.asarray(data.X[:, 0])
    values = rs.evaluate(column, data, ["ndcg@5", "map"], profile="standard").mean.values()
    assert all(0 <= value <= 1 for value in values)


@pytest.mark.parametrize("features", ["1e+150", "1e+160", "1e-150", "1e-160"])
def test_other_functions_refuse_extreme_data(features):
    data, plain = Case("ranksvm", features=features).data(), Case("ranksvm").data()
    model = rs.SparseRanker(max_features=3, n_alphas=5, cv=2).fit(plain).to_model()
    for learn in (
        lambda: rs.sparse_path(data),
        lambda: rs.sparse_path(data, normalise="z"),
        lambda: rs.BestSubset(2).fit(data),
        lambda: rs.make_scorecard(model, data),
        lambda: rs.MinBatSRank().partial_fit(data),
        lambda: rs.verify(model, data),
    ):
        with refused_data() as info:
            learn()
        assert "power of ten" in info.value.reason


@pytest.mark.parametrize("size", [MIN_MAGNITUDE, MAX_MAGNITUDE])
def test_limits_of_magnitude_are_inclusive(size):
    data = random_dataset(seed=6)
    X = np.sign(data.X) * size
    beyond = {MIN_MAGNITUDE: 0.2, MAX_MAGNITUDE: 1.1}[size]
    assert np.isfinite(rs.RankSVM().fit(data.replace_features(X)).coef_).all()
    weight = np.full(data.n_queries, size)
    assert np.isfinite(rs.RankSVM(average=True).fit(data, query_weight=weight).coef_).all()
    for learn in (
        lambda: rs.RankSVM().fit(data.replace_features(beyond * X)),
        lambda: rs.RankSVM().fit(data, query_weight=beyond * weight),
        lambda: rs.RankSVM(C=beyond * size).fit(data),
    ):
        with pytest.raises(ValueError, match=r"1e[-+]30"):
            learn()


@pytest.mark.parametrize("ranker", [rs.RankSVM(1e8), rs.SparseRanker(n_alphas=5, cv=2)], ids=repr)
def test_scores_that_overflow_are_refused(ranker):
    data = random_dataset(seed=7, n_queries=20)
    ranker.fit(data.replace_features(1e-3 * data.X))
    far = data.replace_features(1e307 * data.X)
    for score in (ranker.predict, ranker.score):
        with refused_data() as info:
            score(far)
        assert "overflows" in info.value.reason


def test_queries_too_long_for_lightgbm_are_named(capfd):
    sizes = [30, 10_001]
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(sum(sizes), 2)), np.repeat(["short", "long"], sizes)
    data = rs.Dataset(X, X[:, 0] > 1, qid)
    with refused_data() as info:
        rs.baselines.LambdaMART(2).fit(data)
    assert "query long" in info.value.reason
    assert capfd.readouterr() == ("", "")
    assert rs.baselines.BRTree(1, n_rounds=2).fit(data).selected_.tolist() == [0]
    within = data.select_rows(np.arange(sum(sizes) - 1))
    assert rs.baselines.LambdaMART(2).fit(within).n_iter_ == 2
