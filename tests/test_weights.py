"""Weights of queries and documents: sources, files, objectives, warnings, verification."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from fractions import Fraction

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, GroupKFold

import ranksieve as rs
from ranksieve.data import disk as disk_dataset
from ranksieve.data.dataset import query_weights
from ranksieve.data.queries import pair_weights
from ranksieve.objective import make_objective
from tests.conftest import QUICK, random_dataset
from tests.pairs import explicit_pairs
from tests.refusals import refused_data, refused_parameter
from tests.test_cli import refused, run

pytestmark = pytest.mark.filterwarnings("ignore:.* training documents have weight 0")
L1 = {"families": ["l1"], "cv": 2, **QUICK}


@pytest.fixture(scope="module")
def data():
    unweighted = random_dataset(seed=31, n_queries=14, n_features=6, longest=12)
    ids = np.array([f"q{number}" for number in unweighted.qid])
    weight = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 3.0], unweighted.n_docs)
    return rs.Dataset(unweighted.X, unweighted.y, ids, document_weight=weight)


def test_pair_weights_are_sums_over_pairs(data):
    for y in (data.y, np.arange(data.n_docs) % 11 * 1.0):
        labelled = rs.Dataset(data.X, y, data.qid, document_weight=data.document_weight)
        pairs, expected = explicit_pairs(y, data.qid), np.zeros(data.n_queries)
        number = data.queries.of_rows(np.arange(data.n_queries))
        weight = data.document_weight[pairs[:, 0]] * data.document_weight[pairs[:, 1]]
        np.add.at(expected, number[pairs[:, 0]], weight)
        np.testing.assert_allclose(labelled.pair_weights, expected, rtol=1e-14, atol=0)


def test_the_pair_weight_of_a_query_of_one_level_is_exactly_zero():
    queries = rs.Dataset(np.ones((6, 1)), np.ones(6), [1, 1, 1, 2, 2, 2]).queries
    weight = np.array([0.1, 0.2, 0.7, 0.1, 0.0, 1e9])
    levels = np.array([0, 0, 0, 0, 1, 0])
    np.testing.assert_array_equal(pair_weights(levels, queries, weight), 0.0)


def exact_objective(data, w, query_weight, ridge=0.0, alpha=0.0):
    """The mean squared hinge over weighted pairs plus the penalties, in exact arithmetic."""
    w = [Fraction(float(weight)) for weight in w]
    document_weight = np.ones(data.n_docs) if data.document_weight is None else data.document_weight
    value, total = Fraction(0), Fraction(0)
    for i, j in explicit_pairs(data.y, data.qid):
        omega = Fraction(float(document_weight[i])) * Fraction(float(document_weight[j]))
        omega *= Fraction(float(query_weight[data.qid[i]]))
        margin = sum(
            a * (Fraction(float(data.X[i, k])) - Fraction(float(data.X[j, k]))) for k, a in enumerate(w)
        )
        value, total = value + omega * max(Fraction(0), 1 - margin) ** 2, total + omega
    penalty = Fraction(alpha) * sum(map(abs, w)) + Fraction(ridge) / 2 * sum(a * a for a in w)
    return value / total + penalty


@pytest.mark.parametrize("ratio", [1e8, 1e12, 1e16, 1e20])
def test_objectives_are_exact_up_to_their_gap_with_extreme_document_weights(ratio):
    X, y = np.array([[0.0], [1.0], [3.0], [5.0]]), np.array([0.0, 1.0, 1.0, 0.0])
    data = rs.Dataset(X, y, np.zeros(4, dtype=int), document_weight=np.array([ratio, 1.0, 1.0, 1.0]))
    ranker = rs.SparseRankSVM("l1", 1e-3).fit(data)
    off = Fraction(ranker.objective_) - exact_objective(data, ranker.coef_, [1.0], alpha=1e-3)
    assert abs(off) <= ranker.gap_ < 1e-9


@pytest.mark.parametrize("seed", [4, 8, 10])
def test_subset_bounds_are_valid_with_extreme_weights(seed):
    rng = np.random.default_rng(seed)
    X, y, weight = rng.normal(size=(6, 3)), rng.integers(0, 3, 6).astype(float), 10.0 ** rng.uniform(-8, 8, 6)
    data = rs.Dataset(X, y, np.zeros(6, dtype=int), document_weight=weight)
    ranker = rs.BestSubset(2, ridge=1e-3, normalise="none").fit(data)
    exact = exact_objective(data, ranker.coef_, [1.0], ridge=1e-3)
    assert ranker.objective_ - ranker.gap_ <= exact <= ranker.objective_ + ranker.gap_


@pytest.mark.parametrize("seed", [72, 76, 84, 85])
def test_objectives_are_exact_up_to_their_gap_with_one_dominant_query(seed):
    """Sums over pairs of the heavy query cancel almost to 0, with rounding errors larger than the rest."""
    rng = np.random.default_rng(seed)
    n, d = rng.integers((6, 1), (14, 4))
    qid = np.unique(np.sort(rng.integers(0, 3, n)), return_inverse=True)[1]
    data = rs.Dataset(X=rng.normal(size=(n, d)), y=rng.integers(0, 3, n).astype(float), qid=qid)
    weight, ridge = np.where(np.arange(data.n_queries) == 0, 1e12, 1.0), 2.0**-30
    ranker = rs.RankSVM(C=1.0 / ridge, average=True).fit(data, query_weight=weight)
    assert (
        abs(Fraction(ranker.objective_) - exact_objective(data, ranker.coef_, weight, ridge)) <= ranker.gap_
    )


# --- Documents of weight 0 ----------------------------------------------------------------------------------


def test_a_warning_about_many_documents_of_weight_zero(data, tmp_path):
    """Only documents of queries with positive weight are counted."""
    weight = np.ones(data.n_docs)
    out, tenth = data.queries.rows_of(0), -(-(data.n_docs - len(data.queries.rows_of(0))) // 10)
    weight[out] = 0.0
    weight[np.setdiff1d(np.arange(data.n_docs), out)[:tenth]] = 0.0
    without_first = {data.query_ids[0]: 0.0}
    message = (
        rf"{tenth} of {data.n_docs - len(out)} training documents have weight 0 and are dropped from .* \+ 1$"
    )
    many = rs.Dataset(data.X, data.y, data.qid, document_weight=weight)
    for train in (many, rs.io.convert_dataset(many, tmp_path / "train.ranksieve")):
        with pytest.warns(UserWarning, match=message):
            rs.SparseRankSVM(alpha=0.1).fit(train, query_weight=without_first)
    weight[np.setdiff1d(np.arange(data.n_docs), out)[0]] = 1.0
    few = rs.Dataset(data.X, data.y, data.qid, document_weight=weight)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rs.SparseRankSVM(alpha=0.1).fit(few, query_weight=without_first)


def test_validation_lists_keep_documents_of_weight_zero(data):
    """Weights of validation documents are not used; only training documents of weight 0 are dropped."""
    train = rs.Dataset(data.X, data.y, data.qid)
    one, other = (
        rs.SparseRanker(**{**L1, "cv": 0}).fit(
            random_dataset(seed=32, n_queries=14, n_features=6), valid=valid
        )
        for valid in (train, data)
    )
    np.testing.assert_array_equal(one.choice_.validation.values, other.choice_.validation.values)


# --- Weights of queries -------------------------------------------------------------------------------------


def test_query_weights_by_id(data):
    by_id = {"q1": 2.0, "q3": 0.0}
    expected = np.where(data.query_ids == "q1", 2.0, np.where(data.query_ids == "q3", 0.0, 1.0))
    np.testing.assert_array_equal(query_weights(by_id, data), expected)
    numbered = rs.Dataset(data.X, data.y, data.queries.of_rows(np.arange(data.n_queries)))
    np.testing.assert_array_equal(query_weights({"1": 2.0, 3: 0.5}, numbered)[[1, 3]], [2.0, 0.5])
    one, other = (rs.SparseRanker(**L1).fit(data, query_weight=weights) for weights in (by_id, expected))
    np.testing.assert_array_equal(one.coef_, other.coef_)
    assert one._origin.fingerprints == other._origin.fingerprints
    paths = [rs.sparse_path(data, n_alphas=3, query_weight=weights).coefs for weights in (by_id, expected)]
    np.testing.assert_array_equal(*paths)


def test_weights_of_unknown_queries_are_refused(data):
    with refused_parameter("query_weight", {"q1": 2.0, "q99": 1.0}):
        rs.RankSVM().fit(data, query_weight={"q1": 2.0, "q99": 1.0})
    with refused_parameter("query_weight"):
        rs.RankSVM().fit(data, query_weight={"q1": -2.0})


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("query,weight\nq1,2\nq2,0.5\n", {"q1": 2.0, "q2": 0.5}),
        ("q1,2\n\nq2,0.5\n", {"q1": 2.0, "q2": 0.5}),
        ("qid\tweight\nq1\t2\n", {"q1": 2.0}),
        ('"a, b",2\n', {"a, b": 2.0}),
    ],
)
def test_files_of_query_weights(tmp_path, text, weights):
    (tmp_path / "weights.csv").write_text(text)
    assert rs.io.read_query_weights(tmp_path / "weights.csv") == weights


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("q1,2\nq2\n", 2, "cells"),
        ("query,weight\nq1,much\n", 2, "'much'"),
        ("q1,1\nq2,-1\n", 2, "-1"),
        ("q1,1\nq1,2\n", 2, "once"),
        (",1\n", 1, "query is empty"),
        ("query,weight\n", None, "no weights"),
    ],
)
def test_bad_lines_are_named(tmp_path, text, line, word):
    (tmp_path / "weights.csv").write_text(text)
    with refused_data("weights.csv", line) as info:
        rs.io.read_query_weights(tmp_path / "weights.csv")
    assert word in info.value.reason


# --- Document weights in files -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_frames_keep_weights(data, kind):
    back = rs.from_frame(rs.to_frame(data, kind))
    np.testing.assert_array_equal(back.document_weight, data.document_weight)
    assert back.feature_names == data.feature_names
    renamed = rs.to_frame(data).rename(columns={"document_weight": "clicks"})
    named = rs.from_frame(renamed, document_weight="clicks")
    np.testing.assert_array_equal(named.document_weight, data.document_weight)
    assert "clicks" not in named.feature_names


def test_invalid_document_weights_in_frames_are_refused(data):
    table = rs.to_frame(data)
    with refused_data() as info:
        rs.from_frame(table, document_weight="klicks")
    assert "'klicks'" in info.value.reason
    with refused_data() as info:
        rs.from_frame(table.assign(number=1), qid="number", document_weight="qid")
    assert "'qid'" in info.value.reason
    table.loc[3, "document_weight"] = np.nan
    with refused_data() as info:
        rs.from_frame(table)
    assert "row 3" in info.value.reason


@pytest.mark.parametrize("scattered", [False, True])
def test_folders_keep_weights(data, tmp_path, scattered):
    rows = np.random.default_rng(1).permutation(data.n_docs) if scattered else np.arange(data.n_docs)
    rows_of_data = data.select_rows(rows)
    rs.write_dataset(rows_of_data, tmp_path / "train.parquet")
    for source in (rows_of_data,) if scattered else (rows_of_data, tmp_path / "train.parquet"):
        context = pytest.warns(UserWarning, match="not contiguous") if scattered else nullcontext()
        with context:
            opened = rs.io.convert_dataset(source, tmp_path / "train.ranksieve")
        grouped = rows_of_data.select_rows(rows_of_data.queries.order)
        np.testing.assert_array_equal(opened.document_weight, grouped.document_weight)
        np.testing.assert_array_equal(opened.y, grouped.y)


def test_fits_with_weights_from_disk_equal_those_in_memory(data, tmp_path):
    opened = rs.io.convert_dataset(data, tmp_path / "train.ranksieve")
    for normalise in ("none", "within_z"):
        there, here = (rs.sparse_path(one, n_alphas=6, normalise=normalise) for one in (opened, data))
        np.testing.assert_array_equal(there.coefs, here.coefs)
        np.testing.assert_array_equal(there.objectives, here.objectives)


@pytest.mark.parametrize("in_memory", [0, 2**28])
@pytest.mark.full
def test_documents_of_weight_zero_are_dropped_in_memory_and_on_disk(tmp_path, monkeypatch, in_memory):
    """Also in the folds of cross-validation, and with a query of only such documents."""
    monkeypatch.setattr(disk_dataset, "MAX_MEMORY_BYTES", in_memory)
    original = rs.make_ranking(n_queries=30, n_features=8, n_informative=4, noise=1.0, random_state=3)
    weight = np.random.default_rng(0).integers(0, 4, original.n_docs).astype(float)
    weight[original.qid == original.query_ids[4]] = 0.0
    memory = rs.Dataset(original.X, original.y, original.qid, document_weight=weight)
    disk = rs.io.convert_dataset(memory, tmp_path / "train.ranksieve")
    by_id = {original.query_ids[0]: 0.0, original.query_ids[7]: 2.0}
    here, there, absent = (
        rs.SparseRanker(cv=3).fit(one, query_weight=by_id)
        for one in (memory, disk, memory.select_rows(np.flatnonzero(weight)))
    )
    for other in (there, absent):
        np.testing.assert_array_equal(other.coef_, here.coef_)
        np.testing.assert_array_equal(other.choice_.validation.values, here.choice_.validation.values)
        np.testing.assert_array_equal(other.choice_.validation.query_ids, here.choice_.validation.query_ids)
    assert there._origin.fingerprints == here._origin.fingerprints
    assert here.choice_.validation.values.shape[1] == original.n_queries - 2
    one, other = (rs.BestSubset(3, max_nodes=30).fit(data) for data in (memory, disk))
    assert other.subset_.certificate() == one.subset_.certificate()


def test_letor_text_does_not_support_weights(data, tmp_path):
    with refused_data("train.txt") as info:
        rs.io.write_letor(data, tmp_path / "train.txt")
    assert "document weights" in info.value.reason
    (tmp_path / "train.txt").write_text("1 qid:1 1:0.5\n0 qid:1 1:0.1\n")
    with refused_data("train.txt") as info:
        rs.read_dataset(tmp_path / "train.txt", document_weight="clicks")
    assert "document_weight" in info.value.reason


# --- Functions with weights ---------------------------------------------------------------------------------


def test_objectives_of_samples_keep_weights(data):
    objective = make_objective(data)
    w = np.random.default_rng(2).normal(size=data.n_features)
    some = objective.sample(2)
    chosen = data.select_queries(np.arange(0, data.n_queries, 2))
    assert some.evaluate(w).value == pytest.approx(make_objective(chosen).evaluate(w).value, rel=1e-13)


def test_models_fitted_with_weights_can_be_verified(data):
    valid = random_dataset(seed=32, n_queries=14, n_features=6, longest=12)
    weights = {"q1": 2.0, "q3": 0.0}
    ranker = rs.SparseRanker(refit_on="all", normalise="within_z", **L1)
    for fitted in (ranker.fit(data, valid=valid, query_weight=weights), rs.BestSubset(2).fit(data)):
        arguments = {"valid": valid, "query_weight": weights} if fitted is ranker else {}
        verification = rs.verify(fitted.to_model(), data, **arguments)
        assert verification.summary.startswith("All "), verification
        other = rs.Dataset(data.X, data.y, data.qid, document_weight=data.document_weight + 1.0)
        assert "training data" in rs.verify(fitted.to_model(), other, refit=False, **arguments).summary
    card = rs.make_scorecard(ranker.to_model(), data, query_weight=weights)
    assert rs.verify(card, data, query_weight=weights).holds


def test_measures_without_document_weights_refuse_them(data):
    with refused_parameter("importance", "ndcg"):
        rs.FSMRank(importance="ndcg").fit(data)
    with refused_parameter("similarity", "kendall"):
        rs.FSMRank(similarity="kendall").fit(data)


def test_routing_of_document_weights(data):
    used = data.document_weight > 0
    X, y, qid, weight = data.X[used], data.y[used], data.qid[used], data.document_weight[used]
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(rs.RankSVM(average=True), {"C": [0.1, 1.0]}, cv=GroupKFold(3))
        search.fit(X, y, groups=qid, document_weight=weight)
    alone = rs.RankSVM(search.best_params_["C"], average=True).fit(X, y, qid, document_weight=weight)
    np.testing.assert_array_equal(search.best_estimator_.coef_, alone.coef_)


def test_chunks_keep_weights(data):
    whole = rs.MinBatSRank(l1=0.5, n_epochs=1, shuffle=False).fit(data)
    by_chunks, half = rs.MinBatSRank(l1=0.5), np.arange(data.n_queries) < 7
    for queries in (half, ~half):
        part = data.select_queries(queries)
        by_chunks.partial_fit(part.X, part.y, part.qid, document_weight=part.document_weight)
    np.testing.assert_allclose(by_chunks.coef_, whole.coef_, rtol=1e-10)


# --- The command line ---------------------------------------------------------------------------------------


@pytest.fixture
def home(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = rs.to_frame(data).rename(columns={"document_weight": "clicks"})
    table.to_parquet("train.parquet", index=False)
    (tmp_path / "traffic.csv").write_text("query,weight\nq1,2\nq3,0\n")
    return tmp_path


WEIGHED = ("--document-weights", "clicks", "--query-weights", "traffic.csv")


def test_fit_verify_and_scorecard_with_weights(home, data):
    quick = (
        "--set",
        f"n_alphas={QUICK['n_alphas']}",
        "--set",
        "cv=2",
        "--set",
        "families=['l1']",
        "--metric",
        "ndcg@5",
    )
    result = run("fit", "train.parquet", *WEIGHED, *quick, "--profile", "standard", "-o", "model.json")
    counts = data.document_weight[data.qid != "q3"]
    assert f"{np.sum(counts == 0)} of {len(counts)} training documents have weight 0" in result.stderr
    expected = rs.SparseRanker(**L1).fit(data, query_weight={"q1": 2.0, "q3": 0.0})
    stated = rs.load_model("model.json")
    assert dict(zip(stated.names, stated.weights, strict=True)) == {
        data.feature_names[j]: expected.coef_[j] for j in expected.support_
    }
    assert "All 4 claims hold" in run("verify", "model.json", "train.parquet", *WEIGHED).stdout
    quick_look = run("verify", "model.json", "train.parquet", *WEIGHED[:2], "--quick", code=1)
    assert "pass --query-weights" in quick_look.stdout
    run("scorecard", "model.json", "train.parquet", *WEIGHED, "-o", "card.json")
    assert "claims hold" in run("verify", "card.json", "train.parquet", *WEIGHED).stdout


@pytest.mark.parametrize(
    "command", [("path", "--n-alphas", 3), ("frontier",), ("subset", "--max-features", 2)]
)
def test_other_commands_with_weights(home, command):
    name, *options = command
    with_queries, without = (
        run(name, "train.parquet", *weights, *options).stdout for weights in (WEIGHED, WEIGHED[:2])
    )
    assert with_queries != without


def test_messages_about_weights_name_options(home):
    (home / "train.txt").write_text("1 qid:1 1:0.5\n0 qid:1 1:0.1\n")
    assert "--document-weights" in refused("path", "train.txt", *WEIGHED[:2])
    (home / "traffic.csv").write_text("q99,2\n")
    message = refused("path", "train.parquet", *WEIGHED)
    assert "--query-weights" in message
    assert "'q99'" in message
    message = refused("fit", "train.parquet", *WEIGHED[:2], "--method", "adarank", "-o", "x.json")
    assert "--document-weights: AdaRank" in message
    for option in (WEIGHED[:2], WEIGHED[2:]):
        stream = ("fit", "train.txt", *option, "--method", "minbatsrank", "--stream", "-o", "x.json")
        assert option[0] in refused(*stream)
