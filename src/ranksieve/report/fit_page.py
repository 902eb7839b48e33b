"""Page of a fit: the model, candidates, path, costs, and changes since a previous model."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve._types import AnyArray, FloatArray
from ranksieve._util.files import atomic_write
from ranksieve.choice.decide import BOOTSTRAP_SAMPLES, Choice, Rival, validation_of
from ranksieve.choice.families import RIDGE_FAMILIES, SIZE_FAMILIES
from ranksieve.choice.held_out import standard_error
from ranksieve.data.steps import StepColumns
from ranksieve.metrics.evaluate import short_lists
from ranksieve.model.linear import LinearModel, model_from_dict, nonzero_weights
from ranksieve.rankers.sparse_ranker import SparseRanker
from ranksieve.report.curve_figures import CurvePicture, curve_pictures
from ranksieve.report.page import (
    ALONE,
    CHOSEN,
    HOW_SURE,
    OTHER,
    PALETTE,
    WHICH_FEATURES,
    Answer,
    Column,
    FeatureTable,
    Figure,
    Gains,
    axis,
    base_family,
    difference,
    faint,
    family_colour,
    feature_table,
    gain_answers,
    layout,
    legend_title,
    line,
    log_axis,
    marks,
    mean_with_interval,
    pack,
    render_page,
    size_axis,
)
from ranksieve.show.card import DATA_TITLES
from ranksieve.show.fit import SCALED_WEIGHT, weights_in_data
from ranksieve.show.formats import (
    join_names,
    metric_sentence,
    metric_text,
    metric_title,
    percent,
    percent_text,
    plural,
    weight_text,
)
from ranksieve.show.sentences import (
    SELECTION_FREQUENCY,
    ChangeTable,
    change_table,
    choice_of,
    choice_sentences,
    family_title,
    optimality,
    paid_for,
)

if TYPE_CHECKING:
    from ranksieve.data.dataset import Dataset
    from ranksieve.metrics import Evaluation
    from ranksieve.rankers import Ranker


CANDIDATE_HOVER = "{text}\n{x:.4g} {what}: {y:.4f}"
BEYOND = "beyond the budget"


def candidates_figure(choice: Choice, by: str = "features") -> Figure:
    """Held-out metric of the best candidates of each family against their number of features or cost.

    Variants of a family share a line. Hollow points are beyond the budget; a star marks the chosen model.
    """
    table = _candidate_table(choice, by)
    within, hover = table.within, CANDIDATE_HOVER.replace("{what}", by)
    lines = []
    for name in dict.fromkeys(table.family[within].tolist()):
        rows = table.best_of(within & (table.family == name))
        dots = {"mode": "lines+markers", "marker": {"size": 6, "color": family_colour(name)}}
        points = table.points(rows) | {"hover": hover}
        title = legend_title(name)
        lines.append(line(name=title, colour=family_colour(name), **points) | dots)
    if len(beyond := table.best_of(table.beyond)):
        hollow = {"marker": {"symbol": "circle-open"}, "hover": hover}
        lines.append(marks(name=BEYOND, colour=OTHER, size=7, **table.points(beyond), **hollow))
    star = {"marker": {"symbol": "star"}, "hover": hover}
    chosen = marks(name="chosen", colour=CHOSEN, size=15, **table.points(np.array([choice.row])), **star)
    limit = choice.budget.max_cost if by == "cost" else choice.budget.max_features
    shown = np.concatenate([trace["x"] for trace in lines])
    look = layout(
        380,
        showlegend=True,
        alt=_candidates_alt(lines, chosen, metric_title(choice.validation.metric), by),
        xaxis=size_axis(by, shown.tolist()),
        yaxis=axis(f"held-out {metric_title(choice.validation.metric)}"),
        **({} if limit is None or limit > shown.max() else _limit_mark(float(limit))),
    )
    return {"data": [*lines, chosen], "layout": look}


@dataclass(frozen=True, eq=False)
class _CandidateTable:
    """One entry per candidate; ``criterion`` is the metric averaged over neighbours."""

    family: AnyArray
    label: AnyArray
    x: AnyArray
    mean: FloatArray
    criterion: FloatArray
    within: AnyArray
    beyond: AnyArray
    every_size: bool

    def best_of(self, mask: AnyArray) -> AnyArray:
        """The best candidate of each size, or those that are better than all cheaper ones, by ascending x."""
        rows = np.flatnonzero(mask)
        rows = rows[np.lexsort((-self.criterion[rows], self.x[rows]))]
        criterion = np.append(-np.inf, self.criterion[rows])
        best = np.diff(self.x[rows], prepend=-1.0) > 0  # of its size
        if not self.every_size:
            best = criterion[1:] > np.maximum.accumulate(criterion)[:-1]
        return np.asarray(rows[best])

    def points(self, rows: AnyArray) -> dict[str, Any]:
        texts = [family_title(label) for label in self.label[rows].tolist()]
        return {"x": self.x[rows].tolist(), "y": self.mean[rows].tolist(), "text": texts}


def _candidate_table(choice: Choice, by: str) -> _CandidateTable:
    families, budget = choice.measured_families, choice.budget
    validations = [validation_of(family) for family in families]
    coefs = np.concatenate([family.coefs for family in families])
    labels = np.array([family.label for family in families for _ in family.candidates])
    size = np.concatenate([family.n_nonzero for family in families])
    costs = budget.costs.of_models(coefs) if by == "cost" and budget.costs is not None else size
    allowed = np.append(choice.allowed, np.zeros(len(coefs) - choice.n_candidates, dtype=bool))
    return _CandidateTable(
        family=np.array([base_family(label) for label in labels.tolist()]),
        label=labels,
        x=costs,
        mean=np.concatenate([one.values.mean(axis=1) for one in validations]),
        criterion=np.concatenate([one.mean for one in validations]),
        within=allowed & (size > 0),
        beyond=~budget.allows(coefs) & (size > 0),
        every_size=by == "features",
    )


def _candidates_alt(lines: Sequence[Figure], chosen: Figure, metric: str, by: str) -> str:
    """The chosen model and the highest point of each line."""
    tops = [(one["name"], max(zip(one["y"], one["x"], strict=True))) for one in lines]
    others = "; ".join(f"{name} at best {metric_text(y)} with {by} {x:g}" for name, (y, x) in tops)
    own = f"{metric_text(chosen['y'][0])} with {by} {chosen['x'][0]:g}"
    return f"Held-out {metric} against {by}: the chosen model has {own}; {others}."


def _limit_mark(limit: float) -> dict[str, Any]:
    """A dotted line at the budget."""
    ends = {"type": "line", "yref": "paper", "x0": limit, "x1": limit}
    return {
        "shapes": [ends | {"line": {"color": OTHER, "dash": "dot", "width": 1.5}}],
        "annotations": [{"text": "budget", "x": limit, "yref": "paper"}],
    }


MAX_LINES = 60  # more weight curves are not legible
SLIDER = (
    "label", "by", "alphas", "n_nonzero", "relative_gaps", "chosen", "metric", "mean", "standard_error",
    "test",
)  # fmt: skip


READ = ("mean", "standard_error", "test")


@dataclass(frozen=True)
class Curves:
    """A family of models as lists, one entry per point; ``weights`` has one list per feature, largest first.

    For models with curves, the weight of a feature is the range of its curve.
    ``alphas`` are the x values of the points; if ``by`` is "features", they are numbers of features.
    ``points``: nonzero weights of each point by name; ``test``: metric on test data, if measured.
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
    """The chosen family of a SparseRanker with its held-out metric; None for other rankers."""
    if not isinstance(ranker, SparseRanker):
        return None
    choice, family, names = ranker.choice_, ranker.choice_.family, ranker.choice_.feature_names
    values, kind = choice.validation.values, family.label.partition(" ")[0]
    weights, chosen = weights_of_features(family.coefs, family.columns), ranker.coef_
    if family.columns is not None:
        chosen = weights_of_features(chosen[None], family.columns)[0]
    return Curves(
        alphas=(family.n_nonzero if kind in SIZE_FAMILIES else family.strengths).tolist(),
        by="features" if kind in SIZE_FAMILIES else "ridge" if kind in RIDGE_FAMILIES else "α",
        objectives=family.objectives.tolist(),
        relative_gaps=(family.gaps / family.objectives).tolist(),
        n_nonzero=family.n_nonzero.tolist(),
        weights=largest_weights(weights, chosen, names),
        points=[nonzero_weights(w, names) for w in weights],
        chosen=choice.index,
        metric=choice.validation.metric,
        mean=values.mean(axis=1).tolist(),
        standard_error=standard_error(values).tolist(),
    )


def weights_of_features(coefs: FloatArray, columns: StepColumns | None) -> FloatArray:
    """Weights of features, one row per model; with step columns, the ranges of the curves."""
    if columns is None:
        return coefs
    ranges = np.zeros((len(coefs), columns.n_features))
    for row, w in zip(ranges, coefs, strict=True):
        used = columns.used(w)
        row[used] = np.ptp(columns.levels(w, used), axis=1)
    return ranges


def largest_weights(coefs: FloatArray, chosen: FloatArray, names: Sequence[str]) -> dict[str, list[float]]:
    """Curves of the chosen features by decreasing weight, then of the others by their largest weight."""
    largest = np.abs(coefs).max(axis=0)
    order = np.lexsort((-largest, -np.abs(chosen)))
    used = [j for j in order if largest[j] > 0 or chosen[j] != 0]
    return {names[j]: coefs[:, j].tolist() for j in used[:MAX_LINES]}


def path_explorer(curves: Curves, chosen: Sequence[str], weight: str = "weight") -> dict[str, Any]:
    """Plain data for the page: the figure, colours of chosen features, and values shown by the slider.

    Points have a weight or nothing for each feature, in order of entry; ``lines`` are the features whose
    weights are drawn.
    """
    features = list(dict.fromkeys(name for point in curves.points for name in point))
    index = {name: k for k, name in enumerate(features)}
    return {
        **{name: getattr(curves, name) for name in SLIDER},
        **{name: [round(value, 4) for value in getattr(curves, name)] for name in READ},  # as in sentences
        "features": features,
        "points": [pack((point.get(name) or None for name in features), 4) for point in curves.points],
        "figure": path_figure(curves, weight),
        "lines": [index[name] for name in curves.weights if name in index],
        "hover": _hover(curves),
        "colours": feature_colours(chosen),
    }


def feature_colours(chosen: Sequence[str]) -> dict[str, str]:
    """Colours of the chosen features; those beyond the palette share one."""
    return {name: PALETTE[k] if k < len(PALETTE) else OTHER for k, name in enumerate(chosen)}


def path_figure(curves: Curves, weight: str = "weight") -> Figure:
    """Held-out metric and, unless it is x, number of features of each point; the page adds the weights."""
    count = []
    if curves.by != "features":
        hover = f"{curves.by} = {{x:.3g}}: {{y}} features"
        count = [line(curves.alphas, curves.n_nonzero, "features", OTHER, yaxis="y3", hover=hover)]
        count[0]["line"]["shape"] = "hv"
    return {"data": [*_metric_lines(curves), *count], "layout": _path_layout(curves, weight)}


def _metric_lines(curves: Curves) -> list[Figure]:
    """Held-out metric with its standard error, the chosen point, and the test metric if measured."""
    # Empty models rank in input order; their metric would stretch the axis.
    shown = [k for k, count in enumerate(curves.n_nonzero) if count > 0 or k == curves.chosen]
    alphas, mean = [curves.alphas[k] for k in shown], [curves.mean[k] for k in shown]
    low = [curves.mean[k] - curves.standard_error[k] for k in shown]
    high = [curves.mean[k] + curves.standard_error[k] for k in shown]
    metric, options = metric_title(curves.metric), {"yaxis": "y2", "hover": _hover(curves)}
    chosen, best = [curves.alphas[curves.chosen]], [curves.mean[curves.chosen]]
    lines = [
        {"type": "band", "x": alphas, "low": low, "high": high, "yaxis": "y2", "color": faint(PALETTE[0])},
        line(alphas, mean, f"held-out {metric}", PALETTE[0], **options),
        marks(chosen, best, "chosen", CHOSEN, 10, **options),
    ]
    if curves.test:
        lines.append(line(alphas, [curves.test[k] for k in shown], f"test {metric}", PALETTE[3], **options))
    return lines


def _hover(curves: Curves) -> str:
    return f"{{name}}\n{'{x} features' if curves.by == 'features' else curves.by + ' = {x:.3g}'}\n{{y:.4g}}"


def _path_layout(curves: Curves, weight: str) -> dict[str, Any]:
    """Panels, a mark at the chosen point, and one that moves with the slider."""
    chosen, sizes = curves.alphas[curves.chosen], curves.by == "features"
    mark = {"type": "line", "yref": "paper", "x0": chosen, "x1": chosen}
    falling = log_axis(f"{curves.by}, decreasing", reversed=True, anchor="y3")
    metric, best = metric_title(curves.metric), metric_text(curves.mean[curves.chosen])
    look = layout(
        520 if sizes else 620,
        alt=f"Weights and held-out {metric} of {plural(len(curves.alphas), 'model')}; the chosen one has "
        f"{plural(curves.n_nonzero[curves.chosen], 'feature')} and {best}.",
        xaxis=axis("features", dtick=1, anchor="y2") if sizes else falling,
        yaxis=axis(weight, domain=[0.42, 1.0] if sizes else [0.5, 1.0], zeroline=True),
        yaxis2=axis(metric, domain=[0.0, 0.34] if sizes else [0.22, 0.45]),
        shapes=[
            mark | {"line": {"color": CHOSEN, "dash": "dot", "width": 1.5}},
            mark | {"line": {"color": OTHER, "width": 1.5}},
        ],
        annotations=[{"text": "chosen", "x": chosen, "yref": "paper"}],
    )
    if not sizes:
        look["yaxis3"] = axis("features", domain=[0.0, 0.17], rangemode="tozero", dtick=1)
    return look


OURS = "chosen"
STABLE_SHARE = 0.9


def by_weight(model: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Terms of a model as plain data, by decreasing |weight|, or by the range of their curves."""
    size = weights_by_feature(model_from_dict(model))
    return sorted(model["terms"], key=lambda term: -abs(size[term["name"]]))


def weights_by_feature(model: LinearModel) -> dict[str, float]:
    """Weights by feature, or the ranges of their curves."""
    return {term.name: term.weight if term.curve is None else term.curve.range for term in model.terms}


def rival_of(ranker: Any) -> tuple[Rival, str] | None:
    """The best candidate, or if that is the chosen one the densest, with its description."""
    if not isinstance(ranker, SparseRanker):
        return None
    choice = ranker.choice_
    ours, best, densest = choice.validation.values[choice.index], choice.best(), choice.densest()
    which = f"best candidate{' beyond the budget' if best.is_beyond else ''}"
    for rival, text in ((best, which), (densest, "densest candidate")):
        if not np.array_equal(ours, rival.values):
            return rival, f"the {text} ({plural(rival.n_features, 'feature')})"
    return None


def against_the_best(ranker: Any) -> Gains | None:
    """The chosen model against the best candidate, or the densest, on the held-out queries."""
    if (compared := rival_of(ranker)) is None:
        return None
    (rival, baseline), validation = compared, ranker.choice_.validation
    return Gains(
        validation.metric,
        f"on {plural(len(validation.query_ids), 'held-out query', 'held-out queries')} used for selection",
        baseline,
        validation.query_ids.tolist(),
        rival.values,
        {OURS: ("Chosen model", validation.values[ranker.choice_.index])},
        guided=True,
    )


def has_curves(model: Mapping[str, Any]) -> bool:
    """Whether a term of a model as plain data is a curve."""
    return any("curve" in term for term in model["terms"])


def fit_answers(ranker: Any, model: Mapping[str, Any], gains: Gains | None) -> list[Answer]:
    """The summary box: features, their stability, loss against a baseline, significance."""
    names = [term["name"] for term in by_weight(model)]
    size = "range of the curves" if has_curves(model) else "weight"
    which = f"{join_names(names)} (by decreasing {size})." if names else "None, so all scores are equal."
    features = Answer(WHICH_FEATURES, f"{len(names)} of {model['n_features']}", which)
    answers = [features, _stability_answer(ranker, model)]
    if gains is not None:
        answers += gain_answers(gains, OURS, difference(gains.ours[OURS][1], gains.theirs))
    return answers


def _stability_answer(ranker: Any, model: Mapping[str, Any]) -> Answer:
    """Number of features with a high selection frequency; without a selection, the proof."""
    choice = choice_of(ranker)
    if choice is None:
        gap = model["certificate"].get("relative_gap")
        short = "no proof" if gap is None else f"gap {percent(gap)}"
        return Answer(HOW_SURE, short, optimality(model["certificate"], model["parameters"]))
    share = dict(zip(choice.feature_names, choice.confidence.frequency.tolist(), strict=True))
    names = [term["name"] for term in by_weight(model)]
    unstable = [name for name in names if share[name] < STABLE_SHARE]
    details = (
        f"{len(names) - len(unstable)} of {plural(len(names), 'feature')} are used by the best "
        f"candidate in at least {percent_text(STABLE_SHARE)} of {BOOTSTRAP_SAMPLES} bootstrap samples of "
        "held-out queries"
    )
    others = f"; less stable: {join_names(unstable, 6)}" if unstable else ""
    return Answer(HOW_SURE, f"{len(names) - len(unstable)} of {len(names)} stable", f"{details}{others}.")


TEST_DATA = "Test data: used neither for fitting nor for selection."


@dataclass(frozen=True, eq=False)
class ModelTest:
    """The evaluation of a model on test data; ``metric`` is the one the model was selected by.

    ``rival``: another candidate and its metric per query.
    """

    name: str
    evaluation: Evaluation
    metric: str
    rival: tuple[str, FloatArray] | None = None

    @property
    def label(self) -> str:
        """Row label in the table of metrics."""
        return f"{self.name} (test data)"

    @property
    def gains(self) -> Gains | None:
        """The model against the other candidate, per query."""
        if self.rival is None:
            return None
        (baseline, theirs), ids = self.rival, self.evaluation.query_ids
        where = f"on {plural(len(ids), 'query', 'queries')} of {self.name}"
        ours = {OURS: ("Chosen model", self.evaluation.per_query[self.metric])}
        return Gains(self.metric, where, baseline, ids.tolist(), theirs, ours)

    @property
    def sentence(self) -> str:
        """The metric with its confidence interval."""
        interval = mean_with_interval(self.evaluation.per_query[self.metric])
        queries = f"{plural(len(self.evaluation.query_ids), 'query', 'queries')} of {self.name}"
        title, conventions = f"Test {metric_title(self.metric)}", self.evaluation.profile.phrase
        return f"{metric_sentence(title, interval, queries, conventions)} {TEST_DATA}"


WEIGHT = Column("weight", "weight", weight_text, "Weight in the model.")
SCALED = Column("weight", SCALED_WEIGHT, weight_text, "Weight in the model, of the scaled feature.")
IN_DATA = Column("in_data", "weight", weight_text, "Weight per unit of the data.")
RANGE = Column("weight", "range", "{:.4g}".format, "Highest minus lowest level of the curve.")


@dataclass(frozen=True)
class Planted:
    """Relevant features of synthetic data that a ranker found or missed, and additional ones."""

    found: list[str]
    missed: list[str]
    extra: list[str]


@dataclass(frozen=True, eq=False)
class Support:
    """``strength``: metric of ranking the training data by each feature alone; None if not measured."""

    strength: FloatArray | None = None
    metric: str = ""
    profile: str = ""


@dataclass(frozen=True, eq=False)
class FitContent:
    """Content of the page of a fit.

    Parameters
    ----------
    title : str
        Heading of the page.
    model : mapping
        The result of :meth:`LinearModel.to_dict`.
    ranker : Ranker, optional
        The ranker of this model: its path, candidates, costs and changes are shown.
    choice : str
        What the model was selected on, to follow "Selected".
    evaluations : mapping of str to Evaluation, optional
        Evaluations by label.
    truth : array, optional
        True weights of synthetic data.
    support : Support, optional
        Metric of each feature alone.
    gains : Gains, optional
        The ranker, named "chosen", against a baseline, per query.
    uncounted : str
        Sentence about held-out lists that are too short for the metric.
    test : ModelTest, optional
        Evaluation on test data, shown first.
    query_texts : mapping of query id to str, optional
        Texts of the held-out queries.
    previous_file : str
        File name of the previous model.
    train : Dataset, optional
        Training data, for the histograms beneath the curves.
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
    test: ModelTest | None = None
    query_texts: Mapping[Any, str] | None = None
    previous_file: str = ""
    train: Dataset | None = None

    @cached_property
    def pictures(self) -> list[CurvePicture]:
        """One picture per curve."""
        colours = feature_colours([term["name"] for term in self.terms])
        return curve_pictures(model_from_dict(self.model), self.train, colours)

    @property
    def weight(self) -> str:
        """What a feature has in tables and figures: a weight, or the range of its curve."""
        if has_curves(self.model):
            return "range of the curve"
        return SCALED_WEIGHT if self.model["normalisation"] else "weight"

    @cached_property
    def features(self) -> FeatureTable:
        """All features with their weights and other values."""
        if self.ranker is not None:
            return _feature_table(self.ranker, self.support or Support())
        model = model_from_dict(self.model)
        weights = weights_by_feature(model)
        values = {"weight": list(weights.values()), "in_data": _in_data(model, list(weights))}
        return feature_table(_weight_columns(model), list(weights), _measured(values))

    @property
    def answers(self) -> list[Answer]:
        return fit_answers(self.ranker, self.model, self.gains)

    @cached_property
    def curves(self) -> Curves | None:
        """The models of the chosen family, if the ranker has one."""
        return curves_of_ranker(self.ranker)

    @cached_property
    def candidates(self) -> dict[str, Figure]:
        """Figures of all candidates: by cost if features have costs, and by number of features."""
        if not isinstance(self.ranker, SparseRanker):
            return {}
        choice = self.ranker.choice_
        by = ["features"] if choice.budget.costs is None else ["cost", "features"]
        return {f"candidates-{one}": candidates_figure(choice, one) for one in by}

    @property
    def has_beyond(self) -> bool:
        """Whether a candidate beyond the budget is drawn."""
        return any(one["name"] == BEYOND for figure in self.candidates.values() for one in figure["data"])

    @property
    def planted(self) -> Planted | None:
        return None if self.truth is None else planted_features(self.truth, self.ranker)

    @property
    def headline(self) -> list[str]:
        """Sentences about the selection."""
        return choice_sentences(self.ranker, self.choice)

    @property
    def tested(self) -> str:
        """Sentence about test data; empty without test data."""
        return "" if self.test is None else self.test.sentence

    @property
    def costs(self) -> list[tuple[str, float, list[str]]]:
        """Name, cost, and features in use of each cost group."""
        return paid_for(self.ranker)

    @property
    def changes(self) -> ChangeTable | None:
        """Changes since the previous model."""
        changes = getattr(self.ranker, "changes_", None)
        return None if changes is None else change_table(changes, self.previous_file, self.query_texts or {})

    @property
    def all_evaluations(self) -> dict[str, Evaluation]:
        """All evaluations, test data first."""
        test = {} if self.test is None else {self.test.label: self.test.evaluation}
        return test | dict(self.evaluations or {})

    @property
    def measured(self) -> dict[str, Mapping[str, float]]:
        """Mean metrics by label."""
        return {label: one.mean for label, one in self.all_evaluations.items()}

    @property
    def profile(self) -> str:
        """Profiles of the metrics."""
        return ", ".join(dict.fromkeys(one.profile.name for one in self.all_evaluations.values()))

    @property
    def too_short(self) -> list[str]:
        """Sentences about lists that are too short for the metrics."""
        evaluations = self.all_evaluations.items()
        return [f"{label}: {short_lists(one)}" for label, one in evaluations if one.too_short]

    @property
    def terms(self) -> list[Mapping[str, Any]]:
        """The features in use, by decreasing |weight|."""
        return by_weight(self.model)

    @property
    def data(self) -> dict[str, str]:
        """Fingerprints of the data that the model was fitted to, by title."""
        return {DATA_TITLES.get(name, name): fingerprint for name, fingerprint in self.model["data"].items()}

    @property
    def settings(self) -> dict[str, str]:
        """Parameters in use, preparation of features, and the metric and profile of the selection."""
        missing, normalisation = self.model["missing"], self.model["normalisation"]
        prepared = {
            "missing": missing["policy"] if missing else "error",
            "normalise": normalisation["kind"] if normalisation else "none",
        }
        chosen_by = self.model["chosen_by"] or {}
        stated = {**self.model["parameters"], **prepared, **chosen_by}
        unused = {"feature_costs"} if self.costs else set()  # has its own table
        return {
            name: setting_text(value) for name, value in sorted(stated.items())
            if name not in unused and value is not None and value not in ("", [], {})
        }  # fmt: skip

    @property
    def proof(self) -> str:
        """What the certificate proves."""
        return optimality(self.model["certificate"], self.model["parameters"])


def setting_text(value: Any) -> str:
    """The value of a parameter in words: "f1, f2", "bm25_*: +1"."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {setting_text(one)}" for name, one in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(setting_text, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def write_report(content: FitContent, path: str | os.PathLike[str]) -> None:
    """Write the page of a fit atomically."""
    page = render(content)
    with atomic_write(path) as file:
        file.write(page)


def render(content: FitContent) -> str:
    """Render the page of a fit."""
    chosen = [term["name"] for term in content.terms]
    metrics = dict.fromkeys(metric for means in content.measured.values() for metric in means)
    path = content.curves
    pictures = {f"curve-{k}": one.figure for k, one in enumerate(content.pictures, 1)}
    data = {
        "figures": pictures | content.candidates,
        "explorers": {} if path is None else {"path": [path_explorer(path, chosen, content.weight)]},
        "gains": {} if content.gains is None else {"gains": content.gains.page_data()},
        "features": {},
    }
    colours = feature_colours(chosen)
    return render_page("fit.html.j2", data, content=content, colours=colours, metrics=list(metrics))


def build_content(ranker: Ranker, *, title: str = "Sparse ranker", **shown: Any) -> FitContent:
    """Content of the page of a fitted ranker; ``shown`` are further fields of :class:`FitContent`.

    Default ``gains``: against the best candidate, within or beyond the budget, or the densest, on the test
    data, else on the held-out queries.
    """
    test, texts = shown.get("test"), shown.get("query_texts")
    tested = None if test is None else test.gains
    gains = shown.pop("gains", None) or tested or against_the_best(ranker)
    if gains is not None and texts:
        gains = replace(gains, texts=texts)
    return FitContent(title, ranker.to_model().to_dict(), ranker, gains=gains, **shown)


def content_of_model(model: LinearModel, **shown: Any) -> FitContent:
    """Content of the page of a model without a ranker; ``shown`` as above."""
    return FitContent(model=model.to_dict(), **shown)


def planted_features(truth: AnyArray, ranker: Ranker) -> Planted:
    """Compare the features of a ranker with the relevant ones."""
    planted, chosen = truth != 0, np.isin(np.arange(len(truth)), ranker.support_)
    found, missed, extra = (
        [str(name) for name in ranker.feature_names_in_[mask]]
        for mask in (planted & chosen, planted & ~chosen, ~planted & chosen)
    )
    return Planted(found, missed, extra)


def _feature_table(ranker: Any, support: Support) -> FeatureTable:
    alone = f"Metric of ranking the training data by the feature alone, {ALONE} ({support.profile} profile)."
    weights, model = ranker.coef_, ranker.to_model()
    names = ranker.coef_names_
    if model.has_curves:
        size = weights_by_feature(model)
        weights = [size.get(name, 0.0) for name in names]
    columns = (
        *_weight_columns(model),
        Column("frequency", "selected", percent_text, SELECTION_FREQUENCY.capitalize()),
        Column("strength", f"alone, {metric_title(support.metric)}", metric_text, alone),
        Column("cost", "cost", "{:g}".format, "Cost of the feature; features of a group share one cost."),
    )
    costs = getattr(ranker, "costs_", None)
    values = {
        "weight": weights,
        "in_data": _in_data(model, names),
        "frequency": ranker.choice_.confidence.frequency if ranker.can("valid") else None,
        "strength": support.strength,
        "cost": None if costs is None else costs.columns(names).of_each,
    }
    return feature_table(columns, names, _measured(values))


def _weight_columns(model: LinearModel) -> list[Column]:
    """Weights, by which rows are sorted; of scaled features, also those per unit of the data."""
    if model.has_curves:
        return [RANGE]
    return [WEIGHT] if model.normalisation is None else [SCALED, IN_DATA]


def _in_data(model: LinearModel, names: Sequence[str]) -> list[float] | None:
    """Weights per unit of the data; None if they are the same, or if features are scaled within queries."""
    raw = None if model.has_curves or model.normalisation is None else weights_in_data(model)
    return None if raw is None else [raw.get(name, 0.0) for name in names]


def _measured(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
