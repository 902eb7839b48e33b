"""Evaluate scores: one value per metric and query, and the means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksieve._types import AnyArray, FloatArray
from ranksieve._util.json_values import plain
from ranksieve.data.dataset import Dataset
from ranksieve.metrics.profiles import Empty, Profile, as_profile, check_empty
from ranksieve.metrics.ranked import Judged, Ranked
from ranksieve.metrics.table import MetricSpec, parse


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Metric values of one ranking: ``mean[name]``, and ``per_query[name]`` in the order of ``query_ids``.

    Names are in lower case (``ndcg@10``, ``map``). A skipped query is NaN and left out of the mean.
    """

    mean: Mapping[str, float]
    per_query: Mapping[str, FloatArray]
    query_ids: AnyArray
    profile: Profile
    empty: Empty

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; NaN becomes None."""
        return {
            "profile": self.profile.name,
            "empty": self.empty,
            "n_queries": len(self.query_ids),
            "mean": plain(self.mean),
            "query_ids": self.query_ids.tolist(),
            "per_query": plain(self.per_query),
        }


class Evaluator:
    """Metrics on one data set under one profile, for any number of score vectors.

    What depends on the labels alone (gains, ideal DCG, ranks) is computed once. The labels must not change
    meanwhile.
    """

    def __init__(
        self, dataset: Dataset, profile: str | Profile = "letor", empty: Empty | None = None
    ) -> None:
        if not isinstance(dataset, Dataset):
            raise ValueError(
                f"evaluation needs a Dataset, got {type(dataset).__name__}; build one with Dataset(X, y, qid)"
            )
        self.queries = dataset.queries
        self.judged = Judged(self.queries.group(dataset.y), self.queries)
        self.profile = as_profile(profile)
        self.empty: Empty = self.profile.empty if empty is None else check_empty(empty)

    def per_query(self, scores: AnyArray, specs: Sequence[MetricSpec]) -> list[FloatArray]:
        """One array per metric; ``scores`` are finite and in the data set's row order."""
        return measure(self.judged.rank(self.queries.group(scores)), specs, self.profile, self.empty)

    def evaluate(self, scores: Any, metrics: str | Sequence[str | MetricSpec]) -> Evaluation:
        """The evaluation of one score vector."""
        specs = parse_all(metrics)
        values = self.per_query(_as_scores(scores, self.queries.n_rows, 1), specs)
        per_query = {str(spec): value for spec, value in zip(specs, values, strict=True)}
        return summarise(per_query, self.queries.ids, self.profile, self.empty)

    def evaluate_many(self, score_matrix: Any, metric: str | MetricSpec) -> FloatArray:
        """Values (points × queries) of the columns of a score matrix (documents × points)."""
        spec = parse(metric)
        matrix = _as_scores(score_matrix, self.queries.n_rows, 2)
        values = np.empty((matrix.shape[1], self.queries.n_queries))
        for point, scores in enumerate(matrix.T):
            (values[point],) = self.per_query(scores, [spec])
        return values


def evaluate(
    scores: Any,
    dataset: Dataset,
    metrics: str | Sequence[str | MetricSpec] = ("ndcg@10", "map"),
    profile: str | Profile = "letor",
    empty: Empty | None = None,
) -> Evaluation:
    """Rank each query by descending score (ties keep input order) and measure the rankings.

    Parameters
    ----------
    scores : array
        One finite number per row of ``dataset``, in its row order.
    dataset : Dataset
        Labels and query ids.
    metrics : str or sequence of str
        Names of the table METRICS, with a cut-off after ``@``.
    profile : "letor", "mslr", "standard" or Profile
        Gain, discount, relevance and the rules for short and empty lists.
    empty : 0, 1 or "skip", optional
        NDCG, AP and R of a query without a relevant document; default from the profile, 0.
    """
    return Evaluator(dataset, profile, empty).evaluate(scores, metrics)


def evaluate_many(
    score_matrix: Any,
    dataset: Dataset,
    metric: str | MetricSpec,
    profile: str | Profile = "letor",
    empty: Empty | None = None,
) -> FloatArray:
    """Values (points × queries) of one metric for the columns of a score matrix (documents × points)."""
    return Evaluator(dataset, profile, empty).evaluate_many(score_matrix, metric)


def measure(ranked: Ranked, specs: Sequence[MetricSpec], profile: Profile, empty: Empty) -> list[FloatArray]:
    """One array per metric, one value per query; ``empty`` where a metric is 0/0."""
    fill = np.nan if empty == "skip" else float(empty)
    values = [spec.per_query(ranked, profile) for spec in specs]
    return [np.where(np.isnan(value), fill, value) for value in values]


def summarise(
    per_query: Mapping[str, FloatArray], query_ids: AnyArray, profile: Profile, empty: Empty
) -> Evaluation:
    """The evaluation that has these values."""
    mean = {name: mean_of_defined(values) for name, values in per_query.items()}
    return Evaluation(mean, per_query, query_ids, profile, empty)


def parse_all(metrics: str | Sequence[str | MetricSpec]) -> list[MetricSpec]:
    """Each metric once, in the order given; at least one."""
    names = [metrics] if isinstance(metrics, str | MetricSpec) else metrics
    specs = list(dict.fromkeys(parse(name) for name in names))
    if not specs:
        raise ValueError('no metric was given; name at least one, for example "ndcg@10"')
    return specs


def mean_of_defined(values: FloatArray) -> float:
    """The mean of the values that are not NaN; NaN if there is none."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")


def _as_scores(scores: Any, n_rows: int, n_dimensions: int) -> FloatArray:
    try:
        array = np.asarray(scores).astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"scores must be numbers: {error}") from None
    if array.ndim != n_dimensions or len(array) != n_rows:
        expected = f"({n_rows},)" if n_dimensions == 1 else f"({n_rows}, points)"
        raise ValueError(
            f"scores have shape {array.shape}, expected {expected}: one score per row of the data set"
        )
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        value = array[tuple(bad[0])]
        raise ValueError(f"the score of row {bad[0][0]} is {value}; scores must be finite numbers")
    return array
