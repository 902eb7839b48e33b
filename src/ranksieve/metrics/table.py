"""The table of metrics, and names such as ``ndcg@10``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from ranksieve._types import FloatArray
from ranksieve._util.lookup import lookup
from ranksieve.metrics.binary import average_precision, precision, recall, reciprocal_rank
from ranksieve.metrics.graded import dcg, expected_reciprocal_rank, ndcg
from ranksieve.metrics.profiles import Profile
from ranksieve.metrics.ranked import Ranked

PerQuery: TypeAlias = Callable[[Ranked, int | None, Profile], FloatArray]


@dataclass(frozen=True)
class Metric:
    """A metric: ``per_query(ranked, k, profile)`` gives one value per query, NaN where it is 0/0."""

    title: str
    per_query: PerQuery
    needs_k: bool = False
    at_most_one: bool = True


METRICS: dict[str, Metric] = {
    "ndcg": Metric("normalised discounted cumulative gain", ndcg),
    "dcg": Metric("discounted cumulative gain", dcg, at_most_one=False),
    "map": Metric("average precision", average_precision),
    "mrr": Metric("reciprocal rank of the first relevant document", reciprocal_rank),
    "err": Metric("expected reciprocal rank", expected_reciprocal_rank),
    "p": Metric("precision", precision, needs_k=True),
    "r": Metric("recall", recall, needs_k=True),
}


@dataclass(frozen=True)
class MetricSpec:
    """A metric of the table with a cut-off; ``k=None`` takes the whole list."""

    name: str
    k: int | None = None

    def __post_init__(self) -> None:
        metric = lookup(METRICS, self.name, "metric")
        if self.k is None and metric.needs_k:
            raise ValueError(f"{self.name} ({metric.title}) needs a cut-off, for example {self.name}@10")
        if self.k is not None and self.k < 1:
            raise ValueError(f"the cut-off of {self} must be a whole number of at least 1")

    def __str__(self) -> str:
        return self.name if self.k is None else f"{self.name}@{self.k}"

    def per_query(self, ranked: Ranked, profile: Profile) -> FloatArray:
        """One value per query, NaN where it is 0/0."""
        return METRICS[self.name].per_query(ranked, self.k, profile)


def parse(metric: str | MetricSpec) -> MetricSpec:
    """``"ndcg@10"`` -> ``MetricSpec("ndcg", 10)``; capitals do not matter."""
    if isinstance(metric, MetricSpec):
        return metric
    name, at, cutoff = metric.strip().lower().partition("@")
    lookup(METRICS, name, "metric")
    if at and not (cutoff.isdecimal() and cutoff.isascii()):
        raise ValueError(f"{metric!r} has no whole number after @; write for example {name}@10")
    return MetricSpec(name, int(cutoff) if at else None)
