"""The model card: what a model is, where it comes from, how good it is, what is proven and what is not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ranksieve.show.explain import card_table, how_to_add_up, preparation_sentences
from ranksieve.show.fit import VALIDATION_DATA, feature_table, selection_text
from ranksieve.show.formats import plural
from ranksieve.show.result import Part, Table, escape_controls
from ranksieve.show.sentences import choice_sentences, optimality

DATA_TITLES = {
    "train": "training data", "valid": "validation data", "query_weight": "query weights",
    "previous": "previous model",
}  # fmt: skip
LIMITS = (
    "The metric is about queries like those it was measured on: its interval covers the choice of queries, "
    "not other times, markets or users.",
    "Weights are not effects: a feature without a weight may matter, and one with a weight may stand for "
    "another.",
)


def model_card(model: Any, ranker: Any = None, tested: str = "") -> str:
    """Markdown about a model; ``tested`` is a sentence about its metric on test data."""
    sections = {
        "Model": _model(model),
        "Data": _data(model),
        "Quality": _quality(model, ranker, tested),
        "Features": _features(model, ranker),
        "Proof": [optimality(model.certificate, model.parameters)] if hasattr(model, "certificate") else [],
        "Limits": _limits(model),
    }
    texts = [f"# Model card: {_escaped(model.method or 'linear model')}"]
    for title, parts in sections.items():
        shown = [as_markdown(part) for part in parts if part]
        if shown:
            texts.append("\n\n".join([f"## {title}", *shown]))
    return "\n\n".join(texts) + "\n"


def _model(model: Any) -> Iterator[Part]:
    used = f"{len(model.names)} of {plural(model.n_features, 'feature')}"
    yield f"{model.method or 'A linear model'} ranks the documents of a query by a score of {used}."
    if not hasattr(model, "terms"):
        yield f"The score is the sum of {model.ensemble.size_text}."
        return
    yield (
        how_to_add_up(model)
        if model.card
        else (
            "The score is a sum over features: of their curves."
            if model.has_curves
            else "The score is the sum of weight times value over the features."
        )
    )
    yield from preparation_sentences(model)


def _data(model: Any) -> Iterator[Part]:
    rows = [(DATA_TITLES.get(name, name), fingerprint) for name, fingerprint in model.data.items()]
    if rows:
        yield Table(["data", "fingerprint"], rows)
        yield "A fingerprint identifies the data; `ranksieve verify` recomputes it."
    yield f"Written by ranksieve {model.version}."


def _quality(model: Any, ranker: Any, tested: str) -> Iterator[Part]:
    if tested:
        yield tested
    valid = VALIDATION_DATA if "valid" in model.data else None
    sentences = choice_sentences(ranker, selection_text(ranker, valid)) if ranker is not None else []
    yield from sentences
    if not sentences:
        for name, value in getattr(model, "metrics", {}).items():
            yield f"{name.capitalize()}: {value:.4g}."


def _features(model: Any, ranker: Any) -> list[Part]:
    if not getattr(model, "terms", ()):
        return []
    return [feature_table(ranker, model) if model.card is None else card_table(model)]


def _limits(model: Any) -> Iterator[Part]:
    if hasattr(model, "terms") and "gap" not in model.certificate:
        yield "Nothing is proven about the weights."
    if model.per_query:
        yield "A score depends on the other documents of the query, because values are prepared within it."
    missing = model.preparation.missing.policy
    if missing == "keep" and not getattr(model, "has_curves", False):
        yield "A missing value of a feature has no replacement: such a document has no score."
    yield from LIMITS


def as_markdown(part: Part) -> str:
    """A sentence, or a table of Markdown."""
    if isinstance(part, str):
        return _escaped(part)
    rows = [part.columns, ["---"] * len(part.columns), *part.cells()]
    return "\n".join(_row(row) for row in rows)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(_escaped(cell).replace('|', chr(92) + '|') for cell in cells)} |"


def _escaped(text: str) -> str:
    """Text without control characters, HTML and Markdown that a name could bring."""
    shown = escape_controls(text).replace("\n", " ")
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace("[", "&#91;")
