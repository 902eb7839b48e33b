"""Read, write and convert data sets; the format is detected from the file name or the first bytes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ranksieve._types import PathLike
from ranksieve._util.files import check_replaceable
from ranksieve.data.dataset import Dataset
from ranksieve.errors import DataError, ParameterError
from ranksieve.io.batches import (
    BatchSource,
    Progress,
    dataset_source,
    letor_source,
    parquet_source,
    write_folder,
    write_source,
)
from ranksieve.io.csv_files import looks_like_csv, read_csv, write_csv
from ranksieve.io.folder import FOLDER_SUFFIX, is_folder_dataset, means_folder, open_dataset
from ranksieve.io.frames import COLUMN_OPTIONS, ColumnChoice, read_parquet, write_parquet
from ranksieve.io.letor import check_width, read_letor, write_letor
from ranksieve.io.ltr_log import read_ltr_log
from ranksieve.io.text_files import PARQUET_MAGIC, first_bytes, source_name
from ranksieve.prepare.missing import FILLS, check_policy, fill_missing


class FileFormat(NamedTuple):
    """A file format: how to recognise it (by name, else by the first bytes), to read and to write it.

    ``has_columns`` is True if the user can choose columns by name.
    """

    suffixes: tuple[str, ...]
    magic: tuple[bytes, ...]
    read: Callable[..., Dataset]
    write: Callable[[Dataset, PathLike], None]
    has_columns: bool = False
    looks_like: Callable[[bytes], bool] | None = None


def _refuse_to_write_log(dataset: Dataset, path: PathLike) -> None:
    raise DataError(path, None, "feature logs cannot be written; choose .txt, .gz or .parquet")


LOG_SUFFIXES = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz")
CSV_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
FILE_FORMATS: dict[str, FileFormat] = {
    "parquet": FileFormat((".parquet", ".pq"), (PARQUET_MAGIC,), read_parquet, write_parquet, True),
    "feature log": FileFormat(LOG_SUFFIXES, (b"{", b"["), read_ltr_log, _refuse_to_write_log),
    "csv": FileFormat(CSV_SUFFIXES, (), read_csv, write_csv, True, looks_like_csv),
    "folder": FileFormat((FOLDER_SUFFIX,), (), open_dataset, write_folder),  # also NAME/ and existing folders
    "letor": FileFormat((), (), read_letor, write_letor),  # every other file
}
DEFAULT_FORMAT = "letor"
FIRST_BYTES = 2**14
FORMAT_TEXTS = {
    "feature log": "a feature log",
    "folder": "a folder written by convert",
    "letor": "LETOR text",
}


def read_dataset(path: PathLike | Sequence[PathLike], **options: Any) -> Dataset:
    """Read parquet, CSV, TSV or a feature log (detected by suffix or first bytes), else LETOR text.

    ``-`` is standard input. A folder that :func:`convert_dataset` wrote is opened. Options go to
    :func:`from_frame` (parquet), :func:`read_csv`, :func:`read_ltr_log`, :func:`open_dataset` or
    :func:`read_letor`: ``missing`` for all of them, ``qid``, ``label``, ``doc_id``, ``features`` and
    ``ignore`` for parquet, CSV and TSV, ``names`` for LETOR text.
    """
    if not isinstance(path, str | os.PathLike):
        for one in path:
            check_options(one, options)
        return read_letor(path, **options)
    check_options(path, options)
    return format_of(path).read(path, **options)


def write_dataset(dataset: Dataset, path: PathLike) -> None:
    """Write parquet, CSV, TSV or a folder (``NAME.ranksieve``, ``NAME/``) by name, else LETOR text."""
    (_format_by_name(path) or FILE_FORMATS[DEFAULT_FORMAT]).write(dataset, path)


def format_of(path: PathLike) -> FileFormat:
    """Detect the format of a file to read."""
    return _format_by_name(path) or _format_by_content(path) or FILE_FORMATS[DEFAULT_FORMAT]


def check_options(path: PathLike, options: Iterable[str]) -> None:
    """Raise an error for column options or ``names`` that do not apply to the format of a file."""
    kind = format_of(path)
    for option in options:
        if option in COLUMN_OPTIONS and not kind.has_columns:
            texts = (text for name, text in FORMAT_TEXTS.items() if FILE_FORMATS[name] is kind)
            reason = (
                f"is {next(texts, 'another kind of file')}, but `{option}` applies only to parquet, CSV and "
                "TSV; leave it out"
            )
            raise DataError(source_name(path), None, reason)
        if option == "names" and kind is not FILE_FORMATS["letor"]:
            raise DataError(
                source_name(path),
                None,
                "already has feature names; `names` applies only to LETOR text, leave it out",
            )


def _format_by_name(path: PathLike) -> FileFormat | None:
    if means_folder(path):
        return FILE_FORMATS["folder"]
    name = Path(path).name.lower()
    return next((kind for kind in FILE_FORMATS.values() if name.endswith(kind.suffixes)), None)


def _format_by_content(path: PathLike) -> FileFormat | None:
    start = first_bytes(path, FIRST_BYTES) if Path(path).is_file() else b""
    for kind in FILE_FORMATS.values() if start else ():
        if (kind.magic and start.startswith(kind.magic)) or (kind.looks_like and kind.looks_like(start)):
            return kind
    return None


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

    The input is read once. Memory holds a few blocks of 16,384 rows, the longest query and the query ids,
    whatever the size of the input. In LETOR text and parquet, the rows of each query must be contiguous. The
    folder is written atomically; an existing data set is replaced, any other existing folder is an error.

    Parameters
    ----------
    sources : path, sequence of paths, or Dataset
        LETOR text (plain or gzip, ``-`` is standard input) or parquet, one file or several of one
        format, which are joined; equal ids are one query. Or one CSV or TSV file, feature log, folder or
        Dataset.
    folder : path
        Folder to write.
    dtype : float32 or float64, optional
        Type of the features; default: float64 for text, the type of the columns for parquet.
    missing : {"keep", "error", "zero", "query_min", "column_mean"}
        Treatment of missing values, see :func:`fill_missing`; rankers handle those that are kept.
        ``"column_mean"`` needs all rows at once and is not available for LETOR text and parquet.
    n_features : int, optional
        Number of columns of LETOR text; default: the largest index.
    progress : callable, optional
        Called as ``progress(done, total)`` if the total is known.
    **options
        Columns of parquet, CSV and TSV as in :func:`from_frame`, ``names`` for the features of LETOR text, or
        the parameters of :func:`read_ltr_log`.
    """
    check_policy(missing)
    if dtype is not None and str(getattr(dtype, "__name__", dtype)) not in ("float32", "float64"):
        raise ParameterError("dtype", dtype, "must be float32 or float64")
    check_replaceable(folder, is_folder_dataset)
    write_source(_batch_source(sources, dtype, missing, n_features, progress, options), folder, missing)
    return open_dataset(folder)


def _batch_source(
    sources: PathLike | Dataset | Sequence[PathLike],
    dtype: Any,
    missing: str,
    n_features: int | None,
    progress: Progress | None,
    options: dict[str, Any],
) -> BatchSource:
    if isinstance(sources, Dataset):
        filled = fill_missing(sources, missing) if missing in FILLS else sources
        return dataset_source(filled, dtype, progress)
    paths = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    for path in paths:
        check_options(path, options)
    readers = {format_of(path).read for path in paths}
    if len(readers) > 1 or (len(paths) > 1 and not readers <= {read_letor, read_parquet}):
        reason = "several files must all be LETOR text or all parquet; convert them one by one"
        raise DataError(", ".join(source_name(path) for path in paths), None, reason)
    if not readers:
        raise DataError("the list of files", None, "is empty")
    reader = readers.pop()
    if n_features is not None and reader is not read_letor:
        raise ParameterError("n_features", n_features, "applies only to LETOR text; leave it out")
    if missing == "column_mean" and reader in (read_letor, read_parquet):
        reason = "needs all rows at once; keep missing values here and choose `missing` in the fit"
        raise ParameterError("missing", missing, reason)
    if reader is read_letor:
        check_width(n_features)
        names = options.pop("names", None)
        for name, value in options.items():
            raise ParameterError(name, value, "does not apply to LETOR text; leave it out")
        return letor_source(paths, n_features, dtype, missing == "error", progress, names)
    if reader is read_parquet:
        return parquet_source(paths, dtype, progress, ColumnChoice(**options))
    return dataset_source(reader(paths[0], missing=missing, **options), dtype, progress)
