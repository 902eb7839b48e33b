"""What came of a choice, in sentences: the held-out metric, what the budget costs, and how sure it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ranksieve.choice.decide import DRAWS, Choice
from ranksieve.report.page import certificate, counted, metric_text, metric_title, percent, signed
from ranksieve.report.subset_page import FOLD_SETS, asked_limits, subset_sentence, that

CHOSEN_AGAIN = (
    f"share of {DRAWS} resamplings of the held-out queries whose best candidate uses the feature, "
    "without new fits."
)
FAMILIES = {
    "l1": "ℓ1",
    "log": "log penalty",
    "forward": "forward selection",
    "refitted": "ℓ1, refitted without it",
    "subset": "best subset",
}


def family_title(label: str) -> str:
    """What a reader calls a family of models; "l1 × cost^0.5" keeps what follows the name."""
    name, space, rest = label.partition(" ")
    return FAMILIES.get(name, name) + space + rest


def choice_of(ranker: Any) -> Choice | None:
    """The choice of a ranker that made one."""
    return ranker.choice_ if ranker is not None and ranker.can("valid") else None


def choice_sentences(ranker: Any, choice: str) -> list[str]:
    """The headline of a fitted ranker: what the user asked for, and what it costs.

    ``choice`` says in words that follow "chosen" what guided the choice.
    """
    made = choice_of(ranker)
    if made is None:
        return []
    sure, by, alone = made.confidence, made.validation, made.n_candidates == 1
    metric = metric_title(by.metric)
    queries = counted(sure.n_queries, "query", "queries")
    sentences = [
        f"Held-out {metric} ({by.profile.name} profile): {metric_text(sure.mean)}, 95 % interval "
        f"{metric_text(sure.low)} to {metric_text(sure.high)}, over {queries}, "
        f"{'measured' if alone else 'chosen'} {choice}."
    ]
    if made.family.label.startswith("subset") and ranker.n_folds_ > 1:
        sentences.append(FOLD_SETS)
    if sure.best_features != len(ranker.support_) and sure.loss != 0:
        sentences.append(_best(sure, metric))
    if not alone:
        sentences.append(_tied(sure))
    if getattr(ranker, "refit_on", "train") == "all" and "valid" in ranker.to_model().data:
        sentences.append("Then its weights were fitted again, to training and validation data together.")
    return sentences


def _best(sure: Any, metric: str) -> str:
    """The best candidate; what a fit without a budget would choose is known only from such a fit."""
    sign, side = (1.0, "higher") if sure.loss > 0 else (-1.0, "lower")
    ends = sorted((sign * sure.loss_low, sign * sure.loss_high))
    low, high = (signed(end).removeprefix("+") for end in ends)
    where, more = " beyond the budget", "; a fit without a budget may find a better one"
    return (
        f"Best candidate{where if sure.best_is_beyond else ''}: {counted(sure.best_features, 'feature')}, "
        f"{metric} {metric_text(sure.mean + sure.loss)} ({metric_text(sign * sure.loss)} {side}, 95 % CI "
        f"{low} to {high}){more if sure.best_is_beyond else ''}."
    )


def _tied(sure: Any) -> str:
    if sure.n_tied == 0:
        return "No other candidate is statistically tied with it."
    others = counted(sure.n_tied, "other candidate is", "other candidates are")
    return f"{others} statistically tied with it; the smallest uses {counted(sure.fewest_tied, 'feature')}."


def optimality(proof: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """What a model's certificate proves, and what it does not; empty without an objective.

    ``parameters`` are those of the model: the proof holds under the limits that they state.
    """
    if "objective" not in proof:
        return ""
    return PROOFS.get(proof.get("kind", ""), _of_weights)(proof, parameters)


def _of_weights(proof: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """The gap is the distance from the best weights of the features in use."""
    problem = ""
    if "alpha" in proof:
        problem = f" at α = {proof['alpha']:.4g}"
    if "ridge" in proof:
        problem = f" of these features with a ridge of {proof['ridge']:.4g}"
    elif "features" in proof:
        problem += f", restricted to {counted(len(proof['features']), 'feature')},"
    limits = asked_limits({name: parameters.get(name) for name in LIMITS_OF_WEIGHTS})
    within = f" of a model{that(limits)}" if limits else ""
    about = f": a proof about the weights{within}, not the features or the metric"
    gap = certificate(proof.get("relative_gap"))
    proven = about if "relative_gap" in proof else ""
    return f"Its training objective{problem} is {proof['objective']:.6g}, {gap}{proven}."


def _of_card(proof: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """The gap is the distance from the best real-valued weights."""
    least = proof["objective"] - proof["gap"]
    above = percent(proof["gap"] / least) if least > 0 else f"{proof['gap']:.2g}"
    limits = asked_limits({"signs": parameters.get("signs")})
    within = f" in a model{that(limits)}" if limits else ""
    return (
        f"Its training objective is {proof['objective']:.6g}, at most {above} above the best real-valued "
        f"weights of these features{within}."
    )


def _of_set(proof: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """The gap is the distance from the best set of features."""
    return (
        f"Its training objective, with a ridge of {proof['ridge']:.4g}, is {proof['objective']:.6g}. "
        f"{subset_sentence(proof, parameters)}"
    )


LIMITS_OF_WEIGHTS = (
    "must_not",
    "weights",
    "signs",
)  # must_have leaves a feature free of ℓ1, which forbids no weight
Words = Callable[[Mapping[str, Any], Mapping[str, Any]], str]
PROOFS: dict[str, Words] = {"scorecard": _of_card, "subset": _of_set}
