"""Scores of clauses from responses of Elasticsearch, OpenSearch, Solr, Qdrant and Vespa."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ranksieve._types import PathLike
from ranksieve.errors import DataError, short_repr
from ranksieve.io.ltr_log import QUERY_KEYS, LogPosition, json_values
from ranksieve.io.text_files import in_file, read_text, source_name

Hit = tuple[str, Mapping[str, Any]]
"""A document and its scores by clause."""
RESPONSE = ""  # the clause of a response that holds the scores of only one


def read_clause_log(path: PathLike, clause: str) -> dict[str, dict[str, dict[str, float]]]:
    """Scores of the clauses in a file of search responses: ``clauses[clause][query][document]``.

    JSON or JSON lines; every response is an object with its query next to it as ``qid`` or ``query``, or in a
    wrapper ``{"qid": …, "response": {…}}``. A hit with the scores of several clauses gives them by name:
    ``matched_queries`` (Elasticsearch and OpenSearch with ``include_named_queries_score``),
    ``matchfeatures`` (Vespa) or ``[features]`` (Solr). Otherwise a response is one list, of ``clause``.
    """
    name = source_name(path)
    clauses: dict[str, dict[str, dict[str, float]]] = {}
    with in_file(name):
        values = json_values(read_text(path))
        for position, query, hits in (one for at, value in values for one in _find(value, at, None)):
            for document, scores in hits:
                for key, value in scores.items():
                    if type(value) not in (int, float) or not math.isfinite(value):
                        reason = f"the score of document {document} is {short_repr(value)}"
                        raise position.error(f"{reason}; expected a finite number")
                    run = clauses.setdefault(clause if key == RESPONSE else key, {}).setdefault(query, {})
                    if document in run:
                        raise position.error(f"query {query} returns document {document} twice; keep one")
                    run[document] = float(value)
    if not clauses:
        raise DataError(name, None, "contains no document with a score")
    return clauses


def _find(
    content: Any, position: LogPosition, query: str | None
) -> Iterator[tuple[LogPosition, str, list[Hit]]]:
    """Responses in a list, in wrappers, or in an object keyed by query."""
    if isinstance(content, list):
        for number, one in enumerate(content, start=1):
            yield from _find(one, position.inside(f"response {number}"), query)
        return
    if not isinstance(content, dict):
        raise position.error(f"{short_repr(content)} is not a search response; expected an object")
    if "error" in content:
        reason = json.dumps(content["error"])[:120]
        raise position.error(f"the search engine returned an error ({reason}); run the search again")
    named = (content[key] for key in QUERY_KEYS if isinstance(content.get(key), str | int))
    query = next((str(one) for one in named), query)
    reader = next((read for recognises, read in FORMATS if recognises(content)), None)
    if reader is not None:
        if query is None:
            raise position.error('the response does not name its query; add "qid": … next to it')
        try:
            yield position, query, list(reader(content))
        except (KeyError, TypeError, AttributeError, ValueError):
            raise position.error("the hits are not a list of documents with an id and a score") from None
        return
    if (inner := content.get("response", content.get("responses"))) is not None:
        yield from _find(inner, position, query)
        return
    for key, one in content.items():
        yield from _find(one, position.inside(f"query {key}"), key)


def _elasticsearch(content: Mapping[str, Any]) -> Iterator[Hit]:
    """``_score``, or the scores of named queries."""
    hits = content["hits"]
    for hit in hits["hits"] if isinstance(hits, dict) else hits:
        named = hit.get("matched_queries")
        yield str(hit["_id"]), named if isinstance(named, dict) else {RESPONSE: hit["_score"]}


def _solr(content: Mapping[str, Any]) -> Iterator[Hit]:
    """``score``, or the features of the transformer ``[features]``: "bm25=3.2,dense=0.8"."""
    for document in content["response"]["docs"]:
        logged = document.get("[features]")
        if logged is None:
            yield str(document["id"]), {RESPONSE: document["score"]}
        else:
            pairs = (part.rsplit("=", 1) for part in logged.split(",") if part)
            yield str(document["id"]), {name: float(value) for name, value in pairs}


def _qdrant(content: Mapping[str, Any]) -> Iterator[Hit]:
    result = content["result"]
    for point in result["points"] if isinstance(result, dict) else result:
        yield str(point["id"]), {RESPONSE: point["score"]}


def _vespa(content: Mapping[str, Any]) -> Iterator[Hit]:
    """``relevance``, or the match features."""
    for hit in content["root"].get("children", []):
        fields = hit.get("fields", {})
        named = fields.get("matchfeatures")
        yield str(fields.get("documentid", hit["id"])), named or {RESPONSE: hit["relevance"]}


FORMATS: tuple[
    tuple[Callable[[Mapping[str, Any]], bool], Callable[[Mapping[str, Any]], Iterator[Hit]]], ...
] = (
    (lambda content: "hits" in content, _elasticsearch),
    (lambda content: "docs" in _as_mapping(content.get("response")), _solr),
    (lambda content: "result" in content, _qdrant),
    (lambda content: "root" in content, _vespa),
)


def _as_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
