"""XGBoost: linear boosting with rank:pairwise, and trees with rank:ndcg."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import numpy as np

from benchmarks.competitors.base import Competitor, FittedRanker, grouped_rows
from ranksieve._types import AnyArray
from ranksieve.data.dataset import Dataset


class XGBoost(Competitor):
    licence, package, module = "Apache-2.0", "xgboost", "xgboost"
    parameters: ClassVar[dict[str, Any]]

    def fit(self, train: Dataset, valid: Dataset, *, rounds: int = 100, **point: Any) -> FittedRanker:
        import xgboost as xgb

        X, y, sizes = grouped_rows(train)
        matrix = xgb.DMatrix(X, label=y)
        matrix.set_group(sizes)
        options = {**self.parameters, **point, "seed": 0, "nthread": 2, "verbosity": 0}
        booster = xgb.train(options, matrix, num_boost_round=rounds)
        return FittedRanker(lambda data: booster.predict(xgb.DMatrix(data.X)), self.features_of(booster))

    def features_of(self, booster: Any) -> int:
        return len(booster.get_score(importance_type="weight"))


class XGBoostLinear(XGBoost):
    """gblinear: logistic loss over pairs with ℓ1, by coordinate-wise boosting."""

    name, title = "xgboost-linear", "XGBoost gblinear, rank:pairwise"
    parameters: ClassVar = {"booster": "gblinear", "objective": "rank:pairwise"}
    grid = tuple({"alpha": a, "rounds": rounds} for a in (0.0, 1e-4, 1e-3) for rounds in (50, 200))

    def features_of(self, booster: Any) -> int:
        return sum(float(weight) != 0.0 for weight in _weights(booster))


class XGBoostTrees(XGBoost):
    """Boosted trees with NDCG lambda gradients."""

    name, title = "xgboost-trees", "XGBoost trees, rank:ndcg"
    measures = frozenset({"pipeline", "startup"})
    parameters: ClassVar = {"booster": "gbtree", "objective": "rank:ndcg", "eta": 0.1, "tree_method": "hist"}
    grid = tuple({"max_depth": depth, "rounds": rounds} for depth in (3, 6) for rounds in (50, 100, 200))


def _weights(booster: Any) -> AnyArray:
    return np.ravel(json.loads(booster.get_dump(dump_format="json")[0])["weight"])
