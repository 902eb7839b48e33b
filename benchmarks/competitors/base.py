"""Base class of the competitors."""

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
    """A fitted ranker: its scores, the number of features it uses, and the number of models it tried."""

    scores: Callable[[Dataset], FloatArray]
    n_features: int
    n_models: int = 1


class Competitor:
    """A method of another package or program, or of ranksieve.

    ``measures``: the measures it takes part in. ``objectives``: the problems it can solve exactly ("l1",
    "l2": squared hinge over pairs). For the measure "pipeline" it needs ``grid`` and ``fit``; for solvers,
    ``prepare``, ``solve`` and a list of ``tolerances``, loosest first.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    licence: ClassVar[str]
    package: ClassVar[str] = ""  # on PyPI
    module: ClassVar[str] = ""
    variable: ClassVar[str] = ""  # environment variable with the path of an external program
    measures: ClassVar[frozenset[str]] = frozenset({"pipeline"})
    objectives: ClassVar[frozenset[str]] = frozenset()
    reads_files_itself: ClassVar[bool] = False
    tolerances: ClassVar[Sequence[float]] = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
    grid: ClassVar[Sequence[Mapping[str, Any]]] = ({},)

    def unavailable_reason(self) -> str:
        """Why the competitor cannot run; empty if it can."""
        if self.variable:
            program = os.environ.get(self.variable, "")
            if not program:
                return f"{self.variable} is not set"
            return "" if Path(program).exists() else f"{self.variable}: no such file"
        return "" if importlib.util.find_spec(self.module) else "not installed"

    def version(self) -> str:
        if self.variable:
            return Path(os.environ[self.variable]).name
        return importlib.metadata.version(self.package)

    def read(self, path: Path) -> Dataset:
        """Read a file with scikit-learn, for competitors without a reader."""
        from sklearn.datasets import load_svmlight_file

        X, y, qid = load_svmlight_file(str(path), query_id=True)
        return Dataset(X.toarray(), y, qid)

    def prepare(self, data: Dataset) -> Any:
        """Convert the data to the form that ``solve`` needs."""
        raise NotImplementedError

    def solve(self, prepared: Any, problem: BenchmarkProblem, tol: float) -> FloatArray:
        """Return the weights from the competitor's solver with this tolerance."""
        raise NotImplementedError

    def fit(self, train: Dataset, valid: Dataset, **point: Any) -> FittedRanker:
        """Fit a ranker for one grid point; ``valid`` is for methods with early stopping."""
        raise NotImplementedError


def linear_ranker(w: FloatArray) -> FittedRanker:
    w = np.asarray(w, dtype=np.float64).ravel()
    return FittedRanker(lambda data: np.asarray(data.X @ w), int(np.count_nonzero(w)))


def grouped_rows(data: Dataset) -> tuple[FloatArray, FloatArray, Any]:
    """X and y with the rows grouped by query, and the list lengths."""
    order = data.queries.order
    return data.X[order], data.y[order], np.diff(data.queries.offsets)
