"""The metrics, and parsing of names such as ``ndcg@10``.

To add a metric, write a function and add it to METRICS.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from ranksieve._types import AnyArray, BoolArray, FloatArray, IntArray
from ranksieve.data.queries import Queries
from ranksieve.errors import DataError, ParameterError, lookup
from ranksieve.kernels.tied_ranks import reciprocal_ranks, stopping_ranks
from ranksieve.metrics.profiles import Profile, Ties, exponential_gain, wider_scales

TieOrder: TypeAlias = Ties | Literal["best"]


@dataclass(frozen=True, eq=False)
class Judged:
    """Labels grouped by query: the input of metrics besides the ranking.

    Query q has the slots ``offsets[q] … offsets[q + 1] − 1``; slot ``offsets[q] + i − 1`` is rank i in every
    ranking. So the ranks are the same for all rankings, and values that depend only on labels are computed
    once.
    """

    labels: FloatArray
    queries: Queries
    _memo: dict[Hashable, FloatArray] = field(default_factory=dict, repr=False)

    @cached_property
    def ranks(self) -> IntArray:
        """Rank of each slot, from 1."""
        return np.arange(1, len(self.labels) + 1) - np.repeat(self.queries.offsets[:-1], self.queries.sizes)

    @cached_property
    def ideal(self) -> Ranked:
        return self.rank(self.labels)

    def once(self, key: Hashable, compute: Callable[[], FloatArray]) -> FloatArray:
        """``compute()``, cached by ``key``."""
        if key not in self._memo:
            self._memo[key] = compute()
        return self._memo[key]

    def within(self, k: int | None) -> BoolArray:
        """Mask of the slots with rank at most k."""
        return self.ranks <= (len(self.labels) if k is None else k)

    def places(self, k: int | None) -> IntArray:
        """Number of ranks up to k of each query."""
        sizes = self.queries.sizes
        return sizes if k is None else np.minimum(sizes, min(k, int(sizes.max())))

    def total(self, values: FloatArray) -> FloatArray:
        """Sum over the slots of each query."""
        return np.add.reduceat(values, self.queries.offsets[:-1])

    def running_total(self, values: FloatArray) -> FloatArray:
        """Cumulative sum over the slots of each query."""
        sums = np.cumsum(values)
        starts = self.queries.offsets[:-1]
        return sums - np.repeat(sums[starts] - values[starts], self.queries.sizes)

    def refuse_labels(self, bad: BoolArray, reason: str) -> None:
        """Raise an error for the first input row in the mask ``bad``, if any."""
        if bad.any():
            rows = self.queries.order[bad]
            row = int(rows.min())
            label = self.labels[bad][int(np.argmin(rows))]
            raise DataError(None, None, f"the label of row {row} is {label:g}; {reason}")

    def gains(self, profile: Profile) -> FloatArray:
        """The gain of each document, in grouped order."""
        return self.once(profile.gain, lambda: self._gains(profile))

    def _gains(self, profile: Profile) -> FloatArray:
        with np.errstate(over="ignore"):
            gains = np.asarray(profile.gain(self.labels), dtype=np.float64)
        rule = f"its gain in the {profile.name} profile must be a finite number ≥ 0"
        self.refuse_labels(~(gains >= 0.0), f"{rule}: shift the labels so that the lowest is 0, or use map")
        # Sums of gains must not overflow either.
        self.refuse_labels(~(gains <= np.finfo(np.float64).max / len(gains)), f"{rule}: use smaller labels")
        return gains

    def rank(self, scores: FloatArray, ties: TieOrder = "order") -> Ranked:
        """Rank the documents of each query by descending score, in grouped order.

        Tied documents keep their order if ``ties`` is "order" or "mean"; "mean" also marks their groups.
        "worst" ranks them by ascending label, "best" by descending label.
        """
        if ties in ("worst", "best"):
            by_label = (self._worst if ties == "worst" else self.ideal).order
            return Ranked(by_label[self._sorted(scores[by_label])], self)
        order = self._sorted(scores)
        return Ranked(order, self, self.tied_groups(scores[order]) if ties == "mean" else None)

    def tied_groups(self, ranked_scores: FloatArray) -> TiedGroups | None:
        """Groups of equal scores within queries, of scores in rank order; None if all scores differ."""
        first = np.empty(len(ranked_scores), dtype=bool)
        np.not_equal(ranked_scores[1:], ranked_scores[:-1], out=first[1:])
        first[self.queries.offsets[:-1]] = True
        if first.all():
            return None
        starts = np.flatnonzero(first)
        return TiedGroups(starts, np.diff(starts, append=len(first)))

    @cached_property
    def _worst(self) -> Ranked:
        """Documents of each query by ascending label."""
        return self.rank(-self.labels)

    def _sorted(self, scores: FloatArray) -> IntArray:
        """Documents of each query by descending score, in grouped order; ties keep their order."""
        keys = np.append(-scores, np.inf)
        order = np.empty(len(scores), dtype=np.int64)
        for slots, in_use in self._blocks:
            by_score = np.argsort(keys[slots], axis=1, kind="stable")
            order[slots[in_use]] = np.take_along_axis(slots, by_score, axis=1)[in_use]
        return order

    @cached_property
    def _blocks(self) -> list[tuple[IntArray, BoolArray]]:
        """Slots of queries of similar length as matrices (query × rank), with masks of cells in use.

        Widths are powers of two, so at most half the cells are padding (slot n, which sorts last). Sorting
        short rows is several times faster than sorting all documents together.
        """
        starts, sizes = self.queries.offsets[:-1], self.queries.sizes
        widths = np.exp2(np.ceil(np.log2(sizes))).astype(np.int64)
        blocks = []
        for width in np.unique(widths):
            columns, members = np.arange(width), widths == width
            in_use = columns < sizes[members, None]
            blocks.append((np.where(in_use, starts[members, None] + columns, len(self.labels)), in_use))
        return blocks


class TiedGroups(NamedTuple):
    """Runs of slots whose documents have equal scores; a document without ties is a run of its own."""

    starts: IntArray
    sizes: IntArray

    def totals(self, values: FloatArray) -> FloatArray:
        """Sum over the slots of each group."""
        return np.add.reduceat(values, self.starts)

    def of_slots(self, values: AnyArray) -> AnyArray:
        """Value of the group of each slot."""
        return np.repeat(values, self.sizes)


@dataclass(frozen=True, eq=False)
class Ranked:
    """A ranking: slot i contains the document ``order[i]`` (an index in grouped order).

    ``groups`` are its ties if metrics are the mean over all orders of tied documents; None: this one order.
    Gains and relevance are then means over the group of a document, so a metric that is linear in them needs
    nothing else.
    """

    order: IntArray
    judged: Judged
    groups: TiedGroups | None = None

    @cached_property
    def labels(self) -> FloatArray:
        """Labels in rank order."""
        return self.judged.labels[self.order]

    def gains(self, profile: Profile) -> FloatArray:
        """Gains in rank order."""
        return self._expected(self.judged.gains(profile)[self.order])

    def relevant(self, profile: Profile) -> FloatArray:
        """1 for relevant, 0 for other documents, in rank order."""
        return self._expected(self.is_relevant(profile))

    def is_relevant(self, profile: Profile) -> FloatArray:
        """As ``relevant``, but without means over tied documents."""
        return (self.labels >= profile.relevant_from).astype(np.float64)

    def _expected(self, values: FloatArray) -> FloatArray:
        """Mean over the group of each slot."""
        groups = self.groups
        return values if groups is None else groups.of_slots(groups.totals(values) / groups.sizes)


def ratio(numerator: AnyArray, denominator: AnyArray) -> FloatArray:
    """numerator / denominator; NaN, which marks an empty query, if the denominator is 0."""
    quotients = np.full(len(denominator), np.nan)
    np.divide(numerator, denominator, out=quotients, where=denominator > 0)
    return quotients


PerQuery: TypeAlias = Callable[[Ranked, int | None, Profile], FloatArray]


@dataclass(frozen=True)
class Metric:
    """A metric: ``per_query(ranked, k, profile)`` returns one value per query, NaN where it is 0/0.

    With ``ties="mean"`` it returns the mean over the orders of tied documents, ``ranked.groups``.
    ``short_list_rule``: the metric of a list shorter than k is 0 if the profile has ``short_list_is_zero``.
    """

    title: str
    per_query: PerQuery
    needs_k: bool = False
    at_most_one: bool = True
    short_list_rule: bool = False


def dcg(ranked: Ranked, k: int | None, profile: Profile) -> FloatArray:
    """DCG@k = Σ_{i ≤ k} gain(y_i)·discount(i)."""
    judged = ranked.judged
    discounts = judged.once(
        (profile.discount, k), lambda: np.where(judged.within(k), profile.discount(judged.ranks), 0.0)
    )
    return judged.total(ranked.gains(profile) * discounts)


def ndcg(ranked: Ranked, k: int | None, profile: Profile) -> FloatArray:
    """NDCG@k = DCG@k / DCG@k of the ideal ranking."""
    judged = ranked.judged
    ideal = judged.once((ndcg, k, profile), lambda: dcg(judged.ideal, k, profile))
    return ratio(dcg(ranked, k, profile), ideal)


def expected_reciprocal_rank(ranked: Ranked, k: int | None, profile: Profile) -> FloatArray:
    """ERR@k = Σ_{i ≤ k} (1/i)·R_i·Π_{j < i} (1 − R_j), R = (2^y − 1) / 2^max_label (Chapelle et al., 2009).

    R does not depend on the gain of the profile, except that a document with gain 0 has R = 0. max_label is
    that of the profile, not of the data, so that values of different data sets can be compared.
    """
    judged = ranked.judged
    stop = judged.once((expected_reciprocal_rank, profile), lambda: _stop_probability(judged, profile))[
        ranked.order
    ]
    starts, sizes = judged.queries.offsets[:-1], judged.queries.sizes
    if ranked.groups is not None:
        values = np.empty(len(sizes))
        stopping_ranks(stop, judged.queries.offsets, judged.places(k), *ranked.groups, values)
        return values
    value, continue_probability = np.zeros(len(sizes)), np.ones(len(sizes))
    for rank in range(1, min(k or sizes.max(), sizes.max()) + 1):
        long = sizes >= rank
        stop_here = stop[starts[long] + rank - 1]
        value[long] += continue_probability[long] * stop_here / rank
        continue_probability[long] *= 1.0 - stop_here
    return value


def _stop_probability(judged: Judged, profile: Profile) -> FloatArray:
    """R of each document, in grouped order."""
    rule = f"ERR in the {profile.name} profile needs labels of at most {profile.max_label:g}"
    advice = wider_scales(float(judged.labels.max()))
    judged.refuse_labels(judged.labels > profile.max_label, f"{rule}: {advice}")
    # Gain 0: a label of at most 0, or a document that was not retrieved.
    labels = np.where(judged.gains(profile) > 0.0, np.maximum(judged.labels, 0.0), 0.0)
    return np.asarray(exponential_gain(labels) / np.exp2(profile.max_label))


def precision(ranked: Ranked, k: int | None, profile: Profile) -> FloatArray:
    """P@k = (relevant documents in the first k) / k, also for a list shorter than k."""
    return _hits(ranked, k, profile) / (ranked.judged.queries.sizes if k is None else k)


def recall(ranked: Ranked, k: int | None, profile: Profile) -> FloatArray:
    """R@k = (relevant documents in the first k) / (relevant documents)."""
    return ratio(_hits(ranked, k, profile), ranked.judged.total(ranked.is_relevant(profile)))


def average_precision(ranked: Ranked, k: int | None, profile: Profile) -> FloatArray:
    """AP@k = Σ_{i ≤ k, i relevant} P@i / (relevant documents in the whole list, as trec_eval's map_cut).

    The i-th of n tied documents, of which m are relevant, after R relevant ones is relevant with probability
    m/n; then (i − 1)·(m − 1)/(n − 1) of the tied documents above it are relevant on average.
    """
    judged, hits = ranked.judged, ranked.is_relevant(profile)
    relevant, so_far = hits, judged.running_total(hits)
    if ranked.groups is not None:
        starts, n = ranked.groups
        m = ranked.groups.totals(hits)
        above = (so_far - hits)[starts]
        step = (m - 1.0) / np.maximum(n - 1, 1)
        relevant = ranked.relevant(profile)
        before = judged.ranks - ranked.groups.of_slots(judged.ranks[starts])
        so_far = ranked.groups.of_slots(above) + 1.0 + before * ranked.groups.of_slots(step)
    precisions = so_far / judged.ranks
    return ratio(judged.total(relevant * precisions * judged.within(k)), judged.total(hits))


def reciprocal_rank(ranked: Ranked, k: int | None, profile: Profile) -> FloatArray:
    """RR@k = 1 / (rank of the first relevant document), 0 if there is none in the first k."""
    judged = ranked.judged
    if ranked.groups is not None:
        relevant, values = ranked.is_relevant(profile), np.empty(judged.queries.n_queries)
        reciprocal_ranks(relevant, judged.queries.offsets, judged.places(k), *ranked.groups, values)
        return values
    hits = (ranked.labels >= profile.relevant_from) & judged.within(k)
    first = np.minimum.reduceat(np.where(hits, judged.ranks, np.inf), judged.queries.offsets[:-1])
    return np.asarray(1.0 / first)


def _hits(ranked: Ranked, k: int | None, profile: Profile) -> FloatArray:
    """Number of relevant documents in the first k."""
    return ranked.judged.total(ranked.relevant(profile) * ranked.judged.within(k))


METRICS: dict[str, Metric] = {
    "ndcg": Metric("normalised discounted cumulative gain", ndcg, short_list_rule=True),
    "dcg": Metric("discounted cumulative gain", dcg, at_most_one=False),
    "map": Metric("average precision", average_precision),
    "mrr": Metric("reciprocal rank of the first relevant document", reciprocal_rank),
    "err": Metric("expected reciprocal rank", expected_reciprocal_rank),
    "p": Metric("precision", precision, needs_k=True),
    "r": Metric("recall", recall, needs_k=True),
}


@dataclass(frozen=True)
class MetricSpec:
    """A metric in METRICS with a cut-off; ``k=None``: the whole list."""

    name: str
    k: int | None = None

    def __post_init__(self) -> None:
        metric = lookup(METRICS, self.name, "metric")
        if self.k is None and metric.needs_k:
            reason = f"{metric.title} needs a cut-off, for example {self.name}@10"
            raise ParameterError("metric", self.name, reason)
        if self.k is not None and self.k < 1:
            raise ParameterError("metric", str(self), "the cut-off must be an integer ≥ 1")

    def __str__(self) -> str:
        return self.name if self.k is None else f"{self.name}@{self.k}"

    def per_query(self, ranked: Ranked, profile: Profile) -> FloatArray:
        """One value per query, NaN where it is 0/0; 0 for a list that is too short."""
        values = METRICS[self.name].per_query(ranked, self.k, profile)
        too_short = self.too_short(ranked.judged, profile)
        return np.where(too_short & ~np.isnan(values), 0.0, values) if too_short.any() else values

    def too_short(self, judged: Judged, profile: Profile) -> BoolArray:
        """Mask of queries with fewer documents than the cut-off, if the short-list rule applies."""
        rule = METRICS[self.name].short_list_rule and profile.short_list_is_zero
        least = self.k if rule and self.k is not None else 1
        return np.asarray(judged.queries.sizes < least)


def parse(metric: str | MetricSpec) -> MetricSpec:
    """``"ndcg@10"`` -> ``MetricSpec("ndcg", 10)``; case-insensitive."""
    if isinstance(metric, MetricSpec):
        return metric
    name, at, cutoff = metric.strip().lower().partition("@")
    lookup(METRICS, name, "metric")
    if at and not (cutoff.isdecimal() and cutoff.isascii()):
        raise ParameterError("metric", metric, f"must have an integer after @, for example {name}@10")
    return MetricSpec(name, int(cutoff) if at else None)
