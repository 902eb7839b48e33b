"""Refuse what cannot be learned from: NaN and infinite features."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ranksieve._types import Matrix
from ranksieve.data.dataset import Dataset

ROWS_AT_ONCE = 65536


def check_finite(data: Dataset) -> None:
    """Raise with row, query and feature of the first value that is NaN or infinite."""
    for start in range(0, data.n_docs, ROWS_AT_ONCE):
        block = data.X[start : start + ROWS_AT_ONCE]
        values = block.data if sp.issparse(block) else block
        with np.errstate(over="ignore", invalid="ignore"):
            total = np.sum(values)
        if not np.isfinite(total):
            _refuse(data, start, block)


def _refuse(data: Dataset, start: int, block: Matrix) -> None:
    dense = block.toarray() if sp.issparse(block) else np.asarray(block)
    bad = np.argwhere(~np.isfinite(dense))
    if len(bad) == 0:  # finite values whose sum overflows
        return
    row, column = int(bad[0][0]), int(bad[0][1])
    where = f"row {start + row} (query {data.qid[start + row]})"
    kind = "missing (NaN)" if np.isnan(dense[row, column]) else f"{dense[row, column]}"
    cure = (
        "fill missing values with ranksieve.fill_missing"
        if kind.startswith("missing")
        else "features must be finite"
    )
    raise ValueError(f"feature {data.feature_names[column]} of {where} is {kind}; {cure}")
