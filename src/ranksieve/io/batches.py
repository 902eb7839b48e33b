"""Read files of any size in batches of documents, and write them into a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ranksieve._types import AnyArray, IntArray, PathLike
from ranksieve._util.files import atomic_folder
from ranksieve.data.dataset import Dataset, TextColumn, take_rows
from ranksieve.data.inputs import as_document_weight, as_labels, numbered_names
from ranksieve.data.matrix import find_first, is_sparse
from ranksieve.data.queries import as_id_array, ids_from_text, text_array
from ranksieve.errors import DataError, warn_caller
from ranksieve.io.folder import NUMBER_KINDS, is_folder_dataset
from ranksieve.io.folder_writer import Batch, FolderWriter
from ranksieve.io.frames import (
    NOT_UTF8,
    ColumnChoice,
    TableColumns,
    as_table,
    columns_of,
    features_of,
    ids_of,
    import_extra,
    is_text,
    numbers_of,
    open_parquet,
    weights_of,
    without_index,
)
from ranksieve.io.letor import (
    CHUNK_BYTES,
    NO_FEATURE,
    Density,
    DocumentChunk,
    letor_documents,
    names_for,
)
from ranksieve.io.text_files import (
    GZIP_MAGIC,
    STANDARD_INPUT,
    in_file,
    profile_of_files,
    source_name,
)
from ranksieve.prepare.missing import POLICY_ADVICE

MAX_BATCH_CELLS, MAX_BATCH_ROWS = 2**20, 8192
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class BatchSource:
    """Batches of documents with their metadata.

    ``names(n)`` returns the names of ``n`` features, and ``ids`` makes the array of query ids from those of
    the batches. ``about`` goes into the header. Without ``empty_comments``, comments that are all empty are
    left out.
    """

    batches: Iterator[Batch]
    dtype: np.dtype[Any]
    names: Callable[[int], Sequence[str]]
    ids: Callable[[list[Any]], AnyArray]
    about: Mapping[str, Any]
    empty_comments: bool = True


def rows_of_batch(width: int) -> int:
    """Number of rows of ``width`` features in a batch."""
    return max(1, min(MAX_BATCH_ROWS, MAX_BATCH_CELLS // max(1, width)))


# --- LETOR text --------------------------------------------------------------------------------------------


def letor_source(
    paths: Sequence[PathLike],
    n_features: int | None,
    dtype: Any,
    refuse_missing: bool,
    progress: Progress | None = None,
    names: PathLike | Sequence[str] | None = None,
) -> BatchSource:
    """The documents of LETOR text, chunk by chunk; several files are joined."""
    kind = np.dtype(np.float64 if dtype is None else dtype)
    feature_names = names_for(names, paths)
    min_width = 0 if feature_names is None else feature_names.min_features
    return BatchSource(
        _letor_batches(paths, n_features, kind, refuse_missing, progress, min_width),
        kind,
        numbered_names
        if feature_names is None
        else lambda width: feature_names.of(width, _joined_names(paths)),
        ids_from_text,
        {"source": _joined_names(paths), "profile": profile_of_files(paths)},
        empty_comments=False,
    )


def _joined_names(paths: Sequence[PathLike]) -> str:
    return ", ".join(source_name(path) for path in paths)


def _letor_batches(
    paths: Sequence[PathLike],
    n_features: int | None,
    dtype: np.dtype[Any],
    refuse_missing: bool,
    progress: Progress | None,
    min_width: int,
) -> Iterator[Batch]:
    total, density = _plain_bytes(paths), Density(n_features or 0, "use read_letor with `sparse=True`")
    for chunk in letor_documents(paths, n_features, dtype, refuse_missing, CHUNK_BYTES):
        density.add(chunk)
        yield from _chunk_batches(chunk, n_features or max(chunk.width, min_width), dtype)
        if progress is not None and total:
            progress(chunk.bytes_read, total)
    if density.rows and not density.width:
        raise DataError(_joined_names(paths), None, NO_FEATURE)


def _chunk_batches(chunk: DocumentChunk, width: int, dtype: np.dtype[Any]) -> Iterator[Batch]:
    """The documents of one chunk, in several batches if they have many features."""
    step, starts = rows_of_batch(width), np.append(chunk.first_rows, chunk.n_rows)
    for first in range(0, chunk.n_rows, step):
        last = min(first + step, chunk.n_rows)
        X = np.zeros((last - first, width), dtype)
        chunk.fill(X, first)
        runs = slice(int(np.searchsorted(starts, first, "right")) - 1, int(np.searchsorted(starts, last)))
        sizes = np.diff(np.clip(starts[runs.start : runs.stop + 1], first, last)).tolist()
        rows = slice(first, last)
        yield Batch(
            X, chunk.labels[rows], chunk.queries[runs], sizes, chunk.comments[rows], chunk.doc_ids[rows]
        )


def _plain_bytes(paths: Sequence[PathLike]) -> int:
    """Total size of the text, or 0 if it is unknown (gzip, standard input)."""
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


def dataset_source(data: Dataset, dtype: Any, progress: Progress | None = None) -> BatchSource:
    """The rows of a data set, on disk or in memory, query by query."""
    if not data.queries.contiguous:
        warn_caller(
            f"{data.source or 'the data'}: the rows of some queries are not contiguous; the folder has "
            "them grouped by query, in a different order"
        )
        data = data.select_rows(data.queries.order)
    kind = np.dtype(data.X.dtype if dtype is None else dtype)
    about = {"source": data.source, "profile": data.profile}
    if data.truth is not None:
        about["truth"] = np.asarray(data.truth, dtype=np.float64).tolist()
    return BatchSource(
        _dataset_batches(data, kind, progress),
        kind,
        lambda _: data.feature_names,
        ids_like(data.queries.ids),
        about,
    )


def _dataset_batches(data: Dataset, dtype: np.dtype[Any], progress: Progress | None) -> Iterator[Batch]:
    queries, step = data.queries, rows_of_batch(data.n_features)
    ids = queries.ids.tolist()
    query_of = queries.of_rows(np.arange(queries.n_queries))
    comments, doc_ids = (
        None if texts is None else _as_text_column(texts) for texts in (data.comments, data.doc_ids)
    )
    texts = {name: _as_text_column(column) for name, column in data.texts.items()}
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


def _as_text_column(column: Sequence[Any]) -> TextColumn:
    if isinstance(column, TextColumn):
        return column
    return TextColumn.of(["" if one is None else str(one) for one in column])


# --- Shared ------------------------------------------------------------------------------------------------


def runs_of(ids: AnyArray) -> tuple[AnyArray, IntArray]:
    """The ids of runs of equal consecutive ids, and the length of each run."""
    starts = np.flatnonzero(np.concatenate(([True], ids[1:] != ids[:-1])))
    return ids[starts], np.diff(np.append(starts, len(ids)))


def ids_like(ids: AnyArray) -> Callable[[list[Any]], AnyArray]:
    """Return a function that turns a list of ids into an array of the same type as ``ids``."""
    kind = ids.dtype
    if kind.kind in NUMBER_KINDS:
        return lambda id_list: np.array(id_list, dtype=kind)
    if kind.kind == "O" and not all(isinstance(one, str) for one in ids):
        raise DataError(None, None, "query ids of mixed or compound types cannot be written; use int or str")
    return text_array


def as_dtype(X: AnyArray, dtype: np.dtype[Any], names: Sequence[str], first: int) -> AnyArray:
    """Cast the values; overflow is an error."""
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


# --- Parquet -----------------------------------------------------------------------------------------------

TEXT_DTYPE = np.dtype(np.str_)
DEFAULT_CHOICE = ColumnChoice()


class _ParquetFile(NamedTuple):
    """A parquet file; ``single`` is True if its features are float32."""

    name: str
    columns: TableColumns
    single: bool
    query_kind: np.dtype[Any]
    n_rows: int


def parquet_source(
    paths: Sequence[PathLike],
    dtype: Any,
    progress: Progress | None = None,
    choice: ColumnChoice = DEFAULT_CHOICE,
) -> BatchSource:
    """The rows of parquet files, joined in the given order.

    Features are float32 if they are so in all files, else float64. Columns are matched by name; all files
    must have the same columns.
    """
    inputs = [_inspect_parquet(path, choice) for path in paths]
    for other in inputs[1:]:
        _check_same_columns(inputs[0], other)
    single = all(one.single for one in inputs)
    kind = np.dtype((np.float32 if single else np.float64) if dtype is None else dtype)
    query_kind, columns = _common_id_type(inputs), inputs[0].columns

    def batches() -> Iterator[Batch]:
        done, total = 0, sum(one.n_rows for one in inputs)
        for path, one in zip(paths, inputs, strict=True):
            first = 0
            with open_parquet(path) as file:
                for table in _read_tables(file, columns):
                    with in_file(one.name):
                        batch = _batch(table, columns, kind, first)
                    yield batch
                    first += table.num_rows
                    done += table.num_rows
                    if progress is not None:
                        progress(done, total)

    about = {"source": _joined_names(paths), "profile": None}
    ids = ids_like(np.empty(0, dtype=query_kind))
    return BatchSource(batches(), kind, lambda _: columns.features, ids, about)


def _inspect_parquet(path: PathLike, choice: ColumnChoice) -> _ParquetFile:
    name = source_name(path)
    with open_parquet(path) as file, in_file(name):
        columns, table = columns_of(without_index(file.schema_arrow.empty_table()), choice)
        weights_of(table, columns)
        single = features_of(table, columns.features).dtype == np.float32
        return _ParquetFile(name, columns, single, _id_type(table[columns.qid]), file.metadata.num_rows)


def _id_type(column: Any) -> np.dtype[Any]:
    kind = TEXT_DTYPE if is_text(column.dtype) else ids_of(column).dtype
    if kind.kind == "O":
        reason = f"the column {column.name!r} has type {column.dtype}; ids must be numbers or text"
        raise DataError(None, None, reason)
    return kind


def _check_same_columns(first: _ParquetFile, other: _ParquetFile) -> None:
    for one, another in ((other, first), (first, other)):
        for name in sorted(set(another.columns.all()) - set(one.columns.all())):
            reason = f"has no column {name!r}, but {another.name} has; all files need the same columns"
            raise DataError(one.name, None, reason)
        for name in sorted(set(another.columns.features) - set(one.columns.features)):
            reason = (
                f"the column {name!r} is text, but a feature in {another.name}; use the same type in both"
            )
            raise DataError(one.name, None, reason)


def _common_id_type(inputs: Sequence[_ParquetFile]) -> np.dtype[Any]:
    """The type that represents the query ids of all files exactly."""
    common = inputs[0].query_kind
    for one in inputs:
        kind = one.query_kind
        mixed = {kind.kind, common.kind}
        if len(mixed) > 1 and (mixed != {"i", "u"} or np.result_type(kind, common).kind == "f"):
            ids, first_ids = ("text" if dtype == TEXT_DTYPE else dtype.name for dtype in (kind, common))
            reason = (
                f"query ids are {ids}, but {first_ids} in {inputs[0].name}; use the same type in all files"
            )
            raise DataError(one.name, None, reason)
        common = np.result_type(kind, common)
    return TEXT_DTYPE if common.kind == "U" else common


def _read_tables(file: Any, columns: TableColumns) -> Iterator[Any]:
    """Tables of some rows, one row group at a time: an iterator over all groups keeps them in memory."""
    arrow, size = import_extra("pyarrow"), rows_of_batch(len(columns.features))
    for group in range(file.num_row_groups):
        stream = file.iter_batches(size, row_groups=[group], columns=columns.all(), use_threads=False)
        for rows in stream:
            if rows.num_rows:
                yield arrow.Table.from_batches([rows])


def _batch(table: Any, columns: TableColumns, dtype: np.dtype[Any], first: int) -> Batch:
    rows = as_table(table)
    X = as_dtype(features_of(rows, columns.features), dtype, columns.features, first)
    y = as_labels(numbers_of(rows[columns.label], "label"), table.num_rows, first)
    ids, sizes = runs_of(as_id_array(ids_of(rows[columns.qid]), first))
    comments, doc_ids = (
        None if name is None else _parquet_texts(table[name]) for name in (columns.comment, columns.doc_id)
    )
    texts = {name: _parquet_texts(table[name]) for name in columns.texts}
    weight = as_document_weight(weights_of(rows, columns), table.num_rows, first)
    return Batch(X, y, ids.tolist(), sizes.tolist(), comments, doc_ids, weight, texts)


def _parquet_texts(column: Any) -> TextColumn:
    """Strings as a view of arrow's bytes; null becomes an empty string."""
    arrow = import_extra("pyarrow")
    compute = import_extra("pyarrow.compute")
    texts = compute.fill_null(column.combine_chunks().cast(arrow.large_string()), "")
    if isinstance(texts, arrow.ChunkedArray):
        texts = texts.combine_chunks()
    try:
        texts.validate(full=True)
    except arrow.ArrowInvalid:
        raise DataError(None, None, NOT_UTF8) from None
    _, offset_buffer, block = texts.buffers()
    offsets = np.frombuffer(offset_buffer, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    data = np.empty(0, dtype=np.uint8) if block is None else np.frombuffer(block, dtype=np.uint8)
    return TextColumn(data, offsets[:-1], offsets[1:])


def write_folder(dataset: Dataset, path: PathLike) -> None:
    """Write a data set into a folder; an existing data set is replaced, any other folder is an error."""
    write_source(dataset_source(dataset, None), path, "keep")


def write_source(source: BatchSource, path: PathLike, missing: str) -> None:
    """Write all documents of a source into a folder."""
    name = source.about["source"]
    with (
        atomic_folder(path, is_folder_dataset) as folder,
        FolderWriter(folder, source.dtype, missing) as writer,
    ):
        for batch in source.batches:
            if missing == "error":
                _refuse_missing(batch, writer.n_docs, source)
            try:
                writer.add(batch)
            except DataError as error:
                raise error.at(name) from None
        if writer.n_docs == 0:
            raise DataError(name, None, "holds no documents")
        writer.finish(source.names(writer.width), source.ids, source.about, source.empty_comments)


def _refuse_missing(batch: Batch, first: int, source: BatchSource) -> None:
    position = find_first(batch.X, np.isnan)
    if position is not None:
        row, column = position
        feature = source.names(batch.X.shape[1])[column]
        query = batch.ids[int(np.searchsorted(np.cumsum(batch.sizes), row, side="right"))]
        reason = f"feature {feature} of row {first + row} (query {query}) is missing; {POLICY_ADVICE}"
        raise DataError(source.about["source"], None, reason)
