"""Scales of features: normalisation, and a warning about very different scales."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias, cast

import numpy as np

from ranksieve._parallel import split_blocks
from ranksieve._types import FloatArray, IntArray, Matrix
from ranksieve._util.short_repr import ShortRepr
from ranksieve.data.dataset import Dataset
from ranksieve.data.features import map_column_blocks
from ranksieve.data.inputs import check_features, check_labels
from ranksieve.data.matrix import divide_columns, is_sparse, is_streamed, spread_and_largest, value_range
from ranksieve.data.parts import map_parts, transform_parts
from ranksieve.data.queries import Queries
from ranksieve.data.result_lists import list_scaling, scale_lists
from ranksieve.errors import DataError, ParameterError, warn_caller
from ranksieve.kernels.linear import StoredRows, stored_moments
from ranksieve.prepare.missing import PreparedMatrix, check_same_features

MAX_SCALE_RATIO = 1000.0


class ScaleWarning(UserWarning):
    """Features have very different scales and are not normalised."""


def warn_of_scales(data: Dataset) -> None:
    """Warn if scales differ more than a thousandfold, with the features of the largest and smallest scale.

    The scale of a feature is its largest range within a query, which bounds its effect on score differences.
    Unlike a standard deviation, it is the same for rare and frequent flags.
    """
    extremes = _extreme_scales(data)
    if extremes is None:
        return
    spread, large, small = extremes
    warn_caller(
        f"the scales of features differ by a factor of {spread[large] / spread[small]:.2g}: within a query "
        f"{data.feature_names[large]} ranges over {spread[large]:.3g}, {data.feature_names[small]} over "
        f"{spread[small]:.3g}; a penalty then favours features of large scale, which need only small "
        "weights; use `normalise='auto'`",
        ScaleWarning,
    )


def check_scales(data: Dataset) -> None:
    """Refuse labels and features that are too large, and features that vary too little."""
    check_labels(np.ravel(map_parts(data, _label_range)))
    spread, largest = np.max(map_parts(data, _spread_and_largest), axis=0)
    check_features(spread, largest, data.feature_names)


def scales_differ(data: Dataset) -> bool:
    """Whether scales differ more than a thousandfold."""
    return _extreme_scales(data) is not None


def _extreme_scales(data: Dataset) -> tuple[FloatArray, int, int] | None:
    """(scales, index of the largest, index of the smallest) if these differ too much, else None."""
    spread = np.max(map_parts(data, _spread_and_largest), axis=0)[0]
    varying = np.flatnonzero(spread > 0)
    if not len(varying):
        return None
    large, small = varying[np.argmax(spread[varying])], varying[np.argmin(spread[varying])]
    return (spread, int(large), int(small)) if spread[large] > MAX_SCALE_RATIO * spread[small] else None


def _spread_and_largest(data: Dataset) -> FloatArray:
    return np.array(spread_and_largest(data.X, data.queries, split_blocks(data.queries.offsets)))


def _label_range(data: Dataset) -> FloatArray:
    return np.array([data.y.min(), data.y.max()])


# Statistics of groups of rows are computed for each part of the data, merged, and give centre and scale.

Statistics: TypeAlias = tuple[FloatArray, ...]
"""Arrays with one row per group of rows and one column per feature."""


def _moments(values: FloatArray, starts: IntArray, weight: FloatArray) -> Statistics:
    """Weighted mean, Σ(x − mean)² and total weight of each group of rows; (x, 0) if all values are x."""
    row_weight = weight[:, None]
    total = np.add.reduceat(row_weight, starts)
    least, greatest = _extremes(values, starts, weight)
    mean = np.add.reduceat(row_weight * values, starts) / total
    deviations = values - np.repeat(mean, np.diff(starts, append=len(values)), axis=0)
    squares = np.add.reduceat(row_weight * deviations**2, starts)
    constant = (least == greatest) | (squares == 0)  # the mean of equal values has a rounding error
    return np.where(constant, least, mean), np.where(constant, 0.0, squares), total


def _pooled_moments(values: FloatArray, starts: IntArray, weight: FloatArray) -> Statistics:
    """Mean of all rows, Σ(x − mean of its group)² over all rows, and total weight."""
    overall, _, total = _moments(values, np.array([0]), weight)
    return overall, np.sum(_moments(values, starts, weight)[1], axis=0, keepdims=True), total


def _extremes(values: FloatArray, starts: IntArray, weight: FloatArray) -> Statistics:
    """Minimum and maximum of each group of rows; weights do not matter."""
    return np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)


def _deviation(mean: FloatArray, squares: FloatArray, total: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation √(Σ(x − mean)²/n); (x, 1) if all values are x."""
    deviation = np.sqrt(squares / total)
    return mean, np.where(deviation == 0, 1.0, deviation)


def _range(least: FloatArray, greatest: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Minimum and range; (x, 1) if all values are x."""
    return least, np.where(least == greatest, 1.0, greatest - least)


def _merge_moments(a: Statistics, b: Statistics) -> Statistics:
    """Total sum of squares S = S_a + S_b + (mean_a − mean_b)²·n_a·n_b/n."""
    mean, squares, total = _merge_pooled(a, b)
    difference = _mean_or(b, a) - _mean_or(a, b)
    between = difference**2 * np.divide(a[2] * b[2], total, out=np.zeros_like(total), where=total > 0)
    return mean, squares + between, total


def _merge_pooled(a: Statistics, b: Statistics) -> Statistics:
    """Mean, sum of squares and weight of two parts; a part with weight 0 is ignored."""
    total = a[2] + b[2]
    share = np.divide(b[2], total, out=np.zeros_like(total), where=total > 0)
    mean = _mean_or(a, b) + share * (_mean_or(b, a) - _mean_or(a, b))
    squares = np.where(a[2] > 0, a[1], 0.0) + np.where(b[2] > 0, b[1], 0.0)
    return mean, squares, total


def _mean_or(part: Statistics, other: Statistics) -> FloatArray:
    """Mean of a part, or of the other part where its weight is 0."""
    return np.where(part[2] > 0, part[0], other[0])


def _merge_extremes(a: Statistics, b: Statistics) -> Statistics:
    return np.minimum(a[0], b[0]), np.maximum(a[1], b[1])


# The same statistics of all rows of a CSR matrix, from its entries.


def _of_stored(X: Matrix, rows: IntArray, starts: IntArray, weight: FloatArray) -> FloatArray:
    """Minimum, maximum, mean of the last group of rows and Σ(x − mean)² over all groups, of each column."""
    least, greatest, mean, squares = statistics = np.zeros((4, 1, X.shape[1]))
    stored, ends = StoredRows(X.data, X.indices, X.indptr), np.append(starts, len(rows))
    stored_moments(stored, rows, ends, weight, least[0], greatest[0], mean[0], squares[0])
    return np.asarray(statistics)


def _stored_moments(X: Matrix, rows: IntArray, starts: IntArray, weight: FloatArray) -> Statistics:
    _, _, mean, squares = _of_stored(X, rows, starts, weight)
    return mean, squares, np.full_like(mean, weight[rows].sum())


def _stored_pooled_moments(X: Matrix, rows: IntArray, starts: IntArray, weight: FloatArray) -> Statistics:
    overall, _, total = _stored_moments(X, rows, np.array([0]), weight)
    return overall, _of_stored(X, rows, starts, weight)[3], total


def _stored_extremes(X: Matrix, rows: IntArray, starts: IntArray, weight: FloatArray) -> Statistics:
    least, greatest, _, _ = _of_stored(X, rows, starts, weight)
    return least, greatest


@dataclass(frozen=True)
class NormalisationKind:
    """x → (x − centre) / scale, where ``finish`` turns the ``statistics`` of rows into centre and scale.

    The statistics are those of each query, or with ``merge`` those of all training rows, merged over the
    parts of the data and computed by ``of_stored`` for a CSR matrix; with ``pooled`` they also depend on
    which rows belong to one query.
    """

    statistics: Callable[[FloatArray, IntArray, FloatArray], Statistics]
    finish: Callable[..., tuple[FloatArray, FloatArray]]
    merge: Callable[[Statistics, Statistics], Statistics] | None = None
    of_stored: Callable[[Matrix, IntArray, IntArray, FloatArray], Statistics] | None = None
    pooled: bool = False

    def learn(self, data: Dataset, query_weight: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """Centre and scale of each feature."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            merged = reduce(cast(Any, self.merge), map_parts(data, self._part_statistics, query_weight))
            centre, scale = self.finish(*merged)
        return centre[0], scale[0]

    def _part_statistics(self, data: Dataset, query_weight: FloatArray | None) -> Statistics:
        weight = data.row_weights(query_weight)
        rows: slice | IntArray = slice(None)
        starts = np.array([0])
        if self.pooled:
            rows = rows if data.queries.contiguous else data.queries.order
            starts = data.queries.offsets[:-1]
        if not weight.all() and weight.any():
            rows, starts = _weighted_rows(weight, np.arange(len(weight))[rows], starts)
        if is_sparse(data.X) and weight.any():
            return cast(Any, self.of_stored)(data.X, np.arange(len(weight))[rows], starts, weight)  # type: ignore[no-any-return]

        def block_statistics(_: slice, block: FloatArray) -> Statistics:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                return self.statistics(block[rows], starts, weight[rows])

        blocks = map_column_blocks(block_statistics, data.X)
        return tuple(
            np.hstack(
                [np.broadcast_to(one, block[0].shape) for one, block in zip(statistic, blocks, strict=True)]
            )
            for statistic in zip(*blocks, strict=True)
        )


def _weighted_rows(weight: FloatArray, rows: IntArray, starts: IntArray) -> tuple[IntArray, IntArray]:
    """Rows with positive weight, and the starts of the groups that have such rows."""
    positive = weight[rows] > 0
    sizes = np.add.reduceat(positive, starts, dtype=np.int64)
    return rows[positive], np.concatenate(([0], np.cumsum(sizes[sizes > 0])[:-1]))


NORMALISATIONS: dict[str, NormalisationKind | None] = {
    "none": None,
    "z": NormalisationKind(_moments, _deviation, _merge_moments, _stored_moments),
    "within_z": NormalisationKind(
        _pooled_moments, _deviation, _merge_pooled, _stored_pooled_moments, pooled=True
    ),
    "min_max": NormalisationKind(_extremes, _range, _merge_extremes, _stored_extremes),
    "query_min_max": NormalisationKind(_extremes, _range),
    "query_z": NormalisationKind(_moments, _deviation),
}


AUTO = "auto"  # "none" if the features already have similar scales, else "within_z"
NORMALISE_KINDS = (AUTO, *NORMALISATIONS)


def check_kind(kind: str, allowed: Sequence[str] = NORMALISE_KINDS) -> None:
    if kind not in allowed:
        raise ParameterError("normalise", kind, f"unknown; choose one of {', '.join(allowed)}")


def kind_for(data: Dataset) -> str:
    """The kind that "auto" stands for.

    Features in [0, 1] whose ranges differ at most a thousandfold, such as LETOR's, count as already scaled.
    Others are scaled by "within_z", the deviation within queries, which is what affects rankings.
    """
    scaled = all(map_parts(data, _within_0_and_1))
    return "none" if scaled and not scales_differ(data) else "within_z"


def _within_0_and_1(data: Dataset) -> bool:
    low, high = value_range(data.X)
    return low >= 0.0 and high <= 1.0


@dataclass(frozen=True, repr=False)
class Normalisation(ShortRepr):
    """x → (x − centre) / scale in float64.

    "z" uses the mean and the standard deviation (÷ n) of the training data, "within_z" the mean and the
    standard deviation from the mean of the query, "min_max" the minimum and the range: one of each for each
    of ``features``. "query_z" and "query_min_max" use the documents of the query, all with the same weight,
    and learn nothing; those of :mod:`ranksieve.data.result_lists` use the documents that have a value, and
    the others become 0. A constant feature has scale 1 and becomes 0; for "within_z" the scale is 1 if the
    feature is constant within every query.
    """

    kind: str
    features: tuple[str, ...] = ()
    centre: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if list_scaling(self.kind) is None:
            check_kind(self.kind, tuple(NORMALISATIONS))
        object.__setattr__(self, "features", tuple(str(name) for name in self.features))
        for name in ("centre", "scale"):
            object.__setattr__(self, name, tuple(float(value) for value in getattr(self, name)))
        self._check()

    def _check(self) -> None:
        lengths = {len(self.features), len(self.centre), len(self.scale)}
        if len(lengths) > 1 or (not self.learns and lengths != {0}):
            counts = (
                f"{len(self.centre)} centres and {len(self.scale)} scales for {len(self.features)} features"
            )
            raise DataError(None, None, f"normalisation {self.kind!r}: {counts}")
        if not np.isfinite([*self.centre, *self.scale]).all() or not all(scale > 0 for scale in self.scale):
            reason = f"normalisation {self.kind!r}: a centre or a scale is not a usable number"
            raise DataError(None, None, reason)

    @property
    def learns(self) -> bool:
        """Whether centre and scale come from the training data."""
        kind = NORMALISATIONS.get(self.kind)
        return kind is not None and kind.merge is not None

    @property
    def per_query(self) -> bool:
        """Whether values depend on the other documents of the query."""
        return self.kind != "none" and not self.learns

    def transform(self, values: FloatArray, queries: Queries) -> FloatArray:
        """Normalise a dense float64 array whose columns are ``features``."""
        if list_scaling(self.kind) is not None:
            grouped = scale_lists(self.kind, queries.group(values), queries.query_of_grouped)
            return np.asarray(queries.restore(grouped))
        kind = NORMALISATIONS[self.kind]
        if kind is None:
            return values
        if self.learns:
            with np.errstate(over="ignore"):  # overflow gives infinity
                return np.asarray((values - np.array(self.centre)) / np.array(self.scale))
        grouped = queries.group(values)
        with np.errstate(over="ignore", invalid="ignore"):
            statistics = kind.statistics(grouped, queries.offsets[:-1], np.ones(len(grouped)))
            centre, scale = kind.finish(*statistics)
        if np.isinf(scale).any():
            reason = "a feature is infinite or its range within a query overflows; rescale it"
            raise DataError(None, None, f"normalisation {self.kind!r}: {reason}")
        query = queries.query_of_grouped
        return np.asarray(queries.restore((grouped - centre[query]) / scale[query]))

    def apply(self, data: Dataset) -> Dataset:
        """Normalised data; dense even for a sparse matrix, because 0 does not stay 0."""
        return data if self.kind == "none" else transform_parts(data, self._apply)

    def _apply(self, data: Dataset) -> Dataset:
        if self.learns:
            check_same_features(self.features, data, f"normalisation {self.kind!r}")
        if is_streamed(data.X):
            return self._streamed(data)
        X, queries = np.empty(data.X.shape), data.queries

        def transform(columns: slice, block: FloatArray) -> None:
            X[:, columns] = self._part(columns).transform(block, queries)

        map_column_blocks(transform, data.X)
        return data.replace_features(X)

    def _streamed(self, data: Dataset) -> Dataset:
        """Data that are normalised as they are read."""

        def prepare(some: Sequence[str], values: FloatArray, queries: Queries) -> FloatArray:
            return self.of(some).transform(values, queries)

        names, columns = data.feature_names, np.arange(data.n_features)
        return data.replace_features(
            PreparedMatrix(data.X, names, columns, prepare, data.queries, self.per_query, np.float64)
        )

    def for_learning(self, data: Dataset) -> Dataset:
        """Data with the same score differences as :meth:`apply`, which is all that rankers learn from.

        A sparse matrix stays sparse if centre and scale are learned: x → x / scale, because the centre shifts
        all scores equally. With statistics of each query it becomes dense.
        """
        return data if self.kind == "none" else transform_parts(data, self._for_learning)

    def _for_learning(self, data: Dataset) -> Dataset:
        if not self.learns or not is_sparse(data.X):
            return self._apply(data)
        check_same_features(self.features, data, f"normalisation {self.kind!r}")
        return data.replace_features(divide_columns(data.X, np.array(self.scale)))

    def of(self, features: Sequence[str]) -> Normalisation:
        """Normalisation of some of the features, in this order."""
        index = {name: j for j, name in enumerate(self.features)}
        return self._pick([index[name] for name in features]) if self.features else self

    def updated(self, part: Normalisation) -> Normalisation:
        """Replace centres and scales of some features by those of ``part``, which has the same kind."""
        new = dict(zip(part.features, zip(part.centre, part.scale, strict=True), strict=True))
        current = zip(self.features, self.centre, self.scale, strict=True)
        pairs = [new.get(name, (centre, scale)) for name, centre, scale in current]
        centres, scales = (tuple(pair[k] for pair in pairs) for k in (0, 1))
        return Normalisation(self.kind, self.features, centres, scales)

    def _part(self, columns: slice) -> Normalisation:
        return self._pick(range(*columns.indices(len(self.features)))) if self.features else self

    def _pick(self, columns: Sequence[int]) -> Normalisation:
        centre, scale = (tuple(part[j] for j in columns) for part in (self.centre, self.scale))
        return Normalisation(self.kind, tuple(self.features[j] for j in columns), centre, scale)


NOT_NORMALISED = Normalisation("none")


def learn_normalisation(data: Dataset, kind: str, query_weight: FloatArray | None = None) -> Normalisation:
    """Learn centre and scale of every feature from the training data, if the kind needs them.

    The weight of a row is its document weight × the ``query_weight`` of its query (default 1 each).
    """
    check_kind(kind)
    kind = kind_for(data) if kind == AUTO else kind
    method = NORMALISATIONS[kind]
    if method is None or method.merge is None:
        return Normalisation(kind)
    centre, scale = method.learn(data, query_weight)
    bad = np.flatnonzero(~np.isfinite(centre) | ~np.isfinite(scale))
    if len(bad):
        reason = (
            f"feature {data.feature_names[bad[0]]} cannot be normalised, because a value is missing, "
            "infinite or too large; fill missing values first, or rescale the feature"
        )
        raise DataError(None, None, reason)
    return Normalisation(kind, data.feature_names, tuple(centre.tolist()), tuple(scale.tolist()))
