"""A scorecard as text: what a person needs to score a document by hand."""

from __future__ import annotations

from collections.abc import Sequence

from ranksieve.data.dataset import Dataset
from ranksieve.data.describe import document_words
from ranksieve.errors import ParameterError
from ranksieve.explain import explain_query
from ranksieve.model.linear import Card, FittedRanker, LinearModel, linear_model
from ranksieve.report.page import counted, signed

SCALED = {
    "query_z": "less the mean of the documents of its query, divided by their standard deviation",
    "query_min_max": "less the least value of the documents of its query, divided by their range",
}
FILLED = {"zero": "0", "query_min": "the least value of the feature in the query"}
ADD_UP = (
    'Divide each value by its "per", multiply by the points and add up: the higher the sum, the higher the '
    "rank."
)


def card_text(model: LinearModel | FittedRanker, data: Dataset | None = None) -> str:
    """The card of a model and how to add up; with data, also the best document of its first query."""
    model = linear_model(model, "so it is no scorecard")
    card = model.card
    if card is None:
        raise ParameterError("model", model, "is not a scorecard; make one of it with make_scorecard")
    highest = f"points from −{card.levels} to {card.levels}"
    title = f"Scorecard: {counted(len(card.points), 'feature')}, {highest}"
    parts = [title, _table(model, card), "\n".join([*preparation_sentences(model), ADD_UP])]
    return "\n\n".join([*parts, *([] if data is None else [_example(model, card, data)])]) + "\n"


def _by_points(card: Card) -> list[str]:
    return sorted(card.points, key=lambda name: -abs(card.points[name]))


def _table(model: LinearModel, card: Card) -> str:
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
    """What happens to values before points count."""
    missing, normalisation = model.preparation.missing, model.preparation.normalisation
    sentences = [
        f'"{name}" is 1 if {source} is missing, else 0.' for name, source in missing.indicators.items()
    ]
    if missing.policy in FILLED:
        sentences.append(f"A missing value counts as {FILLED[missing.policy]}.")
    if normalisation.kind in SCALED:
        sentences.append(f"Here a value is {SCALED[normalisation.kind]} ({normalisation.kind}).")
    return sentences


def _example(model: LinearModel, card: Card, data: Dataset) -> str:
    query = explain_query(model, data, data.queries.ids.tolist()[0])
    place = {name: j for j, name in enumerate(query.features)}
    rows = []
    for name in _by_points(card):
        value = f"{query.values[0, place[name]]:.6g}".replace("-", "−")
        product = f"{signed(card.points[name], 0)} × {value} ÷ {card.units[name]:g}"
        rows.append([name, product, signed(query.contributions[0, place[name]])])
    rows.append(["score", "", signed(query.scores[0])])
    return f"For example {document_words(data, int(query.rows[0]))}:\n{_aligned(rows)}"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    """Columns of a table, names to the left and numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for name, *cells in rows:
        numbers = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        lines.append("   ".join([f"  {name.ljust(widths[0])}", *numbers]).rstrip())
    return "\n".join(lines)
