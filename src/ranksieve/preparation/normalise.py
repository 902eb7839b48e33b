"""Bring features to one scale: learned on the training data, or within each query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ranksieve._types import FloatArray, IntArray
from ranksieve.data.dataset import Dataset
from ranksieve.data.matrix import column_blocks, divided_columns, is_sparse, is_streamed, value_range
from ranksieve.data.queries import Queries
from ranksieve.preparation.missing import check_same_features
from ranksieve.preparation.scales import scales_differ
from ranksieve.preparation.streamed import PreparedMatrix

Statistics = Callable[[FloatArray, IntArray, FloatArray], tuple[FloatArray, FloatArray]]


def _moments(
    values: FloatArray, starts: IntArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean and Σ(x − mean)² of each group of rows, and how many rows it counts as; (x, 0) where all are x.

    ``weight`` says as how many rows each counts.
    """
    share = weight[:, None]
    count = np.add.reduceat(share, starts)
    least, greatest = _extremes(values, starts)
    mean = np.add.reduceat(share * values, starts) / count
    from_mean = values - np.repeat(mean, np.diff(starts, append=len(values)), axis=0)
    squares = np.add.reduceat(share * from_mean**2, starts)
    constant = (least == greatest) | (squares == 0)  # rounding makes the mean of equal values differ
    return np.where(constant, least, mean), np.where(constant, 0.0, squares), count


def _mean_and_deviation(
    values: FloatArray, starts: IntArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation √(Σ(x − mean)²/n) of each group of rows; (x, 1) where all are x."""
    mean, squares, count = _moments(values, starts, weight)
    deviation = np.sqrt(squares / count)
    return mean, np.where(deviation == 0, 1.0, deviation)


def _mean_and_pooled_deviation(
    values: FloatArray, starts: IntArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean of all rows and √(Σ(x − mean of its group)²/n) over all; scale 1 where every group is constant."""
    overall, _, count = _moments(values, np.array([0]), weight)
    deviation = np.sqrt(np.sum(_moments(values, starts, weight)[1], axis=0, keepdims=True) / count)
    return overall, np.where(deviation == 0, 1.0, deviation)


def _least_and_range(
    values: FloatArray, starts: IntArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Least value and range of each group of rows, whatever they weigh; (x, 1) where all are x."""
    least, greatest = _extremes(values, starts)
    return least, np.where(least == greatest, 1.0, greatest - least)


def _extremes(values: FloatArray, starts: IntArray) -> tuple[FloatArray, FloatArray]:
    return np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)


@dataclass(frozen=True)
class Kind:
    """x → (x − centre) / scale, where ``statistics`` gives centre and scale of all rows or of each query.

    With ``pooled`` they are of all rows, but the statistics see which rows belong to one query.
    """

    statistics: Statistics | None = None
    per_query: bool = False
    pooled: bool = False

    @property
    def learns(self) -> bool:
        """Whether centre and scale come from the training data."""
        return self.statistics is not None and not self.per_query


NORMALISATIONS: dict[str, Kind] = {
    "none": Kind(),
    "z": Kind(_mean_and_deviation),
    "within_z": Kind(_mean_and_pooled_deviation, pooled=True),
    "min_max": Kind(_least_and_range),
    "query_min_max": Kind(_least_and_range, per_query=True),
    "query_z": Kind(_mean_and_deviation, per_query=True),
}


AUTO = "auto"  # what the data need: nothing if they are on one scale already, else "within_z"
NORMALISE = (AUTO, *NORMALISATIONS)


def check_kind(kind: str, known: Sequence[str] = NORMALISE) -> None:
    """Refuse a kind that is not in the table."""
    if kind not in known:
        raise ValueError(f"normalise={kind!r} is unknown; choose one of {', '.join(known)}")


def kind_for(data: Dataset) -> str:
    """The kind that "auto" stands for.

    Features of [0, 1] whose ranges differ at most a thousandfold, as LETOR's, have been scaled before; others
    are brought to one scale by "within_z": by the deviations that rankings are made of.
    """
    low, high = value_range(data.X)
    scaled = low >= 0.0 and high <= 1.0
    return "none" if scaled and not scales_differ(data) else "within_z"


@dataclass(frozen=True)
class Normalisation:
    """x → (x − centre) / scale in float64.

    "z" takes the mean and the standard deviation (÷ n) of the training data, "within_z" the mean and the
    deviation of documents from the mean of their query, "min_max" the least value and the range: one of each
    for each of ``features``. "query_z" and "query_min_max" take those of the query's own documents and learn
    nothing. What is constant has scale 1, so it becomes 0; for "within_z" constant within every query is
    enough for scale 1.
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
            raise ValueError(
                f"normalisation {self.kind!r} has {len(self.centre)} centres and {len(self.scale)} scales "
                f"for {len(self.features)} features"
            )
        if not np.isfinite([*self.centre, *self.scale]).all() or not all(scale > 0 for scale in self.scale):
            raise ValueError(
                f"normalisation {self.kind!r} has a centre or a scale that is not a usable number"
            )

    @property
    def learns(self) -> bool:
        """Whether centre and scale come from the training data."""
        return NORMALISATIONS[self.kind].learns

    @property
    def per_query(self) -> bool:
        """Whether it needs the query of each row, and all documents of a query together."""
        return NORMALISATIONS[self.kind].per_query

    def transform(self, values: FloatArray, queries: Queries) -> FloatArray:
        """Normalised values of a dense float64 array whose columns are ``features``."""
        kind = NORMALISATIONS[self.kind]
        if kind.statistics is None:
            return values
        if not kind.per_query:
            return np.asarray((values - np.array(self.centre)) / np.array(self.scale))
        grouped = queries.group(values)
        with np.errstate(over="ignore", invalid="ignore"):
            centre, scale = kind.statistics(grouped, queries.offsets[:-1], np.ones(len(grouped)))
        if np.isinf(scale).any():
            raise ValueError(
                f"normalisation {self.kind!r} cannot scale a feature that is infinite or whose values within "
                "a query are too far apart; rescale the feature"
            )
        query = queries.query_of_grouped
        return np.asarray(queries.restore((grouped - centre[query]) / scale[query]))

    def apply(self, data: Dataset) -> Dataset:
        """The data normalised; the result is dense also for a sparse matrix, because 0 does not stay 0."""
        if self.kind == "none":
            return data
        if self.learns:
            check_same_features(self.features, data, f"normalisation {self.kind!r}")
        if is_streamed(data.X):
            return self._streamed(data)
        X = np.empty(data.X.shape)
        for columns, block in column_blocks(data.X):
            X[:, columns] = self._part(columns).transform(block, data.queries)
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
        if not self.learns or not is_sparse(data.X):
            return self.apply(data)
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


def learn_normalisation(data: Dataset, kind: str, row_weight: FloatArray | None = None) -> Normalisation:
    """Learn centre and scale of every feature of the training data, as far as the kind needs them.

    ``row_weight`` says as how many documents each counts (1 without).
    """
    check_kind(kind)
    kind = kind_for(data) if kind == AUTO else kind
    statistics = NORMALISATIONS[kind].statistics
    if statistics is None or not NORMALISATIONS[kind].learns:
        return Normalisation(kind)
    weight = np.ones(data.n_docs) if row_weight is None else row_weight
    rows: slice | IntArray = slice(None)
    starts = np.array([0])
    if NORMALISATIONS[kind].pooled:
        rows, starts = data.queries.order, data.queries.offsets[:-1]
    with np.errstate(over="ignore", invalid="ignore"):
        found = (statistics(block[rows], starts, weight[rows]) for _, block in column_blocks(data.X))
        parts = [np.vstack(centre_and_scale) for centre_and_scale in found]
    centre, scale = np.hstack(parts)
    _check_learned(data, centre, scale)
    return Normalisation(kind, data.feature_names, tuple(centre.tolist()), tuple(scale.tolist()))


def _check_learned(data: Dataset, centre: FloatArray, scale: FloatArray) -> None:
    bad = np.flatnonzero(~np.isfinite(centre) | ~np.isfinite(scale))
    if len(bad):
        raise ValueError(
            f"feature {data.feature_names[bad[0]]} cannot be normalised, because a value is missing, "
            "infinite or too large; fill missing values first, or rescale the feature"
        )
