"""Curves in the formats of engines: trees, thresholds, missing values, readers of other packages."""

from __future__ import annotations

import json
import math
import warnings

import numpy as np
import pytest

from ranksieve.export import EXPORTS, export_model, make_export
from ranksieve.export.solr import SLACK, _threshold
from ranksieve.export.trees import MISSING, Split, curve_trees, lowest_score
from ranksieve.model.foreign import read_model
from ranksieve.model.linear import Curve, LinearModel, Term
from ranksieve.rankers import SparseRanker
from tests.contracts.test_export_contract import NAMES, curved, edge_rows, exported, reported_shift, unscaled
from tests.engine_readers import READERS, lambda_mart, xgboost_trees
from tests.refusals import refused_data, refused_parameter
from tests.test_curves import curved_data

ZERO_OR_NAN = ("elasticsearch", "opensearch", "vespa", "vespa_second_phase", "vespa_global_phase")
READS_ZERO = ("solr", "ranklib", *ZERO_OR_NAN)


def one_curve(thresholds, levels, missing=0.0, weight=1.0):
    curve = Curve(tuple(map(float, thresholds)), tuple(map(float, levels)), missing)
    return LinearModel((Term("f1", 0, weight, curve),), 1)


def depth(node):
    return 1 + max(depth(node.left), depth(node.right)) if isinstance(node, Split) else 0


def level(node, value):
    while isinstance(node, Split):
        node = node.left if value < node.threshold else node.right
    return node


def made(model, target, **options):
    names = {"f1": "1" if target == "ranklib" else "attribute(f1)"}
    names |= options.pop("names", {})
    options |= {"names": names} if "names" in EXPORTS[target].takes else {}
    return make_export(model, target, options)


# --- trees -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_levels", range(1, 66))
def test_trees_are_balanced_and_have_a_leaf_per_level(n_levels):
    levels = np.random.default_rng(n_levels).normal(size=n_levels)
    model = one_curve(np.arange(1, n_levels), levels, missing=levels[-1])
    (root,) = curve_trees(model, "X", single=False)
    assert depth(root) <= math.ceil(math.log2(n_levels))
    assert [level(root, k + 0.5) for k in range(n_levels)] == levels.tolist()
    assert level(root, math.nan) == levels[-1]
    (root,) = curve_trees(one_curve(np.arange(1, n_levels), levels, missing=0.5), "X", single=False)
    assert depth(root) <= math.ceil(math.log2(n_levels + 1))
    assert [level(root, k + 0.5) for k in range(n_levels)] == levels.tolist()
    assert level(root, math.nan) == level(root, MISSING) == 0.5


def test_thresholds_equal_in_float32_are_refused():
    model = one_curve([1.0, 1.0 + 1e-9], [0, 1, 2])
    assert depth(curve_trees(model, "X", single=False)[0]) == 2
    for target in ("elasticsearch", "opensearch", "solr", "ranklib", "onnx"):
        with refused_data() as info:
            made(model, target)
        assert "two thresholds of f1 are 1 in 32-bit numbers" in info.value.reason


@pytest.mark.parametrize("target", ["elasticsearch", "solr", "ranklib", "onnx"])
def test_numbers_too_large_for_float32_are_refused(target):
    for model in (one_curve([1e39], [0, 1]), one_curve([1.0], [0, 1e39]), one_curve([1.0], [0, 1], 1e39)):
        with refused_data() as info:
            made(model, target)
        assert "too large for 32-bit numbers" in info.value.reason


# --- thresholds ------------------------------------------------------------------------------------------


def test_the_last_value_on_the_left_is_the_float32_below_the_threshold():
    for threshold in (0.0, 1.0, -1.0, 0.1, 1e-45, -3e38, MISSING):
        t = np.float32(threshold)
        last = np.float32(Split(float(str(t)), 0.0, 1.0).last_left)
        assert last < t
        assert np.nextafter(last, np.float32(np.inf)) == t


def test_thresholds_are_exact_after_solr_has_added_its_slack():
    rng = np.random.default_rng(0)
    sizes = 10.0 ** rng.uniform(-5, 38, 20_000)
    numbers = np.concatenate([sizes, -sizes, np.arange(-300, 300) / 4, 2.0 ** np.arange(-18, 120), [MISSING]])
    n_refused = 0
    for number in numbers.astype(np.float32):
        split = Split(float(str(number)), 0.0, 1.0)
        try:
            text = _threshold(split, "f1")
        except ValueError:
            n_refused += 1
            continue
        effective = np.float32(text) + SLACK
        expected = np.nextafter(number, np.float32(-np.inf))
        assert effective == expected or (number == 0 and -2e-13 < effective < 0)
    assert n_refused < 0.003 * len(numbers)
    for number in (1e-9, -1e-9):
        with refused_data() as info:
            made(one_curve([number], [0, 1]), "solr")
        assert "adds 1e-06 to every threshold" in info.value.reason


# --- negative scores -------------------------------------------------------------------------------------


def test_the_lowest_score_is_that_of_the_lowest_levels():
    assert lowest_score(one_curve([1.0], [0.0, 2.0], -3.0, weight=-1.0)) == -2.0
    assert lowest_score(one_curve([1.0], [0.0, 2.0], -3.0)) == -3.0


@pytest.mark.parametrize("target", ["elasticsearch", "opensearch", "solr"])
def test_scores_are_shifted_only_if_one_can_be_negative(target):
    assert made(one_curve([1.0], [0.0, 2.0]), target).notes == ()
    (note,) = made(one_curve([1.0], [0.0, -2.0]), target).notes
    assert note.startswith("Scores are 2.02 higher than the model's, whose lowest score by its levels is -2,")


# --- missing values --------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", EXPORTS)
def test_a_learned_level_for_missing_values_is_written_or_warned_about(target):
    model = one_curve([1.0], [0.0, 2.0], 0.5)
    if not EXPORTS[target].curves:
        return
    if target in READS_ZERO:
        with pytest.warns(UserWarning, match=r"learned levels for missing values of f1, but .* as 0; give"):
            made(model, target)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            made(model, target)


@pytest.mark.parametrize("target", READS_ZERO)
def test_a_note_if_0_has_another_level_than_a_missing_value(target):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        notes = made(one_curve([-1.0], [0.0, 2.0]), target).notes
        assert made(one_curve([1.0], [0.0, 2.0]), target).notes == ()
    assert any(note.startswith("A missing value of f1 adds nothing to the model's score") for note in notes)


@pytest.mark.filterwarnings("ignore:the model learned levels")
@pytest.mark.parametrize("target", READS_ZERO)
def test_the_advised_default_leads_to_the_level_of_missing_values(target, tmp_path):
    model = curved(missing=True)
    data = edge_rows(model, True, target)
    default = np.where(np.isnan(data.X), float(f"{MISSING:.8g}"), data.X)
    result = exported(model, target, tmp_path)
    names = {"ranklib": "{1}", "solr": "{0}", "elasticsearch": "{0}", "opensearch": "{0}"}
    columns = {
        names.get(target, "attribute({0})").format(n, j + 1): default[:, j] for j, n in enumerate(NAMES)
    }
    place = result.files[0].parent if EXPORTS[target].folder else result.files[0]
    expected = model.predict(data) + reported_shift(result)
    np.testing.assert_allclose(READERS[target](place, columns), expected, rtol=0, atol=1e-5)


def test_plugins_that_ignore_the_missing_branch_reach_the_level_too():
    """NaN goes right at every split there, as ``missing`` says; older ones read 0."""
    with pytest.warns(UserWarning, match="may, depending on the plugin's version, read them as 0"):
        product = made(one_curve([1.0, 2.0, 3.0], [0.0, 2.0, 1.0, 4.0], 0.5), "elasticsearch")
    definition = json.loads(product.files["model.json"])["model"]["model"]["definition"]
    column = {"attribute(f1)": [math.nan, 0.5, 1.0, 2.0, 3.0]}
    expected = [0.5, 0.0, 2.0, 1.0, 4.0]
    np.testing.assert_array_equal(xgboost_trees(definition, column), expected)
    always_right = [{**tree, "missing": tree["no"]} for tree in json.loads(definition)]
    assert json.loads(definition) == always_right
    assert '"missing": 1,' not in definition  # node 1 is the left child of the root


@pytest.mark.filterwarnings("ignore:the model learned levels")
@pytest.mark.parametrize("target", [target for target, entry in EXPORTS.items() if entry.curves])
def test_a_fitted_model_with_missing_values(target, fitted_with_holes, tmp_path):
    model, data = fitted_with_holes
    assert any(term.curve.missing for term in model.terms)
    names = {name: f"attribute({name})" for name in model.names} if target.startswith("vespa") else {}
    options = {"names": names} if names else {}
    result = export_model(model, target, tmp_path / "out.py", **options)
    X = np.where(np.isnan(data.X), MISSING, data.X) if target in READS_ZERO else data.X
    as_named = {term.name: str(term.index + 1) if target == "ranklib" else term.name for term in model.terms}
    columns = {names.get(n, as_named[n]): X[:, j] for n, j in zip(model.names, model.columns, strict=True)}
    columns = {name: column.tolist() for name, column in columns.items()}
    theirs = unscaled(
        result, target, np.asarray(READERS[target](tmp_path / "out.py", columns), dtype=np.float64)
    )
    np.testing.assert_allclose(theirs, model.predict(data) + reported_shift(result), rtol=0, atol=1e-5)


@pytest.fixture(scope="module")
def fitted_with_holes():
    data = curved_data()
    return SparseRanker(shape="curves", max_features=3, n_alphas=12).fit(data).to_model(), data


# --- readers of other packages ---------------------------------------------------------------------------


def test_the_reader_of_ranklib_models_has_the_same_scores(tmp_path):
    model = curved()
    (file,) = exported(model, "ranklib", tmp_path).files
    data = edge_rows(model, holes=False)
    theirs = read_model(file).predict(data)
    np.testing.assert_allclose(theirs, model.predict(data), rtol=0, atol=1e-5)
    text = "".join(line for line in file.read_text().splitlines() if not line.startswith("##"))
    columns = {str(j + 1): data.X[:, j] for j in range(6)}
    np.testing.assert_array_equal(theirs, lambda_mart(text, columns))


def test_models_of_lightgbm_load_in_lightgbm(tmp_path):
    booster = pytest.importorskip("lightgbm").Booster
    for missing in (False, True):
        model = curved(missing=missing)
        (file,) = exported(model, "lightgbm", tmp_path).files
        data = edge_rows(model, missing, "lightgbm")
        loaded = booster(model_file=file)
        assert loaded.feature_name() == NAMES
        np.testing.assert_array_equal(loaded.predict(data.X), read_model(file).predict(data))
        np.testing.assert_allclose(loaded.predict(data.X), model.predict(data), rtol=0, atol=1e-14)
        assert loaded.dump_model()["max_feature_idx"] == 5


def test_leaves_of_xgboost_hold_their_values_where_vespa_reads_them(tmp_path):
    """XGBoost stores a leaf as a condition and as a base weight; Vespa's importer reads the second."""
    (file,) = exported(curved(), "xgboost", tmp_path).files
    for tree in json.loads(file.read_text())["learner"]["gradient_booster"]["model"]["trees"]:
        leaves = [k for k, child in enumerate(tree["left_children"]) if child == -1]
        assert [tree["base_weights"][k] for k in leaves] == [tree["split_conditions"][k] for k in leaves]


def test_models_of_xgboost_load_in_xgboost(tmp_path):
    xgboost = pytest.importorskip("xgboost")
    for missing in (False, True):
        model = curved(missing=missing)
        (file,) = exported(model, "xgboost", tmp_path).files
        data = edge_rows(model, missing)
        loaded = xgboost.Booster(model_file=file)
        theirs = loaded.predict(xgboost.DMatrix(data.X, feature_names=NAMES))
        np.testing.assert_array_equal(theirs, read_model(file).predict(data))
        np.testing.assert_allclose(theirs, model.predict(data), rtol=0, atol=1e-5)


def test_float64_graphs_compare_in_float64(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    t = 1.0 + 2.0**-40
    product = make_export(one_curve([t, 2.0], [0.0, 1.0, 3.0], 0.25), "onnx", {"dtype": "float64"})
    assert "rounded to float32" in product.notes[0]
    (graph,) = product.files.values()
    session = onnxruntime.InferenceSession(graph)
    X = np.array([[np.nextafter(t, 0)], [t], [2.0], [np.nan]])
    (scores,) = session.run(["scores"], {"features": X})
    assert scores.dtype == np.float64
    np.testing.assert_array_equal(scores, [0.0, 1.0, 3.0, 0.25])


# --- Elasticsearch's own learning to rank ----------------------------------------------------------------


def test_the_trained_model_has_the_queries_of_its_features(tmp_path):
    model = one_curve([0.7], [0.0, 2.0], 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        product = make_export(model, "elasticsearch_ltr", {"name": "shop"})
    content, search = (json.loads(product.files[name]) for name in ("model.json", "query.json"))
    (extractor,) = content["inference_config"]["learning_to_rank"]["feature_extractors"]
    query = {"match": {"f1": "{{query}}"}}
    assert extractor["query_extractor"] == {"feature_name": "f1", "query": query, "default_score": MISSING}
    learned = {"model_id": "shop", "params": {"query": "USER_QUERY"}}
    assert search["rescore"] == {"window_size": 100, "learning_to_rank": learned}
    tree = content["definition"]["trained_model"]["ensemble"]["trained_models"][0]["tree"]
    thresholds = {node["threshold"] for node in tree["tree_structure"] if "threshold" in node}
    assert thresholds == {float(np.float32(0.7)), MISSING}
    definitions = {"f1": {"script_score": {"query": {"match_all": {}}, "script": "{{a}}"}}}
    plugin = {"features": [{"name": "f1", "template": definitions["f1"]}]}
    for featureset in (definitions, plugin):
        product = make_export(model, "elasticsearch_ltr", {"featureset": featureset})
        assert "USER_QUERY" in product.files["query.json"]
        assert json.loads(product.files["query.json"])["rescore"]["learning_to_rank"]["params"] == {
            "a": "USER_QUERY"
        }
    with refused_data() as info:
        make_export(model, "elasticsearch_ltr", {"featureset": {"other": definitions["f1"]}})
    assert "no query for f1" in info.value.reason


@pytest.mark.parametrize("name", ["Shop", "shop_", "a b", "x" * 65])
def test_ids_of_trained_models_are_checked(name):
    with refused_parameter("name", name):
        make_export(one_curve([1.0], [0.0, 1.0]), "elasticsearch_ltr", {"name": name})
