"""Vespa's own classes: the parser of schemas and the evaluator of ranking expressions."""

from __future__ import annotations

import numpy as np
import pytest

from ranksieve.export import export_model
from tests.engines.cases import Case, compare, curve_cases, documents, linear, linear_cases
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
