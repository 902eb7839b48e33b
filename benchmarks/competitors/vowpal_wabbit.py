"""Vowpal Wabbit: online linear learning of label-dependent features, one multi-line example per query."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.competitors.base import Competitor, Fitted, linear
from ranksieve.data.dataset import Dataset


class VowpalWabbit(Competitor):
    """csoaa_ldf: a document's cost is how far its label is below the best of its query; lowest cost first."""

    name, title, licence = "vowpal-wabbit", "Vowpal Wabbit csoaa_ldf", "BSD-3-Clause"
    package, module = "vowpalwabbit", "vowpalwabbit"
    grid = tuple({"passes": passes, "rate": rate} for passes in (5, 20) for rate in (0.1, 0.5))

    def fit(self, train: Dataset, valid: Dataset, *, passes: int = 5, rate: float = 0.5) -> Fitted:
        from vowpalwabbit import Workspace

        options = f"--csoaa_ldf m --csoaa_rank -l {rate} -b 12 --quiet --random_seed 1"
        model = Workspace(options)
        lists = [model.parse(lines) for lines in _lists(train)]
        for _ in range(passes):
            for one in lists:
                model.learn(one)
        for one in lists:
            model.finish_example(one)
        costs = np.array([model.get_weight_from_name(str(j), "f") for j in range(train.n_features)])
        return linear(-costs)


def _lists(data: Dataset) -> Iterator[list[str]]:
    for lo, hi in zip(data.queries.offsets[:-1], data.queries.offsets[1:], strict=True):
        rows = data.queries.order[lo:hi]
        best = data.y[rows].max()
        yield [f"{k + 1}:{best - data.y[row]:g} |f {_features(data.X[row])}" for k, row in enumerate(rows)]


def _features(x: np.ndarray) -> str:
    return " ".join(f"{j}:{x[j]:.6g}" for j in np.flatnonzero(x))
