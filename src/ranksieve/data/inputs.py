"""Validation and conversion of features, labels, weights and names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ranksieve._types import AnyArray, BoolArray, FloatArray, IntArray, Matrix
from ranksieve.data.matrix import FLOATS, as_csr, dlpack_matrix, is_sparse, is_streamed
from ranksieve.errors import DataError, ParameterError

SURROGATE = re.compile(r"[\ud800-\udfff]")  # cannot be encoded as UTF-8
DEFAULT_NAME = re.compile(r"f[1-9]\d*")
# Absolute values in training data are 0 or within these bounds: fourth powers, sums and products are then
# normal float64 numbers, and the values themselves fit in float32, which LightGBM uses for weights.
MIN_MAGNITUDE, MAX_MAGNITUDE = 1e-30, 1e30
MAGNITUDES = f"from {MIN_MAGNITUDE:g} to {MAX_MAGNITUDE:g}"


def as_matrix(X: Any) -> tuple[Matrix, list[str] | None]:
    """Convert to a dense float32/float64 or CSR matrix; also returns the column names of a frame."""
    names = None
    if is_sparse(X):
        return as_csr(X), None
    if is_streamed(X):
        return X, None
    if (on_device := dlpack_matrix(X)) is not None:
        return on_device, None
    if is_frame(X):
        X, names = _frame_values(X)
    matrix = np.asanyarray(X)
    check_shape(matrix)
    return matrix if matrix.dtype in FLOATS else _as_float(matrix), names


def check_shape(X: Any) -> None:
    """Refuse features that are not a matrix, and an empty matrix."""
    shape = tuple(X.shape)
    if len(shape) != 2:
        raise ParameterError("X", X, f"must be two-dimensional (documents × features), got shape {shape}")
    if 0 in shape:
        reason = f"there are {shape[0]} documents and {shape[1]} features; each must be at least 1"
        raise DataError(None, None, reason)


def as_labels(y: Any, n_rows: int, first: int = 0) -> FloatArray:
    """Labels as finite float64, one per row. ``first``: index of the first row, for errors."""
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ParameterError("y", labels, f"must have one label per row, got shape {labels.shape}")
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
    """Weights as float64, one per row, or None. ``first``: index of the first row, for errors."""
    if weight is None:
        return None
    weights = np.asarray(weight, dtype=np.float64)
    if weights.ndim != 1:
        raise ParameterError(
            "document_weight", weights, f"must have one weight per row, got shape {weights.shape}"
        )
    check_length("document_weight", weights, n_rows)
    if (extreme := out_of_range(weights)).any():
        row = int(np.argmax(extreme))
        reason = (
            f"the document weight of row {first + row} is {weights[row]}; weights must be 0 or {MAGNITUDES}"
        )
        raise DataError(None, None, reason)
    return weights


def is_frame(X: Any) -> bool:
    """Whether X is a pandas, polars or arrow table."""
    return not isinstance(X, np.ndarray) and hasattr(X, "columns")


def frame_names(frame: Any) -> tuple[str, ...]:
    """Column names of a table as text (pandas allows other types); refuses duplicates."""
    labels = _labels(frame)
    return checked_names([str(label) for label in labels], len(labels))


def frame_columns(frame: Any, columns: Sequence[int] | IntArray) -> FloatArray:
    """Columns of a table, by index, as float64."""
    names = frame_names(frame)
    values = [_frame_column(_column(frame, int(j)), names[j]) for j in columns]
    return np.column_stack(values) if values else np.empty((len(frame), 0))


def refuse_text(frame: Any) -> None:
    """Refuse a table with a text column, even one that contains numbers as text."""
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
    """Column names as stored in the table: ``column_names`` in arrow, ``columns`` in pandas and polars."""
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
            f"column {name!r} has {kind} values, but features must be numbers; leave the column out, or "
            "convert it if it contains numbers as text"
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
    """f1, f2, …: the default names of columns, as for LETOR text."""
    return tuple(f"f{j + 1}" for j in range(n_features))


def names_advice(names: Sequence[str], wanted: Iterable[str]) -> str:
    """Advice to append to an error about ``wanted`` names if the data have only default names; else empty."""
    numbered = tuple(names) == numbered_names(len(names))
    if not numbered or all(DEFAULT_NAME.fullmatch(name) for name in wanted):
        return ""
    return "; the data have default feature names (f1, f2, …): read them with `names`, a file of names"


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
    if surrogate := SURROGATE.search("".join(names)):
        raise ParameterError(
            "feature_names", names, f"a name contains an unpaired surrogate ({surrogate[0]!a}); rename it"
        )
    return names


def out_of_range(sizes: FloatArray) -> BoolArray:
    """Mask of the values that are neither 0 nor between ``MIN_MAGNITUDE`` and ``MAX_MAGNITUDE``."""
    return np.asarray((sizes != 0) & ~((sizes >= MIN_MAGNITUDE) & (sizes <= MAX_MAGNITUDE)))


def check_features(spread: FloatArray, largest: FloatArray, names: Sequence[str] | None = None) -> None:
    """Refuse a feature with too large values or too small a spread (max − min within a query)."""
    if (largest > MAX_MAGNITUDE).any():
        j = int(np.argmax(largest))
        reason = (
            f"{_feature_name(j, names)} has values as large as {largest[j]:.3g}; the largest allowed is "
            f"{MAX_MAGNITUDE:g}: divide the feature by a power of ten"
        )
        raise DataError(None, None, reason)
    if (little := np.flatnonzero((spread > 0) & (spread < MIN_MAGNITUDE))).size:
        j = int(little[0])
        reason = (
            f"{_feature_name(j, names)} varies by {spread[j]:.3g} within a query; it must vary by 0 or at "
            f"least {MIN_MAGNITUDE:g}: multiply the feature by a power of ten, or leave it out"
        )
        raise DataError(None, None, reason)


def check_labels(extremes: FloatArray) -> None:
    """Refuse labels that are too large; ``extremes`` contains the minima and maxima."""
    largest = float(extremes[np.argmax(np.abs(extremes))])
    if abs(largest) > MAX_MAGNITUDE:
        reason = f"a label is {largest:g}; labels must be from {-MAX_MAGNITUDE:g} to {MAX_MAGNITUDE:g}"
        raise DataError(None, None, reason)


def _feature_name(j: int, names: Sequence[str] | None) -> str:
    return f"the feature in column {j}" if names is None else f"feature {names[j]}"
