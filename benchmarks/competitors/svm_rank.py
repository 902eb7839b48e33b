"""SVM-rank: hinge loss over pairs by cutting planes, a different objective, so only in the pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.competitors.base import FittedRanker, linear_ranker
from benchmarks.competitors.programs import Program, run, weights_from_pairs
from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset


class SVMRank(Program):
    """RANKSIEVE_SVM_RANK: path of ``svm_rank_learn``. Free for research only."""

    name, title, licence = "svm-rank", "SVM-rank", "research only"
    variable = "RANKSIEVE_SVM_RANK"
    grid = tuple({"C": 10.0**k} for k in range(-2, 4))  # weights the sum over queries

    def fit(self, train: Dataset, valid: Dataset, **point: Any) -> FittedRanker:
        model = self.folder / "model"
        run(self.program, "-c", repr(point["C"]), self.file_of(train), model)
        return linear_ranker(weights_of(model, train.n_features))


def weights_of(model: Path, n_features: int) -> FloatArray:
    """Read the support vector of a linear model from its last line: ``alpha·y number:weight … #``."""
    factor, *pairs = model.read_text().strip().splitlines()[-1].split("#")[0].split()
    return float(factor) * weights_from_pairs(pairs, n_features)
