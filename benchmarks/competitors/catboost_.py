"""CatBoost: YetiRank and PairLogit."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.competitors.base import Competitor, FittedRanker
from ranksieve.data.dataset import Dataset


class CatBoost(Competitor):
    """Oblivious trees with one of two ranking losses."""

    name, title, licence = "catboost", "CatBoost YetiRank, PairLogit", "Apache-2.0"
    package, module = "catboost", "catboost"
    measures = frozenset({"pipeline", "startup"})
    grid = tuple({"loss": loss, "rounds": n} for loss in ("YetiRank", "PairLogit") for n in (100, 200))

    def fit(self, train: Dataset, valid: Dataset, **point: Any) -> FittedRanker:
        from catboost import CatBoost as Model
        from catboost import Pool

        order = train.queries.order
        pool = Pool(train.X[order], train.y[order], group_id=train.queries.query_of_grouped)
        options: dict[str, Any] = {"random_seed": 0, "thread_count": 2, "allow_writing_files": False}
        model = Model(
            {"loss_function": point["loss"], "iterations": point["rounds"], "verbose": False, **options}
        )
        model.fit(pool)
        used = int(np.count_nonzero(model.get_feature_importance(pool, type="PredictionValuesChange")))
        return FittedRanker(lambda data: np.asarray(model.predict(data.X)), used)
