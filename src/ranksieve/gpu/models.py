"""Scores of linear models on a GPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ranksieve._types import FloatArray, IntArray, Matrix
from ranksieve.data.queries import one_query
from ranksieve.gpu import find_device
from ranksieve.gpu.matrix import DeviceMatrix, on_gpu
from ranksieve.prepare import Preparation


def scorer_on_gpu(
    preparation: Preparation, matrix: Matrix, columns: IntArray, device: str
) -> Callable[[FloatArray], FloatArray] | None:
    """A function from the weights of some columns to scores, on a GPU; None if the processor is to do it.

    That is so where features are prepared within each query, or tell that others are missing. Of features
    that are elsewhere, these columns alone are moved.
    """
    if not isinstance(matrix, DeviceMatrix):
        if device == "cpu":
            return None
        find_device(device)
    missing, normalisation = preparation.missing, preparation.normalisation
    if preparation.per_query or missing.indicates or not len(columns):
        return None
    if not isinstance(matrix, DeviceMatrix):
        used, columns = np.unique(columns, return_inverse=True)
        matrix = on_gpu(matrix[:, used], one_query(matrix.shape[0]), device)
    from ranksieve.gpu.scoring import Terms, scores_of

    n, fill = len(columns), 0.0 if missing.policy == "zero" else np.nan
    terms = Terms(
        columns,
        np.array(normalisation.centre) if normalisation.learns else np.zeros(n),
        np.array(normalisation.scale) if normalisation.learns else np.ones(n),
        np.array(missing.means) if missing.means else np.full(n, fill),
    )
    values = matrix.values
    return lambda weights: np.asarray(scores_of(values, terms, weights).cpu().numpy())
