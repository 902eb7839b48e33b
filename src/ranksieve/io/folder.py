"""Data sets in a folder, for data that outgrow memory: a small header and files of plain numbers.

docs/data.md describes every file; ``folder_writer.py`` writes them.
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
from ranksieve._util.files import Finite, converted, decode_json, fault_of_file_name, identity
from ranksieve.data.dataset import Dataset, TextColumn
from ranksieve.data.disk import DiskDataset, DiskMatrix
from ranksieve.data.inputs import as_document_weight
from ranksieve.data.queries import queries_in_order, text_array
from ranksieve.errors import DataError, shown
from ranksieve.io.text_files import in_file
from ranksieve.prepare.missing import check_policy, fill_missing

FORMAT, FORMAT_VERSION = "ranksieve-dataset", 3
SUFFIX = ".ranksieve"
HEADER = "dataset.json"
FEATURES, LABELS, SIZES, QUERY_IDS = "features.bin", "labels.bin", "query_sizes.bin", "query_ids.bin"
DOCUMENT_WEIGHTS = "document_weights.bin"
DOC_IDS, COMMENTS, TEXTS = "doc_ids.bin", "comments.bin", "texts.bin"
TEXT = "text"  # the kind of ids that are places in the file of texts
WORD, PLACE = np.dtype("<i8"), np.dtype(("<i8", 2))
NUMBER_KINDS = "iufbmM"
EDGE = 4096  # bytes at either end of a file that are looked at when it is opened
AGAIN = "convert the data again"


class FileEntry(msgspec.Struct, forbid_unknown_fields=True):
    bytes: int
    edges: int


class Header(msgspec.Struct, forbid_unknown_fields=True):
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

    Its ``X`` is read where it is wanted, labels and names are mapped into memory, so opening takes no time
    and little memory whatever the size. Methods that need all features at once read them.

    Parameters
    ----------
    path : path
        The folder.
    missing : {"keep", "error", "zero", "query_min", "column_mean"}
        What becomes of missing values, see :func:`fill_missing`; those that replace them read all features
        into memory, so give the policy to ``convert_dataset`` or to the ranker instead if they are large.
    """
    check_policy(missing)
    folder = Path(path)
    while True:
        before = identity(folder)
        try:
            data = _opened(folder, _read_header(folder))
            break
        except (OSError, ValueError, TypeError):
            if identity(folder) == before:  # else another process has just replaced it
                raise
    with in_file(str(folder)):
        return fill_missing(data, missing)


def is_folder_dataset(path: PathLike) -> bool:
    """Whether there is a folder with the header of a data set."""
    try:
        header = decode_json(_header_text(Path(path)))
    except (OSError, ValueError):
        return False
    return isinstance(header, dict) and header.get("format") == FORMAT


def means_folder(path: PathLike) -> bool:
    """Whether a name means a data set in a folder: one that ends in / or .ranksieve, or one that is there."""
    name = os.fspath(path)
    return name.endswith(("/", os.sep)) or name.lower().endswith(SUFFIX) or (Path(name) / HEADER).is_file()


def _header_text(folder: Path) -> str:
    if not _is_plain(folder / HEADER):
        raise DataError(folder / HEADER, None, f"is not a plain file; {AGAIN}")
    return (folder / HEADER).read_text(encoding="utf-8")


def _is_plain(path: Path) -> bool:
    """Whether a file is, or a link leads to, no device or pipe, which might be read without end."""
    return S_ISREG(path.stat().st_mode)


def _read_header(folder: Path) -> Header:
    if not folder.is_dir():
        what = "is a file, but expected" if folder.exists() else "there is no such folder; expected"
        raise FileNotFoundError(f"{folder}: {what} the folder of a data set, as ranksieve convert makes it")
    try:
        content = decode_json(_header_text(folder))
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{folder}: is a folder without {HEADER}; give a file, or a folder that ranksieve convert made"
        ) from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataError(folder / HEADER, None, f"damaged JSON ({error}); {AGAIN}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise DataError(folder / HEADER, None, f'not a data set of ranksieve (no "format": "{FORMAT}")')
    if content.get("format_version") != FORMAT_VERSION:
        reason = (
            f"has version {content.get('format_version')!r} of the format, but this ranksieve reads version "
            f"{FORMAT_VERSION}; {AGAIN}"
        )
        raise DataError(folder / HEADER, None, reason)
    try:
        return _consistent(converted(content, Header))
    except ValueError as error:
        raise DataError(folder / HEADER, None, f"damaged ({error}); {AGAIN}") from None


def _consistent(header: Header) -> Header:
    starts, names = header.block_starts, header.feature_names
    if header.dtype not in ("float32", "float64"):
        raise DataError(None, None, f"dtype is {header.dtype!r}; expected float32 or float64")
    if not names or header.n_docs < 1 or header.n_queries < 1:
        raise DataError(None, None, "there are no documents or no features")
    if starts[:1] != [0] or starts[-1] != header.n_docs or (np.diff(starts) <= 0).any():
        raise DataError(None, None, "block_starts do not rise from 0 to n_docs")
    if len(set(names)) < len(names):
        raise DataError(None, None, "a feature name occurs twice")
    return header


def _check_file(path: Path, about: FileEntry) -> None:
    try:
        size = path.stat().st_size
    except OSError:
        raise DataError(None, None, f"{path.name} is missing; {AGAIN}") from None
    if not _is_plain(path):
        raise DataError(None, None, f"{path.name} is not a plain file; {AGAIN}")
    if size != about.bytes:
        raise DataError(None, None, f"{path.name} has {size} bytes; expected {about.bytes}; {AGAIN}")
    if edges_of(path) != about.edges:
        raise DataError(None, None, f"{path.name} is not the file that {HEADER} was written with; {AGAIN}")


def edges_of(path: Path) -> int:
    """A checksum of the first and the last bytes of a file."""
    with path.open("rb") as file:
        first = zlib.crc32(file.read(EDGE))
        file.seek(max(0, path.stat().st_size - EDGE))
        return zlib.crc32(file.read(EDGE), first)


def _opened(folder: Path, header: Header) -> DiskDataset:
    try:
        for name, about in header.files.items():
            if fault := fault_of_file_name(name):
                raise DataError(None, None, f"{shown(name)} is not part of a data set: {fault}; {AGAIN}")
            _check_file(folder / name, about)
        return _assembled(folder, header)
    except (ValueError, TypeError) as error:
        raise DataError(folder, None, str(error)) from None


def _assembled(folder: Path, header: Header) -> DiskDataset:
    n_docs, n_queries, names = header.n_docs, header.n_queries, header.feature_names
    files = header.files
    if FEATURES not in files:
        raise DataError(None, None, f"{HEADER} does not list {FEATURES}; {AGAIN}")
    features = DiskMatrix(folder / FEATURES, header.block_starts, len(names), header.dtype)
    texts = _mapped(folder / TEXTS, np.dtype(np.uint8)) if TEXTS in files else np.empty(0, np.uint8)
    sizes = np.array(_column(folder / SIZES, WORD, n_queries))
    if (sizes < 1).any() or sizes.sum() != n_docs:
        raise DataError(None, None, f"{SIZES} does not add up to {n_docs} documents; {AGAIN}")
    ids = _ids(folder / QUERY_IDS, header.query_ids, n_queries, texts)
    doc_ids = _ids(folder / DOC_IDS, TEXT, n_docs, texts) if DOC_IDS in files else None
    comments = _ids(folder / COMMENTS, TEXT, n_docs, texts) if COMMENTS in files else None
    weights = None
    if DOCUMENT_WEIGHTS in files:
        weights = as_document_weight(_column(folder / DOCUMENT_WEIGHTS, np.dtype("<f8"), n_docs), n_docs)
    beside = {
        name: _ids(folder / text_file(number), TEXT, n_docs, texts)
        for number, name in enumerate(header.text_columns)
    }
    truth = header.truth
    return DiskDataset(
        features,
        _column(folder / LABELS, np.dtype("<f8"), n_docs),
        queries_in_order(text_array(_decoded(ids)) if isinstance(ids, TextColumn) else np.array(ids), sizes),
        names,
        doc_ids,
        comments=comments,
        truth=None if truth is None else np.array(truth),
        source=str(folder),
        profile=header.profile,
        document_weight=weights,
        texts=beside,
    )


def text_file(number: int) -> str:
    """The file with the places of the texts of a column, numbered from 0."""
    return f"text_{number + 1}.bin"


def _decoded(column: TextColumn) -> list[str]:
    """All texts at once, which is quicker than one by one."""
    first = int(column.begins.min())
    block = column.block[first : column.ends.max()].tobytes()
    places = zip((column.begins - first).tolist(), (column.ends - first).tolist(), strict=True)
    return [block[begin:end].decode("utf-8", errors="replace") for begin, end in places]


def _ids(path: Path, kind: str, count: int, texts: AnyArray) -> Any:
    """Numbers, or texts by their places."""
    if kind != TEXT:
        dtype = np.dtype(kind).newbyteorder("<")
        if dtype.kind not in NUMBER_KINDS:
            raise DataError(None, None, f"{path.name} holds {kind!r}, which cannot be ids; {AGAIN}")
        return _column(path, dtype, count)
    places = _column(path, PLACE, count)
    return TextColumn(texts, places[:, 0], places[:, 1])


def _column(path: Path, dtype: np.dtype[Any], count: int) -> AnyArray:
    values = _mapped(path, dtype)
    if len(values) != count:
        raise DataError(None, None, f"{path.name} has {len(values)} entries; expected {count}; {AGAIN}")
    return values


def _mapped(path: Path, dtype: np.dtype[Any]) -> AnyArray:
    """The numbers of a file, read by the system when they are touched; what is changed stays in memory."""
    if path.stat().st_size < dtype.itemsize:
        return np.empty((0, *dtype.shape), dtype.base)
    flat = np.memmap(path, dtype=dtype.base, mode="c").view(np.ndarray)
    return flat.reshape(-1, *dtype.shape) if dtype.shape else flat
