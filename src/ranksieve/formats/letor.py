"""LETOR text files: one document per line, ``label qid:ID index:value … # comment``."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, cast

import numpy as np
from numpy.typing import DTypeLike

from ranksieve._types import Matrix, PathLike
from ranksieve._util.atomic import atomic_write
from ranksieve.data.dataset import Dataset, TextColumn
from ranksieve.data.matrix import first_place, row_entries
from ranksieve.data.queries import group_queries
from ranksieve.formats.fold_files import profile_of_files
from ranksieve.formats.letor_rows import DenseFeatures, LetorRows, SparseFeatures
from ranksieve.formats.text_files import source_name
from ranksieve.preparation.missing import MissingPolicy, check_policy

CHUNK_BYTES = 1 << 18  # small, because fresh memory costs as much time as parsing: buffers stay in the cache
ROWS_AT_ONCE = 1024


def read_letor(
    path: PathLike | Sequence[PathLike],
    *,
    n_features: int | None = None,
    missing: str = "keep",
    sparse: bool = False,
    dtype: DTypeLike = np.float64,
    _chunk_bytes: int = CHUNK_BYTES,
) -> Dataset:
    """Read LETOR (SVMlight with query ids) text, plain or gzip.

    Numbers have the bits of Python's ``float``. Query ids are int64 if all of them are plain integers, else
    str. The text after ``#`` becomes ``comments``; ``doc_ids`` holds X of ``docid = X``, else the first
    word of the comment. Blank lines and lines with a comment only are skipped. A file of a LETOR fold
    (``Fold1/train.txt``) comes with LETOR's conventions: the ``profile`` of its data is ``"letor"``.

    Parameters
    ----------
    path : path or sequence of paths
        ``-`` is standard input. Several files make one data set; equal ids are one query.
    n_features : int, optional
        Number of columns; default: the largest index, up to ten million. A larger index is an error.
    missing : {"keep", "error", "zero", "query_min", "column_mean"}
        What becomes of ``NULL`` and ``NaN``, see :func:`fill_missing`; rankers deal with NaN that is kept.
    sparse : bool
        CSR with the features that the lines give, instead of a dense matrix.
    dtype : float64 or float32
        Type of the matrix.
    """
    check_policy(missing)
    rows = _empty_rows(n_features, sparse, np.dtype(dtype))
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    for one in paths:
        rows.read(one, _chunk_bytes, refuse_missing=missing == "error")
    source = ", ".join(source_name(one) for one in paths)
    return _dataset(rows, missing, source, profile_of_files(paths))


def _empty_rows(n_features: int | None, sparse: bool, dtype: np.dtype[Any]) -> LetorRows:
    if n_features is not None and n_features < 1:
        raise ValueError(
            f"n_features={n_features} is not a number of columns; give at least 1 or leave it out"
        )
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype={dtype} cannot hold features; choose float64 or float32")
    features = SparseFeatures(dtype, n_features) if sparse else DenseFeatures(dtype, n_features)
    return LetorRows(features, n_features, dtype)


def _dataset(rows: LetorRows, missing: str, source: str, profile: str | None) -> Dataset:
    if len(rows.labels) == 0:
        raise ValueError(f"{source or 'the list of files'}: holds no documents")
    X, y = rows.features.finish(), rows.labels.finish()
    if X.shape[1] == 0:
        raise ValueError(f"{source}: no line has a feature; expected index:value after the query id")
    qid = rows.queries.finish(len(y))
    if rows.has_missing and missing != "keep":
        MissingPolicy(missing).fill(X, group_queries(qid))
    comments, doc_ids = rows.comments.finish()
    return Dataset(X, y, qid, doc_ids=doc_ids, comments=comments, source=source, profile=profile)


def write_letor(dataset: Dataset, path: PathLike) -> None:
    """Write LETOR text, gzip if the name ends in ``.gz``; the file appears whole or not at all.

    :func:`read_letor` gives the same bits back: every feature of a dense row, the stored ones of a sparse
    row, ``NULL`` where missing. The comment is kept, else the document id is written as ``docid = X``.
    """
    queries = _query_texts(dataset)
    with atomic_write(path, "wb") as file, _maybe_gzip(file, path) as out:
        for start in range(0, dataset.n_docs, ROWS_AT_ONCE):
            stop = min(start + ROWS_AT_ONCE, dataset.n_docs)
            out.write(b"".join(_lines(dataset, queries, start, stop)))


@contextmanager
def _maybe_gzip(file: IO[Any], path: PathLike) -> Iterator[IO[Any]]:
    if not os.fspath(path).endswith(".gz"):
        yield file
        return
    with gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as zipped:
        yield cast(IO[Any], zipped)


def _query_texts(dataset: Dataset) -> list[str]:
    """The id of each row's query as one token."""
    queries = dataset.queries
    texts = [str(query) for query in queries.ids]
    for text in texts:
        if not text or "#" in text or any(c in text for c in " \t\r\n\0"):
            raise ValueError(f"the query id {text!r} is not one word without #; LETOR text cannot hold it")
    if len(set(texts)) < len(texts):
        raise ValueError("two query ids look the same as text; LETOR text cannot tell them apart")
    grouped = np.repeat(np.arange(len(texts)), queries.sizes)
    return [texts[q] for q in queries.restore(grouped)]


def _lines(dataset: Dataset, queries: list[str], start: int, stop: int) -> Iterator[bytes]:
    block = dataset.X[start:stop]
    _check_finite(dataset, start, block)
    labels = number_texts(dataset.y[start:stop].tolist())
    for row, label, text in zip(range(start, stop), labels, _feature_texts(block), strict=True):
        yield f"{label} qid:{queries[row]} {text}".rstrip().encode() + _comment(dataset, row) + b"\n"


def _check_finite(dataset: Dataset, start: int, block: Matrix) -> None:
    place = first_place(block, np.isinf)
    if place is not None:
        row, column = place
        name = dataset.feature_names[column]
        raise ValueError(f"feature {name} of row {start + row} is infinite; LETOR text cannot hold it")


def number_texts(values: list[float]) -> list[str]:
    """The shortest text of each number that reads back to its bits, without ``.0``; NULL for NaN."""
    text = repr(values)[1:-1] + ","
    return text.replace(".0,", ",").replace("nan", "NULL")[:-1].split(", ")


def _feature_texts(block: Matrix) -> Iterator[str]:
    """``index:value …`` of each row."""
    known: Sequence[int] = ()
    indices: list[str] = []
    for columns, values in row_entries(block):
        if columns is not known:  # all rows of a dense block have the same
            known, indices = columns, [f"{j + 1}:" for j in columns]
        yield " ".join(map(str.__add__, indices, number_texts(values)))


def _comment(dataset: Dataset, row: int) -> bytes:
    comment = _raw(dataset.comments, row)
    if comment or dataset.doc_ids is None:
        return b" #" + comment if comment else b""
    doc_id = _raw(dataset.doc_ids, row)
    if len(doc_id.split()) > 1:
        raise ValueError(f"the document id {doc_id.decode()!r} is not one word; LETOR text cannot hold it")
    return b" #docid = " + doc_id if doc_id else b""


def _raw(column: Sequence[Any] | None, row: int) -> bytes:
    if column is None:
        return b""
    text = column.raw(row) if isinstance(column, TextColumn) else str(column[row]).encode()
    if b"\n" in text or b"\0" in text:
        raise ValueError(f"the comment or document id of row {row} holds a line break or NUL byte")
    return text
