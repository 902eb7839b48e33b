"""Elasticsearch's retriever ``linear``: a weighted sum of the scores of other retrievers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ranksieve.export.base import Options, Product, as_json, check_model_name
from ranksieve.export.elasticsearch import MODEL_NAME
from ranksieve.export.hybrid import SHOWN, hybrid, match
from ranksieve.export.lucene import curl

if TYPE_CHECKING:
    from ranksieve.model.linear import LinearModel

RETRIEVERS = ("standard", "knn", "rrf", "linear", "text_similarity_reranker")


def elasticsearch_linear(model: LinearModel, options: Options) -> Product:
    """A search with one retriever per feature; query_min_max is its normaliser ``minmax``."""
    check_model_name(MODEL_NAME, options.name)
    search = hybrid(model, options, "Elasticsearch's linear retriever", match)
    retrievers = [
        {
            "retriever": _retriever(clause.query),
            "weight": clause.weight,
            "normalizer": "minmax" if search.by_range else "none",
        }
        for clause in search.clauses
    ]
    query = {
        "size": min(SHOWN, search.window),
        "retriever": {"linear": {"rank_window_size": search.window, "retrievers": retrievers}},
    }
    return Product(
        {f"{options.name}.json": as_json(query)},
        search.notes,
        lambda folder: (
            curl("POST", "http://localhost:9200/YOUR_INDEX/_search", folder, f"{options.name}.json"),
        ),
    )


def _retriever(query: Any) -> Any:
    """A retriever as it is, a query as one."""
    is_retriever = isinstance(query, dict) and len(query) == 1 and next(iter(query)) in RETRIEVERS
    return query if is_retriever else {"standard": {"query": query}}
