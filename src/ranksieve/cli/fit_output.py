"""What fit prints and writes: the model, how it was selected, what changed, the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import ranksieve as rs
from ranksieve.cli import options as opt
from ranksieve.cli.output import table, words

if TYPE_CHECKING:
    from ranksieve.choice.update import Changes
    from ranksieve.metrics import Evaluation
    from ranksieve.model.boosted import BoostedModel
    from ranksieve.rankers import Ranker
    from ranksieve.report import Support, Unseen


CONTENTS = {"feature_costs": "costs", "signs": "signs"}  # settings that are too long to show
SHOWN_QUERIES = 3
REPORT_METRICS = ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map", "mrr")


def settings_of(old: rs.LinearModel) -> dict[str, Any]:
    """The parameters of a previous model that differ from the defaults of SparseRanker."""
    from ranksieve._util.files import plain
    from ranksieve.errors import DataError, warn_caller
    from ranksieve.model.linear import as_settings
    from ranksieve.rankers.parameters import check_parameters

    if old.method != rs.SparseRanker.__name__:
        return dict(old.chosen_by or {})
    settings, usual = as_settings(old.parameters), rs.SparseRanker().get_params(deep=False)
    try:
        if old.chosen_by is None:
            raise DataError(None, None, "its profile is an object that the file does not hold")
        settings["profile"] = old.chosen_by["profile"]
        check_parameters(rs.SparseRanker(**settings))
    except (TypeError, ValueError) as error:
        warn_caller(f"the settings of the previous model are not used again: {error}")
        return {}
    return {name: value for name, value in settings.items() if plain(value) != plain(usual[name])}


def settings_in_words(settings: Mapping[str, Any], file: str) -> str:
    """Settings of old.json: max_features=10, its costs."""
    shown = (f"its {CONTENTS[name]}" if name in CONTENTS else f"{name}={settings[name]}" for name in settings)
    return f"Settings of {file}: {', '.join(shown)}."


def show_changes(found: Changes, file: str, texts: Mapping[Any, str]) -> None:
    """What changed from the model before."""
    from ranksieve.report.fit_page import change_table

    shown = change_table(found, file, texts, SHOWN_QUERIES)
    for sentence in shown.sentences:
        words(sentence)
    table(["feature", "weight before", "weight now", ""], shown.features, "What changed")
    if shown.queries:
        title = f"Most lost and won ({found.metric})"
        table(["query", "before", "now", "change"], shown.queries, title)


@dataclass(frozen=True, eq=False)
class Outcome:
    """A fitted ranker and its model; what guided its choice, in words, and which lists were too short.

    ``data`` and ``held_out`` are what it was fitted and chosen on (None where nobody holds them), ``texts``
    the words of queries, ``tested`` how it ranks queries that chose nothing.
    """

    ranker: Any
    model: rs.LinearModel | BoostedModel
    choice: str = ""
    uncounted: str = ""
    data: rs.Dataset | None = None
    held_out: rs.Dataset | None = None
    texts: Mapping[Any, str] = field(default_factory=dict)
    tested: Unseen | None = None


def write_page(outcome: Outcome, report: str, valid: str | None, begin: str | None) -> None:
    """Write the page of a fit; ``valid`` and ``begin`` name the validation data and the model before."""
    from ranksieve.report import build_content, write_report

    ranker = outcome.ranker
    content = build_content(
        ranker, choice=outcome.choice, evaluations=valid_metrics(ranker, valid, outcome.held_out),
        support=None if outcome.data is None else feature_strength(ranker, outcome.data),
        uncounted=outcome.uncounted, test=outcome.tested, query_texts=outcome.texts, before=begin or "",
    )  # fmt: skip
    write_report(content, report)


def as_plain_data(outcome: Outcome) -> dict[str, Any]:
    """What came out, for JSON."""
    changes, tested = getattr(outcome.ranker, "changes_", None), outcome.tested
    return {
        "model": outcome.model.to_dict(),
        "choice": outcome.choice,
        "family": outcome.ranker.choice_.family.label if outcome.ranker.can("valid") else None,
        "confidence": confidence_data(outcome.ranker),
        "uncounted": outcome.uncounted,
        "changes": None if changes is None else changes.to_dict(),
        "test": None if tested is None else dict(tested.evaluation.mean),
    }


def show(outcome: Outcome, begin: str | None, previous_settings: Mapping[str, Any]) -> None:
    """On the terminal: settings and test queries, the model, what changed since the model ``begin``."""
    if begin is not None and previous_settings:
        words(settings_in_words(previous_settings, begin))
    if outcome.tested is not None:
        words(outcome.tested.sentence)
    show_model(outcome.ranker, outcome.model, outcome.choice, outcome.uncounted)
    if begin is not None:
        show_changes(outcome.ranker.changes_, begin, outcome.texts)


def how_chosen(ranker: Ranker, data: rs.Dataset, valid: str | None) -> str:
    """What guided the choice, in words; nothing for a method without one."""
    parameters = ranker.get_params(deep=False)
    folds = getattr(ranker, "n_folds_", 0)
    crossed = f"by {folds}-fold cross-validation over the training queries" if folds > 1 else ""
    if valid is None and "cv" in parameters:
        return crossed or "on the training data"
    return " and ".join(filter(None, [f"on {valid}" if valid else "", crossed]))


def feature_strength(ranker: Ranker, data: rs.Dataset) -> Support:
    """How each feature ranks alone."""
    from ranksieve.metrics import profile_for
    from ranksieve.rankers.measures import single_feature
    from ranksieve.report import Support

    parameters = ranker.get_params(deep=False)
    metric, profile = parameters.get("metric", "ndcg@10"), profile_for(parameters.get("profile"), data)
    strength = single_feature(ranker.preparation_.for_learning(data), metric, None, profile)
    return Support(strength=strength, metric=metric, profile=profile.name)


def confidence_data(ranker: Any) -> dict[str, Any] | None:
    """How sure the choice is, as plain data, features by name; None for a ranker that does not say."""
    if not ranker.can("valid"):
        return None
    sure = ranker.choice_.confidence
    shares = zip(ranker.choice_.feature_names, sure.frequency.tolist(), strict=True)
    return {**sure.to_dict(), "frequency": {name: share for name, share in shares if share > 0}}


def valid_metrics(ranker: Ranker, name: opt.Text, held_out: rs.Dataset | None) -> dict[str, Evaluation]:
    """The metrics of the validation data, by its name and whether the weights were fitted to it."""
    if held_out is None:
        return {}
    parameters = ranker.get_params(deep=False)
    seen = ", which the weights were fitted to as well" if parameters.get("refit_on") == "all" else ""
    scores = ranker.predict(held_out)
    return {f"{name}{seen}": rs.evaluate(scores, held_out, REPORT_METRICS, parameters.get("profile"))}


def tested_on(name: str, data: rs.Dataset, model: rs.LinearModel | BoostedModel) -> Unseen:
    """How a model ranks queries that neither it nor its choice has seen."""
    from ranksieve.report import Unseen

    chosen_by = model.chosen_by or {}
    metric = chosen_by.get("metric", "ndcg@10")
    scores = model.predict(opt.wide_enough(data, model.n_features))
    metrics = list(dict.fromkeys([metric, *REPORT_METRICS]))
    return Unseen(name, rs.evaluate(scores, data, metrics, chosen_by.get("profile")), metric)


def too_short_to_count(ranker: Any, data: rs.Dataset, held_out: rs.Dataset | None) -> str:
    """How many held-out lists are too short for the metric of the choice; no score changes that."""
    import numpy as np

    from ranksieve.metrics.evaluate import together
    from ranksieve.report.page import short_lists

    if not ranker.can("valid"):
        return ""
    crossed, by = held_out is None or getattr(ranker, "n_folds_", 0) > 0, ranker.choice_.validation
    parts = [part for part in (data if crossed else None, held_out) if part is not None]
    equal_scores = (rs.evaluate(np.zeros(part.n_docs), part, by.metric, by.profile) for part in parts)
    return short_lists(together(list(equal_scores)))


def show_model(
    ranker: Ranker, model: rs.LinearModel | BoostedModel, choice: str, uncounted: str = ""
) -> None:
    """The headline, then features and weights, then what is proven."""
    from ranksieve.report.choice_words import CHOSEN_AGAIN, choice_sentences, optimality

    if not isinstance(model, rs.LinearModel):
        used = f"{len(model.names)} of {model.n_features} features"
        words(f"{model.method} has {model.ensemble.words} and uses {used}.")
        return
    used = f"{len(model.terms)} of {model.n_features} features"
    none = f"none of the {model.n_features} features, so all scores are equal"
    words(f"{model.method} uses {used if model.terms else none}.")
    how = f", {'chosen' if model.chosen_by else 'measured'} {choice}" if choice else ""
    measured = [
        f"{name.capitalize()}: {value:.4f}{how}." for name, value in model.metrics.items() if name != "cost"
    ]
    for sentence in choice_sentences(ranker, choice) or measured:
        words(sentence)
    if uncounted:
        words(uncounted)
    if "cost" in model.metrics:
        limit = model.parameters.get("max_cost")
        words(f"Cost: {model.metrics['cost']:g}{'' if limit is None else f' of at most {float(limit):g}'}.")
    if model.terms:
        table(*_feature_rows(ranker, model))
        _show_groups(ranker)
        if ranker.can("valid"):
            words(f"Chosen again: {CHOSEN_AGAIN}")
    if proof := optimality(model.certificate, model.parameters):
        words(proof)


def _feature_rows(ranker: Any, model: rs.LinearModel) -> tuple[list[str], list[tuple[str, ...]]]:
    """Headings and rows: features by falling weight, their costs, how often each is chosen again."""
    from ranksieve.report.page import percent_text

    ordered = sorted(model.terms, key=lambda term: -abs(term.weight))
    names = [term.name for term in ordered]
    columns = {"feature": names, "weight": [f"{term.weight:+.5g}" for term in ordered]}
    if (costs := getattr(ranker, "costs_", None)) is not None:
        columns["cost"] = [f"{cost:g}" for cost in costs.columns(names, subset=True).of_each]
    if ranker.can("valid"):
        choice = ranker.choice_
        again = dict(zip(choice.feature_names, choice.confidence.frequency.tolist(), strict=True))
        columns["chosen again"] = [percent_text(again[name]) for name in names]
    return list(columns), list(zip(*columns.values(), strict=True))


def _show_groups(ranker: Any) -> None:
    """What is paid once for several features, if anything is."""
    from ranksieve.report.fit_page import paid_for

    paid = paid_for(ranker)
    if any(name not in features or len(features) > 1 for name, _, features in paid):
        rows = [(name, f"{cost:g}", ", ".join(features)) for name, cost, features in paid]
        table(["paid once", "cost", "for"], rows)
