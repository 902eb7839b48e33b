"""Exports in engines that are Python packages: onnxruntime, LightGBM, XGBoost, Qdrant's client."""

from __future__ import annotations

import json
from importlib.metadata import version

import numpy as np
import pytest

from ranksieve.export import export_model
from tests.engines.cases import (
    ODD_NAMES,
    SIZE,
    Case,
    check_warning,
    close_curves,
    close_times,
    compare,
    curve_cases,
    documents,
    hybrid_model,
    linear,
    linear_cases,
    result_lists,
)
from tests.engines.harness import record

pytestmark = pytest.mark.engines
PLAIN = dict(zip(ODD_NAMES, (f"name_{k}_ö" for k in range(len(ODD_NAMES))), strict=True))


def dates():
    data = documents(date=True)
    return Case("a date", linear(data, "z", 0.5), data)


def columns(case):
    return case.data.X[:, [term.index for term in case.model.terms]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_onnxruntime(dtype, tmp_path):
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    done = []
    for k, case in enumerate([*linear_cases(), *curve_cases(), *([dates()] if dtype == "float64" else [])]):
        result = export_model(case.model, "onnx", tmp_path / f"{k}.onnx", dtype=dtype)
        session = runtime.InferenceSession(result.files[0], providers=["CPUExecutionProvider"])
        names = json.loads(session.get_modelmeta().custom_metadata_map["features"])
        assert names == case.model.names
        (theirs,) = session.run(["scores"], {"features": columns(case).astype(dtype)})
        # A tree ensemble returns float32.
        precision = "float32" if case.model.has_curves else dtype
        done.append(compare(case, "onnx", result, theirs, precision))
    record("onnxruntime", version("onnxruntime"), f"onnx, {dtype}", done)


@pytest.mark.parametrize("case", [close_times(), close_curves()], ids=["linear", "curves"])
def test_onnxruntime_ranks_as_the_warning_of_float32_says(case, tmp_path):
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    with pytest.warns(UserWarning, match="32-bit") as caught:
        result = export_model(case.model, "onnx", tmp_path / "model.onnx", sample=case.data)
    session = runtime.InferenceSession(result.files[0], providers=["CPUExecutionProvider"])
    (theirs,) = session.run(["scores"], {"features": columns(case).astype(np.float32)})
    check_warning(case, caught, theirs)


def test_xgboost_ranks_as_the_warning_of_float32_says(tmp_path):
    xgboost = pytest.importorskip("xgboost", reason="XGBoost is not installed")
    case = close_curves()
    with pytest.warns(UserWarning, match="32-bit") as caught:
        result = export_model(case.model, "xgboost", tmp_path / "model.json", sample=case.data)
    booster = xgboost.Booster(model_file=result.files[0])
    theirs = booster.predict(xgboost.DMatrix(columns(case), feature_names=booster.feature_names))
    check_warning(case, caught, theirs)


def names_for(case):
    return {name: PLAIN[name] for name in case.model.names if name in PLAIN}


def test_lightgbm(tmp_path):
    lightgbm = pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    done = []
    for k, case in enumerate(curve_cases()):
        result = export_model(case.model, "lightgbm", tmp_path / f"{k}.txt", names=names_for(case))
        booster = lightgbm.Booster(model_file=result.files[0])
        done.append(compare(case, "lightgbm", result, booster.predict(columns(case)), "float64"))
    record("LightGBM", version("lightgbm"), "lightgbm", done)


def test_xgboost(tmp_path):
    xgboost = pytest.importorskip("xgboost", reason="XGBoost is not installed")
    done = []
    for k, case in enumerate(curve_cases()):
        result = export_model(case.model, "xgboost", tmp_path / f"{k}.json", names=names_for(case))
        booster = xgboost.Booster(model_file=result.files[0])
        matrix = xgboost.DMatrix(columns(case), feature_names=booster.feature_names)
        done.append(compare(case, "xgboost", result, booster.predict(matrix)))
    record("XGBoost", xgboost.__version__, "xgboost", done)


def test_qdrant(tmp_path):
    qdrant = pytest.importorskip("qdrant_client", reason="Qdrant's client is not installed")
    done = []
    for k, case in enumerate([*linear_cases(), dates()]):
        keys = [f'"{PLAIN.get(name, name)} {j}"' for j, name in enumerate(case.data.feature_names)]
        names = dict(zip(case.data.feature_names, keys, strict=True))
        result = export_model(case.model, "qdrant", tmp_path / str(k), names=names, window=case.data.n_docs)
        theirs = formula_scores(qdrant, case.data, [key[1:-1] for key in keys], result.files[0])
        done.append(compare(case, "qdrant", result, theirs, "float32 score"))
    record("Qdrant", f"client {version('qdrant-client')}, local", "qdrant", done)


def test_qdrant_with_several_searches(tmp_path):
    """Each clause is a vector of one number, so that its scores are these; a list is a filter."""
    qdrant = pytest.importorskip("qdrant_client", reason="Qdrant's client is not installed")
    models, client, data = qdrant.models, qdrant.QdrantClient(":memory:"), result_lists()
    case = Case("hybrid", hybrid_model("none"), data)
    result = export_model(case.model, "qdrant", tmp_path / "out", window=SIZE)
    vector = models.VectorParams(size=1, distance=models.Distance.DOT)
    client.create_collection("documents", dict.fromkeys(data.feature_names, vector))
    points = [
        models.PointStruct(
            id=i,
            vector={k: [v] for k, v in zip(data.feature_names, x, strict=True) if not np.isnan(v)},
            payload={"list": int(data.qid[i])},
        )
        for i, x in enumerate(data.X.tolist())
    ]
    client.upsert("documents", points)
    theirs = np.full(data.n_docs, np.nan)
    for query in np.unique(data.qid).tolist():
        content = json.loads(result.files[0].read_text())
        for name, search in zip(data.feature_names, content["prefetch"], strict=True):
            search |= {"query": [1.0], "using": name}
            search["filter"] = {"must": [{"key": "list", "match": {"value": query}}]}
        request = models.QueryRequest(**{**content, "limit": SIZE})
        done = client.query_points("documents", request.query, prefetch=request.prefetch, limit=SIZE)
        for point in done.points:
            theirs[point.id] = point.score
    comparison = compare(case, "qdrant", result, theirs, "float32 score")
    record("Qdrant", f"client {version('qdrant-client')}, local", "qdrant, searches", [comparison])


def formula_scores(qdrant, data, keys, file):
    """Scores of all documents by the exported query, with a vector in the place of its placeholders."""
    models, client = qdrant.models, qdrant.QdrantClient(":memory:")
    client.create_collection("documents", models.VectorParams(size=1, distance=models.Distance.DOT))
    points = [
        models.PointStruct(
            id=i, vector=[1.0], payload={k: v for k, v in zip(keys, x, strict=True) if not np.isnan(v)}
        )
        for i, x in enumerate(data.X.tolist())
    ]
    client.upsert("documents", points)
    content = json.loads(file.read_text())
    for search in content["prefetch"]:
        search["query"] = [1.0]
        del search["using"]
    request = models.QueryRequest(**{**content, "limit": data.n_docs})
    done = client.query_points("documents", request.query, prefetch=request.prefetch, limit=request.limit)
    theirs = np.full(data.n_docs, np.nan)
    for point in done.points:
        theirs[point.id] = point.score
    return theirs
