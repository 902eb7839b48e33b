"""A page about one model on some data: the model in words, what features are worth, where it goes wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksieve._version import __version__
from ranksieve.explain import FeatureDrop, QueryExplanation, WorstQuery
from ranksieve.model import LinearModel
from ranksieve.report.explain_words import (
    drop_name,
    model_sentences,
    query_title,
    value_cells,
    with_text,
)
from ranksieve.report.page import render_page
from ranksieve.report.words import metric_text, metric_title, p_value, signed, weight_text

SHOWN_FEATURES = 8
SHOWN_DOCUMENTS = 15


@dataclass(frozen=True)
class ExplainPage:
    """What the template shows; ``measured`` says by which conventions, and on how many queries."""

    title: str
    model: LinearModel
    measured: str
    drops: Sequence[FeatureDrop]
    worst: Sequence[WorstQuery]
    queries: Sequence[QueryExplanation]

    @property
    def sentences(self) -> list[str]:
        return model_sentences(self.model)

    @property
    def terms(self) -> list[tuple[str, str, str, str]]:
        """Feature, weight, weight per unit of the data, and what a missing value counts as."""
        normalisation, missing = self.model.preparation.normalisation, self.model.preparation.missing
        scale = normalisation.scale if normalisation.learns else [1.0] * len(self.model.terms)
        fills = dict(zip(missing.features, missing.means, strict=True)) if missing.means else {}
        rows = [
            (term.name, weight_text(term.weight), weight_text(term.weight / s), _number(fills.get(term.name)))
            for term, s in zip(self.model.terms, scale, strict=True)
        ]
        order = sorted(range(len(rows)), key=lambda j: -abs(self.model.terms[j].weight))
        return [rows[j] for j in order]

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
        """Each query as a table: the features whose contributions vary most, the others summed up."""
        return [_query_table(query) for query in self.queries]


def _query_table(query: QueryExplanation) -> dict[str, Any]:
    order = np.argsort(-np.ptp(query.contributions, axis=0), kind="stable")
    shown, rest = np.split(order, [SHOWN_FEATURES])
    rows = []
    for d, parts in enumerate(query.contributions[:SHOWN_DOCUMENTS]):
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
    """The page as text."""
    return render_page("explain.html.j2", {"figures": {}}, content=content, version=__version__)
