"""sofia-ml, by its Python package pysofia: stochastic steps on sampled pairs."""

from __future__ import annotations

from typing import Any

from benchmarks.competitors.base import Competitor, Fitted, linear
from ranksieve.data.dataset import Dataset


class SofiaML(Competitor):
    """Pegasos RankSVM."""

    name, title, licence, package, module = (
        "sofia-ml",
        "sofia-ml (pysofia)",
        "Apache-2.0",
        "pysofia",
        "pysofia",
    )
    grid = tuple({"alpha": 10.0**k} for k in range(-6, -1))

    def fit(self, train: Dataset, valid: Dataset, **point: Any) -> Fitted:
        import pysofia

        queries = train.queries.restore(train.queries.query_of_grouped)
        options = {"max_iter": 1_000_000, "model": "rank", "step_type": "pegasos"}
        weights, _ = pysofia.svm_train(train.X, train.y, queries, **point, **options)
        return linear(weights)
