"""Data sets from and to pandas, polars and arrow tables and parquet files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

import numpy as np

from ranksieve._types import AnyArray, PathLike
from ranksieve._util.atomic import atomic_write
from ranksieve.data.columns import dense_columns
from ranksieve.data.dataset import Dataset
from ranksieve.data.matrix import is_streamed
from ranksieve.data.row_values import WithGaps
from ranksieve.errors import DataError, ParameterError
from ranksieve.formats.columns import (
    COMMENT,
    DOC_ID,
    DOCUMENT_WEIGHT,
    ColumnChoice,
    columns_of,
    extra,
    features_of,
    ids_of,
    labels_of,
    texts_of,
    weights_of,
)
from ranksieve.formats.text_files import in_file, plain_file_errors, source_name
from ranksieve.formats.unpacking import check_announced
from ranksieve.preparation.missing import check_policy, fill_missing

CELLS_AT_ONCE = 2**22  # of features on disk
NOT_UTF8 = "holds text that is not UTF-8; write the file again"
PANDAS_INDEX = re.compile(r"__index_level_\d+__")  # the row labels of a frame, which are no feature


def from_frame(
    frame: Any,
    *,
    qid: str = "qid",
    label: str = "label",
    doc_id: str | None = None,
    features: str | Sequence[str] | None = None,
    ignore: str | Sequence[str] = (),
    document_weight: str | None = None,
    missing: str = "keep",
) -> Dataset:
    """Take a data set from a pandas, polars or arrow table.

    Columns of text that are none of these become ``texts`` of the data set, except ``comment``, which
    becomes its ``comments``. Column names that are not text, such as the numbers that pandas gives, are taken
    as text: column 0 is called "0".

    Parameters
    ----------
    frame : DataFrame or Table
        One row per document.
    qid, label : str
        The columns of query ids and of relevance.
    doc_id : str, optional
        The column of document ids; default ``doc_id`` if there is one.
    features : str or sequence of str, optional
        The feature columns, as names or shell patterns (``"bm25_*"``); default all others that are no text.
    ignore : str or sequence of str
        Columns to leave out, as names or shell patterns.
    document_weight : str, optional
        The column of how much each document counts in losses; default ``document_weight`` if there is one.
    missing : {"keep", "error", "zero", "query_min", "column_mean"}
        What becomes of null and NaN, see :func:`fill_missing`; rankers deal with NaN that is kept.
    """
    check_policy(missing)
    document, weight = (None if name is None else str(name) for name in (doc_id, document_weight))
    choice = ColumnChoice(str(qid), str(label), document, _as_text(features), _as_text(ignore), weight)
    columns, table = columns_of(frame, choice)
    dataset = Dataset(
        features_of(table, columns.features),
        labels_of(table[columns.label]),
        ids_of(table[columns.qid]),
        columns.features,
        None if columns.doc_id is None else ids_of(table[columns.doc_id]).tolist(),
        comments=None if columns.comment is None else texts_of(table[columns.comment]),
        texts={name: texts_of(table[name]) for name in columns.texts},
        document_weight=weights_of(table, columns),
    )
    return fill_missing(dataset, missing)


def _as_text(names: Any) -> Any:
    """Names of columns as text."""
    return names if names is None or isinstance(names, str) else [str(name) for name in names]


def read_parquet(path: PathLike, *, missing: str = "keep", **columns: Any) -> Dataset:
    """Read a parquet file with one row per document; the columns are those of :func:`from_frame`."""
    name = source_name(path)
    with open_parquet(path) as file:
        table = without_index(file.read())
    with in_file(name):
        try:
            dataset = from_frame(table, missing=missing, **columns)
        except UnicodeDecodeError:
            raise DataError(None, None, NOT_UTF8) from None
    dataset.source = name
    return dataset


def without_index(table: Any) -> Any:
    """An arrow table without the row labels that pandas may have written beside its columns."""
    kept = [k for k, name in enumerate(table.column_names) if not PANDAS_INDEX.fullmatch(name)]
    return table.select(kept)


@contextmanager
def open_parquet(path: PathLike) -> Iterator[Any]:
    """A parquet file; what is wrong with it comes as one sentence."""
    parquet, arrow = extra("pyarrow.parquet"), extra("pyarrow")
    with plain_file_errors(path), open(path, "rb") as file:
        try:
            opened = parquet.ParquetFile(file)
            about, n_bytes = opened.metadata, os.fstat(file.fileno()).st_size
            check_announced(about.num_rows, about.num_columns, n_bytes, source_name(path))
            yield opened
        except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            reason = str(error).splitlines()[0].rstrip(".")
            raise DataError(source_name(path), None, f"is not a sound parquet file ({reason})") from None


def write_parquet(dataset: Dataset, path: PathLike) -> None:
    """Write the columns of :func:`to_frame`; the file appears whole or not at all.

    Features on disk are read and written some rows at a time.
    """
    parquet, tables = extra("pyarrow.parquet"), arrow_tables(dataset)
    first = next(tables)
    with atomic_write(path, "wb") as file, parquet.ParquetWriter(file, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table)


def to_frame(dataset: Dataset, kind: str = "pandas") -> Any:
    """A pandas, polars or arrow table; :func:`from_frame` gives the data set back.

    Columns are ``label``, ``qid``, ``doc_id``, ``comment`` and ``document_weight`` (if any), the texts and
    the features. A missing value is null.
    """
    if kind not in FRAMES:
        raise ParameterError("kind", kind, f"must be one of {', '.join(FRAMES)}")
    return FRAMES[kind](_arrow_table(dataset))


FRAMES: dict[str, Callable[[Any], Any]] = {
    "pandas": lambda table: table.to_pandas(),
    "polars": lambda table: extra("polars").from_arrow(table),
    "arrow": lambda table: table,
}


def arrow_tables(dataset: Dataset) -> Iterator[Any]:
    """One table of the whole data set, or of some of its rows after another if its features are on disk."""
    if not is_streamed(dataset.X):
        yield _arrow_table(dataset)
        return
    schema, step = None, max(1, CELLS_AT_ONCE // dataset.n_features)
    for start in range(0, dataset.n_docs, step):
        table = _arrow_table(dataset.select_rows(np.arange(start, min(start + step, dataset.n_docs))))
        schema = schema or _with_kind_of_doc_ids(table.schema, dataset.doc_ids)
        yield table.cast(schema)


def _with_kind_of_doc_ids(schema: Any, doc_ids: Sequence[Any] | None) -> Any:
    """The schema of all rows, of which the first may have no document ids."""
    if not isinstance(doc_ids, WithGaps):
        return schema
    some = _storable_names([doc_ids[int(np.argmin(doc_ids.gaps))]])
    place = schema.get_field_index(DOC_ID)
    return schema.set(place, schema.field(place).with_type(extra("pyarrow").array(some).type))


def _arrow_table(dataset: Dataset) -> Any:
    arrow = extra("pyarrow")
    columns: dict[str, Any] = {"label": dataset.y, "qid": _storable_ids(dataset.qid)}
    if dataset.doc_ids is not None:
        columns[DOC_ID] = _storable_names(dataset.doc_ids)
    if dataset.comments is not None:
        columns[COMMENT] = [str(comment) for comment in dataset.comments]
    if dataset.document_weight is not None:
        columns[DOCUMENT_WEIGHT] = dataset.document_weight
    _check_names("texts", dataset.texts, columns)
    for name, texts in dataset.texts.items():
        columns[name] = arrow.array([str(text) for text in texts], arrow.string())
    _check_names("features", dataset.feature_names, columns)
    for name, column in zip(dataset.feature_names, dense_columns(dataset.X, dataset.X.dtype), strict=True):
        columns[name] = arrow.array(column, from_pandas=True)
    return arrow.table(columns)


def _check_names(what: str, names: Iterable[str], taken: Container[str]) -> None:
    if clashes := sorted(name for name in names if name in taken):
        raise DataError(
            None, None, f"{what} cannot be called {', '.join(clashes)} in a frame or a file; rename them"
        )


def _storable_ids(ids: AnyArray) -> Any:
    if ids.dtype != object:
        return ids.tolist() if ids.dtype.kind == "U" else ids
    if not all(isinstance(one, str) for one in ids):
        raise DataError(
            None, None, "query ids of mixed or compound types do not fit a parquet column; use int or str"
        )
    return list(ids)


def _storable_names(names: Sequence[Any]) -> list[Any]:
    """Document ids as they are if all of them are whole numbers, else as text; None stays None."""
    if all(isinstance(name, int | np.integer) or name is None for name in names):
        return list(names)
    return [None if name is None else str(name) for name in names]
