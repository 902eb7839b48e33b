"""Milvus: a hybrid search with its weighted ranker, which adds raw scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ranksieve.export.base import Options, Product, as_json, float32
from ranksieve.export.hybrid import RESULT_SIZE, hybrid
from ranksieve.export.lucene import USER_QUERY, curl

if TYPE_CHECKING:
    from ranksieve.model.linear import LinearModel

ADDRESS = "http://localhost:19530/v2/vectordb/entities/hybrid_search"


def milvus(model: LinearModel, options: Options) -> Product:
    """A request with one search per clause.

    The ranker has no normalisation that depends on the list, and its RRF has no weights.
    """
    search = hybrid(model, options, "Milvus's weighted ranker", _search, kinds=())
    largest = max(1.0, *(clause.weight for clause in search.clauses))
    weights = [float32(clause.weight / largest, "a weight") for clause in search.clauses]
    searches = [{**clause.query, "limit": search.window} for clause in search.clauses]
    ranker = {"reranker": "weighted", "weights": weights, "norm_score": False}
    function = {"name": options.name, "type": "Rerank", "inputFieldNames": [], "params": ranker}
    request = {
        "collectionName": "YOUR_COLLECTION",
        "search": searches,
        "functionScore": {"functions": [function]},
        "limit": min(RESULT_SIZE, search.window),
    }
    file = f"{options.name}.json"
    notes: tuple[str, ...] = (
        "The metric of every vector field must be COSINE, IP or BM25, for which higher is better.",
        "The ranker needs Milvus 2.6 or later.",
    )
    if largest > 1.0:
        notes += (f"Scores are the model's divided by {largest:.6g}, because weights must not exceed 1.",)
    return Product(
        {file: as_json(request)}, (*search.notes, *notes),
        lambda folder: (curl("POST", ADDRESS, folder, file),),
    )  # fmt: skip


def _search(field: str) -> dict[str, Any]:
    return {"annsField": field, "data": [USER_QUERY]}
