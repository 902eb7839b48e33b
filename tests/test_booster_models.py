"""Models of LightGBM and XGBoost: detection, the scores of their packages, damaged files."""

from __future__ import annotations

import itertools
import json
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import ranksieve as rs
from ranksieve.cli.options import is_model
from ranksieve.io.letor import write_letor
from ranksieve.model.lightgbm_text import parse_lightgbm
from ranksieve.model.score_functions import WeightedSum
from tests import test_boosted
from tests.refusals import refused_data
from tests.test_cli import refused, run

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4))
X[rng.random(X.shape) < 0.15] = np.nan
Y, QID = rng.integers(0, 3, 120), np.repeat(np.arange(8), 15)
NAMES = ["bm25", "price", "clicks per day", "age"]
DATA = rs.Dataset(X, Y, QID, NAMES)
ORDER = np.array([2, 0, 3, 1])
SHUFFLED = rs.Dataset(X[:, ORDER], Y, QID, [NAMES[j] for j in ORDER])


# --- LightGBM --------------------------------------------------------------------------------------------


def trained(names="auto", **parameters):
    lightgbm = pytest.importorskip("lightgbm")
    quiet = {"objective": "lambdarank", "verbose": -1, "num_leaves": 4, "min_data_in_leaf": 5, **parameters}
    data = lightgbm.Dataset(X, Y, group=np.bincount(QID), feature_name=names)
    return lightgbm.train(quiet, data, 4)


@pytest.fixture(scope="module")
def booster():
    return trained([name.replace(" ", "_") for name in NAMES])


@pytest.fixture(scope="module")
def unnamed():
    return trained()


def test_scores_equal_those_of_lightgbm(booster, tmp_path):
    booster.save_model(tmp_path / "model.txt")
    model = rs.read_model(tmp_path / "model.txt")
    assert (model.method, model.n_features) == ("LightGBM lambdarank", 4)
    expected = booster.predict(X, raw_score=True)
    for data in (DATA, SHUFFLED, X, sp.csr_array(X)):
        np.testing.assert_array_equal(model.predict(data), expected)


def test_lightgbm_without_names_uses_positions(unnamed, tmp_path):
    unnamed.save_model(tmp_path / "model.txt")
    model = rs.read_model(tmp_path / "model.txt")
    np.testing.assert_array_equal(model.predict(DATA), unnamed.predict(X, raw_score=True))
    for columns in (3, 5):
        wide = np.column_stack([X, X])[:, :columns]
        with refused_data() as info:
            model.predict(wide)
        assert f"have {columns};" in info.value.reason


def test_missing_names(booster, tmp_path):
    booster.save_model(tmp_path / "model.txt")
    model = rs.read_model(tmp_path / "model.txt")
    with refused_data() as info:
        model.predict(rs.Dataset(X, Y, QID, [*NAMES[:3], "years"]))
    assert ": age;" in info.value.reason
    numbered = rs.Dataset(X, Y, QID)  # default names f1, f2, …
    np.testing.assert_array_equal(model.predict(numbered), model.predict(DATA))


def test_categories_of_lightgbm(tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    kinds = np.column_stack([rng.integers(0, 5, 120), rng.normal(size=120)]).astype(float)
    parameters = {"objective": "lambdarank", "verbose": -1, "min_data_in_leaf": 2, "min_data_per_group": 2}
    data = lightgbm.Dataset(
        kinds, (kinds[:, 0] % 3).astype(int), group=np.bincount(QID), categorical_feature=[0]
    )
    booster = lightgbm.train({**parameters, "cat_smooth": 0.1}, data, 3)
    assert "num_cat=1" in booster.model_to_string()
    booster.save_model(tmp_path / "model.txt")
    expected = booster.predict(kinds, raw_score=True)
    np.testing.assert_array_equal(rs.read_model(tmp_path / "model.txt").predict(kinds), expected)


def test_a_damaged_lightgbm_model(booster, tmp_path):
    text = booster.model_to_string()
    (tmp_path / "m.txt").write_text(text[: len(text) // 3])
    with refused_data("m.txt") as info:
        rs.read_model(tmp_path / "m.txt")
    assert "'end of trees'" in info.value.reason


@pytest.mark.parametrize("kind", ["gbdt", "rf", "dart"])
def test_every_kind_of_split_equals_lightgbm(kind):
    """Missing values, zeros as missing values, values near 0, infinity, categories."""
    lightgbm = pytest.importorskip("lightgbm")
    draw = np.random.default_rng(1)
    x = draw.normal(size=(600, 4))
    x[:, 3] = draw.integers(-2, 40, 600)
    labels = x[:, 0] + x[:, 3] % 3 + draw.normal(size=600)
    x[draw.random(x.shape) < 0.15] = np.nan
    x[draw.random(x.shape) < 0.15] = 0.0
    x[:20, 1], x[20:40, 2], x[:3, 3] = 1e-36, np.inf, [-0.5, 1e12, 2.7]
    bags = {"boosting": kind, "bagging_freq": 1, "bagging_fraction": 0.7, "verbose": -1}
    few = {"min_data_in_leaf": 5, "min_data_per_group": 5, "cat_smooth": 1, "max_cat_to_onehot": 2}
    for zero, missing, categorical in itertools.product([True, False], [True, False], [[], [3]]):
        options = {"zero_as_missing": zero, "use_missing": missing, "objective": "regression"}
        data = lightgbm.Dataset(x, labels, categorical_feature=categorical)
        booster = lightgbm.train({**bags, **few, **options}, data, 10)
        scores = WeightedSum.plain(parse_lightgbm(booster.model_to_string()).trees).scores(x)
        np.testing.assert_array_equal(scores, booster.predict(x, raw_score=True))


def test_scores_do_not_need_lightgbm(booster, tmp_path, monkeypatch):
    booster.save_model(tmp_path / "m.txt")
    expected = booster.predict(X, raw_score=True)
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    np.testing.assert_array_equal(rs.read_model(tmp_path / "m.txt").predict(X), expected)


def test_commands_accept_lightgbm_models(unnamed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    filled = np.nan_to_num(X)
    write_letor(rs.Dataset(filled, Y, QID), "test.txt")
    unnamed.save_model("booster.txt")
    assert is_model("booster.txt")
    scores = [float(line) for line in run("rank", "booster.txt", "test.txt").stdout.splitlines()]
    read = rs.read_dataset("test.txt")
    np.testing.assert_array_equal(scores, unnamed.predict(read.X, raw_score=True))
    measured = json.loads(run("evaluate", "booster.txt", "test.txt", "--json").stdout)
    assert measured["mean"]["map"] == rs.evaluate(np.array(scores), read, ["map"]).mean["map"]
    (tmp_path / "scores.txt").write_text("\n".join(map(str, filled[:, 0])))
    assert "booster" in run("compare", "booster.txt", "scores.txt", "test.txt").stdout
    assert "LightGBM lambdarank" in refused("explain", "booster.txt", "test.txt", "--drop")
    (tmp_path / "cut.txt").write_text("tree\nversion=v4\n")
    assert refused("rank", "cut.txt", "test.txt").startswith("cut.txt: ")


# --- XGBoost ---------------------------------------------------------------------------------------------

STUMP = {
    "base_weights": [0.0, -0.5, 1.25],
    "categories": [],
    "categories_nodes": [],
    "categories_segments": [],
    "categories_sizes": [],
    "default_left": [1, 0, 0],
    "id": 0,
    "left_children": [1, -1, -1],
    "loss_changes": [1.0, 0.0, 0.0],
    "parents": [2147483647, 0, 0],
    "right_children": [2, -1, -1],
    "split_conditions": [0.25, -0.5, 1.25],
    "split_indices": [1, 0, 0],
    "split_type": [0, 0, 0],
    "sum_hessian": [2.0, 1.0, 1.0],
    "tree_param": {"num_deleted": "0", "num_feature": "4", "num_nodes": "3", "size_leaf_vector": "1"},
}
XGBOOST = {
    "learner": {
        "attributes": {},
        "feature_names": NAMES,
        "feature_types": [],
        "gradient_booster": {
            "model": {
                "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": "1"},
                "iteration_indptr": [0, 1],
                "tree_info": [0],
                "trees": [STUMP],
            },
            "name": "gbtree",
        },
        "learner_model_param": {
            "base_score": "5E-1",
            "boost_from_average": "1",
            "num_class": "0",
            "num_feature": "4",
            "num_target": "1",
        },
        "objective": {"name": "reg:squarederror", "reg_loss_param": {"scale_pos_weight": "1"}},
    },
    "version": [2, 0, 0],
}


def changed(path, value):
    return test_boosted.changed(XGBOOST, path, value)


BOOSTER = ("learner", "gradient_booster", "model")


@pytest.mark.parametrize(
    ("path", "value", "word"),
    [
        (("learner",), {}, "learner_model_param"),
        (("learner",), 3, ""),
        (("learner", "learner_model_param", "num_class"), "3", "several scores"),
        (("learner", "learner_model_param", "num_feature"), "many", "wrong type"),
        (("learner", "learner_model_param", "base_score"), "x", ""),
        (("learner", "attributes"), {"best_iteration": "1"}, "out of range"),
        (("learner", "feature_names"), ["a"], "1 names"),
        (("learner", "gradient_booster", "name"), "forest", "'forest'"),
        ((*BOOSTER, "trees"), [3], "wrong type"),
        ((*BOOSTER, "trees", 0, "left_children"), [7, -1, -1], "child node"),
        ((*BOOSTER, "trees", 0, "left_children"), [0, -1, -1], "child node"),
        ((*BOOSTER, "trees", 0, "left_children"), [2, -1, -1], "child node"),
        ((*BOOSTER, "trees", 0, "left_children"), [1], "differ in length"),
        ((*BOOSTER, "trees", 0, "left_children"), [2**70, -1, -1], "out of range"),
        ((*BOOSTER, "trees", 0, "split_indices"), [4, 0, 0], "0..3"),
        ((*BOOSTER, "trees", 0, "split_indices"), [-1, 0, 0], "0..3"),
        ((*BOOSTER, "trees", 0, "split_conditions"), [float("nan"), 0, 0], "NaN"),
        ((*BOOSTER, "trees", 0, "split_type"), [1, 0, 0], "categorical"),
    ],
)
def test_damaged_xgboost_models(path, value, word, tmp_path):
    (tmp_path / "m.json").write_text(json.dumps(changed(path, value)))
    with refused_data(tmp_path / "m.json") as info:
        rs.read_model(tmp_path / "m.json")
    assert word in info.value.reason


def scored(content, tmp_path, data=X):
    (tmp_path / "m.json").write_text(json.dumps(content))
    return rs.read_model(tmp_path / "m.json").predict(data)


GOES_LEFT = np.isnan(X[:, 1]) | (X[:, 1].astype(np.float32) < np.float32(0.25))
LEAF_OF = np.where(GOES_LEFT, -0.5, 1.25)


def test_the_binary_format_of_xgboost_is_refused_with_a_hint(tmp_path):
    (tmp_path / "m.ubj").write_bytes(b"{L\x00\x00\x00\x00\x00\x00\x00\x07learner{}}")
    with refused_data("m.ubj") as info:
        rs.read_model(tmp_path / "m.ubj")
    assert 'save_model("model.json")' in info.value.reason


def test_xgboost_scores_follow_its_trees(tmp_path):
    (tmp_path / "m.json").write_text(json.dumps(XGBOOST))
    model = rs.read_model(tmp_path / "m.json")
    assert (model.method, model.n_features) == ("XGBoost reg:squarederror", 4)
    for data in (DATA, SHUFFLED, X):
        np.testing.assert_array_equal(model.predict(data), 0.5 + LEAF_OF)


def test_a_value_at_the_threshold_goes_right_in_xgboost(tmp_path):
    rows = np.zeros((3, 4))
    rows[:, 1] = [0.25, np.nextafter(np.float32(0.25), np.float32(0)), np.nextafter(0.25, 0)]
    np.testing.assert_array_equal(scored(XGBOOST, tmp_path, rows), [1.75, 0.0, 1.75])


def test_xgboost_scores_are_before_the_link_function(tmp_path):
    logistic = changed(("learner", "objective"), {"name": "binary:logistic"})
    np.testing.assert_array_equal(scored(logistic, tmp_path), LEAF_OF)
    logistic["learner"]["learner_model_param"]["base_score"] = "[5E-1]"
    np.testing.assert_array_equal(scored(logistic, tmp_path), LEAF_OF)


def test_xgboost_uses_trees_up_to_the_best_iteration(tmp_path):
    content = changed((*BOOSTER, "trees"), [STUMP, STUMP, STUMP])
    content["learner"]["gradient_booster"]["model"]["iteration_indptr"] = [0, 2, 3]
    np.testing.assert_array_equal(scored(content, tmp_path), 0.5 + 3 * LEAF_OF)
    content["learner"]["attributes"] = {"best_iteration": "0"}
    np.testing.assert_array_equal(scored(content, tmp_path), 0.5 + 2 * LEAF_OF)


def test_weights_of_dart_trees_and_gblinear(tmp_path):
    forest = XGBOOST["learner"]["gradient_booster"]
    dart = {"name": "dart", "gbtree": forest, "weight_drop": [0.25]}
    expected = 0.5 + 0.25 * LEAF_OF
    np.testing.assert_array_equal(scored(changed(("learner", "gradient_booster"), dart), tmp_path), expected)
    linear = {"name": "gblinear", "model": {"weights": [1.0, 0.0, -2.0, 0.5, 3.0]}}
    scores = scored(changed(("learner", "gradient_booster"), linear), tmp_path, DATA)
    np.testing.assert_allclose(scores, 3.5 + np.nan_to_num(X) @ [1.0, 0.0, -2.0, 0.5], rtol=1e-12)
