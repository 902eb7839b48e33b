"""skglm's group lasso on pairs of step columns: curves whose penalty counts features, not steps."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from benchmarks.competitors.base import Competitor, FittedRanker
from benchmarks.competitors.skglm_ import squared_hinge
from benchmarks.pairs import build_pairs
from ranksieve._parallel import single_threaded_blas
from ranksieve._types import FloatArray, IntArray
from ranksieve.data.dataset import Dataset

N_STEPS = 8  # per feature; each is a column of the pair matrix


class SkglmGroups(Competitor):
    """(1/p) Σ max(0, 1 − margin)² + α Σ_j √B_j ‖δ_j‖₂ over the B_j steps of each feature, at its quantiles.

    ranksieve's curves have the same loss and the penalty α Σ_j ‖δ_j‖₁, with up to 32 steps.
    """

    name, title, licence = "skglm-groups", "skglm group lasso on pairs of steps", "BSD-3-Clause"
    package, module = "skglm", "skglm"
    grid = tuple({"share": 10.0**k} for k in (-0.5, -1.0, -1.5, -2.0, -2.5))

    def fit(self, train: Dataset, valid: Dataset, **point: Any) -> FittedRanker:
        thresholds = [inner_quantiles(x) for x in train.X.T]
        sizes = [len(one) for one in thresholds if len(one)]
        K, signs = build_pairs(Dataset(steps(train.X, thresholds), train.y, train.qid))
        w = fit_groups(np.asfortranarray(K), signs, np.array(sizes), point["share"])
        ends = np.cumsum(sizes)
        used = sum(bool(w[end - size : end].any()) for size, end in zip(sizes, ends, strict=True))
        return FittedRanker(lambda data: steps(data.X, thresholds) @ w, used)


def inner_quantiles(x: FloatArray) -> FloatArray:
    """At most N_STEPS thresholds above the lowest value."""
    quantiles = np.unique(np.quantile(x, np.arange(1, N_STEPS + 1) / (N_STEPS + 1)))
    above: FloatArray = quantiles[quantiles > x.min()]
    return above


def steps(X: FloatArray, thresholds: Sequence[FloatArray]) -> FloatArray:
    """Columns 1[x ≥ t], feature by feature."""
    columns = [x[:, None] >= some for x, some in zip(X.T, thresholds, strict=True)]
    return np.hstack(columns).astype(np.float64)


def fit_groups(K: FloatArray, signs: FloatArray, sizes: IntArray, share: float) -> FloatArray:
    from skglm import GeneralizedLinearEstimator
    from skglm.penalties import WeightedGroupL2
    from skglm.solvers import GroupBCD

    pointers = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
    groups = pointers, np.arange(K.shape[1], dtype=np.int32)
    weights = np.sqrt(sizes)
    slopes = np.add.reduceat((2.0 * (K.T @ signs) / len(K)) ** 2, pointers[:-1]) ** 0.5
    penalty = WeightedGroupL2(share * float(np.max(slopes / weights)), weights, *groups)
    with single_threaded_blas(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GeneralizedLinearEstimator(_squared_hinge_of_groups()(*groups), penalty, GroupBCD(tol=1e-4))
        w: FloatArray = model.fit(K, signs).coef_.ravel()
    return w


@cache
def _squared_hinge_of_groups() -> Any:
    """The squared hinge with the gradient and the Lipschitz constant of each group."""
    from numba import int32

    class SquaredHingeOfGroups(squared_hinge()):  # type: ignore[misc]
        def __init__(self, grp_ptr: IntArray, grp_indices: IntArray) -> None:
            self.grp_ptr, self.grp_indices = grp_ptr, grp_indices

        def get_spec(self) -> tuple[Any, ...]:
            return ("grp_ptr", int32[:]), ("grp_indices", int32[:])

        def params_to_dict(self) -> dict[str, Any]:
            return {"grp_ptr": self.grp_ptr, "grp_indices": self.grp_indices}

        def get_lipschitz(self, X: FloatArray, y: FloatArray) -> Any:
            constants = np.zeros(len(self.grp_ptr) - 1)
            for g in range(len(constants)):
                columns = X[:, self.grp_indices[self.grp_ptr[g] : self.grp_ptr[g + 1]]]
                constants[g] = 2.0 * np.linalg.norm(columns.T @ columns, 2) / len(y)
            return constants

        def gradient_g(self, X: FloatArray, y: FloatArray, w: FloatArray, Xw: FloatArray, g: int) -> Any:
            columns = self.grp_indices[self.grp_ptr[g] : self.grp_ptr[g + 1]]
            pulls = -2.0 * y * np.maximum(0.0, 1.0 - y * Xw) / len(y)
            gradient = np.zeros(len(columns))
            for k, j in enumerate(columns):
                gradient[k] = X[:, j] @ pulls
            return gradient

    return SquaredHingeOfGroups
