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
    Progress,
    Source,
    dataset_source,
    letor_source,
    parquet_source,
    write_folder,
    write_source,
)
from ranksieve.io.csv_files import looks_like_csv, read_csv, write_csv
from ranksieve.io.folder import SUFFIX, is_folder_dataset, means_folder, open_dataset
from ranksieve.io.frames import COLUMN_OPTIONS, ColumnChoice, read_parquet, write_parquet
from ranksieve.io.letor import check_width, read_letor, write_letor
from ranksieve.io.ltr_log import read_ltr_log
from ranksieve.io.text_files import PARQUET_MAGIC, first_bytes, source_name
from ranksieve.prepare.missing import FILLS, check_policy, fill_missing


class FileFormat(NamedTuple):
    """How one kind of file is recognised (by name, else by its first bytes), read and written.

    ``has_columns`` tells files whose columns have names to choose from.
    """

    suffixes: tuple[str, ...]
    magic: tuple[bytes, ...]
    read: Callable[..., Dataset]
    write: Callable[[Dataset, PathLike], None]
    has_columns: bool = False
    looks_like: Callable[[bytes], bool] | None = None


def _refuse_log(dataset: Dataset, path: PathLike) -> None:
    raise DataError(path, None, "only a search engine writes feature logs; choose .txt, .gz or .parquet")


LOGS = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz")
TABLES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
FILE_FORMATS: dict[str, FileFormat] = {
    "parquet": FileFormat((".parquet", ".pq"), (PARQUET_MAGIC,), read_parquet, write_parquet, True),
    "feature log": FileFormat(LOGS, (b"{", b"["), read_ltr_log, _refuse_log),
    "csv": FileFormat(TABLES, (), read_csv, write_csv, True, looks_like_csv),
    "folder": FileFormat((SUFFIX,), (), open_dataset, write_folder),  # also one that is there, or NAME/
    "letor": FileFormat((), (), read_letor, write_letor),  # every other file
}
DEFAULT = "letor"  # what has neither a known suffix nor known first bytes
FIRST_BYTES = 2**14
KINDS = {"feature log": "a feature log", "folder": "a folder that convert made", "letor": "LETOR text"}


def read_dataset(path: PathLike | Sequence[PathLike], **options: Any) -> Dataset:
    """Read parquet, CSV, TSV or a feature log (known by suffix or first bytes), else LETOR text.

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
    """Write parquet, CSV, TSV or a folder (``NAME.ranksieve``, ``NAME/``) by the name, else LETOR text."""
    (_by_name(path) or FILE_FORMATS[DEFAULT]).write(dataset, path)


def format_of(path: PathLike) -> FileFormat:
    """The format of a file that is to be read."""
    return _by_name(path) or _by_content(path) or FILE_FORMATS[DEFAULT]


def check_options(path: PathLike, options: Iterable[str]) -> None:
    """Refuse options about columns, or names for them, that do not go with the kind of a file."""
    kind = format_of(path)
    for option in options:
        if option in COLUMN_OPTIONS and not kind.has_columns:
            what = next((KINDS[name] for name in KINDS if FILE_FORMATS[name] is kind), "another kind of file")
            reason = f"is {what}, and `{option}` is for parquet, CSV and TSV; leave it out"
            raise DataError(source_name(path), None, reason)
        if option == "names" and kind is not FILE_FORMATS["letor"]:
            raise DataError(
                source_name(path), None, "has feature names, and `names` is for LETOR text; leave it out"
            )


def _by_name(path: PathLike) -> FileFormat | None:
    if means_folder(path):
        return FILE_FORMATS["folder"]
    name = Path(path).name.lower()
    return next((kind for kind in FILE_FORMATS.values() if name.endswith(kind.suffixes)), None)


def _by_content(path: PathLike) -> FileFormat | None:
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

    The input is read once. Memory holds a few blocks of 16,384 rows, the longest query and the ids of the
    queries, whatever the size of the input. LETOR text and parquet must have the rows of each query
    together. The folder appears whole or not at all; one that holds a data set already is replaced, any other
    is refused.

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
        What becomes of missing values, see :func:`fill_missing`; rankers deal with those that are kept. A
        mean needs all rows at once, so it is not for LETOR text and parquet.
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
        filled = fill_missing(given, missing) if missing in FILLS else given
        return dataset_source(filled, dtype, progress)
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
    if missing == "column_mean" and reader in (read_letor, read_parquet):
        reason = "needs all rows at once; keep missing values here, and choose `missing` where you fit"
        raise ParameterError("missing", missing, reason)
    if reader is read_letor:
        check_width(n_features)
        names = options.pop("names", None)
        for name, value in options.items():
            raise ParameterError(name, value, "is not for LETOR text; leave it out")
        return letor_source(paths, n_features, dtype, missing == "error", progress, names)
    if reader is read_parquet:
        return parquet_source(paths, dtype, progress, ColumnChoice(**options))
    return dataset_source(reader(paths[0], missing=missing, **options), dtype, progress)
