"""From an index to the engine's order: index, log features, fit, export, rerank, and compare query by query.

The session with Solr becomes part of docs/engines.md.
"""

from __future__ import annotations

import json
import shlex
import shutil

import numpy as np
import pytest
from typer.testing import CliRunner

import ranksieve as rs
from ranksieve.cli import app
from tests.engines.cases import changed_pairs
from tests.engines.harness import HERE, RESULTS, Server, classpath
from tests.engines.test_scripts import Node

pytestmark = pytest.mark.engines
N_DOCUMENTS, N_QUERIES, DEPTH = 600, 30, 50
WORDS = [
    a + b
    for a in ("sol", "ver", "mar", "lin", "tor", "bel", "qua", "nex")
    for b in ("a", "en", "ix", "os", "um")
]


class Session:
    """Commands as a shell shows them, with their output."""

    def __init__(self, folder):
        self.folder, self.lines = folder, []

    def ranksieve(self, command):
        self.lines.append(f"$ ranksieve {command}")
        done = CliRunner().invoke(app, shlex.split(command))
        assert done.exit_code == 0, done.output
        self.lines += [line.rstrip() for line in done.output.rstrip().splitlines()]

    def curl(self, server, method, path, file):
        """Send a file, as the command that the export advises."""
        self.lines.append(
            f"$ curl -X {method} -H 'Content-Type: application/json' $ENGINE{path} --data-binary @{file}"
        )
        return server.call(method, path, json.loads((self.folder / file).read_text()))

    def write(self, name):
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / f"{name}.txt").write_text("\n".join(self.lines) + "\n", encoding="utf-8")


def corpus():
    """Documents with a title, a body, clicks and an age in days."""
    rng = np.random.default_rng(0)
    share = 1 / np.arange(1, len(WORDS) + 1)
    share /= share.sum()
    for i in range(N_DOCUMENTS):
        yield {
            "id": str(i),
            "title": " ".join(rng.choice(WORDS, 4, p=share)),
            "body": " ".join(rng.choice(WORDS, rng.integers(20, 80), p=share)),
            "clicks": int(rng.poisson(np.exp(rng.normal(3, 1)))),
            "age": float(np.round(rng.random() * 900, 1)),
        }


def queries():
    rng = np.random.default_rng(1)
    return [" ".join(rng.choice(WORDS[:20], 2, replace=False)) for _ in range(N_QUERIES)]


def write_train(log, folder):
    """Grades depend on some of the logged features, within each query, and on chance."""
    rng = np.random.default_rng(2)
    names = list(log[0][2])
    rows = [",".join(["qid", "label", *names])]
    for query in range(N_QUERIES):
        X = np.array([[values[name] for name in names] for q, _, values in log if q == query])
        z = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
        merit = z @ [{"title": 1.0, "text": 1.0, "clicks": 0.7}.get(name, 0.0) for name in names]
        grades = np.digitize(merit + 0.5 * rng.normal(size=len(X)), [0.5, 1.5])
        rows += [
            ",".join([str(query), str(g), *map(repr, x)]) for g, x in zip(grades, X.tolist(), strict=True)
        ]
    (folder / "train.csv").write_text("\n".join(rows) + "\n")


def compared(log, model, ranking):
    """Check that the engine's order of the documents of each query is the model's."""
    X = np.array([[values[name] for name in model.names] for *_, values in log])
    qid = np.array([query for query, *_ in log])
    wide = np.zeros((len(X), model.n_features))
    wide[:, model.columns] = X
    ours = model.predict(wide)
    theirs = np.array([ranking[query][document] for query, document, _ in log])
    changed = changed_pairs(ours, theirs, qid)
    assert changed == 0
    return f"{N_QUERIES} queries, {len(X)} documents, {changed} pairs in another order"


FIT = "fit train.csv --max-features 3 -o model.json"


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_solr(tmp_path, monkeypatch):
    classpath("solr")
    monkeypatch.chdir(tmp_path)
    shutil.copytree(HERE / "solr_home", tmp_path / "home")
    server, session = Server("solr", tmp_path / "home"), Session(tmp_path)
    core, package = "/solr/documents", "org.apache.solr.ltr.feature"
    try:
        fields = {"title": "text_title", "body": "text_body", "clicks": "x0", "age": "x1"}
        documents = [{fields.get(k, k): v for k, v in one.items()} for one in corpus()]
        (tmp_path / "documents.json").write_text(json.dumps(documents))
        matches = [
            {
                "name": k,
                "class": f"{package}.SolrFeature",
                "params": {"q": f"{{!dismax qf={fields[k]}}}${{user_query}}"},
            }
            for k in ("title", "body")
        ]
        values = [
            {"name": k, "class": f"{package}.FieldValueFeature", "params": {"field": fields[k]}}
            for k in ("clicks", "age")
        ]
        (tmp_path / "features.json").write_text(json.dumps([*matches, *values]))
        session.curl(server, "POST", f"{core}/update?commit=true", "documents.json")
        session.curl(server, "PUT", f"{core}/schema/feature-store", "features.json")
        log = []
        for number, words in enumerate(queries()):
            search = {
                "query": f"{{!dismax qf='text_title text_body' mm=1}}{words}",
                "limit": DEPTH,
                "fields": f"id,[features efi.user_query='{words}']",
            }
            for hit in server.call("POST", f"{core}/query", search)["response"]["docs"]:
                pairs = dict(part.split("=") for part in hit["[features]"].split(","))
                log.append((number, hit["id"], {k: float(v) for k, v in pairs.items()}))
        session.lines.append(
            "# The features of the first 50 documents of each query, from [features], with grades: train.csv"
        )
        write_train(log, tmp_path)
        session.ranksieve(FIT)
        session.ranksieve(
            "export model.json train.csv --to solr -o solr --name shop --store shop "
            "--featureset features.json"
        )
        session.curl(server, "PUT", f"{core}/schema/feature-store", "solr/features.json")
        session.curl(server, "PUT", f"{core}/schema/model-store", "solr/model.json")
        text, ranking = (tmp_path / "solr" / "query.json").read_text(), {}
        for number, words in enumerate(queries()):
            query = json.loads(text.replace("USER_QUERY", words))
            query["query"] = f"{{!dismax qf='text_title text_body' mm=1}}{words}"
            found = server.call("POST", f"{core}/query", {**query, "limit": N_DOCUMENTS})["response"]["docs"]
            ranking[number] = {hit["id"]: hit["score"] for hit in found}
        line = compared(log, rs.load_model("model.json"), ranking)
    finally:
        server.close()
    session.lines += ["# solr/query.json for each query, compared with the model's order:", line]
    session.write("session-solr")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_opensearch(tmp_path, monkeypatch):
    classpath("opensearch")
    monkeypatch.chdir(tmp_path)
    node, session = Node("OpenSearch", tmp_path / "node"), Session(tmp_path)
    server = node.server
    try:
        lines = []
        for one in corpus():
            source = {"text": f"{one['title']} {one['body']}", "clicks": one["clicks"], "age": one["age"]}
            lines += [json.dumps({"index": {"_id": one["id"]}}), json.dumps(source)]
        body = "".join(f"{line}\n" for line in lines).encode()
        settings = {"settings": {"number_of_shards": 1, "number_of_replicas": 0}}
        server.call("PUT", "/shop", settings)
        assert not server.call("POST", "/shop/_bulk?refresh=true", body)["errors"]
        log = []
        for number, words in enumerate(queries()):
            search = {"query": {"match": {"text": words}}, "size": DEPTH}
            for hit in server.call("POST", "/shop/_search", search)["hits"]["hits"]:
                source = hit["_source"]
                values = {"text": hit["_score"], "clicks": float(source["clicks"]), "age": source["age"]}
                log.append((number, hit["_id"], values))
        write_train(log, tmp_path)
        session.ranksieve(FIT.replace("--max-features 3", "--max-features 2"))
        (tmp_path / "names.json").write_text(json.dumps({"text": "_score"}))
        session.ranksieve(
            "export model.json --to opensearch_script -o script --name shop --engine-names names.json"
        )
        session.curl(server, "PUT", "/_scripts/shop", "script/script.json")
        text, ranking = (tmp_path / "script" / "query.json").read_text(), {}
        for number, words in enumerate(queries()):
            query = json.loads(text.replace("USER_QUERY", words).replace("YOUR_FIELD", "text"))
            found = server.call("POST", "/shop/_search", {**query, "size": N_DOCUMENTS})["hits"]["hits"]
            ranking[number] = {hit["_id"]: hit["_score"] for hit in found}
        compared(log, rs.load_model("model.json"), ranking)
    finally:
        server.close()
