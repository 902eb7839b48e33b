"""Hybrid search: a weighted sum of the scores of sub-queries, each of which is a feature.

Elasticsearch's retriever ``linear``, OpenSearch's hybrid query with a ``normalization-processor``, and
MongoDB's stage ``$scoreFusion``.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve.errors import printable
from ranksieve.export.base import (
    ANY_NAME,
    Options,
    Product,
    as_json,
    engine_names,
    float32,
    intercept_note,
    make_unique,
    not_exportable,
    prepare_for_export,
    warn_about_means,
    weight32,
)
from ranksieve.export.elasticsearch import ADDRESS
from ranksieve.export.lucene import USER_QUERY, check_defined, curl, feature_list

if TYPE_CHECKING:
    from ranksieve.model.linear import LinearModel

BY_RANGE = "query_min_max"
HYBRID_WINDOW = 100
RESULT_SIZE = 10  # of example queries
PLUGIN_KEYS = ("_source", "featureset", "features")


@dataclass(frozen=True)
class Clause:
    """A feature in use: name of the sub-query, weight in float32, and the query."""

    name: str
    weight: float
    query: Any


@dataclass(frozen=True)
class Hybrid:
    """A model as a hybrid search.

    ``by_range``: scores are scaled by their minimum and maximum in the result list.
    """

    clauses: tuple[Clause, ...]
    by_range: bool
    window: int
    notes: tuple[str, ...]


def hybrid(model: LinearModel, options: Options, engine: str, query_of: Callable[[str], Any]) -> Hybrid:
    """Sub-queries of a model: those of the feature set, or else ``query_of`` the engine's field name.

    Scales of the training data are folded into the weights. A negative weight is refused. A document that a
    sub-query does not return gets 0 from it; after scaling by range that is the minimum of the query, so the
    engine implements missing="query_min".
    """
    by_range = model.preparation.normalisation.kind == BY_RANGE
    model = prepare_for_export(model, engine, within=(BY_RANGE, "query_min") if by_range else (BY_RANGE,))
    warn_about_means(model, engine, f"fit with `missing={'query_min' if by_range else 'zero'!r}`")
    folded, window = model if by_range else model.folded(), options.window
    used = [term for term in folded.terms if term.weight]
    names = engine_names([term.name for term in used], options.names, ANY_NAME, engine)
    for term in used:
        if term.weight < 0:
            raise not_exportable(
                f"the weight of {printable(term.name)} is {term.weight:.6g}, but {engine} accepts no "
                "negative weights; fit with its sign + in `signs`, or exclude it with `must_not`"
            )
    queries = [query_of(name) for name in names]
    if options.featureset is not None:
        definitions = sub_queries(options.featureset)
        check_defined(definitions, names, "there is no query for")
        queries = [definitions[name] for name in names]
    weights = [weight32(term.weight, name) for term, name in zip(used, names, strict=True)]
    notes = (*_notes(by_range, window, queries), *intercept_note(folded.intercept, engine))
    return Hybrid(tuple(map(Clause, names, weights, queries)), by_range, window, notes)


def _notes(by_range: bool, window: int, queries: Sequence[Any]) -> tuple[str, ...]:
    scaling = "their minimum and maximum scale its scores, and " if by_range else ""
    note = (
        f"Each sub-query returns its top {window} documents; {scaling}a document that it does not return "
        "gets 0 from it. Log the features of your training data in the same way."
    )
    parameters = dict.fromkeys(re.findall(r"\{\{\W*(\w+)\W*\}\}", json.dumps(queries, ensure_ascii=False)))
    if not parameters:
        return (note,)
    return note, f"Replace {', '.join(f'{{{{{name}}}}}' for name in parameters)} in the query by values."


def match(field: str) -> dict[str, Any]:
    """Query that matches a field with the user's query."""
    return {"match": {field: USER_QUERY}}


def sub_queries(content: Any) -> dict[str, Any]:
    """Queries by feature, from a mapping or from the feature set of the learning-to-rank plugin."""
    if isinstance(content, dict) and not any(key in content for key in PLUGIN_KEYS):
        queries = content
    else:
        queries = {one["name"]: one.get("template") for one in feature_list(content)}
    for name, query in queries.items():
        if not isinstance(query, dict | list) or not query:
            raise not_exportable(
                f"the feature {name!r} has no query, got {str(query)[:40]!r}; expected an object from "
                "feature names to queries, or a feature set whose templates are queries"
            )
    return queries


RETRIEVERS = ("standard", "knn", "rrf", "linear", "text_similarity_reranker")


def elasticsearch_linear(model: LinearModel, options: Options) -> Product:
    """A search with one retriever per feature; query_min_max is its normaliser ``minmax``."""
    search = hybrid(model, options, "Elasticsearch's linear retriever", match)
    normaliser = "minmax" if search.by_range else "none"
    retrievers = [
        {"retriever": _retriever(clause.query), "weight": clause.weight, "normalizer": normaliser}
        for clause in search.clauses
    ]
    linear = {"rank_window_size": search.window, "retrievers": retrievers}
    query = {"size": min(RESULT_SIZE, search.window), "retriever": {"linear": linear}}
    file, address = f"{options.name}.json", f"{ADDRESS}/YOUR_INDEX/_search"
    return Product(
        {file: as_json(query)}, search.notes, lambda folder: (curl("POST", address, folder, file),)
    )


def _retriever(query: Any) -> Any:
    """Return a retriever unchanged, and a query as a standard retriever."""
    is_retriever = isinstance(query, dict) and len(query) == 1 and next(iter(query)) in RETRIEVERS
    return query if is_retriever else {"standard": {"query": query}}


OPENSEARCH = "OpenSearch's hybrid query"
MAX_SUB_QUERIES = 5
OPENSEARCH_MIN_SCORE = 0.001  # the processor replaces 0 by it


def opensearch_hybrid(model: LinearModel, options: Options) -> Product:
    """A search pipeline with the weights, which must sum to 1, and a hybrid query with the sub-queries."""
    _check_normalisation(model)
    search = hybrid(model, options, OPENSEARCH, match)
    if len(search.clauses) > MAX_SUB_QUERIES:
        raise not_exportable(
            f"the model uses {len(search.clauses)} features, but {OPENSEARCH} accepts at most "
            f"{MAX_SUB_QUERIES} sub-queries; fit with `max_features={MAX_SUB_QUERIES}`"
        )
    total = float(np.sum([clause.weight for clause in search.clauses]))
    clauses = {"pagination_depth": search.window, "queries": [clause.query for clause in search.clauses]}
    query = {"size": min(RESULT_SIZE, search.window), "query": {"hybrid": clauses}}
    files = {"pipeline.json": as_json(_pipeline(search, total)), "query.json": as_json(query)}
    note = (
        f"Scores are the model's divided by {total:.6g}, because weights must sum to 1; the lowest score of "
        f"a sub-query becomes {OPENSEARCH_MIN_SCORE:g} instead of 0, so documents with closer scores may "
        "change order."
    )
    pipeline, index = f"{ADDRESS}/_search/pipeline/{options.name}", f"{ADDRESS}/YOUR_INDEX/_search"
    return Product(
        files,
        (*search.notes, note),
        lambda folder: (
            curl("PUT", pipeline, folder, "pipeline.json"),
            curl("POST", f"{index}?search_pipeline={options.name}", folder, "query.json"),
        ),
    )


def _check_normalisation(model: LinearModel) -> None:
    kind = model.preparation.normalisation.kind
    if kind == BY_RANGE or not model.weights.any():
        return
    reason = (
        f"whose z_score turns every score below the mean into {OPENSEARCH_MIN_SCORE:g}"
        if kind == "query_z"
        else "which scales the scores of every sub-query within the result list"
    )
    raise not_exportable(
        f"the model's normalisation is {kind}, which is incompatible with {OPENSEARCH}, {reason}; fit with "
        f"`normalise={BY_RANGE!r}`"
    )


def _pipeline(search: Hybrid, total: float) -> dict[str, Any]:
    shares = [(clause.weight / total, printable(clause.name)) for clause in search.clauses]
    weights = [float32(share, f"the weight of {name}") for share, name in shares]
    processor = {
        "normalization": {"technique": "min_max"},
        "combination": {"technique": "arithmetic_mean", "parameters": {"weights": weights}},
    }
    return {"phase_results_processors": [{"normalization-processor": processor}]}


def mongodb(model: LinearModel, options: Options) -> Product:
    """An aggregation pipeline; query_min_max is its normalisation ``minMaxScaler``."""
    search = hybrid(model, options, "MongoDB's $scoreFusion", _text_search)
    names = make_unique([re.sub(r"[.$]", "_", clause.name) for clause in search.clauses])
    stages = [_stages(clause.query, search.window) for clause in search.clauses]
    weights = [clause.weight for clause in search.clauses]
    scaler = "minMaxScaler" if search.by_range else "none"
    fusion = {
        "input": {"pipelines": dict(zip(names, stages, strict=True)), "normalization": scaler},
        "combination": {"method": "avg", "weights": dict(zip(names, weights, strict=True))},
    }
    pipeline = [{"$scoreFusion": fusion}, {"$limit": min(RESULT_SIZE, search.window)}]
    note = f"Scores are the model's divided by {len(names)}: $scoreFusion averages over its pipelines."
    return Product({"pipeline.json": as_json(pipeline)}, (*search.notes, note), _load_aggregation)


def _text_search(field: str) -> Any:
    return {"$search": {"text": {"query": USER_QUERY, "path": field}}}


def _stages(query: Any, window: int) -> list[Any]:
    """Return the stages of a pipeline unchanged; add a limit to a single stage."""
    stages = query if isinstance(query, list) else [query, {"$limit": window}]
    for stage in stages:
        if not (isinstance(stage, dict) and len(stage) == 1 and next(iter(stage)).startswith("$")):
            raise not_exportable(
                f"{str(stage)[:60]!r} is not a stage of a MongoDB pipeline; expected one such as "
                '{"$search": …} or a list of them'
            )
    return stages


def _load_aggregation(folder: str) -> tuple[str, ...]:
    file = json.dumps(str(PurePath(folder, "pipeline.json")), ensure_ascii=False)
    read = f"JSON.parse(require('fs').readFileSync({file}, 'utf8'))"
    return (f"mongosh YOUR_DATABASE --eval {shlex.quote(f'db.YOUR_COLLECTION.aggregate({read})')}",)
