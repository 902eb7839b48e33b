"""The objective of features on disk: what is proven small is not read."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve.losses.base import ScoreValue
from ranksieve.objective.base import ROUNDING, Objective, Point

NOWHERE = ScoreValue(np.nan, np.empty(0))  # in place of what takes memory
SHARE = 4  # a gradient is read whole if more than one entry in so many is needed
WORTHWHILE = 4  # whole gradients after which the bounds of others are worth a pass over the data


@dataclass(frozen=True, eq=False)
class Bounded:
    """A gradient at one point: entries that were ``read``, and numbers that the others do not exceed."""

    at: ScoreValue
    values: FloatArray
    read: BoolArray


class StreamedObjective(Objective):
    """An objective of features on disk, which reads only those entries of a gradient that may be large.

    The Hessian is nowhere larger than at w = 0, so from one point to another, δ away,
    |g_j′ − g_j| ≤ √(H_jj(0) · ⟨g′ − g, δ⟩), and the last product comes from scores. So a whole gradient
    bounds those that follow, until one entry in four may have come too near what it must stay below.
    """

    _whole: tuple[Point, FloatArray] | None = None  # the last whole gradient, after where it is
    _bounded: Bounded | None = None  # the latest one that is not whole
    _deviations: FloatArray | None = None  # √H_jj(0)
    _n_whole = 0

    def gradient_where_large(self, point: Point, least: FloatArray) -> FloatArray:
        known = self._gradient
        if known is not None and known[0] is point.at:
            return known[1].copy()
        bounded = self._bounded if self._bounded and self._bounded.at is point.at else self._bounds(point)
        if bounded is not None:
            needed = bounded.read | (point.w != 0) | (np.abs(bounded.values) >= least)
            if SHARE * np.count_nonzero(needed) <= self.n_features:
                self._bounded = self._read(bounded, np.flatnonzero(needed & ~bounded.read))
                return self._bounded.values.copy()
        g = self.gradient(point)
        self._whole, self._n_whole = (replace(point, at=NOWHERE), g), self._n_whole + 1
        return g

    def restricted(self, columns: IntArray) -> Objective:
        part = super().restricted(columns)
        part.__dict__ |= {"_whole": None, "_bounded": None, "_deviations": None, "_n_whole": 0}
        return part

    def _read(self, bounded: Bounded, columns: IntArray) -> Bounded:
        """With some more entries read."""
        if not len(columns):
            return bounded
        g, values, read = bounded.at.gradient, bounded.values.copy(), bounded.read.copy()
        found = self.features.transposed_columns(self.loss.queries.restore(g), columns)
        values[columns] = np.where(self.varies[columns], found / self.loss.normaliser, 0.0)
        read[columns] = True
        return Bounded(bounded.at, values, read)

    def _bounds(self, point: Point) -> Bounded | None:
        """What is known of a gradient before it is read; None as long as that is too little."""
        if "largest_at_zero" not in self.loss.offers or self._whole is None or self._n_whole < WORTHWHILE:
            return None
        if self._deviations is None:
            self._deviations = np.sqrt(self.curvatures(self.at_zero))
        there, g = self._whole
        slopes = self.slope_along(point, point.scores - there.scores), float(g @ (point.w - there.w))
        rise = slopes[0] - slopes[1] + ROUNDING * (abs(slopes[0]) + abs(slopes[1]))
        bounds = g + np.where(g < 0, -1.0, 1.0) * self._deviations * np.sqrt(max(0.0, rise))
        return Bounded(point.at, np.where(self.varies, bounds, 0.0), np.zeros(len(g), dtype=bool))
