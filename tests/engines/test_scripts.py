"""OpenSearch and Elasticsearch: nodes that run the exported Painless scripts and rescore queries."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from ranksieve.export import export_model
from tests.engines.cases import (
    SIZE,
    Case,
    compare,
    curve_cases,
    documents,
    hybrid_model,
    linear,
    linear_cases,
    result_lists,
)
from tests.engines.harness import Server, classpath, java_at_least, record

pytestmark = pytest.mark.engines
HYBRID_PLUGINS = "org.opensearch.knn.plugin.KNNPlugin,org.opensearch.neuralsearch.plugin.NeuralSearch"


class Node:
    """A node whose documents have one numeric field per feature."""

    def __init__(self, name, folder, plugins="", **options):
        self.name, self.server, self.known = (
            name,
            Server(name.lower(), folder, *plugins.split(), **options),
            {},
        )
        self.version = self.server.call("GET", "/")["version"]["number"]

    def index(self, data, names):
        """Index each data set once; ``names`` are the names of the fields."""
        key = (tuple(names), data.X.tobytes())
        if key not in self.known:
            self.known[key] = name = f"set{len(self.known)}"
            fields = {field: {"type": "double"} for field in names}
            fields["all"] = fields["list"] = {"type": "keyword"}
            mapping = {"properties": nested(fields)}
            settings = {"number_of_shards": 1, "number_of_replicas": 0}
            self.server.call("PUT", f"/{name}", {"settings": settings, "mappings": mapping})
            lines = []
            for i, x in enumerate(data.X.tolist()):
                row = {field: v for field, v in zip(names, x, strict=True) if not np.isnan(v)}
                row |= {"all": "documents", "list": str(data.qid[i])}
                lines += [json.dumps({"index": {"_id": str(i)}}), json.dumps(row)]
            body = "".join(f"{line}\n" for line in lines).encode()
            assert not self.server.call("POST", f"/{name}/_bulk?refresh=true", body)["errors"]
        return self.known[key]

    def scores(self, data, names, result):
        """Store the script and run the exported query; its match becomes one that all documents have."""
        content = {file.stem: json.loads(file.read_text()) for file in result.files}
        model = re.search(r"_scripts/([\w.-]+)", " ".join(result.load))[1]
        self.server.call("PUT", f"/_scripts/{model}", content["script"])
        text = json.dumps(content["query"]).replace("YOUR_FIELD", "all").replace("USER_QUERY", "documents")
        query = {**json.loads(text), "size": data.n_docs}
        hits = self.server.call("POST", f"/{self.index(data, names)}/_search", query)["hits"]["hits"]
        ranked = [hit["_score"] for hit in hits]
        assert ranked == sorted(ranked, reverse=True)
        theirs = np.full(data.n_docs, np.nan)
        for hit in hits:
            theirs[int(hit["_id"])] = hit["_score"]
        return theirs


def nested(fields):
    """Mappings of fields whose names have dots, which are paths of objects there."""
    tree = {}
    for name, kind in fields.items():
        *parents, last = name.split(".")
        place = tree
        for parent in parents:
            place = place.setdefault(parent, {"properties": {}})["properties"]
        place[last] = kind
    return tree


@pytest.fixture(scope="module", params=["OpenSearch", "OpenSearch 3", "Elasticsearch"])
def node(request, tmp_path_factory):
    name, options = request.param, {"plugins": HYBRID_PLUGINS} if request.param == "OpenSearch" else {}
    if name == "OpenSearch 3":
        program = java_at_least(21) or pytest.skip("OpenSearch 3 needs Java 21, which is not installed")
        name, options = "OpenSearch", {"jars_of": "opensearch3", "program": program}
    classpath(options.get("jars_of", name.lower()))
    node = Node(name, tmp_path_factory.mktemp("node"), **options)
    yield node
    node.server.close()


def dates():
    data = documents(date=True)
    return Case("a date", linear(data, "z", 0.5), data)


@pytest.mark.parametrize("shape", ["linear", "curves"])
def test_scores_are_the_models(node, shape, tmp_path):
    target, done = f"{node.name.lower()}_script", []
    for k, case in enumerate([*linear_cases(), dates()] if shape == "linear" else curve_cases()):
        result = export_model(
            case.model, target, tmp_path / str(k), name=f"model{k}_{shape}", window=case.data.n_docs
        )
        theirs = node.scores(case.data, case.data.feature_names, result)
        assert theirs.min() > 0
        done.append(compare(case, target, result, theirs, "float32 score"))
    engine = f"{node.name} {node.version.split('.')[0]}"
    record(engine, node.version, f"{target}, {shape}", done)


def returned_by(name):
    """A query that returns the documents of a list with this field, whose score is its value."""
    matching = {"bool": {"filter": [{"term": {"list": "{{list}}"}}, {"exists": {"field": name}}]}}
    value = {"field_value_factor": {"field": name}, "boost_mode": "replace"}
    return {"function_score": {"query": matching, **value}}


def test_hybrid_searches(node, tmp_path):
    if node.name == "Elasticsearch" or node.version[0] != "2":
        pytest.skip("hybrid searches need the plugin neural-search, which could not be had for this server")
    data, done = result_lists(), []
    index = node.index(data, data.feature_names)
    for k, kind in enumerate(["list_min_max@opensearch", "list_l2", "reciprocal_rank@60"]):
        ranked = kind.startswith("reciprocal")  # with weights from OpenSearch 3.1 only
        case = Case(kind, hybrid_model(kind, (0.25,) * 4) if ranked else hybrid_model(kind), data)
        result = export_model(
            case.model, "opensearch_hybrid", tmp_path / str(k), name=f"hybrid{k}", window=SIZE,
            featureset={name: returned_by(name) for name in data.feature_names},
        )  # fmt: skip
        pipeline, text = (file.read_text() for file in result.files)
        node.server.call("PUT", f"/_search/pipeline/hybrid{k}", json.loads(pipeline))
        theirs = np.full(data.n_docs, np.nan)
        for query in np.unique(data.qid):
            search = {**json.loads(text.replace("{{list}}", str(query))), "size": SIZE}
            found = node.server.call("POST", f"/{index}/_search?search_pipeline=hybrid{k}", search)
            for hit in found["hits"]["hits"]:
                theirs[int(hit["_id"])] = hit["_score"]
        done.append(compare(case, "opensearch_hybrid", result, theirs))
    record("OpenSearch 2", f"{node.version}, neural-search", "opensearch_hybrid", done)
