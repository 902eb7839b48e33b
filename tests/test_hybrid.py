"""Hybrid search: data from runs, normalisation within result lists, the ranker, the command."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from typer.testing import CliRunner

from ranksieve.cli import app
from ranksieve.data.dataset import Dataset
from ranksieve.data.result_lists import LIST_SCALINGS, list_scaling
from ranksieve.explain import explain_pair
from ranksieve.io.fusion import fuse_runs
from ranksieve.io.search_log import read_clause_log
from ranksieve.io.trec import write_qrels, write_run
from ranksieve.metrics import evaluate
from ranksieve.model.linear import load_model
from ranksieve.prepare import Preparation
from ranksieve.prepare.scaling import Normalisation
from ranksieve.rankers import HybridRanker
from ranksieve.rankers.hybrid import EQUAL, RRF, preparation_of
from ranksieve.report.hybrid_page import weights_figure
from ranksieve.verification import verify
from tests.figures import assert_drawable
from tests.refusals import refused_data, refused_parameter

NAN = math.nan


def search_data(n_queries=40, n_docs=20, noise=(1.0, 0.6, 2.0), seed=0):
    """Clauses that see the grade with noise; each returns its best documents."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n_queries * n_docs) * (rng.random(n_queries * n_docs) < 0.4)
    qid = np.repeat(np.arange(n_queries), n_docs)
    X = y[:, None] + rng.normal(size=(len(y), len(noise))) * np.array(noise) + 5.0
    for q in range(n_queries):
        rows = np.flatnonzero(qid == q)
        for j in range(len(noise)):
            X[rows[np.argsort(X[rows, j])[: n_docs // 3]], j] = np.nan
    X[np.isnan(X).all(axis=1), 0] = 1.0
    names = [f"clause{j}" for j in range(len(noise))]
    return Dataset(X, y.astype(float), qid, names, [f"d{k}" for k in range(len(y))])


DATA = search_data()


@pytest.fixture(scope="module")
def fitted():
    return HybridRanker().fit(DATA)


# --- Normalisations --------------------------------------------------------------------------------------

COLUMN = [2.0, 4.0, NAN, 3.0, 7.0, 7.0, NAN, NAN]
QID = [1, 1, 1, 1, 2, 2, 2, 3]
LIST_VALUES = {
    "list_min_max": [0.0, 1.0, 0.0, 0.5, 1.0, 1.0, 0.0, 0.0],
    "list_min_max@elasticsearch": [0.0, 1.0, 0.0, 0.5, 7.0, 7.0, 0.0, 0.0],
    "list_min_max@opensearch": [0.001, 1.0, 0.0, 0.5, 1.0, 1.0, 0.0, 0.0],
    "list_l2": [2 / 29**0.5, 4 / 29**0.5, 0.0, 3 / 29**0.5, 0.5**0.5, 0.5**0.5, 0.0, 0.0],
    "list_z": [-(1.5**0.5), 1.5**0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    "list_z@opensearch": [0.001, 1.5**0.5, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0],
    "reciprocal_rank@60": [1 / 63, 1 / 61, 0.0, 1 / 62, *[(1 / 61 + 1 / 62) / 2] * 2, 0.0, 0.0],
    "reciprocal@10": [1 / 12, 1 / 14, 0.0, 1 / 13, 1 / 17, 1 / 17, 0.0, 0.0],
}


@pytest.mark.parametrize("kind", LIST_VALUES)
def test_a_normalisation_uses_the_documents_that_were_returned(kind):
    data = Dataset(np.array(COLUMN)[:, None], np.zeros(8), QID, ["a"])
    values = Preparation(normalisation=Normalisation(kind)).apply(data).X[:, 0]
    np.testing.assert_allclose(values, LIST_VALUES[kind], rtol=1e-14)


def test_every_normalisation_is_tested():
    assert set(LIST_SCALINGS) <= set(LIST_VALUES)


@pytest.mark.parametrize("kind", LIST_VALUES)
def test_the_order_of_rows_does_not_matter(kind):
    order = np.random.default_rng(1).permutation(DATA.n_docs)
    preparation = Preparation(normalisation=Normalisation(kind))
    values, shuffled = preparation.apply(DATA).X, preparation.apply(DATA.select_rows(order)).X
    np.testing.assert_allclose(shuffled, values[order], rtol=1e-12)


@pytest.mark.parametrize("kind", ["list_max", "reciprocal_rank@0", "reciprocal_rank@10001"])
def test_unknown_normalisations(kind):
    assert list_scaling(kind) is None
    with refused_parameter("normalise"):
        HybridRanker(normalise=kind).fit(DATA)


# --- Runs ------------------------------------------------------------------------------------------------

RUNS = {"a": {"1": {"x": 3.0, "y": 1.0}, "2": {"x": 2.0}}, "b": {"1": {"z": 0.5, "x": 0.25}, "2": {"v": 1.0}}}
GRADES = {"1": {"x": 1, "y": 0, "z": 2}, "2": {"x": 1, "v": 0}}


def test_rows_are_the_union_of_the_lists():
    data = fuse_runs(RUNS, GRADES)
    assert data.feature_names == ("a", "b")
    assert list(zip(data.qid.tolist(), data.doc_ids, strict=True)) == [
        (1, "x"), (1, "y"), (1, "z"), (2, "x"), (2, "v"),
    ]  # fmt: skip
    np.testing.assert_array_equal(data.X, [[3, 0.25], [1, NAN], [NAN, 0.5], [2, NAN], [NAN, 1]])
    np.testing.assert_array_equal(data.y, [1, 0, 2, 1, 0])


def test_unjudged_documents_are_counted():
    grades = {"1": {"x": 1, "z": 2, "lost": 1}, "2": {"x": 1, "v": 0}, "3": {"x": 1}}
    with pytest.warns(
        UserWarning, match="1 of 5 returned documents have no judgement and have grade 0"
    ) as seen:
        data = fuse_runs(RUNS, grades)
    assert "and have grade 0" in str(seen[0].message)
    assert "1 relevant documents are in no list" in str(seen[0].message)
    assert "no clause has 1 judged queries, such as 3" in str(seen[0].message)
    assert data.document_weight is None
    with pytest.warns(UserWarning, match="are left out of the fit"):
        dropped = fuse_runs(RUNS, grades, unjudged="drop")
    assert dropped.document_weight.tolist() == [1, 0, 1, 1, 1]


def test_documents_of_weight_zero_count_in_their_list_only():
    """Leaving out a judgement must not change the normalised score of another document."""
    weight = (np.arange(DATA.n_docs) % 5 > 0).astype(float)
    data = Dataset(DATA.X, DATA.y, DATA.qid, DATA.feature_names, document_weight=weight)
    ranker = HybridRanker(normalise="list_min_max").fit(data)
    scaled = preparation_of("list_min_max").apply(DATA)
    rows = np.flatnonzero(weight)
    kept = Dataset(scaled.X[rows], DATA.y[rows], DATA.qid[rows], DATA.feature_names)
    same = HybridRanker(normalise="none").fit(kept)
    np.testing.assert_allclose(ranker.hybrid_["tuned"].values, same.hybrid_["tuned"].values)
    model = ranker.to_model()
    assert all(verdict.holds is not False for verdict in verify(model, data).verdicts)


def test_depth_cuts_every_list():
    data = fuse_runs(RUNS, GRADES, depth=1)
    np.testing.assert_array_equal(data.X, [[3, NAN], [NAN, 0.5], [2, NAN], [NAN, 1]])


def test_lists_without_scores_give_ranks():
    data = fuse_runs({"a": {"1": ["x", "y"]}, "b": {"1": ["z", "x"]}}, {"1": GRADES["1"]})
    np.testing.assert_array_equal(data.X, [[1, 2], [2, NAN], [NAN, 1]])
    with refused_data():
        fuse_runs({"a": {"1": ["x", "y"]}, "b": RUNS["b"]}, GRADES)


def test_runs_that_cannot_be_used():
    with refused_parameter("runs"):
        fuse_runs({}, GRADES)
    with refused_data():  # one clause
        fuse_runs({"a": RUNS["a"]}, GRADES)
    with refused_data():  # no common query
        fuse_runs({"a": RUNS["a"], "b": {"7": {"x": 1.0}}}, GRADES)
    with refused_data():  # no judged query
        fuse_runs(RUNS, {"7": {"x": 1}})
    with refused_data():  # twice
        fuse_runs({"a": {"1": ["x", "x"]}, "b": {"1": ["z"]}}, GRADES)
    for score in ("high", NAN, math.inf, None, True):
        with refused_data():
            fuse_runs({"a": {"1": {"x": score}}, "b": RUNS["b"]}, GRADES)
    with refused_data():
        fuse_runs({"a": {"1": "x"}, "b": RUNS["b"]}, GRADES)
    with refused_parameter("runs"):
        fuse_runs({"a": [1], "b": RUNS["b"]}, GRADES)
    with refused_parameter("qrels"):
        fuse_runs(RUNS, 7)
    with refused_parameter("unjudged"):
        fuse_runs(RUNS, GRADES, unjudged="keep")
    with refused_parameter("depth"):
        fuse_runs(RUNS, GRADES, depth=0)
    with refused_data():
        fuse_runs({"a": {}, "b": RUNS["b"]}, GRADES)
    with pytest.warns(UserWarning, match="no judgement"), refused_data():
        fuse_runs(RUNS, {"1": {"w": 1}}, unjudged="drop")


def test_a_document_twice_in_a_run_file(tmp_path):
    path = tmp_path / "a.run"
    path.write_text("1 Q0 x 1 2.0 t\n1 Q0 x 2 1.0 t\n")
    with refused_data("a.run", 2):
        fuse_runs({"a": path, "b": RUNS["b"]}, GRADES)


BOTH, FIRST = {"a": 3.0, "b": 0.25}, {"a": 1.0}
LOGS = {
    "named queries": {
        "hits": {
            "hits": [
                {"_id": "x", "_score": 9, "matched_queries": BOTH},
                {"_id": "y", "_score": 1, "matched_queries": FIRST},
            ]
        }
    },
    "vespa": {
        "root": {
            "children": [
                {"id": "i", "fields": {"documentid": "x", "matchfeatures": BOTH}},
                {"id": "y", "fields": {"matchfeatures": FIRST}},
            ]
        }
    },
    "solr": {
        "response": {
            "docs": [{"id": "x", "[features]": "a=3.0,b=0.25"}, {"id": "y", "[features]": "a=1.0"}],
        }
    },
}


@pytest.mark.parametrize("kind", LOGS)
def test_responses_with_scores_of_several_clauses(kind, tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(json.dumps({"qid": q, "response": LOGS[kind]} if kind != "solr" else
                                         {"qid": q, **LOGS[kind]}) for q in (1, 2)))  # fmt: skip
    expected = {str(q): {"x": 3.0, "y": 1.0} for q in (1, 2)}, {str(q): {"x": 0.25} for q in (1, 2)}
    assert read_clause_log(path, "log") == dict(zip("ab", expected, strict=True))
    assert fuse_runs({"log": path}, {"1": {"x": 1, "y": 0}, "2": {"x": 0, "y": 1}}).feature_names == (
        "a",
        "b",
    )


@pytest.mark.parametrize(
    "response",
    [
        {"hits": {"hits": [{"_id": "x", "_score": 3.0}]}},
        {"result": {"points": [{"id": "x", "score": 3.0}]}},
        {"result": [{"id": "x", "score": 3.0}]},
        {"root": {"children": [{"id": "x", "relevance": 3.0}]}},
        {"response": {"docs": [{"id": "x", "score": 3.0}]}},
    ],
)
def test_responses_of_one_clause(response, tmp_path):
    path = tmp_path / "dense.json"
    path.write_text(json.dumps({"q1": response}))
    assert read_clause_log(path, "dense") == {"dense": {"q1": {"x": 3.0}}}


@pytest.mark.parametrize(
    "content",
    [
        {"hits": {"hits": [{"_id": "x", "_score": 3.0}]}},  # without its query
        {"qid": 1, "hits": {"hits": [{"_id": "x"}]}},
        {"qid": 1, "hits": {"hits": [{"_id": "x", "_score": None}]}},
        {"qid": 1, "hits": {"hits": [{"_id": "x", "_score": 1.0}, {"_id": "x", "_score": 1.0}]}},
        {"qid": 1, "hits": {"hits": 7}},
        {"qid": 1, "error": "timeout"},
        {"qid": 1, "hits": {"hits": []}},
        7,
    ],
)
def test_damaged_responses(content, tmp_path):
    path = tmp_path / "dense.json"
    path.write_text(json.dumps(content))
    with refused_data(path):
        read_clause_log(path, "dense")


# --- The ranker ------------------------------------------------------------------------------------------


def test_weights_are_not_negative_and_beat_the_usual_ones(fitted):
    hybrid = fitted.hybrid_
    assert (fitted.coef_ >= 0).all()
    assert sum(fitted.weights_.values()) == pytest.approx(1.0)
    assert hybrid.chosen.mean >= max(hybrid.rrf.mean, hybrid.best_single.mean)
    assert {len(one.values) for one in hybrid.fusions} == {len(hybrid.query_ids)}
    assert hybrid.returned["clause0"][0] == pytest.approx(np.mean(~np.isnan(DATA.X[:, 0])))


def test_usual_weights_are_measured_on_the_held_out_queries(fitted):
    """Weights that are not fitted have the metric of all training queries, ranked by their scores."""
    ranks = preparation_of("reciprocal_rank@60").apply(DATA).X.mean(axis=1)
    expected = evaluate(ranks, DATA, "ndcg@10", "standard", ties="mean").per_query["ndcg@10"]
    np.testing.assert_allclose(fitted.hybrid_.rrf.values, expected)
    assert fitted.hybrid_.query_ids.tolist() == DATA.query_ids.tolist()
    with refused_parameter("name"):
        fitted.hybrid_["magic"]


def test_gains_are_paired_over_queries(fitted):
    hybrid = fitted.hybrid_
    difference = hybrid.chosen.values - hybrid.rrf.values
    half = 1.96 * difference.std(ddof=1) / np.sqrt(len(difference))
    assert hybrid.gain(hybrid.rrf) == pytest.approx(
        (difference.mean(), difference.mean() - half, difference.mean() + half)
    )
    won, lost = hybrid.compared(hybrid.rrf)
    assert (won, lost) == (np.sum(difference > 1e-9), np.sum(difference < -1e-9))


def test_a_tie_is_said():
    """Clauses with the same noise: equal weights are as good."""
    data = search_data(noise=(1.0, 1.0), n_queries=30, seed=3)
    hybrid = HybridRanker(normalise="list_z").fit(data).hybrid_
    equal = hybrid[EQUAL]
    assert hybrid.tied_with(equal)
    assert any("tied" in line for line in hybrid.sentences) or hybrid.chosen is equal


def test_scores_and_the_model_file(fitted, tmp_path):
    model = fitted.to_model()
    model.save(tmp_path / "hybrid.json")
    loaded = load_model(tmp_path / "hybrid.json")
    np.testing.assert_array_equal(loaded.predict(DATA), fitted.predict(DATA))
    scaled = preparation_of(fitted.preparation_kind_).apply(DATA).X
    np.testing.assert_allclose(fitted.predict(DATA), scaled @ fitted.coef_, rtol=1e-12)
    verdicts = verify(loaded, DATA).verdicts
    assert [verdict.holds for verdict in verdicts] == [True] * len(verdicts)


@pytest.mark.parametrize("forged", ["weight", "kind"])
def test_a_forged_model_is_found(fitted, forged):
    model = fitted.to_model()
    if forged == "weight":
        first, *others = model.terms
        model = replace(model, terms=(replace(first, weight=2 * first.weight), *others))
    else:
        other = "list_l2" if fitted.preparation_kind_ != "list_l2" else "list_z"
        model = replace(model, preparation=preparation_of(other))
    assert any(verdict.holds is False for verdict in verify(model, DATA).verdicts)


def test_weights_that_were_not_fitted_are_verified_by_a_new_fit():
    data = search_data(n_queries=15, noise=(1.0, 1.0), seed=1)
    ranker = HybridRanker().fit(data)
    model = ranker.to_model()
    assert ranker.hybrid_.chosen.name == EQUAL
    assert not model.certificate
    assert verify(model, data).holds
    first, second = model.terms
    for forged in (
        replace(model, terms=(replace(first, weight=2 * first.weight), second)),
        replace(model, preparation=preparation_of("list_z")),
    ):
        weights = next(one for one in verify(forged, data).verdicts if one.claim == "weights")
        assert weights.holds is False
    assert all(one.holds or one.left_out for one in verify(model, data, refit=False).verdicts)


def test_why_a_document_ranks_above_another(fitted):
    rows = DATA.queries.rows_of(0)
    a, b = (DATA.doc_ids[row] for row in rows[:2])
    pair = explain_pair(fitted.to_model(), DATA, a, b, qid=0)
    assert pair.difference == pytest.approx(sum(part.contribution for part in pair.parts))
    assert pair.score_a - pair.score_b == pytest.approx(pair.difference)


def test_limits_on_clauses_and_cost():
    two = HybridRanker(2).fit(DATA)
    assert len(two.support_) <= 2
    cheap = HybridRanker(feature_costs={"clause0": 1, "clause1": 50, "clause2": 2}, max_cost=10).fit(DATA)
    assert "clause1" not in cheap.weights_
    assert cheap.hybrid_.chosen.cost <= 10
    without = HybridRanker(must_not=["clause1"]).fit(DATA)
    assert "clause1" not in without.weights_


def test_an_engine_limits_normalisations_and_clauses():
    data = search_data(noise=(1.0, 0.9, 1.1, 1.2, 1.3, 1.0), seed=5)
    ranker = HybridRanker(engine="opensearch").fit(data)
    assert len(ranker.support_) <= 5
    assert {one.normalise for one in ranker.hybrid_.fusions if one.tuned} == {
        "list_min_max@opensearch", "list_l2", "list_z@opensearch", "reciprocal_rank@10", "reciprocal_rank@60",
    }  # fmt: skip


def test_ranks_allow_weighted_rrf_only():
    ranked = Dataset(np.ceil(DATA.X - np.nanmin(DATA.X) + 1), DATA.y, DATA.qid, DATA.feature_names)
    ranker = HybridRanker(values="ranks").fit(ranked)
    assert ranker.preparation_kind_.startswith("reciprocal@")
    with refused_parameter("normalise", "list_l2"):
        HybridRanker(values="ranks", normalise="list_l2").fit(ranked)
    with refused_parameter("normalise", "reciprocal@60"):
        HybridRanker(normalise="reciprocal@60").fit(ranked)
    with refused_parameter("engine", "qdrant"):
        HybridRanker(values="ranks", engine="qdrant").fit(ranked)
    with refused_data():
        HybridRanker(values="ranks").fit(Dataset(ranked.X - 5, DATA.y, DATA.qid, DATA.feature_names))


def test_one_judged_query_gives_equal_weights(capsys):
    one = DATA.select_queries(np.array([0]))
    with pytest.warns(UserWarning, match="fewer than two queries"):
        ranker = HybridRanker().fit(one)
    assert list(ranker.weights_.values()) == pytest.approx([1 / 3] * 3)
    assert ranker.preparation_kind_ == "reciprocal_rank@60"
    assert RRF in ranker.hybrid_.sentences[0]
    assert ranker.clause_worth(one) == [] == ranker.weight_map(one)
    assert ranker.to_model().predict(one).shape == (one.n_docs,)
    with pytest.warns(UserWarning, match="fewer than two"), refused_data():
        HybridRanker(1).fit(one)


def test_clauses_that_cannot_be_used():
    empty = DATA.X.copy()
    empty[:, 1] = np.nan
    with refused_data():
        HybridRanker().fit(Dataset(empty, DATA.y, DATA.qid, DATA.feature_names))
    with refused_data():
        HybridRanker().fit(DATA.select_features([0]))
    infinite = DATA.X.copy()
    infinite[3, 1] = np.inf
    with refused_data():
        HybridRanker().fit(Dataset(infinite, DATA.y, DATA.qid, DATA.feature_names))
    with refused_data():
        HybridRanker().fit(DATA, valid=DATA.select_features([0, 1]))


def test_a_constant_clause_is_reported():
    constant = DATA.X.copy()
    constant[~np.isnan(constant[:, 2]), 2] = 1.0
    with pytest.warns(UserWarning, match="all scores of clause2 are equal"):
        ranker = HybridRanker().fit(Dataset(constant, DATA.y, DATA.qid, DATA.feature_names))
    assert ranker.hybrid_.chosen.mean > 0


def test_negative_scores():
    """An inner product may be negative; a normalisation within the list does not mind."""
    shifted = Dataset(DATA.X - 100.0, DATA.y, DATA.qid, DATA.feature_names)
    ranker = HybridRanker(normalise="list_min_max").fit(shifted)
    same = HybridRanker(normalise="list_min_max").fit(DATA)
    np.testing.assert_allclose(list(ranker.weights_.values()), list(same.weights_.values()), rtol=1e-6)


@pytest.mark.parametrize("engine", ["elasticsearch", "opensearch"])
def test_negative_scores_where_the_engine_forbids_them(engine):
    shifted = Dataset(DATA.X - 100.0, DATA.y, DATA.qid, DATA.feature_names)
    with refused_data():
        HybridRanker(engine=engine).fit(shifted)


def test_validation_data_and_an_update():
    more = search_data(seed=7)
    ranker = HybridRanker(cv=0).fit(DATA, valid=more)
    assert ranker.hybrid_.query_ids.tolist() == more.query_ids.tolist()
    model = ranker.to_model()
    updated = HybridRanker().fit(more, previous=model)
    assert updated.preparation_kind_ == ranker.preparation_kind_
    assert updated.changes_ is not None
    with refused_parameter("previous"):
        other = "list_l2" if ranker.preparation_kind_ != "list_l2" else "list_z"
        HybridRanker(normalise=other).fit(more, previous=model)


def test_what_a_clause_is_worth(fitted):
    worth = fitted.clause_worth(DATA)
    assert worth[0].clause == max(fitted.weights_, key=fitted.weights_.get)
    assert {one.clause for one in worth} == set(fitted.weights_)
    best = worth[0]
    without = HybridRanker(normalise=fitted.preparation_kind_, must_not=[best.clause]).fit(DATA)
    assert best.loss == pytest.approx(fitted.hybrid_.chosen.mean - without.hybrid_["tuned"].mean, abs=1e-3)


def test_the_metric_over_the_weights(fitted):
    points = fitted.weight_map(DATA)
    assert len(points) == {2: 21, 3: 66}[len(fitted.weights_)]
    assert all(sum(one["weights"].values()) == pytest.approx(1.0) for one in points)
    corner = next(one for one in points if one["weights"].get("clause1") == 1.0)
    alone = fitted.hybrid_["clause1 alone"]
    if fitted.preparation_kind_ == alone.normalise:
        assert corner["mean"] == pytest.approx(alone.mean)


def test_sparse_data_give_the_same_weights():
    filled = Dataset(np.nan_to_num(DATA.X), DATA.y, DATA.qid, DATA.feature_names)
    sparse = Dataset(csr_matrix(filled.X), DATA.y, DATA.qid, DATA.feature_names)
    options = {"normalise": ("none", "reciprocal_rank@60")}
    dense, same = (HybridRanker(**options).fit(data) for data in (filled, sparse))
    np.testing.assert_allclose(same.coef_, dense.coef_)
    np.testing.assert_allclose(same.predict(sparse), dense.predict(filled))


def test_it_is_a_scikit_learn_estimator(fitted):
    ranker = clone(HybridRanker(2, engine="opensearch"))
    assert ranker.get_params()["engine"] == "opensearch"
    frame = pd.DataFrame(DATA.X, columns=DATA.feature_names)
    from_frame = HybridRanker().fit(frame, DATA.y, DATA.qid)
    np.testing.assert_array_equal(from_frame.coef_, fitted.coef_)
    shuffled = frame[list(reversed(DATA.feature_names))]
    np.testing.assert_array_equal(from_frame.predict(shuffled, DATA.qid), fitted.predict(DATA))
    restored = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(restored.predict(DATA), fitted.predict(DATA))
    assert restored.hybrid_.sentences == fitted.hybrid_.sentences
    assert fitted.score(DATA) == pytest.approx(HybridRanker().fit(DATA).score(DATA))


def test_query_weights_count_in_the_fit():
    weight = np.where(np.arange(DATA.n_queries) < 20, 1.0, 0.0)
    half = DATA.select_queries(np.arange(20))
    weighted = HybridRanker(normalise="list_z").fit(DATA, query_weight=weight)
    np.testing.assert_allclose(weighted.coef_, HybridRanker(normalise="list_z").fit(half).coef_, rtol=1e-6)


def test_fits_are_reproducible(fitted):
    again = HybridRanker().fit(DATA)
    np.testing.assert_array_equal(again.coef_, fitted.coef_)
    assert again.hybrid_.to_dict() == fitted.hybrid_.to_dict()


@pytest.mark.parametrize("n_clauses", [2, 3, 5])
def test_the_figure_of_the_weights(n_clauses):
    data = search_data(noise=(1.0, 0.8, 1.2, 0.9, 1.1)[:n_clauses], n_queries=20)
    ranker = HybridRanker(normalise="list_z", must_have=list(data.feature_names)).fit(data)
    points = ranker.weight_map(data)
    figure = weights_figure(points, ranker.hybrid_.chosen.to_dict(), "NDCG@10")
    assert_drawable(figure)
    kinds = {2: ["band", "scatter", "scatter"], 3: ["scatter", "scatter"], 5: ["bar"]}[n_clauses]
    assert [trace["type"] for trace in figure["data"]] == kinds
    assert figure["layout"]["xaxis"]["title"]


def test_a_metric_that_cannot_guide_the_choice():
    with pytest.warns(UserWarning, match="for every combination"):
        HybridRanker(metric="ndcg@10", profile="letor", normalise="list_z").fit(search_data(n_docs=6))


@pytest.mark.letor
def test_weighted_rrf_beats_equal_weights_on_25_systems():
    from benchmarks.quality.data_sets import read_source, split

    train, valid, test = split(read_source("MQ2008-agg"), 0)
    ranker = HybridRanker(5, values="ranks").fit(train, valid=valid)
    equal = preparation_of("reciprocal@60").apply(test).X.sum(axis=1)
    tuned, usual = (
        evaluate(scores, test, "ndcg@10", "standard", ties="mean").mean["ndcg@10"]
        for scores in (ranker.predict(test), equal)
    )
    assert len(ranker.support_) <= 5
    assert tuned > usual


# --- The command -----------------------------------------------------------------------------------------


@pytest.fixture
def run_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for j, name in enumerate(DATA.feature_names):
        rows = np.flatnonzero(~np.isnan(DATA.X[:, j]))
        write_run(DATA.select_rows(rows), DATA.X[rows, j], f"{name}.run")
    write_qrels(DATA, "qrels.txt")
    return [f"{name}.run" for name in DATA.feature_names]


def test_the_command_equals_the_ranker(run_files, fitted):
    result = CliRunner().invoke(
        app, ["hybrid", *run_files, "--qrels", "qrels.txt", "-o", "m.json", "--report", "p.html"]
    )
    assert result.exit_code == 0
    printed = " ".join(result.output.split())
    assert all(sentence in printed for sentence in fitted.hybrid_.sentences)
    assert "Dropping" in printed
    model, expected = load_model("m.json"), fitted.to_model()
    assert model.names == expected.names
    np.testing.assert_allclose(model.weights, expected.weights)
    page = Path("p.html").read_text()
    assert "Worth of each clause" in page
    assert "Queries lost and won" in page


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a.run", "b.run"], "--qrels"),
        (["clause0.run", "clause1.run", "--qrels", "qrels.txt", "--max-cost", "3"], "--costs"),
        (["clause0.run", "clause1.run", "--qrels", "qrels.txt", "--valid", "x.txt"], "--valid"),
        (["clause0.run", "--qrels", "qrels.txt"], "only one clause"),
        (["clause0.run", "clause1.run", "--qrels", "qrels.txt", "--normalise", "softmax"], "softmax"),
    ],
)
def test_wrong_usage_of_the_command(arguments, words, run_files):
    result = CliRunner().invoke(app, ["hybrid", *arguments])
    assert result.exit_code == 2
    assert words in result.output
    assert len(result.output.strip().splitlines()) == 1


def with_few_judgements(n_judged=12):
    """The first judgements of each query only, in a file; the clauses as one log."""
    rows = np.concatenate([np.flatnonzero(DATA.qid == q)[:n_judged] for q in DATA.query_ids])
    write_qrels(DATA.select_rows(rows), "few.txt")
    hits = {
        str(q): [
            {"_id": DATA.doc_ids[row], "matched_queries": dict(zip(DATA.feature_names, scores, strict=True))}
            for row, scores in ((row, DATA.X[row]) for row in np.flatnonzero(DATA.qid == q))
        ]
        for q in DATA.query_ids
    }
    for one in (hit for query in hits.values() for hit in query):
        one["matched_queries"] = {k: v for k, v in one["matched_queries"].items() if not math.isnan(v)}
    Path("log.json").write_text(json.dumps({query: {"hits": {"hits": one}} for query, one in hits.items()}))


@pytest.mark.filterwarnings("ignore:.* returned documents have no judgement")
@pytest.mark.parametrize(
    "arguments",
    [
        ["clause0.run", "clause1.run", "clause2.run", "--qrels", "qrels.txt"],
        ["clause2.run", "clause1.run", "--qrels", "few.txt", "--unjudged", "drop", "--depth", "9"],
        ["log.json", "--qrels", "few.txt"],
    ],
)
def test_other_commands_read_the_runs_of_the_fit(arguments, run_files):
    with_few_judgements()
    run, invoke = CliRunner(), ["hybrid", *arguments, "--metric", "map", "-o", "m.json"]
    assert run.invoke(app, invoke).exit_code == 0
    verified = run.invoke(app, ["verify", "m.json", *arguments, "--json"])
    assert verified.exit_code == 0, verified.output
    verdicts = json.loads(verified.stdout)["verdicts"]
    assert {"training data", "weights"} <= {one["claim"] for one in verdicts}
    assert all(one["holds"] for one in verdicts)

    rules = {"unjudged": "drop", "depth": 9} if "drop" in arguments else {}
    files = arguments[: arguments.index("--qrels")]
    data = fuse_runs({Path(name).stem: name for name in files}, arguments[len(files) + 1], **rules)
    scores = load_model("m.json").predict(data)
    judged = np.ones(len(scores), dtype=bool) if data.document_weight is None else data.document_weight > 0
    expected = evaluate(scores[judged], data.select_rows(np.flatnonzero(judged)), ["map"], "standard")
    measured = run.invoke(app, ["evaluate", "m.json", *arguments, "--metric", "map", "--json"])
    assert json.loads(measured.stdout)["mean"]["map"] == pytest.approx(expected.mean["map"], abs=1e-12)

    query = str(data.query_ids[0])
    explained = run.invoke(app, ["explain", "m.json", *arguments, "--query", query, "--json"])
    documents = json.loads(explained.stdout)["documents"]
    assert len(documents) == np.count_nonzero(data.qid == data.query_ids[0])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["verify", "m.json", "clause0.run", "clause1.run"], "--qrels"),
        (["verify", "m.json", "clause0.run", "clause1.run", "--qrels", "qrels.txt", "--valid", "q"],
         "--valid"),
        (["evaluate", "m.json", "clause0.run", "clause1.run"], "--qrels"),
        (["evaluate", "m.json", "clause0.run", "clause1.run", "--qrels", "qrels.txt", "--missing", "zero"],
         "--missing"),
        (["explain", "m.json", "clause0.run", "--depth", "3", "--query", "0"], "--depth"),
        (["explain", "m.json", *(f"clause{j}.run" for j in range(3)), "--qrels", "qrels.txt", "--drop",
          "--unjudged", "drop"], "--unjudged"),
    ],
)  # fmt: skip
def test_wrong_usage_of_other_commands_with_runs(arguments, words, run_files, fitted):
    fitted.to_model().save("m.json")
    Path("q").write_text("")
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert words in result.output
    assert len(result.output.strip().splitlines()) == 1
