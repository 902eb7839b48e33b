"""Time of rescoring in Solr and OpenSearch: ``python -m tests.engines.latency`` prints a table."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
import warnings
from pathlib import Path

import lightgbm
import numpy as np

import ranksieve as rs
from tests.engines.harness import HERE, Server
from tests.engines.test_scripts import Node
from tests.engines.test_solr import CORE, features

N_FEATURES, ROUNDS, WARM_UP = 100, 100, 60
SIZES = (100, 1000)


def models(train, test):
    """(label, model or its trees, number of features, NDCG@10 of the test queries)."""
    full = rs.LinearRanker().fit(train)
    sparse = rs.SparseRanker(max_features=8).fit(train)
    curves = rs.SparseRanker(max_features=8, shape="curves").fit(train)
    for label, ranker in (
        ("linear, all features", full),
        ("linear, sparse", sparse),
        ("curves as trees", curves),
    ):
        model = ranker.to_model()
        yield label, model, len(model.terms), ndcg(test, ranker.predict(test))
    goal = ndcg(test, sparse.predict(test))
    for n_trees in (25, 100, 400):
        booster = lightgbm.LGBMRanker(
            n_estimators=n_trees, num_leaves=31, n_jobs=1, verbose=-1, random_state=0
        )
        booster.fit(train.X, train.y, group=train.queries.sizes)
        reached = ndcg(test, booster.predict(test.X))
        if reached >= goal - 0.005:
            break
    used = int(np.count_nonzero(booster.feature_importances_))
    yield f"LightGBM, {n_trees} trees of 31 leaves", booster.booster_, used, reached


def ndcg(data, scores):
    return rs.evaluate(scores, data, "ndcg@10", "standard").mean["ndcg@10"]


def solr_trees(booster, names, name):
    """A LightGBM model as Solr's MultipleAdditiveTreesModel."""

    def node(part):
        if "leaf_value" in part:
            return {"value": repr(part["leaf_value"])}
        sides = {side: node(part[f"{side}_child"]) for side in ("left", "right")}
        return {"feature": names[part["split_feature"]], "threshold": repr(part["threshold"]), **sides}

    trees = [
        {"weight": "1", "root": node(one["tree_structure"])} for one in booster.dump_model()["tree_info"]
    ]
    used = sorted({names[int(j)] for j in np.flatnonzero(booster.feature_importance())})
    kind = "org.apache.solr.ltr.model.MultipleAdditiveTreesModel"
    declared = [{"name": one} for one in used]
    return {"class": kind, "name": name, "store": name, "features": declared, "params": {"trees": trees}}


def timed(run):
    """Median and 95th percentile of milliseconds."""
    for _ in range(WARM_UP):
        run()
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        run()
        times.append(1000 * (time.perf_counter() - start))
    return f"{np.median(times):.1f} ({np.quantile(times, 0.95):.1f})"


def in_solr(data, cases, folder):
    shutil.copytree(HERE / "solr_home", folder / "home")
    server = Server("solr", folder / "home")
    rows = [
        {"id": str(i), "collection": "all", **{f"x{j}": v for j, v in enumerate(x)}}
        for i, x in enumerate(data.X.tolist())
    ]
    server.call("POST", f"{CORE}/update?commit=true", rows)
    yield "no model", [timed(lambda: solr_search(server, 0, None))] * len(SIZES)
    for k, (label, model, _, _) in enumerate(cases):
        name = f"m{k}"
        if isinstance(model, lightgbm.Booster):
            body = solr_trees(model, data.feature_names, name)
            defined = [
                {**one, "store": name} for one in features(data) if {"name": one["name"]} in body["features"]
            ]
        else:
            rs.export_model(
                model, "solr", folder / name, name=name, store=name, featureset=features(data), sample=data
            )
            body, defined = (
                json.loads((folder / name / f"{part}.json").read_text()) for part in ("model", "features")
            )
        server.call("PUT", f"{CORE}/schema/feature-store", defined)
        server.call("PUT", f"{CORE}/schema/model-store", body)
        yield label, [timed(lambda n=n, name=name: solr_search(server, n, name)) for n in SIZES]
    server.close()


def solr_search(server, n, model):
    """The first ten of n documents that are rescored; another filter each time, so that no cache answers."""
    solr_search.count = getattr(solr_search, "count", 0) + 1
    query = {"query": f"collection:all OR id:none{solr_search.count}", "limit": 10, "fields": "id,score"}
    if model:
        query["params"] = {"rq": f"{{!ltr model={model} reRankDocs={n}}}"}
    return server.call("POST", f"{CORE}/query", query)


def in_opensearch(data, cases, folder):
    node = Node("OpenSearch", folder / "node")
    index = node.index(data, data.feature_names)
    plain = {"query": {"match": {"all": "documents"}}, "size": 10}
    yield "no model", [timed(lambda: node.server.call("POST", f"/{index}/_search", plain)) for _ in SIZES]
    for k, (label, model, _, _) in enumerate(cases):
        if isinstance(model, lightgbm.Booster):
            yield label, ["not a script"] * len(SIZES)
            continue
        cells = []
        for n in SIZES:
            result = rs.export_model(model, "opensearch_script", folder / f"s{k}-{n}", name=f"s{k}", window=n)
            script, text = (file.read_text() for file in result.files)
            node.server.call("PUT", f"/_scripts/s{k}", json.loads(script))
            query = json.loads(text.replace("YOUR_FIELD", "all").replace("USER_QUERY", "documents"))
            cells.append(
                timed(
                    lambda query=query: node.server.call("POST", f"/{index}/_search", {**query, "size": 10})
                )
            )
        yield label, cells
    node.server.close()


def main():
    warnings.simplefilter("ignore")
    both = rs.make_ranking(
        n_queries=150, n_features=N_FEATURES, n_informative=8, docs_per_query=(20, 30), random_state=0
    )
    even = np.arange(both.n_queries) % 2 == 0
    train, test = both.select_queries(even), both.select_queries(~even)
    cases = list(models(train, test))
    tables = {}
    for engine, run in (("Solr", in_solr), ("OpenSearch", in_opensearch)):
        with tempfile.TemporaryDirectory() as folder:
            tables[engine] = dict(run(both, cases, Path(folder)))
    print("| model | features | NDCG@10 | Solr, 100 | Solr, 1,000 | OpenSearch, 100 | OpenSearch, 1,000 |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    about = {"no model": ("", "")} | {label: (str(n), f"{value:.3f}") for label, _, n, value in cases}
    for label, cells in about.items():
        print("| " + " | ".join([label, *cells, *tables["Solr"][label], *tables["OpenSearch"][label]]) + " |")
    print(f"{both.n_docs} documents", lightgbm.__version__)


if __name__ == "__main__":
    main()
