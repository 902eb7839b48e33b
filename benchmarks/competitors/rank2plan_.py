"""rank2plan: RankSVM with ℓ1 as a linear program."""

from __future__ import annotations

import logging
from typing import Any

from benchmarks.competitors.base import Competitor, FittedRanker, linear_ranker
from benchmarks.pairs import pair_rows
from ranksieve.data.dataset import Dataset


class Rank2plan(Competitor):
    """‖w‖₁ + C Σ max(0, 1 − margin) over pairs, by column and constraint generation with the solver CBC."""

    name, title, licence = "rank2plan", "rank2plan (ℓ1, hinge) on pairs", "MIT"
    package, module = "rank2plan", "rank2plan"
    grid = tuple({"C_times_pairs": 10.0**k} for k in (0.5, 1.0, 1.5, 2.0, 2.5))

    def fit(self, train: Dataset, valid: Dataset, **point: Any) -> FittedRanker:
        from pulp import PULP_CBC_CMD
        from rank2plan import LpModel, Pair

        logging.getLogger("rank2plan").setLevel(logging.ERROR)
        better, worse = pair_rows(train)
        # its first document of a pair gets the lower score
        pairs = [Pair(i, j) for i, j in zip(worse.tolist(), better.tolist(), strict=True)]
        solver = PULP_CBC_CMD(mip=False, msg=False, threads=2)
        model = LpModel(solver, True, True, C=point["C_times_pairs"] / len(pairs))
        model.fit(train.X, pairs)
        return linear_ranker(model.weights())
