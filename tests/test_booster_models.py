"""Models of LightGBM and XGBoost: recognised, scored by their packages, refused when damaged."""

from __future__ import annotations

import copy
import json
import struct
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

import ranksieve as rs
from ranksieve.cli.options import is_model
from ranksieve.io.letor import write_letor
from ranksieve.model import foreign as xgboost_model
from ranksieve.model import lightgbm_text
from ranksieve.model.foreign import is_ubjson
from ranksieve.model.xgboost import decode_ubjson
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


def test_lightgbm_scores_are_its_own(booster, tmp_path):
    booster.save_model(tmp_path / "model.txt")
    model = rs.read_model(tmp_path / "model.txt")
    assert (model.method, model.n_features) == ("LightGBM lambdarank", 4)
    expected = booster.predict(X, raw_score=True)
    for data in (DATA, SHUFFLED, X, sp.csr_array(X)):
        np.testing.assert_array_equal(model.predict(data), expected)


def test_lightgbm_without_names_goes_by_position(unnamed, tmp_path):
    unnamed.save_model(tmp_path / "model.txt")
    model = rs.read_model(tmp_path / "model.txt")
    np.testing.assert_array_equal(model.predict(DATA), unnamed.predict(X, raw_score=True))
    for columns in (3, 5):
        wide = np.column_stack([X, X])[:, :columns]
        with refused_data() as info:
            model.predict(wide)
        assert f"have {columns};" in info.value.reason


def test_names_that_the_data_lack(booster, tmp_path):
    booster.save_model(tmp_path / "model.txt")
    model = rs.read_model(tmp_path / "model.txt")
    with refused_data() as info:
        model.predict(rs.Dataset(X, Y, QID, [*NAMES[:3], "years"]))
    assert ": age;" in info.value.reason
    numbered = rs.Dataset(X, Y, QID)  # f1, f2, …: no names of their own
    np.testing.assert_array_equal(model.predict(numbered), model.predict(DATA))


def test_lightgbm_knows_categories(tmp_path):
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


def test_without_lightgbm_the_cure_is_named(booster, tmp_path, monkeypatch):
    def missing(name):
        raise ImportError(name)

    booster.save_model(tmp_path / "m.txt")
    monkeypatch.setattr(lightgbm_text, "import_module", missing)
    with pytest.raises(ImportError, match=r"\.\[baselines\]"):
        rs.read_model(tmp_path / "m.txt")


def test_commands_take_lightgbm_models(unnamed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    filled = np.nan_to_num(X)
    write_letor(rs.Dataset(filled, Y, QID), "test.txt")
    unnamed.save_model("booster.txt")
    assert is_model("booster.txt")
    scores = [float(line) for line in run("rank", "booster.txt", "test.txt").stdout.splitlines()]
    read = rs.read_dataset("test.txt")
    np.testing.assert_array_equal(scores, unnamed.predict(read.X, raw_score=True))
    measured = json.loads(run("evaluate", "test.txt", "--model", "booster.txt", "--json").stdout)
    assert measured["mean"]["map"] == rs.evaluate(np.array(scores), read, ["map"]).mean["map"]
    (tmp_path / "scores.txt").write_text("\n".join(map(str, filled[:, 0])))
    assert "booster" in run("compare", "test.txt", "booster.txt", "scores.txt").stdout
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


def ubjson(value):
    """As XGBoost writes it: lengths are L, arrays of numbers have one type."""
    if isinstance(value, dict):
        return b"{" + b"".join(_text(name) + ubjson(inner) for name, inner in value.items()) + b"}"
    if isinstance(value, str):
        return b"S" + _text(value)
    if isinstance(value, list) and value and all(isinstance(one, float) for one in value):
        return b"[$d#L" + struct.pack(f">q{len(value)}f", len(value), *value)
    if isinstance(value, list) and value and all(isinstance(one, int) for one in value):
        return b"[$l#L" + struct.pack(f">q{len(value)}i", len(value), *value)
    if isinstance(value, list):
        return b"[#L" + struct.pack(">q", len(value)) + b"".join(map(ubjson, value))
    return b"i" + struct.pack(">b", value)


def _text(text):
    return b"L" + struct.pack(">q", len(text.encode())) + text.encode()


def test_ubjson_says_what_it_holds():
    content = ubjson(XGBOOST)
    assert is_ubjson(content)
    assert not is_ubjson(json.dumps(XGBOOST).encode())
    assert decode_ubjson(content) == XGBOOST
    assert decode_ubjson(b"[TFZU\xc8D" + struct.pack(">d", 0.1) + b"]") == [True, False, None, 200, 0.1]


@pytest.mark.parametrize("length", range(1, len(ubjson(XGBOOST)), 61))
def test_ubjson_that_breaks_off(length):
    with refused_data() as info:
        decode_ubjson(ubjson(XGBOOST)[:length])
    assert "breaks off" in info.value.reason


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"{}x", "byte 2"),
        (b"q", "byte 0 is 'q'"),
        (b"[#d", "byte 2 is 'd'"),
        (b"[$d#L" + struct.pack(">q", 2**60), "breaks off"),
        (b"[$l#l" + struct.pack(">i", -1), "breaks off"),
        (b"[#L" + struct.pack(">q", 2**60), str(2**60)),
        (b"[" * 500, "nested"),
    ],
)
def test_damaged_ubjson(content, word):
    with refused_data() as info:
        decode_ubjson(content)
    assert word in info.value.reason


def changed(path, value):
    content = copy.deepcopy(XGBOOST)
    inner = content
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return content


BOOSTER = ("learner", "gradient_booster", "model")


@pytest.mark.parametrize(
    ("path", "value", "word"),
    [
        (("learner",), {}, "learner_model_param"),
        (("learner",), 3, ""),
        (("learner", "learner_model_param", "num_class"), "3", "several scores"),
        (("learner", "learner_model_param", "num_feature"), "many", "num_feature"),
        (("learner", "attributes"), {"best_iteration": "1"}, "best iteration"),
        (("learner", "feature_names"), ["a"], "1 names"),
        ((*BOOSTER, "trees"), [3], "trees[0]: expected"),
        ((*BOOSTER, "tree_info"), [1], "tree_info"),
        ((*BOOSTER, "iteration_indptr"), [0, 9], "iteration_indptr"),
        ((*BOOSTER, "trees", 0, "left_children"), [7, -1, -1], "node 7"),
        ((*BOOSTER, "trees", 0, "left_children"), [0, -1, -1], "node"),
        ((*BOOSTER, "trees", 0, "left_children"), [1], "per node"),
        ((*BOOSTER, "trees", 0, "split_indices"), [4, 0, 0], "0..3"),
        ((*BOOSTER, "trees", 0, "split_type"), [1, 0, 0], "categories"),
    ],
)
def test_damaged_xgboost_models_never_reach_xgboost(path, value, word, tmp_path, monkeypatch):
    monkeypatch.setattr(xgboost_model, "import_module", None)
    for name, content in (
        ("m.json", json.dumps(changed(path, value)).encode()),
        ("m.ubj", ubjson(changed(path, value))),
    ):
        (tmp_path / name).write_bytes(content)
        with refused_data(tmp_path / name) as info:
            rs.read_model(tmp_path / name)
        assert word in info.value.reason


def test_without_xgboost_the_cure_is_named(tmp_path, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(xgboost_model, "import_module", missing)
    (tmp_path / "m.json").write_text(json.dumps(XGBOOST))
    with pytest.raises(ImportError, match=r"\.\[xgboost\]"):
        rs.read_model(tmp_path / "m.json")


@pytest.mark.parametrize("place", ["", "a/b/objective.cc:27: ", "[00:22:43] a/b/objective.cc:27: "])
def test_an_error_of_xgboost_without_its_place(place, tmp_path, monkeypatch):
    class Fault(Exception):
        pass

    class Booster:
        def load_model(self, content):
            raise Fault(f"{place}Unknown objective: `zz`\nObjective candidate: rank:ndcg")

    stub = SimpleNamespace(Booster=Booster, core=SimpleNamespace(XGBoostError=Fault))
    monkeypatch.setattr(xgboost_model, "import_module", lambda name: stub)
    (tmp_path / "m.json").write_text(json.dumps(XGBOOST))
    with refused_data("m.json") as info:
        rs.read_model(tmp_path / "m.json")
    assert "(Unknown objective: `zz`)" in info.value.reason


@pytest.mark.parametrize("name", ["m.json", "m.ubj"])
def test_xgboost_scores_are_its_own(name, tmp_path):
    pytest.importorskip("xgboost", reason="xgboost is not installed")
    (tmp_path / name).write_bytes(ubjson(XGBOOST) if name == "m.ubj" else json.dumps(XGBOOST).encode())
    model = rs.read_model(tmp_path / name)
    assert (model.method, model.n_features) == ("XGBoost reg:squarederror", 4)
    goes_left = np.isnan(X[:, 1]) | (X[:, 1].astype(np.float32) < np.float32(0.25))
    expected = 0.5 + np.where(goes_left, -0.5, 1.25)
    for data in (DATA, SHUFFLED, X):
        np.testing.assert_allclose(model.predict(data), expected, rtol=1e-6)
