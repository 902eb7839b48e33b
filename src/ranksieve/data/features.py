"""Features by name, number or pattern, their signs, and a matrix column by column."""

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
from ranksieve.data.matrix import is_sparse, is_streamed
from ranksieve.errors import DataError, InputError, ParameterError, shortened, shown

COLUMNS_AT_ONCE = 64
CELLS_AT_ONCE = 2**21  # 16 MB of float64
T = TypeVar("T")


def dense_columns(X: Matrix, dtype: DTypeLike = np.float64) -> Iterator[AnyArray]:
    """Every column in turn, as a contiguous array."""
    by_column = X.tocsc() if is_sparse(X) else X
    step = COLUMNS_AT_ONCE
    if is_streamed(X):
        step = max(1, min(step, CELLS_AT_ONCE // X.shape[0]))
    for first in range(0, X.shape[1], step):
        block = by_column[:, first : first + step]
        yield from np.array(_as_array(block).T, dtype=dtype, order="C")


def _as_array(block: Matrix) -> AnyArray:
    """A part of a matrix as an array."""
    return np.asarray(block.toarray() if is_sparse(block) else block)


def column_blocks(X: Matrix) -> Iterator[tuple[slice, FloatArray]]:
    """All columns as own float64 arrays, about 16 MB at a time."""
    read, cuts = _by_columns(X)
    for first, last in pairwise(cuts.tolist()):
        yield slice(first, last), read(first, last)


def map_column_blocks(work: Callable[[slice, FloatArray], T], X: Matrix) -> list[T]:
    """``work`` of each of :func:`column_blocks`, by several threads where X is in memory."""
    if is_streamed(X):
        return [work(columns, block) for columns, block in column_blocks(X)]
    read, cuts = _by_columns(X)
    return map_blocks(lambda first, last: work(slice(first, last), read(first, last)), cuts)


def _by_columns(X: Matrix) -> tuple[Callable[[int, int], FloatArray], IntArray]:
    """A function that gives some columns as an own float64 array, and where such blocks begin and end."""
    by_column = X.tocsc() if is_sparse(X) else X
    step = max(1, CELLS_AT_ONCE // X.shape[0])

    def read(first: int, last: int) -> FloatArray:
        return np.array(_as_array(by_column[:, first:last]), dtype=np.float64, order="C")

    return read, np.append(np.arange(0, X.shape[1], step), X.shape[1])


def column_reader(X: Matrix) -> Callable[[int], AnyArray]:
    """A function that gives single columns as arrays; a sparse matrix is sorted by column once."""
    if not is_sparse(X):
        return lambda j: np.asarray(X[:, j])
    by_column = X.tocsc()
    return lambda j: np.asarray(by_column[:, [j]].toarray().ravel())


Feature: TypeAlias = str | int
"""A feature by its name, several by a shell pattern such as bm25_*, or one by its column, from 0 on."""
Place: TypeAlias = str | tuple[str, int | None]
"""Where features are named: a parameter, or a file and a line."""
SHOWN_NAMES = 8
WILD = "*?["
SIGNS = {"+": 1.0, "-": -1.0, "−": -1.0}


def as_masks(
    features: Feature | Iterable[Feature], names: Sequence[str], role: str, among: Sequence[str] | None = None
) -> tuple[BoolArray, BoolArray]:
    """Which columns the features are, and which of these are named, not only matched by a pattern."""
    if isinstance(features, str) or not isinstance(features, Iterable):
        features = [features]
    given, known = list(features), frozenset(names)
    named = [feature for feature in given if not is_pattern(feature, known)]
    masks = np.zeros((2, len(names)), dtype=bool)
    for mask, some in zip(masks, (given, named), strict=True):
        mask[list(by_column([(feature, True) for feature in some], names, role, among=among))] = True
    return masks[0], masks[1]


def by_column(
    given: Iterable[tuple[Feature, T]],
    names: Sequence[str],
    role: Place,
    places: Mapping[str, Place] | None = None,
    among: Sequence[str] | None = None,
) -> dict[int, T]:
    """What is given for each column: for its name or number, else for the patterns that match its name.

    Patterns look ``among`` these names, by default all. Errors are about ``role``, or about that of
    ``places`` which is the feature's.
    """
    own: dict[int, T] = {}
    matched: dict[int, dict[Feature, T]] = {}
    places = places or {}
    column = {name: j for j, name in enumerate(names)}
    for feature, value in given:
        place = places.get(feature, role) if isinstance(feature, str) else role
        if not is_pattern(feature, column):
            own[_column_of(feature, names, column, place)] = value
            continue
        for name in _some_matching(str(feature), names if among is None else among, place):
            matched.setdefault(column[name], {})[feature] = value
    for j, values in matched.items():
        (first, value), *others = values.items()
        other = next((pattern for pattern, another in others if another != value), None)
        if other is not None and j not in own:
            advice = f"name {names[j]!r} itself, or change one of them"
            reason = f"disagrees with {first!r} about {names[j]!r}; {advice}"
            raise refusal(places.get(str(other), role), other, reason)
        own.setdefault(j, value)
    return own


def named_signs(signs: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Signs of features by their names, where patterns stand for those of ``names`` that they match."""
    by_pattern = {
        name: sign
        for pattern, sign in signs.items()
        if is_pattern(pattern, names)
        for name in matching(pattern, names)
    }
    return by_pattern | {name: sign for name, sign in signs.items() if not is_pattern(name, names)}


def columns_named(features: Iterable[Feature], names: Sequence[str], role: Place) -> IntArray:
    """The column of each feature, in the order given."""
    column = {name: j for j, name in enumerate(names)}
    return np.array([_column_of(feature, names, column, role) for feature in features], dtype=np.int64)


def is_pattern(feature: Any, names: Container[str]) -> bool:
    """Whether this is a pattern rather than a name; a name that looks like a pattern is a name."""
    return isinstance(feature, str) and any(mark in feature for mark in WILD) and feature not in names


def matching(pattern: str, names: Iterable[str]) -> list[str]:
    """The names that a shell pattern (``*``, ``?``, ``[abc]``) matches, in their order; case counts."""
    return [name for name in names if fnmatchcase(name, pattern)]


def _some_matching(pattern: str, names: Sequence[str], place: Place) -> list[str]:
    found = matching(pattern, names)
    if not found:
        nearest = get_close_matches(pattern.strip(WILD + "]"), names, n=3, cutoff=0.4)
        hint = f"; the nearest are {', '.join(nearest)}" if nearest else _known(names)
        raise refusal(place, pattern, f"matches no feature{hint}")
    return found


def _column_of(feature: Feature, names: Sequence[str], column: Mapping[str, int], role: Place) -> int:
    if not isinstance(feature, str):
        if isinstance(feature, bool) or not isinstance(feature, int | np.integer):
            raise refusal(role, feature, f"must be a name or a column number from 0 to {len(names) - 1}")
        if 0 <= feature < len(names):
            return int(feature)
        raise refusal(role, feature, f"is not a column; the columns are 0 to {len(names) - 1}")
    if feature not in column:
        raise unknown_feature(role, feature, names)
    return column[feature]


def refusal(place: Place, name: Any, reason: str) -> InputError:
    """An error about what a parameter or a file says of a feature; the reason begins with a verb."""
    if isinstance(place, str):
        return ParameterError(place, name, reason)
    return DataError(*place, f"{shown(name)} {reason}")


def unknown_feature(place: Place, name: str, names: Sequence[str]) -> InputError:
    """An error about an unknown name, with the nearest known one."""
    nearest = get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f" (did you mean {nearest[0]!r}?)" if nearest else ""
    return refusal(place, name, f"is not a feature{hint}{_known(names)}")


def _known(names: Sequence[str]) -> str:
    return f"; the data have {shortened(names, SHOWN_NAMES)}"


def as_sign(sign: Any, feature: Any, place: Place = "signs") -> float:
    """ "+", "-", "0", +1, −1 or 0 as a number."""
    try:
        number = float(SIGNS.get(sign, sign))
    except (TypeError, ValueError):
        number = np.nan
    if number not in (-1.0, 0.0, 1.0):
        meaning = "+ (a larger value never lowers a rank), - (never raises it) or 0 (either)"
        raise refusal(place, feature, f"has the sign {sign!r}; expected {meaning}")
    return number
