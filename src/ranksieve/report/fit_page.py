"""The page of one fit: what it says, as plain data, and its rendering."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ranksieve._types import AnyArray, FloatArray
from ranksieve._util.atomic import atomic_write
from ranksieve.estimators.sparse_ranker import SparseRanker
from ranksieve.model import LinearModel, model_from_dict
from ranksieve.report.candidates_figure import candidates_figure
from ranksieve.report.canvas import Figure
from ranksieve.report.card_words import card_text
from ranksieve.report.change_words import ChangeTable, change_table
from ranksieve.report.choice_words import CHOSEN_AGAIN, choice_sentences, optimality
from ranksieve.report.cost_words import paid_for
from ranksieve.report.fit_answers import against_the_best, by_weight, fit_answers
from ranksieve.report.gains import Gains
from ranksieve.report.page import Answer, Column, FeatureTable, feature_table, render_page
from ranksieve.report.path_explorer import Curves, curves_of_ranker, feature_colours, path_explorer
from ranksieve.report.unseen import Unseen
from ranksieve.report.words import (
    metric_text,
    metric_title,
    percent_text,
    short_lists,
    weight_text,
)

if TYPE_CHECKING:  # the types alone would load scikit-learn
    from ranksieve.estimators import LinearRanker
    from ranksieve.metrics import Evaluation

WEIGHT = Column("weight", "weight", weight_text, "Weight in the model.")
DATA = {
    "train": "training data",
    "valid": "validation data",
    "query_weight": "query weights",
    "warm_start": "the model before",
}


@dataclass(frozen=True)
class Planted:
    """Which features of a planted truth a ranker found, missed, or chose in addition."""

    found: list[str]
    missed: list[str]
    extra: list[str]


@dataclass(frozen=True, eq=False)
class Support:
    """What each feature is worth by itself; None if it was not measured.

    ``strength`` is the metric of ranking the training data by the feature alone.
    """

    strength: FloatArray | None = None
    metric: str = ""
    profile: str = ""


@dataclass(frozen=True)
class Content:
    """A report: ``model`` as :meth:`LinearModel.to_dict` gives it, metric means by what they describe.

    ``choice`` says in words how the model was chosen, ``uncounted`` which lists were too short to guide it,
    ``profile`` which conventions the metrics follow, ``too_short`` which lists were too short for them,
    ``headline`` what came of the choice. ``candidates`` is the figure of all candidates. ``costs`` lists what
    is paid for: name, cost, and the features in use that come with it. ``tested`` says how the
    model ranks queries that chose nothing, ``changes`` what changed from the model before.
    """

    title: str
    model: Mapping[str, Any]
    features: FeatureTable
    answers: Sequence[Answer] = ()
    curves: Curves | None = None
    choice: str = ""
    measured: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    profile: str = ""
    planted: Planted | None = None
    gains: Gains | None = None
    uncounted: str = ""
    too_short: Sequence[str] = ()
    headline: Sequence[str] = ()
    candidates: Figure | None = None
    costs: Sequence[tuple[str, float, Sequence[str]]] = ()
    tested: str = ""
    changes: ChangeTable | None = None

    @property
    def terms(self) -> list[Mapping[str, Any]]:
        """The features in use, the largest weight first."""
        return by_weight(self.model)

    @property
    def data(self) -> dict[str, str]:
        """The fingerprints of all data that the model learned from, by the words for them."""
        return {DATA.get(name, name): fingerprint for name, fingerprint in self.model["data"].items()}

    @property
    def settings(self) -> dict[str, Any]:
        """All parameters, how features were prepared, and what the model was chosen by, by name."""
        missing, normalisation = self.model["missing"], self.model["normalisation"]
        prepared = {
            "missing": missing["policy"] if missing else "error",
            "normalise": normalisation["kind"] if normalisation else "none",
        }
        chosen_by = self.model["chosen_by"] or {}
        return dict(sorted({**self.model["parameters"], **prepared, **chosen_by}.items()))

    @property
    def proof(self) -> str:
        """What the certificate proves."""
        return optimality(self.model["certificate"], self.model["parameters"])

    @property
    def card(self) -> str:
        """The model as a scorecard in text, if it is one."""
        return card_text(model_from_dict(self.model)) if self.model.get("card") else ""


def write_report(content: Content, path: str | os.PathLike[str]) -> None:
    """Write the page of a fit, whole or not at all."""
    page = render(content)
    with atomic_write(path) as file:
        file.write(page)


def render(content: Content) -> str:
    """The page of a fit as text."""
    chosen = [term["name"] for term in content.terms]
    metrics = dict.fromkeys(metric for means in content.measured.values() for metric in means)
    data = {
        "figures": {} if content.candidates is None else {"candidates": content.candidates},
        "explorers": {} if content.curves is None else {"path": [path_explorer(content.curves, chosen)]},
        "gains": {} if content.gains is None else {"gains": content.gains.page_data()},
        "features": {},
    }
    colours = feature_colours(chosen)
    return render_page("fit.html.j2", data, content=content, colours=colours, metrics=list(metrics))


def build_content(
    ranker: LinearRanker,
    *,
    title: str = "Sparse ranker",
    choice: str = "",
    evaluations: Mapping[str, Evaluation] | None = None,
    truth: AnyArray | None = None,
    support: Support | None = None,
    gains: Gains | None = None,
    uncounted: str = "",
    test: Unseen | None = None,
    query_texts: Mapping[Any, str] | None = None,
    before: str = "",
) -> Content:
    """The content of a fitted ranker's report.

    Parameters
    ----------
    ranker : LinearRanker
        Fitted; its path, if it has one, is shown.
    title : str
        Heading of the page.
    choice : str
        How the point of the path was chosen, in words that follow "chosen".
    evaluations : mapping of str to Evaluation, optional
        What was measured, by the words that describe it.
    truth : array, optional
        Planted weights of synthetic data.
    support : Support, optional
        What each feature is worth by itself.
    gains : Gains, optional
        The ranker under the name "chosen" against a baseline, query by query; default the best candidate,
        within the budget or beyond it, or the densest, on the queries that guided the choice.
    uncounted : str
        Which of these queries were too short to count, as a sentence.
    test : Unseen, optional
        How the model ranks queries that chose nothing; the page then begins with this.
    query_texts : mapping of query id to str, optional
        The words of the queries that guided the choice.
    before : str
        What to call the model that the fit began with.
    """
    model = ranker.to_model().to_dict()
    support = support or Support()
    gains = gains or against_the_best(ranker)
    if gains is not None and query_texts:
        gains = replace(gains, texts=query_texts)
    told = {} if test is None else {test.label: test.evaluation}
    changes = getattr(ranker, "changes_", None)
    return Content(
        title,
        model,
        _feature_table(ranker, support),
        fit_answers(ranker, model, gains),
        curves_of_ranker(ranker),
        choice,
        planted=None if truth is None else planted_features(truth, ranker),
        gains=gains,
        uncounted=uncounted,
        headline=choice_sentences(ranker, choice),
        tested="" if test is None else test.sentence,
        candidates=candidates_figure(ranker) if isinstance(ranker, SparseRanker) else None,
        costs=paid_for(ranker),
        changes=None if changes is None else change_table(changes, before, query_texts or {}),
        **_measured(told | dict(evaluations or {})),
    )


def content_of_model(
    model: LinearModel, *, title: str, evaluations: Mapping[str, Evaluation] | None = None
) -> Content:
    """The content of the page of a model that no ranker holds, such as a scorecard."""
    entries, evaluations = model.to_dict(), evaluations or {}
    return Content(
        title,
        entries,
        feature_table([WEIGHT], model.names, {"weight": model.weights}),
        fit_answers(None, entries, None),
        **_measured(evaluations),
    )


def _measured(evaluations: Mapping[str, Evaluation]) -> dict[str, Any]:
    """Metric means by what they describe, whose conventions they follow, and lists too short for them."""
    return {
        "measured": {label: dict(evaluation.mean) for label, evaluation in evaluations.items()},
        "profile": ", ".join(dict.fromkeys(one.profile.name for one in evaluations.values())),
        "too_short": [f"{label}: {short_lists(one)}" for label, one in evaluations.items() if one.too_short],
    }


def planted_features(truth: AnyArray, ranker: LinearRanker) -> Planted:
    """Compare a ranker's nonzero weights with the planted ones."""
    planted, chosen = truth != 0, ranker.coef_ != 0
    found, missed, extra = (
        [str(name) for name in ranker.feature_names_in_[mask]]
        for mask in (planted & chosen, planted & ~chosen, ~planted & chosen)
    )
    return Planted(found, missed, extra)


def _feature_table(ranker: Any, support: Support) -> FeatureTable:
    alone = f"Training metric ({support.profile} profile) of ranking by the feature alone, up or down."
    columns = (
        WEIGHT,
        Column("frequency", "chosen again", percent_text, CHOSEN_AGAIN.capitalize()),
        Column("strength", f"alone, {metric_title(support.metric)}", metric_text, alone),
        Column("cost", "cost", "{:g}".format, "What the feature costs; features of a group share one cost."),
    )
    sure = getattr(ranker, "confidence_", None)
    frequency = None if sure is None else sure.frequency
    names, costs = ranker._names(), getattr(ranker, "costs_", None)
    values = {
        "weight": ranker.coef_,
        "frequency": frequency,
        "strength": support.strength,
        "cost": None if costs is None else costs.columns(names).of_each,
    }
    measured = {key: value for key, value in values.items() if value is not None}
    return feature_table(columns, names, measured)
