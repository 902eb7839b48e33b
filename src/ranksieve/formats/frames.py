"""Data sets from and to pandas, polars and arrow tables and parquet files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ranksieve._types import AnyArray, FloatArray, PathLike
from ranksieve._util.atomic import atomic_write
from ranksieve._util.messages import how_to_install
from ranksieve.data.dataset import Dataset
from ranksieve.data.matrix import dense_columns, is_streamed
from ranksieve.data.queries import text_array
from ranksieve.data.row_values import WithGaps
from ranksieve.formats.text_files import plain_file_errors, source_name
from ranksieve.preparation.missing import check_policy, fill_missing

DOC_ID, COMMENT, DOCUMENT_WEIGHT = "doc_id", "comment", "document_weight"
NAMES_SHOWN = 20
CELLS_AT_ONCE = 2**22  # of features on disk
PANDAS_INDEX = re.compile(r"__index_level_\d+__")  # the row labels of a frame, which are no feature


def from_frame(
    frame: Any,
    *,
    qid: str = "qid",
    label: str = "label",
    doc_id: str | None = None,
    features: Sequence[str] | None = None,
    document_weight: str | None = None,
    missing: str = "keep",
) -> Dataset:
    """Take a data set from a pandas, polars or arrow table.

    Parameters
    ----------
    frame : DataFrame or Table
        One row per document.
    qid, label : str
        The columns of query ids and of relevance.
    doc_id : str, optional
        The column of document ids; default ``doc_id`` if there is one.
    features : sequence of str, optional
        The feature columns; default all others, except a text column ``comment``.
    document_weight : str, optional
        The column of how much each document counts in losses; default ``document_weight`` if there is one.
    missing : {"keep", "error", "zero", "query_min", "column_mean"}
        What becomes of null and NaN, see :func:`fill_missing`; rankers deal with NaN that is kept.
    """
    check_policy(missing)
    columns, table = columns_of(frame, qid, label, doc_id, features, document_weight)
    dataset = Dataset(
        features_of(table, columns.features),
        labels_of(table[columns.label]),
        ids_of(table[columns.qid]),
        columns.features,
        None if columns.doc_id is None else ids_of(table[columns.doc_id]).tolist(),
        comments=None if columns.comment is None else table[columns.comment].fill_null("").to_list(),
        document_weight=weights_of(table, columns),
    )
    return fill_missing(dataset, missing)


class Columns(NamedTuple):
    """The names of the columns of a table; document ids and comments may be absent."""

    qid: str
    label: str
    doc_id: str | None
    comment: str | None
    features: list[str]
    document_weight: str | None = None

    def all(self) -> list[str]:
        """All names."""
        special = (self.qid, self.label, self.doc_id, self.comment, self.document_weight)
        return [*(name for name in special if name is not None), *self.features]


def columns_of(
    frame: Any,
    qid: str,
    label: str,
    doc_id: str | None,
    features: Sequence[str] | None = None,
    document_weight: str | None = None,
) -> tuple[Columns, Any]:
    """Which columns hold what, and the table as narwhals shows it; the columns are those of `from_frame`."""
    table = _narwhals_frame(frame)
    doc_id = doc_id or (DOC_ID if DOC_ID in table.columns else None)
    comment = COMMENT if table.schema.get(COMMENT) == extra("narwhals").String else None
    weight = document_weight or (DOCUMENT_WEIGHT if DOCUMENT_WEIGHT in table.columns else None)
    special = [name for name in (qid, label, doc_id, comment, weight) if name is not None]
    names = [name for name in table.columns if name not in special] if features is None else list(features)
    _check_columns(table, [*special, *names])
    return Columns(qid, label, doc_id, comment, names, weight), table


def read_parquet(
    path: PathLike,
    *,
    qid: str = "qid",
    label: str = "label",
    doc_id: str | None = None,
    document_weight: str | None = None,
    missing: str = "keep",
) -> Dataset:
    """Read a parquet file with one row per document; the columns are those of :func:`from_frame`."""
    name = source_name(path)
    with open_parquet(path) as file:
        table = file.read()
    try:
        dataset = from_frame(
            without_index(table), qid=qid, label=label, doc_id=doc_id, document_weight=document_weight,
            missing=missing,
        )  # fmt: skip
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    dataset.source = name
    return dataset


def without_index(table: Any) -> Any:
    """An arrow table without the row labels that pandas may have written beside its columns."""
    return table.drop_columns([name for name in table.column_names if PANDAS_INDEX.fullmatch(name)])


@contextmanager
def open_parquet(path: PathLike) -> Iterator[Any]:
    """A parquet file; what is wrong with it comes as one sentence."""
    parquet, arrow = extra("pyarrow.parquet"), extra("pyarrow")
    with plain_file_errors(path), open(path, "rb") as file:
        try:
            yield parquet.ParquetFile(file)
        except arrow.ArrowException as error:
            reason = str(error).splitlines()[0].rstrip(".")
            raise ValueError(f"{source_name(path)}: is not a sound parquet file ({reason})") from None


def write_parquet(dataset: Dataset, path: PathLike) -> None:
    """Write the columns of :func:`to_frame`; the file appears whole or not at all.

    Features on disk are read and written some rows at a time.
    """
    parquet, tables = extra("pyarrow.parquet"), _arrow_tables(dataset)
    first = next(tables)
    with atomic_write(path, "wb") as file, parquet.ParquetWriter(file, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table)


def to_frame(dataset: Dataset, kind: str = "pandas") -> Any:
    """A pandas, polars or arrow table; :func:`from_frame` gives the data set back.

    Columns are ``label``, ``qid``, ``doc_id``, ``comment`` and ``document_weight`` (if any) and the features.
    A missing value is null.
    """
    if kind not in FRAMES:
        raise ValueError(f"kind={kind!r} is unknown; choose one of {', '.join(FRAMES)}")
    return FRAMES[kind](_arrow_table(dataset))


FRAMES: dict[str, Callable[[Any], Any]] = {
    "pandas": lambda table: table.to_pandas(),
    "polars": lambda table: extra("polars").from_arrow(table),
    "arrow": lambda table: table,
}


def _arrow_tables(dataset: Dataset) -> Iterator[Any]:
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
    taken = sorted(columns.keys() & set(dataset.feature_names))
    if taken:
        names = ", ".join(taken)
        raise ValueError(f"features cannot be called {names} in a frame or parquet file; rename them")
    for name, column in zip(dataset.feature_names, dense_columns(dataset.X, dataset.X.dtype), strict=True):
        columns[name] = arrow.array(column, from_pandas=True)
    return arrow.table(columns)


def extra(module: str) -> Any:
    """A module of another package, or a word on how to get it."""
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise ImportError(f"frames and parquet files need {package}: {how_to_install('frames')}") from None


def _narwhals_frame(frame: Any) -> Any:
    narwhals = extra("narwhals")
    try:
        return narwhals.from_native(frame, eager_only=True)
    except TypeError:
        raise ValueError(
            f"{type(frame).__name__} is not a table in memory; give a pandas, polars or arrow table "
            "(collect a lazy one first)"
        ) from None


def _check_columns(table: Any, wanted: list[str]) -> None:
    for name in wanted:
        if name not in table.columns:
            near = get_close_matches(name, table.columns, n=1, cutoff=0.4)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            more = ", …" if len(table.columns) > NAMES_SHOWN else ""
            present = ", ".join(table.columns[:NAMES_SHOWN]) + more
            raise ValueError(f"there is no column {name!r} among {present}{hint}")


def features_of(table: Any, names: list[str]) -> AnyArray:
    """The feature columns side by side; float32 if all of them are."""
    narwhals = extra("narwhals")
    kinds = {name: table.schema[name] for name in names}
    words = [
        f"{name} ({kind})"
        for name, kind in kinds.items()
        if not (_is_number(kind) or table[name].null_count() == len(table))
    ]
    if words:
        raise ValueError(
            f"feature columns must be numbers, but these are not: {', '.join(words[:NAMES_SHOWN])}; "
            "leave them out or give features="
        )
    single = bool(kinds) and all(kind == narwhals.Float32 for kind in kinds.values())
    X = np.empty((len(table), len(names)), dtype=np.float32 if single else np.float64)
    for j, name in enumerate(names):
        X[:, j] = _floats(table[name])
    return X


def _is_number(kind: Any) -> bool:
    return bool(kind.is_numeric()) or kind == extra("narwhals").Boolean


def _floats(column: Any) -> FloatArray:
    """Numbers as float64, null as NaN."""
    return np.asarray(column.cast(extra("narwhals").Float64).to_numpy(), dtype=np.float64)


def labels_of(column: Any) -> FloatArray:
    """Relevance as float64."""
    if not _is_number(column.dtype):
        raise ValueError(f"the label column {column.name!r} holds {column.dtype}; labels must be numbers")
    return _floats(column)


def weights_of(table: Any, columns: Columns) -> FloatArray | None:
    """The weights of documents as float64, if there is a column of them."""
    if columns.document_weight is None:
        return None
    column = table[columns.document_weight]
    if not _is_number(column.dtype):
        raise ValueError(
            f"the column {column.name!r} of document weights holds {column.dtype}; weights must be numbers"
        )
    return _floats(column)


def ids_of(column: Any) -> AnyArray:
    """Ids as int64, float64 or str where possible."""
    narwhals = extra("narwhals")
    if column.dtype in (narwhals.Categorical, narwhals.Enum):
        column = column.cast(narwhals.String)
    if column.dtype.is_nested():
        raise ValueError(f"the column {column.name!r} holds {column.dtype}; ids must be numbers or text")
    if column.null_count() > 0:
        nulls = column.is_null().to_list()
        ids = [None if null else one for one, null in zip(column.to_list(), nulls, strict=True)]
        return np.array(ids, dtype=object)
    return text_array(column.to_list()) if column.dtype == narwhals.String else np.asarray(column.to_numpy())


def _storable_ids(ids: AnyArray) -> Any:
    if ids.dtype != object:
        return ids.tolist() if ids.dtype.kind == "U" else ids
    if not all(isinstance(one, str) for one in ids):
        raise ValueError("query ids of mixed or compound kinds do not fit a parquet column; use int or str")
    return list(ids)


def _storable_names(names: Sequence[Any]) -> list[Any]:
    """Document ids as they are if all of them are whole numbers, else as text; None stays None."""
    if all(isinstance(name, int | np.integer) or name is None for name in names):
        return list(names)
    return [None if name is None else str(name) for name in names]
