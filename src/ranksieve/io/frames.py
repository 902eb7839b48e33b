"""Data frames and parquet files, and the roles of their columns: query ids, labels, features, texts."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from difflib import get_close_matches
from importlib import import_module
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ranksieve._types import AnyArray, FloatArray, PathLike
from ranksieve._util.files import atomic_write
from ranksieve.data.dataset import Dataset
from ranksieve.data.features import WILDCARDS, dense_columns, matching
from ranksieve.data.matrix import is_streamed
from ranksieve.data.queries import text_array
from ranksieve.errors import DataError, ParameterError, how_to_install
from ranksieve.io.tables import JUDGEMENT_COLUMNS
from ranksieve.io.text_files import check_parquet_size, in_file, plain_file_errors, source_name
from ranksieve.prepare.missing import check_policy, fill_missing

DOC_ID, COMMENT, DOCUMENT_WEIGHT = "doc_id", "comment", "document_weight"
MAX_SHOWN_COLUMNS = 20
MAX_SIMILAR_NAMES = 3
USUAL_NAMES = {
    "qid": JUDGEMENT_COLUMNS["query"],
    "label": JUDGEMENT_COLUMNS["grade"],
    "doc_id": JUDGEMENT_COLUMNS["document"],
}


@dataclass(frozen=True)
class ColumnChoice:
    """The columns that the user chose; ``features`` and ``ignore`` are names or shell patterns.

    By default all other columns except texts are features, the column ``doc_id``, if any, has the document
    ids, and the column ``document_weight``, if any, the document weights.
    """

    qid: str = "qid"
    label: str = "label"
    doc_id: str | None = None
    features: str | Sequence[str] | None = None
    ignore: str | Sequence[str] = ()
    document_weight: str | None = None


COLUMN_OPTIONS = tuple(field.name for field in fields(ColumnChoice))


class TableColumns(NamedTuple):
    """Column names of a table by role; document ids, comments, texts and weights are optional."""

    qid: str
    label: str
    doc_id: str | None
    comment: str | None
    features: list[str]
    texts: list[str]
    document_weight: str | None = None

    def all(self) -> list[str]:
        names = (self.qid, self.label, self.doc_id, self.comment, self.document_weight)
        return [*(name for name in names if name is not None), *self.texts, *self.features]


def columns_of(frame: Any, choice: ColumnChoice) -> tuple[TableColumns, Any]:
    """The role of each column, and the table as a narwhals frame.

    Text columns that are neither ignored nor requested as features are texts.
    """
    table = as_table(frame)
    present = list(table.columns)
    ignored = set(columns_matching(choice.ignore, present, "ignore"))
    doc_id, weight = (
        chosen or (usual if usual in present and usual not in ignored else None)
        for chosen, usual in ((choice.doc_id, DOC_ID), (choice.document_weight, DOCUMENT_WEIGHT))
    )
    comment = COMMENT if is_text(table.schema.get(COMMENT)) and COMMENT not in ignored else None
    by_role = {"qid": choice.qid, "label": choice.label, "doc_id": doc_id, "document_weight": weight}
    for argument, name in by_role.items():
        _check_column(name, argument, present)
    special = [name for name in (*by_role.values(), comment) if name is not None]
    rest = [name for name in present if name not in special and name not in ignored]
    texts = [name for name in rest if _holds_text(table, name)]
    if choice.features is None:
        features = [name for name in rest if name not in texts]
    else:
        features = _chosen_features(choice.features, present, special, ignored)
        texts = [name for name in texts if name not in features]
    return TableColumns(choice.qid, choice.label, doc_id, comment, features, texts, weight), table


def _chosen_features(
    patterns: str | Sequence[str], present: Sequence[str], special: Sequence[str], ignored: set[str]
) -> list[str]:
    """Columns requested by name, and those that match a pattern and have no other role."""
    requested = [patterns] if isinstance(patterns, str) else list(patterns)
    matches = columns_matching(requested, present, "features")
    features = [
        name for name in matches if name not in ignored and (name in requested or name not in special)
    ]
    if not features:
        reason = (
            f"`features={', '.join(requested)!r}` selects no feature: all matching columns are ignored, ids "
            "or labels"
        )
        raise DataError(None, None, reason)
    return features


def columns_matching(patterns: str | Sequence[str], names: Sequence[str], argument: str) -> list[str]:
    """Names that match one of the shell patterns, in the order of the patterns, then of the names.

    A name always matches itself, even if it contains wildcards. A pattern without a match is an error.
    """
    matches: dict[str, None] = {}
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        matched = [pattern] if pattern in names else matching(pattern, names)
        if not matched:
            similar = get_close_matches(
                pattern.strip(WILDCARDS + "]"), names, n=MAX_SIMILAR_NAMES, cutoff=0.3
            )
            hint = f"similar: {', '.join(similar)}" if similar else f"the columns are {_list_names(names)}"
            raise DataError(None, None, f"no column matches `{argument}={pattern!r}`; {hint}")
        matches |= dict.fromkeys(matched)
    return list(matches)


def _check_column(name: str | None, argument: str, present: Sequence[str]) -> None:
    if name is None or name in present:
        return
    usual = [one for one in present if one.lower() in USUAL_NAMES.get(argument, ())]
    similar = usual or get_close_matches(name, present, n=1, cutoff=0.5)
    hint = f"did you mean `{argument}={similar[0]!r}`?" if similar else f"give its name with `{argument}`"
    raise DataError(None, None, f"no column {name!r}; the columns are {_list_names(present)}; {hint}")


def _list_names(names: Sequence[str]) -> str:
    return ", ".join(names[:MAX_SHOWN_COLUMNS]) + (", …" if len(names) > MAX_SHOWN_COLUMNS else "")


# --- Values ------------------------------------------------------------------------------------------------


def features_of(table: Any, names: list[str]) -> AnyArray:
    """The feature columns as a matrix; float32 if all of them are, else float64."""
    narwhals = import_extra("narwhals")
    kinds = {name: table.schema[name] for name in names}
    not_numbers = [
        f"{name} ({kind})"
        for name, kind in kinds.items()
        if not _is_number(kind) and (_holds_text(table, name) or table[name].null_count() < len(table))
    ]
    if not_numbers:
        reason = (
            f"features must be numbers, but these columns are not: "
            f"{', '.join(not_numbers[:MAX_SHOWN_COLUMNS])}; leave them out with `ignore`"
        )
        raise DataError(None, None, reason)
    single = bool(kinds) and all(kind == narwhals.Float32 for kind in kinds.values())
    X = np.empty((len(table), len(names)), dtype=np.float32 if single else np.float64)
    for j, name in enumerate(names):
        X[:, j] = _floats(table[name]) if _is_number(kinds[name]) else np.nan  # all missing
    return X


def is_text(kind: Any) -> bool:
    """Return True for the types of text columns."""
    narwhals = import_extra("narwhals")
    return kind in (narwhals.String, narwhals.Categorical, narwhals.Enum)


def _holds_text(table: Any, name: str) -> bool:
    """Return True for text; not for a pandas object column whose values are all missing."""
    if not is_text(table.schema[name]):
        return False
    objects = str(getattr(table[name].to_native(), "dtype", "")) == "object"
    return not (objects and table[name].null_count() == len(table))


def texts_of(column: Any) -> list[str]:
    """Values as strings; null becomes an empty string."""
    narwhals = import_extra("narwhals")
    return column.cast(narwhals.String).fill_null("").to_list()  # type: ignore[no-any-return]


def _is_number(kind: Any) -> bool:
    return bool(kind.is_numeric()) or kind == import_extra("narwhals").Boolean


def _floats(column: Any) -> FloatArray:
    """Numbers as float64; null becomes NaN."""
    if column.dtype.is_integer():  # NumPy rounds integers beyond 2^53, arrow raises an error
        nulls = np.asarray(column.is_null().to_numpy(), dtype=bool)
        return np.where(nulls, np.nan, np.asarray(column.fill_null(0).to_numpy(), dtype=np.float64))
    return np.asarray(column.cast(import_extra("narwhals").Float64).to_numpy(), dtype=np.float64)


def numbers_of(column: Any, what: str) -> FloatArray:
    """Labels or weights as float64."""
    if not _is_number(column.dtype):
        reason = f"the {what} column {column.name!r} has type {column.dtype}; {what}s must be numbers"
        raise DataError(None, None, reason)
    return _floats(column)


def weights_of(table: Any, columns: TableColumns) -> FloatArray | None:
    """The document weights, or None without such a column."""
    name = columns.document_weight
    return None if name is None else numbers_of(table[name], "document weight")


def ids_of(column: Any) -> AnyArray:
    """Ids as int64, float64 or str if possible, else as objects."""
    narwhals = import_extra("narwhals")
    if column.dtype in (narwhals.Categorical, narwhals.Enum):
        column = column.cast(narwhals.String)
    unknown = column.dtype == narwhals.Unknown and column.null_count() < len(column)
    if column.dtype.is_nested() or unknown:
        raise DataError(
            None, None, f"the column {column.name!r} has type {column.dtype}; ids must be numbers or text"
        )
    if column.null_count() > 0:
        nulls = column.is_null().to_list()
        ids = [None if null else one for one, null in zip(column.to_list(), nulls, strict=True)]
        return np.array(ids, dtype=object)
    return text_array(column.to_list()) if column.dtype == narwhals.String else np.asarray(column.to_numpy())


def _decode_categories(column: Any) -> Any:
    """A categorical column as a column of its values; polars categories are always text."""
    narwhals, native = import_extra("narwhals"), column.to_native()
    if narwhals.dependencies.is_pyarrow_chunked_array(native):
        native = native.cast(native.type.value_type)
    elif narwhals.dependencies.is_pandas_like_series(native):
        native = native.astype(_dtype_of_values(native))
    return narwhals.from_native(native, series_only=True)


def _dtype_of_values(column: Any) -> Any:
    """The dtype of a column with the values of a categorical pandas column."""
    kind = column.dtype
    if hasattr(kind, "pyarrow_dtype"):
        return type(kind)(kind.pyarrow_dtype.value_type)
    values = kind.categories.dtype
    without_null = isinstance(values, np.dtype) and values.kind in "iub"
    return np.dtype(np.float64) if without_null and column.isna().any() else values


# --- Packages ----------------------------------------------------------------------------------------------


def import_extra(module: str) -> Any:
    """Import a module of an optional package; the error shows how to install it."""
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise ImportError(
            f"data frames, parquet and CSV need {package}: {how_to_install('frames')}"
        ) from None


def as_table(frame: Any) -> Any:
    """A narwhals frame of a table in memory; categorical columns become columns of their values."""
    narwhals = import_extra("narwhals")
    if hasattr(frame, "set_axis") and not all(isinstance(label, str) for label in frame.columns):
        frame = frame.set_axis(
            [str(label) for label in frame.columns], axis=1
        )  # pandas allows labels of any type
    try:
        table = narwhals.from_native(frame, eager_only=True)
    except narwhals.exceptions.DuplicateError:
        names = Counter(getattr(frame, "column_names", frame.columns))
        raise DataError(
            None, None, f"two columns are called {names.most_common(1)[0][0]!r}; rename one of them"
        ) from None
    except TypeError:
        reason = "must be a pandas, polars or arrow table in memory (collect a lazy one first)"
        raise ParameterError("frame", type(frame).__name__, reason) from None
    categorical = [name for name, kind in table.schema.items() if kind == narwhals.Categorical]
    return table.with_columns(**{name: _decode_categories(table[name]) for name in categorical})


CELLS_PER_TABLE = 2**22  # for features on disk
NOT_UTF8 = "contains text that is not UTF-8; write the file again"
PANDAS_INDEX = re.compile(r"__index_level_\d+__")  # the index of a pandas frame, not a feature


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
    """Make a data set from a pandas, polars or arrow table.

    Other text columns become ``texts`` of the data set, except ``comment``, which becomes its ``comments``.
    Column names that are not strings are converted: the pandas column 0 is called "0".

    Parameters
    ----------
    frame : DataFrame or Table
        One row per document.
    qid, label : str
        Columns of query ids and relevance labels.
    doc_id : str, optional
        Column of document ids; default: ``doc_id`` if there is one.
    features : str or sequence of str, optional
        Feature columns, as names or shell patterns (``"bm25_*"``); default: all others except text.
    ignore : str or sequence of str
        Columns to leave out, as names or shell patterns.
    document_weight : str, optional
        Column of document weights in losses; default: ``document_weight`` if there is one.
    missing : {"keep", "error", "zero", "query_min", "column_mean"}
        Treatment of null and NaN, see :func:`fill_missing`; rankers handle NaN that is kept.
    """
    check_policy(missing)
    document, weight = (None if name is None else str(name) for name in (doc_id, document_weight))
    choice = ColumnChoice(str(qid), str(label), document, _as_text(features), _as_text(ignore), weight)
    columns, table = columns_of(frame, choice)
    dataset = Dataset(
        features_of(table, columns.features),
        numbers_of(table[columns.label], "label"),
        ids_of(table[columns.qid]),
        columns.features,
        None if columns.doc_id is None else ids_of(table[columns.doc_id]).tolist(),
        comments=None if columns.comment is None else texts_of(table[columns.comment]),
        texts={name: texts_of(table[name]) for name in columns.texts},
        document_weight=weights_of(table, columns),
    )
    return fill_missing(dataset, missing)


def _as_text(names: Any) -> Any:
    return names if names is None or isinstance(names, str) else [str(name) for name in names]


def read_parquet(path: PathLike, *, missing: str = "keep", **columns: Any) -> Dataset:
    """Read a parquet file with one row per document; parameters as in :func:`from_frame`."""
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
    """An arrow table without the index columns that pandas may have written."""
    columns = [k for k, name in enumerate(table.column_names) if not PANDAS_INDEX.fullmatch(name)]
    return table.select(columns)


@contextmanager
def open_parquet(path: PathLike) -> Iterator[Any]:
    """Open a parquet file; arrow's errors become a :class:`DataError`."""
    parquet, arrow = import_extra("pyarrow.parquet"), import_extra("pyarrow")
    with plain_file_errors(path), open(path, "rb") as file:
        try:
            opened = parquet.ParquetFile(file)
            metadata, n_bytes = opened.metadata, os.fstat(file.fileno()).st_size
            check_parquet_size(metadata.num_rows, metadata.num_columns, n_bytes, source_name(path))
            yield opened
        except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            reason = str(error).splitlines()[0].rstrip(".")
            raise DataError(source_name(path), None, f"is not a valid parquet file ({reason})") from None


def write_parquet(dataset: Dataset, path: PathLike) -> None:
    """Write the columns of :func:`to_frame`; the file is written atomically.

    Features on disk are read and written some rows at a time.
    """
    parquet, tables = import_extra("pyarrow.parquet"), arrow_tables(dataset)
    first = next(tables)
    with atomic_write(path, "wb") as file, parquet.ParquetWriter(file, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table)


def to_frame(dataset: Dataset, kind: str = "pandas") -> Any:
    """Convert to a pandas, polars or arrow table; :func:`from_frame` is the inverse.

    The columns are ``label``, ``qid``, ``doc_id``, ``comment`` and ``document_weight`` (if any), the texts
    and the features. A missing value is null.
    """
    if kind not in FRAMES:
        raise ParameterError("kind", kind, f"must be one of {', '.join(FRAMES)}")
    return FRAMES[kind](_arrow_table(dataset))


FRAMES: dict[str, Callable[[Any], Any]] = {
    "pandas": lambda table: table.to_pandas(),
    "polars": lambda table: import_extra("polars").from_arrow(table),
    "arrow": lambda table: table,
}


def arrow_tables(dataset: Dataset) -> Iterator[Any]:
    """One table of the whole data set, or several tables of some rows each if its features are on disk."""
    if not is_streamed(dataset.X):
        yield _arrow_table(dataset)
        return
    step = max(1, CELLS_PER_TABLE // dataset.n_features)
    for start in range(0, dataset.n_docs, step):
        yield _arrow_table(dataset.select_rows(np.arange(start, min(start + step, dataset.n_docs))))


def _arrow_table(dataset: Dataset) -> Any:
    arrow = import_extra("pyarrow")
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
            None, None, f"{what} must not be called {', '.join(clashes)}, as other columns are; rename them"
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
    """Document ids: unchanged if all of them are integers, else as text; None stays None."""
    if all(isinstance(name, int | np.integer) or name is None for name in names):
        return list(names)
    return [None if name is None else str(name) for name in names]
