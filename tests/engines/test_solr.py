"""Solr: a server with the module ltr; features, models and rerank queries as its documentation says."""

from __future__ import annotations

import json
import shutil
import urllib.parse

import numpy as np
import pytest

from ranksieve.export import export_model
from tests.engines.cases import (
    Case,
    check_warning,
    close_curves,
    close_times,
    compare,
    curve_cases,
    curves,
    documents,
    linear,
    linear_cases,
    with_holes,
)
from tests.engines.harness import HERE, Server, record, version_of

pytestmark = pytest.mark.engines
CORE = "/solr/documents"
PART = 600  # documents of one search; a query reranks at most 1000


@pytest.fixture(scope="module")
def solr(tmp_path_factory):
    home = tmp_path_factory.mktemp("solr") / "home"
    shutil.copytree(HERE / "solr_home", home)
    server = Server("solr", home)
    yield server
    server.close()


@pytest.fixture(scope="module")
def index(solr):
    return Index(solr)


class Index:
    """Indexes each data set once, with the fields x0, x1, … of a document."""

    def __init__(self, server):
        self.server, self.known = server, {}

    def collection(self, data):
        key = (data.feature_names, data.X.tobytes())
        if key not in self.known:
            self.known[key] = name = f"set{len(self.known)}"
            rows = []
            for i, x in enumerate(data.X.tolist()):
                row = {"id": f"{name}-{i}", "collection": name, "part": i // PART}
                rows.append(row | {f"x{j}": v for j, v in enumerate(x) if not np.isnan(v)})
            self.server.call("POST", f"{CORE}/update?commit=true", rows)
        return self.known[key]


def features(data, defaults=None):
    kind = "org.apache.solr.ltr.feature.FieldValueFeature"
    parts = [{"field": f"x{j}"} for j in range(data.n_features)]
    if defaults is not None:
        parts = [{**part, "defaultValue": value} for part, value in zip(parts, defaults, strict=True)]
    return [
        {"name": name, "class": kind, "params": part}
        for name, part in zip(data.feature_names, parts, strict=True)
    ]


def scores(server, index, data, result):
    """Upload the files and run the exported query over all documents of the data."""
    folder = result.files[0].parent
    content = {file.stem: json.loads(file.read_text()) for file in result.files}
    server.call("PUT", f"{CORE}/schema/feature-store", content["features"])
    server.call("PUT", f"{CORE}/schema/model-store", content["model"])
    collection, theirs = index.collection(data), np.full(data.n_docs, np.nan)
    text = (folder / "query.json").read_text().replace("USER_QUERY", "*:*")
    for part in range(-(-data.n_docs // PART)):
        query = {**json.loads(text), "filter": [f"collection:{collection}", f"part:{part}"], "limit": PART}
        found = server.call("POST", f"{CORE}/query", query)["response"]["docs"]
        ranked = [one["score"] for one in found]
        assert ranked == sorted(ranked, reverse=True)
        for one in found:
            theirs[int(one["id"].split("-")[1])] = one["score"]
    store = content["model"]["store"]
    for kind, name in (("model", content["model"]["name"]), ("feature", store)):
        server.call("DELETE", f"{CORE}/schema/{kind}-store/{urllib.parse.quote(name)}")
    return theirs


@pytest.mark.filterwarnings(
    "ignore:the model learned levels", "ignore:the model replaces missing", "ignore:.*32-bit"
)
@pytest.mark.parametrize("shape", ["linear", "curves"])
def test_scores_are_the_models(solr, index, shape, tmp_path):
    done = []
    dates = documents(date=True)
    far = Case("a date", linear(dates), dates)
    cases = [*linear_cases(policies=("zero",)), far] if shape == "linear" else curve_cases()
    for k, case in enumerate(cases):
        result = export_model(
            case.model, "solr", tmp_path / str(k), name=f"model{k}", store=f"store{k}",
            featureset=features(case.data), sample=case.data,
        )  # fmt: skip
        theirs = scores(solr, index, case.data, result)
        assert theirs.min() >= 0
        zeros = case.data.replace_features(np.nan_to_num(case.data.X))
        done.append(compare(case, "solr", result, theirs, data=zeros))
    record("Solr", version_of("solr", "solr-core"), f"solr, {shape}", done)


@pytest.mark.parametrize("shape", ["linear", "curves"])
def test_ranks_are_as_the_warning_of_float32_says(solr, index, shape, tmp_path):
    case = close_times() if shape == "linear" else close_curves()
    with pytest.warns(UserWarning, match="32-bit") as caught:
        result = export_model(
            case.model, "solr", tmp_path / "out", name=f"times_{shape}", store=f"times_{shape}",
            featureset=features(case.data), sample=case.data,
        )  # fmt: skip
    check_warning(case, caught, scores(solr, index, case.data, result))


@pytest.mark.parametrize("shape", ["linear", "curves"])
def test_the_advised_default_values_stand_for_missing_values(solr, index, shape, tmp_path):
    data = with_holes(documents())
    if shape == "linear":
        model = linear(data, "z", 1.0, "column_mean")
        defaults = [float(np.float32(mean)) for mean in model.preparation.missing.means]
    else:
        model, defaults = curves(data, missing=1.0), [3.4028235e38] * data.n_features
    with pytest.warns(UserWarning, match="default value"):
        result = export_model(
            model, "solr", tmp_path / "out", name=f"defaults_{shape}", store=f"defaults_{shape}",
            featureset=features(data, defaults), sample=data,
        )  # fmt: skip
    done = compare(Case(shape, model, data), "solr", result, scores(solr, index, data, result))
    assert done.orders == 0
