"""Read LETOR files of any size, a few whole queries at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from ranksieve._types import FloatArray, Matrix, PathLike
from ranksieve.data.dataset import Dataset
from ranksieve.data.matrix import pad_columns, stack
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
    whose rows are not contiguous is an error. Query ids are always str; comments and document ids are left
    out.

    Parameters
    ----------
    path : path
        ``-`` is standard input.
    n_features : int, optional
        Number of columns; a larger index is an error. Default: the largest index so far, at most ten million,
        so that later data sets may be wider; absent features are 0.
    missing : {"keep", "error", "zero", "query_min"}
        Treatment of ``NULL`` and ``NaN``, see :func:`fill_missing`; column means would need the whole file.
    sparse, dtype, names
        As in :func:`read_letor`. Names determine the number of columns, as ``n_features`` does.
    chunk_bytes : int
        Bytes of text read at a time.
    """
    check_policy(missing)
    if missing == "column_mean":
        reason = (
            "needs the whole file, but a stream reads it in chunks; choose `missing='zero'` or "
            "`missing='query_min'`"
        )
        raise ParameterError("missing", missing, reason)
    for name, value in (("n_features", n_features), ("chunk_bytes", chunk_bytes)):
        if value is not None and (value != int(value) or value < 1):
            raise ParameterError(name, value, "must be an integer ≥ 1")
    check_width(n_features)
    feature_names = names_for(names, [path])
    width = n_features or (None if feature_names is None else len(feature_names.names))
    chunks = _whole_queries(path, width, missing == "error", sparse, np.dtype(dtype), chunk_bytes)
    return (fill_missing(_join(chunk, path, feature_names), missing) for chunk in chunks)


QueryRows: TypeAlias = tuple[Matrix, FloatArray, list[str]]
"""Features, labels and query ids of some rows."""


def _whole_queries(
    path: PathLike,
    n_features: int | None,
    refuse_missing: bool,
    sparse: bool,
    dtype: np.dtype[Any],
    chunk_bytes: int,
) -> Iterator[list[QueryRows]]:
    """Rows of whole queries: the last query of each chunk is held back until the next query begins."""
    pending: list[QueryRows] = []
    seen, latest, width = set[str](), None, n_features
    for chunk in letor_documents([path], n_features, dtype, refuse_missing, chunk_bytes):
        continues = chunk.queries == [latest]
        for line, query in zip(chunk.query_lines.tolist(), chunk.queries, strict=True):
            if query in seen and query != latest:
                reason = (
                    f"the rows of query {query} are not contiguous, but a stream needs them to be; "
                    "sort the file by query, or read it whole"
                )
                raise DataError(chunk.source, line, reason)
            seen.add(query)
            latest = query
        matrix = SparseRows(dtype, width) if sparse else DenseRows(dtype, width)
        matrix.add(chunk)
        X, y = matrix.finish(), chunk.labels.copy()
        width = X.shape[1]
        sizes = np.diff(np.append(chunk.first_rows, len(y)))
        queries = [
            query for query, size in zip(chunk.queries, sizes.tolist(), strict=True) for _ in range(size)
        ]
        if continues:
            pending.append((X, y, queries))
            continue
        cut = int(chunk.first_rows[-1])
        if cut:
            pending.append((X[:cut], y[:cut], queries[:cut]))
        if pending:
            yield pending
        pending = [(X[cut:].copy(), y[cut:].copy(), queries[cut:])]
    if not pending:
        raise DataError(source_name(path), None, "holds no documents")
    if width == 0:
        raise DataError(source_name(path), None, NO_FEATURE)
    yield pending


def _join(chunks: list[QueryRows], path: PathLike, names: FeatureNames | None) -> Dataset:
    """One data set, as wide as its widest chunk."""
    width = max(1, chunks[-1][0].shape[1])
    matrices = [X if X.shape[1] == width else pad_columns(X, width) for X, _, _ in chunks]
    X = matrices[0] if len(chunks) == 1 else stack(matrices)
    y = np.concatenate([y for _, y, _ in chunks])
    qid = text_array([query for _, _, queries in chunks for query in queries])
    source = source_name(path)
    feature_names = None if names is None else names.of(X.shape[1], source)
    return Dataset(X, y, qid, feature_names, source=source, profile=profile_of_files([path]))
