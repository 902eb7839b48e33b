"""skglm on pairs. It has no squared hinge loss, so this file defines one with its interface."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from benchmarks.competitors.base import Competitor, FittedRanker, linear_ranker
from benchmarks.pairs import build_pairs
from benchmarks.problems import BenchmarkProblem
from ranksieve._parallel import single_threaded_blas
from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset


class SkglmOnPairs(Competitor):
    """The ℓ1 objective by coordinate descent with Anderson acceleration, the faster of its suitable solvers.

    BLAS uses one thread: with two, the many short products in compiled code take up to thirty times as long.
    """

    name, title, licence, package, module = "skglm", "skglm on pairs", "BSD-3-Clause", "skglm", "skglm"
    measures = frozenset({"to_objective", "pipeline"})
    objectives = frozenset({"l1"})
    grid = tuple({"share": 10.0**k} for k in (-0.5, -1.0, -1.5, -2.0, -2.5, -3.0))

    def prepare(self, data: Dataset) -> tuple[FloatArray, FloatArray]:
        K, signs = build_pairs(data)
        return np.asfortranarray(K), signs

    def solve(
        self, prepared: tuple[FloatArray, FloatArray], problem: BenchmarkProblem, tol: float
    ) -> FloatArray:
        return fit_pairs(*prepared, problem.strength, tol)

    def fit(self, train: Dataset, valid: Dataset, **point: Any) -> FittedRanker:
        K, signs = self.prepare(train)
        max_alpha = np.abs(2.0 * (K.T @ signs)).max() / len(K)
        return linear_ranker(fit_pairs(K, signs, max_alpha * point["share"], 1e-4))


def fit_pairs(K: FloatArray, signs: FloatArray, alpha: float, tol: float) -> FloatArray:
    from skglm import GeneralizedLinearEstimator
    from skglm.penalties import L1
    from skglm.solvers import AndersonCD

    solver = AndersonCD(tol=tol, fit_intercept=False, warm_start=False)
    with single_threaded_blas(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GeneralizedLinearEstimator(squared_hinge()(), L1(alpha), solver).fit(K, signs)
    w: FloatArray = model.coef_.ravel()
    return w


def path_of_pairs(K: Any, signs: FloatArray, alphas: FloatArray, tol: float) -> Iterator[FloatArray]:
    """Weights for each α of sparse pairs (CSC); each fit starts from the previous one."""
    from skglm.penalties import L1
    from skglm.solvers import AndersonCD
    from skglm.utils.jit_compilation import compiled_clone

    solver = AndersonCD(tol=tol, fit_intercept=False, warm_start=True)
    datafit, w, Kw = compiled_clone(squared_hinge()()), np.zeros(K.shape[1]), np.zeros(len(signs))
    with single_threaded_blas(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for alpha in alphas.tolist():
            w, *_ = solver.solve(K, signs, datafit, compiled_clone(L1(alpha)), w, Kw)
            yield w.copy()


@cache
def squared_hinge() -> Any:
    """(1/p) Σ max(0, 1 − y·Kw)², its derivatives and their Lipschitz constants; skglm compiles the class."""
    from skglm.datafits import BaseDatafit

    class SquaredHinge(BaseDatafit):  # type: ignore[misc]
        def __init__(self) -> None:
            pass

        def get_spec(self) -> tuple[()]:
            return ()

        def params_to_dict(self) -> dict[str, Any]:
            return {}

        def initialize(self, X: FloatArray, y: FloatArray) -> None:
            pass

        def value(self, y: FloatArray, w: FloatArray, Xw: FloatArray) -> Any:
            return np.sum(np.maximum(0.0, 1.0 - y * Xw) ** 2) / len(y)

        def get_lipschitz(self, X: FloatArray, y: FloatArray) -> Any:
            return 2.0 * (X**2).sum(axis=0) / len(y)

        def gradient_scalar(self, X: FloatArray, y: FloatArray, w: FloatArray, Xw: FloatArray, j: int) -> Any:
            return -2.0 * (X[:, j] @ (y * np.maximum(0.0, 1.0 - y * Xw))) / len(y)

        def initialize_sparse(self, data: Any, indptr: Any, indices: Any, y: FloatArray) -> None:
            pass

        def get_lipschitz_sparse(self, data: Any, indptr: Any, indices: Any, y: FloatArray) -> Any:
            lipschitz = np.zeros(len(indptr) - 1)
            for j in range(len(lipschitz)):
                for i in range(indptr[j], indptr[j + 1]):
                    lipschitz[j] += 2.0 * data[i] * data[i] / len(y)
            return lipschitz

        def gradient_scalar_sparse(
            self, data: Any, indptr: Any, indices: Any, y: FloatArray, Xw: FloatArray, j: int
        ) -> Any:
            total = 0.0
            for i in range(indptr[j], indptr[j + 1]):
                k = indices[i]
                total += data[i] * y[k] * max(0.0, 1.0 - y[k] * Xw[k])
            return -2.0 * total / len(y)

        def full_grad_sparse(
            self, data: Any, indptr: Any, indices: Any, y: FloatArray, Xw: FloatArray
        ) -> Any:
            gradient, slack = np.zeros(len(indptr) - 1), y * np.maximum(0.0, 1.0 - y * Xw)
            for j in range(len(gradient)):
                total = 0.0
                for i in range(indptr[j], indptr[j + 1]):
                    total += data[i] * slack[indices[i]]
                gradient[j] = -2.0 * total / len(y)
            return gradient

    return SquaredHinge
