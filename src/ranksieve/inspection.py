"""What each feature of a data set looks like, and which of them are nearly the same."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from ranksieve._types import FloatArray, IntArray
from ranksieve.data.dataset import Dataset
from ranksieve.data.features import dense_columns
from ranksieve.data.matrix import dense_rows
from ranksieve.data.parts import RemoteRows, in_parts
from ranksieve.data.queries import Queries, few_queries
from ranksieve.errors import DataError
from ranksieve.metrics import Evaluator, parse
from ranksieve.metrics.profiles import Profile

QUANTILES = (0.0, 0.01, 0.25, 0.5, 0.75, 0.99, 1.0)
BINS = 24  # of histograms
ROWS_AT_ONCE = 2**14
MOST_LENGTHS = 12  # ranges of list lengths
MOST_COMPARED = 2000  # features that are compared with each other


@dataclass(frozen=True)
class FeatureFigures:
    """A feature in figures.

    ``missing`` and ``zeros`` are shares of all rows; the quantiles are those of the values that are present
    and finite, None if there is none. ``deviation`` is the standard deviation within queries. ``metric`` is
    that of ranking by this feature alone, upwards (``direction`` 1) or downwards (−1), whichever is better,
    with missing values at the feature's mean; 0 and 0 if it cannot rank or be measured. ``histogram`` counts
    the values between the 1 % and the 99 % quantile, those beyond in the outermost bins.
    """

    name: str
    minimum: float | None
    lower_quartile: float | None
    median: float | None
    upper_quartile: float | None
    maximum: float | None
    deviation: float
    missing: float
    zeros: float
    n_infinite: int
    constant: bool
    constant_within_queries: bool
    metric: float
    direction: int
    histogram: tuple[int, ...]
    histogram_range: tuple[float, float] | None


@dataclass(frozen=True)
class Alike:
    """Features that are nearly the same within queries, and the least |correlation| that joins them."""

    features: tuple[str, ...]
    correlation: float


@dataclass(frozen=True)
class Inspection:
    """All features in figures, groups of features that are nearly the same, and how they were measured.

    ``chance`` and ``ideal`` are the metric of documents in a random and in the best possible order; None if
    the labels are not such that the metric can be measured, and then no feature has one. ``list_lengths``
    counts queries by their number of documents: from, to, and how many queries.
    """

    features: tuple[FeatureFigures, ...]
    alike: tuple[Alike, ...]
    list_lengths: tuple[tuple[int, int, int], ...]
    metric: str
    profile: str
    chance: float | None
    ideal: float | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def inspect_features(
    data: Dataset,
    metric: str = "ndcg@10",
    profile: str | Profile | None = None,
    *,
    least_correlation: float = 0.99,
) -> Inspection:
    """Look at each feature: range, scale, missing values, what it ranks alone, and its near-duplicates.

    Parameters
    ----------
    data : Dataset
        In memory or on disk.
    metric, profile
        What rankings by single features are measured with; default profile: that of the data.
    least_correlation : float
        Features whose values, each less its query's mean, have at least this |correlation| are alike. More
        than 2,000 features are not compared.
    """
    if isinstance(data, RemoteRows):
        reason = "features of data on a cluster cannot be inspected; read some of the rows instead"
        raise DataError(None, None, reason)
    parse(metric)
    evaluator = Evaluator(data, profile)
    shuffled = np.random.default_rng(0).permutation(data.n_docs).astype(np.float64)
    chance, ideal = _means(np.stack([shuffled, data.y], axis=1), evaluator, metric) or (None, None)
    figures = tuple(
        _figures(name, column, data.queries, evaluator, metric)
        for name, column in zip(data.feature_names, dense_columns(data.X), strict=True)
    )
    return Inspection(
        figures,
        _alike(data, figures, least_correlation),
        _list_lengths(data.queries.sizes),
        metric,
        evaluator.profile.name,
        chance,
        ideal,
    )


def _list_lengths(sizes: IntArray) -> tuple[tuple[int, int, int], ...]:
    """(from, to, queries) in ranges of equal width, without those at the end that are empty."""
    first, last = int(sizes.min()), int(sizes.max())
    width = -(-(last - first + 1) // MOST_LENGTHS)
    counts = np.bincount((sizes - first) // width)
    return tuple(
        (first + k * width, first + (k + 1) * width - 1, count) for k, count in enumerate(counts.tolist())
    )


def _figures(
    name: str, column: FloatArray, queries: Queries, evaluator: Evaluator, metric: str
) -> FeatureFigures:
    holes, infinite = np.isnan(column), np.isinf(column)
    present = column[~(holes | infinite)]
    filled = _finite(column, present)
    varies = _varies_within(filled, queries)
    value, direction = _alone(filled, evaluator, metric) if varies else (0.0, 0)
    least, low, lower, median, upper, high, greatest = (
        np.quantile(present, QUANTILES).tolist() if len(present) else [None] * len(QUANTILES)
    )
    return FeatureFigures(
        name,
        minimum=least,
        lower_quartile=lower,
        median=median,
        upper_quartile=upper,
        maximum=greatest,
        deviation=_deviation_within(filled, queries) if varies else 0.0,
        missing=float(holes.mean()),
        zeros=float(np.mean(column == 0)),
        n_infinite=int(infinite.sum()),
        constant=not len(present) or (len(present) == len(column) and least == greatest),
        constant_within_queries=not varies,
        metric=value,
        direction=direction,
        histogram=tuple(_histogram(present, low, high)),
        histogram_range=None if low is None or high is None else (low, high),
    )


def _deviation_within(column: FloatArray, queries: Queries) -> float:
    """The root mean square of the distances from the mean of each query, for values of any size."""
    unit = np.exp2(np.frexp(np.abs(column).max())[1] - 1)  # a power of two: dividing by it is exact
    centred = queries.centred(queries.group(column / unit))
    return float(unit * np.sqrt(np.mean(centred**2)))


def _finite(column: FloatArray, present: FloatArray) -> FloatArray:
    """Missing values at the mean, infinite ones at the extremes, so that the column can rank."""
    if len(present) == len(column):
        return column
    if not len(present):
        return np.zeros(len(column))
    low, high = float(present.min()), float(present.max())
    mean = float(np.clip(present.mean(), low, high))
    return np.nan_to_num(column, nan=mean, posinf=high, neginf=low)


def _varies_within(column: FloatArray, queries: Queries) -> bool:
    grouped, starts = queries.group(column), queries.offsets[:-1]
    return bool(np.any(np.maximum.reduceat(grouped, starts) > np.minimum.reduceat(grouped, starts)))


def _alone(column: FloatArray, evaluator: Evaluator, metric: str) -> tuple[float, int]:
    """The metric of ranking by a column, and by which direction."""
    up, down = _means(np.stack([column, -column], axis=1), evaluator, metric) or (None, None)
    if up is None or down is None:
        return 0.0, 0
    return (up, 1) if up >= down else (down, -1)


def _means(scores: FloatArray, evaluator: Evaluator, metric: str) -> list[float] | None:
    """The metric of each column of scores; None if the labels do not allow to measure it."""
    try:
        return evaluator.evaluate_many(scores, metric).mean(axis=1).tolist()  # type: ignore[no-any-return]
    except ValueError:
        return None


def _histogram(present: FloatArray, low: float | None, high: float | None) -> list[int]:
    if low is None or high is None:
        return []
    if low == high:
        return [len(present)]
    unit = 1.0 if np.isfinite(BINS * (high - low)) else 2.0**32  # a power of two: dividing by it is exact
    counts, _ = np.histogram(np.clip(present, low, high) / unit, BINS, (low / unit, high / unit))
    return counts.tolist()  # type: ignore[no-any-return]


# --- Features that are nearly the same ---------------------------------------------------------------------


def _alike(data: Dataset, figures: tuple[FeatureFigures, ...], least: float) -> tuple[Alike, ...]:
    varying = np.flatnonzero([one.deviation > 0 for one in figures]).astype(np.int64)
    if not 2 <= len(varying) <= MOST_COMPARED:
        return ()
    scale = np.array([figures[j].deviation for j in varying])
    products = np.sum(in_parts(data, partial(_products, columns=varying, scale=scale)), axis=0)
    sizes = np.sqrt(np.outer(np.diag(products), np.diag(products)))
    correlation = np.minimum(np.abs(products) / np.where(sizes > 0, sizes, np.inf), 1.0)
    np.fill_diagonal(correlation, 0.0)
    count, group = connected_components(correlation >= least, directed=False)
    found = []
    for number in range(count):
        members = np.flatnonzero(group == number)
        if len(members) > 1:
            among = correlation[np.ix_(members, members)]
            names = tuple(data.feature_names[varying[j]] for j in members)
            found.append(Alike(names, float(among[among >= least].min())))
    return tuple(sorted(found, key=lambda one: -one.correlation))


def _products(part: Dataset, columns: IntArray, scale: FloatArray) -> FloatArray:
    """Σ z zᵀ of values less the mean of their query, in units of their deviation; 0 where missing."""
    total, queries = np.zeros((len(columns), len(columns))), part.queries
    for first, last in few_queries(queries.offsets, 0, queries.n_queries, ROWS_AT_ONCE):
        begin, end = queries.offsets[[first, last]].tolist()
        starts = queries.offsets[first:last] - begin
        z = np.array(dense_rows(part.X, queries.rows_between(begin, end))[:, columns] / scale)
        z[~np.isfinite(z)] = np.nan
        present = ~np.isnan(z)
        count = np.maximum(np.add.reduceat(present, starts, axis=0, dtype=np.int64), 1)
        means = np.add.reduceat(np.where(present, z, 0.0), starts, axis=0) / count
        z -= np.repeat(means, queries.sizes[first:last], axis=0)
        z[~present] = 0.0
        total += z.T @ z
    return total
