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
    rows = ["\t".join(map(repr, x)) for x in data.X.tolist()]
    path.write_text("\n".join(["\t".join(names), *rows]).replace("nan", "NaN") + "\n")
    return path


@pytest.mark.filterwarnings("ignore:the model learned levels", "ignore:the model replaces missing")
@pytest.mark.parametrize("shape", ["linear", "curves"])
@pytest.mark.parametrize("target", PHASES)
def test_scores_are_the_models(target, shape, tmp_path):
    classpath("vespa")
    dates = documents(date=True)
    cases = [*linear_cases(policies=()), Case("a date", linear(dates, "z", 0.5), dates)]
    work = []
    for k, case in enumerate(cases if shape == "linear" else curve_cases()):
        features = [f"attribute(x{j})" for j in range(case.data.n_features)]
        result = export_model(
            case.model, target, tmp_path / str(k), name=f"profile_{k}",
            names=dict(zip(case.data.feature_names, features, strict=True)),
        )  # fmt: skip
        paths = [tmp_path / f"{k}.{part}" for part in ("schema", "data", "scores")]
        paths[0].write_text(schema(result.files[0].read_text(), case.data.n_features))
        table(case.data, features, paths[1])
        work.append((case, result, f"{paths[0]} profile_{k} {PHASES[target]} {paths[1]} {paths[2]}\n", paths[2]))
    java("vespa", stdin="".join(line for *_, line, _ in work))
    done = []
    for case, result, _, path in work:
        theirs = np.array(path.read_text().split(), dtype=float)
        done.append(compare(case, target, result, theirs, "float64"))
    record("Vespa", f"{version_of('vespa', 'searchlib')}, its classes", f"{target}, {shape}", done)
