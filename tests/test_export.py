"""Exports apart from parity of scores: shifts, numbers, feature sets, names, files, the command line."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.data.dataset import Dataset
from ranksieve.data.queries import group_queries
from ranksieve.export import EXPORTS, export_model
from ranksieve.export.lucene import changed_pairs, min_possible_score, round_up
from ranksieve.export.vespa import decimal
from ranksieve.io.letor import write_letor
from ranksieve.model.linear import Curve, LinearModel, Term
from ranksieve.prepare import KEEP_MISSING, NOT_NORMALISED, MissingPolicy, Normalisation, Preparation
from tests.contracts.test_export_contract import SCRIPTS, unscaled
from tests.engine_readers import READERS
from tests.refusals import refused_data, refused_parameter
from tests.test_cli import refused, run

LUCENE = ("elasticsearch", "opensearch", "solr")
HYBRID = ("elasticsearch_linear", "opensearch_hybrid", "mongodb")
LINES = [target for target, entry in EXPORTS.items() if entry.lines]
VESPA = ("vespa", "vespa_second_phase", "vespa_global_phase")


# --- small models with features f1, f2, … ----------------------------------------------------------------


def weighing(*weights, normalisation=NOT_NORMALISED, missing=KEEP_MISSING, intercept=0.0):
    terms = tuple(Term(f"f{j + 1}", j, w) for j, w in enumerate(weights))
    return LinearModel(terms, len(weights), intercept, Preparation(missing, normalisation))


def normalisation(kind, centre, scale):
    return Normalisation(kind, tuple(f"f{j + 1}" for j in range(len(centre))), tuple(centre), tuple(scale))


BY_RANGE = weighing(0.5, 2.0, normalisation=Normalisation("query_min_max"))


def content(result, name):
    return json.loads(next(file for file in result.files if file.name == name).read_text())


# --- negative scores -------------------------------------------------------------------------------------


def test_the_least_score_of_features_that_are_not_negative():
    assert min_possible_score(weighing(1.0, 2.0, intercept=-3.0)) == -3
    assert min_possible_score(weighing(1.0, 2.0)) == 0
    assert min_possible_score(weighing(1.0, -2.0)) is None
    z = normalisation("z", [4.0, 10.0], [2.0, 5.0])
    assert min_possible_score(weighing(1.0, 3.0, normalisation=z)) == pytest.approx(-4 / 2 - 3 * 10 / 5)
    assert min_possible_score(weighing(1.0, -3.0, normalisation=z)) is None
    ranged = normalisation("min_max", [4.0, 10.0], [2.0, 5.0])
    assert min_possible_score(weighing(1.0, -3.0, normalisation=ranged)) == pytest.approx(-4 / 2 - 3)


@pytest.mark.parametrize("value", [1.0, 0.0123456, 987.6, 4.2e-9, 1e7, 3.14159e20])
def test_a_shift_is_rounded_up_to_three_digits(value):
    assert value <= round_up(value) <= value * 1.0101
    assert float(f"{round_up(value):.3g}") == round_up(value)


@pytest.mark.parametrize("target", LUCENE)
def test_no_shift_without_negative_scores(target, tmp_path):
    result = export_model(weighing(0.5, 2.0), target, tmp_path / "out")
    assert result.notes == ()
    assert "norm" not in json.dumps(content(result, "model.json"))


@pytest.mark.parametrize("target", LUCENE)
def test_a_shift_from_only_the_model(target, tmp_path):
    model = weighing(1.0, 3.0, normalisation=normalisation("z", [4.0, 10.0], [2.0, 5.0]))
    result = export_model(model, target, tmp_path / "out")
    assert result.notes[0].startswith(
        "Scores are 8.08 higher than the model's, whose lowest score by its weights"
    )
    assert "The constant 8.08 is in the normaliser of f2" in result.notes[1]
    scores = READERS[target](tmp_path / "out", {"f1": [0.0, 4.0], "f2": [0.0, 10.0]})
    np.testing.assert_allclose(scores, [0.08, 8.08], rtol=1e-5)


@pytest.mark.parametrize("target", LUCENE)
def test_the_lowest_score_can_need_a_sample(target, tmp_path):
    model, sample = weighing(1.0, -2.0), Dataset([[1.0, 3.0], [5.0, 0.0]], [0, 1], [0, 0])
    with pytest.warns(UserWarning, match="pass documents as sample"):
        assert export_model(model, target, tmp_path / "a").notes == ()
    result = export_model(model, target, tmp_path / "b", sample=sample)
    assert "5.05 higher than the model's, whose lowest score over 2 sample documents is -5" in result.notes[0]
    assert READERS[target](tmp_path / "b", {"f1": [1.0], "f2": [3.0]})[0] >= 0


# --- numbers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [*LUCENE, "onnx"])
def test_numbers_outside_the_range_of_float32(target, tmp_path):
    with refused_data() as info:
        export_model(weighing(1e39), target, tmp_path / "out")
    assert "weight of f1 is 1e+39" in info.value.reason
    with pytest.warns(UserWarning, match="weight of f2 is 1e-50"):
        export_model(weighing(1.0, 1e-50), target, tmp_path / "out")
    tiny = normalisation("z", [0.0], [1e-60])
    with refused_data() as info:
        export_model(weighing(1.0, normalisation=tiny), target, tmp_path / "out")
    assert "scale of f1 is 1e-60" in info.value.reason


def test_graph_constants_outside_the_range_of_float32(tmp_path):
    with refused_data() as info:
        export_model(weighing(1.0, intercept=1e39), "onnx", tmp_path / "m.onnx")
    assert "intercept" in info.value.reason
    mean = MissingPolicy("column_mean", ("f1",), (1e39,))
    with refused_data() as info:
        export_model(weighing(1.0, missing=mean), "onnx", tmp_path / "m.onnx")
    assert "mean" in info.value.reason
    export_model(weighing(1.0, intercept=1e39, missing=mean), "onnx", tmp_path / "m.onnx", dtype="float64")


@pytest.mark.parametrize("target", ["vespa", "ranklib", *LUCENE])
def test_infinite_weights_are_never_exported(target, tmp_path):
    model = weighing(1e10, normalisation=normalisation("z", [1.0], [1e-300]))
    names = {"names": {"f1": "bm25(title)"}} if target == "vespa" else {}
    with refused_data() as info:
        export_model(model, target, tmp_path / "out", **names)
    assert "scale" in info.value.reason


@pytest.mark.parametrize("target", [target for target in LINES if target != "json"])
def test_a_model_with_only_zero_weights_is_refused(target, tmp_path):
    with refused_data() as info:
        export_model(weighing(0.0, 0.0, intercept=-1.0), target, tmp_path / "out")
    assert "no feature" in info.value.reason


@pytest.mark.parametrize("target", LUCENE)
def test_written_numbers_are_float32_in_short_form(target, tmp_path):
    weight = 0.1 + 0.2
    text = export_model(weighing(weight), target, tmp_path / "out").files[0].read_text()
    assert "0.3" in text
    assert "0.30" not in text
    assert np.float32(0.3) == np.float32(weight)


@pytest.mark.parametrize("target", LUCENE)
def test_narrow_ranges_are_exported_as_standard_normalisation(target, tmp_path):
    """1000.1 … 1000.101: in float32 the difference of the bounds is 2 % off, but the stored range is not."""
    narrow = normalisation("min_max", [1000.1, 0.0], [0.001, 8.0])
    X = np.array([[1000.1005, 1.0], [1000.1012, 8.0]], dtype=np.float32)
    model, sample = weighing(0.5, 2.0, normalisation=narrow), Dataset(X, [0, 1], [0, 0])
    result = export_model(model, target, tmp_path / "out", sample=sample)
    assert result.notes == ()
    scores = READERS[target](tmp_path / "out", {"f1": X[:, 0].tolist(), "f2": X[:, 1].tolist()})
    np.testing.assert_allclose(np.diff(scores), np.diff(model.predict(sample)), rtol=1e-5)
    text = json.dumps(content(result, "model.json")).lower()
    assert text.count("standard") == 1 + text.count("standard_deviation")
    assert text.count("max") >= 1


@pytest.mark.parametrize("target", LUCENE)
def test_order_of_bounds_below_zero(target, tmp_path):
    """The plugin's setter of the maximum compares it with the minimum, which is just above 0 by default."""
    below = normalisation("min_max", [-9.0, -8.0], [4.0, 2.0])
    sample = Dataset([[-9.0, -8.0]], [0], [0])
    export_model(weighing(1.0, 2.0, normalisation=below), target, tmp_path / "out", sample=sample)
    scores = READERS[target](tmp_path / "out", {"f1": [-9.0, -5.0], "f2": [-8.0, -6.0]})
    np.testing.assert_allclose(scores, [0.0, 3.0])


@pytest.mark.parametrize("value", [1e-12, -3.5e-7, 0.37, -12.0, 1e16, 1 / 3, 5e-324])
def test_vespa_numbers_have_no_exponent(value):
    assert "e" not in decimal(value)
    assert "." in decimal(value)
    assert float(decimal(value)) == value


# --- feature sets and queries ----------------------------------------------------------------------------


def es_feature(name, **rest):
    return {"name": name, "params": ["keywords"], "template": {"match": {name: "{{keywords}}"}}, **rest}


ES_SET = [es_feature("unused"), es_feature("f2", params=["user"]), es_feature("f1")]


@pytest.mark.parametrize("target", ["elasticsearch", "opensearch"])
@pytest.mark.parametrize(
    "featureset",
    [
        {"featureset": {"name": "all", "features": ES_SET}},
        {"name": "all", "features": ES_SET},
        {"_source": {"featureset": {"features": ES_SET}}},
        ES_SET,
    ],
)
def test_the_feature_set_is_trimmed(target, featureset, tmp_path):
    result = export_model(
        weighing(0.5, 2.0), target, tmp_path / "out", featureset=featureset, name="m", store="s"
    )
    assert content(result, "featureset.json") == {
        "featureset": {"name": "m_features", "features": ES_SET[1:]}
    }
    query = content(result, "query.json")["rescore"]["query"]["rescore_query"]["sltr"]
    assert query == {
        "params": {"user": "USER_QUERY", "keywords": "USER_QUERY"},
        "model": "m",
        "store": "s",
    }
    np.testing.assert_allclose(READERS[target](tmp_path / "out", {"f1": [1.0], "f2": [10.0]}), [20.5])
    create, upload, _ = result.load
    assert "_ltr/s/_featureset/m_features'" in create
    assert "_ltr/s/_featureset/m_features/_createmodel'" in upload


def test_without_a_feature_set_the_query_names_the_active_features(tmp_path):
    result = export_model(weighing(0.5, 2.0), "elasticsearch", tmp_path / "out")
    assert [file.name for file in result.files] == ["model.json", "query.json"]
    query = content(result, "query.json")["rescore"]["query"]
    assert query["rescore_query"]["sltr"]["active_features"] == ["f1", "f2"]
    assert (query["query_weight"], query["rescore_query_weight"]) == (0, 1)
    assert len(result.load) == 2


def test_inputs_of_derived_features_are_kept(tmp_path):
    derived = {"name": "f1", "template_language": "derived_expression", "template": "ln(clicks + 1) * half"}
    half = {
        "name": "half",
        "template_language": "script_feature",
        "template": {"source": "vector.get('views')"},
    }
    features = [es_feature("clicks"), es_feature("other"), es_feature("views"), half, derived]
    result = export_model(weighing(0.5), "elasticsearch", tmp_path / "out", featureset=features)
    names = [feature["name"] for feature in content(result, "featureset.json")["featureset"]["features"]]
    assert names == ["clicks", "views", "half", "f1"]
    scores = READERS["elasticsearch"](tmp_path / "out", {n: [4.0] for n in names})
    np.testing.assert_allclose(scores, [2.0])


def test_solr_features_are_trimmed_and_put_in_the_store(tmp_path):
    def feature(name, text):
        return {
            "name": name,
            "class": "org.apache.solr.ltr.feature.SolrFeature",
            "params": {"q": text},
            "store": "old",
        }

    features = [feature("f1", "{!field f=title}${words}"), feature("x", "${other}"), feature("f2", "price")]
    result = export_model(
        weighing(0.5, 2.0), "solr", tmp_path / "out", featureset=features, store="shop", name="m"
    )
    stored = content(result, "features.json")
    assert [(f["name"], f["store"]) for f in stored] == [("f1", "shop"), ("f2", "shop")]
    rq = content(result, "query.json")["params"]["rq"]
    assert rq == "{!ltr model=m reRankDocs=1000 efi.words='USER_QUERY'}"
    assert content(result, "model.json")["store"] == "shop"
    np.testing.assert_allclose(READERS["solr"](tmp_path / "out", {"f1": [1.0], "f2": [10.0]}), [20.5])


@pytest.mark.parametrize("target", LUCENE)
@pytest.mark.parametrize(
    ("features", "word"),
    [
        ([es_feature("f1")], "lacks f2"),
        ({"features": {"f1": 1}}, "must be a list"),
        (["f1", "f2"], "must be a list"),
        ("f1", "must be a list"),
        ([{"name": ["f1"]}], "must be a list"),
        ([es_feature("f1"), es_feature("f2"), es_feature("f1")], "'f1' twice"),
    ],
)
def test_unsuitable_feature_sets_are_refused(target, features, word, tmp_path):
    with refused_data() as info:
        export_model(weighing(0.5, 2.0), target, tmp_path / "out", featureset=features)
    assert word in info.value.reason
    assert not (tmp_path / "out").exists()


# --- names and options -----------------------------------------------------------------------------------


@pytest.mark.parametrize("store", ["models", "feature_sets", "Shop", "a b", ""])
def test_invalid_store_names(store, tmp_path):
    with refused_parameter("store", store):
        export_model(weighing(0.5), "elasticsearch", tmp_path / "out", store=store)


@pytest.mark.parametrize(
    "name",
    [
        "bm25(title)",
        "attribute(price)",
        "fieldMatch(title).proximity",
        "dotProduct(a,query(b))",
        "nativeRank",
    ],
)
def test_vespa_accepts_rank_features(name, tmp_path):
    export_model(weighing(0.5), "vespa", tmp_path / "out", names={"f1": name})
    np.testing.assert_allclose(READERS["vespa"](tmp_path / "out", {name: [3.0]}), [1.5])


@pytest.mark.parametrize("name", ["bm25(title", "bm25 title", "a+b", "bm25(title)}", "1x", "f(a)(b)", "f(#)"])
def test_vespa_refuses_invalid_names(name, tmp_path):
    with refused_parameter("names", name):
        export_model(weighing(0.5), "vespa", tmp_path / "out", names={"f1": name})


def test_vespa_needs_names(tmp_path):
    with refused_parameter("names", "f1"):
        export_model(weighing(0.5), "vespa", tmp_path / "out")


def test_vespa_weights_have_different_names(tmp_path):
    model = LinearModel((Term("a-b", 0, 1.0), Term("a_b", 1, 2.0), Term("c", 2, 4.0)), 3)
    names = {"a-b": "bm25(x)", "a_b": "bm25(y)", "c": "bm25(z)"}
    export_model(model, "vespa", tmp_path / "out", names=names)
    scores = READERS["vespa"](tmp_path / "out", {"bm25(x)": [1.0], "bm25(y)": [10.0], "bm25(z)": [100.0]})
    np.testing.assert_allclose(scores, [421.0])


def test_vespa_weights_of_numbered_names_have_different_names(tmp_path):
    model = LinearModel((Term("a-b", 0, 1.0), Term("a_b", 1, 2.0), Term("a_b__1", 2, 4.0)), 3)
    names = {"a-b": "bm25(x)", "a_b": "bm25(y)", "a_b__1": "bm25(z)"}
    export_model(model, "vespa", tmp_path / "out", names=names)
    scores = READERS["vespa"](tmp_path / "out", {"bm25(x)": [1.0], "bm25(y)": [10.0], "bm25(z)": [100.0]})
    np.testing.assert_allclose(scores, [421.0])


@pytest.mark.parametrize("name", ["a\0b", "\0", "\x7f", "a\nb", " ", ""])
def test_names_without_visible_text_or_with_control_characters_are_refused(name, tmp_path):
    with refused_parameter("names", name):
        export_model(weighing(1.0), "python", tmp_path / "m.py", names={"f1": name})


@pytest.mark.parametrize("name", ["0", "title", "-3", "1.5", "9999999999"])
def test_ranklib_numbers_its_features(name, tmp_path):
    with refused_parameter("names", name):
        export_model(weighing(0.5), "ranklib", tmp_path / "m.txt", names={"f1": name})


@pytest.mark.parametrize("target", EXPORTS)
def test_options_that_do_not_apply_are_refused(target, tmp_path):
    everything = {
        "name": "m",
        "names": {},
        "featureset": [],
        "sample": None,
        "store": "s",
        "dtype": "float64",
        "window": 50,
    }
    for option in everything.keys() - EXPORTS[target].takes - {"sample"}:
        with refused_parameter(option, everything[option]):
            export_model(weighing(0.5), target, tmp_path / "out", **{option: everything[option]})


def test_unknown_targets_and_dtypes_are_refused(tmp_path):
    with refused_parameter("target", "elastic") as info:
        export_model(weighing(0.5), "elastic", tmp_path / "out")
    assert "'elasticsearch'" in info.value.reason
    with refused_parameter("dtype", "float16"):
        export_model(weighing(0.5), "onnx", tmp_path / "out", dtype="float16")


def test_without_onnx_the_error_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setattr("ranksieve.export.onnx_graph.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'pip install "\.\[onnx\]"'):
        export_model(weighing(0.5), "onnx", tmp_path / "m.onnx")


# --- files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [target for target in LINES if not EXPORTS[target].folder])
def test_single_files_are_written_to_a_path_or_into_a_folder(target, tmp_path):
    (file,) = export_model(weighing(0.5), target, tmp_path / "here").files
    (inside,) = export_model(weighing(0.5), target, tmp_path, name="my_model").files
    assert file == tmp_path / "here"
    assert inside.stem == "my_model"
    assert inside.parent == tmp_path


def test_a_failing_write_leaves_complete_files(tmp_path, monkeypatch):
    old = export_model(weighing(0.5), "elasticsearch", tmp_path / "out").files
    before = {file: file.read_text() for file in old}
    replaced = []

    def replace_once(source, target):
        if replaced:
            raise OSError("disk full")
        replaced.append(target)
        os.rename(source, target)

    monkeypatch.setattr("ranksieve._util.files.os.replace", replace_once)
    with pytest.raises(OSError, match="disk full"):
        export_model(weighing(7.0), "elasticsearch", tmp_path / "out", name="other")
    assert json.loads(old[0].read_text())["model"]["name"] == "other"
    assert old[1].read_text() == before[old[1]]
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["model.json", "query.json"]


def test_a_file_instead_of_the_folder_is_refused(tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(NotADirectoryError) as info:
        export_model(weighing(0.5), "solr", tmp_path / "out")
    assert info.value.filename == str(tmp_path / "out")
    assert (tmp_path / "out").read_text() == "mine"


def test_the_python_module_is_plain_and_quotes_names(tmp_path):
    names = ['say "hi"', "it's", "back\\slash", "{braces} $x"]
    terms = tuple(Term(name, j, 1.0 + j) for j, name in enumerate(names))
    (file,) = export_model(LinearModel(terms, 4), "python", tmp_path / "m.py").files
    tree = ast.parse(file.read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert {node.module for node in imports} == {"__future__", "collections.abc", "math"}
    np.testing.assert_array_equal(READERS["python"](file, {name: [1.0] for name in names}), [10.0])


def test_the_python_module_refuses_missing_values(tmp_path):
    (file,) = export_model(weighing(0.5), "python", tmp_path / "m.py").files
    module: dict[str, object] = {}
    exec(file.read_text(), module)
    assert module["score"]({"f1": 4}) == 2.0
    for features in ({}, {"f1": None}, {"f1": float("nan")}):
        with pytest.raises(ValueError, match="'f1'"):
            module["score"](features)


# --- command line ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    place = tmp_path_factory.mktemp("fitted")
    data = rs.make_ranking(n_queries=30, n_features=6, n_informative=3, random_state=0)
    data.X[:, 2] = 1.0 - data.X[:, 2]  # a negative weight for f3, so scores can be negative
    write_letor(data, place / "train.txt")
    run("fit", place / "train.txt", "--normalise", "z", "-o", place / "model.json")
    return place, data


@pytest.fixture
def home(fitted, tmp_path, monkeypatch):
    place, data = fitted
    for name in ("train.txt", "model.json"):
        shutil.copy(place / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    return data


@pytest.mark.parametrize("target", LINES)
def test_the_command_equals_the_function(target, home, tmp_path):
    if target in HYBRID:
        BY_RANGE.save("model.json")
    elif target in ("esql", "milvus", "redis"):  # no negative weights
        weighing(0.5, 2.0).save("model.json")
    model = rs.load_model("model.json")
    names = {name: f"attribute({name})" for name in home.feature_names}
    options = ["--engine-names", "names.json"] if target in VESPA else []
    (tmp_path / "names.json").write_text(json.dumps(names))
    options += ["train.txt"] if target in LUCENE else []
    arguments = {"names": names} if target in VESPA else {"sample": home} if target in LUCENE else {}
    done = json.loads(
        run("export", "model.json", "--to", target, "-o", "by_command", *options, "--json").stdout
    )
    ours = export_model(model, target, "by_function", **arguments)
    assert [Path(file).read_bytes() for file in done["files"]] == [file.read_bytes() for file in ours.files]
    assert done["notes"] == list(ours.notes)


def test_the_command_prints_files_and_notes(home):
    text = run("export", "model.json", "--to", "solr", "-o", "out", "train.txt").stdout
    n = len(rs.load_model("model.json").terms)
    assert f"Wrote out/model.json, out/query.json: {n} features." in text
    assert "higher than the model's" in text
    assert "curl -X PUT -H 'Content-Type: application/json'" in text
    assert "--data-binary @out/model.json" in text
    assert (
        "warning: Solr rejects negative scores"
        in run("export", "model.json", "--to", "solr", "-o", "out").stderr
    )


def test_inputs_are_not_overwritten(home, tmp_path):
    before = (tmp_path / "model.json").read_text()
    for options in (
        ("--to", "elasticsearch", "-o", ".", "train.txt"),
        ("--to", "json", "-o", "model.json"),
    ):
        refusal = refused("export", "model.json", *options)
        assert refusal.facts == ("model.json", None)
        assert "overwritten" in refusal.reason
    assert (tmp_path / "model.json").read_text() == before


def test_the_command_reads_columns_of_other_names(home, tmp_path):
    """The sample documents, with other names of columns, give the same shift."""
    data = rs.read_dataset("train.txt")
    rows = [["query", "grade", *data.feature_names]]
    rows += [[q, y, *x] for q, y, x in zip(data.qid, data.y, data.X.tolist(), strict=True)]
    Path("train.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    columns = ("--qid-column", "query", "--label-column", "grade")
    run("export", "model.json", "train.txt", "--to", "solr", "-o", "text")
    run("export", "model.json", "train.csv", *columns, "--to", "solr", "-o", "table")
    assert Path("text", "model.json").read_bytes() == Path("table", "model.json").read_bytes()


def test_the_command_refuses_in_one_sentence(home, tmp_path):
    def export(*options):
        return refused("export", "model.json", "-o", "out", *options)

    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "list.json").write_text("[]")
    assert export("--to", "solar").facts == ("to", "solar")
    assert export("--to", "solr", "--engine-names", "broken.json").facts == ("broken.json", None)
    assert export("--to", "solr", "--engine-names", "list.json").facts == ("list.json", None)
    gone = export("--to", "solr", "--featureset", "nowhere.json").error
    assert isinstance(gone, FileNotFoundError)
    assert gone.filename == "nowhere.json"
    store = export("--to", "onnx", "--store", "s")
    assert store == "exporting model.json: --store s: does not apply to onnx; leave it out"
    assert store.facts == ("store", "s")
    assert export("--to", "vespa").facts[0] == "names"
    assert export("--to", "solr", "--qid-column", "q") == (
        "--qid-column q: needs DATA, the sample documents; add them or leave it out"
    )
    (tmp_path / "null.json").write_text("null")
    assert export("--to", "solr", "--featureset", "null.json").facts == ("null.json", None)
    (tmp_path / "few.json").write_text('[{"name": "other"}]')
    few = export("--to", "solr", "--featureset", "few.json")
    assert "lacks f" in few.reason
    assert "--engine-names" in few
    assert not (tmp_path / "out").exists()
    for output in ("", "-"):
        assert refused("export", "model.json", "--to", "solr", "-o", output).facts == ("output", output)
    assert refused("export", "list.json", "--to", "json", "-o", "out").facts == ("list.json", None)


def test_a_model_that_normalises_within_queries_is_refused(home):
    run("fit", "train.txt", "--normalise", "query_z", "-o", "query.json")
    refusal = refused("export", "query.json", "--to", "elasticsearch", "-o", "out")
    assert refusal.startswith("exporting query.json: ")
    assert "query_z" in refusal.reason
    assert "fit with --normalise z, min_max or none" in refusal
    run("export", "query.json", "--to", "json", "-o", "copy.json")
    assert rs.load_model("copy.json") == rs.load_model("query.json")


def test_exports_of_valid_models_do_not_warn(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for target in LINES:
            names = {"names": {"f1": "bm25(title)"}} if target in VESPA else {}
            two = weighing(0.5, 2.0)
            model = BY_RANGE if target in HYBRID else two if target == "redis" else weighing(0.5)
            export_model(model, target, tmp_path / target, **names)


# --- float32 ---------------------------------------------------------------------------------------------


def with_dates(seconds, seed=0):
    """Scores, and times that lie within some seconds."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.gamma(2.0, 4.0, 200), 1.7e9 + np.floor(rng.random(200) * seconds)])
    return Dataset(X, np.arange(200) % 3, np.repeat(np.arange(20), 10))


SINGLE = [*LUCENE, "onnx", "ranklib"]


@pytest.mark.parametrize("target", SINGLE)
def test_a_warning_counts_the_pairs_that_float32_changes(target, tmp_path):
    sample = with_dates(600)
    model = weighing(1e-4, 0.01)
    ours, theirs = model.predict(sample), model.predict(np.float32(sample.X).astype(np.float64))
    pairs = changed = 0
    for query in range(20):
        rows = np.flatnonzero(sample.qid == query)
        a, b = np.subtract.outer(ours[rows], ours[rows]), np.subtract.outer(theirs[rows], theirs[rows])
        pairs += (a > 0).sum()
        changed += ((a > 0) & (b <= 1e-9)).sum()
    assert 100 < changed < pairs
    with pytest.warns(UserWarning, match="32-bit numbers, which change the order") as caught:
        export_model(model, target, tmp_path / "out", sample=sample)
    found = re.search(r"of (\d+) of the (\d+) pairs .* of f2;", str(caught[0].message))
    assert (int(found[1]), int(found[2])) == (changed, pairs)


@pytest.mark.parametrize("target", [*LUCENE, *SCRIPTS, "onnx"])
@pytest.mark.parametrize("weight", [3e-5, -3e-5])
def test_far_values_are_centred_so_that_sums_keep_their_digits(target, weight, tmp_path):
    sample = with_dates(3e6)
    X = sample.X.copy()
    X[:, 1] = np.float32(X[:, 1])  # nothing is lost but by the sum
    sample = sample.replace_features(X)
    model = weighing(1e-3, weight)
    result = export_model(model, target, tmp_path / "out", sample=sample)  # without a warning
    theirs = READERS[target](tmp_path / "out", {"f1": X[:, 0], "f2": X[:, 1]}).astype(np.float64)
    assert theirs.min() >= 0
    theirs = unscaled(result, target, theirs)
    differences = theirs - model.predict(sample)
    assert np.ptp(differences) < 2e-5  # the sum without a centre, near 51000, has steps of 0.004
    notes = " ".join(result.notes)
    if weight > 0:
        assert "Scores lack the constant 51000" in notes
        assert differences.mean() == pytest.approx(-float(re.search(r"constant (\S+),", notes)[1]))


def test_no_warning_without_differences(tmp_path):
    sample = with_dates(600)
    same = sample.replace_features(np.ones_like(sample.X) * 1.7e9)
    assert export_model(weighing(1e-4, 0.01), "solr", tmp_path / "out", sample=same).notes == ()


def test_changed_pairs_are_those_of_a_count_by_hand():
    rng = np.random.default_rng(0)
    ours, theirs = rng.integers(0, 5, 60).astype(float), rng.integers(0, 4, 60).astype(float)
    qid, pairs, changed = np.repeat(np.arange(4), 15), 0, 0
    for i in range(60):
        for j in range(i):
            if qid[i] == qid[j] and ours[i] != ours[j]:
                pairs += 1
                changed += (ours[i] - ours[j]) * (theirs[i] - theirs[j]) <= 0
    assert changed_pairs(ours, theirs, group_queries(qid)) == (pairs, changed)


@pytest.mark.parametrize("target", [*SINGLE, "xgboost", "elasticsearch_ltr"])
def test_thresholds_that_float32_cannot_tell_from_values_are_counted(target, tmp_path):
    sample = with_dates(600)
    curve = Curve((1.7e9 + 300.0,), (0.0, 1.0))
    model = LinearModel((Term("f2", 1, 1.0, curve),), 2)
    with pytest.warns(UserWarning, match="32-bit numbers"):
        export_model(model, target, tmp_path / "out", sample=sample)
