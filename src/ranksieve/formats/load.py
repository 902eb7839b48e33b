"""Read and write data sets in the format that the file's name or content tells.

One file and one line in FILE_FORMATS adds a format.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

from ranksieve._types import PathLike
from ranksieve.data.dataset import Dataset
from ranksieve.formats.folder import SUFFIX, means_folder, open_dataset
from ranksieve.formats.folder_output import write_folder
from ranksieve.formats.frames import read_parquet, write_parquet
from ranksieve.formats.letor import read_letor, write_letor
from ranksieve.formats.ltr_log import read_ltr_log
from ranksieve.formats.text_files import PARQUET_MAGIC


class FileFormat(NamedTuple):
    """How one kind of file is recognised (by name, else by its first bytes), read and written."""

    suffixes: tuple[str, ...]
    magic: tuple[bytes, ...]
    read: Callable[..., Dataset]
    write: Callable[[Dataset, PathLike], None]


def _refuse_log(dataset: Dataset, path: PathLike) -> None:
    raise ValueError(f"{path}: only a search engine writes feature logs; choose a .txt, .gz or .parquet file")


FILE_FORMATS: dict[str, FileFormat] = {
    "parquet": FileFormat((".parquet", ".pq"), (PARQUET_MAGIC,), read_parquet, write_parquet),
    "feature log": FileFormat((".json", ".jsonl", ".ndjson"), (b"{", b"["), read_ltr_log, _refuse_log),
    "folder": FileFormat((SUFFIX,), (), open_dataset, write_folder),  # also one that is there, or NAME/
    "letor": FileFormat((), (), read_letor, write_letor),  # every other file
}
DEFAULT = "letor"  # what has neither a known suffix nor known first bytes


def read_dataset(path: PathLike | Sequence[PathLike], **options: Any) -> Dataset:
    """Read parquet or a feature log (known by suffix or first bytes), else LETOR text; ``-`` is stdin.

    A folder that :func:`convert_dataset` wrote is opened. Options go to :func:`read_parquet`,
    :func:`read_ltr_log`, :func:`open_dataset` or :func:`read_letor`.
    """
    read = format_of(path).read if isinstance(path, str | os.PathLike) else read_letor
    if "document_weight" in options and "document_weight" not in signature(read).parameters:
        raise ValueError(
            f"{path}: document_weight={options['document_weight']!r} names a column of a table, which this "
            "is not; give parquet"
        )
    return read(path, **options)


def write_dataset(dataset: Dataset, path: PathLike) -> None:
    """Write parquet or a folder (``NAME.ranksieve`` or ``NAME/``) if the name says so, else LETOR text."""
    (_by_name(path) or FILE_FORMATS[DEFAULT]).write(dataset, path)


def format_of(path: PathLike) -> FileFormat:
    """The format of a file that is to be read."""
    return _by_name(path) or _by_magic(path) or FILE_FORMATS[DEFAULT]


def _by_name(path: PathLike) -> FileFormat | None:
    if means_folder(path):
        return FILE_FORMATS["folder"]
    suffix = Path(path).suffix.lower()
    return next((kind for kind in FILE_FORMATS.values() if suffix in kind.suffixes), None)


def _by_magic(path: PathLike) -> FileFormat | None:
    if not Path(path).is_file():
        return None
    try:
        with open(path, "rb") as file:
            start = file.read(max(len(magic) for kind in FILE_FORMATS.values() for magic in kind.magic))
    except OSError:
        return None
    return next((kind for kind in FILE_FORMATS.values() if kind.magic and start.startswith(kind.magic)), None)
