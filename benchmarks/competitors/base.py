"""What a competitor is: a name, whether it is here, and what it can take part in."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from benchmarks.problems import BenchmarkProblem
from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset


@dataclass(frozen=True)
class FittedRanker:
    """A ranker: its scores, how many features they need, and of how many models it is the best."""

    scores: Callable[[Dataset], FloatArray]
    n_features: int
    n_models: int = 1


class Competitor:
    """One way to learn a ranker.

    ``measures`` names what it takes part in, ``objectives`` the problems that it states exactly ("l1", "l2":
    squared hinge over pairs). One that takes part in "pipeline" has a ``grid`` and ``fit``; one that solves
    has ``prepare`` and ``solve``, and a ladder of ``tolerances``, loosest first.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    licence: ClassVar[str]
    package: ClassVar[str] = ""  # on PyPI
    module: ClassVar[str] = ""
    variable: ClassVar[str] = ""  # the environment variable that names an external program
    measures: ClassVar[frozenset[str]] = frozenset({"pipeline"})
    objectives: ClassVar[frozenset[str]] = frozenset()
    reads_files_itself: ClassVar[bool] = False
    tolerances: ClassVar[Sequence[float]] = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
    grid: ClassVar[Sequence[Mapping[str, Any]]] = ({},)

    def unavailable_reason(self) -> str:
        """Why it cannot take part, in a word or two; empty if it can."""
        if self.variable:
            given = os.environ.get(self.variable, "")
            if not given:
                return f"{self.variable} is not set"
            return "" if Path(given).exists() else f"{self.variable}: no such file"
        return "" if importlib.util.find_spec(self.module) else "not installed"

    def version(self) -> str:
        if self.variable:
            return Path(os.environ[self.variable]).name
        return importlib.metadata.version(self.package)

    def read(self, path: Path) -> Dataset:
        """A file, by scikit-learn's reader, as users of a competitor without one would read it."""
        from sklearn.datasets import load_svmlight_file

        X, y, qid = load_svmlight_file(str(path), query_id=True)
        return Dataset(X.toarray(), y, qid)

    def prepare(self, data: Dataset) -> Any:
        """What ``solve`` takes: the data in the competitor's own form."""
        raise NotImplementedError

    def solve(self, prepared: Any, problem: BenchmarkProblem, tol: float) -> FloatArray:
        """Weights, by its own solver at its own tolerance."""
        raise NotImplementedError

    def fit(self, train: Dataset, valid: Dataset, **point: Any) -> FittedRanker:
        """A ranker for one point of the grid; ``valid`` only for those that stop early on it."""
        raise NotImplementedError


def linear_ranker(w: FloatArray) -> FittedRanker:
    """A linear ranker of weights."""
    w = np.asarray(w, dtype=np.float64).ravel()
    return FittedRanker(lambda data: np.asarray(data.X @ w), int(np.count_nonzero(w)))


def grouped_rows(data: Dataset) -> tuple[FloatArray, FloatArray, Any]:
    """X and y query by query, and the lengths of the lists."""
    order = data.queries.order
    return data.X[order], data.y[order], np.diff(data.queries.offsets)
