"""Scores of linear models, and rankings by them, on a GPU."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from ranksieve._types import FloatArray, IntArray
from ranksieve.gpu.kernels import prepared_sums

ROWS = 256  # that a program scores


class Terms(NamedTuple):
    """Columns, and what is done to each: (x − centre) / scale, a missing x being ``fill``."""

    columns: IntArray
    centre: FloatArray
    scale: FloatArray
    fill: FloatArray


def scores_of(X: Any, terms: Terms, weights: FloatArray) -> Any:
    """Σ_k weight_k · (x_k − centre_k) / scale_k of each row, with the bits of the processor's sums."""
    numbers = [torch.from_numpy(np.ascontiguousarray(one)).to(X.device) for one in (weights, *terms[1:])]
    columns = torch.from_numpy(np.ascontiguousarray(terms.columns, dtype=np.int64)).to(X.device)
    out = torch.empty(len(X), dtype=torch.float64, device=X.device)
    prepared_sums[(-(-len(X) // ROWS),)](
        X, columns, *numbers, out, len(X), X.shape[1], len(columns), ROWS=ROWS, enable_fp_fusion=False
    )
    return out


def ranked(scores: Any, offsets: IntArray) -> IntArray:
    """Each list's rows by descending score; equal scores keep their order."""
    query = torch.repeat_interleave(torch.from_numpy(np.diff(offsets)).to(scores.device))
    order = torch.sort(scores, descending=True, stable=True)[1]
    order = order[torch.sort(query[order], stable=True)[1]]
    return np.asarray(order.cpu().numpy())
