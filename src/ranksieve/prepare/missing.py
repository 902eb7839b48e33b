"""Missing values: policies, their learned parameters, and filling on the fly of matrices on disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from ranksieve._types import AnyArray, FloatArray, IntArray, Matrix
from ranksieve._util.short_repr import ShortRepr
from ranksieve.data.dataset import Dataset, check_finite
from ranksieve.data.features import column_blocks
from ranksieve.data.matrix import (
    StreamedMatrix,
    find_first,
    is_streamed,
    mark_missing,
    missing_per_column,
    replace_missing,
    value_range,
    writable_copy,
)
from ranksieve.data.parts import map_parts
from ranksieve.data.queries import Queries, contiguous_queries
from ranksieve.errors import DataError, ParameterError, short_list, warn_caller

Prepare: TypeAlias = Callable[[Sequence[str], FloatArray, Queries], FloatArray]
"""(feature names, array of their values that may be overwritten, queries of its rows) → prepared values."""


class PreparedMatrix(StreamedMatrix):
    """Features prepared as they are read: feature ``names[j]`` from column ``sources[j]`` of another matrix.

    With ``per_query``, whole queries are read; the rows of a query must be contiguous.
    """

    def __init__(
        self,
        matrix: StreamedMatrix,
        names: Sequence[str],
        sources: IntArray,
        prepare: Prepare,
        queries: Queries,
        per_query: bool,
        dtype: DTypeLike,
    ) -> None:
        super().__init__(matrix.starts, len(names), np.dtype(dtype))
        self._matrix, self._names, self._sources = matrix, np.array(names, dtype=object), sources
        self._prepare, self._queries, self._per_query = prepare, queries, per_query

    def read(self, first: int, last: int, columns: IntArray) -> AnyArray:
        begin, end, rows = first, last, contiguous_queries(np.zeros(1), np.array([last - first]))
        if self._per_query and last > first:
            offsets = self._queries.offsets
            a, b = np.searchsorted(offsets, first, side="right") - 1, np.searchsorted(offsets, last)
            begin, end = int(offsets[a]), int(offsets[b])
            rows = contiguous_queries(self._queries.ids[a:b], self._queries.sizes[a:b])
        values = np.array(self._matrix.read(begin, end, self._sources[columns]), dtype=self.dtype, order="F")
        prepared = self._prepare(self._names[columns].tolist(), values, rows)
        return np.asfortranarray(prepared[first - begin : last - begin])

    def read_ahead(self, first: int, last: int, columns: IntArray) -> None:
        self._matrix.read_ahead(first, last, self._sources[columns])


Fill = Callable[[FloatArray, Queries], FloatArray]


def _zero(column: FloatArray, queries: Queries) -> FloatArray:
    return np.zeros(len(column))


def _query_min(column: FloatArray, queries: Queries) -> FloatArray:
    """Minimum of the present values of the row's query, 0 if there are none."""
    minima = np.fmin.reduceat(queries.group(column), queries.offsets[:-1])
    return queries.restore(np.repeat(np.nan_to_num(minima, nan=0.0), queries.sizes))


def _column_mean(column: FloatArray, queries: Queries) -> FloatArray:
    """Mean of the present values, 0 if there are none."""
    present = column[~np.isnan(column)]
    return np.full(len(column), present.mean() if len(present) else 0.0)


FILLS: dict[str, Fill] = {"zero": _zero, "query_min": _query_min, "column_mean": _column_mean}
MISSING_POLICIES = ("error", *FILLS, "keep")
INDICATOR = "indicator"
RANKER_POLICIES = ("auto", "error", *FILLS, INDICATOR)
LEARNED = ("column_mean", INDICATOR)
POLICY_ADVICE = "choose `missing='zero'`, `missing='query_min'` or `missing='column_mean'`"


def check_policy(policy: str, allowed: Sequence[str] = MISSING_POLICIES) -> None:
    if policy not in allowed:
        raise ParameterError("missing", policy, f"unknown; choose one of {', '.join(allowed)}")


@dataclass(frozen=True, repr=False)
class MissingPolicy(ShortRepr):
    """Replacement of missing values, with the parameters learned from the training data.

    "zero" inserts 0, "query_min" the minimum of the feature over the documents of the query, "column_mean"
    the mean of the present training values: ``means``, one for each of ``features`` (if empty, the means of
    the data at hand). "indicator" does the same and adds features that are 1 where another feature is
    missing, else 0: ``indicates`` has the name of that feature, and "" for the features of the data. "error"
    refuses missing values, "keep" leaves them.
    """

    policy: str
    features: tuple[str, ...] = ()
    means: tuple[float, ...] = ()
    indicates: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_policy(self.policy, (*MISSING_POLICIES, INDICATOR))
        for name, kind in (("features", str), ("means", float), ("indicates", str)):
            object.__setattr__(self, name, tuple(kind(value) for value in getattr(self, name)))
        if len(self.means) != len(self.features) or not np.isfinite(self.means).all():
            reason = f"must be one finite number for each of {len(self.features)} features"
            raise ParameterError("means", self.means, reason)
        if len(self.indicates) != (len(self.features) if self.policy == INDICATOR else 0):
            expected = len(self.features) if self.policy == INDICATOR else "no"
            reason = f"must have {expected} entries for the policy {self.policy!r}"
            raise ParameterError("indicates", self.indicates, reason)

    @property
    def fills(self) -> bool:
        """Whether it replaces missing values."""
        return self.policy in FILLS or self.policy == INDICATOR

    @property
    def learns(self) -> bool:
        """Whether it has parameters learned from the training data."""
        return self.policy in LEARNED

    @property
    def per_query(self) -> bool:
        """Whether it needs the query of each row."""
        return self.policy == "query_min"

    @property
    def indicators(self) -> dict[str, str]:
        """Names of the indicator features, with the feature that each is about."""
        pairs = zip(self.features, self.indicates, strict=True) if self.indicates else ()
        return {name: source for name, source in pairs if source}

    def fill(self, X: Matrix, queries: Queries) -> None:
        """Replace NaN in place; the columns of X must be ``features``, if there are any.

        The column of an indicator must contain the values of the feature that it is about.
        """
        if self.indicates:
            mark_missing(X, np.flatnonzero([bool(source) for source in self.indicates]))
        if self.means:
            replace_missing(X, lambda j, column: np.full(len(column), self.means[j]))
            return
        value_of = FILLS[self.policy]
        replace_missing(X, lambda j, column: value_of(column, queries))

    def apply(self, data: Dataset) -> Dataset:
        """Replace, refuse ("error") or keep missing values; indicators become the last columns."""
        if self.policy == "keep" or not (self.indicates or has_missing(data.X)):
            return data
        if self.policy == "error":
            _refuse(data)
        about, index = self.indicators, {name: j for j, name in enumerate(data.feature_names)}
        if self.features:
            check_same_features(
                [name for name in self.features if name not in about], data, "the filling of missing values"
            )
        names = self.features or data.feature_names
        sources = np.array([index[about.get(name, name)] for name in names])
        if is_streamed(data.X):
            policy = self.with_means_of(data)

            def prepare(some: Sequence[str], values: FloatArray, queries: Queries) -> FloatArray:
                policy.of(some).fill(values, queries)
                return values

            X = PreparedMatrix(data.X, names, sources, prepare, data.queries, self.per_query, data.X.dtype)
            return data.replace_features(X, names)
        if self.policy == "column_mean" and not self.means:
            incomplete = np.flatnonzero(missing_per_column(data.X))
            check_finite(data.select_features(incomplete), allow_missing=True)
        X = data.X[:, sources] if self.indicates else writable_copy(data.X)
        self.fill(X, data.queries)
        return data.replace_features(X, names)

    def with_means_of(self, data: Dataset) -> MissingPolicy:
        """This policy; "column_mean" without means gets those of the data."""
        if self.policy != "column_mean" or self.means:
            return self
        means = _means_of(data)
        return MissingPolicy("column_mean", data.feature_names, tuple(means.tolist()))

    def of(self, features: Sequence[str]) -> MissingPolicy:
        """Policy for some of the features, in this order."""
        if not self.features:
            return self
        index = {name: j for j, name in enumerate(self.features)}
        means = tuple(self.means[index[name]] for name in features)
        about = self.indicators
        if not any(name in about for name in features):
            return MissingPolicy("column_mean", tuple(features), means)
        return MissingPolicy(
            INDICATOR, tuple(features), means, tuple(about.get(name, "") for name in features)
        )

    def updated(self, part: MissingPolicy) -> MissingPolicy:
        """Replace the means of some features by those of ``part``; a ``part`` without means replaces all."""
        if not part.learns:
            return part
        new_means = dict(zip(part.features, part.means, strict=True))
        means = (new_means.get(name, mean) for name, mean in zip(self.features, self.means, strict=True))
        return replace(self, means=tuple(means))


KEEP_MISSING = MissingPolicy("keep")


def learn_missing(data: Dataset, policy: str, query_weight: FloatArray | None = None) -> MissingPolicy:
    """Learn a policy: the means of the present values (0 if there are none) and the indicators.

    "auto" is "column_mean", with a warning, if values are missing, else "error". The weight of a row is its
    document weight × the ``query_weight`` of its query (default 1 each).
    """
    if policy == "auto" and not any(map_parts(data, _has_missing)):
        return MissingPolicy("error")
    if policy not in (*LEARNED, "auto"):
        return MissingPolicy(policy)
    n_missing = np.sum(map_parts(data, _missing_per_column), axis=0)
    if n_missing.min() == data.n_docs:
        reason = f"all {data.n_features} features are missing in all {data.n_docs} rows"
        raise DataError(None, None, f"{reason}; check how the data were read")
    if policy == "auto":
        warn_caller(_warning(data, n_missing))
    means = _means_of(data, query_weight)
    marked = np.flatnonzero((n_missing > 0) & (n_missing < data.n_docs)) if policy == INDICATOR else ()
    about = [data.feature_names[j] for j in marked]
    indicators = [f"{name} is missing" for name in about]
    for name in set(indicators).intersection(data.feature_names):
        reason = f"the data have a feature {name!r}, which is the name of an indicator; rename it"
        raise DataError(None, None, reason)
    learned = MissingPolicy(
        INDICATOR,
        (*data.feature_names, *indicators),
        (*means.tolist(), *(0.0 for _ in about)),
        (*("" for _ in data.feature_names), *about),
    )
    return learned.of(learned.features)  # "column_mean" if there is no indicator


MAX_SHOWN_FEATURES = 3


def _warning(data: Dataset, n_missing: IntArray) -> str:
    """Warning about features with missing values, those with the most first."""
    partly = [j for j in np.argsort(-n_missing, kind="stable") if 0 < n_missing[j] < data.n_docs]
    shares = [f"{data.feature_names[j]} in {100 * n_missing[j] / data.n_docs:.3g} %" for j in partly]
    empty = [data.feature_names[j] for j in np.flatnonzero(n_missing == data.n_docs)]
    clauses = []
    if partly:
        shares[0] += " of the rows"
        clauses.append(
            f"{_count(partly, data)} missing values ({short_list(shares, MAX_SHOWN_FEATURES)}), which are "
            "replaced by the training mean of the feature"
        )
    if empty:
        clauses.append(
            f"{_count(empty, data)} no value in any row and cannot be used "
            f"({short_list(empty, MAX_SHOWN_FEATURES)})"
        )
    *others, last = (f'"{name}"' for name in RANKER_POLICIES if name != "auto")
    return "; ".join([*clauses, f"other policies: missing={', '.join(others)} or {last}"])


def _count(some: Sequence[object], data: Dataset) -> str:
    return f"{len(some)} of {data.n_features} features {'has' if len(some) == 1 else 'have'}"


def _means_of(data: Dataset, query_weight: FloatArray | None = None) -> FloatArray:
    total, count = np.sum(map_parts(data, _present_sums, query_weight), axis=0)
    means = np.asarray(np.divide(total, count, out=np.zeros_like(total), where=count > 0))
    if not np.isfinite(means).all():
        check_finite(data, allow_missing=True)
        name = data.feature_names[int(np.argmin(np.isfinite(means)))]
        reason = f"the mean of feature {name} overflows; divide the feature by a power of ten"
        raise DataError(None, None, reason)
    return means


def _present_sums(data: Dataset, query_weight: FloatArray | None) -> FloatArray:
    """Weighted sum of the present values of each column, and the total weight of their rows."""
    weight, sums = data.row_weights(query_weight), []
    for _, columns in column_blocks(data.X):
        present = ~np.isnan(columns)
        with np.errstate(over="ignore", invalid="ignore"):
            total = np.sum(columns * weight[:, None], axis=0, where=present)
        sums.append(np.array([total, weight @ present]))
    return np.hstack(sums)


def _missing_per_column(data: Dataset) -> IntArray:
    return missing_per_column(data.X)


def _has_missing(data: Dataset) -> bool:
    return has_missing(data.X)


def check_same_features(learned: Sequence[str], data: Dataset, what: str) -> None:
    """Refuse data whose features are not those of the training data."""
    if tuple(learned) != data.feature_names:
        raise DataError(
            None,
            None,
            f"{what}: expected the {len(learned)} features of the training data "
            f"({', '.join(learned[:5])} …), got {data.n_features} ({', '.join(data.feature_names[:5])} …)",
        )


def fill_missing(dataset: Dataset, policy: str) -> Dataset:
    """Replace NaN features.

    Policies: ``"error"`` refuses them, ``"zero"`` inserts 0, ``"query_min"`` the minimum of the feature's
    present values in the query, ``"column_mean"`` the mean of all its present values (0 if there are none),
    ``"keep"`` leaves NaN. Values that a sparse matrix does not store are present and 0.
    """
    check_policy(policy)
    return MissingPolicy(policy).apply(dataset)


def has_missing(X: Matrix) -> bool:
    return bool(np.isnan(value_range(X)).any())


def _refuse(dataset: Dataset) -> None:
    row, column = find_first(dataset.X, np.isnan) or (0, 0)
    value = f"feature {dataset.feature_names[column]} of row {row} (query {dataset.qid[row]})"
    raise DataError(None, None, f"{value} is missing; {POLICY_ADVICE}")
