"""Time of rescoring in Solr and OpenSearch: ``python -m tests.engines.latency`` writes docs/engines.md."""

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
from ranksieve.export.painless import POSITIVE
from tests.engines.__main__ import DOCS, write
from tests.engines.harness import HERE, Server
from tests.engines.test_scripts import Node
from tests.engines.test_solr import CORE, features

N_FEATURES, ROUNDS, WARM_UP = 100, 100, 60
SIZES = (100, 1000)
BEGIN, END = "<!-- written by python -m tests.engines.latency -->", "<!-- end of the latency table -->"
HEAD = (
    "| model | features | validation NDCG@10 | test NDCG@10 | Solr, 100 | Solr, 1,000 | OpenSearch, 100 | "
    "OpenSearch, 1,000 |\n|---|--:|--:|--:|--:|--:|--:|--:|\n"
)
N_TREES, N_LEAVES = (25, 50, 100, 200, 400), (4, 8)  # of ensembles


def models(train, valid, test):
    """(label, model or its trees, number of features, NDCG@10 of the validation and the test queries)."""
    full = rs.LinearRanker().fit(train)
    sparse = rs.SparseRanker(max_features=8).fit(train)
    curves = rs.SparseRanker(max_features=8, shape="curves").fit(train)
    for label, ranker in (
        ("linear, all features", full),
        ("linear, sparse", sparse),
        ("curves as trees", curves),
    ):
        model = ranker.to_model()
        yield (
            label,
            model,
            len(model.terms),
            *(ndcg(part, ranker.predict(part)).mean() for part in (valid, test)),
        )
    booster, leaves = as_accurate(ndcg(valid, curves.predict(valid)), train, valid)
    used = int(np.count_nonzero(booster.feature_importance()))
    label = f"LightGBM, {booster.num_trees()} trees of {leaves} leaves"
    yield label, booster, used, *(ndcg(part, booster.predict(part.X)).mean() for part in (valid, test))


def as_accurate(goal, train, valid):
    """The smallest ensemble whose validation NDCG@10 is at most one standard error below the goal."""
    tried = []
    for leaves in N_LEAVES:
        settings = {
            "num_leaves": leaves,
            "min_child_samples": 50,
            "colsample_bytree": 0.5,
            "learning_rate": 0.15,
        }
        settings |= {"n_estimators": max(N_TREES), "n_jobs": 1, "verbose": -1, "random_state": 0}
        ranker = lightgbm.LGBMRanker(**settings)
        booster = ranker.fit(train.X, train.y, group=train.queries.sizes).booster_
        for n_trees in N_TREES:
            lost = goal - ndcg(valid, booster.predict(valid.X, num_iteration=n_trees))
            enough = lost.mean() <= lost.std(ddof=1) / np.sqrt(len(lost))
            tried.append((not enough, n_trees * leaves if enough else lost.mean(), n_trees, leaves, booster))
    _, _, n_trees, leaves, booster = min(tried, key=lambda one: one[:2])
    return lightgbm.Booster(model_str=booster.model_to_string(num_iteration=n_trees)), leaves


def ndcg(data, scores):
    """NDCG@10 of each query."""
    values = rs.evaluate(scores, data, "ndcg@10", "standard").per_query["ndcg@10"]
    return values[~np.isnan(values)]


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


def painless_trees(booster, names):
    """A LightGBM model as a Painless script with a function per tree."""

    def node(part):
        if "leaf_value" in part:
            return repr(part["leaf_value"])
        left, right = (node(part[f"{side}_child"]) for side in ("left", "right"))
        return f"(x[{part['split_feature']}] <= {part['threshold']!r} ? {left} : {right})"

    trees = [node(one["tree_structure"]) for one in booster.dump_model()["tree_info"]]
    functions = [f"double t{k}(double[] x) {{ return {tree}; }}" for k, tree in enumerate(trees)]
    lines = [*functions, f"double[] x = new double[{len(names)}];"]
    used = np.flatnonzero(booster.feature_importance())
    lines += [f"x[{j}] = doc['{names[j]}'].value;" for j in used]
    return "\n".join([*lines, "double s = 0;", *(f"s += t{k}(x);" for k in range(len(trees))), POSITIVE])


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
    for k, (label, model, *_) in enumerate(cases):
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
    limit = {"persistent": {"script.max_size_in_bytes": 10_000_000}}  # for the ensemble
    node.server.call("PUT", "/_cluster/settings", limit)
    plain = {"query": {"match": {"all": "documents"}}, "size": 10}
    yield "no model", [timed(lambda: node.server.call("POST", f"/{index}/_search", plain)) for _ in SIZES]
    for k, (label, model, *_) in enumerate(cases):
        is_ensemble, cells = isinstance(model, lightgbm.Booster), []
        exported = cases[0][1] if is_ensemble else model  # for the query
        for n in SIZES:
            place = folder / f"s{k}-{n}"
            result = rs.export_model(exported, "opensearch_script", place, name=f"s{k}", window=n)
            script, text = (file.read_text() for file in result.files)
            content = json.loads(script)
            if is_ensemble:
                content["script"]["source"] = painless_trees(model, data.feature_names)
            node.server.call("PUT", f"/_scripts/s{k}", content)
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
    queries = rs.make_ranking(
        n_queries=900, n_features=N_FEATURES, n_informative=8, docs_per_query=(20, 30), random_state=0
    )
    part = np.arange(queries.n_queries) % 6
    train, valid, test = (queries.select_queries(one) for one in (part < 4, part == 4, part == 5))
    cases = list(models(train, valid, test))
    tables = {}
    for engine, run in (("Solr", in_solr), ("OpenSearch", in_opensearch)):
        with tempfile.TemporaryDirectory() as folder:
            tables[engine] = dict(run(test, cases, Path(folder)))
    about = {"no model": ("",) * 3}
    about |= {label: (str(n), f"{valid:.3f}", f"{test:.3f}") for label, _, n, valid, test in cases}
    rows = [
        (label, *cells, *(cell for engine in tables.values() for cell in engine[label]))
        for label, cells in about.items()
    ]
    text = HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows)
    print(f"{text}{test.n_docs} documents, LightGBM {lightgbm.__version__}")
    write(DOCS / "engines.md", lambda page: between(page, BEGIN, text))


def between(page, begin, text):
    """The page with this table."""
    before, _, rest = page.partition(begin)
    return f"{before}{begin}\n\n{text}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    main()
