"""Explanations as sentences, table cells and a page; scorecards as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ranksieve._version import __version__
from ranksieve.data.dataset import Dataset
from ranksieve.data.describe import full_document_name
from ranksieve.errors import ParameterError
from ranksieve.explain import (
    FeatureImportance,
    PairExplanation,
    QueryExplanation,
    WorstQuery,
    explain_query,
)
from ranksieve.model.linear import Card, FittedRanker, LinearModel, as_linear_model
from ranksieve.report.bars import Bars, Part, waterfall
from ranksieve.report.curve_figures import CurvePicture, curve_pictures
from ranksieve.report.page import render_page
from ranksieve.show.explain import (
    card_table,
    card_title,
    drop_name,
    how_to_add_up,
    preparation_sentences,
    query_title,
    value_cells,
    value_text,
    with_text,
)
from ranksieve.show.formats import (
    by_range,
    curve_cells,
    metric_text,
    metric_title,
    p_value,
    plural,
    signed,
    weight_text,
)


def card_text(model: LinearModel | FittedRanker, data: Dataset | None = None) -> str:
    """The scorecard of a model as text; with data, also the score of the best document of the first query."""
    model = as_linear_model(model, "so it is not a scorecard")
    card = model.card
    if card is None:
        raise ParameterError("model", model, "is not a scorecard; create one with make_scorecard")
    sentences = "\n".join([*preparation_sentences(model), how_to_add_up(model)])
    parts = [card_title(model), _card_text_table(model), sentences]
    return "\n\n".join([*parts, *([] if data is None else [_example(model, card, data)])]) + "\n"


def _by_points(card: Card) -> list[str]:
    return sorted(card.points, key=lambda name: -abs(card.points[name]))


def _card_text_table(model: LinearModel) -> str:
    table = card_table(model)
    return _aligned([table.columns, *table.cells()])


def _example(model: LinearModel, card: Card, data: Dataset) -> str:
    query = explain_query(model, data, data.queries.ids.tolist()[0])
    index = {name: j for j, name in enumerate(query.features)}
    rows = []
    for name in list(by_range(model.curves)) or _by_points(card):
        value = f"{query.values[0, index[name]]:.6g}".replace("-", "−")
        if model.has_curves:
            raw = data.X[int(query.rows[0]), data.feature_names.index(name)]
            value = "missing" if np.isnan(raw) else repr(float(raw))
        else:
            value = f"{signed(card.points[name], 0)} × {value} ÷ {card.units[name]:g}"
        rows.append([name, value, signed(query.contributions[0, index[name]])])
    rows.append(["score", "", signed(query.scores[0])])
    return f"Example: {full_document_name(data, int(query.rows[0]))}:\n{_aligned(rows)}"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    """Align the columns of a table: names left, numbers right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for name, *cells in rows:
        numbers = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        lines.append("   ".join([f"  {name.ljust(widths[0])}", *numbers]).rstrip())
    return "\n".join(lines)


def model_sentences(model: LinearModel) -> list[str]:
    """The formula of the model, and how values are filled and scaled."""
    name = model.method or "The model"
    uses = f"{name} uses {len(model.terms)} of {plural(model.n_features, 'feature')}"
    if model.has_curves:
        ranges = by_range(model.curves).items()
        curves = ", ".join(f"{name} (range {curve_cells(curve)[0]})" for name, curve in ranges)
        return [f"{uses}. Score of a document: sum of the levels of {len(ranges)} curves: {curves}."]
    ordered = sorted(model.terms, key=lambda term: -abs(term.weight))
    weights = ", ".join(f"{weight_text(term.weight)} · {term.name}" for term in ordered)
    constant = f" and the constant {weight_text(model.intercept)}" if model.intercept else ""
    sentences = [f"{uses}. Score of a document: sum of {weights}{constant}.", *preparation_sentences(model)]
    if model.preparation.missing.means:
        sentences.append("Missing values are replaced by the mean of the training data.")
    if model.preparation.normalisation.learns:
        kind = model.preparation.normalisation.kind
        sentences.append(
            f"Values are scaled first: minus the centre of the training data, divided by its scale ({kind})."
        )
    return sentences


FEATURES_ON_PAGE = 8
DOCUMENTS_ON_PAGE = 15


@dataclass(frozen=True)
class ExplainPage:
    """Content of the template; ``measured`` names metric, profile and number of queries.

    ``data`` are the explained data, for the histograms beneath curves; ``pair`` is drawn first, by default
    the first document of the first query against the best relevant one, or against the second.
    """

    title: str
    model: LinearModel
    measured: str
    drops: Sequence[FeatureImportance]
    worst: Sequence[WorstQuery]
    queries: Sequence[QueryExplanation]
    data: Dataset | None = None
    pair: PairExplanation | None = None

    @property
    def lead(self) -> str:
        """The feature without which the metric falls most; without drops, the formula."""
        if not self.drops:
            return self.sentences[0]
        most = max(self.drops, key=lambda drop: drop.loss)
        return (
            f"Most depends on {drop_name(most)}: without it, {metric_title(most.metric)} is "
            f"{metric_text(most.without)}, {abs(most.loss):.4f} {'lower' if most.loss > 0 else 'higher'}."
        )

    @property
    def first_pair(self) -> Bars | None:
        """The picture at the top."""
        if not self.queries:
            return None
        if self.pair is not None:
            return pair_bars(self.queries[0], self.pair.rank_a - 1, self.pair.rank_b - 1)
        return pair_of_query(self.queries[0])

    @cached_property
    def pictures(self) -> list[CurvePicture]:
        """One picture per curve, with the values of the data."""
        return curve_pictures(self.model, self.data)

    @property
    def sentences(self) -> list[str]:
        return model_sentences(self.model)

    @property
    def terms(self) -> list[tuple[str, str, str, str]]:
        """Feature, weight, weight per unit of the data, and the value that replaces a missing one."""
        normalisation, missing = self.model.preparation.normalisation, self.model.preparation.missing
        scale = normalisation.scale if normalisation.learns else [1.0] * len(self.model.terms)
        fills = dict(zip(missing.features, missing.means, strict=True)) if missing.means else {}
        terms = sorted(zip(self.model.terms, scale, strict=True), key=lambda one: -abs(one[0].weight))
        return [
            (term.name, weight_text(term.weight), weight_text(term.weight / s), _number(fills.get(term.name)))
            for term, s in terms
        ]

    @property
    def scaled(self) -> bool:
        return self.model.preparation.normalisation.learns

    @property
    def fills(self) -> bool:
        return bool(self.model.preparation.missing.means)

    @property
    def drop_rows(self) -> list[dict[str, Any]]:
        """Cells of the table of drops."""
        return [
            {
                "name": drop_name(drop),
                "metric": metric_title(drop.metric),
                "without": metric_text(drop.without),
                "loss": signed(drop.loss),
                "p": p_value(drop.p_randomisation_holm).removeprefix("p = ").removeprefix("p "),
                "saved": _number(drop.saved),
                "group": drop.group,
            }
            for drop in self.drops
        ]

    @property
    def priced(self) -> bool:
        return any(drop.saved is not None for drop in self.drops)

    @property
    def worst_rows(self) -> list[dict[str, str]]:
        """Cells of the table of the worst queries."""
        return [
            {
                "query": query_title(worst.query, worst.text),
                "value": metric_text(worst.value),
                "why": f"{worst.why}: {with_text(worst.document, worst.document_text)}",
                "first": with_text(worst.first, worst.first_text),
            }
            for worst in self.worst
        ]

    @property
    def explained(self) -> list[dict[str, Any]]:
        """A table per query: the features whose contributions vary most, and the sum of the others."""
        return [_query_table(query) for query in self.queries]


def pair_of_query(query: QueryExplanation) -> Bars | None:
    """The first document against the best-ranked of the highest label, or against the second."""
    if len(query.rows) < 2:
        return None
    best = int(np.argmax(query.labels))
    return pair_bars(query, 0, best or 1)


def pair_bars(query: QueryExplanation, a: int, b: int) -> Bars:
    """Contributions to the difference of the scores of two documents, given by rank from 0."""
    added = (query.contributions[a] - query.contributions[b]).tolist()
    parts = [
        Part(name, value, " against ".join(_logged(query, d, j) for d in (a, b)))
        for j, (name, value) in enumerate(zip(query.features, added, strict=True))
    ]
    total = float(query.scores[a] - query.scores[b])
    first, second = (_ranked(query, d) for d in (a, b))
    title = f"{query_title(query.query, query.query_text)}. {first} scores {_more(total)} than {second}."
    return waterfall(title, parts, Part("difference of the scores", total), ("feature", "adds"))


def score_bars(query: QueryExplanation, d: int = 0) -> Bars:
    """Contributions to the score of a document, given by rank from 0."""
    parts = [
        Part(name, value, _logged(query, d, j))
        for j, (name, value) in enumerate(zip(query.features, query.contributions[d].tolist(), strict=True))
    ]
    constant = [Part("constant", query.intercept)] if query.intercept else []
    title = f"{_ranked(query, d)}: how its score adds up."
    return waterfall(title, [*parts, *constant], Part("score", float(query.scores[d])), ("feature", "adds"))


def _more(difference: float) -> str:
    return f"{abs(difference):.4g} {'more' if difference >= 0 else 'less'}"


def _logged(query: QueryExplanation, d: int, j: int) -> str:
    return value_text(float(query.logged[d, j]), float(query.filled[d, j]))


def _ranked(query: QueryExplanation, d: int) -> str:
    """``D12 “The title” (rank 1, label 0)``."""
    name = with_text(query.documents[d], query.texts[d] if query.texts else "")
    return f"{name} (rank {d + 1}, label {query.labels[d]:g})"


def _query_table(query: QueryExplanation) -> dict[str, Any]:
    order = np.argsort(-np.ptp(query.contributions, axis=0), kind="stable")
    shown, rest = np.split(order, [FEATURES_ON_PAGE])
    rows = []
    for d, parts in enumerate(query.contributions[:DOCUMENTS_ON_PAGE]):
        values = value_cells(query, d, shown.tolist())
        cells = list(zip([signed(parts[j]) for j in shown], values, strict=True))
        rows.append(
            {
                "rank": d + 1,
                "document": query.documents[d],
                "text": query.texts[d] if query.texts else "",
                "label": f"{query.labels[d]:g}",
                "score": signed(query.scores[d]),
                "cells": [*cells, *([(signed(parts[rest].sum()), "")] if len(rest) else [])],
            }
        )
    return {
        "title": query_title(query.query, query.query_text),
        "score": score_bars(query),
        "pair": pair_of_query(query),
        "features": [*(query.features[j] for j in shown), *(["others"] if len(rest) else [])],
        "rows": rows,
        "more": len(query.documents) - len(rows),
        "texts": bool(query.texts),
    }


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def explain_page(content: ExplainPage) -> str:
    """The HTML page."""
    figures = {f"curve-{k}": one.figure for k, one in enumerate(content.pictures, 1)}
    return render_page("explain.html.j2", {"figures": figures}, content=content, version=__version__)
