"""Read and write data sets in the format that the file's name or content tells.

One file and one line in FILE_FORMATS adds a format.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ranksieve._types import PathLike
from ranksieve.data.dataset import Dataset
from ranksieve.errors import DataError
from ranksieve.formats.columns import COLUMN_OPTIONS
from ranksieve.formats.csv_files import looks_like_csv, read_csv, write_csv
from ranksieve.formats.folder import SUFFIX, means_folder, open_dataset
from ranksieve.formats.folder_output import write_folder
from ranksieve.formats.frames import read_parquet, write_parquet
from ranksieve.formats.letor import read_letor, write_letor
from ranksieve.formats.ltr_log import read_ltr_log
from ranksieve.formats.text_files import PARQUET_MAGIC, first_bytes, source_name


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
