"""Evaluate scores: one value per metric and query, and the means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from ranksieve._types import AnyArray, FloatArray
from ranksieve._util.json_values import plain
from ranksieve.data.dataset import Dataset
from ranksieve.data.device_matrix import as_host_array
from ranksieve.data.remote import RemoteDataset
from ranksieve.errors import ParameterError
from ranksieve.metrics.profiles import Empty, Profile, check_empty, profile_for
from ranksieve.metrics.ranked import Judged, Ranked
from ranksieve.metrics.table import MetricSpec, parse

DEFAULT_METRICS = ("ndcg@10", "map")


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Metric values of one ranking: ``mean[name]``, and ``per_query[name]`` in the order of ``query_ids``.

    Names are in lower case (``ndcg@10``, ``map``). A skipped query is NaN and left out of the mean.
    ``too_short[name]`` is how many queries count 0 because the profile says so of lists with fewer documents
    than the cut-off; a metric without such queries has no entry.
    """

    mean: Mapping[str, float]
    per_query: Mapping[str, FloatArray]
    query_ids: AnyArray
    profile: Profile
    empty: Empty
    too_short: Mapping[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; NaN becomes None."""
        return {
            "profile": self.profile.name,
            "empty": self.empty,
            "n_queries": len(self.query_ids),
            "mean": plain(self.mean),
            "too_short": dict(self.too_short),
            "query_ids": self.query_ids.tolist(),
            "per_query": plain(self.per_query),
        }


class Evaluator:
    """Metrics on one data set under one profile, for any number of score vectors.

    What depends on the labels alone (gains, ideal DCG, ranks) is computed once. The labels must not change
    meanwhile.
    """

    def __init__(
        self,
        dataset: Dataset,
        profile: str | Profile | None = None,
        empty: Empty | None = None,
        device: str = "cpu",
    ) -> None:
        if not isinstance(dataset, Dataset):
            raise ParameterError("dataset", dataset, "must be a Dataset; build one with Dataset(X, y, qid)")
        self.queries = dataset.queries
        self.judged = Judged(self.queries.group(dataset.y), self.queries, device)
        self.profile = profile_for(profile, dataset)
        self.empty: Empty = self.profile.empty if empty is None else check_empty(empty)

    def per_query(self, scores: AnyArray, specs: Sequence[MetricSpec]) -> list[FloatArray]:
        """One array per metric; ``scores`` are finite and in the data set's row order."""
        return measure(self.judged.rank(self.queries.group(scores)), specs, self.profile, self.empty)

    def evaluate(self, scores: Any, metrics: str | Sequence[str | MetricSpec]) -> Evaluation:
        """The evaluation of one score vector."""
        specs = parse_all(metrics)
        grouped = self.queries.group(_as_scores(scores, self.queries.n_rows, 1))
        return evaluate_ranked(self.judged.rank(grouped), specs, self.profile, self.empty)

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
    metrics: str | Sequence[str | MetricSpec] = DEFAULT_METRICS,
    profile: str | Profile | None = None,
    empty: Empty | None = None,
    *,
    device: str = "cpu",
) -> Evaluation:
    """Rank each query by descending score (ties keep input order) and measure the rankings.

    Parameters
    ----------
    scores : array, model or fitted ranker
        One finite number per row of ``dataset``, in its row order (for distributed data a Dask array or
        Series of them), as ``predict`` gives it; or the ranker or model itself.
    dataset : Dataset
        Labels and query ids.
    metrics : str or sequence of str
        Names of the table METRICS, with a cut-off after ``@``.
    profile : "letor", "mslr", "standard", "trec" or Profile, optional
        Gain, discount, relevance and the rules for short and empty lists; default: what the data come with
        (letor for LETOR's folds), else standard.
    empty : 0, 1 or "skip", optional
        NDCG, AP and R of a query without a relevant document; default from the profile, 0.
    device : "cpu" or "cuda"
        Where documents are sorted; the values are the same to the last bit.
    """
    if isinstance(dataset, RemoteDataset):
        by = (parse_all(metrics), profile_for(profile, dataset), empty)
        return merged(dataset.measured(scores, partial(_evaluate_part, by=by)), dataset)
    return Evaluator(dataset, profile, empty, device).evaluate(scores_of(scores, dataset), metrics)


def scores_of(given: Any, data: Dataset) -> Any:
    """The given scores, or those of a model or fitted ranker."""
    return given.predict(data) if hasattr(given, "predict") and not hasattr(given, "steps") else given


def _evaluate_part(
    part: Dataset, scores: Any, by: tuple[list[MetricSpec], Profile, Empty | None]
) -> Evaluation:
    specs, profile, empty = by
    return Evaluator(part, profile, empty).evaluate(scores, specs)


def merged(parts: Sequence[Evaluation], data: RemoteDataset) -> Evaluation:
    """The evaluation of all parts of a data set, whose queries may be in another order than in the parts."""
    whole = together(parts)
    ordered = {
        name: data.in_order_of_queries([part.per_query[name] for part in parts]) for name in whole.per_query
    }
    return replace(whole, per_query=ordered, query_ids=data.query_ids)


def together(parts: Sequence[Evaluation]) -> Evaluation:
    """The evaluation of the queries of several, one after another."""
    first = parts[0]
    per_query = {name: np.concatenate([part.per_query[name] for part in parts]) for name in first.per_query}
    counts = {name: sum(part.too_short.get(name, 0) for part in parts) for name in per_query}
    too_short = {name: count for name, count in counts.items() if count}
    ids = np.concatenate([part.query_ids for part in parts])
    return summarise(per_query, ids, first.profile, first.empty, too_short)


def evaluate_many(
    score_matrix: Any,
    dataset: Dataset,
    metric: str | MetricSpec,
    profile: str | Profile | None = None,
    empty: Empty | None = None,
) -> FloatArray:
    """Values (points × queries) of one metric for the columns of a score matrix (documents × points)."""
    return Evaluator(dataset, profile, empty).evaluate_many(score_matrix, metric)


def measure(ranked: Ranked, specs: Sequence[MetricSpec], profile: Profile, empty: Empty) -> list[FloatArray]:
    """One array per metric, one value per query; ``empty`` where a metric is 0/0."""
    fill = np.nan if empty == "skip" else float(empty)
    values = [spec.per_query(ranked, profile) for spec in specs]
    return [np.where(np.isnan(value), fill, value) for value in values]


def evaluate_ranked(
    ranked: Ranked, specs: Sequence[MetricSpec], profile: Profile, empty: Empty
) -> Evaluation:
    """The evaluation of one ranking."""
    values = measure(ranked, specs, profile, empty)
    per_query = {str(spec): value for spec, value in zip(specs, values, strict=True)}
    zeros = {
        str(spec): np.count_nonzero(spec.too_short(ranked.judged, profile) & (per_query[str(spec)] == 0.0))
        for spec in specs
    }
    too_short = {name: int(count) for name, count in zeros.items() if count}
    return summarise(per_query, ranked.judged.queries.ids, profile, empty, too_short)


def summarise(
    per_query: Mapping[str, FloatArray],
    query_ids: AnyArray,
    profile: Profile,
    empty: Empty,
    too_short: Mapping[str, int] | None = None,
) -> Evaluation:
    """The evaluation that has these values."""
    mean = {name: mean_of_defined(values) for name, values in per_query.items()}
    return Evaluation(mean, per_query, query_ids, profile, empty, too_short or {})


def parse_all(metrics: str | Sequence[str | MetricSpec]) -> list[MetricSpec]:
    """Each metric once, in the order given; at least one."""
    names = [metrics] if isinstance(metrics, str | MetricSpec) else metrics
    specs = list(dict.fromkeys(parse(name) for name in names))
    if not specs:
        raise ParameterError("metrics", metrics, "name at least one, for example 'ndcg@10'")
    return specs


def mean_of_defined(values: FloatArray) -> float:
    """The mean of the values that are not NaN; NaN if there is none."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")


def _as_scores(scores: Any, n_rows: int, n_dimensions: int) -> FloatArray:
    try:
        array = as_host_array(scores).astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ParameterError("scores", scores, f"must be numbers: {error}") from None
    if array.ndim != n_dimensions or len(array) != n_rows:
        expected = f"({n_rows},)" if n_dimensions == 1 else f"({n_rows}, points)"
        reason = f"must have shape {expected}, one score per row of the data set, got shape {array.shape}"
        raise ParameterError("scores", array, reason)
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        value = float(array[tuple(bad[0])])
        raise ParameterError("scores", value, f"that of row {bad[0][0]} must be a finite number")
    return array
