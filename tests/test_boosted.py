"""Model files of rankers that are not linear: scores, damaged files, the command line."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
import scipy.sparse as sp

import ranksieve as rs
from ranksieve.io.letor import write_letor
from ranksieve.model.boosted import BoostedModel, Feature, Steps, boosted_from_dict
from ranksieve.model.lightgbm_text import is_lightgbm, parse_lightgbm
from tests.refusals import refused_data
from tests.test_cli import refused, run

NAMES = [f"signal {j}" for j in range(6)]
DATA = rs.make_ranking(n_queries=30, n_features=6, n_informative=3, random_state=1)
DATA = rs.Dataset(DATA.X * 7, DATA.y, DATA.qid, NAMES)


def with_holes(dtype):
    X = DATA.X.astype(dtype)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    return rs.Dataset(X, DATA.y, DATA.qid, NAMES)


def trees(**parameters):
    return rs.baselines.LambdaMART(4, n_leaves=4, **parameters)


def steps(**parameters):
    return rs.baselines.RankBoost(15, **parameters)


@pytest.fixture(scope="module", params=["trees", "steps"])
def model(request):
    return {"trees": trees, "steps": steps}[request.param]().fit(DATA).to_model()


@pytest.fixture(scope="module")
def tree_file():
    return trees().fit(DATA).to_model().to_dict()


# --- the same scores -------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [trees, steps])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("normalise", "missing"),
    [("none", "auto"), ("z", "column_mean"), ("within_z", "indicator"), ("query_z", "query_min")],
)
@pytest.mark.filterwarnings("ignore:.*missing")
def test_a_model_file_has_bit_identical_scores(make, dtype, normalise, missing, tmp_path):
    data = with_holes(dtype)
    ranker = make(normalise=normalise, missing=missing).fit(data)
    ranker.to_model().save(tmp_path / "model.json")
    model = rs.read_model(tmp_path / "model.json")
    assert model == ranker.to_model()
    np.testing.assert_array_equal(model.predict(data), ranker.predict(data))
    np.testing.assert_array_equal(model.predict(data.X, data.qid), ranker.predict(data))


def test_columns_are_matched_by_name(model):
    order = np.array([3, 1, 5, 0, 2, 4])
    shuffled = rs.Dataset(DATA.X[:, order], DATA.y, DATA.qid, [NAMES[j] for j in order])
    np.testing.assert_array_equal(model.predict(shuffled), model.predict(DATA))
    np.testing.assert_array_equal(model.predict(sp.csr_array(DATA.X)), model.predict(DATA))
    lacking = rs.Dataset(DATA.X, DATA.y, DATA.qid, [*NAMES[:5], "other"])
    if NAMES[5] in model.names:
        with refused_data() as info:
            model.predict(lacking)
        assert "signal 5" in info.value.reason
    with refused_data() as info:
        model.predict(DATA.X[:, :5])
    assert "X has 5" in info.value.reason


def test_features_complete_in_training_must_not_be_missing(model):
    X = DATA.X.copy()
    X[9000 % len(X), model.columns[0]] = np.nan
    with refused_data() as info:
        model.predict(X)
    assert f"of row {9000 % len(X)} is missing" in info.value.reason


def test_a_model_without_features(tmp_path):
    for ranker in (rs.baselines.LambdaMART(3, min_leaf_docs=10**6), rs.baselines.RankBoost(3)):
        data = (
            DATA if isinstance(ranker, rs.baselines.LambdaMART) else rs.Dataset(0 * DATA.X, DATA.y, DATA.qid)
        )
        ranker.fit(data).to_model().save(tmp_path / "model.json")
        model = rs.read_model(tmp_path / "model.json")
        assert model.names == []
        np.testing.assert_array_equal(model.predict(data), ranker.predict(data))


def test_the_file_records_parameters_and_data(model):
    content = model.to_dict()
    assert content["data"] == {"train": trees().fit(DATA).to_model().data["train"]}
    assert content["parameters"]["n_rounds"] in (4, 15)
    assert content["version"] == rs.__version__
    assert boosted_from_dict(json.loads(json.dumps(content, allow_nan=False))) == model


def test_lightgbm_reads_the_text_of_the_file(tree_file):
    lightgbm = pytest.importorskip("lightgbm")
    booster = lightgbm.Booster(model_str="\n".join(tree_file["ensemble"]["text"]))
    expected = boosted_from_dict(tree_file).predict(DATA)
    np.testing.assert_array_equal(booster.predict(DATA.X, raw_score=True), expected)


def test_texts():
    model = BoostedModel((Feature("a", 0),), 1, Steps((0,), (0.5,), (2.0,)), method="RankBoost")
    assert model.ensemble.size_text == "1 step"
    assert model.predict(np.array([[0.5], [0.6]])).tolist() == [0.0, 2.0]


# --- damaged files ---------------------------------------------------------------------------------------


FILLED = {"policy": "column_mean", "means": [1.0]}


def changed(content, path, value):
    content = copy.deepcopy(content)
    inner = content
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return content


@pytest.mark.parametrize(
    ("path", "value", "word"),
    [
        (("format_version",), 2, "version 2"),
        (("n_features",), 0, "n_features is 0"),
        (("n_features",), 10**12, "n_features is 1000000000000"),
        (("n_features",), 2, "0..1"),
        (("features", 0, "name"), "signal 4", "twice"),
        (("features",), [], "inputs"),
        (("ensemble",), 3, "ensemble"),
        (("ensemble", "kind"), "pickle", "pickle"),
        (("ensemble", "text"), ["tree"], "'end of trees'"),
        (("ensemble", "text"), "tree", "ensemble.text: expected 'array'"),
        (("ensemble", "inputs", 0), 77, "inputs"),
        (("missing",), {"policy": "column_mean", "features": ["x"], "means": [1.0]}, "missing"),
        (("extra",), 1, "'extra'"),
    ],
)
def test_damaged_files(tree_file, path, value, word):
    with refused_data("m.json") as info:
        boosted_from_dict(changed(tree_file, path, value), "m.json")
    assert word in info.value.reason


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("max_feature_idx=5", "max_feature_idx=2000000000", "feature_names"),
        ("max_feature_idx=5\n", "", "the header"),
        ("num_class=1", "num_class=3", "num_class"),
        ("Tree=1", "Tree=7", "Tree=7"),
        ("num_leaves=4", "num_leaves=4000000000", "4 values of leaf_value"),
        ("num_leaves=4", "num_leaves=0", "linear leaves"),
        ("is_linear=0", "is_linear=1", "linear leaves"),
        ("split_feature=", "split_feature=9 ", "4 values of split_feature"),
        ("left_child=1", "left_child=0", "left_child"),
        ("left_child=1", "left_child=-9", "left_child"),
        ("decision_type=2", "decision_type=x", "decision_type of tree 0"),
        ("decision_type=2", "decision_type=1", "cat_boundaries"),
        ("threshold=", "threshold=nan ", "4 values of threshold"),
        ("end of trees", "", "'end of trees'"),
    ],
)
def test_damaged_trees(tree_file, old, new, word):
    text = "\n".join(tree_file["ensemble"]["text"])
    assert old in text
    with refused_data() as info:
        parse_lightgbm(text.replace(old, new, 1))
    assert word in info.value.reason


def test_trees_must_split_on_existing_columns(tree_file):
    lines = tree_file["ensemble"]["text"]
    number = next(k for k, line in enumerate(lines) if line.startswith("split_feature="))
    content = changed(tree_file, ("ensemble", "text", number), "split_feature=6 0 0")
    with refused_data() as info:
        boosted_from_dict(content)
    assert "0..5" in info.value.reason
    fewer = changed(tree_file, ("features",), tree_file["features"][1:])
    fewer["ensemble"]["inputs"] = fewer["ensemble"]["inputs"][1:]
    with refused_data() as info:
        boosted_from_dict(fewer)
    assert "inputs" in info.value.reason


def test_a_truncated_text_is_refused_or_equal(tree_file):
    text = "\n".join(tree_file["ensemble"]["text"])
    end = text.index("end of trees")
    for length in range(0, end, 37):
        with refused_data():
            parse_lightgbm(text[:length])
    assert is_lightgbm(text)
    cut, whole = parse_lightgbm(text[: end + len("end of trees")]), parse_lightgbm(text)
    for one, other in zip(cut.trees, whole.trees, strict=True):
        np.testing.assert_array_equal(one.scores(DATA.X), other.scores(DATA.X))


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ({"inputs": [0], "thresholds": [0.5]}, "weights"),
        ({"inputs": [0], "thresholds": [0.5], "weights": []}, "0 weights"),
        ({"inputs": [0.5], "thresholds": [0.5], "weights": [1.0]}, "inputs[0]: expected 'int'"),
        ({"inputs": [3], "thresholds": [0.5], "weights": [1.0]}, "input outside"),
    ],
)
def test_damaged_steps(content, word):
    model = BoostedModel((Feature("a", 0),), 1, Steps((0,), (0.5,), (2.0,)))
    with refused_data() as info:
        boosted_from_dict({**model.to_dict(), "ensemble": {"kind": "steps", **content}})
    assert word in info.value.reason


# --- command line ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    place = tmp_path_factory.mktemp("fitted")
    write_letor(
        rs.make_ranking(n_queries=20, n_features=5, n_informative=2, random_state=2), place / "train.txt"
    )
    outputs = {}
    for method in ("lambdamart", "rankboost"):
        arguments = ("--method", method, "--set", "n_rounds=5", "-o", place / f"{method}.json")
        outputs[method] = run("fit", place / "train.txt", *arguments).stdout
    return place, outputs


@pytest.mark.parametrize(("method", "parts"), [("lambdamart", "5 trees"), ("rankboost", "5 steps")])
def test_fit_writes_a_file_that_commands_read(fitted, method, parts):
    place, outputs = fitted
    assert f"has {parts} and uses " in outputs[method]
    file, train = place / f"{method}.json", place / "train.txt"
    model, data = rs.read_model(file), rs.read_dataset(train)
    scores = run("rank", file, train).stdout.splitlines()
    np.testing.assert_array_equal([float(score) for score in scores], model.predict(data))
    measured = json.loads(run("evaluate", file, train, "--json").stdout)
    assert measured["mean"]["map"] == rs.evaluate(model.predict(data), data, ["map"]).mean["map"]
    (place / "scores.txt").write_text("\n".join(scores))
    assert "lambdamart" in run("compare", place / "lambdamart.json", place / "scores.txt", train).stdout


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (("--max-features", 3), "--max-features"),
        (("--metric", "map"), "--metric"),
        (("--valid", "train.txt"), "--valid"),
        (("--must-not", "f1"), "--must-not"),
        (("--report", "page.html"), "--report"),
        (("--stream",), "lambdamart"),
    ],
)
def test_options_of_linear_methods_are_refused(fitted, options, name, monkeypatch):
    monkeypatch.chdir(fitted[0])
    assert name in refused("fit", "train.txt", "--method", "lambdamart", *options, "-o", "other.json")
    assert not (fitted[0] / "other.json").exists()


@pytest.mark.parametrize(
    "command",
    [
        ("explain", "lambdamart.json", "train.txt", "--drop"),
        ("scorecard", "lambdamart.json", "train.txt", "-o", "card.json"),
        ("export", "lambdamart.json", "--to", "solr", "-o", "out"),
        ("verify", "lambdamart.json", "train.txt"),
    ],
)
def test_commands_for_linear_models_refuse_other_models(fitted, command, monkeypatch):
    monkeypatch.chdir(fitted[0])
    assert "linear" in refused(*command)
