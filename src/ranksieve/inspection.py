"""Statistics of the features of a data set, and groups of near-duplicate features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from ranksieve._types import FloatArray, IntArray, PathLike
from ranksieve._util.short_repr import ShortRepr
from ranksieve.data.dataset import Dataset
from ranksieve.data.features import dense_columns
from ranksieve.data.matrix import dense_rows
from ranksieve.data.parts import RemoteData, map_parts
from ranksieve.data.queries import Queries, query_ranges
from ranksieve.errors import DataError
from ranksieve.metrics import Evaluator, parse
from ranksieve.metrics.profiles import Profile
from ranksieve.show.formats import plural
from ranksieve.show.result import Part, Shown, Table
from ranksieve.show.upwards import report_function

ARROWS = {1: "", -1: " down", 0: ""}
QUANTILES = (0.0, 0.01, 0.25, 0.5, 0.75, 0.99, 1.0)
HISTOGRAM_BINS = 24
PRODUCT_ROWS = 2**14  # rows per matrix product
MAX_LENGTH_RANGES = 12
MAX_CORRELATED_FEATURES = 2000  # with more, features are not compared


@dataclass(frozen=True, repr=False)
class FeatureStatistics(ShortRepr):
    """Statistics of a feature.

    ``missing`` and ``zeros`` are shares of all rows. Quantiles are of the finite values, None if there are
    none. ``deviation`` is the standard deviation within queries. ``metric`` is the metric of ranking by this
    feature alone, in the better of both directions (``direction`` 1: higher values first, −1: lower values
    first), averaged over the orders of equal values, with missing values replaced by the mean; both are 0 if
    the feature is constant within queries or the metric is not defined. ``histogram`` counts values from the
    1 % to the 99 % quantile; values beyond are in the outermost bins.
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
class NearDuplicates:
    """Features that are nearly equal within queries, and the lowest |correlation| that links them."""

    features: tuple[str, ...]
    correlation: float


@dataclass(frozen=True, repr=False)
class Inspection(Shown):
    """Statistics of all features, groups of near-duplicates, and the metric.

    ``chance`` and ``ideal`` are the metric of a random and of the best possible ranking; None if the metric
    is not defined for the labels, in which case no feature has one. ``list_lengths`` has the number of
    queries by number of documents: (from, to, number of queries).
    """

    features: tuple[FeatureStatistics, ...]
    alike: tuple[NearDuplicates, ...]
    list_lengths: tuple[tuple[int, int, int], ...]
    metric: str
    profile: str
    chance: float | None
    ideal: float | None

    def _line(self) -> str:
        best = max(self.features, key=lambda one: one.metric)
        title = self.metric.upper()
        return f"{plural(len(self.features), 'feature')}; best alone: {best.name}, {title} {best.metric:.4f}"

    def shown(self, top: int | None = None) -> Sequence[Part]:
        """One row per feature, sorted by the metric of ranking by it alone."""
        ranked = sorted(self.features, key=lambda one: -one.metric)
        rows = [
            (
                one.name,
                f"{one.metric:.4f}{ARROWS[one.direction]}" if one.direction else "–",
                *(_number(value) for value in (one.minimum, one.median, one.maximum, one.deviation)),
                f"{100 * one.missing:.3g} %",
                f"{100 * one.zeros:.3g} %",
            )
            for one in ranked[:top]
        ]
        title, n_more = self.metric.upper(), len(ranked) - len(rows)
        more = f" The other {n_more} features are not shown." if n_more else ""
        values = reference_values({"chance": self.chance, "ideal": self.ideal})
        heads = ["feature", title, "min", "median", "max", "deviation", "missing", "zeros"]
        return [
            Table(heads, rows),
            f"{title}: ranking by the feature alone, in the better direction, averaged over the orders of "
            f"equal values; {self.profile} profile"
            f"{values}. Deviation: within queries.{more}",
        ]

    def frame_columns(self) -> Mapping[str, Sequence[Any]]:
        """One row per feature, without the histograms."""
        names = [one.name for one in fields(FeatureStatistics) if not one.name.startswith("histogram")]
        return {name: [getattr(one, name) for one in self.features] for name in names}

    def report(self, path: PathLike, data: Dataset) -> None:
        """Write the page that ``ranksieve inspect --report`` writes; ``data`` are those inspected."""
        report_function("calls.report_inspection")(self, path, data)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def reference_values(content: Mapping[str, Any]) -> str:
    """The metric of a random and of the ideal ranking, to end a sentence with."""
    if content["chance"] is None:
        return ", but it cannot be computed for these labels"
    return f"; random ranking {content['chance']:.4f}, ideal ranking {content['ideal']:.4f}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def inspect_features(
    data: Dataset,
    metric: str = "ndcg@10",
    profile: str | Profile | None = None,
    *,
    least_correlation: float = 0.99,
) -> Inspection:
    """Inspect each feature: range, scale, missing values, metric of ranking by it alone, near-duplicates.

    Parameters
    ----------
    data : Dataset
        In memory or on disk.
    metric, profile
        Metric of rankings by single features. Default profile: that of the data.
    least_correlation : float
        Features are near-duplicates if their values minus the mean of the query have at least this
        |correlation|. More than 2,000 features are not compared.
    """
    if isinstance(data, RemoteData):
        reason = "distributed data cannot be inspected; read a part of the data into memory"
        raise DataError(None, None, reason)
    parse(metric)
    evaluator = Evaluator(data, profile, ties="mean")  # values of one feature are often equal
    shuffled = np.random.default_rng(0).permutation(data.n_docs).astype(np.float64)
    chance, ideal = _means(np.stack([shuffled, data.y], axis=1), evaluator, metric) or (None, None)
    features = tuple(
        _statistics(name, column, data.queries, evaluator, metric)
        for name, column in zip(data.feature_names, dense_columns(data.X), strict=True)
    )
    return Inspection(
        features,
        _near_duplicates(data, features, least_correlation),
        _list_lengths(data.queries.sizes),
        metric,
        evaluator.profile.name,
        chance,
        ideal,
    )


def _list_lengths(sizes: IntArray) -> tuple[tuple[int, int, int], ...]:
    """(from, to, number of queries) in ranges of equal width, without empty ranges at the end."""
    first, last = int(sizes.min()), int(sizes.max())
    width = -(-(last - first + 1) // MAX_LENGTH_RANGES)
    counts = np.bincount((sizes - first) // width)
    return tuple(
        (first + k * width, first + (k + 1) * width - 1, count) for k, count in enumerate(counts.tolist())
    )


def _statistics(
    name: str, column: FloatArray, queries: Queries, evaluator: Evaluator, metric: str
) -> FeatureStatistics:
    missing, infinite = np.isnan(column), np.isinf(column)
    present = column[~(missing | infinite)]
    filled = _make_finite(column, present)
    varies = _varies_within(filled, queries)
    value, direction = _alone(filled, evaluator, metric) if varies else (0.0, 0)
    least, low, lower, median, upper, high, greatest = (
        np.quantile(present, QUANTILES).tolist() if len(present) else [None] * len(QUANTILES)
    )
    return FeatureStatistics(
        name,
        minimum=least,
        lower_quartile=lower,
        median=median,
        upper_quartile=upper,
        maximum=greatest,
        deviation=_deviation_within(filled, queries) if varies else 0.0,
        missing=float(missing.mean()),
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
    """Standard deviation from the mean of the query, without overflow."""
    unit = np.exp2(np.frexp(np.abs(column).max())[1] - 1)  # division by a power of two is exact
    centred = queries.centred(queries.group(column / unit))
    return float(unit * np.sqrt(np.mean(centred**2)))


def _make_finite(column: FloatArray, present: FloatArray) -> FloatArray:
    """Replace missing values by the mean and infinite ones by the largest or smallest finite value."""
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
    """As :meth:`Evaluator.alone`; (0, 0) if the metric is not defined for the labels."""
    try:
        return evaluator.alone(column, metric)
    except ValueError:
        return 0.0, 0


def _means(scores: FloatArray, evaluator: Evaluator, metric: str) -> list[float] | None:
    """Mean metric of each column of scores; None if it is not defined for the labels."""
    try:
        return evaluator.evaluate_many(scores, metric).mean(axis=1).tolist()  # type: ignore[no-any-return]
    except ValueError:
        return None


def _histogram(present: FloatArray, low: float | None, high: float | None) -> list[int]:
    if low is None or high is None:
        return []
    if low == high:
        return [len(present)]
    unit = 1.0 if np.isfinite(HISTOGRAM_BINS * (high - low)) else 2.0**32  # exact division
    counts, _ = np.histogram(np.clip(present, low, high) / unit, HISTOGRAM_BINS, (low / unit, high / unit))
    return counts.tolist()  # type: ignore[no-any-return]


def _near_duplicates(
    data: Dataset, features: tuple[FeatureStatistics, ...], least: float
) -> tuple[NearDuplicates, ...]:
    varying = np.flatnonzero([one.deviation > 0 for one in features]).astype(np.int64)
    if not 2 <= len(varying) <= MAX_CORRELATED_FEATURES:
        return ()
    scale = np.array([features[j].deviation for j in varying])
    products = np.sum(map_parts(data, partial(_products, columns=varying, scale=scale)), axis=0)
    norms = np.sqrt(np.outer(np.diag(products), np.diag(products)))
    correlation = np.minimum(np.abs(products) / np.where(norms > 0, norms, np.inf), 1.0)
    np.fill_diagonal(correlation, 0.0)
    count, group = connected_components(correlation >= least, directed=False)
    groups = []
    for number in range(count):
        members = np.flatnonzero(group == number)
        if len(members) > 1:
            within_group = correlation[np.ix_(members, members)]
            names = tuple(data.feature_names[varying[j]] for j in members)
            groups.append(NearDuplicates(names, float(within_group[within_group >= least].min())))
    return tuple(sorted(groups, key=lambda one: -one.correlation))


def _products(part: Dataset, columns: IntArray, scale: FloatArray) -> FloatArray:
    """Σ z zᵀ, z = (x − mean of the query) / scale; 0 if x is missing or infinite."""
    total, queries = np.zeros((len(columns), len(columns))), part.queries
    for first, last in query_ranges(queries.offsets, 0, queries.n_queries, PRODUCT_ROWS):
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
