"""LETOR files of any size, a few whole queries at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ranksieve._types import AnyArray, FloatArray, Matrix, PathLike
from ranksieve.data.dataset import Dataset
from ranksieve.data.matrix import stack, widened
from ranksieve.data.queries import text_array
from ranksieve.errors import DataError, ParameterError
from ranksieve.io.letor import (
    NO_FEATURE,
    DenseFeatures,
    FeatureNames,
    LetorRows,
    SparseFeatures,
    check_width,
    names_for,
)
from ranksieve.io.text_files import profile_of_files, source_name, text_chunks
from ranksieve.prepare.missing import check_policy, fill_missing

STREAM_BYTES = 1 << 21
WHOLE_FILE = "column_mean"  # the one policy that must see every row first


class _Documents(NamedTuple):
    """Consecutive lines: query ``tokens[k]`` has ``sizes[k]`` of them."""

    X: Matrix
    y: FloatArray
    tokens: list[bytes]
    sizes: list[int]

    def split(self) -> tuple[_Documents, _Documents]:
        """All queries but the last, and the last, which more lines may follow."""
        cut = sum(self.sizes[:-1])
        before = _Documents(self.X[:cut], self.y[:cut], self.tokens[:-1], self.sizes[:-1])
        return before, _Documents(self.X[cut:].copy(), self.y[cut:].copy(), self.tokens[-1:], self.sizes[-1:])


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
    if missing == WHOLE_FILE:
        reason = (
            "needs the whole file, but a stream reads a part at a time; choose `missing='zero'` or "
            "`missing='query_min'`"
        )
        raise ParameterError("missing", missing, reason)
    for name, value in (("n_features", n_features), ("chunk_bytes", chunk_bytes)):
        if value is not None and (value != int(value) or value < 1):
            raise ParameterError(name, value, "must be an integer ≥ 1")
    check_width(n_features)
    called = names_for(names, [path])
    width = n_features or (None if called is None else len(called.names))
    streamed = _whole_queries(path, width, missing, sparse, np.dtype(dtype), chunk_bytes)
    return streamed if called is None else _named(streamed, called)


def _named(parts: Iterator[Dataset], called: FeatureNames) -> Iterator[Dataset]:
    for part in parts:
        yield part.replace_features(part.X, called.of(part.n_features, part.source or ""))


def _whole_queries(
    path: PathLike, n_features: int | None, missing: str, sparse: bool, dtype: np.dtype[Any], chunk_bytes: int
) -> Iterator[Dataset]:
    """Hold the last query of each chunk back until another one begins."""
    held: list[_Documents] = []
    for rows in _parsed(path, n_features, sparse, dtype, chunk_bytes, missing == "error"):
        if held and rows.tokens == held[-1].tokens:
            held.append(rows)
            continue
        before, last = rows.split()
        held.append(before)
        if any(part.tokens for part in held):
            yield fill_missing(_joined(held, path), missing)
        held = [last]
    if not held:
        raise DataError(source_name(path), None, "holds no documents")
    if held[-1].X.shape[1] == 0:
        raise DataError(source_name(path), None, NO_FEATURE)
    yield fill_missing(_joined(held, path), missing)


def _parsed(
    path: PathLike, n_features: int | None, sparse: bool, dtype: np.dtype[Any], chunk_bytes: int, refuse: bool
) -> Iterator[_Documents]:
    """The documents of each chunk of lines; a query that comes back is an error."""
    name, line, seen, newest = source_name(path), 0, set[bytes](), b""
    kind = SparseFeatures if sparse else DenseFeatures
    width, room = n_features, None
    for chunk in text_chunks(path, chunk_bytes):
        rows = LetorRows(kind(dtype, width), n_features, dtype, room)
        line = rows.add(name, line, chunk, refuse)
        room = rows.room  # fresh memory costs as much time as parsing
        for k, token in enumerate(tokens := rows.queries.tokens):
            if token in seen and token != newest:
                raise _scattered(name, int(rows.room.lines[rows.room.run_rows[k]]), token)
            seen.add(token)
            newest = token
        if tokens:
            X, y, starts = rows.features.finish(), rows.labels.finish(), rows.queries.first_rows.finish()
            width = X.shape[1]
            yield _Documents(X, y, tokens, np.diff(np.append(starts, len(y))).tolist())


def _scattered(name: str, line: int, token: bytes) -> DataError:
    return DataError(
        name,
        line,
        f"query {token.decode()} comes back after other queries, but a stream needs its rows together; sort "
        "the file by query, or read it whole",
    )


def _joined(parts: list[_Documents], path: PathLike) -> Dataset:
    """One data set, as wide as its widest part; adjoining rows with one id are one query."""
    parts = [part for part in parts if part.tokens]
    names = text_array([token.decode() for part in parts for token in part.tokens])
    qid: AnyArray = np.repeat(names, [size for part in parts for size in part.sizes])
    width = max(1, parts[-1].X.shape[1])
    matrices = [part.X if part.X.shape[1] == width else widened(part.X, width) for part in parts]
    X, y = (
        (matrices[0], parts[0].y)
        if len(parts) == 1
        else (stack(matrices), np.concatenate([part.y for part in parts]))
    )
    return Dataset(X, y, qid, source=source_name(path), profile=profile_of_files([path]))
