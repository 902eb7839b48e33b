"""Refuse what cannot be learned from: NaN and infinite features."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from ranksieve._types import AnyArray, BoolArray, Matrix
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


def first_place(X: Matrix, wanted: Callable[[AnyArray], BoolArray]) -> tuple[int, int] | None:
    """Row and column of the first wanted value, row by row; of a sparse matrix only stored values count."""
    if not sp.issparse(X):
        places = np.argwhere(wanted(np.asarray(X)))
        return (int(places[0][0]), int(places[0][1])) if len(places) else None
    rows = sp.csr_array(X, copy=True)
    rows.sum_duplicates()  # which also puts the columns of each row in order
    entries = np.flatnonzero(wanted(rows.data))
    if len(entries) == 0:
        return None
    row = np.searchsorted(rows.indptr, entries[0], side="right") - 1
    return int(row), int(rows.indices[entries[0]])


def _refuse(data: Dataset, start: int, block: Matrix) -> None:
    place = first_place(block, lambda values: ~np.isfinite(values))
    if place is None:  # finite values whose sum overflows
        return
    value, (row, column) = block[place], place
    where = f"row {start + row} (query {data.qid[start + row]})"
    kind = "missing (NaN)" if np.isnan(value) else f"{value}"
    cure = (
        "fill missing values with ranksieve.fill_missing"
        if kind.startswith("missing")
        else "features must be finite"
    )
    raise ValueError(f"feature {data.feature_names[column]} of {where} is {kind}; {cure}")
