"""ranksieve."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.competitors.base import Competitor, FittedRanker
from benchmarks.harness import our_version
from benchmarks.problems import BenchmarkProblem, solve
from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.io.letor import read_letor
from ranksieve.objective import make_objective


class Ranksieve(Competitor):
    """The solvers, including the time to build the objective, and SparseRanker with its defaults."""

    name, title, licence, module = "ranksieve", "ranksieve", "Apache-2.0", "ranksieve"
    measures = frozenset(
        {"to_objective", "path", "fenchelrank", "pipeline", "memory", "reading", "startup", "predictions"}
        | {"threads", "roofline", "growth", "writing", "logs"}
    )
    objectives = frozenset({"l1", "l2"})

    def version(self) -> str:
        return our_version()

    def read(self, path: Path) -> Dataset:
        return read_letor(path)

    def prepare(self, data: Dataset) -> Dataset:
        return data

    def solve(self, prepared: Dataset, problem: BenchmarkProblem, tol: float) -> FloatArray:
        w: FloatArray = solve(make_objective(prepared), problem, tol).w
        return w

    def fit(self, train: Dataset, valid: Dataset, **point: Any) -> FittedRanker:
        from ranksieve.rankers import SparseRanker

        ranker = SparseRanker(**point).fit(train, valid=valid)
        return FittedRanker(ranker.predict, len(ranker.support_), len(ranker.choice_.coefs))
