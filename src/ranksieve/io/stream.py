"""LETOR files of any size, a few whole queries at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from ranksieve._types import FloatArray, Matrix, PathLike
from ranksieve.data.dataset import Dataset
from ranksieve.data.matrix import stack, widened
from ranksieve.data.queries import text_array
from ranksieve.errors import DataError, ParameterError
from ranksieve.io.letor import (
    NO_FEATURE,
    DenseRows,
    FeatureNames,
    SparseRows,
    check_width,
    letor_documents,
    names_for,
)
from ranksieve.io.text_files import profile_of_files, source_name
from ranksieve.prepare.missing import check_policy, fill_missing

STREAM_BYTES = 1 << 21


def stream_letor(
    path: PathLike,
    *,
    n_features: int | None = None,
    missing: str = "keep",
    sparse: bool = False,
    dtype: DTypeLike = np.float64,
    names: PathLike | Sequence[str] | None = None,
    chunk_bytes: int = STREAM_BYTES,
) -> Iterator[Dataset]:
    """Read LETOR text, plain or gzip, as data sets of whole queries, in the order of the file.

    Memory holds about ``chunk_bytes`` of text with its rows, the longest query, and the ids seen. A query
    whose rows are not together is an error. Query ids are always str, whatever ids come later;
    comments and document ids are left out.

    Parameters
    ----------
    path : path
        ``-`` is standard input.
    n_features : int, optional
        Number of columns; a larger index is an error. Default: the largest index so far, up to ten million,
        so that data sets may get wider as the file goes on; a feature that is not there yet is 0.
    missing : {"keep", "error", "zero", "query_min"}
        What becomes of ``NULL`` and ``NaN``, see :func:`fill_missing`; a column's mean needs the whole file.
    sparse, dtype, names
        As in :func:`read_letor`. With names the number of columns is known, as with ``n_features``.
    chunk_bytes : int
        Bytes of text read at a time.
    """
    check_policy(missing)
    if missing == "column_mean":
        reason = (
            "needs the whole file, but a stream reads a part at a time; choose `missing='zero'` or "
            "`missing='query_min'`"
        )
        raise ParameterError("missing", missing, reason)
    for name, value in (("n_features", n_features), ("chunk_bytes", chunk_bytes)):
        if value is not None and (value != int(value) or value < 1):
            raise ParameterError(name, value, "must be an integer ≥ 1")
    check_width(n_features)
    feature_names = names_for(names, [path])
    width = n_features or (None if feature_names is None else len(feature_names.names))
    parts = _whole_queries(path, width, missing == "error", sparse, np.dtype(dtype), chunk_bytes)
    return (fill_missing(_joined(rows, path, feature_names), missing) for rows in parts)


Rows: TypeAlias = tuple[Matrix, FloatArray, list[str]]
"""Features, labels and queries of some rows."""


def _whole_queries(
    path: PathLike, n_features: int | None, refuse: bool, sparse: bool, dtype: np.dtype[Any], chunk_bytes: int
) -> Iterator[list[Rows]]:
    """Rows of whole queries: the last query of each chunk is kept back until another one begins."""
    kept: list[Rows] = []
    seen, newest, width = set[str](), None, n_features
    for part in letor_documents([path], n_features, dtype, refuse, chunk_bytes):
        goes_on = part.queries == [newest]
        for line, query in zip(part.query_lines.tolist(), part.queries, strict=True):
            if query in seen and query != newest:
                reason = (
                    f"query {query} comes back after other queries, but a stream needs its rows together; "
                    "sort the file by query, or read it whole"
                )
                raise DataError(part.source, line, reason)
            seen.add(query)
            newest = query
        matrix = SparseRows(dtype, width) if sparse else DenseRows(dtype, width)
        matrix.add(part)
        X, y = matrix.finish(), part.labels.copy()
        width = X.shape[1]
        sizes = np.diff(np.append(part.first_rows, len(y)))
        queries = [
            query for query, size in zip(part.queries, sizes.tolist(), strict=True) for _ in range(size)
        ]
        if goes_on:
            kept.append((X, y, queries))
            continue
        cut = int(part.first_rows[-1])
        if cut:
            kept.append((X[:cut], y[:cut], queries[:cut]))
        if kept:
            yield kept
        kept = [(X[cut:].copy(), y[cut:].copy(), queries[cut:])]
    if not kept:
        raise DataError(source_name(path), None, "holds no documents")
    if width == 0:
        raise DataError(source_name(path), None, NO_FEATURE)
    yield kept


def _joined(parts: list[Rows], path: PathLike, names: FeatureNames | None) -> Dataset:
    """One data set, as wide as its widest part."""
    width = max(1, parts[-1][0].shape[1])
    matrices = [X if X.shape[1] == width else widened(X, width) for X, _, _ in parts]
    X = matrices[0] if len(parts) == 1 else stack(matrices)
    y = np.concatenate([y for _, y, _ in parts])
    qid = text_array([query for _, _, queries in parts for query in queries])
    source = source_name(path)
    called = None if names is None else names.of(X.shape[1], source)
    return Dataset(X, y, qid, called, source=source, profile=profile_of_files([path]))
