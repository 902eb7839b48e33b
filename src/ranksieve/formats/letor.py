"""LETOR text files: one document per line, ``label qid:ID index:value … # comment``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ranksieve._types import PathLike
from ranksieve._util.atomic import atomic_write
from ranksieve.data.dataset import Dataset
from ranksieve.data.matrix import widened
from ranksieve.data.queries import group_queries
from ranksieve.errors import DataError, ParameterError
from ranksieve.formats.feature_names import FeatureNames, names_for, names_written
from ranksieve.formats.fold_files import profile_of_files
from ranksieve.formats.letor_faults import NO_FEATURE, check_width
from ranksieve.formats.letor_lines import letor_lines
from ranksieve.formats.letor_rows import DenseFeatures, LetorRows, SparseFeatures
from ranksieve.formats.text_files import maybe_gzip, source_name
from ranksieve.preparation.missing import MissingPolicy, check_policy

CHUNK_BYTES = 1 << 18  # small, because fresh memory costs as much time as parsing: buffers stay in the cache


def read_letor(
    path: PathLike | Sequence[PathLike],
    *,
    n_features: int | None = None,
    missing: str = "keep",
    sparse: bool = False,
    dtype: DTypeLike = np.float64,
    names: PathLike | Sequence[str] | None = None,
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
        Number of columns; at most ten million; default: the largest index. A larger index is an error.
    missing : {"keep", "error", "zero", "query_min", "column_mean"}
        What becomes of ``NULL`` and ``NaN``, see :func:`fill_missing`; rankers deal with NaN that is kept.
    sparse : bool
        CSR with the features that the lines give, instead of a dense matrix.
    dtype : float64 or float32
        Type of the matrix.
    names : path or sequence of str, optional
        Names of the features: a file with one per line, or with their numbers (``1:bm25_title``, or CSV
        ``1,bm25_title``), or the names themselves. Default: ``PATH.names`` if there is such a file, else
        ``f1, f2, …``. Names that come with numbers may be more than the features of the text.
    """
    check_policy(missing)
    rows = _empty_rows(n_features, sparse, np.dtype(dtype))
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    called = names_for(names, paths)
    for one in paths:
        rows.read(one, _chunk_bytes, refuse_missing=missing == "error")
    source = ", ".join(source_name(one) for one in paths)
    return _dataset(rows, missing, source, profile_of_files(paths), called)


def _empty_rows(n_features: int | None, sparse: bool, dtype: np.dtype[Any]) -> LetorRows:
    if n_features is not None and n_features < 1:
        raise ParameterError("n_features", n_features, "must be at least 1")
    check_width(n_features)
    if dtype not in (np.float32, np.float64):
        raise ParameterError("dtype", str(dtype), "must be float32 or float64")
    features = SparseFeatures(dtype, n_features) if sparse else DenseFeatures(dtype, n_features)
    return LetorRows(features, n_features, dtype)


def _dataset(
    rows: LetorRows, missing: str, source: str, profile: str | None, called: FeatureNames | None
) -> Dataset:
    if len(rows.labels) == 0:
        raise DataError(source or "the list of files", None, "holds no documents")
    X, y = rows.features.finish(), rows.labels.finish()
    if X.shape[1] == 0:
        raise DataError(source, None, NO_FEATURE)
    names = None
    if called is not None:
        X = widened(X, called.least) if X.shape[1] < called.least else X
        names = called.of(X.shape[1], source)
    qid = rows.queries.finish(len(y))
    if rows.has_missing and missing != "keep":
        MissingPolicy(missing).fill(X, group_queries(qid))
    comments, doc_ids = rows.comments.finish()
    return Dataset(X, y, qid, names, doc_ids=doc_ids, comments=comments, source=source, profile=profile)


def write_letor(dataset: Dataset, path: PathLike) -> None:
    """Write LETOR text, gzip if the name ends in ``.gz``; the file appears whole or not at all.

    :func:`read_letor` gives the same bits back: every feature of a dense row, the stored ones of a sparse
    row, ``NULL`` where missing. A number has the shortest form for the matrix's own type: the fewest digits
    that read back to the same float64, or for a float32 matrix to the same float32 (``dtype=np.float32``, or
    float64 that is cast). The comment is kept, else the document id is written as ``docid = X``. Features
    with names of their own have them written beside it, in ``PATH.names``.
    """
    if dataset.document_weight is not None:
        reason = (
            "LETOR text cannot hold document weights; write parquet, CSV or a folder, or set "
            "document_weight of the data set to None"
        )
        raise DataError(path, None, reason)
    with names_written(dataset, path), atomic_write(path, "wb") as file, maybe_gzip(file, path) as out:
        for text in letor_lines(dataset):
            out.write(text)
