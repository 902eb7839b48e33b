"""fastrank: coordinate ascent on NDCG@10, and random forests."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from benchmarks.competitors.base import Competitor, FittedRanker
from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset


class FastRank(Competitor):
    licence, package, module = "MIT", "fastrank", "fastrank"
    kind: str

    def fit(self, train: Dataset, valid: Dataset, **point: Any) -> FittedRanker:
        import fastrank

        request = getattr(fastrank.TrainRequest, self.kind)()
        request.measure = "ndcg@10"
        for name, value in {"seed": 42, "quiet": True, **point}.items():
            setattr(request.params, name, value)
        model = _to_fastrank(train).train_model(request)
        return FittedRanker(lambda data: _scores(model, data), _features_of(model.to_dict()))


class FastRankLinear(FastRank):
    name, title, kind = "fastrank-linear", "fastrank coordinate ascent", "coordinate_ascent"
    grid = ({"num_restarts": 3, "num_max_iterations": 10}, {"num_restarts": 5, "num_max_iterations": 25})


class FastRankForest(FastRank):
    name, title, kind = "fastrank-forest", "fastrank random forest", "random_forest"
    grid = tuple({"num_trees": 100, "max_depth": depth} for depth in (4, 8))


def _to_fastrank(data: Dataset) -> Any:
    from fastrank import CDataset

    qid = np.ascontiguousarray(data.queries.restore(data.queries.query_of_grouped), dtype=np.int64)
    X = np.ascontiguousarray(data.X, dtype=np.float32)
    return CDataset.from_numpy(X, np.ascontiguousarray(data.y, dtype=np.float64), qid)


def _scores(model: Any, data: Dataset) -> FloatArray:
    return np.array(model.predict_dense_scores(_to_fastrank(data)))


def _features_of(model: dict[str, Any]) -> int:
    """Number of nonzero weights, or of features in the splits of trees."""
    if "Linear" in model:
        return int(np.count_nonzero(model["Linear"]["weights"]))
    return len(set(re.findall(r'"fid": (\d+)', json.dumps(model))))
