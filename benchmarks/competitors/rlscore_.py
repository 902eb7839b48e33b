"""RLScore: RankRLS over queries."""

from __future__ import annotations

from typing import Any

from benchmarks.competitors.base import Competitor, FittedRanker, linear_ranker
from ranksieve.data.dataset import Dataset


class RLScore(Competitor):
    """Squared loss on differences of scores and labels, solved in closed form."""

    name, title, licence, package, module = "rlscore", "RLScore QueryRankRLS", "MIT", "rlscore", "rlscore"
    grid = tuple({"regparam": 2.0**k} for k in range(-10, 11, 4))

    def fit(self, train: Dataset, valid: Dataset, **point: Any) -> FittedRanker:
        from rlscore.learner import QueryRankRLS

        queries = train.queries.restore(train.queries.query_of_grouped)
        learner = QueryRankRLS(train.X, train.y, queries, **point)
        return linear_ranker(learner.predictor.W)
