"""Tables in memory and parquet files: which columns hold query ids, labels, features and texts."""

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
from ranksieve.data.features import WILD, dense_columns, matching
from ranksieve.data.matrix import is_streamed
from ranksieve.data.queries import text_array
from ranksieve.errors import DataError, ParameterError, how_to_install
from ranksieve.io.tables import COLUMNS
from ranksieve.io.text_files import check_announced, in_file, plain_file_errors, source_name
from ranksieve.prepare.missing import check_policy, fill_missing

DOC_ID, COMMENT, DOCUMENT_WEIGHT = "doc_id", "comment", "document_weight"
NAMES_SHOWN = 20
NEAREST_SHOWN = 3
USUAL_NAMES = {"qid": COLUMNS["query"], "label": COLUMNS["grade"], "doc_id": COLUMNS["document"]}


@dataclass(frozen=True)
class ColumnChoice:
    """Which columns a user wants; ``features`` and ``ignore`` are names or shell patterns.

    Without ``features`` all numbers are features; without ``doc_id`` the column ``doc_id``, if any, holds the
    document ids, and likewise ``document_weight`` the weights of documents.
    """

    qid: str = "qid"
    label: str = "label"
    doc_id: str | None = None
    features: str | Sequence[str] | None = None
    ignore: str | Sequence[str] = ()
    document_weight: str | None = None


COLUMN_OPTIONS = tuple(field.name for field in fields(ColumnChoice))


class Columns(NamedTuple):
    """The names of the columns of a table; document ids, comments, texts and weights may be absent."""

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


def columns_of(frame: Any, choice: ColumnChoice) -> tuple[Columns, Any]:
    """Which columns hold what, and the table as narwhals shows it.

    Columns of text that are neither asked for as features nor ignored are texts.
    """
    table = as_table(frame)
    present = list(table.columns)
    ignored = set(columns_matching(choice.ignore, present, "ignore"))
    doc_id, weight = (
        chosen or (usual if usual in present and usual not in ignored else None)
        for chosen, usual in ((choice.doc_id, DOC_ID), (choice.document_weight, DOCUMENT_WEIGHT))
    )
    comment = COMMENT if is_text(table.schema.get(COMMENT)) and COMMENT not in ignored else None
    named = {"qid": choice.qid, "label": choice.label, "doc_id": doc_id, "document_weight": weight}
    for argument, name in named.items():
        _check_column(name, argument, present)
    special = [name for name in (*named.values(), comment) if name is not None]
    rest = [name for name in present if name not in special and name not in ignored]
    texts = [name for name in rest if _holds_text(table, name)]
    if choice.features is None:
        features = [name for name in rest if name not in texts]
    else:
        features = _chosen_features(choice.features, present, special, ignored)
        texts = [name for name in texts if name not in features]
    return Columns(choice.qid, choice.label, doc_id, comment, features, texts, weight), table


def _chosen_features(
    patterns: str | Sequence[str], present: Sequence[str], special: Sequence[str], ignored: set[str]
) -> list[str]:
    """The columns that are asked for by name, and those of patterns that are not something else."""
    asked = [patterns] if isinstance(patterns, str) else list(patterns)
    found = columns_matching(asked, present, "features")
    features = [name for name in found if name not in ignored and (name in asked or name not in special)]
    if not features:
        reason = (
            f"`features={', '.join(asked)!r}` leaves no column: the matching ones are ignored, ids or labels"
        )
        raise DataError(None, None, reason)
    return features


def columns_matching(patterns: str | Sequence[str], names: Sequence[str], argument: str) -> list[str]:
    """The names that one of the shell patterns matches, in the order of the patterns, then of the names.

    A name matches itself, whatever it holds. A pattern that matches nothing is refused.
    """
    found: dict[str, None] = {}
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        some = [pattern] if pattern in names else matching(pattern, names)
        if not some:
            near = get_close_matches(pattern.strip(WILD + "]"), names, n=NEAREST_SHOWN, cutoff=0.3)
            hint = f"the nearest are {', '.join(near)}" if near else f"there are {_listed(names)}"
            raise DataError(None, None, f"no column matches `{argument}={pattern!r}`; {hint}")
        found |= dict.fromkeys(some)
    return list(found)


def _check_column(name: str | None, argument: str, present: Sequence[str]) -> None:
    if name is None or name in present:
        return
    usual = [one for one in present if one.lower() in USUAL_NAMES.get(argument, ())]
    near = usual or get_close_matches(name, present, n=1, cutoff=0.5)
    hint = f"did you mean `{argument}={near[0]!r}`?" if near else f"name it with `{argument}`"
    raise DataError(None, None, f"there is no column {name!r} among {_listed(present)}; {hint}")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMES_SHOWN]) + (", …" if len(names) > NAMES_SHOWN else "")


# --- Values ------------------------------------------------------------------------------------------------


def features_of(table: Any, names: list[str]) -> AnyArray:
    """The feature columns side by side; float32 if all of them are."""
    narwhals = extra("narwhals")
    kinds = {name: table.schema[name] for name in names}
    words = [
        f"{name} ({kind})"
        for name, kind in kinds.items()
        if not _is_number(kind) and (_holds_text(table, name) or table[name].null_count() < len(table))
    ]
    if words:
        reason = (
            f"features must be numbers, but these columns are not: {', '.join(words[:NAMES_SHOWN])}; leave "
            "them out with `ignore`"
        )
        raise DataError(None, None, reason)
    single = bool(kinds) and all(kind == narwhals.Float32 for kind in kinds.values())
    X = np.empty((len(table), len(names)), dtype=np.float32 if single else np.float64)
    for j, name in enumerate(names):
        X[:, j] = _floats(table[name]) if _is_number(kinds[name]) else np.nan  # nothing but gaps
    return X


def is_text(kind: Any) -> bool:
    """Whether a column of this type holds strings."""
    narwhals = extra("narwhals")
    return kind in (narwhals.String, narwhals.Categorical, narwhals.Enum)


def _holds_text(table: Any, name: str) -> bool:
    """Whether a column is text; one of pandas objects that are all missing could hold anything."""
    if not is_text(table.schema[name]):
        return False
    objects = str(getattr(table[name].to_native(), "dtype", "")) == "object"
    return not (objects and table[name].null_count() == len(table))


def texts_of(column: Any) -> list[str]:
    """Strings; null is empty."""
    narwhals = extra("narwhals")
    return column.cast(narwhals.String).fill_null("").to_list()  # type: ignore[no-any-return]


def _is_number(kind: Any) -> bool:
    return bool(kind.is_numeric()) or kind == extra("narwhals").Boolean


def _floats(column: Any) -> FloatArray:
    """Numbers as float64, null as NaN."""
    if column.dtype.is_integer():  # those beyond 2^53 are rounded, which arrow refuses to do
        gaps = np.asarray(column.is_null().to_numpy(), dtype=bool)
        return np.where(gaps, np.nan, np.asarray(column.fill_null(0).to_numpy(), dtype=np.float64))
    return np.asarray(column.cast(extra("narwhals").Float64).to_numpy(), dtype=np.float64)


def numbers_of(column: Any, what: str) -> FloatArray:
    """Labels or weights as float64."""
    if not _is_number(column.dtype):
        reason = f"the {what} column {column.name!r} holds {column.dtype}; {what}s must be numbers"
        raise DataError(None, None, reason)
    return _floats(column)


def weights_of(table: Any, columns: Columns) -> FloatArray | None:
    """The weights of documents, if there is a column of them."""
    name = columns.document_weight
    return None if name is None else numbers_of(table[name], "document weight")


def ids_of(column: Any) -> AnyArray:
    """Ids as int64, float64 or str where possible."""
    narwhals = extra("narwhals")
    if column.dtype in (narwhals.Categorical, narwhals.Enum):
        column = column.cast(narwhals.String)
    unknown = column.dtype == narwhals.Unknown and column.null_count() < len(column)
    if column.dtype.is_nested() or unknown:
        raise DataError(
            None, None, f"the column {column.name!r} holds {column.dtype}; ids must be numbers or text"
        )
    if column.null_count() > 0:
        nulls = column.is_null().to_list()
        ids = [None if null else one for one, null in zip(column.to_list(), nulls, strict=True)]
        return np.array(ids, dtype=object)
    return text_array(column.to_list()) if column.dtype == narwhals.String else np.asarray(column.to_numpy())


def _decoded(column: Any) -> Any:
    """A column of categories as a column of their values; those of polars are always text."""
    narwhals, native = extra("narwhals"), column.to_native()
    if narwhals.dependencies.is_pyarrow_chunked_array(native):
        native = native.cast(native.type.value_type)
    elif narwhals.dependencies.is_pandas_like_series(native):
        native = native.astype(_kind_of_values(native))
    return narwhals.from_native(native, series_only=True)


def _kind_of_values(column: Any) -> Any:
    """The type that the values of a pandas column of categories have in a column of their own."""
    kind = column.dtype
    if hasattr(kind, "pyarrow_dtype"):
        return type(kind)(kind.pyarrow_dtype.value_type)
    values = kind.categories.dtype
    has_no_gaps = isinstance(values, np.dtype) and values.kind in "iub"
    return np.dtype(np.float64) if has_no_gaps and column.isna().any() else values


# --- Packages ----------------------------------------------------------------------------------------------


def extra(module: str) -> Any:
    """A module of another package, or a word on how to get it."""
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise ImportError(f"frames and files of columns need {package}: {how_to_install('frames')}") from None


def as_table(frame: Any) -> Any:
    """A table in memory as narwhals shows it; a column of categories is one of their values."""
    narwhals = extra("narwhals")
    if hasattr(frame, "set_axis") and not all(isinstance(label, str) for label in frame.columns):
        frame = frame.set_axis(
            [str(label) for label in frame.columns], axis=1
        )  # pandas has labels of any kind
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
    coded = [name for name, kind in table.schema.items() if kind == narwhals.Categorical]
    return table.with_columns(**{name: _decoded(table[name]) for name in coded})


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
    step = max(1, CELLS_AT_ONCE // dataset.n_features)
    for start in range(0, dataset.n_docs, step):
        yield _arrow_table(dataset.select_rows(np.arange(start, min(start + step, dataset.n_docs))))


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
