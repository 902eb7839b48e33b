"""Vowpal Wabbit: online logistic regression on pair differences, or on a sample of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.competitors.base import Competitor, FittedRanker, linear_ranker
from benchmarks.pairs import pair_rows
from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset

MAX_PAIRS = 50_000  # examples are text; this many are enough for an online learner


class VowpalWabbit(Competitor):
    """Default updates (adaptive, normalised, invariant), without a constant, which cancels in differences."""

    name, title, licence = "vowpal-wabbit", "Vowpal Wabbit on pairs, logistic", "BSD-3-Clause"
    package, module = "vowpalwabbit", "vowpalwabbit"
    grid = tuple({"passes": passes, "rate": rate} for passes in (1, 5) for rate in (0.05, 0.5))

    def fit(self, train: Dataset, valid: Dataset, **point: Any) -> FittedRanker:
        from vowpalwabbit import Workspace

        model = Workspace(f"--loss_function logistic --noconstant -l {point['rate']} -b 12 --quiet")
        examples = [model.parse(line) for line in _lines(train)]
        for _ in range(point["passes"]):
            for example in examples:
                model.learn(example)
        for example in examples:
            model.finish_example(example)
        w = [model.get_weight_from_name(str(j), "f") for j in range(train.n_features)]
        return linear_ranker(np.array(w))


def _lines(data: Dataset) -> list[str]:
    """``1 |f 0:0.5 …`` for more minus less relevant document, with the opposite sign for every other pair."""
    rng = np.random.default_rng(0)
    better, worse = pair_rows(data)
    sample = rng.permutation(len(better))[:MAX_PAIRS]
    signs = np.where(np.arange(len(sample)) % 2, 1, -1)
    K = (data.X[better[sample]] - data.X[worse[sample]]) * signs[:, None]
    return [f"{sign} |f {_features(x)}" for sign, x in zip(signs, K, strict=True)]


def _features(x: FloatArray) -> str:
    return " ".join(f"{j}:{x[j]:.6g}" for j in np.flatnonzero(x))
