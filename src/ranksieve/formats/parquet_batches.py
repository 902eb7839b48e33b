"""The documents of parquet files, batch by batch; several files have the same columns in any order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksieve._types import PathLike
from ranksieve.data.inputs import as_document_weight, as_labels
from ranksieve.data.matrix import first_place
from ranksieve.data.queries import as_id_array
from ranksieve.data.row_values import TextColumn, WithGaps
from ranksieve.errors import DataError
from ranksieve.formats.batches import Progress, Source, as_dtype, ids_like, rows_of_batch, runs_of
from ranksieve.formats.columns import (
    ColumnChoice,
    Columns,
    as_table,
    columns_of,
    extra,
    features_of,
    ids_of,
    is_text,
    labels_of,
    weights_of,
)
from ranksieve.formats.folder_writer import Batch
from ranksieve.formats.frames import NOT_UTF8, open_parquet, without_index
from ranksieve.formats.text_files import in_file, source_name
from ranksieve.preparation.missing import OTHER_POLICIES

TEXT = np.dtype(np.str_)
ONE_KIND = "make them of one kind"
DEFAULT_CHOICE = ColumnChoice()


@dataclass(frozen=True)
class _Part:
    """One file: its columns, the types of its ids, and how many rows it has."""

    path: PathLike
    columns: Columns
    single: bool
    query_kind: np.dtype[Any]
    doc_kind: np.dtype[Any] | None
    n_rows: int


def parquet_source(
    paths: Sequence[PathLike],
    dtype: Any,
    refuse_missing: bool,
    progress: Progress | None = None,
    choice: ColumnChoice = DEFAULT_CHOICE,
) -> Source:
    """The rows of parquet files, which make one data set in the order given.

    Features are float32 if they are in all files, else float64. Columns are found by name; a file that lacks
    one is refused.
    """
    parts = [_part(path, choice) for path in paths]
    for part in parts[1:]:
        _check_same_columns(parts[0], part)
    found = np.float32 if all(part.single for part in parts) else np.float64
    kind = np.dtype(found if dtype is None else dtype)
    query_kind = _common([part.query_kind for part in parts], "query", parts)
    doc_kinds = [part.doc_kind for part in parts if part.doc_kind is not None]
    doc_kind = _common(doc_kinds, "document", parts) if doc_kinds else None
    columns = parts[0].columns
    return Source(
        _batches(parts, columns, kind, doc_kind, refuse_missing, progress),
        kind,
        lambda _: columns.features,
        ids_like(np.empty(0, dtype=query_kind)),
        {"source": ", ".join(source_name(path) for path in paths), "profile": None},
        n_docs=sum(part.n_rows for part in parts),
    )


def _part(path: PathLike, choice: ColumnChoice) -> _Part:
    with open_parquet(path) as file:
        empty = without_index(file.schema_arrow.empty_table())
        with in_file(source_name(path)):
            columns, table = columns_of(empty, choice)
            weights_of(table, columns)
            single = features_of(table, columns.features).dtype == np.float32
            query_kind = _kind_of(table[columns.qid])
            doc_kind = None if columns.doc_id is None else _kind_of(table[columns.doc_id])
        return _Part(path, columns, single, query_kind, doc_kind, file.metadata.num_rows)


def _kind_of(column: Any) -> np.dtype[Any]:
    """The type of the ids of a column."""
    if is_text(column.dtype):
        return TEXT
    kind = ids_of(column).dtype
    if kind.kind == "O":
        raise DataError(
            None, None, f"the column {column.name!r} holds {column.dtype}; ids must be numbers or text"
        )
    return kind


def _check_same_columns(first: _Part, other: _Part) -> None:
    names = (set(first.columns.all()), set(other.columns.all()))
    for here, there, lacking, having in ((0, 1, other, first), (1, 0, first, other)):
        for name in sorted(names[here] - names[there]):
            reason = (
                f"has no column {name!r}, but {source_name(having.path)} has; all files need the same ones"
            )
            raise DataError(source_name(lacking.path), None, reason)
    for name in sorted(set(first.columns.features) ^ set(other.columns.features)):
        text, numbers = (first, other) if name in first.columns.texts else (other, first)
        reason = (
            f"the column {name!r} is text, but a feature in {source_name(numbers.path)}; make both the same"
        )
        raise DataError(source_name(text.path), None, reason)


def _common(kinds: Sequence[np.dtype[Any]], what: str, parts: Sequence[_Part]) -> np.dtype[Any]:
    """The type that holds the ids of all files as they are."""
    for part, kind in zip(parts, kinds, strict=True):
        if kind.kind != kinds[0].kind and {kind.kind, kinds[0].kind} != {"i", "u"}:
            reason = (
                f"its {what} ids are {_words(kind)}, but those of {source_name(parts[0].path)} are "
                f"{_words(kinds[0])}; {ONE_KIND}"
            )
            raise DataError(source_name(part.path), None, reason)
    common = np.result_type(*kinds)
    if common.kind == "f" and kinds[0].kind != "f":
        raise DataError(
            source_name(parts[0].path), None, f"no integer type holds the {what} ids of all files; {ONE_KIND}"
        )
    return TEXT if common.kind == "U" else common


def _words(kind: np.dtype[Any]) -> str:
    return "text" if kind.kind == "U" else kind.name


def _batches(
    parts: Sequence[_Part],
    columns: Columns,
    dtype: np.dtype[Any],
    doc_kind: np.dtype[Any] | None,
    refuse_missing: bool,
    progress: Progress | None,
) -> Iterator[Batch]:
    done, total = 0, sum(part.n_rows for part in parts)
    for part in parts:
        name, first = source_name(part.path), 0
        with open_parquet(part.path) as file:
            for table in _tables(file, columns):
                with in_file(name):
                    batch = _batch(table, columns, dtype, doc_kind, first, refuse_missing)
                yield batch
                first += table.num_rows
                done += table.num_rows
                if progress is not None:
                    progress(done, total)


def _tables(file: Any, columns: Columns) -> Iterator[Any]:
    """Some rows at a time, one row group after another: over all groups at once, arrow keeps what it read."""
    arrow, size = extra("pyarrow"), rows_of_batch(len(columns.features))
    for group in range(file.num_row_groups):
        stream = file.iter_batches(size, row_groups=[group], columns=columns.all(), use_threads=False)
        for rows in stream:
            if rows.num_rows:
                yield arrow.Table.from_batches([rows])


def _batch(
    table: Any,
    columns: Columns,
    dtype: np.dtype[Any],
    doc_kind: np.dtype[Any] | None,
    first: int,
    refuse_missing: bool,
) -> Batch:
    rows = as_table(table)
    X = as_dtype(features_of(rows, columns.features), dtype, columns.features, first)
    y = as_labels(labels_of(rows[columns.label]), table.num_rows, first)
    qid = as_id_array(ids_of(rows[columns.qid]), first)
    place = first_place(X, np.isnan) if refuse_missing else None
    if place is not None:
        row, column = place
        reason = (
            f"feature {columns.features[column]} of row {first + row} (query {qid[row]}) is missing; "
            f"{OTHER_POLICIES}"
        )
        raise DataError(None, None, reason)
    ids, sizes = runs_of(qid)
    comments = None if columns.comment is None else _texts(table[columns.comment])
    doc_ids = None if doc_kind is None else _doc_ids(table[columns.doc_id], rows[columns.doc_id], doc_kind)
    texts = {name: _texts(table[name]) for name in columns.texts}
    weight = as_document_weight(weights_of(rows, columns), table.num_rows, first)
    return Batch(X, y, ids.tolist(), sizes.tolist(), comments, doc_ids, weight, texts)


def _doc_ids(column: Any, of_frame: Any, kind: np.dtype[Any]) -> WithGaps:
    gaps = np.asarray(column.is_null().to_numpy(), dtype=bool)
    if kind == TEXT:
        return WithGaps(_texts(column), gaps)
    numbers = np.zeros(len(gaps), dtype=kind)
    numbers[~gaps] = ids_of(of_frame.drop_nulls())
    return WithGaps(numbers, gaps)


def _texts(column: Any) -> TextColumn:
    """Strings as the bytes that arrow holds them in; null is empty."""
    arrow = extra("pyarrow")
    compute = extra("pyarrow.compute")
    texts = compute.fill_null(column.combine_chunks().cast(arrow.large_string()), "")
    if isinstance(texts, arrow.ChunkedArray):
        texts = texts.combine_chunks()
    try:
        texts.validate(full=True)
    except arrow.ArrowInvalid:
        raise DataError(None, None, NOT_UTF8) from None
    _, places, block = texts.buffers()
    begins = np.frombuffer(places, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    data = np.empty(0, dtype=np.uint8) if block is None else np.frombuffer(block, dtype=np.uint8)
    return TextColumn(data, begins[:-1], begins[1:])
