"""What a data set holds, in figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ranksieve._types import AnyArray, BoolArray, IntArray, Matrix
from ranksieve.data.dataset import Dataset
from ranksieve.data.queries import Queries

CELLS_AT_ONCE = 2**21


@dataclass(frozen=True)
class Description:
    """Figures of a data set; features go by name.

    ``n_pairs`` counts (i, j) of one query with y_i > y_j. ``zero_share`` is the share of values that are 0.
    """

    n_docs: int
    n_queries: int
    n_features: int
    list_length_min: int
    list_length_median: float
    list_length_max: int
    label_counts: dict[float, int]
    n_pairs: int
    n_queries_without_pairs: int
    n_single_document_queries: int
    n_scattered_queries: int
    constant_features: tuple[str, ...]
    constant_within_queries: tuple[str, ...]
    duplicate_features: tuple[tuple[str, ...], ...]
    missing: dict[str, int]
    n_missing: int
    n_infinite: int
    zero_share: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; labels become text."""
        plain = asdict(self)
        plain["label_counts"] = {
            repr(label).removesuffix(".0"): count for label, count in self.label_counts.items()
        }
        return plain


def describe(dataset: Dataset) -> Description:
    """Count documents, queries, pairs and labels; find constant, duplicate and missing features."""
    queries, names = dataset.queries, np.array(dataset.feature_names)
    pairs = pairs_per_query(dataset)
    labels, counts = np.unique(dataset.y, return_counts=True)
    columns = _columns(dataset)
    missing = {str(names[j]): int(columns.missing[j]) for j in np.flatnonzero(columns.missing)}
    return Description(
        n_docs=dataset.n_docs,
        n_queries=dataset.n_queries,
        n_features=dataset.n_features,
        list_length_min=int(queries.sizes.min()),
        list_length_median=float(np.median(queries.sizes)),
        list_length_max=int(queries.sizes.max()),
        label_counts=dict(zip(labels.tolist(), counts.tolist(), strict=True)),
        n_pairs=int(pairs.sum()),
        n_queries_without_pairs=int(np.sum(pairs == 0)),
        n_single_document_queries=int(np.sum(queries.sizes == 1)),
        n_scattered_queries=_n_scattered(queries),
        constant_features=tuple(names[~columns.varies].tolist()),
        constant_within_queries=tuple(names[~columns.varies_within].tolist()),
        duplicate_features=tuple(
            tuple(names[group].tolist()) for group in _duplicates(dataset.X, columns.key)
        ),
        missing=missing,
        n_missing=sum(missing.values()),
        n_infinite=columns.n_infinite,
        zero_share=columns.n_zero / (dataset.n_docs * dataset.n_features),
    )


def varying_columns(dataset: Dataset) -> BoolArray:
    """Features that are not constant within every query: the others cannot change a ranking."""
    return _columns(dataset).varies_within


def pairs_per_query(dataset: Dataset) -> IntArray:
    """Pairs of each query: (n_q² − Σ_l n_ql²)/2 with n_ql its documents of label l."""
    queries = dataset.queries
    labels = np.unique(dataset.y, return_inverse=True)[1]
    n_labels = int(labels.max()) + 1
    cells = np.unique(queries.query_of_grouped * n_labels + queries.group(labels), return_counts=True)
    same = np.zeros(queries.n_queries, dtype=np.int64)
    np.add.at(same, cells[0] // n_labels, cells[1] ** 2)
    pairs: IntArray = (queries.sizes**2 - same) // 2
    return pairs


def _n_scattered(queries: Queries) -> int:
    """Queries whose rows do not stand together."""
    spread = queries.order[queries.offsets[1:] - 1] - queries.order[queries.offsets[:-1]]
    return int(np.sum(spread + 1 != queries.sizes))


@dataclass
class Columns:
    """What one pass finds out about each column.

    ``key`` is Σ_i r_i·bits(x_i) modulo 2^64 with random odd r: equal columns have equal keys, and zeros add
    nothing.
    """

    varies: BoolArray
    varies_within: BoolArray
    missing: IntArray
    key: AnyArray
    n_zero: int = 0
    n_infinite: int = 0


def _columns(dataset: Dataset) -> Columns:
    return _sparse_columns(dataset) if sp.issparse(dataset.X) else _dense_columns(dataset)


def _empty_columns(d: int) -> Columns:
    varies, varies_within = np.zeros((2, d), dtype=bool)
    return Columns(varies, varies_within, np.zeros(d, dtype=np.int64), np.zeros(d, dtype=np.uint64))


def _bits(values: AnyArray) -> AnyArray:
    """Bit patterns that are equal when values are, also for −0 and NaN."""
    wide = values.astype(np.float64) + 0.0
    wide[np.isnan(wide)] = np.nan
    return wide.view(np.uint64)


def _row_factors(n_rows: int) -> AnyArray:
    return np.random.default_rng(0).integers(2**64, size=n_rows, dtype=np.uint64) | np.uint64(1)


def _dense_columns(dataset: Dataset) -> Columns:
    """One pass over blocks of rows in grouped order; neighbours of one query are compared."""
    queries, columns = dataset.queries, _empty_columns(dataset.n_features)
    factors = _row_factors(dataset.n_docs)
    first = _bits(np.asarray(dataset.X[queries.order[:1]]))[0]
    for rows, fresh in _row_blocks(queries.n_rows, dataset.n_features):
        block = np.asarray(dataset.X[queries.order[rows]] if not queries.contiguous else dataset.X[rows])
        bits = _bits(block)
        columns.varies |= (bits != first).any(axis=0)
        same_query = np.diff(queries.query_of_grouped[rows]) == 0
        columns.varies_within |= ((bits[1:] != bits[:-1]) & same_query[:, None]).any(axis=0)
        columns.missing += np.isnan(block[fresh]).sum(axis=0)
        columns.n_infinite += int(np.isinf(block[fresh]).sum())
        columns.n_zero += int(np.sum(block[fresh] == 0))
        columns.key += bits[fresh].T @ factors[rows][fresh]
    return columns


def _row_blocks(n_rows: int, width: int) -> Iterator[tuple[slice, slice]]:
    """Blocks of rows that begin with the last row of the block before, and the part of them that is new."""
    step = max(1, CELLS_AT_ONCE // width)
    for start in range(0, n_rows, step):
        overlap = min(start, 1)
        yield slice(start - overlap, min(start + step, n_rows)), slice(overlap, None)


def _sparse_columns(dataset: Dataset) -> Columns:
    """The stored entries alone: a column varies within a query unless all of its rows hold one value."""
    X, queries, columns = dataset.X.copy(), dataset.queries, _empty_columns(dataset.n_features)
    X.sum_duplicates()
    X.eliminate_zeros()
    row_of = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    bits = _bits(X.data)
    np.add.at(columns.missing, X.indices, np.isnan(X.data))
    np.add.at(columns.key, X.indices, bits * _row_factors(X.shape[0])[row_of])
    columns.n_infinite = int(np.isinf(X.data).sum())
    columns.n_zero = X.shape[0] * X.shape[1] - X.nnz
    query_of = queries.restore(queries.query_of_grouped)
    columns.varies = _varies(X.indices, bits, np.full(X.shape[1], X.shape[0]))
    cell = query_of[row_of] * X.shape[1] + X.indices
    cells, code = np.unique(cell, return_inverse=True)
    within = _varies(code, bits, queries.sizes[cells // X.shape[1]])
    columns.varies_within[cells[within] % X.shape[1]] = True
    return columns


def _varies(group: IntArray, bits: AnyArray, sizes: IntArray) -> BoolArray:
    """Whether a group of ``sizes`` values, of which only the nonzero ones are given, has two that differ."""
    least, most = np.full(len(sizes), 2**64 - 1, dtype=np.uint64), np.zeros(len(sizes), dtype=np.uint64)
    np.minimum.at(least, group, bits)
    np.maximum.at(most, group, bits)
    given = np.bincount(group, minlength=len(sizes))
    varies: BoolArray = (given > 0) & ((given < sizes) | (least != most))
    return varies


def _duplicates(X: Matrix, key: AnyArray) -> list[list[int]]:
    """Groups of columns that are equal in every row: equal keys, then compared."""
    order = np.argsort(key, kind="stable")
    runs = np.split(order, np.flatnonzero(np.diff(key[order])) + 1)
    candidates = [run.tolist() for run in runs if len(run) > 1]
    columns = X.tocsc() if candidates and sp.issparse(X) else X
    return sorted(group for run in candidates for group in _equal_columns(columns, run))


def _equal_columns(X: Matrix, candidates: list[int]) -> list[list[int]]:
    groups: list[list[int]] = []
    for j in candidates:
        group = next((g for g in groups if np.array_equal(_column_bits(X, g[0]), _column_bits(X, j))), None)
        groups.append([j]) if group is None else group.append(j)
    return [group for group in groups if len(group) > 1]


def _column_bits(X: Matrix, j: int) -> AnyArray:
    return _bits(X[:, [j]].toarray() if sp.issparse(X) else np.asarray(X[:, j]))
