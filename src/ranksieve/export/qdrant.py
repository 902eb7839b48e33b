"""Qdrant's formula: a weighted sum of scores of searches and of values in the payload."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ranksieve.export.base import (
    NameRule,
    Options,
    Product,
    as_json,
    engine_names,
    exportable,
    fills_of,
)
from ranksieve.export.hybrid import SHOWN
from ranksieve.export.lucene import curl

if TYPE_CHECKING:
    from ranksieve.model.linear import LinearModel

SCORE = r"\$score(\[(\d{1,3})\])?"
KEY = r'([\w-]+|"[^"\\\x00-\x1f]+")(\[\d*\])*'
VARIABLE = NameRule(
    rf"{SCORE}|{KEY}(\.{KEY})*",
    "it is neither the score of a search ($score, $score[1]) nor a key of the payload, such as clicks, "
    'shop.clicks or "clicks per day"',
)


def qdrant(model: LinearModel, options: Options) -> Product:
    """A query whose formula is the model, with what stands for a missing value as its defaults."""
    model = exportable(model, "Qdrant's formula")
    folded, window = model.folded(), options.window
    advice = "map every feature with `names`"
    names = engine_names(folded.names, options.names, VARIABLE, "Qdrant", advice)
    constant = [folded.intercept] if folded.intercept else []
    products = [{"mult": [term.weight, name]} for term, name in zip(folded.terms, names, strict=True)]
    fills = fills_of(model) or [0.0] * len(names)
    query = {
        "prefetch": [_search(window)] * _n_searches(names),
        "query": {
            "formula": {"sum": [*products, *constant]},
            "defaults": dict(zip(names, fills, strict=True)),
        },
        "limit": min(SHOWN, window),
    }
    address = "http://localhost:6333/collections/YOUR_COLLECTION/points/query"
    return Product(
        {f"{options.name}.json": as_json(query)},
        (f"The formula is computed for the first {window} points of each search under prefetch.",),
        lambda folder: (curl("POST", address, folder, f"{options.name}.json"),),
    )


def _n_searches(names: list[str]) -> int:
    """As many as there are scores in use; one that finds the points if there are none."""
    scores = [found for name in names if (found := re.fullmatch(SCORE, name))]
    return 1 + max((int(found[2] or 0) for found in scores), default=0)


def _search(window: int) -> dict[str, Any]:
    return {"query": "VECTOR OF THE QUERY", "using": "YOUR_VECTOR", "limit": window}
