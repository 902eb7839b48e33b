"""scikit-learn's LinearSVC (LIBLINEAR) on pairs."""

from __future__ import annotations

import warnings
from typing import Any

from benchmarks.competitors.base import Competitor, FittedRanker, linear_ranker
from benchmarks.pairs import build_pairs
from benchmarks.problems import BenchmarkProblem
from ranksieve._parallel import single_threaded_blas
from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset


class LinearSVCOnPairs(Competitor):
    """The same objectives in the primal, by trust-region Newton (ℓ2) or coordinate descent (ℓ1)."""

    name, title, licence = "linearsvc", "scikit-learn LinearSVC on pairs", "BSD-3-Clause"
    package, module = "scikit-learn", "sklearn"
    measures = frozenset({"to_objective", "path", "pipeline", "memory"})
    objectives = frozenset({"l1", "l2"})
    grid = tuple({"C_times_pairs": 10.0**k} for k in range(-2, 4))

    def prepare(self, data: Dataset) -> tuple[FloatArray, FloatArray]:
        return build_pairs(data)

    def solve(
        self, prepared: tuple[FloatArray, FloatArray], problem: BenchmarkProblem, tol: float
    ) -> FloatArray:
        return fit_pairs(*prepared, problem.kind, problem.C, tol)

    def fit(self, train: Dataset, valid: Dataset, **point: Any) -> FittedRanker:
        K, signs = build_pairs(train)
        return linear_ranker(fit_pairs(K, signs, "l2", point["C_times_pairs"] / len(K), 1e-4))


def fit_pairs(K: FloatArray, signs: FloatArray, penalty: str, C: float, tol: float) -> FloatArray:
    from sklearn.svm import LinearSVC

    svc = LinearSVC(
        penalty=penalty, loss="squared_hinge", dual=False, fit_intercept=False, C=C, tol=tol,
        max_iter=10_000, random_state=0,
    )  # fmt: skip
    with single_threaded_blas(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        w: FloatArray = svc.fit(K, signs).coef_[0]
    return w
