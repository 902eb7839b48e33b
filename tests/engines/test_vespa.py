"""Vespa's own classes: the parser of schemas and the evaluator of ranking expressions."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from ranksieve.data.dataset import Dataset
from ranksieve.export import export_model
from ranksieve.rankers.hybrid import ENGINES
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
from tests.engines.harness import classpath, java, record, version_of

pytestmark = pytest.mark.engines
PHASES = {"vespa": "first", "vespa_second_phase": "second", "vespa_global_phase": "global"}


def schema(profile, n_features):
    fields = "".join(
        f"    field x{j} type double {{\n      indexing: attribute\n    }}\n" for j in range(n_features)
    )
    return f"schema documents {{\n  document documents {{\n{fields}  }}\n{profile}}}\n"


def table(data, names, path):
    rows = ["\t".join([str(q), *map(repr, x)]) for q, x in zip(data.qid, data.X.tolist(), strict=True)]
    path.write_text("\n".join(["\t".join(["query", *names]), *rows]).replace("nan", "NaN") + "\n")
    return path


def cases(target, shape):
    if shape == "curves":
        yield from curve_cases()
        return
    yield from linear_cases(policies=())
    dates = documents(date=True)
    yield Case("a date", linear(dates, "z", 0.5), dates)
    if target == "vespa_global_phase":
        yield Case("query_min_max", linear(dates, "query_min_max", 0.5), dates)


@pytest.mark.filterwarnings("ignore:the model learned levels", "ignore:the model replaces missing")
@pytest.mark.parametrize("shape", ["linear", "curves"])
def test_scores_are_the_models(shape, tmp_path):
    classpath("vespa")
    work = []
    pairs = [(target, case) for target in PHASES for case in cases(target, shape)]
    for k, (target, case) in enumerate(pairs):
        features = [f"attribute(x{j})" for j in range(case.data.n_features)]
        result = export_model(
            case.model, target, tmp_path / str(k), name=f"profile_{k}",
            names=dict(zip(case.data.feature_names, features, strict=True)),
        )  # fmt: skip
        paths = [tmp_path / f"{k}.{part}" for part in ("schema", "data", "scores")]
        paths[0].write_text(schema(result.files[0].read_text(), case.data.n_features))
        table(case.data, features, paths[1])
        line = f"{paths[0]} profile_{k} {PHASES[target]} {paths[1]} {paths[2]}\n"
        work.append((target, case, result, line, paths[2]))
    java("vespa", stdin="".join(line for *_, line, _ in work))
    done = {target: [] for target in PHASES}
    for target, case, result, _, path in work:
        theirs = np.array(path.read_text().split(), dtype=float)
        done[target].append(compare(case, target, result, theirs, "float64"))
    for target, comparisons in done.items():
        record("Vespa", f"{version_of('vespa', 'searchlib')}, its classes", f"{target}, {shape}", comparisons)


def dumped(file):
    """The files of an exported model that Vespa imports: XGBoost's dump and binary model, LightGBM's dump."""
    if file.suffix == ".txt":
        lightgbm = pytest.importorskip("lightgbm", reason="LightGBM is not installed")
        dump = file.with_suffix(".json")
        dump.write_text(json.dumps(lightgbm.Booster(model_file=file).dump_model()))
        return [dump]
    xgboost = pytest.importorskip("xgboost", reason="XGBoost is not installed")
    booster, dump, binary = (
        xgboost.Booster(model_file=file),
        file.with_suffix(".dump.json"),
        file.with_suffix(".ubj"),
    )
    booster.dump_model(dump, dump_format="json")
    booster.save_model(binary)
    return [dump, binary]


@pytest.mark.parametrize("target", ["lightgbm", "xgboost"])
def test_models_of_boosters_are_imported(target, tmp_path):
    classpath("vespa")
    work = []
    for k, case in enumerate(curve_cases(odd_names=False)):
        features = [f"attribute(x{j})" for j in range(case.data.n_features)]
        names = dict(zip(case.data.feature_names, features, strict=True))
        file = tmp_path / f"{k}.{'txt' if target == 'lightgbm' else 'json'}"
        result = export_model(case.model, target, file, names=names)
        for form, model in enumerate(dumped(file)):
            paths = [tmp_path / f"{k}-{form}.{part}" for part in ("data", "scores")]
            table(case.data, features, paths[0])
            line = f"{model} - import {paths[0]} {paths[1]}\n"
            work.append((case, result, model.suffixes[0], line, paths[1]))
    java("vespa", stdin="".join(line for *_, line, _ in work))
    done = []
    for case, result, form, _, path in work:
        theirs = np.array(path.read_text().split(), dtype=float)
        if form == ".dump":  # without the intercept
            theirs += np.float32(case.model.intercept)
        done.append(compare(case, target, result, theirs, "float64" if target == "lightgbm" else "float32"))
    record("Vespa", f"{version_of('vespa', 'searchlib')}, its classes", f"{target}, imported", done)


def test_hybrid_searches(tmp_path):
    """Weights are query parameters, whose values are those of the exported query profile."""
    classpath("vespa")
    data, work = result_lists(), []
    features = [f"attribute(x{j})" for j in range(data.n_features)]
    for k, kind in enumerate(ENGINES["vespa"]):
        case = Case(kind, hybrid_model(kind), data)
        result = export_model(
            case.model, "vespa_global_phase", tmp_path / str(k), name=f"profile_{k}",
            names=dict(zip(data.feature_names, features, strict=True)), window=SIZE,
        )  # fmt: skip
        profile, fields, _ = (file.read_text() for file in result.files)
        weights = re.findall(r'name="input\.(query\(\w+\))">(.+?)<', fields)
        assert len(weights) == data.n_features
        paths = [tmp_path / f"{k}.{part}" for part in ("schema", "data", "scores")]
        paths[0].write_text(schema(profile, data.n_features))
        values = np.broadcast_to([float(weight) for _, weight in weights], (data.n_docs, len(weights)))
        columns = Dataset(np.hstack([np.nan_to_num(data.X), values]), data.y, data.qid)
        table(columns, [*features, *(name for name, _ in weights)], paths[1])
        work.append((case, result, f"{paths[0]} profile_{k} global {paths[1]} {paths[2]}\n", paths[2]))
    java("vespa", stdin="".join(line for *_, line, _ in work))
    done = [
        compare(
            case, "vespa_global_phase", result, np.array(path.read_text().split(), dtype=float), "float64"
        )
        for case, result, _, path in work
    ]
    version = f"{version_of('vespa', 'searchlib')}, its classes"
    record("Vespa", version, "vespa_global_phase, hybrid", done)
