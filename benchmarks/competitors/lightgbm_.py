"""LightGBM's lambdarank (LambdaMART)."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.competitors.base import Competitor, FittedRanker, grouped_rows
from ranksieve.data.dataset import Dataset


class LightGBM(Competitor):
    name, title, licence = "lightgbm", "LightGBM lambdarank", "MIT"
    package, module = "lightgbm", "lightgbm"
    measures = frozenset({"pipeline", "startup"})
    grid = tuple({"num_leaves": n, "rounds": rounds} for n in (7, 31) for rounds in (50, 100, 200))

    def fit(self, train: Dataset, valid: Dataset, *, rounds: int = 100, **point: Any) -> FittedRanker:
        import lightgbm as lgb

        X, y, sizes = grouped_rows(train)
        options = {
            "objective": "lambdarank",
            "learning_rate": 0.1,
            "seed": 0,
            "num_threads": 2,
            "verbosity": -1,
        }
        booster = lgb.train({**options, **point}, lgb.Dataset(X, y.astype(int), group=sizes), rounds)
        used = int(np.count_nonzero(booster.feature_importance()))
        return FittedRanker(lambda data: np.asarray(booster.predict(data.X)), used)
