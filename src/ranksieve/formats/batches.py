"""Documents in batches, from files of any size: what a conversion reads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ranksieve._types import AnyArray, IntArray, PathLike
from ranksieve.data.dataset import Dataset, take_rows
from ranksieve.data.inputs import numbered_names
from ranksieve.data.matrix import is_sparse
from ranksieve.data.queries import ids_from_text, text_array
from ranksieve.data.row_values import TextColumn, WithGaps
from ranksieve.errors import DataError
from ranksieve.formats.feature_names import names_for
from ranksieve.formats.fold_files import profile_of_files
from ranksieve.formats.folder import NUMBER_KINDS
from ranksieve.formats.folder_writer import Batch, text_column
from ranksieve.formats.letor import CHUNK_BYTES
from ranksieve.formats.letor_faults import NO_FEATURE
from ranksieve.formats.letor_rows import (
    LARGE_DENSE_CELLS,
    LEAST_DENSE_SHARE,
    Entries,
    LetorRows,
)
from ranksieve.formats.text_files import GZIP_MAGIC, STANDARD_INPUT, source_name, text_chunks
from ranksieve.kernels.letor_text import scatter_rows

BATCH_CELLS, BATCH_ROWS = 2**20, 8192
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Source:
    """Batches of documents, and what is to be known of them.

    ``names`` gives the names of so many features, and ``ids`` makes the array of query ids from what the
    batches call them. ``about`` goes into the header. ``n_docs`` is how many documents will come, if that is
    known before. Without ``empty_comments``, comments that are all empty are no comments.
    """

    batches: Iterator[Batch]
    dtype: np.dtype[Any]
    names: Callable[[int], Sequence[str]]
    ids: Callable[[list[Any]], AnyArray]
    about: Mapping[str, Any]
    n_docs: int | None = None
    empty_comments: bool = True


def rows_of_batch(width: int) -> int:
    """How many rows of so many features go into a batch."""
    return max(1, min(BATCH_ROWS, BATCH_CELLS // max(1, width)))


# --- LETOR text --------------------------------------------------------------------------------------------


def letor_source(
    paths: Sequence[PathLike],
    n_features: int | None,
    dtype: Any,
    refuse_missing: bool,
    progress: Progress | None = None,
    names: PathLike | Sequence[str] | None = None,
) -> Source:
    """The documents of LETOR text, chunk by chunk; several files make one data set."""
    kind = np.dtype(np.float64 if dtype is None else dtype)
    called = names_for(names, paths)
    least = 0 if called is None else called.least
    return Source(
        _letor_batches(paths, n_features, kind, refuse_missing, progress, least),
        kind,
        numbered_names if called is None else lambda width: called.of(width, _names_of(paths)),
        ids_from_text,
        {"source": _names_of(paths), "profile": profile_of_files(paths)},
        empty_comments=False,
    )


def _names_of(paths: Sequence[PathLike]) -> str:
    return ", ".join(source_name(path) for path in paths)


def _letor_batches(
    paths: Sequence[PathLike],
    n_features: int | None,
    dtype: np.dtype[Any],
    refuse_missing: bool,
    progress: Progress | None,
    least: int,
) -> Iterator[Batch]:
    total, done, share, room = _plain_bytes(paths), 0, _DenseShare(n_features or 0), None
    for path in paths:
        name, line = source_name(path), 0
        for chunk in text_chunks(path, CHUNK_BYTES):
            features = _Kept()
            rows = LetorRows(features, n_features, dtype)
            rows.room = rows.room if room is None else room
            line = rows.add(name, line, chunk, refuse_missing)
            room = rows.room
            if features.entries is not None:
                share.add(name, features.entries)
                yield from _slices(rows, features.entries, n_features, least)
            done += chunk.end - chunk.begin
            if progress is not None and total:
                progress(done, total)
    if share.rows and not share.width:
        raise DataError(_names_of(paths), None, NO_FEATURE)


class _Kept:
    """The features of one chunk as the parser gives them."""

    entries: Entries | None = None

    def add(self, name: str, entries: Entries) -> None:
        self.entries = entries

    def finish(self) -> Any:
        return None


class _DenseShare:
    """Refuses text so sparse that its rows would be written as zeros nearly everywhere."""

    def __init__(self, width: int) -> None:
        self.rows, self.stored, self.width = 0, 0, width

    def add(self, name: str, entries: Entries) -> None:
        self.rows += len(entries.starts) - 1
        self.stored += len(entries.values)
        self.width = max(self.width, entries.width)
        cells = self.rows * self.width
        if cells > LARGE_DENSE_CELLS and self.stored < LEAST_DENSE_SHARE * cells:
            reason = (
                f"{self.stored} values for {self.rows} × {self.width} features would make a folder of zeros; "
                "use read_letor with `sparse=True`"
            )
            raise DataError(name, None, reason)


def _slices(rows: LetorRows, entries: Entries, n_features: int | None, least: int) -> Iterator[Batch]:
    """The documents of one chunk, with at least so many features, fewer at a time if they are wide."""
    width, y = n_features or max(entries.width, least), rows.labels.held
    starts = np.append(rows.queries.first_rows.held, len(y))
    names = [rows.queries.names[token] for token in rows.queries.tokens]
    comments, doc_ids = _comments(rows)
    step = rows_of_batch(width)
    for first in range(0, len(y), step):
        last = min(first + step, len(y))
        X = np.zeros((last - first, width), rows.dtype)
        begin, end = entries.starts[first], entries.starts[last]
        if end - begin == X.size:  # distinct ascending indices: every row is 1, …, width
            X[:] = entries.values[begin:end].reshape(X.shape)
        else:
            scatter_rows(entries.starts[first : last + 1], entries.features, entries.values, X)
        runs = slice(int(np.searchsorted(starts, first, "right")) - 1, int(np.searchsorted(starts, last)))
        sizes = np.diff(np.clip(starts[runs.start : runs.stop + 1], first, last))
        yield Batch(X, y[first:last], names[runs], sizes.tolist(), comments[first:last], doc_ids[first:last])


def _comments(rows: LetorRows) -> tuple[TextColumn, TextColumn]:
    """Comments and the document ids in them, also if all are empty."""
    text = rows.comments
    block, ends = text.block.held, text.ends.held
    begins = np.concatenate((np.zeros(1, dtype=np.int64), ends[:-1]))
    return TextColumn(block, begins, ends), TextColumn(block, text.id_begins.held, text.id_ends.held)


def _plain_bytes(paths: Sequence[PathLike]) -> int:
    """The size of the text of all files, 0 if it is not known before they are read."""
    total = 0
    for path in paths:
        if os.fspath(path) == STANDARD_INPUT or not Path(path).is_file():
            return 0
        with open(path, "rb") as file:
            if file.read(len(GZIP_MAGIC)) == GZIP_MAGIC:
                return 0
        total += os.path.getsize(path)
    return total


# --- Data sets ---------------------------------------------------------------------------------------------


def dataset_source(data: Dataset, dtype: Any, progress: Progress | None = None) -> Source:
    """The rows of a data set that is open or in memory."""
    kind = np.dtype(data.X.dtype if dtype is None else dtype)
    about = {"source": data.source, "profile": data.profile}
    if data.truth is not None:
        about["truth"] = np.asarray(data.truth, dtype=np.float64).tolist()
    return Source(
        _dataset_batches(data, kind, progress),
        kind,
        lambda _: data.feature_names,
        ids_like(data.queries.ids),
        about,
        n_docs=data.n_docs,
    )


def _dataset_batches(data: Dataset, dtype: np.dtype[Any], progress: Progress | None) -> Iterator[Batch]:
    queries, step = data.queries, rows_of_batch(data.n_features)
    ids = queries.ids.tolist()
    query_of = queries.of_rows(np.arange(queries.n_queries))
    comments = None if data.comments is None else _texts(data.comments)
    doc_ids = None if data.doc_ids is None else doc_id_column(data.doc_ids)
    texts = {name: _texts(column) for name, column in data.texts.items()}
    for first in range(0, data.n_docs, step):
        rows = slice(first, min(first + step, data.n_docs))
        block = data.X[rows]
        X = as_dtype(
            block.toarray() if is_sparse(block) else np.asarray(block), dtype, data.feature_names, first
        )
        runs, sizes = runs_of(query_of[rows])
        yield Batch(
            X, data.y[rows], [ids[code] for code in runs.tolist()], sizes.tolist(),
            None if comments is None else comments[rows], None if doc_ids is None else doc_ids[rows],
            take_rows(data.document_weight, rows),
            {name: column[rows] for name, column in texts.items()},
        )  # fmt: skip
        if progress is not None:
            progress(rows.stop, data.n_docs)


def _texts(column: Sequence[Any]) -> TextColumn:
    return column if isinstance(column, TextColumn) else text_column([str(one) for one in column])


def doc_id_column(ids: Sequence[Any]) -> TextColumn | WithGaps | AnyArray:
    """Document ids as numbers if all of them are whole numbers, else as texts; None is a gap."""
    if isinstance(ids, TextColumn | WithGaps):
        return ids
    if isinstance(ids, np.ndarray) and ids.dtype.kind in "iu":
        return ids
    gaps = np.array([one is None for one in ids], dtype=bool)
    present = [one for one in ids if one is not None]
    if present and all(isinstance(one, int | np.integer) for one in present):
        least, most = min(present), max(present)
        if least >= -(2**63) and most < 2**63:
            numbers = np.array([0 if one is None else one for one in ids], dtype=np.int64)
            return WithGaps(numbers, gaps) if gaps.any() else numbers
    texts = text_column(["" if one is None else str(one) for one in ids])
    return WithGaps(texts, gaps) if gaps.any() else texts


# --- Shared ------------------------------------------------------------------------------------------------


def runs_of(ids: AnyArray) -> tuple[AnyArray, IntArray]:
    """The ids of runs of equal neighbours, and the length of each run."""
    starts = np.flatnonzero(np.concatenate(([True], ids[1:] != ids[:-1])))
    return ids[starts], np.diff(np.append(starts, len(ids)))


def ids_like(ids: AnyArray) -> Callable[[list[Any]], AnyArray]:
    """A function that makes an array of ids of the same kind from what ``tolist`` gives of them."""
    kind = ids.dtype
    if kind.kind in NUMBER_KINDS:
        return lambda some: np.array(some, dtype=kind)
    if kind.kind == "O" and not all(isinstance(one, str) for one in ids):
        raise DataError(None, None, "query ids of mixed or compound types cannot be written; use int or str")
    return text_array


def as_dtype(X: AnyArray, dtype: np.dtype[Any], names: Sequence[str], first: int) -> AnyArray:
    """The values in another type; one that overflows in it is refused."""
    if X.dtype == dtype:
        return X
    with np.errstate(over="ignore"):
        cast = X.astype(dtype)
    overflows = np.argwhere(np.isinf(cast) & ~np.isinf(X)) if dtype.itemsize < X.dtype.itemsize else ()
    for row, column in overflows[:1]:
        reason = (
            f"feature {names[column]} of row {first + row} is {X[row, column]}, which overflows in {dtype}; "
            "choose `dtype='float64'`"
        )
        raise DataError(None, None, reason)
    return cast
