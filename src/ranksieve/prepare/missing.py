"""Missing values: policies, what they learn, and matrices that are filled as they are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from ranksieve._types import AnyArray, FloatArray, IntArray, Matrix
from ranksieve.data.dataset import Dataset, check_finite
from ranksieve.data.features import column_blocks
from ranksieve.data.matrix import (
    StreamedMatrix,
    first_place,
    is_streamed,
    mark_missing,
    missing_per_column,
    own_copy,
    replace_missing,
    value_range,
)
from ranksieve.data.parts import in_parts
from ranksieve.data.queries import Queries, queries_in_order
from ranksieve.errors import DataError, ParameterError, shortened, warn_caller

Prepare: TypeAlias = Callable[[Sequence[str], FloatArray, Queries], FloatArray]
"""(names of features, an own array of their values, queries of its rows) → the prepared values."""


class PreparedMatrix(StreamedMatrix):
    """Features that come from those of another matrix: feature ``names[j]`` from its column ``sources[j]``.

    With ``per_query`` whole queries are read, whose rows must be together.
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
        begin, end, rows = first, last, queries_in_order(np.zeros(1), np.array([last - first]))
        if self._per_query and last > first:
            offsets = self._queries.offsets
            a, b = np.searchsorted(offsets, first, side="right") - 1, np.searchsorted(offsets, last)
            begin, end = int(offsets[a]), int(offsets[b])
            rows = queries_in_order(self._queries.ids[a:b], self._queries.sizes[a:b])
        values = np.array(self._matrix.read(begin, end, self._sources[columns]), dtype=self.dtype, order="F")
        prepared = self._prepare(self._names[columns].tolist(), values, rows)
        return np.asfortranarray(prepared[first - begin : last - begin])

    def read_ahead(self, first: int, last: int, columns: IntArray) -> None:
        self._matrix.read_ahead(first, last, self._sources[columns])


Fill = Callable[[FloatArray, Queries], FloatArray]


def _zero(column: FloatArray, queries: Queries) -> FloatArray:
    return np.zeros(len(column))


def _query_min(column: FloatArray, queries: Queries) -> FloatArray:
    """The least present value of the row's query, 0 if it has none."""
    minima = np.fmin.reduceat(queries.group(column), queries.offsets[:-1])
    return queries.restore(np.repeat(np.nan_to_num(minima, nan=0.0), queries.sizes))


def _column_mean(column: FloatArray, queries: Queries) -> FloatArray:
    """The mean of the present values, 0 if there are none."""
    present = column[~np.isnan(column)]
    return np.full(len(column), present.mean() if len(present) else 0.0)


FILLS: dict[str, Fill] = {"zero": _zero, "query_min": _query_min, "column_mean": _column_mean}
MISSING_POLICIES = ("error", *FILLS, "keep")
INDICATOR = "indicator"
RANKER_POLICIES = ("auto", "error", *FILLS, INDICATOR)
LEARNED = ("column_mean", INDICATOR)
OTHER_POLICIES = "choose `missing='zero'`, `missing='query_min'` or `missing='column_mean'`"


def check_policy(policy: str, known: Sequence[str] = MISSING_POLICIES) -> None:
    if policy not in known:
        raise ParameterError("missing", policy, f"unknown; choose one of {', '.join(known)}")


@dataclass(frozen=True)
class MissingPolicy:
    """What replaces a missing feature, with what it has to remember of the training data.

    "zero" puts 0, "query_min" the feature's least value over the documents of the query that are scored
    together, "column_mean" the mean of the present training values: ``means``, one for each of ``features``
    (without them the mean of the data at hand). "indicator" does the same and has further features that are
    1 where another one is missing, else 0: ``indicates`` names that one, and is "" for a feature of the data.
    "error" refuses missing values and "keep" leaves them.
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
            wanted = len(self.features) if self.policy == INDICATOR else "no"
            reason = f"must name {wanted} features with the policy {self.policy!r}"
            raise ParameterError("indicates", self.indicates, reason)

    @property
    def fills(self) -> bool:
        """Whether it replaces missing values."""
        return self.policy in FILLS or self.policy == INDICATOR

    @property
    def learns(self) -> bool:
        """Whether it remembers something of the training data."""
        return self.policy in LEARNED

    @property
    def per_query(self) -> bool:
        """Whether it needs the query of each row."""
        return self.policy == "query_min"

    @property
    def indicators(self) -> dict[str, str]:
        """The features that are 1 where another one is missing, with the name of that one."""
        pairs = zip(self.features, self.indicates, strict=True) if self.indicates else ()
        return {name: source for name, source in pairs if source}

    def fill(self, X: Matrix, queries: Queries) -> None:
        """Replace the NaNs of a matrix that nobody else holds, whose columns are ``features`` if any.

        The column of an indicator holds the values of the feature that it is about.
        """
        if self.indicates:
            mark_missing(X, np.flatnonzero([bool(source) for source in self.indicates]))
        if self.means:
            replace_missing(X, lambda j, column: np.full(len(column), self.means[j]))
            return
        value_of = FILLS[self.policy]
        replace_missing(X, lambda j, column: value_of(column, queries))

    def apply(self, data: Dataset) -> Dataset:
        """The data with missing values replaced, refused ("error") or kept; indicators come last."""
        if self.policy == "keep" or not (self.indicates or has_missing(data.X)):
            return data
        if self.policy == "error":
            _refuse(data)
        about, place = self.indicators, {name: j for j, name in enumerate(data.feature_names)}
        if self.features:
            check_same_features([name for name in self.features if name not in about], data, "missing values")
        names = self.features or data.feature_names
        sources = np.array([place[about.get(name, name)] for name in names])
        if is_streamed(data.X):
            policy = self.with_means_of(data)

            def prepare(some: Sequence[str], values: FloatArray, queries: Queries) -> FloatArray:
                policy.of(some).fill(values, queries)
                return values

            X = PreparedMatrix(data.X, names, sources, prepare, data.queries, self.per_query, data.X.dtype)
            return data.replace_features(X, names)
        if self.policy == "column_mean" and not self.means:
            filled = np.flatnonzero(missing_per_column(data.X))
            check_finite(data.select_features(filled), allow_missing=True)
        X = data.X[:, sources] if self.indicates else own_copy(data.X)
        self.fill(X, data.queries)
        return data.replace_features(X, names)

    def with_means_of(self, data: Dataset) -> MissingPolicy:
        """This policy; one that puts the means of the data at hand, with these means."""
        if self.policy != "column_mean" or self.means:
            return self
        means = _means_of(data)
        return MissingPolicy("column_mean", data.feature_names, tuple(means.tolist()))

    def of(self, features: Sequence[str]) -> MissingPolicy:
        """The policy for some of the features, in the order given."""
        if not self.features:
            return self
        place = {name: j for j, name in enumerate(self.features)}
        means = tuple(self.means[place[name]] for name in features)
        about = self.indicators
        if not any(name in about for name in features):
            return MissingPolicy("column_mean", tuple(features), means)
        return MissingPolicy(
            INDICATOR, tuple(features), means, tuple(about.get(name, "") for name in features)
        )

    def updated(self, part: MissingPolicy) -> MissingPolicy:
        """This policy, with the means that another one has; one that learns nothing says it of all."""
        if not part.learns:
            return part
        known = dict(zip(part.features, part.means, strict=True))
        means = (known.get(name, mean) for name, mean in zip(self.features, self.means, strict=True))
        return replace(self, means=tuple(means))


KEPT = MissingPolicy("keep")


def learn_missing(data: Dataset, policy: str, query_weight: FloatArray | None = None) -> MissingPolicy:
    """A policy with what it has to remember: the means of the present values, 0 if there are none.

    "auto" is "column_mean" with a word about it where values are missing, else "error". A row counts as
    often as its document's weight times ``query_weight`` of its query says (each 1 without).
    """
    if policy == "auto" and not any(in_parts(data, _has_missing)):
        return MissingPolicy("error")
    if policy not in (*LEARNED, "auto"):
        return MissingPolicy(policy)
    holes = np.sum(in_parts(data, _holes), axis=0)
    if holes.min() == data.n_docs:
        reason = f"all {data.n_features} features are missing in all {data.n_docs} rows"
        raise DataError(None, None, f"{reason}; check how the data were read")
    if policy == "auto":
        warn_caller(_word(data, holes))
    means = _means_of(data, query_weight)
    marked = np.flatnonzero((holes > 0) & (holes < data.n_docs)) if policy == INDICATOR else ()
    about = [data.feature_names[j] for j in marked]
    indicators = [f"{name} is missing" for name in about]
    for name in set(indicators).intersection(data.feature_names):
        reason = f"the data have a feature {name!r}; rename it, because indicators are called so"
        raise DataError(None, None, reason)
    learned = MissingPolicy(
        INDICATOR,
        (*data.feature_names, *indicators),
        (*means.tolist(), *(0.0 for _ in about)),
        (*("" for _ in data.feature_names), *about),
    )
    return learned.of(learned.features)  # "column_mean" if there is no indicator


NAMED = 3  # features in a word about missing values


def _word(data: Dataset, holes: IntArray) -> str:
    """Which features have missing values, those with the most first, and what becomes of them."""
    partly = [j for j in np.argsort(-holes, kind="stable") if 0 < holes[j] < data.n_docs]
    named = [f"{data.feature_names[j]} in {100 * holes[j] / data.n_docs:.3g} %" for j in partly]
    never = [data.feature_names[j] for j in np.flatnonzero(holes == data.n_docs)]
    words = []
    if partly:
        named[0] += " of the rows"
        words.append(
            f"{_count(partly, data)} missing values ({shortened(named, NAMED)}); each is filled with its "
            "training mean, which the model keeps"
        )
    if never:
        words.append(
            f"{_count(never, data)} no value in any row, so no use is made of it ({shortened(never, NAMED)})"
        )
    *others, last = (f'"{name}"' for name in RANKER_POLICIES if name != "auto")
    return "; ".join([*words, f"choose with missing={', '.join(others)} or {last}"])


def _count(some: Sequence[object], data: Dataset) -> str:
    return f"{len(some)} of {data.n_features} features {'has' if len(some) == 1 else 'have'}"


def _means_of(data: Dataset, query_weight: FloatArray | None = None) -> FloatArray:
    total, count = np.sum(in_parts(data, _present_sums, query_weight), axis=0)
    means = np.asarray(np.divide(total, count, out=np.zeros_like(total), where=count > 0))
    if not np.isfinite(means).all():
        check_finite(data, allow_missing=True)
        name = data.feature_names[int(np.argmin(np.isfinite(means)))]
        reason = f"the mean of feature {name} overflows; divide the feature by a power of ten"
        raise DataError(None, None, reason)
    return means


def _present_sums(data: Dataset, query_weight: FloatArray | None) -> FloatArray:
    """Of each column the weighted sum of the present values, and the weight of their rows."""
    weight, sums = data.row_weights(query_weight), []
    for _, columns in column_blocks(data.X):
        present = ~np.isnan(columns)
        with np.errstate(over="ignore", invalid="ignore"):
            total = np.sum(columns * weight[:, None], axis=0, where=present)
        sums.append(np.array([total, weight @ present]))
    return np.hstack(sums)


def _holes(data: Dataset) -> IntArray:
    return missing_per_column(data.X)


def _has_missing(data: Dataset) -> bool:
    return has_missing(data.X)


def check_same_features(learned: Sequence[str], data: Dataset, what: str) -> None:
    """Refuse data whose columns are not those that something was learned on."""
    if tuple(learned) != data.feature_names:
        raise DataError(
            None,
            None,
            f"the rule for {what} was learned on {len(learned)} features ({', '.join(learned[:5])} …) but "
            f"the data have {data.n_features} ({', '.join(data.feature_names[:5])} …); give the same columns",
        )


def fill_missing(dataset: Dataset, policy: str) -> Dataset:
    """Replace NaN features.

    Policies: ``"error"`` refuses them, ``"zero"`` puts 0, ``"query_min"`` the feature's minimum over the
    query's present values, ``"column_mean"`` its mean over all present values (both 0 where none is
    present), ``"keep"`` leaves NaN. What a sparse matrix does not store is present and 0.
    """
    check_policy(policy)
    return MissingPolicy(policy).apply(dataset)


def has_missing(X: Matrix) -> bool:
    return bool(np.isnan(value_range(X)).any())


def _refuse(dataset: Dataset) -> None:
    row, column = first_place(dataset.X, np.isnan) or (0, 0)
    place = f"feature {dataset.feature_names[column]} of row {row} (query {dataset.qid[row]})"
    raise DataError(None, None, f"{place} is missing; {OTHER_POLICIES}")
