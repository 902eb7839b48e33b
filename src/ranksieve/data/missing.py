"""What becomes of missing values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from ranksieve._types import FloatArray, IntArray, Matrix
from ranksieve.data.dataset import Dataset
from ranksieve.data.queries import Queries

Fill = Callable[[FloatArray, Queries], FloatArray]


def _zero(column: FloatArray, queries: Queries) -> FloatArray:
    return np.zeros(len(column))


def _query_min(column: FloatArray, queries: Queries) -> FloatArray:
    """The least present value of the row's query, 0 if it has none."""
    minima = np.fmin.reduceat(queries.group(column), queries.offsets[:-1])
    return queries.restore(np.repeat(np.nan_to_num(minima, nan=0.0), queries.sizes))


def _column_mean(column: FloatArray, queries: Queries) -> FloatArray:
    """The mean of the present values, 0 if there are none."""
    present = column[~np.isnan(column)]
    return np.full(len(column), present.mean() if len(present) else 0.0)


FILLS: dict[str, Fill] = {"zero": _zero, "query_min": _query_min, "column_mean": _column_mean}
MISSING_POLICIES = ("error", *FILLS, "keep")
OTHER_POLICIES = "choose missing=" + ", ".join(f'"{name}"' for name in FILLS) + ' or "keep"'


def check_policy(policy: str) -> None:
    """Refuse a policy that is not in the table."""
    if policy not in MISSING_POLICIES:
        raise ValueError(f"missing={policy!r} is unknown; choose one of {', '.join(MISSING_POLICIES)}")


def fill_missing(dataset: Dataset, policy: str) -> Dataset:
    """Replace NaN features.

    Policies: ``"error"`` refuses them, ``"zero"`` puts 0, ``"query_min"`` the feature's minimum over the
    query's present values, ``"column_mean"`` its mean over all present values (both 0 where none is
    present), ``"keep"`` leaves NaN. What a sparse matrix does not store is present and 0.
    """
    check_policy(policy)
    if policy == "keep" or not has_missing(dataset.X):
        return dataset
    if policy == "error":
        _refuse(dataset)
    X = dataset.X.copy() if sp.issparse(dataset.X) else np.array(dataset.X)
    fill_in_place(X, dataset.queries, policy)
    return dataset.replace_features(X)


def has_missing(X: Matrix) -> bool:
    """Whether any value is NaN."""
    return bool(np.isnan(np.min(X.data if sp.issparse(X) else X, initial=np.inf)))


def fill_in_place(X: Matrix, queries: Queries, policy: str) -> None:
    """Replace the NaNs of a matrix that nobody else holds."""
    if sp.issparse(X):
        _fill_sparse(X, queries, FILLS[policy])
        return
    for j in np.flatnonzero(np.isnan(X.min(axis=0))):
        column = X[:, j].astype(np.float64)
        X[:, j] = np.where(np.isnan(column), FILLS[policy](column, queries), column)


def _fill_sparse(X: Matrix, queries: Queries, fill: Fill) -> None:
    entries = np.flatnonzero(np.isnan(X.data))
    entries = entries[np.argsort(X.indices[entries], kind="stable")]
    rows = np.searchsorted(X.indptr, entries, side="right") - 1
    columns, starts = np.unique(X.indices[entries], return_index=True)
    values = X.tocsc()[:, columns]
    for k, holes in enumerate(np.split(np.arange(len(entries)), starts[1:])):
        column = _dense_column(values, k)
        X.data[entries[holes]] = fill(column, queries)[rows[holes]]


def _dense_column(X: Matrix, j: int) -> FloatArray:
    column = np.zeros(X.shape[0])
    stored: IntArray = np.arange(X.indptr[j], X.indptr[j + 1])
    column[X.indices[stored]] = X.data[stored]
    return column


def _refuse(dataset: Dataset) -> None:
    if sp.issparse(dataset.X):
        entry = int(np.flatnonzero(np.isnan(dataset.X.data))[0])
        row, column = (
            int(np.searchsorted(dataset.X.indptr, entry, side="right")) - 1,
            dataset.X.indices[entry],
        )
    else:
        row = int(np.flatnonzero(np.isnan(dataset.X.min(axis=1)))[0])
        column = np.flatnonzero(np.isnan(dataset.X[row]))[0]
    raise ValueError(
        f"feature {dataset.feature_names[column]} of row {row} (query {dataset.qid[row]}) is missing; "
        f"{OTHER_POLICIES}"
    )
