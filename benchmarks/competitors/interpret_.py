"""interpret's explainable boosting machine: an additive model of curves, fitted to the labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.competitors.base import Competitor, FittedRanker
from ranksieve.data.dataset import Dataset


class ExplainableBoosting(Competitor):
    """Least squares of the label, without regard to queries or pairs, and without interactions."""

    name, title, licence = "ebm", "interpret EBM (pointwise, additive)", "MIT"
    package, module = "interpret-core", "interpret"
    grid = tuple({"max_bins": n} for n in (32, 1024))

    def fit(self, train: Dataset, valid: Dataset, **point: Any) -> FittedRanker:
        from interpret.glassbox import ExplainableBoostingRegressor

        model = ExplainableBoostingRegressor(interactions=0, random_state=0, n_jobs=2, **point)
        model.fit(train.X, train.y)
        used = sum(bool(np.ptp(scores[1:-1]) > 0) for scores in model.term_scores_)
        return FittedRanker(lambda data: np.asarray(model.predict(data.X)), used)
