"""Features, labels, weights and names as data sets hold them, from what users give."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ranksieve._types import AnyArray, BoolArray, FloatArray, IntArray, Matrix
from ranksieve.data.matrix import FLOATS, as_csr, dlpack_matrix, is_sparse, is_streamed
from ranksieve.errors import DataError, ParameterError

HALF_CHARACTER = re.compile(r"[\ud800-\udfff]")  # which no file in UTF-8 can hold
NUMBERED = re.compile(r"f[1-9]\d*")  # what features without a name are called
# Numbers to learn from are 0 or within these ends: so squares of squares, and sums and products of them, are
# ordinary numbers, and single precision, in which LightGBM keeps weights, holds the numbers themselves.
LEAST, LARGEST = 1e-30, 1e30
ENDS = f"from {LEAST:g} to {LARGEST:g}"


def as_matrix(X: Any) -> tuple[Matrix, list[str] | None]:
    """A dense float32/float64 or CSR matrix, and the column names if ``X`` is a frame."""
    names = None
    if is_sparse(X):
        return as_csr(X), None
    if is_streamed(X):
        return X, None
    if (elsewhere := dlpack_matrix(X)) is not None:
        return elsewhere, None
    if is_frame(X):
        X, names = _frame_values(X)
    matrix = np.asanyarray(X)
    check_shape(matrix)
    return matrix if matrix.dtype in FLOATS else _as_float(matrix), names


def check_shape(X: Any) -> None:
    """Refuse features that are no matrix, or an empty one."""
    shape = tuple(X.shape)
    if len(shape) != 2:
        raise ParameterError("X", X, f"must be two-dimensional (documents × features), got shape {shape}")
    if 0 in shape:
        reason = f"there are {shape[0]} documents and {shape[1]} features; each must be at least 1"
        raise DataError(None, None, reason)


def as_labels(y: Any, n_rows: int, first: int = 0) -> FloatArray:
    """Labels as finite float64, one per row; ``first`` is the number of the first row."""
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ParameterError("y", labels, f"must hold one label per row, got shape {labels.shape}")
    check_length("y", labels, n_rows)
    try:
        labels = labels.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError("y", labels, f"labels must be numbers, got {labels.dtype}: {error}") from None
    bad = ~np.isfinite(labels)
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(
            None, None, f"the label of row {first + row} is {labels[row]}; labels must be finite numbers"
        )
    return labels


def as_document_weight(weight: Any, n_rows: int, first: int = 0) -> FloatArray | None:
    """Weights as float64, one per row, or None; ``first`` is the number of the first row."""
    if weight is None:
        return None
    weights = np.asarray(weight, dtype=np.float64)
    if weights.ndim != 1:
        raise ParameterError(
            "document_weight", weights, f"must hold one weight per row, got shape {weights.shape}"
        )
    check_length("document_weight", weights, n_rows)
    if (extreme := beyond(weights)).any():
        row = int(np.argmax(extreme))
        reason = f"the document weight of row {first + row} is {weights[row]}; weights must be 0 or {ENDS}"
        raise DataError(None, None, reason)
    return weights


def is_frame(X: Any) -> bool:
    """Whether X is a pandas, polars or arrow table."""
    return not isinstance(X, np.ndarray) and hasattr(X, "columns")


def frame_names(frame: Any) -> tuple[str, ...]:
    """The names of the columns of a table as text, which they need not be in pandas; no two are the same."""
    labels = _labels(frame)
    return checked_names([str(label) for label in labels], len(labels))


def frame_columns(frame: Any, columns: Sequence[int] | IntArray) -> FloatArray:
    """Some columns of a table, by their numbers, as float64."""
    names = frame_names(frame)
    found = [_frame_column(_column(frame, int(j)), names[j]) for j in columns]
    return np.column_stack(found) if found else np.empty((len(frame), 0))


def refuse_text(frame: Any) -> None:
    """Refuse a table with a column of text, which is not a feature even if it holds digits."""
    for j, label in enumerate(_labels(frame)):
        if _is_text(np.asarray(_column(frame, j))):
            _frame_column(_column(frame, j), str(label))


def _frame_values(frame: Any) -> tuple[AnyArray, list[str]]:
    """Values and column names of a pandas, polars or arrow table."""
    names = frame_names(frame)
    values = frame.to_numpy() if hasattr(frame, "to_numpy") else None
    if values is None or values.dtype.kind not in "fiub":
        values = frame_columns(frame, range(len(names)))
    return values, list(names)


def _labels(frame: Any) -> list[Any]:
    """The names of the columns as the table has them; arrow alone calls them so."""
    return list(getattr(frame, "column_names", frame.columns))


def _column(frame: Any, j: int) -> Any:
    return frame.iloc[:, j] if hasattr(frame, "iloc") else frame[_labels(frame)[j]]


def _frame_column(column: Any, name: str) -> FloatArray:
    values = np.asarray(column)
    try:
        if _is_text(values) or values.dtype.kind not in "fiubO":
            raise TypeError
        return np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        kind = getattr(column, "dtype", getattr(column, "type", values.dtype))
        reason = (
            f"column {name!r} holds {kind} values; features must be numbers: leave the column out, or "
            "convert it if it holds numbers as text"
        )
        raise DataError(None, None, reason) from None


def _is_text(values: AnyArray) -> bool:
    return values.dtype.kind in "OUT" and any(isinstance(value, str) for value in values)


def _as_float(matrix: AnyArray) -> FloatArray:
    try:
        return matrix.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError("X", matrix, f"features must be numbers, got {matrix.dtype}: {error}") from None


def check_length(name: str, values: Any, expected: int) -> None:
    if len(values) != expected:
        raise ParameterError(name, values, f"has {len(values)} entries, but X has {expected} rows")


def numbered_names(n_features: int) -> tuple[str, ...]:
    """f1, f2, …: the names of columns that have none of their own, as in LETOR text."""
    return tuple(f"f{j + 1}" for j in range(n_features))


def names_advice(names: Sequence[str], wanted: Iterable[str]) -> str:
    """How to give data whose features have numbers only the names that are wanted, to end a sentence with."""
    numbered = tuple(names) == numbered_names(len(names))
    if not numbered or all(NUMBERED.fullmatch(name) for name in wanted):
        return ""
    return "; the features of the data have numbers for names: read the data with `names`, a file of names"


def checked_names(names: Sequence[str] | None, n_features: int) -> tuple[str, ...]:
    if names is None:
        return numbered_names(n_features)
    names = tuple(str(name) for name in names)
    if len(names) != n_features:
        raise ParameterError("feature_names", names, f"has {len(names)} names for {n_features} features")
    if duplicates := sorted(name for name, count in Counter(names).items() if count > 1):
        raise ParameterError(
            "feature_names", names, f"must be distinct, but these occur more than once: {duplicates}"
        )
    if half := HALF_CHARACTER.search("".join(names)):
        raise ParameterError(
            "feature_names", names, f"one holds {half[0]!a}, which is half of a character; rename it"
        )
    return names


def beyond(sizes: FloatArray) -> BoolArray:
    """Which sizes are neither 0 nor between the ends."""
    return np.asarray((sizes != 0) & ~((sizes >= LEAST) & (sizes <= LARGEST)))


def check_features(spread: FloatArray, largest: FloatArray, names: Sequence[str] | None = None) -> None:
    """Refuse a feature that is too large, or varies too little; ``spread`` is max − min within a query."""
    if (largest > LARGEST).any():
        j = int(np.argmax(largest))
        reason = (
            f"{_called(j, names)} has values as large as {largest[j]:.3g}; rankers learn from features up to "
            f"{LARGEST:g}: divide it by a power of ten"
        )
        raise DataError(None, None, reason)
    if (little := np.flatnonzero((spread > 0) & (spread < LEAST))).size:
        j = int(little[0])
        reason = (
            f"{_called(j, names)} varies by {spread[j]:.3g} within a query; rankers learn from features that "
            f"vary by 0 or at least {LEAST:g}: multiply it by a power of ten, or leave it out"
        )
        raise DataError(None, None, reason)


def check_labels(extremes: FloatArray) -> None:
    """Refuse labels that are too large to learn from; given are those of both ends."""
    largest = float(extremes[np.argmax(np.abs(extremes))])
    if abs(largest) > LARGEST:
        reason = f"a label is {largest:g}; labels must be from {-LARGEST:g} to {LARGEST:g} to learn from them"
        raise DataError(None, None, reason)


def _called(j: int, names: Sequence[str] | None) -> str:
    return f"the feature in column {j}" if names is None else f"feature {names[j]}"
