"""LIBLINEAR-ranksvm: RankSVM by trust-region Newton with order-statistic trees (``train -s 8``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.competitors.base import FittedRanker, linear_ranker
from benchmarks.competitors.programs import Program, run
from benchmarks.pairs import count_pairs
from benchmarks.problems import BenchmarkProblem
from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset


class LiblinearRankSVM(Program):
    """The ℓ2 objective, without building pairs. RANKSIEVE_LIBLINEAR_RANKSVM: path of ``train``."""

    name, title, licence = "liblinear-ranksvm", "LIBLINEAR-ranksvm", "BSD-3-Clause"
    variable = "RANKSIEVE_LIBLINEAR_RANKSVM"
    measures = frozenset({"to_objective", "pipeline"})
    objectives = frozenset({"l2"})
    grid = tuple({"C_times_pairs": 10.0**k} for k in range(-2, 4))

    def solve(self, prepared: Path, problem: BenchmarkProblem, tol: float) -> FloatArray:
        return self._train(prepared, problem.C, tol, problem.objective.n_features)

    def fit(self, train: Dataset, valid: Dataset, **point: Any) -> FittedRanker:
        C = point["C_times_pairs"] / count_pairs(train)
        return linear_ranker(self._train(self.file_of(train), C, 1e-3, train.n_features))

    def _train(self, data: Path, C: float, tol: float, n_features: int) -> FloatArray:
        model = self.folder / "model"
        run(self.program, "-q", "-s", "8", "-c", repr(C), "-e", repr(tol), data, model)
        return weights_of(model, n_features)


def weights_of(model: Path, n_features: int) -> FloatArray:
    """Read one weight per line after the line ``w``; features that are not in the data have no weight."""
    lines = model.read_text().splitlines()
    values = [float(line.split()[0]) for line in lines[lines.index("w") + 1 :] if line.strip()]
    return np.pad(values, (0, max(0, n_features - len(values))))[:n_features]
