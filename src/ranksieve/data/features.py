"""Columns of a feature matrix: blocks of columns, lookup by name, index or pattern, and signs."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from ranksieve._parallel import map_blocks
from ranksieve._types import AnyArray, BoolArray, FloatArray, IntArray, Matrix
from ranksieve.data.matrix import CELLS_AT_ONCE, is_sparse, is_streamed
from ranksieve.errors import DataError, InputError, ParameterError, short_list, short_repr

COLUMNS_AT_ONCE = 64
T = TypeVar("T")


def dense_columns(X: Matrix, dtype: DTypeLike = np.float64) -> Iterator[AnyArray]:
    """Columns one by one, as contiguous arrays."""
    columns = X.tocsc() if is_sparse(X) else X
    step = COLUMNS_AT_ONCE
    if is_streamed(X):
        step = max(1, min(step, CELLS_AT_ONCE // X.shape[0]))
    for first in range(0, X.shape[1], step):
        block = columns[:, first : first + step]
        yield from np.array(_as_array(block).T, dtype=dtype, order="C")


def _as_array(block: Matrix) -> AnyArray:
    return np.asarray(block.toarray() if is_sparse(block) else block)


def column_blocks(X: Matrix) -> Iterator[tuple[slice, FloatArray]]:
    """Copies of all columns in float64, in blocks of about 16 MB."""
    read, cuts = _by_columns(X)
    for first, last in pairwise(cuts.tolist()):
        yield slice(first, last), read(first, last)


def map_column_blocks(work: Callable[[slice, FloatArray], T], X: Matrix) -> list[T]:
    """``work(columns, block)`` for each of :func:`column_blocks`, in several threads if X is in memory."""
    if is_streamed(X):
        return [work(columns, block) for columns, block in column_blocks(X)]
    read, cuts = _by_columns(X)
    return map_blocks(lambda first, last: work(slice(first, last), read(first, last)), cuts)


def _by_columns(X: Matrix) -> tuple[Callable[[int, int], FloatArray], IntArray]:
    """A function that copies columns first..last to float64, and the boundaries of the blocks."""
    columns = X.tocsc() if is_sparse(X) else X
    step = max(1, CELLS_AT_ONCE // X.shape[0])

    def read(first: int, last: int) -> FloatArray:
        return np.array(_as_array(columns[:, first:last]), dtype=np.float64, order="C")

    return read, np.append(np.arange(0, X.shape[1], step), X.shape[1])


def column_reader(X: Matrix) -> Callable[[int], AnyArray]:
    """A function that returns column j as an array; a sparse matrix is converted to CSC once."""
    if not is_sparse(X):
        return lambda j: np.asarray(X[:, j])
    columns = X.tocsc()
    return lambda j: np.asarray(columns[:, [j]].toarray().ravel())


Feature: TypeAlias = str | int
"""A feature by name, several by a shell pattern such as bm25_*, or one by column index (from 0)."""
Location: TypeAlias = str | tuple[str, int | None]
"""Where features are listed: a parameter, or a file and a line."""
MAX_SHOWN_NAMES = 8
WILDCARDS = "*?["
SIGNS = {"+": 1.0, "-": -1.0, "−": -1.0}


def as_masks(
    features: Feature | Iterable[Feature], names: Sequence[str], role: str, among: Sequence[str] | None = None
) -> tuple[BoolArray, BoolArray]:
    """Mask of the columns of the features, and mask of those given by name or index, not by a pattern."""
    if isinstance(features, str) or not isinstance(features, Iterable):
        features = [features]
    features, name_set = list(features), frozenset(names)
    named = [feature for feature in features if not is_pattern(feature, name_set)]
    masks = np.zeros((2, len(names)), dtype=bool)
    for mask, some in zip(masks, (features, named), strict=True):
        mask[list(values_by_column([(feature, True) for feature in some], names, role, among=among))] = True
    return masks[0], masks[1]


def values_by_column(
    entries: Iterable[tuple[Feature, T]],
    names: Sequence[str],
    role: Location,
    places: Mapping[str, Location] | None = None,
    among: Sequence[str] | None = None,
) -> dict[int, T]:
    """Value of each column: that of its name or index, else that of the patterns that match its name.

    Patterns match only names in ``among`` (default all). Errors refer to ``places[feature]``, or to ``role``.
    """
    by_name: dict[int, T] = {}
    matched: dict[int, dict[Feature, T]] = {}
    places = places or {}
    column = {name: j for j, name in enumerate(names)}
    for feature, value in entries:
        location = places.get(feature, role) if isinstance(feature, str) else role
        if not is_pattern(feature, column):
            by_name[_column_of(feature, names, column, location)] = value
            continue
        for name in _matching_or_error(str(feature), names if among is None else among, location):
            matched.setdefault(column[name], {})[feature] = value
    for j, values in matched.items():
        (first, value), *others = values.items()
        other = next((pattern for pattern, another in others if another != value), None)
        if other is not None and j not in by_name:
            advice = f"list {names[j]!r} by name, or change one of them"
            reason = f"disagrees with {first!r} about {names[j]!r}; {advice}"
            raise feature_error(places.get(str(other), role), other, reason)
        by_name.setdefault(j, value)
    return by_name


def named_signs(signs: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Signs by feature name, with patterns replaced by the ``names`` that they match."""
    by_pattern = {
        name: sign
        for pattern, sign in signs.items()
        if is_pattern(pattern, names)
        for name in matching(pattern, names)
    }
    return by_pattern | {name: sign for name, sign in signs.items() if not is_pattern(name, names)}


def column_indices(features: Iterable[Feature], names: Sequence[str], role: Location) -> IntArray:
    """Column index of each feature, in this order."""
    column = {name: j for j, name in enumerate(names)}
    return np.array([_column_of(feature, names, column, role) for feature in features], dtype=np.int64)


def is_pattern(feature: Any, names: Container[str]) -> bool:
    """Whether this is a pattern; a feature name with wildcard characters is not."""
    return isinstance(feature, str) and any(mark in feature for mark in WILDCARDS) and feature not in names


def matching(pattern: str, names: Iterable[str]) -> list[str]:
    """Names that match a shell pattern (``*``, ``?``, ``[abc]``), case-sensitively."""
    return [name for name in names if fnmatchcase(name, pattern)]


def _matching_or_error(pattern: str, names: Sequence[str], location: Location) -> list[str]:
    matches = matching(pattern, names)
    if not matches:
        nearest = get_close_matches(pattern.strip(WILDCARDS + "]"), names, n=3, cutoff=0.4)
        hint = f"; the nearest are {', '.join(nearest)}" if nearest else _known(names)
        raise feature_error(location, pattern, f"matches no feature{hint}")
    return matches


def _column_of(feature: Feature, names: Sequence[str], column: Mapping[str, int], role: Location) -> int:
    if not isinstance(feature, str):
        if isinstance(feature, bool) or not isinstance(feature, int | np.integer):
            raise feature_error(role, feature, f"must be a name or a column index from 0 to {len(names) - 1}")
        if 0 <= feature < len(names):
            return int(feature)
        raise feature_error(role, feature, f"is not a column; the columns are 0 to {len(names) - 1}")
    if feature not in column:
        raise unknown_feature(role, feature, names)
    return column[feature]


def feature_error(location: Location, name: Any, reason: str) -> InputError:
    """Error about a feature in a parameter or a file; ``reason`` begins with a verb."""
    if isinstance(location, str):
        return ParameterError(location, name, reason)
    return DataError(*location, f"{short_repr(name)} {reason}")


def unknown_feature(location: Location, name: str, names: Sequence[str]) -> InputError:
    """Error about an unknown feature name that suggests the nearest name."""
    nearest = get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f" (did you mean {nearest[0]!r}?)" if nearest else ""
    return feature_error(location, name, f"is not a feature{hint}{_known(names)}")


def _known(names: Sequence[str]) -> str:
    return f"; the data have {short_list(names, MAX_SHOWN_NAMES)}"


def as_sign(sign: Any, feature: Any, location: Location = "signs") -> float:
    """Convert "+", "-", "0", +1, −1 or 0 to a number."""
    try:
        number = float(SIGNS.get(sign, sign))
    except (TypeError, ValueError):
        number = np.nan
    if number not in (-1.0, 0.0, 1.0):
        meaning = "+ (a larger value never lowers a rank), - (never raises it) or 0 (either)"
        raise feature_error(location, feature, f"has the sign {sign!r}; expected {meaning}")
    return number
