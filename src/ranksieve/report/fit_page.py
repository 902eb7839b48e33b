"""The page of one fit: what it says, as plain data, and its rendering."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve._types import AnyArray, FloatArray
from ranksieve._util.atomic import atomic_write
from ranksieve.report.gains import Gains, difference, gain_answers
from ranksieve.report.page import SURE, WHICH, Answer, Column, FeatureTable, feature_table, render_page
from ranksieve.report.path_explorer import Curves, curves_of_ranker, feature_colours, path_explorer
from ranksieve.report.words import (
    certificate,
    counted,
    listed,
    metric_text,
    metric_title,
    percent,
    percent_text,
    short_lists,
    weight_text,
)

if TYPE_CHECKING:  # the types alone would load scikit-learn
    from ranksieve.estimators import LinearRanker
    from ranksieve.metrics import Evaluation

OURS = "chosen"
OFTEN = 0.9
DATA = {"train": "training data", "valid": "validation data", "query_weight": "query weights"}


@dataclass(frozen=True)
class Planted:
    """Which features of a planted truth a ranker found, missed, or chose in addition."""

    found: list[str]
    missed: list[str]
    extra: list[str]


@dataclass(frozen=True, eq=False)
class Support:
    """How sure the features are, one value per feature; None for what was not measured.

    ``frequency`` is the share of ``n_subsamples`` refits on half of the queries that use the feature,
    ``strength`` the metric of ranking the training data by the feature alone.
    """

    frequency: FloatArray | None = None
    n_subsamples: int = 0
    strength: FloatArray | None = None
    metric: str = ""
    profile: str = ""


@dataclass(frozen=True)
class Content:
    """A report: ``model`` as :meth:`LinearModel.to_dict` gives it, metric means by what they describe.

    ``choice`` says in words how the model was chosen, ``uncounted`` which lists were too short to guide it,
    ``profile`` which conventions the metrics follow, ``too_short`` which lists were too short for them.
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

    @property
    def terms(self) -> list[Mapping[str, Any]]:
        """The features in use, the largest weight first."""
        return _by_weight(self.model)

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
        return dict(sorted({**prepared, **self.model["parameters"], **chosen_by}.items()))


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
        "figures": {},
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
        How sure each feature is.
    gains : Gains, optional
        The ranker under the name "chosen" against a baseline, query by query; default the densest point of
        its path on the queries that guided the choice.
    uncounted : str
        Which of these queries were too short to count, as a sentence.
    """
    model = ranker.to_model().to_dict()
    evaluations = evaluations or {}
    support = support or Support()
    gains = gains or _against_densest(ranker)
    return Content(
        title,
        model,
        _feature_table(ranker, support),
        _answers(model, support, gains),
        curves_of_ranker(ranker),
        choice,
        {label: dict(evaluation.mean) for label, evaluation in evaluations.items()},
        ", ".join(dict.fromkeys(evaluation.profile.name for evaluation in evaluations.values())),
        None if truth is None else planted_features(truth, ranker),
        gains,
        uncounted,
        [f"{label}: {short_lists(one)}" for label, one in evaluations.items() if one.too_short],
    )


def planted_features(truth: AnyArray, ranker: LinearRanker) -> Planted:
    """Compare a ranker's nonzero weights with the planted ones."""
    planted, chosen = truth != 0, ranker.coef_ != 0
    found, missed, extra = (
        [str(name) for name in ranker.feature_names_in_[mask]]
        for mask in (planted & chosen, planted & ~chosen, ~planted & chosen)
    )
    return Planted(found, missed, extra)


def _by_weight(model: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return sorted(model["terms"], key=lambda term: -abs(term["weight"]))


def _feature_table(ranker: LinearRanker, support: Support) -> FeatureTable:
    refits = (
        f"Share of {support.n_subsamples} refits at the same α, each on a random half of the queries, that "
        "use the feature."
    )
    alone = f"Training metric ({support.profile} profile) of ranking by the feature alone, up or down."
    columns = (
        Column("weight", "weight", weight_text, "Weight in the model."),
        Column("frequency", "frequency", percent_text, refits),
        Column("strength", f"alone, {metric_title(support.metric)}", metric_text, alone),
    )
    values = {"weight": ranker.coef_, "frequency": support.frequency, "strength": support.strength}
    measured = {key: value for key, value in values.items() if value is not None}
    return feature_table(columns, [str(name) for name in ranker.feature_names_in_], measured)


def _against_densest(ranker: Any) -> Gains | None:
    """The chosen point against the one with the most features, on the queries that guided the choice."""
    if not hasattr(ranker, "path_"):
        return None
    validation, used = ranker.validation_, ranker.path_.n_nonzero
    densest = int(np.argmax(used))
    if densest == ranker.chosen_:
        return None
    return Gains(
        validation.metric,
        f"on the {counted(len(validation.query_ids), 'query', 'queries')} that also guided the choice",
        f"the densest model of the path ({used[densest]} features)",
        validation.query_ids.tolist(),
        validation.values[densest],
        {OURS: ("Chosen model", validation.values[ranker.chosen_])},
        guided=True,
    )


def _answers(model: Mapping[str, Any], support: Support, gains: Gains | None) -> list[Answer]:
    """Which features, how sure, and, against a baseline, what is lost and whether that is significant."""
    names = [term["name"] for term in _by_weight(model)]
    which = "None was chosen, so all scores are equal."
    if names:
        which = f"{listed(names)}, the largest weight first."
    answers = [Answer(WHICH, f"{len(names)} of {model['n_features']}", which), _sure(model, support)]
    if gains is not None:
        answers += gain_answers(gains, OURS, difference(gains.ours[OURS][1], gains.theirs))
    return answers


def _sure(model: Mapping[str, Any], support: Support) -> Answer:
    gap, fitted_on = model["certificate"].get("relative_gap"), model["certificate"].get("n_features")
    fit = f"The fit is {certificate(gap)}."
    if gap is not None and fitted_on is not None:
        fit = f"The fit is {certificate(gap)} with the {counted(fitted_on, 'feature')} it was restricted to."
    if support.frequency is None:
        return Answer(SURE, "no proof" if gap is None else f"gap {percent(gap)}", fit)
    terms = _by_weight(model)
    often = [term["name"] for term in terms if support.frequency[term["index"]] >= OFTEN]
    rest = [term["name"] for term in terms if support.frequency[term["index"]] < OFTEN]
    details = (
        f"{len(often)} of its {counted(len(terms), 'feature')} return in at least {percent_text(OFTEN)} of "
        f"{support.n_subsamples} refits on random halves of the queries"
    )
    doubtful = f"; less sure: {listed(rest, 6)}" if rest else ""
    return Answer(SURE, f"{len(often)} of {len(terms)} stable", f"{details}{doubtful}. {fit}")
