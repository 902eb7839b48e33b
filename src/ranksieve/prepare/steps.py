"""Steps of features: thresholds learned from the training data, and the columns they make."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ranksieve._types import FloatArray, IntArray
from ranksieve._util.short_repr import ShortRepr
from ranksieve.data.dataset import Dataset, check_finite
from ranksieve.data.features import map_column_blocks
from ranksieve.data.inputs import check_labels
from ranksieve.data.steps import MISSING, StepColumns, StepMatrix, codes_of
from ranksieve.errors import DataError
from ranksieve.prepare.missing import check_same_features

N_THRESHOLDS = 32  # most thresholds of a feature, at most MAX_THRESHOLDS
SPREADING_ROUNDS = 4
LINES, CURVES = "linear", "curves"
SHAPES = (LINES, CURVES)
AUTO = "auto"  # curves if they are better


@dataclass(frozen=True, repr=False)
class Steps(ShortRepr):
    """Thresholds of each feature, ascending, and whether it has a level for missing values.

    The columns are 1[x ≥ t] for each threshold t of the first feature, then 1[x is missing] if a training
    value is missing, then those of the next feature. A missing value is below every threshold, so a missing
    value of a feature without missing training values contributes 0.
    """

    features: tuple[str, ...]
    thresholds: tuple[tuple[float, ...], ...]
    missing: tuple[bool, ...]

    @cached_property
    def columns(self) -> StepColumns:
        slots = [
            [*range(1, len(thresholds) + 1), *([MISSING] if missing else [])]
            for thresholds, missing in zip(self.thresholds, self.missing, strict=True)
        ]
        feature = np.repeat(np.arange(len(slots)), [len(one) for one in slots])
        slot = np.array([slot for one in slots for slot in one], dtype=np.int64)
        return StepColumns(feature, slot, self.features)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(
            name
            for feature, thresholds, missing in zip(self.features, self.thresholds, self.missing, strict=True)
            for name in (
                *(step_name(feature, threshold) for threshold in thresholds),
                *([missing_name(feature)] if missing else []),
            )
        )

    def apply(self, data: Dataset) -> Dataset:
        """The same rows with the step columns as features."""
        check_same_features(self.features, data, "the steps")
        check_finite(data, allow_missing=True)
        codes = np.empty((data.n_features, data.n_docs), dtype=np.uint8)

        def code(columns: slice, block: FloatArray) -> None:
            for j, values in zip(range(*columns.indices(data.n_features)), block.T, strict=True):
                codes[j] = codes_of(values, np.array(self.thresholds[j]))

        map_column_blocks(code, data.X)
        return data.replace_features(StepMatrix(codes, self.columns), self.names)

    def stated_weights(self, weights: FloatArray) -> dict[str, float]:
        """ℓ1 weights of the columns by feature, and by column where they differ from the feature's first."""
        feature = self.columns.feature
        of_columns = list(zip(feature.tolist(), self.names, weights.tolist(), strict=True))
        stated = {self.features[j]: weight for j, _, weight in reversed(of_columns)}
        return stated | {name: weight for j, name, weight in of_columns if weight != stated[self.features[j]]}

    def used(self, w: FloatArray) -> IntArray:
        """Features with a nonzero weight, ascending."""
        return self.columns.used(w)


def step_name(feature: str, threshold: float) -> str:
    """Name of the column 1[x ≥ threshold]."""
    return f"{feature} ≥ {threshold!r}"


def missing_name(feature: str) -> str:
    """Name of the column 1[x is missing]."""
    return f"{feature} is missing"


def learn_steps(data: Dataset, query_weight: FloatArray | None = None) -> Steps:
    """Learn thresholds at quantiles of the training values, at most ``N_THRESHOLDS`` per feature.

    The weight of a row is its document weight × the ``query_weight`` of its query (default 1 each).
    """
    check_finite(data, allow_missing=True)
    check_labels(data.y)
    weight = data.row_weights(query_weight)

    def learn(_: slice, block: FloatArray) -> list[tuple[tuple[float, ...], bool]]:
        return [(thresholds_of(values, weight), _partly_missing(values)) for values in block.T]

    learned = [one for part in map_column_blocks(learn, data.X) for one in part]
    thresholds, missing = zip(*learned, strict=True)
    steps = Steps(data.feature_names, thresholds, missing)
    if not steps.names:
        raise DataError(
            None, None, "every feature has the same value in all rows, as float32, so none can be used"
        )
    return steps


def _partly_missing(values: FloatArray) -> bool:
    return 0 < int(np.count_nonzero(np.isnan(values))) < len(values)


def thresholds_of(values: FloatArray, weight: FloatArray, most: int | None = None) -> tuple[float, ...]:
    """At most ``most`` thresholds between neighbouring distinct values, with about equal weight between them.

    A value that outweighs the share of a step is given a step of its own, and the others share the rest.
    Values that float32 does not distinguish are not separated.
    """
    present = ~np.isnan(values)
    distinct, index = np.unique(values[present], return_inverse=True)
    mass = np.bincount(index, weight[present], minlength=len(distinct))
    n_steps = (N_THRESHOLDS if most is None else most) + 1
    below = np.arange(len(distinct) - 1)
    if len(distinct) > n_steps:
        for _ in range(SPREADING_ROUNDS):
            mass = np.minimum(mass, mass.sum() / n_steps)
        total = np.cumsum(mass)
        targets = total[-1] * np.arange(1, n_steps) / n_steps
        below = np.unique(np.minimum(np.searchsorted(total, targets), len(distinct) - 2))
    pairs = zip(distinct[below].tolist(), distinct[below + 1].tolist(), strict=True)
    return tuple(t for low, high in pairs if (t := threshold_between(low, high)) is not None)


def threshold_between(low: float, high: float) -> float | None:
    """A short number t with low < t ≤ high, also after all three are rounded to float32; None if impossible.

    It is halfway if that is possible.
    """
    with np.errstate(over="ignore", under="ignore"):
        low32, middle, high32 = (np.float32(x) for x in (low, 0.5 * low + 0.5 * high, high))
        if low32 == high32:
            return None
        short = float(str(middle))
        if low < short <= high and low32 < np.float32(short) <= high32:
            return short
    return high
