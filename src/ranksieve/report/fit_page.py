"""The page of a fit: the model, its candidates, the path, costs, and what changed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve._types import AnyArray, FloatArray
from ranksieve._util.files import atomic_write
from ranksieve.choice.decide import DRAWS, Choice
from ranksieve.choice.families import RIDGED, SIZED
from ranksieve.model.linear import LinearModel, model_from_dict, nonzero_weights
from ranksieve.rankers.sparse_ranker import SparseRanker
from ranksieve.report.choice_words import CHOSEN_AGAIN, choice_of, choice_sentences, family_title, optimality
from ranksieve.report.explain_page import card_text
from ranksieve.report.page import (
    OTHER,
    PALETTE,
    SURE,
    WHICH,
    Answer,
    Column,
    FeatureTable,
    Figure,
    Gains,
    axis,
    counted,
    difference,
    faint,
    feature_table,
    gain_answers,
    layout,
    line,
    listed,
    log_axis,
    marks,
    mean_with_interval,
    metric_text,
    metric_title,
    packed,
    percent,
    percent_text,
    render_page,
    short_lists,
    weight_text,
)

if TYPE_CHECKING:
    from ranksieve.choice.update import Changes
    from ranksieve.metrics import Evaluation
    from ranksieve.rankers import Ranker


def paid_for(ranker: Any) -> list[tuple[str, float, list[str]]]:
    """What the features in use cost, each group once, the dearest first; nothing without costs."""
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


SHOWN_QUERIES = 5


@dataclass(frozen=True)
class ChangeTable:
    """Sentences, and rows of text: features with both weights, and queries with both metrics."""

    sentences: list[str]
    features: list[tuple[str, str, str, str]]
    queries: list[tuple[str, str, str, str]]
    metric: str


def change_table(
    found: Changes, file: str, texts: Mapping[Any, str], most: int = SHOWN_QUERIES
) -> ChangeTable:
    """What changed since the model of a file; ``texts`` are the words of queries."""
    features = [(one.feature, _weight(one.before), _weight(one.after), one.status) for one in found.features]
    queries = query_cells(found.extremes(most), texts)
    return ChangeTable(list(change_sentences(found, file)), features, queries, found.metric)


def query_cells(
    rows: Iterable[tuple[Any, float, float]], texts: Mapping[Any, str]
) -> list[tuple[str, str, str, str]]:
    """Queries by id and words, with both values and their difference."""
    return [(_called(query, texts), f"{a:.4f}", f"{b:.4f}", f"{b - a:+.4f}") for query, a, b in rows]


def _weight(weight: float | None) -> str:
    return "" if weight is None else f"{weight:+.5g}"


def _called(query: Any, texts: Mapping[Any, str]) -> str:
    """A query by its id, and its words if they are known."""
    return f"{query}: {texts[query]}" if texts.get(query) else str(query)


def change_sentences(found: Changes, file: str) -> Iterator[str]:
    """Which features came and went, and how the held-out queries fare."""
    entered, left = ([one.feature for one in found.features if one.status == s] for s in ("in", "out"))
    kept = sum(one.status == "kept" for one in found.features)
    if not entered and not left:
        same = f"{counted(kept, 'feature')} of {file} {'is' if kept == 1 else 'are'} kept"
        yield f"The {same}: no other candidate is better by more than chance."
    else:
        yield f"Of the features of {file} {kept} are kept; in: {_listed(entered)}; out: {_listed(left)}."
    if not len(found.after):
        yield f"{file} cannot be measured on these data: {found.unmeasured}."
        return
    gain, low, high = found.gain
    yield (
        f"{found.metric.upper()} ({found.profile} profile) over {len(found.after):,} held-out queries: "
        f"{found.before.mean():.4f} before, {found.after.mean():.4f} now: {gain:+.4f}, 95 % interval "
        f"{low:+.4f} to {high:+.4f}; {found.won:,} queries won, {found.lost:,} lost."
    )
    if found.seen:
        yield f"{file} was fitted on these queries, so what it had before is too high."
    if not found.raw:
        yield "Weights are per normalised unit, because features are scaled within each query."


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "none"


HOVER = "{x} features: {y:.4f}\n{name}"


def candidates_figure(choice: Choice) -> Figure:
    """One line per family: its best model of each size, as the choice compares them; a star: the chosen."""
    families = [*choice.families, *([] if choice.beyond is None else [choice.beyond])]
    lines = [
        _candidates_line(family, PALETTE[k % len(PALETTE)], beyond=family is choice.beyond)
        for k, family in enumerate(families)
    ]
    best, size = float(choice.validation.mean[choice.index]), int(np.count_nonzero(choice.candidate.coef))
    star = {"marker": {"symbol": "star"}, "hover": HOVER}
    chosen = marks([size], [best], "chosen", PALETTE[1], 14, **star)
    look = layout(
        380,
        showlegend=True,
        xaxis=axis("features", rangemode="tozero", dtick=1),
        yaxis=axis(f"held-out {metric_title(choice.validation.metric)}"),
    )
    return {"data": [*lines, chosen], "layout": look}


def _candidates_line(family: Any, colour: str, beyond: bool) -> Figure:
    """The best mean of each number of features."""
    used, mean = family.n_nonzero, family.validation.mean
    sizes = [int(size) for size in np.unique(used) if size > 0]
    best = [float(mean[used == size].max()) for size in sizes]
    name = "beyond the budget" if beyond else family_title(family.label)
    look = {"color": colour, "width": 2, "dash": "dot" if beyond else "solid"}
    dots = {"mode": "lines+markers", "marker": {"size": 6, "color": colour}}
    return line(sizes, best, name, colour, hover=HOVER) | dots | {"line": look}


MAX_LINES = 60  # weight curves beyond these are neither legible nor worth their bytes
SLIDER = (
    "label", "by", "alphas", "n_nonzero", "relative_gaps", "chosen", "metric", "mean", "standard_error",
    "test",
)  # fmt: skip
CHOSEN = "#7f8791"
CURSOR = "#d9534f"


@dataclass(frozen=True)
class Curves:
    """A family of models as lists, one entry per point; ``weights`` has one list per feature, largest first.

    Points go by ``alphas``, or where ``by`` says "features" by their number, which then stands there.

    ``points`` holds all nonzero weights of each point by name, ``test`` the metric on test data if measured.
    """

    alphas: list[float]
    objectives: list[float]
    relative_gaps: list[float]
    n_nonzero: list[int]
    weights: dict[str, list[float]]
    points: list[dict[str, float]]
    chosen: int
    metric: str
    mean: list[float]
    standard_error: list[float]
    test: list[float] = field(default_factory=list)
    label: str = ""
    by: str = "α"


def curves_of_ranker(ranker: Any) -> Curves | None:
    """The chosen family of a SparseRanker with its validation; None for other rankers."""
    if not isinstance(ranker, SparseRanker):
        return None
    choice, family, names = ranker.choice_, ranker.choice_.family, ranker.choice_.feature_names
    validation, kind = choice.validation, family.label.partition(" ")[0]
    return Curves(
        alphas=(family.n_nonzero if kind in SIZED else family.strengths).tolist(),
        by="features" if kind in SIZED else "ridge" if kind in RIDGED else "α",
        objectives=family.objectives.tolist(),
        relative_gaps=(family.gaps / family.objectives).tolist(),
        n_nonzero=family.n_nonzero.tolist(),
        weights=largest_weights(family.coefs, ranker.coef_, names),
        points=[nonzero_weights(w, names) for w in family.coefs],
        chosen=choice.index,
        metric=validation.metric,
        mean=validation.mean.tolist(),
        standard_error=validation.standard_error.tolist(),
    )


def largest_weights(coefs: FloatArray, chosen: FloatArray, names: Sequence[str]) -> dict[str, list[float]]:
    """Curves of the chosen features by falling weight, then of the others by their largest weight."""
    largest = np.abs(coefs).max(axis=0)
    order = np.lexsort((-largest, -np.abs(chosen)))
    used = [j for j in order if largest[j] > 0 or chosen[j] != 0]
    return {names[j]: coefs[:, j].tolist() for j in used[:MAX_LINES]}


def path_explorer(curves: Curves, chosen: Sequence[str]) -> dict[str, Any]:
    """Plain data for the page: the figure, the colours of chosen features, what the slider shows of a point.

    Points hold a weight or nothing for each feature, in order of entry; ``lines`` are the features whose
    weights are drawn.
    """
    features = list(dict.fromkeys(name for point in curves.points for name in point))
    place = {name: k for k, name in enumerate(features)}
    return {
        **{name: getattr(curves, name) for name in SLIDER},
        "features": features,
        "points": [packed((point.get(name) or None for name in features), 4) for point in curves.points],
        "figure": path_figure(curves),
        "lines": [place[name] for name in curves.weights if name in place],
        "hover": _hover(curves),
        "colours": feature_colours(chosen),
    }


def feature_colours(chosen: Sequence[str]) -> dict[str, str]:
    """The colour of each chosen feature; those beyond the palette share one."""
    return {name: PALETTE[k] if k < len(PALETTE) else OTHER for k, name in enumerate(chosen)}


def path_figure(curves: Curves) -> Figure:
    """Held-out metric and number of features, point by point; the page adds the weights of the points."""
    point = "α = {x:.3g}: " if curves.by == "α" else ""
    count = line(
        curves.alphas, curves.n_nonzero, "features", PALETTE[2], yaxis="y3", hover=f"{point}{{y}} features"
    )
    count["line"]["shape"] = "hv"
    return {"data": [*_metric_lines(curves), count], "layout": _path_layout(curves)}


def _metric_lines(curves: Curves) -> list[Figure]:
    """Held-out metric with its standard error, the chosen point, and the test metric if measured."""
    # Without the empty models, whose input order would stretch the axis.
    shown = [k for k, count in enumerate(curves.n_nonzero) if count > 0 or k == curves.chosen]
    alphas, mean = [curves.alphas[k] for k in shown], [curves.mean[k] for k in shown]
    low = [curves.mean[k] - curves.standard_error[k] for k in shown]
    high = [curves.mean[k] + curves.standard_error[k] for k in shown]
    metric, place = metric_title(curves.metric), {"yaxis": "y2", "hover": _hover(curves)}
    chosen, best = [curves.alphas[curves.chosen]], [curves.mean[curves.chosen]]
    lines = [
        {"type": "band", "x": alphas, "low": low, "high": high, "yaxis": "y2", "color": faint(PALETTE[0])},
        line(alphas, mean, f"held-out {metric}", PALETTE[0], **place),
        marks(chosen, best, "chosen", PALETTE[1], 10, **place),
    ]
    if curves.test:
        lines.append(line(alphas, [curves.test[k] for k in shown], f"test {metric}", PALETTE[3], **place))
    return lines


def _hover(curves: Curves) -> str:
    return f"{{name}}\n{'α = {x:.3g}' if curves.by == 'α' else '{x} features'}\n{{y:.4g}}"


def _path_layout(curves: Curves) -> dict[str, Any]:
    """Three axes above each other, a mark at the chosen point, and one that moves with the slider."""
    chosen = curves.alphas[curves.chosen]
    mark = {"type": "line", "yref": "paper", "x0": chosen, "x1": chosen}
    falling = log_axis("α, strong to weak", reversed=True, anchor="y3")
    return layout(
        620,
        xaxis=falling if curves.by == "α" else axis("features", dtick=1, anchor="y3"),
        yaxis=axis("weight", domain=[0.5, 1.0], zeroline=True),
        yaxis2=axis(metric_title(curves.metric), domain=[0.22, 0.45]),
        yaxis3=axis("features", domain=[0.0, 0.17], rangemode="tozero", dtick=1),
        shapes=[
            mark | {"line": {"color": CHOSEN, "dash": "dot", "width": 1.5}},
            mark | {"line": {"color": CURSOR, "width": 1.5}},
        ],
        annotations=[{"text": "chosen", "x": chosen, "yref": "paper"}],
    )


OURS = "chosen"
OFTEN = 0.9


def by_weight(model: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The terms of a model as plain data, the largest weight first."""
    return sorted(model["terms"], key=lambda term: -abs(term["weight"]))


def against_the_best(ranker: Any) -> Gains | None:
    """The chosen model against the best candidate, else the densest, on the held-out queries."""
    if not isinstance(ranker, SparseRanker):
        return None
    choice, validation = ranker.choice_, ranker.choice_.validation
    own = validation.values[choice.index]
    theirs, used, beyond = choice.best()
    baseline = f"the best candidate{' beyond the budget' if beyond else ''} ({counted(used, 'feature')})"
    if np.array_equal(own, theirs):
        theirs, used = choice.densest()
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
    which = (
        f"{listed(names)}, the largest weight first."
        if names
        else "None was chosen, so all scores are equal."
    )
    answers = [Answer(WHICH, f"{len(names)} of {model['n_features']}", which), _sure(ranker, model)]
    if gains is not None:
        answers += gain_answers(gains, OURS, difference(gains.ours[OURS][1], gains.theirs))
    return answers


def _sure(ranker: Any, model: Mapping[str, Any]) -> Answer:
    """In how many resamplings the best candidate uses a feature; without a choice, what is proven."""
    choice = choice_of(ranker)
    if choice is None:
        gap = model["certificate"].get("relative_gap")
        short = "no proof" if gap is None else f"gap {percent(gap)}"
        return Answer(SURE, short, optimality(model["certificate"], model["parameters"]))
    share = dict(zip(choice.feature_names, choice.confidence.frequency.tolist(), strict=True))
    names = [term["name"] for term in by_weight(model)]
    rest = [name for name in names if share[name] < OFTEN]
    details = (
        f"{len(names) - len(rest)} of its {counted(len(names), 'feature')} are in the best candidate of at "
        f"least {percent_text(OFTEN)} of {DRAWS} resamplings of the held-out queries, without new fits"
    )
    doubtful = f"; less sure: {listed(rest, 6)}" if rest else ""
    return Answer(SURE, f"{len(names) - len(rest)} of {len(names)} stable", f"{details}{doubtful}.")


@dataclass(frozen=True, eq=False)
class Unseen:
    """The evaluation of a file of queries that chose nothing; ``metric`` is what the model was chosen by."""

    name: str
    evaluation: Evaluation
    metric: str

    @property
    def label(self) -> str:
        """What the table of metrics calls it."""
        return f"{self.name}, test queries that chose nothing"

    @property
    def sentence(self) -> str:
        """The metric with its interval over queries."""
        found = self.evaluation
        mean, low, high = mean_with_interval(found.per_query[self.metric])
        queries = counted(len(found.query_ids), "query", "queries")
        return (
            f"Test {metric_title(self.metric)} ({found.profile.name} profile): {metric_text(mean)}, "
            f"95 % interval {metric_text(low)} to {metric_text(high)}, over the {queries} of "
            f"{self.name}, which chose nothing: neither features nor weights nor this model among others."
        )


WEIGHT = Column("weight", "weight", weight_text, "Weight in the model.")
DATA = {
    "train": "training data", "valid": "validation data", "query_weight": "query weights",
    "previous": "previous model",
}  # fmt: skip


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


@dataclass(frozen=True, eq=False)
class Content:
    """What the page of a fit shows.

    Parameters
    ----------
    title : str
        Heading of the page.
    model : mapping
        As :meth:`LinearModel.to_dict` gives it.
    ranker : Ranker, optional
        That has this model: its path, candidates, costs and changes are shown.
    choice : str
        How the model was chosen, in words that follow "chosen".
    evaluations : mapping of str to Evaluation, optional
        What was measured, by the words that describe it.
    truth : array, optional
        Planted weights of synthetic data.
    support : Support, optional
        What each feature is worth by itself.
    gains : Gains, optional
        The ranker under the name "chosen" against a baseline, query by query.
    uncounted : str
        Which queries were too short to guide the choice, as a sentence.
    test : Unseen, optional
        How the model ranks queries that chose nothing; the page then begins with this.
    query_texts : mapping of query id to str, optional
        The words of the queries that guided the choice.
    before : str
        What to call the model that the fit began with.
    """

    title: str
    model: Mapping[str, Any]
    ranker: Any = None
    choice: str = ""
    evaluations: Mapping[str, Evaluation] | None = None
    truth: AnyArray | None = None
    support: Support | None = None
    gains: Gains | None = None
    uncounted: str = ""
    test: Unseen | None = None
    query_texts: Mapping[Any, str] | None = None
    before: str = ""

    @cached_property
    def features(self) -> FeatureTable:
        """All features with their weights, and what else is known of each."""
        if self.ranker is not None:
            return _feature_table(self.ranker, self.support or Support())
        model = model_from_dict(self.model)
        return feature_table([WEIGHT], model.names, {"weight": model.weights})

    @property
    def answers(self) -> list[Answer]:
        return fit_answers(self.ranker, self.model, self.gains)

    @cached_property
    def curves(self) -> Curves | None:
        """The path, if the ranker has one."""
        return curves_of_ranker(self.ranker)

    @cached_property
    def candidates(self) -> Figure | None:
        """The figure of all candidates."""
        return candidates_figure(self.ranker.choice_) if isinstance(self.ranker, SparseRanker) else None

    @property
    def planted(self) -> Planted | None:
        return None if self.truth is None else planted_features(self.truth, self.ranker)

    @property
    def headline(self) -> list[str]:
        """What came of the choice."""
        return choice_sentences(self.ranker, self.choice)

    @property
    def tested(self) -> str:
        """How the model ranks queries that chose nothing."""
        return "" if self.test is None else self.test.sentence

    @property
    def costs(self) -> list[tuple[str, float, list[str]]]:
        """What is paid for: name, cost, and the features in use that come with it."""
        return paid_for(self.ranker)

    @property
    def changes(self) -> ChangeTable | None:
        """What changed from the model before."""
        changes = getattr(self.ranker, "changes_", None)
        return None if changes is None else change_table(changes, self.before, self.query_texts or {})

    @property
    def all_evaluations(self) -> dict[str, Evaluation]:
        """All that was measured, test queries first."""
        test = {} if self.test is None else {self.test.label: self.test.evaluation}
        return test | dict(self.evaluations or {})

    @property
    def measured(self) -> dict[str, Mapping[str, float]]:
        """Metric means by what they describe."""
        return {label: one.mean for label, one in self.all_evaluations.items()}

    @property
    def profile(self) -> str:
        """The conventions that the metrics follow."""
        return ", ".join(dict.fromkeys(one.profile.name for one in self.all_evaluations.values()))

    @property
    def too_short(self) -> list[str]:
        """Which lists were too short for the metrics."""
        evaluations = self.all_evaluations.items()
        return [f"{label}: {short_lists(one)}" for label, one in evaluations if one.too_short]

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


def build_content(ranker: Ranker, *, title: str = "Sparse ranker", **shown: Any) -> Content:
    """The page of a fitted ranker; ``shown`` are further fields of :class:`Content`.

    Without ``gains``: against the best candidate, within the budget or beyond it, or the densest, on the
    queries that guided the choice.
    """
    gains, texts = shown.pop("gains", None) or against_the_best(ranker), shown.get("query_texts")
    if gains is not None and texts:
        gains = replace(gains, texts=texts)
    return Content(title, ranker.to_model().to_dict(), ranker, gains=gains, **shown)


def content_of_model(model: LinearModel, **shown: Any) -> Content:
    """The page of a model that no ranker holds, such as a scorecard; ``shown`` as in :class:`Content`."""
    return Content(model=model.to_dict(), **shown)


def planted_features(truth: AnyArray, ranker: Ranker) -> Planted:
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
    names, costs = ranker.coef_names_, getattr(ranker, "costs_", None)
    values = {
        "weight": ranker.coef_,
        "frequency": ranker.choice_.confidence.frequency if ranker.can("valid") else None,
        "strength": support.strength,
        "cost": None if costs is None else costs.columns(names).of_each,
    }
    measured = {key: value for key, value in values.items() if value is not None}
    return feature_table(columns, names, measured)
