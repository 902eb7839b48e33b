"""Pictures of results, after scikit-learn's pattern: ``PathDisplay.from_estimator(ranker)``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.choice.decide import Choice
from ranksieve.data.dataset import Dataset
from ranksieve.errors import DataError, ParameterError, lookup
from ranksieve.explain import PairExplanation, QueryExplanation, explain_pair, explain_query
from ranksieve.model.linear import LinearModel, as_linear_model, refuse_lines
from ranksieve.path import SparsePath
from ranksieve.rankers.base import Ranker
from ranksieve.rankers.frontier import Frontier, frontier_of
from ranksieve.report.curve_figures import CurvePicture, curve_pictures
from ranksieve.report.drawing import InteractiveFigure, draw, plain_text, pyplot
from ranksieve.report.fit_page import candidates_figure, curves_of_ranker, weights_of_features
from ranksieve.report.frontier_page import frontier_figure
from ranksieve.report.page import OTHER, PALETTE, Figure, axis, layout, line, log_axis

MAX_PATH_LINES = 30  # features with the largest weights
MAX_BARS = 20
CURVES_PER_ROW = 3
ALPHA_HOVER = "{name}\nα = {x:.3g}\n{y:.4g}"
NOT_DRAWN: Any = object()  # in place of axes: make the display only
BAR_HOVER = "{x}: {y:+.4g}"


@dataclass(eq=False, repr=False)
class Display:
    """A picture of a result; ``figure`` is its content as plain data, ``heading`` its heading.

    Attributes
    ----------
    ax_ : matplotlib axes
        What it was last drawn on.
    figure_ : matplotlib figure
        The figure of ``ax_``.
    """

    figure: Figure
    heading: str = ""
    title: ClassVar[str] = ""
    ax_: Any = field(init=False, default=None)
    figure_: Any = field(init=False, default=None)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.title}>"

    def plot(self, ax: Any = None) -> Self:
        """Draw the picture with matplotlib, on ``ax`` or on new axes."""
        if ax is not NOT_DRAWN:
            self.ax_ = draw(self.figure, ax)
            self.figure_ = self.ax_.figure
            if self.heading:
                self.ax_.set_title(plain_text(self.heading), fontsize="small")
        return self

    def interactive(self) -> InteractiveFigure:
        """The figure as on the pages, with values under the pointer; notebooks show it."""
        return InteractiveFigure({"": self.figure}, self.title)


class PathDisplay(Display):
    """Weights of the features along the regularisation path, or by number of features."""

    title = "regularisation path"

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the chosen family of a fitted SparseRanker; the dotted line is the chosen model."""
        curves = curves_of_ranker(estimator)
        if curves is None:
            raise DataError(None, None, f"{_name(estimator)} has no path; use SparseRanker")
        chosen = curves.alphas[curves.chosen]
        return cls(_path_figure(curves.alphas, curves.weights, curves.by, chosen)).plot(ax)

    @classmethod
    def from_path(cls, path: SparsePath, *, ax: Any = None) -> Self:
        """Draw the result of ``sparse_path``."""
        steps = path.preparation.steps
        coefs = weights_of_features(path.coefs, None if steps is None else steps.columns)
        names = path.feature_names if steps is None else steps.features
        order = np.argsort(-np.abs(coefs).max(axis=0), kind="stable")[:MAX_PATH_LINES]
        weights = {names[j]: coefs[:, j].tolist() for j in order.tolist() if coefs[:, j].any()}
        return cls(_path_figure(path.alphas.tolist(), weights, "α", None)).plot(ax)


def _path_figure(
    alphas: Sequence[float], weights: Mapping[str, Sequence[float]], by: str, chosen: float | None
) -> Figure:
    traces = [
        line(alphas, values, name, PALETTE[k] if k < len(PALETTE) else OTHER, hover=ALPHA_HOVER)
        for k, (name, values) in enumerate(list(weights.items())[:MAX_PATH_LINES])
    ]
    for trace in traces[len(PALETTE) :]:
        trace["showlegend"] = False
    x = axis("features", dtick=1) if by == "features" else log_axis("α, decreasing", reversed=True)
    mark = {"type": "line", "yref": "paper", "x0": chosen, "x1": chosen}
    shapes = [] if chosen is None else [mark | {"line": {"color": OTHER, "dash": "dot", "width": 1.5}}]
    look = layout(380, showlegend=True, xaxis=x, yaxis=axis("weight", zeroline=True), shapes=shapes)
    return {"data": traces, "layout": look}


class ChoiceDisplay(Display):
    """Held-out metric of the best candidate of each family and size; a star marks the chosen one."""

    title = "candidates"

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the candidates of a fitted SparseRanker or GridRanker."""
        return cls.from_choice(_choice(estimator), ax=ax)

    @classmethod
    def from_choice(cls, choice: Choice, *, ax: Any = None) -> Self:
        """Draw the ``choice_`` of a fitted ranker."""
        return cls(candidates_figure(choice)).plot(ax)


class FrontierDisplay(Display):
    """Held-out metric against number of features or cost, with the best model for each."""

    title = "accuracy against features and cost"

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the frontier of the candidates of a fitted SparseRanker or GridRanker."""
        return cls.from_frontier(frontier_of(_choice(estimator)), ax=ax)

    @classmethod
    def from_frontier(cls, frontier: Frontier, *, ax: Any = None) -> Self:
        """Draw the result of ``frontier``."""
        return cls(frontier_figure(frontier.to_dict())).plot(ax)


class WeightsDisplay(Display):
    """The largest weights of a model as bars."""

    title = "weights"

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the model of a fitted ranker."""
        return cls.from_model(_model(estimator), ax=ax)

    @classmethod
    def from_model(cls, model: LinearModel, *, ax: Any = None) -> Self:
        """Draw a linear model."""
        weights = {term.name: term.weight for term in model.terms}
        return cls(_bars(weights, "weight")).plot(ax)


class ExplanationDisplay(Display):
    """Contributions of the features to a score, or to the difference of two scores, as bars."""

    title = "contributions"

    @classmethod
    def from_model(
        cls, model: Any, data: Dataset, qid: Any, doc: Any = None, above: Any = None, *, ax: Any = None
    ) -> Self:
        """Explain why document ``doc`` of a query ranks above ``above``; by default the first two."""
        if doc is None or above is None:
            return cls.from_explanation(explain_query(model, data, qid), ax=ax)
        return cls.from_explanation(explain_pair(model, data, doc, above, qid), ax=ax)

    from_estimator = from_model

    @classmethod
    def from_explanation(cls, explanation: PairExplanation | QueryExplanation, *, ax: Any = None) -> Self:
        """Draw an explanation: of a pair, or of the first document of a query against the second."""
        if isinstance(explanation, PairExplanation):
            added = {part.feature: part.contribution for part in explanation.parts}
            return cls(_bars(added, "contribution"), f"{explanation.a} minus {explanation.b}").plot(ax)
        rows: FloatArray = explanation.contributions
        names = [str(one) for one in explanation.documents[:2]]
        difference = rows[0] - rows[1] if len(rows) > 1 else rows[0]
        added = dict(zip(explanation.features, difference.tolist(), strict=True))
        return cls(_bars(added, "contribution"), " minus ".join(names)).plot(ax)


def _bars(values: Mapping[str, float], title: str) -> Figure:
    """Bars by decreasing size; the smallest are added up as "others"."""
    ordered = sorted(values.items(), key=lambda one: -abs(one[1]))
    shown, rest = ordered[:MAX_BARS], ordered[MAX_BARS:]
    if rest:
        shown.append((f"{len(rest)} others", sum(value for _, value in rest)))
    names, sizes = [name for name, _ in shown], [value for _, value in shown]
    colours = [PALETTE[0] if value >= 0 else PALETTE[1] for value in sizes]
    bars = {"type": "bar", "x": names, "y": sizes, "marker": {"color": colours}, "hover": BAR_HOVER}
    x = axis("", type="category", categories=names, showgrid=False)
    return {"data": [bars], "layout": layout(320, xaxis=x, yaxis=axis(title, zeroline=True))}


@dataclass(eq=False, repr=False)
class CurvesDisplay:
    """The curve of each feature, all with the same vertical scale; histograms need data.

    Attributes
    ----------
    axes_ : list of matplotlib axes
        One per curve.
    figure_ : matplotlib figure
        The figure.
    """

    pictures: Sequence[CurvePicture]
    axes_: list[Any] = field(init=False, default_factory=list)
    figure_: Any = field(init=False, default=None)

    def __repr__(self) -> str:
        return f"<CurvesDisplay: {', '.join(one.name for one in self.pictures[:6])}>"

    @property
    def ax_(self) -> Any:
        """The axes of the first curve."""
        return self.axes_[0]

    @classmethod
    def from_estimator(cls, estimator: Any, data: Dataset | None = None, *, ax: Any = None) -> Self:
        """Draw the curves of a ranker that was fitted with ``shape="curves"``."""
        return cls.from_model(_model(estimator), data, ax=ax)

    @classmethod
    def from_model(cls, model: LinearModel, data: Dataset | None = None, *, ax: Any = None) -> Self:
        """Draw the curves of a model; with data, also how often values occur."""
        refuse_lines(model, "a picture of curves")
        return cls(curve_pictures(model, data)).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw one panel per curve, on ``ax``, which is then divided, or on a new figure."""
        if ax is NOT_DRAWN:
            return self
        plt, n = pyplot(), len(self.pictures)
        columns = min(CURVES_PER_ROW, n)
        rows = -(-n // columns)
        if ax is None:
            self.figure_, ax = plt.subplots(figsize=(3.6 * columns, 2.8 * rows))
        else:
            self.figure_ = ax.figure
        ax.set_axis_off()
        self.axes_ = []
        for k, picture in enumerate(self.pictures):
            row, column = divmod(k, columns)
            box = (column / columns, 1.0 - (row + 0.85) / rows, 0.8 / columns, 0.68 / rows)
            panel = ax.inset_axes(box)
            panel.set_title(plain_text(picture.name), fontsize="medium")
            self.axes_.append(draw(picture.figure, panel))
        return self

    def interactive(self, feature: str | None = None) -> InteractiveFigure:
        """The figures of all curves as on the pages, or that of one."""
        figures = {one.name: one.figure for one in self.pictures}
        if feature is not None:
            figures = {feature: lookup(figures, feature, "feature")}
        return InteractiveFigure(figures, feature or "curves")


def _name(estimator: Any) -> str:
    return type(estimator).__name__


def _choice(estimator: Any) -> Choice:
    choice = getattr(estimator, "choice_", None)
    if choice is None:
        raise DataError(None, None, f"{_name(estimator)} has no candidates; fit SparseRanker or GridRanker")
    return choice  # type: ignore[no-any-return]


def _model(estimator: Any) -> LinearModel:
    return as_linear_model(estimator, "so it has no weights to draw")


def _curves_or_weights(model: Any, **options: Any) -> Any:
    shown = _model(model)
    return (CurvesDisplay if shown.has_curves else WeightsDisplay).from_model(shown, **options)


KINDS: dict[str, Any] = {
    "path": PathDisplay.from_estimator,
    "choice": ChoiceDisplay.from_estimator,
    "frontier": FrontierDisplay.from_estimator,
    "curves": CurvesDisplay.from_estimator,
    "weights": WeightsDisplay.from_estimator,
}


def plot_result(
    result: Any, kind: str | None = None, *, ax: Any = None, interactive: bool = False, **options: Any
) -> Any:
    """Axes with the picture of a result, or its interactive figure.

    ``kind`` is a key of KINDS, for rankers and models: by default the curves, else the candidates, else the
    weights.
    """
    draw_it = lookup(KINDS, kind, "kind") if kind is not None else _picture_of(result)
    if interactive:
        return without_drawing(draw_it, result, **options).interactive()
    return draw_it(result, ax=ax, **options).ax_


def without_drawing(draw_it: Any, result: Any, **options: Any) -> Any:
    """The display, made without matplotlib."""
    return draw_it(result, ax=NOT_DRAWN, **options)


def _picture_of(result: Any) -> Any:
    for kind, draw_it in PICTURES.items():
        if isinstance(result, kind):
            return draw_it
    raise ParameterError("result", result, "has no picture")


def _picture_of_ranker(ranker: Any, **options: Any) -> Any:
    if getattr(ranker, "choice_", None) is None or _model(ranker).has_curves:
        return _curves_or_weights(ranker, **options)
    return ChoiceDisplay.from_estimator(ranker, **options)


PICTURES: dict[type, Any] = {
    Ranker: _picture_of_ranker,
    LinearModel: _curves_or_weights,
    Choice: ChoiceDisplay.from_choice,
    SparsePath: PathDisplay.from_path,
    Frontier: FrontierDisplay.from_frontier,
    PairExplanation: ExplanationDisplay.from_explanation,
    QueryExplanation: ExplanationDisplay.from_explanation,
}
