"""Small evaluators of exported files, written from the engines' documentation and sources.

Each takes the exported folder or file and the documents (one column of numbers per feature, by the engine's
name), and reproduces the arithmetic of the engine. Raises ``NotAccepted`` for files that the engine would
reject. Evaluators of hybrid searches are in :mod:`tests.hybrid_readers`.
"""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from xml.etree import ElementTree

import numpy as np

from ranksieve.model.foreign import read_model
from tests import hybrid_readers
from tests.engine_files import need

FLOAT_MIN = np.float32(1.4e-45)
FLOAT_MAX = np.finfo(np.float32).max
DOUBLE = r"-?[0-9]+\.[0-9]+|-?[0-9]+"


# --- Elasticsearch and OpenSearch: LinearRankerParser, FeatureNormalizingRanker, LinearRanker ------------


def elasticsearch(folder, columns):
    content = json.loads((folder / "model.json").read_text())
    need(set(content) == {"model"} and set(content["model"]) == {"name", "model"}, "unknown field")
    body = content["model"]["model"]
    names = feature_set(folder, columns)
    if body["type"] == "model/xgboost+json":
        return xgboost_trees(body["definition"], {name: columns[name] for name in names})
    need(body["type"] == "model/linear", "unknown type")
    weights = np.zeros(len(names), dtype=np.float32)
    for name, weight in body["definition"].items():
        need(name in names, f"feature [{name}] is unknown")
        need(isinstance(weight, float | int), "expected a float")
        weights[names.index(name)] = weight
    vector = [np.asarray(columns[name], dtype=np.float32) for name in names]
    for name, normalizer in body.get("feature_normalizers", {}).items():
        need(name in names, f"feature {name} not found in feature set")
        vector[names.index(name)] = es_normalised(vector[names.index(name)], normalizer)
    score = np.zeros(len(vector[0]), dtype=np.float32)
    for weight, values in zip(weights, vector, strict=True):
        score += weight * values
    assert score.dtype == np.float32
    return score


def xgboost_trees(definition, columns):
    """XGBoostJsonParser, NaiveAdditiveDecisionTree, where a value that was not set is NaN."""
    need(isinstance(definition, str), "[model] definition doesn't support values of another type than text")
    score = 0
    for tree in json.loads(definition):
        score = score + xgboost_node(tree, columns, {})
    return np.float32(1) * score


def xgboost_node(node, columns, depths):
    need(node["nodeid"] not in depths, "two nodes have the same number")
    depths[node["nodeid"]] = None
    if "leaf" in node:
        need(set(node) == {"nodeid", "leaf"}, "unknown field")
        return np.full(len(next(iter(columns.values()))), node["leaf"], dtype=np.float32)
    fields = {"nodeid", "depth", "split", "split_condition", "yes", "no", "missing", "children"}
    need(set(node) == fields, "this split does not have all the required fields")
    ends = [child["nodeid"] for child in node["children"]]
    need([node["yes"], node["no"]] == ends and node["missing"] in ends, "branches do not point to children")
    need(node["split"] in columns, f"unknown feature [{node['split']}]")
    values = np.asarray(columns[node["split"]], dtype=np.float32)
    left, right = (xgboost_node(child, columns, depths) for child in node["children"])
    goes_left = np.where(
        np.isnan(values), node["missing"] == node["yes"], np.float32(node["split_condition"]) > values
    )
    return np.where(goes_left, left, right)


def feature_set(folder, columns):
    """Names of the features: all columns if the query has active features, else those of featureset.json."""
    active = es_query(folder).get("active_features")
    if active is None:
        content = json.loads((folder / "featureset.json").read_text())["featureset"]
        return [feature["name"] for feature in content["features"]]
    need(set(active) <= set(columns), "active feature does not exist")
    return list(columns)


def es_query(folder):
    return json.loads((folder / "query.json").read_text())["rescore"]["query"]["rescore_query"]["sltr"]


def es_normalised(values, normalizer):
    ((kind, settings),) = normalizer.items()
    if kind == "standard":
        mean, deviation = np.float32(settings["mean"]), np.float32(settings["standard_deviation"])
        need(deviation > 0, "standard deviation must be positive")
        return (values - mean) / deviation
    need(kind == "min_max", "unknown normalizer")
    bounds = {"minimum": FLOAT_MIN, "maximum": FLOAT_MAX}
    for name, value in settings.items():  # each setter compares with the current value of the other bound
        bounds[name] = np.float32(value)
        need(bounds["minimum"] < bounds["maximum"], "minimum must be smaller than maximum")
    return (values - bounds["minimum"]) / (bounds["maximum"] - bounds["minimum"])


# --- Elasticsearch's own: QueryExtractorBuilder, Ensemble, Tree, TreeNode ---------------------------------


def elasticsearch_ltr(folder, columns):
    """NaN: the query of the feature does not match the document."""
    content = json.loads((folder / "model.json").read_text())
    # TrainedModelConfig: cannot specify [input.field_names] for a model of type [learning_to_rank]
    need(set(content) == {"inference_config", "definition"}, "unknown field")
    ensemble = content["definition"]["trained_model"]["ensemble"]
    need(
        ensemble["target_type"] == "regression" and ensemble["aggregate_output"] == {"weighted_sum": {}},
        "output",
    )
    features = {}
    for extractor in content["inference_config"]["learning_to_rank"]["feature_extractors"]:
        settings = extractor["query_extractor"]
        need(
            set(settings) <= {"feature_name", "query", "default_score"} and settings["query"], "unknown field"
        )
        values = np.asarray(columns[settings["feature_name"]], dtype=np.float32)
        default = np.float32(settings.get("default_score", 0))
        features[settings["feature_name"]] = np.where(np.isnan(values), default, values).astype(np.float64)
    need(set(features) == set(ensemble["feature_names"]), "features")
    score = 0.0
    for part in ensemble["trained_models"]:
        nodes = {node["node_index"]: node for node in part["tree"]["tree_structure"]}
        need(sorted(nodes) == list(range(len(nodes))), "node_index")
        score = score + ltr_node(nodes, 0, [features[name] for name in part["tree"]["feature_names"]])
    return score.astype(np.float32)


def ltr_node(nodes, k, features):
    node = nodes[k]
    if "leaf_value" in node:
        return np.full(len(features[0]), node["leaf_value"])
    need(node["decision_type"] == "lt" and min(node["left_child"], node["right_child"]) > k, "cycle")
    left, right = (ltr_node(nodes, node[side], features) for side in ("left_child", "right_child"))
    return np.where(features[node["split_feature"]] < node["threshold"], left, right)


# --- Solr: ManagedModelStore, LTRScoringModel, LinearModel -----------------------------------------------


def solr(folder, columns):
    content = json.loads((folder / "model.json").read_text())
    trees = content["class"] == "org.apache.solr.ltr.model.MultipleAdditiveTreesModel"
    need(trees or content["class"] == "org.apache.solr.ltr.model.LinearModel", "unknown class")
    store = solr_store(folder, content["store"], columns)
    names = [feature["name"] for feature in content["features"]]
    need(names, "no features declared")
    need(len(set(names)) == len(names), "duplicated feature")
    need(set(names) <= store, "feature not found in store")
    score = np.zeros(len(next(iter(columns.values()))), dtype=np.float32)
    if trees:
        vector = {name: np.nan_to_num(np.asarray(columns[name], dtype=np.float32)) for name in names}
        for tree in content["params"]["trees"]:
            score += np.float32(tree["weight"]) * solr_node(tree["root"], vector)
        return score
    for feature in content["features"]:
        need(feature["name"] in content["params"]["weights"], "lacks weight")
        weight = np.float32(content["params"]["weights"][feature["name"]])
        values = np.asarray(columns[feature["name"]], dtype=np.float32)
        score += solr_normalised(values, feature.get("norm")) * weight
    assert score.dtype == np.float32
    return score


def solr_node(node, columns):
    """MultipleAdditiveTreesModel.scoreNode; a feature without a value is 0."""
    if "feature" not in node:
        need(set(node) == {"value"}, "tree node is leaf with left or right")
        return np.full(len(next(iter(columns.values()))), np.float32(node["value"]))
    need(set(node) == {"feature", "threshold", "left", "right"}, "unknown field")
    need(node["feature"] in columns, "tree uses a feature that does not exist")
    threshold = np.float32(node["threshold"]) + np.float32(1e-6)
    left, right = solr_node(node["left"], columns), solr_node(node["right"], columns)
    return np.where(columns[node["feature"]] <= threshold, left, right)


def solr_store(folder, store, columns):
    if not (folder / "features.json").exists():
        return set(columns)
    features = json.loads((folder / "features.json").read_text())
    need(all(feature["store"] == store for feature in features), "missing feature store")
    return {feature["name"] for feature in features}


def solr_normalised(values, norm):
    if norm is None:
        return values
    need(all(isinstance(value, str) for value in norm["params"].values()), "setters take text")
    settings = {name: np.float32(value) for name, value in norm["params"].items()}
    kind = norm["class"].removeprefix("org.apache.solr.ltr.norm.")
    if kind == "StandardNormalizer":
        need(settings["std"] > 0, "std must be positive")
        return (values - settings["avg"]) / settings["std"]
    need(kind == "MinMaxNormalizer", "unknown normalizer")
    delta = settings["max"] - settings["min"]
    need(delta != 0, "delta must not be zero")
    return (values - settings["min"]) / delta


# --- Vespa: SchemaParser.jj, RankingExpressionParser.jj --------------------------------------------------


PROFILE = re.compile(
    r"rank-profile ([A-Za-z_][\w-]*) \{\s*(?:constants \{([^{}]*)\})?\s*(first|second|global)-phase \{\s*"
    r"expression \{([^{}]*)\}\s*(rerank-count: [1-9][0-9]*\s*)?\}\s*\}\s*"
)


def vespa(folder, columns):
    (path,) = folder.glob("*.profile")
    frame = PROFILE.fullmatch(path.read_text())
    need(frame is not None and frame[1] == path.stem, "syntax")
    need((frame[3] == "first") == (frame[5] is None), "rerank-count")
    constants = {}
    for line in (frame[2] or "").split("\n"):
        if line.strip():
            entry = re.fullmatch(rf"\s*([A-Za-z_]\w*): ({DOUBLE})", line)
            need(entry is not None, f"syntax: {line}")
            constants[entry[1]] = float(entry[2])
    score = np.zeros(len(next(iter(columns.values()))))
    for summand in re.split(r"\n\s*\+ ", frame[4].strip()):
        if frame[2] is None:
            value, rest = vespa_conditions(summand, columns)
            need(not rest, f"syntax: {rest}")
            score = score + value
            continue
        constant, _, feature = summand.partition(" * ")
        need(constant in constants, f"unknown constant {constant}")
        scaled = re.fullmatch(r"normalize_linear\((.*)\)", feature)
        need(scaled is None or frame[3] == "global", "normalize_linear is for the global phase")
        feature = scaled[1] if scaled else feature
        need(not feature or feature in columns, f"unknown rank feature {feature}")
        words = re.findall(r"\w+", re.sub(r'"[^"]*"', "", feature))
        need(not constants.keys() & set(words), f"{feature} names a constant")
        values = np.asarray(columns[feature]) if feature else 1.0
        score = score + constants[constant] * (vespa_normalised(values) if scaled else values)
    return score


def vespa_conditions(text, columns):
    """Values of a number, or of ``if(feature < number, …, …)``, and the rest of the text."""
    if not text.startswith("if("):
        number = re.match(DOUBLE, text)
        need(number is not None, f"syntax: {text[:40]}")
        return float(number[0]), text[number.end() :]
    text = text[3:]
    feature = max((name for name in columns if text.startswith(f"{name} < ")), key=len, default=None)
    need(feature is not None, f"unknown rank feature {text[:40]}")
    threshold, text = vespa_conditions(text[len(feature) + 3 :], {})
    need(isinstance(threshold, float) and text.startswith(", "), "syntax")
    left, text = vespa_conditions(text[2:], columns)
    need(text.startswith(", "), "syntax")
    right, text = vespa_conditions(text[2:], columns)
    need(text.startswith(")"), "syntax")
    return np.where(np.asarray(columns[feature]) < threshold, left, right), text[1:]


def vespa_normalised(values):
    """LinearNormalizer."""
    low, high = values.min(), values.max()
    if high == low:
        return np.full(len(values), 0.5)
    return 0.5 + (values - (low + high) * 0.5) / (high - low)


# --- RankLib: RankerFactory, CoorAscent.loadFromString, KeyValuePair -------------------------------------


def ranklib(file, columns):
    lines = file.read_text().splitlines()
    if lines[0] == "## LambdaMART":
        return lambda_mart("".join(line for line in lines if not line.startswith("##")), columns)
    need(lines[0] == "## Coordinate Ascent", "unknown ranker")
    line = next(line for line in lines if line.strip() and not line.startswith("##"))
    score = np.zeros(len(next(iter(columns.values()))))
    for pair in line.partition("#")[0].split(" "):
        number, _, weight = pair.partition(":")
        need(int(number) >= 1 and number in columns, f"requesting unspecified feature {number}")
        score = score + float(weight) * np.asarray(columns[number], dtype=np.float32).astype(float)
    return score


def lambda_mart(text, columns):
    """LambdaMART.loadFromString, Ensemble.create, Split.eval; an unknown value is 0."""
    score = np.zeros(len(next(iter(columns.values()))), dtype=np.float32)
    for tree in ElementTree.fromstring(text).iter("tree"):
        need(tree.text is None and len(tree) == 1, "the first child of a tree is its split")
        score += np.float32(tree.get("weight")) * lambda_mart_split(tree[0], columns)
    return score


def lambda_mart_split(split, columns):
    need(split.text is None and all(part.tail is None for part in split), "a child of a split is text")
    if split[0].tag == "output":
        return np.full(len(next(iter(columns.values()))), np.float32(split[0].text))
    need([part.tag for part in split] == ["feature", "threshold", "split", "split"], "order of the children")
    need(split[0].text in columns, f"requesting unspecified feature {split[0].text}")
    values = np.nan_to_num(np.asarray(columns[split[0].text], dtype=np.float32))
    left, right = (lambda_mart_split(part, columns) for part in split[2:])
    return np.where(values <= np.float32(split[1].text), left, right)


# --- SQL, by SQLite ----------------------------------------------------------------------------------------


def sql(folder, columns):
    """All documents belong to one query."""
    names = list(columns)
    table = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(f"CREATE TABLE YOUR_TABLE (YOUR_QUERY_ID, YOUR_DOCUMENT_ID, {table})")
        marks = ", ".join("?" * (len(names) + 2))
        rows = zip(*(np.asarray(values, dtype=float).tolist() for values in columns.values()), strict=True)
        database.executemany(
            f"INSERT INTO YOUR_TABLE VALUES ({marks})", [(1, i, *row) for i, row in enumerate(rows)]
        )
        rows = database.execute((folder / "query.sql").read_text()).fetchall()
        if (folder / "expression.sql").exists():
            expression = (folder / "expression.sql").read_text()
            (alone,) = zip(*database.execute(f"SELECT {expression} FROM YOUR_TABLE AS d"), strict=True)
            need(dict(enumerate(alone)) == {i: score for _, i, score in rows}, "expression")
    scores = np.full(len(rows), np.nan)
    for _, document, score in rows:
        scores[document] = np.nan if score is None else score
    return scores


# --- the others ------------------------------------------------------------------------------------------


def onnx(file, columns):
    import onnxruntime

    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    names = json.loads(session.get_modelmeta().custom_metadata_map["features"])
    kind = {"tensor(float)": np.float32, "tensor(double)": np.float64}[session.get_inputs()[0].type]
    (scores,) = session.run(
        ["scores"], {"features": np.column_stack([columns[n] for n in names]).astype(kind)}
    )
    return scores


def own_json(file, columns):
    content = json.loads(file.read_text())
    scales = content["normalisation"] or {"centre": [0.0] * 99, "scale": [1.0] * 99}
    score = content["intercept"]
    for term, centre, scale in zip(content["terms"], scales["centre"], scales["scale"], strict=False):
        values = np.asarray(columns[term["name"]], dtype=np.float64)
        if "curve" in term:
            levels = [np.full(len(values), level) for level in term["curve"]["levels"]]
            reached = [values >= threshold for threshold in term["curve"]["thresholds"]]
            level = np.select(
                [np.isnan(values), *reached[::-1]], [term["curve"]["missing"], *levels[:0:-1]], levels[0]
            )
            score = score + term["weight"] * level
        else:
            score = score + term["weight"] * (values - centre) / scale
    return score


def booster(file, columns):
    """By our readers, whose scores are bit-identical to those of LightGBM and XGBoost on their own models."""
    model = read_model(file)
    names = model.names or list(columns)
    need(len(names) == model.n_features and set(names) <= set(columns), "names of the features")
    return model.predict(np.column_stack([columns[name] for name in names]))


SCRIPT = """
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("exported", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
documents = json.load(sys.stdin)
order = module.rank(documents)
json.dump({"scores": [module.score(d) for d in documents], "ranked": [d["row"] for d in order],
           "modules": sorted(sys.modules)}, sys.stdout)
"""


def python_process(file, columns):
    """Run the module in an isolated interpreter without packages, paths and environment."""
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    documents = json.dumps([{**row, "row": i} for i, row in enumerate(rows)])
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", SCRIPT, str(file)],
        input=documents, capture_output=True, text=True, env={}, check=True, cwd="/",
    )  # fmt: skip
    return json.loads(done.stdout)


def python(file, columns):
    return np.array(python_process(file, columns)["scores"])


READERS = {
    "elasticsearch": elasticsearch,
    "opensearch": elasticsearch,
    "solr": solr,
    "elasticsearch_script": hybrid_readers.script,
    "opensearch_script": hybrid_readers.script,
    "elasticsearch_ltr": elasticsearch_ltr,
    "elasticsearch_linear": hybrid_readers.linear_retriever,
    "opensearch_hybrid": hybrid_readers.opensearch_hybrid,
    "esql": hybrid_readers.esql,
    "mongodb": hybrid_readers.mongodb,
    "milvus": hybrid_readers.milvus,
    "redis": hybrid_readers.redis,
    "sql_hybrid": hybrid_readers.sql_hybrid,
    "qdrant": hybrid_readers.qdrant,
    "vespa": vespa,
    "vespa_second_phase": vespa,
    "vespa_global_phase": vespa,
    "ranklib": ranklib,
    "lightgbm": booster,
    "xgboost": booster,
    "sql": sql,
    "onnx": onnx,
    "json": own_json,
    "python": python,
}
