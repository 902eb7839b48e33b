"""Data of any size into a folder, in one pass over the input."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ranksieve._types import PathLike
from ranksieve._util.atomic_folder import check_replaceable
from ranksieve.data.dataset import Dataset
from ranksieve.errors import DataError, ParameterError
from ranksieve.formats.batches import Progress, Source, dataset_source, letor_source
from ranksieve.formats.columns import ColumnChoice
from ranksieve.formats.folder import is_folder_dataset, open_dataset
from ranksieve.formats.folder_output import write_source
from ranksieve.formats.frames import read_parquet
from ranksieve.formats.letor import read_letor
from ranksieve.formats.load import check_options, format_of
from ranksieve.formats.parquet_batches import parquet_source
from ranksieve.formats.text_files import source_name
from ranksieve.preparation.missing import check_policy


def convert_dataset(
    sources: PathLike | Dataset | Sequence[PathLike],
    folder: PathLike,
    *,
    dtype: Any = None,
    missing: str = "keep",
    n_features: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Dataset:
    """Write data of any size into a folder, and open it as :func:`open_dataset` does.

    The input is read once. Memory holds a few blocks of 16,384 rows, the longest query and the ids of the
    queries, whatever the size of the input. If the rows of a query are not together, they are brought
    together through a temporary file of the size of the features, beside the output. The folder appears
    whole or not at all; one that holds a data set already is replaced, any other is refused.

    Parameters
    ----------
    sources : path, sequence of paths, or Dataset
        LETOR text (plain or gzip, ``-`` is standard input) or parquet, one file or several of one kind, which
        make one data set; equal ids are one query. Or one CSV or TSV file, feature log, folder or Dataset.
    folder : path
        Where to write.
    dtype : float32 or float64, optional
        Type of the features; default: float64 for text, that of the columns of parquet.
    missing : {"keep", "error", "zero", "query_min", "column_mean"}
        What becomes of missing values, see :func:`fill_missing`; rankers deal with those that are kept.
    n_features : int, optional
        Number of columns of LETOR text; default: the largest index.
    progress : callable, optional
        Called with how much is done, and of how much, where that is known.
    **options
        Columns of parquet, CSV and TSV as in :func:`from_frame`, ``names`` for the features of LETOR text, or
        what :func:`read_ltr_log` takes.
    """
    check_policy(missing)
    if dtype is not None and str(getattr(dtype, "__name__", dtype)) not in ("float32", "float64"):
        raise ParameterError("dtype", dtype, "must be float32 or float64")
    check_replaceable(folder, is_folder_dataset)
    write_source(_source(sources, dtype, missing, n_features, progress, options), folder, missing)
    return open_dataset(folder)


def _source(
    given: PathLike | Dataset | Sequence[PathLike],
    dtype: Any,
    missing: str,
    n_features: int | None,
    progress: Progress | None,
    options: dict[str, Any],
) -> Source:
    if isinstance(given, Dataset):
        return dataset_source(given, dtype, progress)
    paths = [given] if isinstance(given, str | os.PathLike) else list(given)
    for path in paths:
        check_options(path, options)
    readers = {format_of(path).read for path in paths}
    if len(readers) > 1 or (len(paths) > 1 and not readers <= {read_letor, read_parquet}):
        reason = "several files must all be LETOR text or all parquet; convert them one by one"
        raise DataError(", ".join(source_name(path) for path in paths), None, reason)
    if not readers:
        raise DataError("the list of files", None, "holds no documents")
    reader = readers.pop()
    if n_features is not None and reader is not read_letor:
        raise ParameterError(
            "n_features", n_features, "is for LETOR text only; other data have columns of their own"
        )
    if reader is read_letor:
        if n_features is not None and n_features < 1:
            raise ParameterError("n_features", n_features, "must be at least 1")
        names = options.pop("names", None)
        _no_options(options)
        return letor_source(paths, n_features, dtype, missing == "error", progress, names)
    if reader is read_parquet:
        return parquet_source(paths, dtype, missing == "error", progress, ColumnChoice(**options))
    read_missing = "error" if missing == "error" else "keep"
    return dataset_source(reader(paths[0], missing=read_missing, **options), dtype, progress)


def _no_options(options: dict[str, Any]) -> None:
    for name in options:
        raise ParameterError(name, options[name], "is not for LETOR text; leave it out")
