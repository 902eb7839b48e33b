"""Data sets from and to pandas, polars and arrow tables and parquet files."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import numpy as np

from ranksieve._types import AnyArray, FloatArray, PathLike
from ranksieve._util.atomic import atomic_write
from ranksieve._util.messages import how_to_install
from ranksieve.data.dataset import Dataset
from ranksieve.data.matrix import dense_columns
from ranksieve.data.queries import text_array
from ranksieve.formats.text_files import plain_file_errors, source_name
from ranksieve.preparation.missing import check_policy, fill_missing

DOC_ID, COMMENT = "doc_id", "comment"
NAMES_SHOWN = 20
PANDAS_INDEX = re.compile(r"__index_level_\d+__")  # the row labels of a frame, which are no feature


def from_frame(
    frame: Any,
    *,
    qid: str = "qid",
    label: str = "label",
    doc_id: str | None = None,
    features: Sequence[str] | None = None,
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
    missing : {"keep", "error", "zero", "query_min", "column_mean"}
        What becomes of null and NaN, see :func:`fill_missing`; rankers deal with NaN that is kept.
    """
    check_policy(missing)
    table = _narwhals_frame(frame)
    doc_id = doc_id or (DOC_ID if DOC_ID in table.columns else None)
    comment = COMMENT if table.schema.get(COMMENT) == _extra("narwhals").String else None
    special = [name for name in (qid, label, doc_id, comment) if name is not None]
    names = [name for name in table.columns if name not in special] if features is None else list(features)
    _check_columns(table, [*special, *names])
    dataset = Dataset(
        _matrix(table, names),
        _labels(table[label]),
        _ids(table[qid]),
        names,
        None if doc_id is None else _ids(table[doc_id]).tolist(),
        comments=None if comment is None else table[comment].fill_null("").to_list(),
    )
    return fill_missing(dataset, missing)


def read_parquet(
    path: PathLike,
    *,
    qid: str = "qid",
    label: str = "label",
    doc_id: str | None = None,
    missing: str = "keep",
) -> Dataset:
    """Read a parquet file with one row per document; the columns are those of :func:`from_frame`."""
    parquet, arrow = _extra("pyarrow.parquet"), _extra("pyarrow")
    name = source_name(path)
    with plain_file_errors(path), open(path, "rb") as file:
        try:
            table = parquet.ParquetFile(file).read()
        except arrow.ArrowException as error:
            reason = str(error).splitlines()[0].rstrip(".")
            raise ValueError(f"{name}: is not a sound parquet file ({reason})") from None
    try:
        table = table.drop_columns([name for name in table.column_names if PANDAS_INDEX.fullmatch(name)])
        dataset = from_frame(table, qid=qid, label=label, doc_id=doc_id, missing=missing)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    dataset.source = name
    return dataset


def write_parquet(dataset: Dataset, path: PathLike) -> None:
    """Write the columns of :func:`to_frame`; the file appears whole or not at all."""
    parquet, table = _extra("pyarrow.parquet"), _arrow_table(dataset)
    with atomic_write(path, "wb") as file:
        parquet.write_table(table, file)


def to_frame(dataset: Dataset, kind: str = "pandas") -> Any:
    """A pandas, polars or arrow table; :func:`from_frame` gives the data set back.

    Columns are ``label``, ``qid``, ``doc_id`` and ``comment`` (if any) and the features. A missing value is
    null.
    """
    if kind not in FRAMES:
        raise ValueError(f"kind={kind!r} is unknown; choose one of {', '.join(FRAMES)}")
    return FRAMES[kind](_arrow_table(dataset))


FRAMES: dict[str, Callable[[Any], Any]] = {
    "pandas": lambda table: table.to_pandas(),
    "polars": lambda table: _extra("polars").from_arrow(table),
    "arrow": lambda table: table,
}


def _arrow_table(dataset: Dataset) -> Any:
    arrow = _extra("pyarrow")
    columns: dict[str, Any] = {"label": dataset.y, "qid": _storable_ids(dataset.qid)}
    if dataset.doc_ids is not None:
        columns[DOC_ID] = _storable_names(dataset.doc_ids)
    if dataset.comments is not None:
        columns[COMMENT] = [str(comment) for comment in dataset.comments]
    taken = sorted(columns.keys() & set(dataset.feature_names))
    if taken:
        names = ", ".join(taken)
        raise ValueError(f"features cannot be called {names} in a frame or parquet file; rename them")
    for name, column in zip(dataset.feature_names, dense_columns(dataset.X, dataset.X.dtype), strict=True):
        columns[name] = arrow.array(column, from_pandas=True)
    return arrow.table(columns)


def _extra(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise ImportError(f"frames and parquet files need {package}: {how_to_install('frames')}") from None


def _narwhals_frame(frame: Any) -> Any:
    narwhals = _extra("narwhals")
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


def _matrix(table: Any, names: list[str]) -> AnyArray:
    """The feature columns side by side; float32 if all of them are."""
    narwhals = _extra("narwhals")
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
    return bool(kind.is_numeric()) or kind == _extra("narwhals").Boolean


def _floats(column: Any) -> FloatArray:
    """Numbers as float64, null as NaN."""
    return np.asarray(column.cast(_extra("narwhals").Float64).to_numpy(), dtype=np.float64)


def _labels(column: Any) -> FloatArray:
    if not _is_number(column.dtype):
        raise ValueError(f"the label column {column.name!r} holds {column.dtype}; labels must be numbers")
    return _floats(column)


def _ids(column: Any) -> AnyArray:
    """Ids as int64, float64 or str where possible."""
    narwhals = _extra("narwhals")
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
