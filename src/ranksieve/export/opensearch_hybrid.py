"""OpenSearch's hybrid query with the ``normalization-processor`` of a search pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve._util.messages import safe
from ranksieve.errors import DataError
from ranksieve.export.base import Options, Product, as_json, check_model_name, float32
from ranksieve.export.elasticsearch import MODEL_NAME
from ranksieve.export.hybrid import BY_RANGE, SHOWN, Hybrid, hybrid, match
from ranksieve.export.lucene import curl

if TYPE_CHECKING:
    from ranksieve.model.linear import LinearModel

ENGINE = "OpenSearch's hybrid query"
MOST_CLAUSES = 5
LEAST = 0.001  # what the processor puts in the place of 0


def opensearch_hybrid(model: LinearModel, options: Options) -> Product:
    """A search pipeline with the weights, which sum to 1, and a hybrid query with the sub-queries."""
    check_model_name(MODEL_NAME, options.name)
    _check_normalisation(model)
    search = hybrid(model, options, ENGINE, match)
    if len(search.clauses) > MOST_CLAUSES:
        raise DataError(
            None,
            None,
            f"the model uses {len(search.clauses)} features, but {ENGINE} takes at most {MOST_CLAUSES} "
            f"sub-queries; fit with `max_features={MOST_CLAUSES}`",
        )
    total = float(np.sum([clause.weight for clause in search.clauses]))
    queries = [clause.query for clause in search.clauses]
    files: dict[str, str | bytes] = {
        "pipeline.json": as_json(_pipeline(search, total)),
        "query.json": as_json(
            {
                "size": min(SHOWN, search.window),
                "query": {"hybrid": {"pagination_depth": search.window, "queries": queries}},
            }
        ),
    }
    note = (
        f"Scores are the model's divided by {total:.6g}, because weights must sum to 1; the least score of a "
        f"sub-query counts {LEAST:g} and not 0, so documents nearer than that may change places."
    )
    return Product(files, (*search.notes, note), lambda folder: _load(folder, options.name))


def _check_normalisation(model: LinearModel) -> None:
    kind = model.preparation.normalisation.kind
    if kind == BY_RANGE or not model.weights.any():
        return
    reason = (
        f"whose z_score turns every score below the mean into {LEAST:g}"
        if kind == "query_z"
        else "which scales the scores of every sub-query within the result list"
    )
    raise DataError(
        None,
        None,
        f"the model's normalisation is {kind}, which does not fit {ENGINE}, {reason}; fit with "
        f"`normalise={BY_RANGE!r}`",
    )


def _pipeline(search: Hybrid, total: float) -> dict[str, Any]:
    shares = [(clause.weight / total, safe(clause.name)) for clause in search.clauses]
    weights = [float32(share, f"the weight of {name}") for share, name in shares]
    processor = {
        "normalization": {"technique": "min_max"},
        "combination": {"technique": "arithmetic_mean", "parameters": {"weights": weights}},
    }
    return {"phase_results_processors": [{"normalization-processor": processor}]}


def _load(folder: str, name: str) -> tuple[str, ...]:
    base = "http://localhost:9200"
    return (
        curl("PUT", f"{base}/_search/pipeline/{name}", folder, "pipeline.json"),
        curl("POST", f"{base}/YOUR_INDEX/_search?search_pipeline={name}", folder, "query.json"),
    )
