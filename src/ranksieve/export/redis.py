"""Redis: FT.HYBRID, a weighted sum of the scores of one text search and one vector search."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from ranksieve.export.base import Options, Product, not_exportable
from ranksieve.export.hybrid import RESULT_SIZE, Hybrid, hybrid
from ranksieve.export.lucene import USER_QUERY

if TYPE_CHECKING:
    from ranksieve.model.linear import LinearModel

ENGINE = "Redis's FT.HYBRID"
SEARCH, VECTOR = "search", "vsim"


def redis(model: LinearModel, options: Options) -> Product:
    """The command. Redis does not normalise scores, and its RRF has no weights."""
    search = hybrid(model, options, ENGINE, _field, kinds=())
    if len(search.clauses) != 2:
        used = f"the model uses {len(search.clauses)} features"
        raise not_exportable(f"{used}, but {ENGINE} combines one text search and one vector search")
    text, vector = _text_and_vector(search, options.featureset is None)
    window = search.window
    lines = [
        "FT.HYBRID YOUR_INDEX",
        f"SEARCH {_quoted(text.query[SEARCH])}",
        f"VSIM {_quoted(vector.query[VECTOR])} $vector KNN 2 K {window}",
        f"COMBINE LINEAR 6 ALPHA {text.weight!r} BETA {vector.weight!r} WINDOW {window}",
        f"LIMIT 0 {min(RESULT_SIZE, window)} PARAMS 2 vector YOUR_VECTOR_BYTES",
    ]
    notes = (
        f"ALPHA is the weight of the text search {text.name}, BETA that of the vector search {vector.name}.",
        "Log both scores with YIELD_SCORE_AS: Redis converts vector distances, such as (2 − d)/2 for COSINE.",
        "FT.HYBRID needs Redis 8.4 or later. Pass the command as one line.",
    )
    return Product({f"{options.name}.txt": "\n".join(lines) + "\n"}, (*search.notes, *notes))


def _field(name: str) -> dict[str, str]:
    """Both searches of a field; the first clause is used as the text search."""
    escaped = "@" + re.sub(r"(\W)", r"\\\1", name)
    return {SEARCH: f"{escaped}:({USER_QUERY})", VECTOR: escaped}


def _text_and_vector(search: Hybrid, by_order: bool) -> Any:
    first, second = search.clauses
    if by_order or (_has(first.query, SEARCH) and _has(second.query, VECTOR)):
        return first, second
    if _has(first.query, VECTOR) and _has(second.query, SEARCH):
        return second, first
    raise not_exportable(
        f"the queries of {first.name} and {second.name} must be one text search and one vector search, "
        'such as {"search": "@text:(shoes)"} and {"vsim": "@embedding"}'
    )


def _has(query: Any, key: str) -> bool:
    return isinstance(query, dict) and isinstance(query.get(key), str)


def _quoted(text: str) -> str:
    """Text in double quotes, as redis-cli reads it."""
    return json.dumps(text, ensure_ascii=False)
