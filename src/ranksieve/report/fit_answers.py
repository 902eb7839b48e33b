"""What a team asks first of a fit: which features, how sure, what is lost, and is that significant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ranksieve.estimators.choice import DRAWS
from ranksieve.estimators.sparse_ranker import SparseRanker
from ranksieve.report.choice_words import optimality
from ranksieve.report.gains import Gains, difference, gain_answers
from ranksieve.report.page import SURE, WHICH, Answer
from ranksieve.report.words import counted, listed, percent, percent_text

OURS = "chosen"
OFTEN = 0.9


def by_weight(model: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The terms of a model as plain data, the largest weight first."""
    return sorted(model["terms"], key=lambda term: -abs(term["weight"]))


def against_the_best(ranker: Any) -> Gains | None:
    """The chosen model against the best candidate, else the densest, on the held-out queries."""
    if not isinstance(ranker, SparseRanker):
        return None
    validation, candidates = ranker.validation_, ranker.candidates_
    own = validation.values[ranker.chosen_]
    theirs, used, beyond = candidates.best()
    baseline = f"the best candidate{' beyond the budget' if beyond else ''} ({counted(used, 'feature')})"
    if np.array_equal(own, theirs):
        theirs, used = candidates.densest()
        baseline = f"the densest candidate ({counted(used, 'feature')})"
    if np.array_equal(own, theirs):
        return None
    return Gains(
        validation.metric,
        f"on the {counted(len(validation.query_ids), 'query', 'queries')} that also guided the choice",
        baseline,
        validation.query_ids.tolist(),
        theirs,
        {OURS: ("Chosen model", own)},
        guided=True,
    )


def fit_answers(ranker: Any, model: Mapping[str, Any], gains: Gains | None) -> list[Answer]:
    """Which features, how sure, and, against a baseline, what is lost and whether that is significant."""
    names = [term["name"] for term in by_weight(model)]
    which = "None was chosen, so all scores are equal."
    if names:
        which = f"{listed(names)}, the largest weight first."
    answers = [Answer(WHICH, f"{len(names)} of {model['n_features']}", which), _sure(ranker, model)]
    if gains is not None:
        answers += gain_answers(gains, OURS, difference(gains.ours[OURS][1], gains.theirs))
    return answers


def _sure(ranker: Any, model: Mapping[str, Any]) -> Answer:
    """In how many resamplings the best candidate uses a feature; without a choice, what is proven."""
    sure = getattr(ranker, "confidence_", None)
    if sure is None:
        gap = model["certificate"].get("relative_gap")
        short = "no proof" if gap is None else f"gap {percent(gap)}"
        return Answer(SURE, short, optimality(model["certificate"], model["parameters"]))
    share = dict(zip(ranker._names(), sure.frequency.tolist(), strict=True))
    names = [term["name"] for term in by_weight(model)]
    rest = [name for name in names if share[name] < OFTEN]
    details = (
        f"{len(names) - len(rest)} of its {counted(len(names), 'feature')} are in the best candidate of at "
        f"least {percent_text(OFTEN)} of {DRAWS} resamplings of the held-out queries, without new "
        "fits"
    )
    doubtful = f"; less sure: {listed(rest, 6)}" if rest else ""
    return Answer(SURE, f"{len(names) - len(rest)} of {len(names)} stable", f"{details}{doubtful}.")
