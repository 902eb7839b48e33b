"""Normalisation and missing values as parts of the model, against loops over cells and scikit-learn."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from ranksieve import RankSVM, SparseRanker
from ranksieve.data.dataset import Dataset
from ranksieve.io.letor import write_letor
from ranksieve.model.linear import LinearModel, Term, load_model
from ranksieve.prepare import KEEP_MISSING, MissingPolicy, Preparation
from ranksieve.prepare.missing import learn_missing
from ranksieve.prepare.scaling import NORMALISATIONS, Normalisation, learn_normalisation
from tests.conftest import random_dataset
from tests.refusals import refused_data, refused_parameter
from tests.test_cli import refused, run
from tests.tiers import examples

KINDS = [kind for kind in NORMALISATIONS if kind != "none"]
COLUMNWISE = ["z", "within_z", "min_max"]
PER_QUERY = ["query_min_max", "query_z"]

cells = st.floats(-1e6, 1e6).map(lambda value: round(value, 3)) | st.sampled_from([0.0, 0.1, 1e-3])
matrices = st.integers(1, 3).flatmap(
    lambda d: st.lists(st.lists(cells, min_size=d, max_size=d), min_size=1, max_size=9)
)


def normalised_cell(values, x, kind):
    """A normalised value in plain Python; ``values`` are those of its column or query."""
    if min(values) == max(values):
        return x - values[0]
    if kind.endswith("min_max"):
        return (x - min(values)) / (max(values) - min(values))
    mean = math.fsum(values) / len(values)
    return (x - mean) / math.sqrt(math.fsum((v - mean) ** 2 for v in values) / len(values))


def pooled_by_cell(X, qid):
    """(x − mean of the column) / deviation from the query means, in plain Python."""
    columns = []
    for x in X.T.tolist():
        own = [[v for v, q in zip(x, qid, strict=True) if q == mine] for mine in qid]
        squares = [
            0.0 if min(group) == max(group) else (v - math.fsum(group) / len(group)) ** 2
            for v, group in zip(x, own, strict=True)
        ]
        scale = math.sqrt(math.fsum(squares) / len(x)) or 1.0
        columns.append([(v - math.fsum(x) / len(x)) / scale for v in x])
    return np.array(columns).T


def normalised_by_cell(X, qid, kind):
    if kind == "within_z":
        return pooled_by_cell(X, qid)
    rows = [[k for k in range(len(X)) if not kind.startswith("query") or qid[k] == q] for q in qid]
    return np.array(
        [
            [normalised_cell(X[rows[i], j].tolist(), X[i, j], kind) for j in range(X.shape[1])]
            for i in range(len(X))
        ]
    )


@examples(120)
@given(matrices, st.data(), st.sampled_from(KINDS))
def test_cells_are_normalised_by_the_formula(rows, data, kind):
    X = np.array(rows)
    qid = data.draw(st.lists(st.sampled_from("ab"), min_size=len(X), max_size=len(X)))
    expected = normalised_by_cell(X, qid, kind)
    for matrix in (X, sp.csr_array(X)):
        dataset = Dataset(matrix, np.zeros(len(X)), qid)
        result = learn_normalisation(dataset, kind).apply(dataset)
        np.testing.assert_allclose(result.X, expected, rtol=1e-6, atol=1e-7)
        assert result.X.dtype == np.float64


@pytest.mark.parametrize(("kind", "scaler"), [("z", StandardScaler), ("min_max", MinMaxScaler)])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, np.float32])
def test_agrees_with_scikit_learn_on_other_data(kind, scaler, form):
    train, test = random_dataset(1, n_queries=20), random_dataset(2)
    learned = learn_normalisation(train.replace_features(form(train.X)), kind)
    expected = scaler().fit(np.asarray(form(train.X).todense() if form is sp.csr_array else form(train.X)))
    np.testing.assert_allclose(learned.apply(test).X, expected.transform(test.X), rtol=1e-5)


@pytest.mark.parametrize("kind", COLUMNWISE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_statistics_of_stored_entries_agree_with_those_of_dense_columns(kind, dtype, weighted):
    rng = np.random.default_rng(4)
    query = rng.permutation(np.repeat(np.arange(12), rng.integers(1, 9, 12)))
    X = rng.normal(size=(len(query), 9)) * (rng.random((len(query), 9)) < 0.4)
    X[:, 0], X[:, 1], X[:, 2] = 0.0, 0.1, 0.1 * query  # constant, and constant within every query
    X[:, 3], X[:, 4] = 1e6 + rng.random(len(query)), (query < 2) * 0.3
    dense, weight = Dataset(X.astype(dtype), query % 3, query), None
    if weighted:
        document_weight, weight = rng.random(len(query)) * (rng.random(len(query)) < 0.7), rng.random(12)
        weight[3] = 0.0
        dense = Dataset(dense.X, dense.y, query, document_weight=document_weight)
    expected = learn_normalisation(dense, kind, weight)
    learned = learn_normalisation(dense.replace_features(sp.csr_array(dense.X)), kind, weight)
    np.testing.assert_allclose(learned.centre, expected.centre, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(learned.scale, expected.scale, rtol=1e-9)
    assert np.array_equal(np.equal(learned.scale, 1.0), np.equal(expected.scale, 1.0))  # constant features


@pytest.mark.parametrize("kind", COLUMNWISE)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("rows", [[3], [3, 4], slice(None)])
def test_stored_entries_without_a_finite_scale_are_named(small, kind, bad, rows):
    X = np.where(np.abs(small.X) < 0.5, 0.0, small.X)
    X[rows, 1] = bad
    with refused_data() as info:
        learn_normalisation(small.replace_features(sp.csr_array(X)), kind)
    assert "feature f2" in info.value.reason


@pytest.mark.parametrize("kind", KINDS)
def test_constant_features_become_zero_despite_rounding(kind):
    X = np.full((11, 2), 0.1)
    X[:, 1] = 1e-200
    data = Dataset(X, np.arange(11), ["a"] * 5 + ["b"] * 6)
    np.testing.assert_array_equal(learn_normalisation(data, kind).apply(data).X, np.zeros((11, 2)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_for_learning_has_the_same_differences(kind, form):
    data = random_dataset(3)
    data = data.replace_features(form(data.X * 3 + 5))
    learned = learn_normalisation(data, kind)
    exact, for_learning = learned.apply(data).X, learned.for_learning(data).X
    assert sp.issparse(for_learning) == (form is sp.csr_array and kind in COLUMNWISE)
    for_learning = for_learning.toarray() if sp.issparse(for_learning) else for_learning
    np.testing.assert_allclose(for_learning - for_learning[0], exact - exact[0], rtol=1e-9, atol=1e-12)


def test_many_columns_are_processed_in_blocks(monkeypatch):
    data = random_dataset(4, n_features=7)
    whole = {kind: learn_normalisation(data, kind).apply(data).X for kind in KINDS}
    monkeypatch.setattr("ranksieve.data.features.CELLS_AT_ONCE", 2 * data.n_docs)
    for kind in KINDS:
        np.testing.assert_array_equal(learn_normalisation(data, kind).apply(data).X, whole[kind])


def test_none_changes_nothing(small):
    assert learn_normalisation(small, "none").apply(small) is small


def test_other_columns_are_refused(small):
    learned = learn_normalisation(small, "z")
    renamed = small.replace_features(small.X, list("abcde"))
    with refused_data() as info:
        learned.apply(renamed)
    assert "expected the 5 features of the training data" in info.value.reason
    with refused_data() as info:
        learned.for_learning(small.replace_features(sp.csr_array(small.X[:, :2]), ["f1", "f2"]))
    assert "got 2 (f1, f2" in info.value.reason


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_features_without_a_finite_scale_are_named(small, bad):
    X = small.X.copy()
    X[3, 1] = bad
    with refused_data() as info:
        learn_normalisation(small.replace_features(X), "z")
    assert "feature f2" in info.value.reason


def test_unknown_kind(small):
    with refused_parameter("normalise", "zed"):
        learn_normalisation(small, "zed")


# --- the model -------------------------------------------------------------------------------------------


def linear_model(normalisation="none", missing="keep", data=None):
    data = data or random_dataset(5)
    names = ("f2", "f5")
    preparation = Preparation.learn(data, normalisation, missing).of(names)
    return LinearModel((Term("f2", 1, 0.7), Term("f5", 4, -1.3)), 5, 0.25, preparation)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, np.float32])
def test_the_model_normalises_with_the_training_statistics(kind, form):
    train, test = random_dataset(5), random_dataset(6)
    test = test.replace_features(form(test.X))
    expected = 0.25 + learn_normalisation(train, kind).apply(test).X[:, [1, 4]] @ [0.7, -1.3]
    np.testing.assert_allclose(linear_model(kind).predict(test), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("kind", PER_QUERY)
def test_values_too_far_apart_within_a_query_are_refused(kind):
    data = Dataset([[-1e308], [1e308], [0.0]], [0, 1, 0], [1, 1, 2])
    with refused_data() as info:
        Normalisation(kind).apply(data)
    assert kind in info.value.reason


@pytest.mark.parametrize("kind", KINDS)
def test_inputs_are_the_normalised_features(kind):
    model, test = linear_model(kind), random_dataset(6)
    np.testing.assert_allclose(model.inputs(test) @ model.weights + 0.25, model.predict(test), rtol=1e-12)


@pytest.mark.parametrize("kind", ["none", *KINDS])
def test_only_the_columns_in_use_are_read(kind):
    test = random_dataset(6)
    X = np.full(test.X.shape, np.nan)
    X[:, [1, 4]] = test.X[:, [1, 4]]
    model = linear_model(kind, "error")
    np.testing.assert_array_equal(model.predict(test.replace_features(X)), model.predict(test))


@pytest.mark.parametrize("kind", ["none", *KINDS])
def test_equal_rows_have_bit_identical_scores(kind):
    row = random_dataset(7).X[:3]
    X = np.vstack([row[[0, 1]], np.repeat(row[2:], 20001, axis=0)])
    scores = linear_model(kind).predict(X, np.zeros(len(X)))
    assert len(set(scores[2:].tolist())) == 1


@pytest.mark.parametrize("kind", PER_QUERY)
def test_arrays_need_query_ids(kind):
    model, test = linear_model(kind), random_dataset(6)
    np.testing.assert_array_equal(model.predict(test.X, test.qid), model.predict(test))
    rows = np.random.default_rng(0).permutation(test.n_docs)
    np.testing.assert_allclose(
        model.predict(test.X[rows], test.qid[rows]), model.predict(test)[rows], rtol=1e-9, atol=1e-12
    )
    with refused_parameter("qid", None):
        model.predict(test.X)
    with refused_parameter("qid", [1, 2]):
        model.predict(test.X, [1, 2])


@pytest.mark.parametrize("kind", ["none", *COLUMNWISE])
def test_folded_models_have_the_same_scores(kind):
    model, test = linear_model(kind), random_dataset(6)
    assert model.folded().normalisation is None
    np.testing.assert_allclose(model.folded().predict(test), model.predict(test), rtol=1e-12, atol=1e-13)


def test_normalisation_within_queries_cannot_be_folded():
    with refused_data() as info:
        linear_model("query_z").folded()
    assert "query_z" in info.value.reason


@pytest.mark.parametrize("kind", ["none", *KINDS])
@pytest.mark.parametrize("policy", ["keep", "zero", "query_min", "column_mean"])
def test_round_trip_keeps_normalisation_and_policy(kind, policy, tmp_path):
    model = linear_model(kind, policy)
    model.save(tmp_path / "m.json")
    assert load_model(tmp_path / "m.json") == model
    entries = json.loads((tmp_path / "m.json").read_text())
    assert (entries["normalisation"] is None, entries["missing"] is None) == (
        kind == "none",
        policy == "keep",
    )
    assert (model.normalisation is None, model.missing is None) == (kind == "none", policy == "keep")


@pytest.mark.parametrize(
    ("field", "damage", "word"),
    [
        ("normalisation", {"kind": "zed"}, "zed"),
        ("normalisation", {"scale": [1.0]}, "1 scales"),
        ("normalisation", {"scale": [1.0, 0.0]}, "usable"),
        ("normalisation", {"centre": [0.0, float("nan")]}, "usable"),
        ("normalisation", {"centre": [0.0, "much"]}, "centre[1]"),
        ("normalisation", {"features": ["f2", "f4"]}, "features"),
        ("normalisation", {"features": [], "centre": [], "scale": []}, "features"),
        ("normalisation", {"extra": 1}, "extra"),
        ("missing", {"policy": "guess"}, "guess"),
        ("missing", {"means": [1.0]}, "means"),
        ("missing", {"means": [1.0, float("inf")]}, "inf"),
        ("missing", {"features": ["f5", "f2"]}, "features"),
    ],
)
def test_damaged_preparations_are_refused(field, damage, word, tmp_path):
    content = linear_model("z", "column_mean").to_dict()
    content[field].update(damage)
    (tmp_path / "m.json").write_text(json.dumps(content))
    with refused_data("m.json") as info:
        load_model(tmp_path / "m.json")
    assert word in info.value.reason


@pytest.mark.parametrize("field", ["normalisation", "missing"])
@pytest.mark.parametrize("damage", [3, "z", ["z"], {}])
def test_preparations_of_wrong_types_are_refused(field, damage, tmp_path):
    content = {**linear_model().to_dict(), field: damage}
    (tmp_path / "m.json").write_text(json.dumps(content))
    with refused_data("m.json") as info:
        load_model(tmp_path / "m.json")
    assert "damaged" in info.value.reason


# --- missing values --------------------------------------------------------------------------------------


def with_holes(data, seed=0, share=0.2):
    X = data.X.copy()
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return data.replace_features(X)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_missing_values_become_the_training_mean(form):
    train, test = with_holes(random_dataset(5)), with_holes(random_dataset(6), 1)
    train, test = (d.replace_features(form(d.X)) for d in (train, test))
    model = linear_model(missing="column_mean", data=train)
    dense = np.asarray(test.X.todense()) if sp.issparse(test.X) else test.X
    means = np.nanmean(np.asarray(train.X.todense()) if sp.issparse(train.X) else train.X, axis=0)
    filled = np.where(np.isnan(dense), means, dense)
    np.testing.assert_allclose(model.predict(test), 0.25 + filled[:, [1, 4]] @ [0.7, -1.3], rtol=1e-10)
    np.testing.assert_allclose(
        np.asarray(sp.csr_array(learn_missing(train, "column_mean").apply(test).X).todense()),
        filled,
        rtol=1e-12,
    )


def test_a_feature_that_is_always_missing_has_mean_zero():
    data = Dataset([[np.nan, 1.0], [np.nan, 3.0]], [0, 1], [0, 0])
    assert learn_missing(data, "column_mean").means == (0.0, 2.0)


def test_missing_values_become_the_minimum_of_the_query():
    data = Dataset([[1.0], [np.nan], [5.0], [np.nan]], [0, 0, 0, 0], [0, 0, 1, 1], ["a"])
    model = LinearModel((Term("a", 0, 2.0),), 1, preparation=Preparation(MissingPolicy("query_min")))
    np.testing.assert_array_equal(model.predict(data), [2, 2, 10, 10])
    np.testing.assert_array_equal(model.predict(data.X, data.qid), [2, 2, 10, 10])
    with refused_parameter("qid", None):
        model.predict(data.X)


def test_missing_values_are_filled_before_normalising():
    data = Dataset([[1.0], [np.nan], [5.0]], [0, 0, 0], [0, 0, 0], ["a"])
    policy, kind = MissingPolicy("zero"), Normalisation("query_min_max")
    model = LinearModel((Term("a", 0, 1.0),), 1, preparation=Preparation(policy, kind))
    np.testing.assert_allclose(model.predict(data), [0.2, 0, 1])


def test_the_policy_error_names_the_missing_value():
    test = with_holes(random_dataset(6))
    rows, columns = np.nonzero(np.isnan(test.X[:, [1, 4]]))
    first = rows[0]
    with refused_data() as info:
        linear_model(missing="error").predict(test)
    assert f"feature {('f2', 'f5')[columns[0]]} of row {first}" in info.value.reason
    assert np.isnan(linear_model().predict(test)[first])


def test_the_callers_data_are_not_modified():
    test = with_holes(random_dataset(6))
    before = test.X.copy()
    linear_model("z", "column_mean").predict(test)
    linear_model("query_z", "query_min").predict(test)
    np.testing.assert_array_equal(test.X, before)


# --- estimators ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data():
    plain = random_dataset(seed=21, n_queries=30, n_features=6, longest=20)
    return plain.replace_features(plain.X * [1, 10, 0.1, 1, 100, 1] + 3)


def ranker(**options):
    return SparseRanker(**{"n_alphas": 8, "cv": 3, "profile": "standard", "normalise": "none", **options})


@pytest.mark.parametrize("kind", KINDS)
def test_normalise_equals_fitting_normalised_data(kind, data):
    train = learn_normalisation(data, kind).apply(data)
    fitted, by_hand = ranker(normalise=kind).fit(data), ranker().fit(train)
    np.testing.assert_allclose(fitted.coef_, by_hand.coef_, rtol=1e-9)
    np.testing.assert_allclose(fitted.predict(data), by_hand.predict(train), rtol=1e-9, atol=1e-12)
    assert fitted.score(data) == by_hand.score(train)
    assert fitted.normalisation_.kind == kind


@pytest.mark.parametrize("kind", ["none", *KINDS])
def test_arrays_frames_sparse_matrices_and_files_agree(kind, data, tmp_path):
    fitted = ranker(normalise=kind, missing="column_mean").fit(data)
    expected = fitted.predict(data)
    again = ranker(normalise=kind, missing="column_mean").fit(data.X, data.y, qid=data.qid)
    np.testing.assert_array_equal(again.predict(data.X, data.qid), expected)
    assert again.score(data.X, data.y, data.qid) == fitted.score(data)
    sparse = ranker(normalise=kind).fit(sp.csr_array(data.X), data.y, qid=data.qid)
    np.testing.assert_allclose(sparse.predict(data), expected, rtol=1e-6, atol=1e-8)
    fitted.to_model().save(tmp_path / "m.json")
    np.testing.assert_array_equal(load_model(tmp_path / "m.json").predict(data), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(data), expected)


def test_validation_data_are_normalised_too(data):
    train, valid = data.select_queries(np.arange(20)), data.select_queries(np.arange(20, 30))
    learned = learn_normalisation(train, "z")
    fitted = ranker(normalise="z").fit(train, valid=valid)
    by_hand = ranker().fit(learned.apply(train), valid=learned.apply(valid))
    np.testing.assert_array_equal(fitted.choice_.validation.values, by_hand.choice_.validation.values)


@pytest.mark.parametrize("policy", ["zero", "query_min", "column_mean"])
def test_missing_values_are_filled_in_fit_and_predict(policy, data):
    holes, test = with_holes(data), with_holes(data, 1)
    learned = learn_missing(holes, policy)
    fitted, by_hand = ranker(missing=policy).fit(holes), ranker().fit(learned.apply(holes))
    np.testing.assert_array_equal(fitted.predict(test), by_hand.predict(learned.apply(test)))
    frame = pd.DataFrame(holes.X, columns=list(holes.feature_names))
    again = ranker(missing=policy).fit(frame, holes.y, qid=holes.qid)
    np.testing.assert_allclose(again.predict(frame, holes.qid), fitted.predict(holes), rtol=1e-9)
    assert fitted.to_model().missing.policy == policy


def test_missing_and_infinite_values_without_a_policy_are_refused(data):
    with refused_data() as info:
        ranker(missing="error").fit(with_holes(data))
    assert "missing" in info.value.reason
    with refused_data() as info:
        ranker().fit(data, valid=with_holes(data))
    assert "missing" in info.value.reason
    with refused_data() as info:
        ranker().fit(data).predict(with_holes(data))
    assert "missing" in info.value.reason
    X = data.X.copy()
    X[0, 0] = np.inf
    with refused_data() as info:
        ranker(missing="zero").fit(data.replace_features(X))
    assert "inf" in info.value.reason


@pytest.mark.parametrize(
    "parameters",
    [
        {"normalise": "zed"},
        {"missing": "guess"},
    ],
)
def test_unknown_choices_are_refused(parameters, data):
    with refused_parameter(*next(iter(parameters.items()))):
        ranker(**parameters).fit(data)


def test_a_budget_holds_for_normalised_features(data):
    fitted = ranker(normalise="z", max_features=2).fit(data)
    assert len(fitted.to_model().terms) <= 2
    assert fitted.to_model().normalisation.features == tuple(fitted.to_model().names)


def test_a_grid_search_over_normalisations(data):
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(RankSVM(C=1.0), {"normalise": ["none", *KINDS]}, cv=GroupKFold(3))
        search.fit(data.X, data.y, groups=data.qid)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.filterwarnings("ignore:qid is None")
@pytest.mark.filterwarnings("ignore:.*cannot guide the choice")
@pytest.mark.filterwarnings("ignore:Can't check dok sparse matrix")
@pytest.mark.full
def test_scikit_learn_conventions_with_both_parameters():
    check_estimator(ranker(normalise="z", missing="column_mean"), on_skip=None)


# --- command line ----------------------------------------------------------------------------------------


@pytest.fixture
def files(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_letor(with_holes(data), "train.txt")
    write_letor(with_holes(data, 1), "test.txt")
    return with_holes(data), with_holes(data, 1)


def fit(*options, output="m.json"):
    run("fit", "train.txt", "--missing", "column_mean", *options, "-o", output)
    return load_model(output)


@pytest.mark.parametrize("method", ["sparseranker", "ranksvm", "fenchelrank", "fsrank"])
@pytest.mark.parametrize("kind", ["z", "query_min_max"])
def test_any_method_fits_and_ranks_normalised_data(method, kind, files):
    train, test = files
    options = ["--set", "max_features=3"] if method == "fsrank" else []
    model = fit("--method", method, "--normalise", kind, *options)
    filled = learn_missing(train, "column_mean").apply(train)
    assert model.normalisation == learn_normalisation(filled, kind).of(model.names)
    assert model.missing == learn_missing(train, "column_mean").of(model.names)
    scores = np.array(run("rank", "m.json", "test.txt").stdout.split(), dtype=float)
    np.testing.assert_array_equal(scores, model.predict(test))
    assert np.isfinite(scores).all()


def test_the_stored_policy_is_used_unless_another_is_passed(files):
    model = fit("--normalise", "z")
    _, test = files
    with_zero = np.array(run("rank", "m.json", "test.txt", "--missing", "zero").stdout.split(), dtype=float)
    zeros = test.replace_features(np.nan_to_num(test.X))
    without_filling = replace(model, preparation=replace(model.preparation, missing=KEEP_MISSING))
    np.testing.assert_array_equal(with_zero, without_filling.predict(zeros))
    assert not np.array_equal(with_zero, model.predict(test))
    assert "--missing zero" in refused("rank", "m.json", "test.txt", "--missing", "error")
    assert "is nan" in refused("rank", "m.json", "test.txt", "--missing", "keep")


def test_evaluate_and_compare_use_each_models_policy(files):
    mean, zero = fit("--normalise", "z"), fit("--missing", "zero", "--method", "ranksvm", output="z.json")
    assert (mean.missing.policy, zero.missing.policy) == ("column_mean", "zero")
    alone = json.loads(run("evaluate", "m.json", "test.txt", "--json").stdout)["mean"]
    both = json.loads(run("compare", "m.json", "z.json", "test.txt", "--json").stdout)["mean"]
    assert both["m"] == alone
    assert both["z"] == json.loads(run("evaluate", "z.json", "test.txt", "--json").stdout)["mean"]


def test_wrong_choices_are_refused_before_reading(files):
    assert "--normalise zed:" in refused("fit", "nowhere.txt", "--normalise", "zed", "-o", "m.json")
    assert "--missing guess:" in refused("fit", "nowhere.txt", "--missing", "guess", "-o", "m.json")


# --- "auto" ------------------------------------------------------------------------------------------------


def of_scale(low, high, seed=0):
    data = random_dataset(seed=seed, n_queries=12, n_features=3, longest=15)
    unit = (data.X - data.X.min(axis=0)) / np.ptp(data.X, axis=0)
    return data.replace_features(low + unit * (np.asarray(high) - low))


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (of_scale(0.0, 1.0), "none"),
        (of_scale(0.0, [1.0, 0.5, 0.01], seed=1), "none"),
        (of_scale(0.0, [1.0, 0.5, 1e-5]), "within_z"),
        (of_scale(-0.5, 1.0), "within_z"),
        (of_scale(0.0, [1.0, 1.0, 300.0]), "within_z"),
    ],
)
def test_auto_does_not_normalise_features_of_equal_scale(data, kind):
    assert learn_normalisation(data, "auto").kind == kind
    assert learn_normalisation(data.replace_features(sp.csr_array(data.X)), "auto").kind == kind
    fitted = SparseRanker(metric="map", cv=3, n_alphas=8).fit(data)
    same = SparseRanker(metric="map", cv=3, n_alphas=8, normalise=kind).fit(data)
    assert fitted.normalisation_ == same.normalisation_
    np.testing.assert_array_equal(fitted.coef_, same.coef_)
    model = fitted.to_model()
    assert (model.normalisation.kind if model.normalisation else "none") == kind


def test_auto_is_not_a_kind_of_normalisation():
    with refused_parameter("normalise", "auto"):
        Normalisation("auto")
