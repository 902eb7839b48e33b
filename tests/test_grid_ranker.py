"""GridRanker: every linear method with a budget, in Python and on the command line."""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import ranksieve as rs
from ranksieve._util.files import to_plain
from ranksieve.data.budget import Budget
from ranksieve.grid_ranker import spread_in_queries, strongest_columns
from ranksieve.methods import METHODS, Method, find_method, parameter_grid
from tests.refusals import refused_parameter
from tests.test_cli import refused, run

LINEAR = [name for name, method in METHODS.items() if method.linear and not method.can("valid")]
FAST = {
    "stabilityselection": {"n_subsamples": 6},
    "tgrank": {"max_iter": 200},
    "rsrank": {"alpha": 0.01},
    "proxrank": {"max_iter": 200},
}
GROUPED = {"features": {"*": 1.0}, "groups": {"pair": {"cost": 1.5, "features": ["f1", "f2"]}}}


@pytest.fixture(autouse=True)
def quiet():
    """Ignore convergence warnings of the small grids."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


@pytest.fixture(scope="module")
def parts():
    data = rs.make_ranking(n_queries=30, n_features=8, n_informative=4, random_state=1)
    return data.select_queries(range(18)), data.select_queries(range(18, 30))


def short(name: str) -> Method:
    """The method with only the first and last point of its grid."""
    method = find_method(name)
    return replace(method, grid=list(method.grid)[:: max(1, len(method.grid) - 1)][:2])


@pytest.mark.parametrize("name", LINEAR)
def test_no_method_exceeds_a_number_of_features(name, parts, tmp_path):
    train, valid = parts
    ranker = rs.GridRanker(short(name), max_features=2, parameters=FAST.get(name)).fit(train, valid=valid)
    assert 1 <= np.count_nonzero(ranker.coef_) <= 2
    assert ranker.coef_.shape == (train.n_features,)
    model = ranker.to_model()
    assert model.method == type(find_method(name).make()).__name__
    assert model.n_features == train.n_features
    assert model.parameters["max_features"] == 2
    assert set(model.data) == {"train", "valid"}
    model.save(tmp_path / "m.json")
    loaded = rs.load_model(tmp_path / "m.json")
    assert np.array_equal(loaded.predict(valid), ranker.predict(valid))
    assert loaded.to_dict() == model.to_dict()


@pytest.mark.parametrize("name", LINEAR)
def test_no_method_exceeds_a_cost_whose_groups_are_paid_once(name, parts):
    train, valid = parts
    ranker = rs.GridRanker(short(name), feature_costs=GROUPED, max_cost=2.6, parameters=FAST.get(name)).fit(
        train, valid=valid
    )
    model = ranker.to_model()
    assert model.terms
    assert ranker.costs_ is not None
    assert model.metrics["cost"] == ranker.costs_.of(model.names) <= 2.6
    assert model.parameters["feature_costs"]["groups"] == GROUPED["groups"]


@pytest.mark.parametrize("name", ["ranksvm-l1", "ranksvm", "adarank-ndcg", "fsrank", "fsmsvm", "fbpcrank"])
def test_cross_validation_without_validation_data(name, parts):
    train, _ = parts
    counts: list[tuple[int, int]] = []
    ranker = rs.GridRanker(short(name), max_features=3, cv=3)
    ranker.fit(train, progress=lambda *count: counts.append(count))
    model, n = ranker.to_model(), len(ranker.points_)
    assert len(model.terms) <= 3
    assert ranker.choice_.validation.values.shape == (n, train.n_queries)
    assert model.parameters["choice"] == {
        "method": None, "parameters": {},  # with a changed grid the method is not one of METHODS
        "candidates": n, "point": to_plain(ranker.points_[ranker.choice_.index]),
        "cv": 3, "random_state": 0, "metric": "ndcg@10", "profile": "standard", "ties": "mean",
    }  # fmt: skip
    assert counts == [(k, 4 * n) for k in range(1, 4 * n + 1)]
    assert set(model.data) == {"train"}
    assert np.array_equal(clone(ranker).fit(train).coef_, ranker.coef_)


def test_the_metric_equals_evaluate(parts):
    train, valid = parts
    ranker = rs.GridRanker("ranksvm-l1", max_features=3, metric="map", profile="letor")
    ranker.fit(train, valid=valid)
    expected = rs.evaluate(ranker.predict(valid), valid, ["map"], "letor", ties="mean").mean["map"]
    assert ranker.to_model().metrics == {"held-out map (letor, ties mean)": expected}
    assert ranker.to_model().chosen_by == {"metric": "map", "profile": "letor", "ties": "mean"}
    assert expected == ranker.choice_.validation.mean.max()


def test_without_a_budget_the_result_is_the_fit_of_the_selected_point(parts):
    train, valid = parts
    ranker = rs.GridRanker("ranksvm").fit(train, valid=valid)
    direct = find_method("ranksvm").make(**ranker.points_[ranker.choice_.index]).fit(train)
    assert np.array_equal(ranker.coef_, direct.coef_)
    assert ranker.to_model().certificate == direct.to_model().certificate
    assert np.array_equal(ranker.predict(valid), direct.predict(valid))


def test_the_certificate_of_a_restricted_fit_names_its_features(parts):
    train, valid = parts
    ranker = rs.GridRanker("ranksvm", 3).fit(train, valid=valid)
    narrow = train.select_features(ranker.columns_)
    direct = find_method("ranksvm").make(**ranker.points_[ranker.choice_.index]).fit(narrow)
    assert np.array_equal(direct.coef_, ranker.coef_[ranker.columns_])
    assert ranker.to_model().certificate == {
        **direct.to_model().certificate, "features": [train.feature_names[j] for j in ranker.columns_],
    }  # fmt: skip


def test_the_certificate_is_that_of_the_selected_ranker(parts):
    train, valid = parts
    concave = rs.GridRanker(short("ranksvm-log")).fit(train, valid=valid).to_model()
    assert set(concave.certificate) == {"objective", "gap_of_last_round"}  # no gap to the global optimum
    chosen = rs.GridRanker(short("fsrank"), 2).fit(train, valid=valid)
    assert chosen.to_model().certificate == chosen.ranker_.to_model().certificate
    assert len(chosen.to_model().certificate["features"]) == 2


def test_the_strongest_features_are_kept():
    coef, spread = np.array([0.0, 5.0, -2.0, 1.0]), np.array([9.0, 0.1, 1.0, 1.0])
    assert strongest_columns(coef, spread, Budget(2)).tolist() == [2, 3]
    costs = rs.FeatureCosts((), 1.0).columns(["a", "b", "c", "d"])
    assert strongest_columns(coef, spread, Budget(None, 1.0, costs)).tolist() == [2]
    dear = replace(costs, prices=np.array([1.0, 1.0, 1.0, 3.0]))
    assert strongest_columns(coef, spread, Budget(None, 2.0, dear)).tolist() == [1, 2]


def test_the_spread_of_features_is_within_queries():
    X = np.array([[1.0, 0.0], [3.0, 0.0], [5.0, 7.0], [5.0, 7.0]])
    data = rs.Dataset(X, [0, 1, 0, 1], [1, 1, 2, 2])
    assert spread_in_queries(data).tolist() == [0.5, 0.0]
    assert spread_in_queries(data.select_rows(np.array([0, 2, 1, 3]))).tolist() == [0.5, 0.0]


def test_features_above_the_budget_are_excluded(parts):
    """The strongest features exceed the budget, so a cheap one is selected."""
    train, valid = parts
    strong = rs.GridRanker("ranksvm-l1", 1).fit(train, valid=valid).to_model().names
    costs = {"*": 1.0, **dict.fromkeys(strong, 5.0)}
    cheap = rs.GridRanker("ranksvm-l1", feature_costs=costs, max_cost=1.0).fit(train, valid=valid)
    assert len(cheap.support_) == 1
    assert not set(cheap.to_model().names) & set(strong)


def test_fixed_parameters_are_not_selected(parts):
    train, valid = parts
    fixed = rs.GridRanker("ranksvm", 2, parameters={"C": 3.0}).fit(train, valid=valid)
    assert fixed.points_ == [{"C": 3.0}]
    assert fixed.to_model().chosen_by is None
    half = rs.GridRanker("gas", 2, parameters={"C": 3.0}).fit(train, valid=valid)
    assert half.points_ == [{"max_features": 2, "C": 3.0}]
    cut = rs.GridRanker("gas", 2, parameters={"max_features": 7, "C": 3.0}).fit(train, valid=valid)
    assert np.array_equal(cut.coef_, half.coef_)
    wide = rs.GridRanker("gas", parameters={"max_features": 99, "C": 1.0}).fit(train, valid=valid)
    assert wide.to_model().parameters["max_features"] == train.n_features


def test_warm_started_methods_use_the_full_grid(parts):
    train, valid = parts
    assert len(rs.GridRanker("ranksvm-l1", 2).fit(train, valid=valid).points_) == 40
    assert len(rs.GridRanker("ranksvm", 2).fit(train, valid=valid).points_) == 5


def test_normalised_and_filled_features(parts):
    train, valid = (_with_holes(part) for part in parts)
    ranker = rs.GridRanker("ranksvm", 3, normalise="z", missing="column_mean").fit(train, valid=valid)
    model = ranker.to_model()
    assert (model.parameters["normalise"], model.parameters["missing"]) == ("z", "column_mean")
    assert model.normalisation is not None
    assert np.array_equal(model.predict(valid), ranker.predict(valid))
    assert rs.GridRanker("ranksvm", 3, normalise="query_z", missing="zero", cv=2).fit(train).coef_.any()


def _with_holes(data: rs.Dataset) -> rs.Dataset:
    X = 100.0 * np.array(data.X) + 7.0
    X[::5, 2] = np.nan
    return data.replace_features(X)


@pytest.mark.filterwarnings("ignore:qid is None")
@pytest.mark.full
def test_scikit_learn_conventions():
    check_estimator(rs.GridRanker("ranksvm", 2), on_skip=None)


def test_a_search_without_routed_query_ids_has_no_score_and_a_hint(parts):
    train, _ = parts
    X, y, qid = train.X, train.y, train.qid
    ranker = rs.GridRanker("ranksvm", 2, cv=2)
    search = GridSearchCV(ranker, {"max_features": [1, 2]}, cv=GroupKFold(2))
    with (
        pytest.warns(UserWarning, match=r"Scoring failed[\s\S]*qid=None"),
        pytest.warns(UserWarning, match="scores are non-finite"),
    ):
        search.fit(X, y, groups=qid, qid=qid)
    assert np.isnan(search.best_score_)
    with refused_parameter("qid", None):
        cross_val_score(ranker, X, y, groups=qid, cv=GroupKFold(2), params={"qid": qid}, error_score="raise")
    pipeline = make_pipeline(StandardScaler(), rs.SparseRanker(2, n_alphas=8, cv=2))
    pipeline.fit(X, y, sparseranker__qid=qid)
    with refused_parameter("qid", None):
        pipeline.score(X, y)
    with sklearn.config_context(enable_metadata_routing=True):
        assert pipeline.score(X, y, groups=qid) == pipeline[-1].score(pipeline[0].transform(X), y, qid)


def test_query_weights(parts):
    train, valid = parts
    weight = np.ones(train.n_queries)
    weight[:5] = 0.0
    ranker = rs.GridRanker("ranksvm", 3, cv=2)
    of_some = clone(ranker).fit(train.select_queries(range(5, train.n_queries)), valid=valid)
    assert np.array_equal(clone(ranker).fit(train, valid=valid, query_weight=weight).coef_, of_some.coef_)
    assert (
        clone(ranker).fit(train, query_weight=weight).choice_.validation.values.shape[1]
        == train.n_queries - 5
    )


def test_a_single_query_is_also_the_validation_query(parts):
    train, _ = parts
    alone = train.select_queries([0])
    ranker = rs.GridRanker("ranksvm", 2).fit(alone)
    expected = rs.evaluate(ranker.predict(alone), alone, ["ndcg@10"]).mean["ndcg@10"]
    assert ranker.choice_.validation.mean[ranker.choice_.index] == expected


def test_a_model_without_features_is_not_selected_on_sorted_data(parts):
    """With equal scores, data sorted by label would have a perfect ranking."""
    train, _ = parts
    sorted_data = train.select_rows(np.argsort(-train.y, kind="stable"))
    alphas = [0.9999 * float(rs.sparse_path(sorted_data, n_alphas=2).alphas[0]), 0.01]
    method = replace(find_method("ranksvm-l1"), grid=parameter_grid(alpha=alphas))
    ranker = rs.GridRanker(method).fit(sorted_data)
    assert ranker.points_[ranker.choice_.index] == {"alpha": 0.01}
    worst = rs.evaluate(-sorted_data.y, sorted_data, ["ndcg@10"]).per_query["ndcg@10"]
    assert np.sum(ranker.choice_.validation.values[0] == worst) >= sorted_data.n_queries / 5


@pytest.mark.parametrize(
    ("method", "options", "facts"),
    [
        ("lambdamart", {}, ("method", "lambdamart")),
        ("sparseranker", {}, ("method", "sparseranker")),
        ("ranksvn", {}, ("method", "ranksvn")),
        (3, {}, ("method", 3)),
        ("ranksvm", {"parameters": {"c": 1.0}}, ("parameters", "c")),
        ("ranksvm", {"parameters": {"normalise": "z"}}, ("parameters", {"normalise": "z"})),
        ("ranksvm", {"max_features": 0}, ("max_features", 0)),
        ("ranksvm", {"max_cost": 1.0}, ("max_cost", 1.0)),
        ("ranksvm", {"feature_costs": GROUPED, "max_cost": 0.5}, ("max_cost", 0.5)),
        ("ranksvm-l1", {"parameters": {"alpha": 1e6}}, ("parameters", {"alpha": 1e6})),
        ("ranksvm", {"metric": "ndgc@10"}, ("metric", "ndgc")),
    ],
)
def test_refusals(method, options, facts, parts):
    train, valid = parts
    with refused_parameter(*facts):
        rs.GridRanker(method, **options).fit(train, valid=valid)


def test_a_fold_that_cannot_be_fitted_is_named():
    X = np.random.default_rng(0).normal(size=(6, 2))
    data = rs.Dataset(X, [0, 1, 0, 0, 0, 0], [1, 1, 2, 2, 3, 3])
    with refused_parameter("cv") as info:
        rs.GridRanker("ranksvm", 1).fit(data)
    assert "fold" in info.value.reason


# --- The command line ------------------------------------------------------------------------------------


@pytest.fixture
def here(parts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for part, name in zip(parts, ("train.txt", "vali.txt"), strict=True):
        rs.io.write_letor(part, name)
    Path("ms.csv").write_text("feature,cost,group\n*,1,\nf1,1.5,pair\nf2,1.5,pair\n", encoding="utf-8")
    return tmp_path


def fit(*options):
    return ("fit", "train.txt", "-o", "m.json", *options)


@pytest.mark.parametrize("method", ["ranksvm-l1", "adarank-ndcg", "fsrank"])
def test_fit_within_a_number_of_features(method, here):
    options = ("--max-features", 2, "--valid", "vali.txt", "--metric", "map", "--profile", "letor")
    text = run(*fit("--method", method, *options, "--report", "r.html")).stdout
    model = rs.load_model("m.json")
    assert 1 <= len(model.terms) <= 2
    assert model.chosen_by == {"metric": "map", "profile": "letor", "ties": "mean"}
    value = model.metrics["held-out map (letor, ties mean)"]
    headline = rf"Held-out MAP: {value:.4f} \(95 % CI .* queries; letor profile, ties mean\)\."
    selected = "Selected on vali.txt."
    page = Path("r.html").read_text(encoding="utf-8")
    assert re.search(headline, text)
    assert re.search(headline, page)
    assert selected in text
    assert selected in page
    assert " selected " in text
    assert "statistically tied" in text
    assert all(term.name in page for term in model.terms)


def test_fit_within_a_cost(here):
    options = ("--costs", "ms.csv", "--max-cost", 2.6, "--report", "r.html", "--json")
    content = json.loads(run(*fit("--method", "ranksvm", *options)).stdout)
    model = rs.load_model("m.json")
    assert model.metrics["cost"] == rs.io.read_costs("ms.csv").of(model.names) <= 2.6
    assert content["choice"] == "by 5-fold cross-validation over the training queries"
    page = Path("r.html").read_text(encoding="utf-8")
    assert f"Cost of the features: <strong>{model.metrics['cost']:g}</strong> of at most 2.6" in page
    assert f"for the {len(model.certificate['features'])} features it was fitted on, no other weights" in page


@pytest.mark.parametrize("name", METHODS)
def test_a_method_of_the_command_line_has_the_defaults_of_its_class(name):
    """Except for parameters that are part of its name."""
    ranker = METHODS[name].make()
    ours, theirs = ranker.get_params(deep=False), type(ranker)().get_params(deep=False)
    assert {key for key in ours if ours[key] != theirs[key]} <= {"penalty", "metric"}


@pytest.mark.parametrize(
    ("name", "fixed"), [("ranksvm", "C=2"), ("adarank-ndcg", "n_rounds=30"), ("gas", "C=2")]
)
def test_validation_data_do_not_change_a_fit_without_selection(name, fixed, here):
    options = ("--method", name, "--set", fixed, *(("--set", "max_features=3") if name == "gas" else ()))
    run(*fit(*options))
    alone = rs.load_model("m.json")
    run(*fit(*options, "--valid", "vali.txt"))
    measured = rs.load_model("m.json")
    assert (measured.names, measured.weights.tolist()) == (alone.names, alone.weights.tolist())


def test_validation_data_are_only_used_for_the_metric_if_all_is_fixed(here):
    text = run(
        *fit("--method", "ranksvm", "--set", "C=2", "--set", "normalise=z", "--valid", "vali.txt")
    ).stdout
    model = rs.load_model("m.json")
    assert (model.parameters["C"], model.parameters["normalise"]) == (2, "z")
    assert model.chosen_by is None
    assert "Measured on vali.txt." in text
    assert "statistically tied" not in text


def test_without_options_a_method_is_fitted_with_its_defaults(here):
    run(*fit("--method", "ranksvm"))
    plain = find_method("ranksvm").make().fit(rs.io.read_letor("train.txt")).to_model()
    assert rs.load_model("m.json").to_dict() == plain.to_dict()


@pytest.mark.parametrize(
    ("options", "option"),
    [
        (["--must-have", "f1", "--max-features", 2], "--must-have"),
        (["--signs", "f1=+", "--valid", "vali.txt"], "--signs"),
        (["--max-cost", "3"], "--max-cost 3"),
        (["--costs", "ms.csv", "--max-cost", "0.5"], "--max-cost 0.5: "),
    ],
)
def test_unsupported_options(options, option, here):
    assert option in refused(*fit("--method", "ranksvm", *options))
    assert not (here / "m.json").exists()
