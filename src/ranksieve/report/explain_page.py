"""Explanations as sentences, table cells and a page; scorecards as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksieve._version import __version__
from ranksieve.data.dataset import Dataset
from ranksieve.data.describe import full_document_name
from ranksieve.errors import ParameterError
from ranksieve.explain import (
    FeatureContribution,
    FeatureImportance,
    PairExplanation,
    QueryExplanation,
    WorstQuery,
    explain_query,
)
from ranksieve.model.linear import Card, FittedRanker, LinearModel, as_linear_model, refuse_curves
from ranksieve.report.page import (
    metric_text,
    metric_title,
    p_value,
    plural,
    render_page,
    signed,
    weight_text,
)

SCALING_TEXTS = {
    "query_z": "minus the mean over the documents of the query, divided by their standard deviation",
    "query_min_max": "minus the minimum over the documents of the query, divided by their range",
}
FILL_TEXTS = {"zero": "0", "query_min": "the minimum of the feature in the query"}
ADD_UP = (
    'Score: divide each value by its "per", multiply by the points and add up. The highest score ranks first.'
)


def card_text(model: LinearModel | FittedRanker, data: Dataset | None = None) -> str:
    """The scorecard of a model as text; with data, also the score of the best document of the first query."""
    model = as_linear_model(model, "so it is not a scorecard")
    card = model.card
    if card is None:
        raise ParameterError("model", model, "is not a scorecard; create one with make_scorecard")
    points = f"points from −{card.levels} to {card.levels}"
    title = f"Scorecard: {plural(len(card.points), 'feature')}, {points}"
    parts = [title, _card_table(model, card), "\n".join([*preparation_sentences(model), ADD_UP])]
    return "\n\n".join([*parts, *([] if data is None else [_example(model, card, data)])]) + "\n"


def _by_points(card: Card) -> list[str]:
    return sorted(card.points, key=lambda name: -abs(card.points[name]))


def _card_table(model: LinearModel, card: Card) -> str:
    missing = model.preparation.missing
    means = dict(zip(missing.features, missing.means, strict=True))
    head = ["feature", "points", "per", *(["if missing"] if means else [])]
    rows = [
        [name, signed(card.points[name], 0), f"{card.units[name]:g}"]
        + ([f"{means[name]:.6g}" if name not in missing.indicators else ""] if means else [])
        for name in _by_points(card)
    ]
    return _aligned([head, *rows])


def preparation_sentences(model: LinearModel) -> list[str]:
    """How missing values are filled and values are scaled within queries."""
    missing, normalisation = model.preparation.missing, model.preparation.normalisation
    sentences = [
        f'"{name}" is 1 if {source} is missing, else 0.' for name, source in missing.indicators.items()
    ]
    if missing.policy in FILL_TEXTS:
        sentences.append(f"Missing values are replaced by {FILL_TEXTS[missing.policy]}.")
    if normalisation.kind in SCALING_TEXTS:
        sentences.append(
            f"Values are scaled first: value {SCALING_TEXTS[normalisation.kind]} ({normalisation.kind})."
        )
    return sentences


def _example(model: LinearModel, card: Card, data: Dataset) -> str:
    query = explain_query(model, data, data.queries.ids.tolist()[0])
    index = {name: j for j, name in enumerate(query.features)}
    rows = []
    for name in _by_points(card):
        value = f"{query.values[0, index[name]]:.6g}".replace("-", "−")
        product = f"{signed(card.points[name], 0)} × {value} ÷ {card.units[name]:g}"
        rows.append([name, product, signed(query.contributions[0, index[name]])])
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


MAX_TEXT_LENGTH = 60  # characters, in tables and sentences


def model_sentences(model: LinearModel) -> list[str]:
    """The formula of the model, and how values are filled and scaled."""
    name = model.method or "The model"
    uses = f"{name} uses {len(model.terms)} of {plural(model.n_features, 'feature')}"
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


def value_text(logged: float | None, filled: float | None) -> str:
    """A value of the data, or "missing, filled with 3.1"; "missing" if the model has a level for it."""
    if logged is None or logged != logged:
        return "missing" if filled is None or filled != filled else f"missing, filled with {filled:.4g}"
    return f"{logged:.4g}"


def pair_sentence(pair: PairExplanation, top: int) -> str:
    """``A ranks above B by 0.42: bm25_title +0.31 (12.9 against 0.2), …``, with values of the data."""
    relation = "above" if pair.difference > 0 else "below" if pair.difference < 0 else "level with"
    by = f" by {abs(pair.difference):.4g}" if pair.difference else ""
    parts = [part for part in pair.parts if part.contribution]
    reasons = [f"{p.feature} {p.contribution:+.4g} ({' against '.join(logged_values(p))})" for p in parts]
    more = f" and {len(reasons) - top} smaller" if len(reasons) > top else ""
    text = ", ".join(reasons[:top]) + more if reasons else "no feature in use differs"
    a, b = with_text(pair.a, pair.text_a), with_text(pair.b, pair.text_b)
    return f"{a} ranks {relation} {b}{by}: {text}."


def logged_values(part: FeatureContribution) -> tuple[str, str]:
    """Both values of a part, as in the data."""
    return value_text(part.logged_a, part.filled_a), value_text(part.logged_b, part.filled_b)


def query_title(query: object, text: str) -> str:
    """``Query 7: text of the query``."""
    return f"Query {query}{f': {text}' if text else ''}"


def with_text(name: object, text: str) -> str:
    """``D12 “The title”``."""
    return f"{name} “{shortened_text(text)}”" if text else str(name)


def shortened_text(text: str) -> str:
    """One line of at most ``MAX_TEXT_LENGTH`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_TEXT_LENGTH else f"{line[: MAX_TEXT_LENGTH - 1]}…"


def value_cells(query: QueryExplanation, document: int, features: Sequence[int]) -> list[str]:
    """Values of a document, with the scaled values if the model normalises."""
    cells = []
    for j in features:
        logged = value_text(float(query.logged[document, j]), float(query.filled[document, j]))
        cells.append(f"{logged} → {query.values[document, j]:.3g}" if query.scaled else logged)
    return cells


def drop_name(drop: FeatureImportance) -> str:
    """A feature, or a group with its features in use."""
    return f"group {drop.feature}: {', '.join(drop.dropped)}" if drop.group else drop.feature


def worst_sentence(worst: WorstQuery) -> str:
    """``Query 7: NDCG@10 0.12; its only relevant document is at rank 9 of 30: D4; first is D2.``"""
    title = query_title(worst.query, worst.text)
    best, first = with_text(worst.document, worst.document_text), with_text(worst.first, worst.first_text)
    top = "" if worst.rank == 1 else f"; first is {first}"
    return f"{title}: {metric_title(worst.metric)} {metric_text(worst.value)}; {worst.why}: {best}{top}."


FEATURES_ON_PAGE = 8
DOCUMENTS_ON_PAGE = 15


@dataclass(frozen=True)
class ExplainPage:
    """Content of the template; ``measured`` names metric, profile and number of queries."""

    title: str
    model: LinearModel
    measured: str
    drops: Sequence[FeatureImportance]
    worst: Sequence[WorstQuery]
    queries: Sequence[QueryExplanation]

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
        "features": [*(query.features[j] for j in shown), *(["others"] if len(rest) else [])],
        "rows": rows,
        "more": len(query.documents) - len(rows),
        "texts": bool(query.texts),
    }


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def explain_page(content: ExplainPage) -> str:
    """The HTML page."""
    refuse_curves(content.model, "the page")
    return render_page("explain.html.j2", {"figures": {}}, content=content, version=__version__)
