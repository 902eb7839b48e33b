"""Scales of features: normalisation, and warnings where a penalty cannot treat features alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias, cast

import numpy as np

from ranksieve._parallel import split_blocks
from ranksieve._types import FloatArray, IntArray
from ranksieve.data.dataset import Dataset
from ranksieve.data.features import map_column_blocks
from ranksieve.data.inputs import check_features, check_labels
from ranksieve.data.matrix import divided_columns, is_sparse, is_streamed, spread_and_largest, value_range
from ranksieve.data.parts import changed, in_parts
from ranksieve.data.queries import Queries
from ranksieve.errors import DataError, ParameterError, warn_caller
from ranksieve.prepare.missing import PreparedMatrix, check_same_features

TOO_DIFFERENT = 1000.0  # times the smallest scale


class ScaleWarning(UserWarning):
    """Features have very different scales and are not normalised."""


def warn_of_scales(data: Dataset) -> None:
    """Warn if scales differ more than a thousandfold, naming the features of the largest and the smallest.

    The scale of a feature is its largest range within a query: what differences of scores are made of, and
    for a flag that is rarely set the same as for one that is often set, which a deviation would not be.
    """
    extremes = _extremes_of_blocks(data)
    if extremes is None:
        return
    spread, large, small = extremes
    warn_caller(
        f"the scales of features differ by a factor of {spread[large] / spread[small]:.2g}: within a query "
        f"{data.feature_names[large]} ranges over {spread[large]:.3g}, {data.feature_names[small]} over "
        f"{spread[small]:.3g}; a penalty on weights then prefers features of large scale, because they need "
        "small weights; bring them to one scale with `normalise='auto'`",
        ScaleWarning,
    )


def check_scales(data: Dataset) -> None:
    """Refuse labels or a feature too large to learn from, and a feature that varies too little."""
    check_labels(np.ravel(in_parts(data, _ends_of_labels)))
    spread, largest = np.max(in_parts(data, _spread_and_largest), axis=0)
    check_features(spread, largest, data.feature_names)


def scales_differ(data: Dataset) -> bool:
    """Whether scales differ more than a thousandfold."""
    return _extremes_of_blocks(data) is not None


def _extremes_of_blocks(data: Dataset) -> tuple[FloatArray, int, int] | None:
    """(scales, the feature with the largest, the one with the smallest) if these differ too much."""
    spread = np.max(in_parts(data, _spread_and_largest), axis=0)[0]
    varying = np.flatnonzero(spread > 0)
    if not len(varying):
        return None
    large, small = varying[np.argmax(spread[varying])], varying[np.argmin(spread[varying])]
    return (spread, int(large), int(small)) if spread[large] > TOO_DIFFERENT * spread[small] else None


def _spread_and_largest(data: Dataset) -> FloatArray:
    """The largest range of each feature within a query, and its largest |x|."""
    return np.array(spread_and_largest(data.X, data.queries, split_blocks(data.queries.offsets)))


def _ends_of_labels(data: Dataset) -> FloatArray:
    return np.array([data.y.min(), data.y.max()])


# Statistics of groups of rows, found in each part of the data, merged, and made centre and scale.

Found: TypeAlias = tuple[FloatArray, ...]
"""What was found in some rows: arrays with one row per group and one column per feature."""


def _moments(values: FloatArray, starts: IntArray, weight: FloatArray) -> Found:
    """Mean and Σ(x − mean)² of each group of rows, and how many rows it counts as; (x, 0) where all are x.

    ``weight`` says as how many rows each counts.
    """
    share = weight[:, None]
    count = np.add.reduceat(share, starts)
    least, greatest = _extremes(values, starts, weight)
    mean = np.add.reduceat(share * values, starts) / count
    from_mean = values - np.repeat(mean, np.diff(starts, append=len(values)), axis=0)
    squares = np.add.reduceat(share * from_mean**2, starts)
    constant = (least == greatest) | (squares == 0)  # rounding makes the mean of equal values differ
    return np.where(constant, least, mean), np.where(constant, 0.0, squares), count


def _pooled_moments(values: FloatArray, starts: IntArray, weight: FloatArray) -> Found:
    """Mean of all rows, Σ(x − mean of its group)² over all, and how many rows they count as."""
    overall, _, count = _moments(values, np.array([0]), weight)
    return overall, np.sum(_moments(values, starts, weight)[1], axis=0, keepdims=True), count


def _extremes(values: FloatArray, starts: IntArray, weight: FloatArray) -> Found:
    """Least and greatest value of each group of rows, whatever they weigh."""
    return np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)


def _deviation(mean: FloatArray, squares: FloatArray, count: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation √(Σ(x − mean)²/n); (x, 1) where all are x."""
    deviation = np.sqrt(squares / count)
    return mean, np.where(deviation == 0, 1.0, deviation)


def _range(least: FloatArray, greatest: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Least value and range; (x, 1) where all are x."""
    return least, np.where(least == greatest, 1.0, greatest - least)


def _merged_moments(a: Found, b: Found) -> Found:
    """Σ(x − mean)² of both is that of each and, for the distance of the means, n_a·n_b/n times its square."""
    mean, squares, count = _merged_pooled(a, b)
    apart = _mean_or(b, a) - _mean_or(a, b)
    between = apart**2 * np.divide(a[2] * b[2], count, out=np.zeros_like(count), where=count > 0)
    return mean, squares + between, count


def _merged_pooled(a: Found, b: Found) -> Found:
    """Of two parts the mean, the sum of squares and the weight; a part of weight 0 says nothing."""
    count = a[2] + b[2]
    share = np.divide(b[2], count, out=np.zeros_like(count), where=count > 0)
    mean = _mean_or(a, b) + share * (_mean_or(b, a) - _mean_or(a, b))
    squares = np.where(a[2] > 0, a[1], 0.0) + np.where(b[2] > 0, b[1], 0.0)
    return mean, squares, count


def _mean_or(part: Found, other: Found) -> FloatArray:
    """The mean of a part, of the other where it weighs nothing."""
    return np.where(part[2] > 0, part[0], other[0])


def _merged_extremes(a: Found, b: Found) -> Found:
    return np.minimum(a[0], b[0]), np.maximum(a[1], b[1])


@dataclass(frozen=True)
class Kind:
    """x → (x − centre) / scale, where ``finish`` makes centre and scale of what ``find`` finds in rows.

    They come from each query's own rows, or with ``merge`` from all rows of the training data, part by part;
    with ``pooled`` the statistics see which of these belong to one query.
    """

    find: Callable[[FloatArray, IntArray, FloatArray], Found]
    finish: Callable[..., tuple[FloatArray, FloatArray]]
    merge: Callable[[Found, Found], Found] | None = None
    pooled: bool = False

    def learn(self, data: Dataset, query_weight: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """Centre and scale of each feature."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            found = reduce(cast(Any, self.merge), in_parts(data, self._of_part, query_weight))
            centre, scale = self.finish(*found)
        return centre[0], scale[0]

    def _of_part(self, data: Dataset, query_weight: FloatArray | None) -> Found:
        weight = data.row_weights(query_weight)
        rows: slice | IntArray = slice(None)
        starts = np.array([0])
        if self.pooled:
            rows = rows if data.queries.contiguous else data.queries.order
            starts = data.queries.offsets[:-1]
        if not weight.all() and weight.any():
            rows, starts = _counted_rows(weight, np.arange(len(weight))[rows], starts)

        def find(_: slice, block: FloatArray) -> Found:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                return self.find(block[rows], starts, weight[rows])

        found = map_column_blocks(find, data.X)
        return tuple(
            np.hstack(
                [np.broadcast_to(one, block[0].shape) for one, block in zip(column, found, strict=True)]
            )
            for column in zip(*found, strict=True)
        )


def _counted_rows(weight: FloatArray, rows: IntArray, starts: IntArray) -> tuple[IntArray, IntArray]:
    """The rows of positive weight, and where the groups that have any begin among them."""
    counted = weight[rows] > 0
    kept = np.add.reduceat(counted, starts, dtype=np.int64)
    return rows[counted], np.concatenate(([0], np.cumsum(kept[kept > 0])[:-1]))


NORMALISATIONS: dict[str, Kind | None] = {
    "none": None,
    "z": Kind(_moments, _deviation, _merged_moments),
    "within_z": Kind(_pooled_moments, _deviation, _merged_pooled, pooled=True),
    "min_max": Kind(_extremes, _range, _merged_extremes),
    "query_min_max": Kind(_extremes, _range),
    "query_z": Kind(_moments, _deviation),
}


AUTO = "auto"  # what the data need: nothing if they are on one scale already, else "within_z"
NORMALISE = (AUTO, *NORMALISATIONS)


def check_kind(kind: str, known: Sequence[str] = NORMALISE) -> None:
    if kind not in known:
        raise ParameterError("normalise", kind, f"unknown; choose one of {', '.join(known)}")


def kind_for(data: Dataset) -> str:
    """The kind that "auto" stands for.

    Features of [0, 1] whose ranges differ at most a thousandfold, as LETOR's, have been scaled before; others
    are brought to one scale by "within_z": by the deviations that rankings are made of.
    """
    scaled = all(in_parts(data, _within_0_and_1))
    return "none" if scaled and not scales_differ(data) else "within_z"


def _within_0_and_1(data: Dataset) -> bool:
    low, high = value_range(data.X)
    return low >= 0.0 and high <= 1.0


@dataclass(frozen=True)
class Normalisation:
    """x → (x − centre) / scale in float64.

    "z" takes the mean and the standard deviation (÷ n) of the training data, "within_z" the mean and the
    deviation of documents from the mean of their query, "min_max" the least value and the range: one of each
    for each of ``features``. "query_z" and "query_min_max" take those of the query's own documents, whatever
    these weigh, and learn nothing. What is constant has scale 1, so it becomes 0; for "within_z" constant
    within every query is enough for scale 1.
    """

    kind: str
    features: tuple[str, ...] = ()
    centre: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()

    def __post_init__(self) -> None:
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
        kind = NORMALISATIONS[self.kind]
        return kind is not None and kind.merge is not None

    @property
    def per_query(self) -> bool:
        """Whether it needs the query of each row, and all documents of a query together."""
        return self.kind != "none" and not self.learns

    def transform(self, values: FloatArray, queries: Queries) -> FloatArray:
        """Normalised values of a dense float64 array whose columns are ``features``."""
        kind = NORMALISATIONS[self.kind]
        if kind is None:
            return values
        if self.learns:
            with np.errstate(over="ignore"):  # what is too large for a number becomes infinite
                return np.asarray((values - np.array(self.centre)) / np.array(self.scale))
        grouped = queries.group(values)
        with np.errstate(over="ignore", invalid="ignore"):
            found = kind.find(grouped, queries.offsets[:-1], np.ones(len(grouped)))
            centre, scale = kind.finish(*found)
        if np.isinf(scale).any():
            reason = "a feature is infinite or its values within a query are too far apart; rescale it"
            raise DataError(None, None, f"normalisation {self.kind!r}: {reason}")
        query = queries.query_of_grouped
        return np.asarray(queries.restore((grouped - centre[query]) / scale[query]))

    def apply(self, data: Dataset) -> Dataset:
        """The data normalised; the result is dense also for a sparse matrix, because 0 does not stay 0."""
        return data if self.kind == "none" else changed(data, self._apply)

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
        """The data normalised as they are read."""

        def prepare(some: Sequence[str], values: FloatArray, queries: Queries) -> FloatArray:
            return self.of(some).transform(values, queries)

        names, columns = data.feature_names, np.arange(data.n_features)
        return data.replace_features(
            PreparedMatrix(data.X, names, columns, prepare, data.queries, self.per_query, np.float64)
        )

    def for_learning(self, data: Dataset) -> Dataset:
        """Data with the score differences of :meth:`apply`, which are all that rankers learn from.

        A sparse matrix stays sparse if the kind works column by column: x → x / scale, because a centre moves
        all documents alike. Within queries it becomes dense.
        """
        return data if self.kind == "none" else changed(data, self._for_learning)

    def _for_learning(self, data: Dataset) -> Dataset:
        if not self.learns or not is_sparse(data.X):
            return self._apply(data)
        check_same_features(self.features, data, f"normalisation {self.kind!r}")
        return data.replace_features(divided_columns(data.X, np.array(self.scale)))

    def of(self, features: Sequence[str]) -> Normalisation:
        """The normalisation of some of the features, in the order given."""
        place = {name: j for j, name in enumerate(self.features)}
        return self._pick([place[name] for name in features]) if self.features else self

    def updated(self, part: Normalisation) -> Normalisation:
        """This normalisation, with the centres and scales that another one of its kind has."""
        known = dict(zip(part.features, zip(part.centre, part.scale, strict=True), strict=True))
        own = zip(self.features, self.centre, self.scale, strict=True)
        pairs = [known.get(name, (centre, scale)) for name, centre, scale in own]
        centres, scales = (tuple(pair[k] for pair in pairs) for k in (0, 1))
        return Normalisation(self.kind, self.features, centres, scales)

    def _part(self, columns: slice) -> Normalisation:
        return self._pick(range(*columns.indices(len(self.features)))) if self.features else self

    def _pick(self, places: Sequence[int]) -> Normalisation:
        centre, scale = (tuple(part[j] for j in places) for part in (self.centre, self.scale))
        return Normalisation(self.kind, tuple(self.features[j] for j in places), centre, scale)


NOT_NORMALISED = Normalisation("none")


def learn_normalisation(data: Dataset, kind: str, query_weight: FloatArray | None = None) -> Normalisation:
    """Learn centre and scale of every feature of the training data, as far as the kind needs them.

    A row counts as often as its document's weight times ``query_weight`` of its query says (each 1 without).
    """
    check_kind(kind)
    kind = kind_for(data) if kind == AUTO else kind
    way = NORMALISATIONS[kind]
    if way is None or way.merge is None:
        return Normalisation(kind)
    centre, scale = way.learn(data, query_weight)
    bad = np.flatnonzero(~np.isfinite(centre) | ~np.isfinite(scale))
    if len(bad):
        reason = (
            f"feature {data.feature_names[bad[0]]} cannot be normalised, because a value is missing, "
            "infinite or too large; fill missing values first, or rescale the feature"
        )
        raise DataError(None, None, reason)
    return Normalisation(kind, data.feature_names, tuple(centre.tolist()), tuple(scale.tolist()))
