"""Sentences about a selection, its proof, proven sets of features, and changes since a previous model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksieve.data.features import SIGNS
from ranksieve.prepare.steps import CURVES
from ranksieve.show.formats import (
    OPTIMAL_GAP,
    USELESS_GAP,
    certificate,
    join_names,
    metric_sentence,
    metric_text,
    metric_title,
    percent,
    plural,
    signed,
)

PROVEN_GAP = 1e-8  # smaller relative gaps are rounding error

FOLD_SETS = (
    "In cross-validation, the sets of each fold come from forward selection with swaps, not from the exact "
    "search."
)


def limit_clauses(parameters: Mapping[str, Any]) -> list[str]:
    """Limits on a set and its weights, as clauses such as "excludes f8"."""
    must_have, must_not = (_names(parameters.get(name)) for name in ("must_have", "must_not"))
    weights, signs = parameters.get("weights"), parameters.get("signs") or {}
    if isinstance(weights, list):
        must_not += [_name(j) for j, weight in enumerate(weights) if weight == repr(math.inf)]
    by_feature = signs if isinstance(signs, Mapping) else dict(enumerate(signs))
    bounds = [f"{_name(feature)} {_bound(sign)}" for feature, sign in by_feature.items() if sign]
    return [
        *([f"includes {join_names(must_have)}"] if must_have else []),
        *([f"excludes {join_names(must_not)}"] if must_not else []),
        *([f"has weights {join_names(bounds)}"] if bounds else []),
    ]


def _names(features: Any) -> list[str]:
    several = features if isinstance(features, list | tuple) else [features]
    return [_name(one) for one in several if one not in (None, "")]


def _name(feature: Any) -> str:
    return feature if isinstance(feature, str) else f"column {feature} (from 0)"


def _bound(sign: Any) -> str:
    number = SIGNS.get(sign, sign)
    return f"{'≥' if number > 0 else '≤'} 0" if isinstance(number, int | float) else f"of sign {sign}"


def limits_text(certificate: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """The sets that a proof is about."""
    all_features = plural(certificate["n_features"], "feature")
    cost = [f"costs at most {certificate['max_cost']:g}"] if "max_cost" in certificate else []
    limits = [*cost, *limit_clauses(parameters)]
    return f"set of at most {certificate['max_features']} of the {all_features}{that_clause(limits)}"


def that_clause(limits: Sequence[str]) -> str:
    """Limits as a relative clause; empty if there are none."""
    return f" that {join_names(limits)}" if limits else ""


def subset_sentence(certificate: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """A bound on how much lower the objective of another allowed set can be."""
    others = limits_text(certificate, parameters)
    if certificate["relative_gap"] <= PROVEN_GAP:
        return f"Proven best: no other {others} has a lower training objective."
    return (
        f"Proven: no other {others} lowers the training objective by more than "
        f"{percent(certificate['relative_gap'])}."
    )


def screening_sentences(size: Mapping[str, Any], parameters: Mapping[str, Any]) -> list[str]:
    """Features that no better set uses, and that every better set uses; empty if the set is proven best."""
    better = "better set within these limits" if limit_clauses(parameters) else "better set"
    if size["relative_gap"] <= PROVEN_GAP:
        return []
    count = {key: plural(len(size[key]), "feature is", "features are") for key in ("never", "always")}
    return [
        f"Proven: {count[key]} in {which} {better}: {join_names(size[key], 12)}."
        for which, key in (("no", "never"), ("every", "always"))
        if size[key]
    ]


def tie_sentences(size: Mapping[str, Any]) -> list[str]:
    """Features that can be replaced by scaled copies."""
    return [
        f"{name} can be replaced by {join_names(copies, 6)}: within queries they differ only by a factor."
        for name, copies in size["ties"].items()
    ]


SELECTION_FREQUENCY = (
    "share of bootstrap samples of the held-out queries whose best candidate uses the feature "
    "(models are not refitted)."
)
FAMILY_TITLES = {
    "l1": "ℓ1",
    "log": "log penalty",
    "kept": "path over the features that the log penalty keeps",
    "kept by contribution": "path over the features that contribute most to a larger model",
    "forward": "forward selection",
    "refitted": "ℓ1, refitted without ℓ1",
    "subset": "best subset",
}
ABOUT_CURVES = "(This is about the levels, not about the choice of features and thresholds or the metric.)"
ABOUT_WEIGHTS = "(This is about the weights, not about the choice of features or the metric.)"


def family_title(label: str) -> str:
    """Display name of a family of models: "l1 × cost^0.5" becomes "ℓ1 × cost^0.5"."""
    name, space, rest = label.partition(" ")
    return FAMILY_TITLES.get(name, name) + space + rest


def choice_of(ranker: Any) -> Any:
    """The choice of a ranker; None if it does not select models."""
    return ranker.choice_ if ranker is not None and ranker.can("valid") else None


def choice_sentences(ranker: Any, selected_on: str) -> list[str]:
    """Held-out metric of a fitted ranker, what it was selected on, the cost of the budget, and ties.

    ``selected_on`` follows "Selected", such as "on vali.txt"; empty if unknown.
    """
    choice = choice_of(ranker)
    if choice is None:
        return []
    confidence, by, alone = choice.confidence, choice.validation, choice.n_candidates == 1
    metric, queries = metric_title(by.metric), plural(confidence.n_queries, "query", "queries")
    interval = (confidence.mean, confidence.low, confidence.high)
    sentences = [metric_sentence(f"Held-out {metric}", interval, queries, by.profile.phrase)]
    if selected_on:
        sentences.append(f"{'Measured' if alone else 'Selected'} {selected_on}.")
    if choice.family.label.startswith("subset") and ranker.n_folds_ > 1:
        sentences.append(FOLD_SETS)
    if confidence.best_features != len(ranker.support_) and confidence.loss != 0:
        sentences.append(_best(confidence, metric))
    if not alone:
        sentences.append(_tied(confidence))
    if (gain := getattr(ranker, "curves_gain_", None)) is not None:
        mean, low, high = map(signed, gain)
        chosen = "lines" if ranker.preparation_.steps is None else "curves"
        sentences.append(f"Curves instead of lines: {mean} (95 % CI {low} to {high}); selected: {chosen}.")
    if getattr(ranker, "refit_on", "train") == "all" and "valid" in ranker.to_model().data:
        sentences.append("The weights were then refitted to the training and validation data together.")
    return sentences


def _best(confidence: Any, metric: str) -> str:
    """The best candidate; only a fit without a budget shows what that would select."""
    sign, side = (1.0, "higher") if confidence.loss > 0 else (-1.0, "lower")
    ends = sorted((sign * confidence.loss_low, sign * confidence.loss_high))
    low, high = (signed(end).removeprefix("+") for end in ends)
    beyond, note = "", ""
    if confidence.best_is_beyond:
        beyond, note = " beyond the budget", "; a fit without a budget may find a better one"
    return (
        f"Best candidate{beyond}: {plural(confidence.best_features, 'feature')}, {metric} "
        f"{metric_text(confidence.mean + confidence.loss)} ({metric_text(sign * confidence.loss)} {side}, "
        f"95 % CI {low} to {high}){note}."
    )


def _tied(confidence: Any) -> str:
    if confidence.n_tied == 0:
        return "No other candidate is statistically tied with it."
    others = plural(confidence.n_tied, "other candidate is", "other candidates are")
    smallest = plural(confidence.fewest_tied, "feature")
    return f"{others} statistically tied with it; the smallest uses {smallest}."


def optimality(proof: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """What a model's certificate proves, and what it does not prove; empty without an objective.

    ``parameters`` of the model state the limits that the proof holds under.
    """
    if "objective" not in proof:
        return ""
    return PROOF_SENTENCES.get(proof.get("kind", ""), _proof_of_weights)(proof, parameters)


def _proof_of_weights(proof: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """A bound on how much other weights of the same features can lower the objective."""
    if "relative_gap" not in proof:
        return f"{_objective(proof)}, {certificate(None)}."
    curves, gap = proof.get("shape") == CURVES, proof["relative_gap"]
    others, about = (
        (_other_curves(proof, parameters), ABOUT_CURVES)
        if curves
        else (_other_weights(proof, parameters), ABOUT_WEIGHTS)
    )
    features = _features(proof)
    if gap > USELESS_GAP:
        bound = f"{features}{others} may lower the training objective by up to {percent(gap)}"
        return f"Not proven to be close to optimal: {bound}. {about} {_objective(proof)}."
    most = "rounding error" if gap <= OPTIMAL_GAP else percent(gap)
    bound = f"Proven: {features}no {others} lower the training objective by more than {most}."
    return f"{bound} {about} {_objective(proof)}."


def _other_weights(proof: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """``other weights of a model that excludes f8``."""
    limits = {name: parameters.get(name) for name in WEIGHT_LIMITS}
    if proof.get("family", "").startswith("kept"):
        limits["must_not"] = _excluded(proof)
    clauses = limit_clauses(limits)
    return f"other weights{f' of a model{that_clause(clauses)}' if clauses else ''}"


def _other_curves(proof: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """``other curves, over all steps of all features except f8,``; signs are those of the steps."""
    excluded, signs = _excluded(proof), limit_clauses({"signs": parameters.get("signs")})
    limits = "".join(f" {text.replace('has weights', 'with steps of', 1)}" for text in signs)
    which = f"all features{f' except {join_names(excluded)}' if excluded else ''}"
    return f"other curves{limits}, over all steps of {'these features' if 'features' in proof else which},"


def _excluded(proof: Mapping[str, Any]) -> list[str]:
    """Features with an infinite penalty."""
    return [name for name, weight in proof.get("weights", {}).items() if str(weight) == "inf"]


def _features(proof: Mapping[str, Any]) -> str:
    if "features" not in proof:
        return "for these features, " if "ridge" in proof else ""
    count = len(proof["features"])
    if "ridge" in proof:  # fitted on the features in use
        return "for this feature, " if count == 1 else f"for these {count} features, "
    return f"for the {plural(count, 'feature')} it was fitted on, "


def _objective(proof: Mapping[str, Any]) -> str:
    """``Training objective 0.33655 with ridge 0.0003464``."""
    alpha = f" at α = {proof['alpha']:.4g}" if "alpha" in proof and "ridge" not in proof else ""
    ridge = f" with ridge {proof['ridge']:.4g}" if "ridge" in proof else ""
    return f"Training objective {proof['objective']:.6g}{alpha}{ridge}"


def _proof_of_card(proof: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """A bound on the distance from the best real-valued weights."""
    least = proof["objective"] - proof["gap"]
    above = percent(proof["gap"] / least) if least > 0 else f"{proof['gap']:.2g}"
    limits = limit_clauses({"signs": parameters.get("signs")})
    model = f" in a model{that_clause(limits)}" if limits else ""
    return (
        f"Proven: the training objective, {proof['objective']:.6g}, is at most {above} above that of the "
        f"best real-valued weights for these features{model}."
    )


def _proof_of_set(proof: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    return f"{subset_sentence(proof, parameters)} {_objective(proof)}."


WEIGHT_LIMITS = (
    "must_not",
    "weights",
    "signs",
)  # not must_have: it lifts the ℓ1 penalty and forbids no weight
ProofSentence = Callable[[Mapping[str, Any], Mapping[str, Any]], str]
PROOF_SENTENCES: dict[str, ProofSentence] = {"scorecard": _proof_of_card, "subset": _proof_of_set}


def paid_for(ranker: Any) -> list[tuple[str, float, list[str]]]:
    """Costs of the features in use, each group once, the most expensive first; empty without costs."""
    costs = getattr(ranker, "costs_", None)
    if costs is None:
        return []
    names = [ranker.coef_names_[j] for j in ranker.support_]
    columns = costs.columns(names, subset=True)
    units = dict.fromkeys(columns.unit.tolist())
    paid = [
        (columns.labels[u], float(columns.prices[u]), [names[j] for j in np.flatnonzero(columns.unit == u)])
        for u in units
    ]
    return sorted(paid, key=lambda one: -one[1])


CHANGED_QUERIES_ON_PAGE = 5


@dataclass(frozen=True)
class ChangeTable:
    """Sentences, and table rows: features with both weights, queries with both metrics."""

    sentences: list[str]
    features: list[tuple[str, str, str, str]]
    queries: list[tuple[str, str, str, str]]
    metric: str


def change_table(
    changes: Any, file: str, texts: Mapping[Any, str], most: int = CHANGED_QUERIES_ON_PAGE
) -> ChangeTable:
    """Changes since the model of a file; ``texts`` are texts of queries."""
    features = [
        (one.feature, _weight(one.before), _weight(one.after), one.status) for one in changes.features
    ]
    queries = query_cells(changes.extremes(most), texts)
    return ChangeTable(list(change_sentences(changes, file)), features, queries, changes.metric)


def query_cells(
    rows: Iterable[tuple[Any, float, float]], texts: Mapping[Any, str]
) -> list[tuple[str, str, str, str]]:
    """Queries with id and text, both values and their difference."""
    return [(_query_label(query, texts), f"{a:.4f}", f"{b:.4f}", f"{b - a:+.4f}") for query, a, b in rows]


def _weight(weight: float | None) -> str:
    return "" if weight is None else f"{weight:+.5g}"


def _query_label(query: Any, texts: Mapping[Any, str]) -> str:
    return f"{query}: {texts[query]}" if texts.get(query) else str(query)


def change_sentences(changes: Any, file: str) -> Iterator[str]:
    """Features added and removed, and the change in the held-out metric."""
    added, removed = ([one.feature for one in changes.features if one.status == s] for s in ("in", "out"))
    n_kept = sum(one.status == "kept" for one in changes.features)
    if not added and not removed:
        same = f"{plural(n_kept, 'feature')} of {file} {'is' if n_kept == 1 else 'are'} kept"
        yield f"The {same}: no other candidate is significantly better."
    else:
        yield (
            f"Features of {file}: {n_kept} kept; added: {', '.join(added) or 'none'}; removed: "
            f"{', '.join(removed) or 'none'}."
        )
    if not len(changes.after):
        yield f"{file} cannot be evaluated on these data: {changes.unmeasured}."
        return
    gain, low, high = changes.gain
    yield (
        f"Held-out {metric_title(changes.metric)}: {metric_text(changes.after.mean())}, previously "
        f"{metric_text(changes.before.mean())} (change {gain:+.4f}, 95 % CI {low:+.4f} to {high:+.4f}; "
        f"{len(changes.after):,} queries, {changes.won:,} better, {changes.lost:,} worse; "
        f"{changes.profile} profile)."
    )
    if changes.seen:
        yield f"{file} was fitted to these queries, so its previous value is too high."
    if not changes.raw:
        yield "Weights are those of the scaled features, because features are scaled within each query."
