"""Vowpal Wabbit: online linear learning of label-dependent features, one multi-line example per query."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.competitors.base import Competitor, Fitted
from ranksieve.data.dataset import Dataset


class VowpalWabbit(Competitor):
    """csoaa_ldf with scores: a document's cost is how far its label is below the best of its query."""

    name, title, licence = "vowpal-wabbit", "Vowpal Wabbit csoaa_ldf", "BSD-3-Clause"
    package, module = "vowpalwabbit", "vowpalwabbit"
    grid = tuple({"passes": passes, "rate": rate} for passes in (5, 20) for rate in (0.1, 0.5))

    def fit(self, train: Dataset, valid: Dataset, *, passes: int = 5, rate: float = 0.5) -> Fitted:
        from vowpalwabbit import Workspace

        options = f"--csoaa_ldf m --csoaa_rank --noconstant -l {rate} -b 12 --quiet --random_seed 1"
        model = Workspace(options)
        lists = [model.parse(lines) for lines in _lists(train)]
        for _ in range(passes):
            for one in lists:
                model.learn(one)
        for one in lists:
            model.finish_example(one)
        return Fitted(lambda data: _scores(model, data), train.n_features)


def _lists(data: Dataset, labels: bool = True) -> Iterator[list[str]]:
    for lo, hi in zip(data.queries.offsets[:-1], data.queries.offsets[1:], strict=True):
        rows = data.queries.order[lo:hi]
        best = data.y[rows].max()
        yield [
            (f"{k + 1}:{best - data.y[row]:g} " if labels else f"{k + 1} ") + "|f " + _features(data.X[row])
            for k, row in enumerate(rows)
        ]


def _features(x: np.ndarray) -> str:
    return " ".join(f"{j}:{x[j]:.6g}" for j in np.flatnonzero(x))


def _scores(model: Any, data: Dataset) -> np.ndarray:
    """Predicted costs, the lowest first; higher scores are better here."""
    scores = np.empty(data.n_docs)
    for lines, lo, hi in zip(
        _lists(data, labels=False), data.queries.offsets[:-1], data.queries.offsets[1:], strict=True
    ):
        rows = data.queries.order[lo:hi]
        for action, cost in model.predict(lines):
            scores[rows[action]] = -cost
    return scores
