"""Scores of linear models, and rankings by them, on a GPU; PyTorch is loaded when it is needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ranksieve._types import FloatArray, IntArray, Matrix
from ranksieve.data.queries import one_query
from ranksieve.gpu.matrix import DeviceMatrix, find_device, on_gpu
from ranksieve.prepare import Preparation

ROWS = 256  # that a program scores


class Terms(NamedTuple):
    """Columns, and what is done to each: (x − centre) / scale, a missing x being ``fill``."""

    columns: IntArray
    centre: FloatArray
    scale: FloatArray
    fill: FloatArray


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
    n, fill = len(columns), 0.0 if missing.policy == "zero" else np.nan
    terms = Terms(
        columns,
        np.array(normalisation.centre) if normalisation.learns else np.zeros(n),
        np.array(normalisation.scale) if normalisation.learns else np.ones(n),
        np.array(missing.means) if missing.means else np.full(n, fill),
    )
    values = matrix.values
    return lambda weights: np.asarray(scores_of(values, terms, weights).cpu().numpy())


def scores_of(X: Any, terms: Terms, weights: FloatArray) -> Any:
    """Σ_k weight_k · (x_k − centre_k) / scale_k of each row, with the bits of the processor's sums."""
    import torch

    from ranksieve.gpu.kernels import prepared_sums

    numbers = [torch.from_numpy(np.ascontiguousarray(one)).to(X.device) for one in (weights, *terms[1:])]
    columns = torch.from_numpy(np.ascontiguousarray(terms.columns, dtype=np.int64)).to(X.device)
    out = torch.empty(len(X), dtype=torch.float64, device=X.device)
    prepared_sums[(-(-len(X) // ROWS),)](
        X, columns, *numbers, out, len(X), X.shape[1], len(columns), ROWS=ROWS, enable_fp_fusion=False
    )
    return out
