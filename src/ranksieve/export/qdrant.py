"""Qdrant's formula query: a weighted sum of search scores and payload values."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ranksieve.errors import printable
from ranksieve.export.base import (
    NameRule,
    Options,
    Product,
    as_json,
    engine_names,
    fill_values,
    prepare_for_export,
)
from ranksieve.export.hybrid import HYBRID, RESULT_SIZE
from ranksieve.export.lucene import curl

if TYPE_CHECKING:
    from ranksieve.model.linear import LinearModel

SEARCH_SCORE = r"\$score(\[(\d{1,3})\])?"
KEY = r'([\w-]+|"[^"\\\x00-\x1f]+")(\[\d*\])*'
VARIABLE = NameRule(
    rf"{SEARCH_SCORE}|{KEY}(\.{KEY})*",
    "a name must be the score of a search ($score, $score[1]) or a key of the payload, such as clicks, "
    'shop.clicks or "clicks per day"',
)


def qdrant(model: LinearModel, options: Options) -> Product:
    """A query whose formula is the model, with the values for missing features as its defaults."""
    model = prepare_for_export(model, "Qdrant's formula")
    folded, window = model.folded(), options.window
    advice, mapping, notes = "map every feature with `names`", options.names, tuple[str, ...]()
    if model.method == HYBRID:  # the clauses are searches
        searched = [name for name in folded.names if name not in mapping]
        mapping = {name: f"$score[{k}]" for k, name in enumerate(searched)} | dict(mapping)
        searches = ", ".join(f"{mapping[name]} is {printable(name)}" for name in folded.names)
        notes = (f"Searches in prefetch: {searches}.",)
    names = engine_names(folded.names, mapping, VARIABLE, "Qdrant", advice)
    constant = [folded.intercept] if folded.intercept else []
    products = [{"mult": [term.weight, name]} for term, name in zip(folded.terms, names, strict=True)]
    fills = fill_values(model) or [0.0] * len(names)
    query = {
        "prefetch": [_search(window)] * _n_searches(names),
        "query": {
            "formula": {"sum": [*products, *constant]},
            "defaults": dict(zip(names, fills, strict=True)),
        },
        "limit": min(RESULT_SIZE, window),
    }
    address = "http://localhost:6333/collections/YOUR_COLLECTION/points/query"
    return Product(
        {f"{options.name}.json": as_json(query)},
        (f"The formula is computed for the top {window} points of each search in prefetch.", *notes),
        lambda folder: (curl("POST", address, folder, f"{options.name}.json"),),
    )


def _n_searches(names: list[str]) -> int:
    """Number of searches: one per score in use, at least one."""
    scores = [match for name in names if (match := re.fullmatch(SEARCH_SCORE, name))]
    return 1 + max((int(match[2] or 0) for match in scores), default=0)


def _search(window: int) -> dict[str, Any]:
    return {"query": "QUERY_VECTOR", "using": "YOUR_VECTOR", "limit": window}
