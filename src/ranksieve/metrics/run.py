"""Measure a run against judgements, as trec_eval does."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve._util.messages import shortened
from ranksieve.data.queries import Queries, text_array
from ranksieve.errors import DataError
from ranksieve.metrics.evaluate import DEFAULT_METRICS, Evaluation, evaluate_ranked, parse_all
from ranksieve.metrics.profiles import Empty, Profile, as_profile, check_empty
from ranksieve.metrics.ranked import Judged, Ranked
from ranksieve.metrics.table import MetricSpec

Scores = Mapping[str, Mapping[str, float]]
"""query → document → number."""


def evaluate_run(
    run: Scores,
    qrels: Scores,
    metrics: str | Sequence[str | MetricSpec] = DEFAULT_METRICS,
    profile: str | Profile = "trec",
    empty: Empty | None = None,
) -> Evaluation:
    """Measure the results of a search engine against judgements, by the rules of ``trec_eval -c``.

    Documents are ranked by descending score (compared as float32), equal ones by descending name. A document
    without a judgement is not relevant. A judged document that was not found has no rank, but counts in
    the ideal ranking, in recall and in average precision. Each judged query counts; one without results
    has the value 0. Queries without judgements are left out.

    Parameters
    ----------
    run, qrels : mapping
        ``run[query][document]`` is a score, ``qrels[query][document]`` a grade, as of
        :func:`ranksieve.read_run` and :func:`ranksieve.read_qrels`.
    metrics, profile, empty
        As in :func:`ranksieve.evaluate`; the default profile has trec_eval's linear gain. Where a profile
        has a rule for short lists, the documents found and judged make the list.
    """
    specs, profile = parse_all(metrics), as_profile(profile)
    empty = profile.empty if empty is None else check_empty(empty)
    _check_queries(run, qrels)
    judged = _judged(run, qrels)
    return evaluate_ranked(Ranked(np.arange(len(judged.labels)), judged), specs, profile, empty)


@dataclass(frozen=True, eq=False)
class _RunJudged(Judged):
    """Each query's documents in rank order: those found, then those judged but not found, at rank ∞.

    There 1/rank and every discount are 0, so they add nothing to a ranking's value; the ideal ranking has
    them at their places.
    """

    n_found: IntArray = field(kw_only=True)

    @cached_property
    def ranks(self) -> FloatArray:  # type: ignore[override]
        places = Judged(self.labels, self.queries).ranks
        return np.where(places <= np.repeat(self.n_found, self.queries.sizes), places, np.inf)

    @cached_property
    def ideal(self) -> Ranked:
        return Judged(self.labels, self.queries).ideal

    def within(self, k: int | None) -> BoolArray:
        return self.ranks <= (np.inf if k is None else k)

    def gains(self, profile: Profile) -> FloatArray:
        return np.where(np.isinf(self.ranks), 0.0, super().gains(profile))


def _judged(run: Scores, qrels: Scores) -> _RunJudged:
    labels: list[float] = []
    n_found, sizes = [], []
    for query, grades in qrels.items():
        scores = run.get(query, {})
        with np.errstate(over="ignore"):  # beyond float32 all are infinite, and tie
            by_score = sorted(scores.items(), key=lambda item: (np.float32(item[1]), item[0]), reverse=True)
        found = [document for document, _ in by_score]
        unfound = [document for document in grades if document not in scores]
        labels += [float(grades.get(document, 0.0)) for document in (*found, *unfound)]
        n_found.append(len(found))
        sizes.append(len(found) + len(unfound))
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    queries = Queries(text_array(list(qrels)), None, offsets)
    return _RunJudged(np.array(labels), queries, n_found=np.array(n_found))


def _check_queries(run: Scores, qrels: Scores) -> None:
    blank = next((query for query, grades in qrels.items() if not grades), None)
    if blank is not None:
        reason = f"query {blank} has no judged document; leave it out of the qrels"
        raise DataError(None, None, reason)
    both = run.keys() & qrels.keys()
    if not both:
        raise DataError(
            None,
            None,
            f"run and qrels share no query: the run has {shortened(list(run), 3) or 'none'}, the qrels have "
            f"{shortened(list(qrels), 3) or 'none'}; use the same query ids in both",
        )
    gaps = {
        "judged queries have no results and count 0": len(qrels) - len(both),
        "queries of the run have no judgements and are left out": len(run) - len(both),
    }
    said = [f"{count} {what}" for what, count in gaps.items() if count]
    if said:
        warnings.warn("; ".join(said), stacklevel=3)
