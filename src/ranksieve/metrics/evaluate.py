"""Evaluate scores and runs: one value per metric and query, and means."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np

from ranksieve._types import AnyArray, BoolArray, FloatArray, IntArray
from ranksieve._util.files import to_plain
from ranksieve.data.dataset import Dataset
from ranksieve.data.matrix import as_plain
from ranksieve.data.parts import RemoteData
from ranksieve.data.queries import Queries, text_array
from ranksieve.errors import DataError, ParameterError, short_list, warn_caller
from ranksieve.gpu.matrix import as_host_array
from ranksieve.metrics.profiles import (
    STANDARD_PROFILE,
    Empty,
    Profile,
    Ties,
    as_profile,
    check_empty,
    profile_for,
)
from ranksieve.metrics.table import Judged, MetricSpec, Ranked, TieOrder, parse
from ranksieve.show.formats import join_names, metric_title, plural
from ranksieve.show.result import Part, Shown, Table

DEFAULT_METRICS = ("ndcg@10", "map")
TIE_ORDERS: tuple[TieOrder, ...] = ("mean", "worst", "best")
LEAST_TIE_EFFECT = 0.001  # of the order of tied documents on a mean, to warn


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Shown):
    """Metric values of one ranking: ``mean[name]``, and ``per_query[name]`` in the order of ``query_ids``.

    Names are in lower case (``ndcg@10``, ``map``). A skipped query is NaN and not part of the mean.
    ``too_short[name]`` is the number of queries with value 0 because they have fewer documents than the
    cut-off and the profile has a rule for short lists; a metric without such queries has no entry.
    """

    mean: Mapping[str, float]
    per_query: Mapping[str, FloatArray]
    query_ids: AnyArray
    profile: Profile
    empty: Empty
    too_short: Mapping[str, int] = field(default_factory=dict)

    @property
    def ties(self) -> Ties:
        """The order of documents with equal scores."""
        return self.profile.ties

    def _line(self) -> str:
        means = ", ".join(f"{metric_title(name)} {value:.4f}" for name, value in self.mean.items())
        return f"{means}; {plural(len(self.query_ids), 'query', 'queries')}, {self.profile.phrase}"

    def shown(self) -> Sequence[Part]:
        """The means, the number of queries and the profile."""
        means = [(metric_title(name), f"{value:.4f}") for name, value in self.mean.items()]
        queries = plural(len(self.query_ids), "query", "queries")
        short = [short_lists(self)] if self.too_short else []
        return [Table(["metric", "mean"], means), f"{queries}; {self.profile.phrase}.", *short]

    def frame_columns(self) -> Mapping[str, Sequence[Any]]:
        """The metrics of each query."""
        return {"query": self.query_ids.tolist()} | {
            name: values.tolist() for name, values in self.per_query.items()
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; NaN becomes None."""
        return {
            "profile": self.profile.name,
            "empty": self.empty,
            "ties": self.ties,
            "n_queries": len(self.query_ids),
            "mean": to_plain(self.mean),
            "too_short": dict(self.too_short),
            "query_ids": self.query_ids.tolist(),
            "per_query": to_plain(self.per_query),
        }


class Evaluator:
    """Evaluates any number of score vectors on one data set with one profile.

    Gains, ideal DCG and ranks depend only on the labels and are computed once. The labels must not change.
    """

    def __init__(
        self,
        dataset: Dataset,
        profile: str | Profile | None = None,
        empty: Empty | None = None,
        ties: Ties | None = None,
    ) -> None:
        if not isinstance(dataset, Dataset):
            raise ParameterError("dataset", dataset, "must be a Dataset; build one with Dataset(X, y, qid)")
        self.queries = dataset.queries
        self.judged = Judged(self.queries.group(dataset.y), self.queries)
        self.profile = profile_for(profile, dataset).with_ties(ties)
        self.empty: Empty = self.profile.empty if empty is None else check_empty(empty)

    def per_query(self, scores: AnyArray, specs: Sequence[MetricSpec]) -> list[FloatArray]:
        """One array per metric; ``scores`` are finite and in row order."""
        ranked = self.judged.rank(self.queries.group(scores), self.profile.ties)
        return measure(ranked, specs, self.profile, self.empty)

    def evaluate(self, scores: Any, metrics: str | Sequence[str | MetricSpec]) -> Evaluation:
        specs = parse_all(metrics)
        grouped = self.queries.group(_as_scores(scores, self.queries.n_rows, 1))
        return evaluate_ranked(self.judged.rank(grouped, self.profile.ties), specs, self.profile, self.empty)

    def alone(
        self, column: FloatArray, metric: str, query_weight: FloatArray | None = None
    ) -> tuple[float, int]:
        """(Mean metric of ranking by a feature in the better direction, 1: higher values first or −1)."""
        values = self.evaluate_many(np.stack([column, -column], axis=1), metric)
        up, down = np.average(values, axis=1, weights=query_weight).tolist()
        return (up, 1) if up >= down else (down, -1)

    def evaluate_tie_orders(
        self, scores: Any, metrics: str | Sequence[str | MetricSpec]
    ) -> tuple[list[Evaluation], int]:
        """Evaluations with the ties of the profile and of TIE_ORDERS, and the number of tied documents."""
        specs = parse_all(metrics)
        grouped = self.queries.group(_as_scores(scores, self.queries.n_rows, 1))
        ranked = self.judged.rank(grouped, "mean")
        if ranked.groups is None:  # all orders are the same
            evaluation = evaluate_ranked(ranked, specs, self.profile, self.empty)
            return [evaluation] * (1 + len(TIE_ORDERS)), 0
        orders = [self.judged.rank(grouped, ties) for ties in (self.profile.ties, *TIE_ORDERS)]
        n_tied = int(ranked.groups.sizes[ranked.groups.sizes > 1].sum())
        return [evaluate_ranked(one, specs, self.profile, self.empty) for one in orders], n_tied

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
    ties: Ties | None = None,
) -> Evaluation:
    """Rank each query by descending score and measure the rankings.

    Warns if the order of documents with equal scores could change a mean by more than 0.001.

    Parameters
    ----------
    scores : array, model or fitted ranker
        One finite number per row of ``dataset``, in row order, as returned by ``predict`` (for distributed
        data a Dask array or Series); or the ranker or model itself.
    dataset : Dataset
        Labels and query ids.
    metrics : str or sequence of str
        Names in METRICS, with a cut-off after ``@``.
    profile : "letor", "mslr", "standard", "trec" or Profile, optional
        Gain, discount, relevance and values of short and empty lists. Default: the profile of the data
        ("letor" for LETOR's folds), else "standard".
    empty : 0, 1 or "skip", optional
        NDCG, AP and R of a query without a relevant document. Default: from the profile, 0.
    ties : "order", "mean" or "worst", optional
        Documents of a query with equal scores: in input order; the mean of each metric over all their orders;
        or in the worst order. Default: from the profile, "mean" for "standard", else "order".
    """
    if isinstance(dataset, RemoteData):
        measure_part = partial(
            _evaluate_tie_orders, settings=_settings(dataset, metrics, profile, empty, ties)
        )
        parts, counts = zip(*dataset.measure_parts(scores, measure_part), strict=True)
        evaluations = [merge_parts(one, dataset) for one in zip(*parts, strict=True)]
        n_tied = sum(counts)
    else:
        evaluator = Evaluator(dataset, profile, empty, ties)
        evaluations, n_tied = evaluator.evaluate_tie_orders(scores_of(scores, dataset), metrics)
    _warn_of_ties(evaluations, n_tied / dataset.n_docs)
    return evaluations[0]


def evaluate_quietly(
    scores: Any,
    dataset: Dataset,
    metrics: str | Sequence[str | MetricSpec],
    profile: str | Profile | None = None,
    empty: Empty | None = None,
    ties: Ties | None = None,
) -> Evaluation:
    """As :func:`evaluate`, without the warning about ties."""
    if isinstance(dataset, RemoteData):
        settings = _settings(dataset, metrics, profile, empty, ties)
        return merge_parts(dataset.measure_parts(scores, partial(_evaluate_part, settings=settings)), dataset)
    return Evaluator(dataset, profile, empty, ties).evaluate(scores_of(scores, dataset), metrics)


class TiesWarning(UserWarning):
    """The order of documents with equal scores could change a metric."""


def _warn_of_ties(evaluations: Sequence[Evaluation], share: float) -> None:
    """Warn if a mean changes by more than 0.001; ``share``: of the documents that are tied."""
    reported, *others = evaluations
    texts = []
    for name, value in reported.mean.items():
        mean, worst, best = (one.mean[name] for one in others)
        if max(value - worst, best - value) > LEAST_TIE_EFFECT:
            in_order = f"{value:.4f} in input order, " if reported.ties == "order" else ""
            texts.append(
                f"{name.upper()} is {in_order}{mean:.4f} on average over their orders, "
                f"{worst:.4f} in the worst and {best:.4f} in the best"
            )
    if texts:
        advice = "; `ties='mean'` reports the average" if reported.ties != "mean" else ""
        warn_caller(
            f"{100 * share:.2g} % of the documents have the same score as another document of their query: "
            f"{'; '.join(texts)}{advice}",
            TiesWarning,
        )


def scores_of(scorer: Any, data: Dataset) -> Any:
    """Scores of a model, a fitted ranker, or another object with ``predict``; else it is the scores."""
    if not hasattr(scorer, "predict") or hasattr(scorer, "steps"):
        return scorer
    takes_data = hasattr(scorer, "to_model") or hasattr(scorer, "locate")  # rankers and models
    return scorer.predict(data if takes_data or isinstance(data, RemoteData) else as_plain(data.X))


_Settings: TypeAlias = tuple[list[MetricSpec], Profile, Empty | None]


def _settings(
    data: Dataset,
    metrics: str | Sequence[str | MetricSpec],
    profile: str | Profile | None,
    empty: Empty | None,
    ties: Ties | None,
) -> _Settings:
    """What to measure on each part of a data set."""
    return parse_all(metrics), profile_for(profile, data).with_ties(ties), empty


def _evaluate_part(part: Dataset, scores: Any, settings: _Settings) -> Evaluation:
    specs, profile, empty = settings
    return Evaluator(part, profile, empty).evaluate(scores, specs)


def _evaluate_tie_orders(part: Dataset, scores: Any, settings: _Settings) -> tuple[list[Evaluation], int]:
    specs, profile, empty = settings
    return Evaluator(part, profile, empty).evaluate_tie_orders(scores, specs)


def merge_parts(parts: Sequence[Evaluation], data: RemoteData) -> Evaluation:
    """Join the evaluations of the parts of a data set, with queries in the order of the data set."""
    whole = join_evaluations(parts)
    ordered = {
        name: data.to_query_order([part.per_query[name] for part in parts]) for name in whole.per_query
    }
    return replace(whole, per_query=ordered, query_ids=data.query_ids)


def join_evaluations(parts: Sequence[Evaluation]) -> Evaluation:
    """Join evaluations of different queries."""
    first = parts[0]
    per_query = {name: np.concatenate([part.per_query[name] for part in parts]) for name in first.per_query}
    counts = {name: sum(part.too_short.get(name, 0) for part in parts) for name in per_query}
    too_short = {name: count for name, count in counts.items() if count}
    ids = np.concatenate([part.query_ids for part in parts])
    return summarise(per_query, ids, first.profile, first.empty, too_short)


def measure(ranked: Ranked, specs: Sequence[MetricSpec], profile: Profile, empty: Empty) -> list[FloatArray]:
    """One array per metric, one value per query; ``empty`` where a metric is 0/0."""
    fill = np.nan if empty == "skip" else float(empty)
    values = [spec.per_query(ranked, profile) for spec in specs]
    return [np.where(np.isnan(value), fill, value) for value in values]


def evaluate_ranked(
    ranked: Ranked, specs: Sequence[MetricSpec], profile: Profile, empty: Empty
) -> Evaluation:
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
    """An Evaluation with the means of these values."""
    mean = {name: mean_of_defined(values) for name, values in per_query.items()}
    return Evaluation(mean, per_query, query_ids, profile, empty, too_short or {})


def parse_all(metrics: str | Sequence[str | MetricSpec]) -> list[MetricSpec]:
    """Parse metrics without duplicates, in order; at least one."""
    names = [metrics] if isinstance(metrics, str | MetricSpec) else metrics
    specs = list(dict.fromkeys(parse(name) for name in names))
    if not specs:
        raise ParameterError("metrics", metrics, "must contain at least one metric, for example 'ndcg@10'")
    return specs


def mean_of_defined(values: FloatArray) -> float:
    """Mean of the values that are not NaN; NaN if there are none."""
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
        raise ParameterError("scores", value, f"the score of row {bad[0][0]} must be a finite number")
    return array


Scores = Mapping[str, Mapping[str, float]]
"""query -> document -> number."""


def evaluate_run(
    run: Scores,
    qrels: Scores,
    metrics: str | Sequence[str | MetricSpec] = DEFAULT_METRICS,
    profile: str | Profile = "trec",
    empty: Empty | None = None,
) -> Evaluation:
    """Evaluate the results of a search engine against judgements, as ``trec_eval -c`` does.

    Documents are ranked by descending score (compared as float32), ties by descending name. A document
    without a judgement is not relevant. A judged document that was not retrieved has no rank, but counts in
    the ideal ranking, in recall and in average precision. All judged queries count; one without results
    has the value 0. Queries without judgements are ignored.

    Parameters
    ----------
    run, qrels : mapping
        ``run[query][document]`` is a score, ``qrels[query][document]`` a grade, as returned by
        :func:`ranksieve.io.read_run` and :func:`ranksieve.io.read_qrels`.
    metrics, profile, empty
        As in :func:`ranksieve.evaluate`; the default profile has trec_eval's linear gain. If the profile has
        a rule for short lists, the length is the number of retrieved or judged documents. The ``ties`` of
        the profile are not used.
    """
    specs, profile = parse_all(metrics), as_profile(profile).with_ties("order")
    empty = profile.empty if empty is None else check_empty(empty)
    _check_queries(run, qrels)
    judged = _run_judged(run, qrels)
    return evaluate_ranked(Ranked(np.arange(len(judged.labels)), judged), specs, profile, empty)


@dataclass(frozen=True, eq=False)
class _RunJudged(Judged):
    """Documents of each query in rank order: retrieved ones, then judged ones that were not retrieved.

    The latter have rank ∞, where 1/rank and every discount are 0, so they add nothing to the value of the
    ranking; the ideal ranking contains them.
    """

    n_retrieved: IntArray = field(kw_only=True)

    @cached_property
    def ranks(self) -> FloatArray:  # type: ignore[override]
        positions = Judged(self.labels, self.queries).ranks
        return np.where(positions <= np.repeat(self.n_retrieved, self.queries.sizes), positions, np.inf)

    @cached_property
    def ideal(self) -> Ranked:
        return Judged(self.labels, self.queries).ideal

    def within(self, k: int | None) -> BoolArray:
        return self.ranks <= (np.inf if k is None else k)

    def gains(self, profile: Profile) -> FloatArray:
        return np.where(np.isinf(self.ranks), 0.0, super().gains(profile))


def _run_judged(run: Scores, qrels: Scores) -> _RunJudged:
    labels: list[float] = []
    n_retrieved, sizes = [], []
    for query, grades in qrels.items():
        scores = run.get(query, {})
        with np.errstate(over="ignore"):  # scores too large for float32 become infinite, and tie
            ranked = sorted(scores, key=lambda name: (np.float32(scores[name]), name), reverse=True)
        ranked += [document for document in grades if document not in scores]
        labels += [float(grades.get(document, 0.0)) for document in ranked]
        n_retrieved.append(len(scores))
        sizes.append(len(ranked))
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    queries = Queries(text_array(list(qrels)), None, offsets)
    return _RunJudged(np.array(labels), queries, n_retrieved=np.array(n_retrieved))


def _check_queries(run: Scores, qrels: Scores) -> None:
    for query, grades in qrels.items():
        if not grades:
            raise DataError(None, None, f"query {query} has no judged document; remove it from the qrels")
    both = run.keys() & qrels.keys()
    if not both:
        raise DataError(
            None,
            None,
            f"run and qrels have no query in common: the run has {short_list(list(run), 3) or 'none'}, "
            f"the qrels have {short_list(list(qrels), 3) or 'none'}; use the same query ids in both",
        )
    unanswered, unjudged = len(qrels) - len(both), len(run) - len(both)
    warning = [f"{unanswered} judged queries have no results; their value is 0"] if unanswered else []
    warning += [f"{unjudged} queries of the run have no judgements and are ignored"] if unjudged else []
    if warning:
        warnings.warn("; ".join(warning), stacklevel=3)


def short_lists(evaluation: Evaluation) -> str:
    """Sentence about lists that are shorter than the cutoff of a metric; empty if there are none."""
    if not evaluation.too_short:
        return ""
    counts, metrics = list(evaluation.too_short.values()), list(evaluation.too_short)
    one = counts == [1]
    return (
        f"{join_names([str(count) for count in counts])} of {len(evaluation.query_ids)} queries "
        f"{'has' if one else 'have'} fewer than {join_names([name.partition('@')[2] for name in metrics])} "
        f"documents; the {evaluation.profile.name} profile counts {'its' if one else 'their'} "
        f"{join_names([metric_title(name) for name in metrics])} as 0 "
        f"({STANDARD_PROFILE.name} does not)."
    )
