"""Elasticsearch's own learning to rank: its classes parse the trained model and evaluate it."""

from __future__ import annotations

import numpy as np
import pytest

from ranksieve.export import export_model
from tests.engines.cases import compare, curve_cases
from tests.engines.harness import classpath, java, record, version_of
from tests.engines.test_vespa import table

pytestmark = pytest.mark.engines


def test_scores_are_the_models(tmp_path):
    classpath("elasticsearchltr")
    work = []
    for k, case in enumerate(curve_cases()):
        result = export_model(case.model, "elasticsearch_ltr", tmp_path / str(k))
        data, out = (
            table(case.data, case.data.feature_names, tmp_path / f"{k}.data"),
            tmp_path / f"{k}.scores",
        )
        work.append((case, result, f"{result.files[0]} {data} {out}\n", out))
    java("elasticsearchltr", stdin="".join(line for _, _, line, _ in work))
    done = [
        compare(case, "elasticsearch_ltr", result, np.array(out.read_text().split(), dtype=float))
        for case, result, _, out in work
    ]
    version = f"{version_of('elasticsearchltr', 'x-pack-core')}, its classes"
    record("Elasticsearch 8", version, "elasticsearch_ltr", done)
