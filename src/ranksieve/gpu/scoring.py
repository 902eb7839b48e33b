"""Scores of linear models on a GPU; PyTorch is imported only when needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ranksieve._types import FloatArray, IntArray, Matrix
from ranksieve.data.queries import one_query
from ranksieve.gpu.matrix import DeviceMatrix, find_device, on_gpu
from ranksieve.prepare import Preparation

SCORE_ROWS = 256  # per program


class Terms(NamedTuple):
    """Columns with their preparation: (x − centre) / scale, where a missing x is ``fill``."""

    columns: IntArray
    centre: FloatArray
    scale: FloatArray
    fill: FloatArray


def scorer_on_gpu(
    preparation: Preparation, matrix: Matrix, columns: IntArray, device: str
) -> Callable[[FloatArray], FloatArray] | None:
    """A function that maps the weights of ``columns`` to scores on a GPU; None if the CPU must be used.

    That is the case if features are prepared per query, or if there are indicators of missing values. If X is
    not on the GPU, only these columns are copied.
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
    """Σ_k weight_k · (x_k − centre_k) / scale_k of each row, with the same bits as on the CPU."""
    import torch

    from ranksieve.gpu.kernels import prepared_sums

    numbers = [torch.from_numpy(np.ascontiguousarray(one)).to(X.device) for one in (weights, *terms[1:])]
    columns = torch.from_numpy(np.ascontiguousarray(terms.columns, dtype=np.int64)).to(X.device)
    out = torch.empty(len(X), dtype=torch.float64, device=X.device)
    prepared_sums[(-(-len(X) // SCORE_ROWS),)](
        X, columns, *numbers, out, len(X), X.shape[1], len(columns), ROWS=SCORE_ROWS, enable_fp_fusion=False
    )
    return out
