"""Data sets in a folder, for data larger than memory: a small header and binary files of numbers.

docs/files.md describes every file; ``folder_writer.py`` writes them.
"""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from stat import S_ISREG
from typing import Any

import msgspec
import numpy as np

from ranksieve._types import AnyArray, PathLike
from ranksieve._util.files import Finite, convert_to, decode_json, file_identity, file_name_problem
from ranksieve.data.dataset import Dataset, TextColumn
from ranksieve.data.disk import DiskDataset, DiskMatrix
from ranksieve.data.inputs import as_document_weight
from ranksieve.data.queries import contiguous_queries, text_array
from ranksieve.errors import DataError, short_repr
from ranksieve.io.text_files import in_file
from ranksieve.prepare.missing import check_policy, fill_missing

FOLDER_FORMAT, FOLDER_FORMAT_VERSION = "ranksieve-dataset", 3
FOLDER_SUFFIX = ".ranksieve"
HEADER_FILE = "dataset.json"
FEATURES, LABELS, SIZES, QUERY_IDS = "features.bin", "labels.bin", "query_sizes.bin", "query_ids.bin"
DOCUMENT_WEIGHTS = "document_weights.bin"
DOC_IDS, COMMENTS, TEXTS = "doc_ids.bin", "comments.bin", "texts.bin"
TEXT_IDS = "text"  # ids that are spans of the file of texts
INT64, SPAN = np.dtype("<i8"), np.dtype(("<i8", 2))
NUMBER_KINDS = "iufbmM"
EDGE_BYTES = 4096  # bytes at each end of a file that are checked when it is opened
CONVERT_AGAIN = "convert the data again"


class FileEntry(msgspec.Struct, forbid_unknown_fields=True):
    bytes: int
    edges: int


class FolderHeader(msgspec.Struct, forbid_unknown_fields=True):
    """The content of dataset.json."""

    format: str
    format_version: int
    version: str
    n_docs: int
    n_queries: int
    dtype: str
    feature_names: list[str]
    block_starts: list[int]
    query_ids: str
    files: dict[str, FileEntry]
    text_columns: list[str] = []
    truth: list[Finite] | None = None
    profile: str | None = None
    source: str | None = None


def open_dataset(path: PathLike, *, missing: str = "keep") -> Dataset:
    """Open a data set in a folder, as :func:`convert_dataset` writes it; features stay on disk.

    ``X`` is read on demand, and labels and names are mapped into memory, so opening is fast and takes little
    memory at any size. Methods that need all features at once read them into memory.

    Parameters
    ----------
    path : path
        The folder.
    missing : {"keep", "error", "zero", "query_min", "column_mean"}
        Treatment of missing values, see :func:`fill_missing`. Replacing them reads all features into memory;
        for large data, pass the policy to ``convert_dataset`` or to the ranker instead.
    """
    check_policy(missing)
    folder = Path(path)
    while True:
        identity = file_identity(folder)
        try:
            data = _open_folder(folder, _read_header(folder))
            break
        except (OSError, ValueError, TypeError):
            if file_identity(folder) == identity:  # else another process has just replaced it
                raise
    with in_file(str(folder)):
        return fill_missing(data, missing)


def is_folder_dataset(path: PathLike) -> bool:
    """Return True if the path is a folder with the header of a data set."""
    try:
        header = decode_json(_header_text(Path(path)))
    except (OSError, ValueError):
        return False
    return isinstance(header, dict) and header.get("format") == FOLDER_FORMAT


def means_folder(path: PathLike) -> bool:
    """Return True if a path ends in / or .ranksieve, or is the folder of a data set."""
    name = os.fspath(path)
    return (
        name.endswith(("/", os.sep))
        or name.lower().endswith(FOLDER_SUFFIX)
        or (Path(name) / HEADER_FILE).is_file()
    )


def _header_text(folder: Path) -> str:
    if not _is_regular_file(folder / HEADER_FILE):
        raise DataError(folder / HEADER_FILE, None, f"is not a plain file; {CONVERT_AGAIN}")
    return (folder / HEADER_FILE).read_text(encoding="utf-8")


def _is_regular_file(path: Path) -> bool:
    """Return True for a regular file or a link to one; devices and pipes may be endless."""
    return S_ISREG(path.stat().st_mode)


def _read_header(folder: Path) -> FolderHeader:
    if not folder.is_dir():
        what = "is a file; expected" if folder.exists() else "no such folder; expected"
        raise FileNotFoundError(f"{folder}: {what} a folder written by ranksieve convert")
    try:
        content = decode_json(_header_text(folder))
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{folder}: is a folder without {HEADER_FILE}; give a file, or a folder written by ranksieve "
            "convert"
        ) from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataError(folder / HEADER_FILE, None, f"damaged JSON ({error}); {CONVERT_AGAIN}") from None
    if not isinstance(content, dict) or content.get("format") != FOLDER_FORMAT:
        raise DataError(
            folder / HEADER_FILE, None, f'is not a ranksieve data set (no "format": "{FOLDER_FORMAT}")'
        )
    if content.get("format_version") != FOLDER_FORMAT_VERSION:
        reason = (
            f"has format version {content.get('format_version')!r}, but this release reads version "
            f"{FOLDER_FORMAT_VERSION}; {CONVERT_AGAIN}"
        )
        raise DataError(folder / HEADER_FILE, None, reason)
    try:
        return _check_header(convert_to(content, FolderHeader))
    except ValueError as error:
        raise DataError(folder / HEADER_FILE, None, f"damaged ({error}); {CONVERT_AGAIN}") from None


def _check_header(header: FolderHeader) -> FolderHeader:
    starts, names = header.block_starts, header.feature_names
    if header.dtype not in ("float32", "float64"):
        raise DataError(None, None, f"dtype is {header.dtype!r}; expected float32 or float64")
    if not names or header.n_docs < 1 or header.n_queries < 1:
        raise DataError(None, None, "there are no documents or no features")
    if starts[:1] != [0] or starts[-1] != header.n_docs or (np.diff(starts) <= 0).any():
        raise DataError(None, None, "block_starts do not increase from 0 to n_docs")
    if len(set(names)) < len(names):
        raise DataError(None, None, "a feature name occurs twice")
    return header


def _check_file(path: Path, entry: FileEntry) -> None:
    try:
        size = path.stat().st_size
    except OSError:
        raise DataError(None, None, f"{path.name} is missing; {CONVERT_AGAIN}") from None
    if not _is_regular_file(path):
        raise DataError(None, None, f"{path.name} is not a plain file; {CONVERT_AGAIN}")
    if size != entry.bytes:
        raise DataError(None, None, f"{path.name} has {size} bytes; expected {entry.bytes}; {CONVERT_AGAIN}")
    if checksum_of_edges(path) != entry.edges:
        raise DataError(
            None, None, f"{path.name} does not match its checksum in {HEADER_FILE}; {CONVERT_AGAIN}"
        )


def checksum_of_edges(path: Path) -> int:
    """Checksum of the first and last bytes of a file."""
    with path.open("rb") as file:
        first = zlib.crc32(file.read(EDGE_BYTES))
        file.seek(max(0, path.stat().st_size - EDGE_BYTES))
        return zlib.crc32(file.read(EDGE_BYTES), first)


def _open_folder(folder: Path, header: FolderHeader) -> DiskDataset:
    try:
        for name, entry in header.files.items():
            if fault := file_name_problem(name):
                raise DataError(
                    None, None, f"{short_repr(name)} is not part of a data set: {fault}; {CONVERT_AGAIN}"
                )
            _check_file(folder / name, entry)
        return _load_dataset(folder, header)
    except (ValueError, TypeError) as error:
        raise DataError(folder, None, str(error)) from None


def _load_dataset(folder: Path, header: FolderHeader) -> DiskDataset:
    n_docs, n_queries, names = header.n_docs, header.n_queries, header.feature_names
    files = header.files
    if FEATURES not in files:
        raise DataError(None, None, f"{HEADER_FILE} does not list {FEATURES}; {CONVERT_AGAIN}")
    features = DiskMatrix(folder / FEATURES, header.block_starts, len(names), header.dtype)
    texts = _map_file(folder / TEXTS, np.dtype(np.uint8)) if TEXTS in files else np.empty(0, np.uint8)
    sizes = np.array(_column(folder / SIZES, INT64, n_queries))
    if (sizes < 1).any() or sizes.sum() != n_docs:
        raise DataError(None, None, f"{SIZES} does not add up to {n_docs} documents; {CONVERT_AGAIN}")
    ids = _ids(folder / QUERY_IDS, header.query_ids, n_queries, texts)
    doc_ids = _ids(folder / DOC_IDS, TEXT_IDS, n_docs, texts) if DOC_IDS in files else None
    comments = _ids(folder / COMMENTS, TEXT_IDS, n_docs, texts) if COMMENTS in files else None
    weights = None
    if DOCUMENT_WEIGHTS in files:
        weights = as_document_weight(_column(folder / DOCUMENT_WEIGHTS, np.dtype("<f8"), n_docs), n_docs)
    text_columns = {
        name: _ids(folder / text_file(number), TEXT_IDS, n_docs, texts)
        for number, name in enumerate(header.text_columns)
    }
    truth = header.truth
    return DiskDataset(
        features,
        _column(folder / LABELS, np.dtype("<f8"), n_docs),
        contiguous_queries(
            text_array(_decode_texts(ids)) if isinstance(ids, TextColumn) else np.array(ids), sizes
        ),
        names,
        doc_ids,
        comments=comments,
        truth=None if truth is None else np.array(truth),
        source=str(folder),
        profile=header.profile,
        document_weight=weights,
        texts=text_columns,
    )


def text_file(number: int) -> str:
    """Name of the file with the text spans of a column, numbered from 0."""
    return f"text_{number + 1}.bin"


def _decode_texts(column: TextColumn) -> list[str]:
    """Decode all texts from one copy of their bytes, which is faster than one by one."""
    first = int(column.begins.min())
    block = column.block[first : column.ends.max()].tobytes()
    spans = zip((column.begins - first).tolist(), (column.ends - first).tolist(), strict=True)
    return [block[begin:end].decode("utf-8", errors="replace") for begin, end in spans]


def _ids(path: Path, kind: str, count: int, texts: AnyArray) -> Any:
    """Ids that are numbers, or spans of the file of texts."""
    if kind != TEXT_IDS:
        dtype = np.dtype(kind).newbyteorder("<")
        if dtype.kind not in NUMBER_KINDS:
            raise DataError(
                None, None, f"{path.name} has type {kind!r}, which cannot be ids; {CONVERT_AGAIN}"
            )
        return _column(path, dtype, count)
    spans = _column(path, SPAN, count)
    return TextColumn(texts, spans[:, 0], spans[:, 1])


def _column(path: Path, dtype: np.dtype[Any], count: int) -> AnyArray:
    values = _map_file(path, dtype)
    if len(values) != count:
        raise DataError(
            None, None, f"{path.name} has {len(values)} entries; expected {count}; {CONVERT_AGAIN}"
        )
    return values


def _map_file(path: Path, dtype: np.dtype[Any]) -> AnyArray:
    """Map a file of numbers into memory, copy-on-write: changes do not reach the file."""
    if path.stat().st_size < dtype.itemsize:
        return np.empty((0, *dtype.shape), dtype.base)
    flat = np.memmap(path, dtype=dtype.base, mode="c").view(np.ndarray)
    return flat.reshape(-1, *dtype.shape) if dtype.shape else flat
