"""What each query gains or loses against a baseline, and whether that is more than noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksieve._types import AnyArray, FloatArray
from ranksieve.significance import paired_t, randomisation

LEVEL = 0.95
WITHIN_NOISE = "within noise"
ROUNDING = 1e-9  # a smaller difference is a tie


@dataclass(frozen=True)
class Difference:
    """ours − theirs over queries: mean with its t-interval at 95 %, wins, ties, losses, p-values.

    ``p_t`` and ``p_randomisation`` are two-sided; those that end in ``_greater`` are one-sided, as in the
    papers: is ours better?
    """

    mean: float
    low: float
    high: float
    wins: int
    ties: int
    losses: int
    p_t: float
    p_randomisation: float
    p_t_greater: float
    p_randomisation_greater: float

    @property
    def n_queries(self) -> int:
        return self.wins + self.ties + self.losses

    @property
    def verdict(self) -> str:
        """Whether the interval holds 0."""
        if self.low <= 0.0 <= self.high:
            return WITHIN_NOISE
        return "significantly better" if self.mean > 0 else "significantly worse"


@dataclass(frozen=True, eq=False)
class Gains:
    """Values of one metric, query by query: of the baseline, and of methods by name (title, values).

    ``guided`` tells that the methods were chosen on these queries, which favours them.
    """

    metric: str
    where: str
    baseline: str
    query_ids: Sequence[Any]
    theirs: FloatArray
    ours: Mapping[str, tuple[str, FloatArray]]
    guided: bool = False

    def worst(self, name: str) -> tuple[str, float]:
        """The query that loses most, and how much."""
        change = self.ours[name][1] - self.theirs
        query = int(np.nanargmin(change))
        return str(self.query_ids[query]), float(change[query])

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the page."""
        ours = {name: {"title": title, "values": values} for name, (title, values) in self.ours.items()}
        return {
            "metric": self.metric,
            "baseline": self.baseline,
            "queries": [str(query) for query in self.query_ids],
            "theirs": self.theirs,
            "methods": ours,
        }


def difference(ours: AnyArray, theirs: AnyArray) -> Difference:
    """Paired comparison over the queries for which both have a value."""
    change = np.asarray(ours, np.float64) - np.asarray(theirs, np.float64)
    change = change[~np.isnan(change)]
    mean = float(change.mean())
    half = _half_width(change)
    return Difference(
        mean,
        mean - half,
        mean + half,
        int(np.sum(change > ROUNDING)),
        int(np.sum(np.abs(change) <= ROUNDING)),
        int(np.sum(change < -ROUNDING)),
        paired_t(ours, theirs),
        randomisation(ours, theirs),
        paired_t(ours, theirs, "greater"),
        randomisation(ours, theirs, alternative="greater"),
    )


def _half_width(change: FloatArray) -> float:
    """t_{0.975, n−1}·s/√n; infinite for one query."""
    if len(change) < 2:
        return np.inf
    from scipy.stats import t

    return float(t.ppf(0.5 + LEVEL / 2, len(change) - 1) * change.std(ddof=1) / np.sqrt(len(change)))
