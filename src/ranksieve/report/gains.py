"""What each query gains or loses against a baseline: values, paired tests, answers, figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ranksieve._types import AnyArray, FloatArray
from ranksieve.metrics.significance import paired_t, randomisation
from ranksieve.report.page import (
    LOST,
    SIGNIFICANT,
    Answer,
    Figure,
    axis,
    counted,
    layout,
    metric_title,
    p_value,
    packed,
    signed,
)

LEVEL = 0.95
WITHIN_NOISE = "within noise"
TIE = 1e-9  # a smaller difference is rounding error


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
    def verdict(self) -> str:
        """Whether the interval holds 0."""
        if self.low <= 0.0 <= self.high:
            return WITHIN_NOISE
        return "significantly better" if self.mean > 0 else "significantly worse"


@dataclass(frozen=True, eq=False)
class Gains:
    """Values of one metric, query by query: of the baseline, and of methods by name (title, values).

    ``guided`` tells that the methods were chosen on these queries, which favours them. ``texts`` are the
    words of queries by their ids.
    """

    metric: str
    where: str
    baseline: str
    query_ids: Sequence[Any]
    theirs: FloatArray
    ours: Mapping[str, tuple[str, FloatArray]]
    guided: bool = False
    texts: Mapping[Any, str] = field(default_factory=dict)

    def page_data(self) -> dict[str, Any]:
        """Plain data for the page, which draws the bars of the method that is chosen there."""
        return {
            "metric": self.metric,
            "baseline": self.baseline,
            "queries": [str(query) for query in self.query_ids],
            "texts": [self.texts.get(query, "") for query in self.query_ids] if self.texts else [],
            "theirs": self.theirs,
            "methods": {
                name: {"title": title, "changed": self._changed(ours)}
                for name, (title, ours) in self.ours.items()
            },
            "figure": gains_figure(self.metric),
        }

    def _changed(self, ours: FloatArray) -> str:
        """The value of each query, nothing where it is the baseline's."""
        equal = np.abs(ours - self.theirs) <= TIE
        return packed(None if same else value for value, same in zip(ours, equal, strict=True))


def difference(ours: AnyArray, theirs: AnyArray) -> Difference:
    """Paired comparison over the queries for which both have a value."""
    change = np.asarray(ours, np.float64) - np.asarray(theirs, np.float64)
    change = change[~np.isnan(change)]
    return Difference(
        *mean_with_interval(change),
        int(np.sum(change > TIE)),
        int(np.sum(np.abs(change) <= TIE)),
        int(np.sum(change < -TIE)),
        paired_t(ours, theirs),
        randomisation(ours, theirs),
        paired_t(ours, theirs, "greater"),
        randomisation(ours, theirs, alternative="greater"),
    )


def mean_with_interval(values: FloatArray) -> tuple[float, float, float]:
    """The mean over queries and its t-interval at 95 %, mean ± t_{0.975, n−1}·s/√n."""
    from scipy.stats import t

    known = values[~np.isnan(values)]
    n, mean, half = len(known), float(known.mean()), np.inf
    if n > 1:
        half = float(t.ppf(0.5 + LEVEL / 2, n - 1) * known.std(ddof=1) / np.sqrt(n))
    return mean, mean - half, mean + half


def gain_answers(gains: Gains, name: str, change: Difference) -> list[Answer]:
    """How many queries a method wins and loses with the worst of them, and whether that is significant."""
    per_query = gains.ours[name][1] - gains.theirs
    worst = int(np.nanargmin(per_query))
    details = (
        f"{gains.where.capitalize()}, against {gains.baseline}: {counted(change.wins, 'query', 'queries')} "
        f"better, {change.ties} equal, {change.losses} worse."
    )
    if per_query[worst] < 0:
        details += f" Worst: query {gains.query_ids[worst]} with {signed(per_query[worst], 2)}."
    lost = Answer(LOST, f"{signed(change.mean)} {metric_title(gains.metric)}", details)
    return [lost, significance_answer(change, gains.guided)]


def significance_answer(change: Difference, guided: bool = False) -> Answer:
    """The interval of the mean difference, and the tests; ``guided`` if these queries guided the choice."""
    interval = f"{signed(change.low)} to {signed(change.high)}"
    details = (
        f"Mean difference {signed(change.mean)}, 95 % interval {interval}. "
        f"Two-sided: {p_value(change.p_t)} (paired t), {p_value(change.p_randomisation)} (randomisation). "
        f"One-sided as in the papers, is it better: {p_value(change.p_t_greater)}, "
        f"{p_value(change.p_randomisation_greater)}."
    )
    if not guided:
        return Answer(SIGNIFICANT, change.verdict, details)
    short = "no fair test here" if "better" in change.verdict else change.verdict
    warning = "The choice was made on these queries, which favours the chosen model; test queries would tell."
    return Answer(SIGNIFICANT, short, f"{warning} {details}")


def gains_figure(metric: str) -> Figure:
    """One bar per query, without the bars: the page fills in those of the method that is chosen."""
    hover = "query {data.0}: {y:+.4f}\n{data.1:.4f} against {data.2:.4f}"
    axes = {
        "xaxis": axis("queries that differ, by falling gain", showgrid=False, dtick=1),
        "yaxis": axis(f"change of {metric_title(metric)}", zeroline=True),
    }
    return {"data": [{"type": "bar", "gap": 0, "hover": hover}], "layout": layout(320, **axes)}
