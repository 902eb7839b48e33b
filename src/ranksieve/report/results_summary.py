"""What results say of one data set, in words for a team."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ranksieve.experiment.results import DataSetResults
from ranksieve.experiment.tables import default_baseline, title
from ranksieve.report.gains import WITHIN_NOISE, Difference, Gains, gain_answers
from ranksieve.report.page import (
    SURE,
    WHICH,
    Answer,
    certificate,
    listed,
    metric_title,
    p_value,
    percent_text,
    signed,
)

METRIC = "ndcg@10"
DENSE = 0.99  # mean share of the varying features; a ranker that is not linear may use all of them


def is_dense(results: DataSetResults, name: str) -> bool:
    """Whether a method uses (nearly) all features that could matter."""
    share = results.results[name].to_row()["varying_sparsity"]
    return bool(np.isnan(share) or share >= DENSE)


def choose_baseline(results: DataSetResults, given: str | None) -> str:
    """The named method, else the dense one with the best test metric, else the tables' default."""
    dense = [name for name in results.methods if is_dense(results, name)]
    if given is not None or not dense:
        return default_baseline(results, given)
    return max(dense, key=lambda name: results.results[name].mean(METRIC))


def choose_sparse(results: DataSetResults, baseline: str) -> str:
    """The method that the summary speaks of: the first sparse one that is not the baseline."""
    others = [name for name in results.methods if name != baseline] or [baseline]
    return next((name for name in others if not is_dense(results, name)), others[0])


def make_gains(results: DataSetResults, baseline: str) -> Gains:
    """Every method against the baseline on the test queries of all folds."""
    pooled = results.pooled
    return Gains(
        METRIC,
        f"on the {results.n_queries} test queries",
        title(baseline),
        pooled[baseline].query_ids.tolist(),
        pooled[baseline].per_query[METRIC],
        {name: (title(name), e.per_query[METRIC]) for name, e in pooled.items() if name != baseline},
    )


def lead(results: DataSetResults, name: str, baseline: str, change: Difference | None) -> str:
    """The answer in one sentence; ``change`` is the method's against the baseline, None without another."""
    uses = f"{title(name)} uses {_size_of_all(results, name)} features"
    if change is None:
        return f"{uses}; there is no other method to compare it with."
    kind = "the best dense model" if is_dense(results, baseline) else "the baseline"
    link = "of" if change.verdict == WITHIN_NOISE else "than"
    return (
        f"{uses}; its {metric_title(METRIC)} is {change.verdict} {link} "
        f"{kind} ({title(baseline)}, {_size(results, baseline) or 'all'} features): difference "
        f"{signed(change.mean)}, {p_value(change.p_t_greater)} (paired t, one-sided), randomisation "
        f"{p_value(change.p_randomisation_greater)}."
    )


def answers(results: DataSetResults, name: str, gains: Gains, change: Difference | None) -> list[Answer]:
    """Which features, how sure, and, against a baseline, what is lost and whether that is significant."""
    found = [_which(results, name), _sure(results, name)]
    return found if change is None else [*found, *gain_answers(gains, name, change)]


def worst_gap(results: DataSetResults, name: str) -> float | None:
    """The largest relative gap of the folds' chosen fits; None if one of them has none."""
    gaps = [(fold.chosen or {})["certificate"].get("relative_gap") for fold in results.methods[name]]
    return None if None in gaps else max(gaps)


def jaccard(sets: list[set[str]]) -> float:
    """Mean of |a ∩ b| / |a ∪ b| over all pairs; NaN for fewer than two sets."""
    shares = [len(a & b) / len(a | b) if a | b else 1.0 for a, b in combinations(sets, 2)]
    return float(np.mean(shares)) if shares else float("nan")


def _size(results: DataSetResults, name: str) -> str:
    """Mean number of features over folds; empty for a ranker that is not linear."""
    mean = results.results[name].to_row()["n_selected"]
    return "" if np.isnan(mean) else f"{mean:.1f}".removesuffix(".0")


def _size_of_all(results: DataSetResults, name: str) -> str:
    size, most = _size(results, name), len(results.features)
    return f"{size} of {most}" if size else f"all {most}"


def _used(results: DataSetResults, name: str) -> list[set[str]]:
    """The features of each fold's model; none for a ranker that is not linear."""
    return [set((fold.chosen or {})["weights"] or ()) for fold in results.methods[name]]


def _which(results: DataSetResults, name: str) -> Answer:
    short = _size_of_all(results, name)
    if not _size(results, name):
        return Answer(WHICH, short, "It is not linear: it may use any feature, and none has a weight.")
    used = _used(results, name)
    counts = {feature: sum(feature in of for of in used) for feature in results.features}
    always = [feature for feature, count in counts.items() if count == len(used)]
    mostly = [feature for feature, count in counts.items() if len(used) / 2 < count < len(used)]
    sizes = sorted(len(of) for of in used)
    sentences = [
        f"{sizes[0]} to {sizes[-1]} in a fold.",
        f"In every fold: {listed(always)}." if always else "No feature is in every fold.",
        f"In most: {listed(mostly)}." if mostly else "",
    ]
    return Answer(WHICH, short, " ".join(filter(None, sentences)))


def _sure(results: DataSetResults, name: str) -> Answer:
    proof = certificate(worst_gap(results, name))
    if not _size(results, name):
        return Answer(SURE, "no proof", f"In every fold the objective is {proof}.")
    shared = jaccard(_used(results, name))
    if np.isnan(shared):
        return Answer(SURE, "one fold", f"Its objective is {proof}.")
    share = percent_text(shared)
    details = (
        f"Two folds have {share} of their features in common (mean Jaccard index; their training data "
        f"overlap). In every fold the objective is {proof}."
    )
    return Answer(SURE, f"{share} shared", details)
