"""celer on pairs: logistic loss with ℓ1, a different objective, so it only takes part in the pipeline."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from benchmarks.competitors.base import Competitor, FittedRanker, linear_ranker
from benchmarks.pairs import build_pairs
from ranksieve._parallel import single_threaded_blas
from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset


class CelerOnPairs(Competitor):
    """ℓ1 logistic regression of pair differences."""

    name, title, licence, package, module = (
        "celer",
        "celer (logistic) on pairs",
        "BSD-3-Clause",
        "celer",
        "celer",
    )
    grid = tuple({"share": 10.0**k} for k in (-0.5, -1.0, -1.5, -2.0))

    def fit(self, train: Dataset, valid: Dataset, **point: Any) -> FittedRanker:
        from celer import LogisticRegression

        K, signs = build_pairs(train)
        max_zero_C = 2.0 / np.abs(K.T @ signs).max()  # all weights are 0 up to this C
        model = LogisticRegression(C=max_zero_C / point["share"], tol=1e-4)
        with single_threaded_blas(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return linear_ranker(model.fit(np.asfortranarray(K), signs).coef_)


def path_of_pairs(K: Any, signs: FloatArray, ratios: FloatArray, tol: float) -> FloatArray:
    """Weights (features × points) of ℓ1 logistic regression on sparse pairs (CSC).

    ``ratios`` are the strengths as shares of the largest one.
    """
    from celer import celer_path

    largest = np.abs(K.T @ signs).max() / 2.0
    with single_threaded_blas(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        coefs: FloatArray = celer_path(K, signs, "logreg", alphas=largest * ratios, tol=tol)[1]
    return coefs
