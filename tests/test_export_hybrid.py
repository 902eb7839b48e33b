"""Exports that do not need a plugin: scripts, retrievers, hybrid queries, phases, formulas."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ranksieve.export import EXPORTS, export_model
from ranksieve.export.painless import MAX_SCRIPT_BYTES, string_literal
from ranksieve.model.linear import Curve, LinearModel, Term
from ranksieve.prepare import MissingPolicy, Normalisation, Preparation
from tests.engine_readers import READERS
from tests.painless_reader import Compiler, NotPainless, tokens
from tests.refusals import refused_data, refused_parameter
from tests.test_cli import refused, run
from tests.test_export import BY_RANGE, HYBRID, content, weighing

WINDOWED = [target for target in EXPORTS if "window" in EXPORTS[target].takes]
SCRIPTS = ("elasticsearch_script", "opensearch_script")


def model_for(target):
    if not EXPORTS[target].lines:
        return LinearModel((Term("f1", 0, 1.0, Curve((1.0,), (0.0, 2.0))),), 1)
    return BY_RANGE if target in HYBRID else weighing(0.5, 2.0)


def names_for(target):
    return {"names": {"f1": "bm25(a)", "f2": "bm25(b)"}} if target.startswith("vespa") else {}


# --- number of documents ---------------------------------------------------------------------------------


@pytest.mark.parametrize("target", WINDOWED)
def test_the_window_is_in_the_files(target, tmp_path):
    result = export_model(model_for(target), target, tmp_path / "out", window=321, **names_for(target))
    assert any("321" in file.read_text() for file in result.files)
    default = export_model(model_for(target), target, tmp_path / "default", **names_for(target))
    assert any("100" in file.read_text() for file in default.files)


@pytest.mark.parametrize("target", WINDOWED)
@pytest.mark.parametrize("window", [0, -1, 2.5, True])
def test_invalid_windows(target, window, tmp_path):
    with refused_parameter("window", window):
        export_model(model_for(target), target, tmp_path / "out", window=window, **names_for(target))


def test_the_window_limits_the_number_of_results(tmp_path):
    result = export_model(BY_RANGE, "elasticsearch_linear", tmp_path / "out", window=3)
    assert content(result, "ranker.json")["size"] == 3


# --- Painless --------------------------------------------------------------------------------------------


def source(result):
    return content(result, "script.json")["script"]["source"]


@pytest.mark.parametrize("target", SCRIPTS)
def test_scripts_are_readable(target, tmp_path):
    names = {"f1": "_score", "f2": "log1p(clicks)", "f3": "price"}
    missing = MissingPolicy("column_mean", ("f1", "f2", "f3"), (0.0, 1.5, 20.0))
    model = weighing(0.5, 2.0, -0.25, intercept=-1.0, missing=missing)
    result = export_model(model, target, tmp_path / "out", names=names, name="products")
    assert source(result).splitlines() == [
        "double s = -1.0;",
        "s += 0.5 * _score;",
        "s += 2.0 * (doc['clicks'].size() == 0 ? 1.5 : Math.log1p(doc['clicks'].value));",
        "s += -0.25 * (doc['price'].size() == 0 ? 20.0 : doc['price'].value);",
        "return s < 0 ? 1 / (1 - s) : 1 + s;",
    ]
    rescore = content(result, "query.json")["rescore"]["query"]
    assert rescore["rescore_query"]["script_score"]["script"] == {"id": "products"}
    assert "_scripts/products" in result.load[0]
    columns = {"_score": [8.0, 1.0], "clicks": [np.e - 1, np.nan], "price": [4.0, np.nan]}
    np.testing.assert_allclose(READERS[target](tmp_path / "out", columns), [5.0, 1 / 3.5], rtol=1e-6)


@pytest.mark.parametrize("target", SCRIPTS)
def test_an_indicator_tests_for_a_missing_field(target, tmp_path):
    missing = MissingPolicy("indicator", ("f1 is missing",), (0.0,), ("f1",))
    terms = (Term("f1 is missing", 0, 0.75),)
    model = LinearModel(terms, 1, preparation=Preparation(missing))
    result = export_model(model, target, tmp_path / "out", names={"f1": "price"})
    assert "(doc['price'].size() == 0 ? 1.0 : 0.0)" in source(result)
    scores = READERS[target](tmp_path / "out", {"price": [3.0, np.nan]})
    np.testing.assert_allclose(scores, 1 + model.predict(np.array([[3.0], [np.nan]])))


def test_the_transformation_to_positive_scores_keeps_the_order_in_float32(tmp_path):
    export_model(weighing(1.0), "elasticsearch_script", tmp_path / "out")
    rng = np.random.default_rng(0)
    s = np.sort(
        np.concatenate([[-1e30, -1e9, 0.0, 1e9, 1e30], rng.normal(size=200) * 10 ** rng.uniform(-2, 6)])
    )
    scores = READERS["elasticsearch_script"](tmp_path / "out", {"f1": s.tolist()})
    assert scores.dtype == np.float32
    assert (scores > 0).all()
    assert (np.diff(scores) > 0).all()


HOSTILE = [
    "a'b",
    "a\\",
    "\\'",
    "'].value; return 1; //",
    "']; while (true) {} doc['",
    'a"b',
    "x\\'].size() == 0 ? 1 : 0); return 0; (doc['y",
    "log1p(a'].value) + Math.log1p(doc['b)",
    "$x {y} ${z} /* */ //",
    "ä 名",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_quoted(name, tmp_path):
    result = export_model(weighing(2.0), "elasticsearch_script", tmp_path / "out", names={"f1": name})
    harmless = export_model(weighing(2.0), "elasticsearch_script", tmp_path / "b", names={"f1": "x"})
    inside = name.removeprefix("log1p(").removesuffix(")") if name.startswith("log1p(") else name
    if inside == name:
        kinds = [kind for kind, _ in tokens(source(harmless))]
        assert [kind for kind, _ in tokens(source(result))] == kinds
    assert Compiler(source(result)).run({inside: 3.0}) == pytest.approx(
        1 + 2 * (3 if inside == name else np.log(4))
    )
    assert string_literal(inside) in source(result)


def test_the_reader_refuses_invalid_painless():
    for text in ("return doc['a'b'].value;", "while (true) {}", "return 1", "double s = 1;"):
        with pytest.raises(NotPainless):
            Compiler(text).run({})


def test_scripts_beyond_the_size_limit_are_refused(tmp_path):
    terms = tuple(Term("f" * 300 + str(j), j, 1.0) for j in range(120))
    with refused_data() as info:
        export_model(LinearModel(terms, 120), "elasticsearch_script", tmp_path / "out")
    assert str(MAX_SCRIPT_BYTES) in info.value.reason


# --- sub-queries -----------------------------------------------------------------------------------------

QUERIES = {
    "elasticsearch_linear": {"knn": {"field": "f2", "query_vector": [1.0], "k": 5, "num_candidates": 5}},
    "opensearch_hybrid": {"neural": {"field": "f2", "query_text": "{{words}}"}},
    "mongodb": [{"$vectorSearch": {"path": "f2"}}, {"$limit": 5}],
}


@pytest.mark.parametrize("target", HYBRID)
def test_sub_queries_by_feature(target, tmp_path):
    first = {"$search": {"text": {"path": "f1"}}} if target == "mongodb" else {"match": {"f1": "{{words}}"}}
    queries = {"unused": first, "f2": QUERIES[target], "f1": first}
    result = export_model(BY_RANGE, target, tmp_path / "out", featureset=queries)
    text = "".join(file.read_text() for file in result.files)
    assert json.dumps(QUERIES[target])[1:30] in " ".join(text.split()).replace("{ ", "{").replace("[ ", "[")
    if target != "mongodb":
        assert "Replace {{words}} in the query by values." in result.notes
    scores = READERS[target](tmp_path / "out", {"f1": [0.0, 4.0, 1.0], "f2": [6.0, 0.0, 3.0]})
    np.testing.assert_array_equal(np.argsort(-scores), [0, 2, 1])


@pytest.mark.parametrize("target", ["elasticsearch_linear", "opensearch_hybrid"])
def test_sub_queries_from_a_feature_set_of_the_plugin(target, tmp_path):
    features = [{"name": f"f{j}", "template": {"match": {f"field_{j}": "{{keywords}}"}}} for j in (2, 1)]
    result = export_model(
        BY_RANGE, target, tmp_path / "out", featureset={"featureset": {"features": features}}
    )
    columns = {"field_1": [0.0, 4.0, 1.0], "field_2": [6.0, 0.0, 3.0]}
    np.testing.assert_array_equal(np.argsort(-READERS[target](tmp_path / "out", columns)), [0, 2, 1])
    assert "Replace {{keywords}} in the query by values." in result.notes


@pytest.mark.parametrize("target", HYBRID)
@pytest.mark.parametrize(
    ("featureset", "word"),
    [
        ({"f1": {"match": {"a": "b"}}}, "no query for f2"),
        ({"f1": "title", "f2": {}}, "'title'"),
        ([{"name": "f1", "template": "ln(x)"}], "'ln(x)'"),
        ("f1", "must be a list"),
    ],
)
def test_unsuitable_queries_are_refused(target, featureset, word, tmp_path):
    with refused_data() as info:
        export_model(BY_RANGE, target, tmp_path / "out", featureset=featureset)
    assert word in info.value.reason
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("target", HYBRID)
def test_notes_describe_the_search(target, tmp_path):
    notes = export_model(BY_RANGE, target, tmp_path / "out", window=50).notes
    assert notes[0] == (
        "Each sub-query returns its top 50 documents; their minimum and maximum scale its scores, and a "
        "document that it does not return gets 0 from it. Log the features of your training data in the same "
        "way."
    )


@pytest.mark.parametrize("target", HYBRID)
def test_features_of_weight_zero_have_no_sub_query(target, tmp_path):
    model = weighing(0.5, 0.0, 2.0, normalisation=Normalisation("query_min_max"))
    export_model(model, target, tmp_path / "out")
    READERS[target](tmp_path / "out", {"f1": [1.0, 2.0], "f3": [2.0, 3.0]})


@pytest.mark.parametrize("target", HYBRID)
def test_an_indicator_cannot_be_a_sub_query(target, tmp_path):
    missing = MissingPolicy("indicator", ("f1", "f1 is missing"), (0.5, 0.0), ("", "f1"))
    terms = (Term("f1", 0, 0.5), Term("f1 is missing", 0, 0.75))
    preparation = Preparation(missing, Normalisation("query_min_max"))
    with refused_data() as info:
        export_model(LinearModel(terms, 1, preparation=preparation), target, tmp_path / "out")
    assert "whether f1 is missing" in info.value.reason


def test_opensearch_supports_at_most_five_sub_queries(tmp_path):
    by_range = Normalisation("query_min_max")
    export_model(weighing(*[1.0] * 5, normalisation=by_range), "opensearch_hybrid", tmp_path / "five")
    with refused_data() as info:
        export_model(weighing(*[1.0] * 6, normalisation=by_range), "opensearch_hybrid", tmp_path / "six")
    assert "6 features" in info.value.reason


def test_opensearch_weights_sum_to_one(tmp_path):
    model = weighing(0.3, 0.7, 41.0, normalisation=Normalisation("query_min_max"))
    result = export_model(model, "opensearch_hybrid", tmp_path / "out", name="products")
    (processor,) = content(result, "pipeline.json")["phase_results_processors"]
    weights = processor["normalization-processor"]["combination"]["parameters"]["weights"]
    np.testing.assert_allclose(weights, np.array([0.3, 0.7, 41.0]) / 42, rtol=1e-6)
    assert "Scores are the model's divided by 42, because weights must sum to 1" in result.notes[-1]
    assert "search_pipeline=products" in result.load[1]


def test_names_of_mongodb_pipelines_are_unique(tmp_path):
    names = {"f1": "a.b", "f2": "a$b"}
    result = export_model(BY_RANGE, "mongodb", tmp_path / "out", names=names)
    pipelines = content(result, "pipeline.json")[0]["$scoreFusion"]["input"]["pipelines"]
    assert list(pipelines) == ["a_b__1", "a_b__2"]
    assert pipelines["a_b__1"][0]["$search"]["text"]["path"] == "a.b"


def test_mongodb_needs_pipeline_stages(tmp_path):
    queries = {"f1": {"match": {"a": "b"}}, "f2": [{"$search": {}}]}
    with refused_data() as info:
        export_model(BY_RANGE, "mongodb", tmp_path / "out", featureset=queries)
    assert "MongoDB" in info.value.reason


# --- Vespa's phases, Qdrant ------------------------------------------------------------------------------


def test_vespa_normalises_in_the_global_phase(tmp_path):
    model = weighing(0.5, -2.0, normalisation=Normalisation("query_min_max"))
    names = {"f1": "bm25(title)", "f2": "attribute(price)"}
    result = export_model(model, "vespa_global_phase", tmp_path / "out", names=names, window=200)
    text = result.files[0].read_text()
    assert "global-phase {" in text
    assert "w_f1 * normalize_linear(bm25(title))" in text
    assert "rerank-count: 200" in text
    assert result.notes == (
        "Minimum and maximum of each feature are taken over the top 200 documents of a query.",
    )


def test_vespa_second_phase(tmp_path):
    names = {"f1": "bm25(title)"}
    text = (
        export_model(weighing(0.5), "vespa_second_phase", tmp_path / "out", names=names).files[0].read_text()
    )
    assert "second-phase {" in text
    assert "first-phase" not in text


def test_qdrant_with_scores_and_payload(tmp_path):
    names = {"f1": "$score[1]", "f2": 'shop."clicks per day"', "f3": "$score"}
    model = weighing(
        0.5, -2.0, 1.0, missing=MissingPolicy("column_mean", ("f1", "f2", "f3"), (0.0, 7.0, 0.0))
    )
    result = export_model(model, "qdrant", tmp_path / "out", names=names, window=30)
    query = content(result, "ranker.json")
    assert len(query["prefetch"]) == 2
    assert query["query"]["formula"]["sum"][1] == {"mult": [-2.0, 'shop."clicks per day"']}
    assert query["query"]["defaults"] == {"$score[1]": 0.0, 'shop."clicks per day"': 7.0, "$score": 0.0}


@pytest.mark.parametrize("name", ["$scores", "$score[x]", "a b", "a..b", '"a', "a.$score[0]"])
def test_qdrant_refuses_invalid_names(name, tmp_path):
    with refused_parameter("names", name):
        export_model(weighing(1.0), "qdrant", tmp_path / "out", names={"f1": name})


# --- command line ----------------------------------------------------------------------------------------


def test_the_command_with_queries_and_window(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    BY_RANGE.save("model.json")
    queries = {f"f{j}": {"match": {f"field_{j}": "{{words}}"}} for j in (1, 2)}
    (tmp_path / "queries.json").write_text(json.dumps(queries))
    options = ("--to", "elasticsearch_linear", "-o", "out", "--featureset", "queries.json", "--window", "40")
    text = run("export", "model.json", *options).stdout
    assert "Each sub-query returns its top 40 documents" in text
    assert "curl -X POST" in text
    linear = json.loads((tmp_path / "out" / "ranker.json").read_text())["retriever"]["linear"]
    assert linear["rank_window_size"] == 40
    assert [one["weight"] for one in linear["retrievers"]] == [0.5, 2.0]
    (tmp_path / "queries.json").write_text('{"f1": 3}')
    assert refused("export", "model.json", *options).facts == ("queries.json", None)
    window = refused("export", "model.json", "--to", "solr", "-o", "out", "--window", "5")
    assert window.facts == ("window", 5)
