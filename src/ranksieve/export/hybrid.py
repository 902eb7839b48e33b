"""Hybrid searches: the score of every sub-query is a feature, and they are added with weights.

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

from ranksieve.errors import safe
from ranksieve.export.base import (
    ANY_NAME,
    Options,
    Product,
    as_json,
    constant_left_out,
    engine_names,
    exportable,
    float32,
    told_apart,
    unfit,
    warn_of_means,
    weight32,
)
from ranksieve.export.elasticsearch import ADDRESS
from ranksieve.export.lucene import check_defined, curl, feature_list

if TYPE_CHECKING:
    from ranksieve.model.linear import LinearModel

BY_RANGE = "query_min_max"
WINDOW = 100
SHOWN = 10  # documents that the example query returns
WORDS = "WORDS OF THE USER"
PLUGIN_KEYS = ("_source", "featureset", "features")


@dataclass(frozen=True)
class Clause:
    """A feature in use: the sub-query's name, its weight in float32, and what finds and scores documents."""

    name: str
    weight: float
    query: Any


@dataclass(frozen=True)
class Hybrid:
    """A model as a hybrid search.

    ``by_range`` tells whether scores are scaled by their least and greatest value in the result list.
    """

    clauses: tuple[Clause, ...]
    by_range: bool
    window: int
    notes: tuple[str, ...]


def hybrid(model: LinearModel, options: Options, engine: str, query_of: Callable[[str], Any]) -> Hybrid:
    """The sub-queries of a model: those of the feature set, else ``query_of`` the engine's name of a field.

    Scales of the training data fold into the weights. A negative weight is refused. A document that a
    sub-query does not return counts 0 there: after scaling by range that is the query's least value, so
    that this policy for missing values is the engine's own.
    """
    by_range = model.preparation.normalisation.kind == BY_RANGE
    model = exportable(model, engine, within=(BY_RANGE, "query_min") if by_range else (BY_RANGE,))
    warn_of_means(model, engine, f"fit with `missing={'query_min' if by_range else 'zero'!r}`")
    folded, window = model if by_range else model.folded(), options.window
    used = [term for term in folded.terms if term.weight]
    names = engine_names([term.name for term in used], options.names, ANY_NAME, engine)
    for term in used:
        if term.weight < 0:
            raise unfit(
                f"the weight of {safe(term.name)} is {term.weight:.6g}, but {engine} takes no negative "
                "weights; fit with its sign + in `signs`, or without it by `must_not`"
            )
    queries = [query_of(name) for name in names]
    if options.featureset is not None:
        defined = sub_queries(options.featureset)
        check_defined(defined, names, "there is no query for")
        queries = [defined[name] for name in names]
    weights = [weight32(term.weight, name) for term, name in zip(used, names, strict=True)]
    notes = (*_notes(by_range, window, queries), *constant_left_out(folded.intercept, engine))
    return Hybrid(tuple(map(Clause, names, weights, queries)), by_range, window, notes)


def _notes(by_range: bool, window: int, queries: Sequence[Any]) -> tuple[str, ...]:
    scaled = "its least and greatest score are taken among these, and " if by_range else ""
    note = (
        f"Each sub-query returns its first {window} documents; {scaled}a document that it does not return "
        "counts 0 there. Log the features that you train on in the same way."
    )
    asked = dict.fromkeys(re.findall(r"\{\{\W*(\w+)\W*\}\}", json.dumps(queries, ensure_ascii=False)))
    if not asked:
        return (note,)
    return note, f"Put values in the place of {', '.join(f'{{{{{name}}}}}' for name in asked)} in the query."


def match(field: str) -> dict[str, Any]:
    """The query that scores a field by the user's words."""
    return {"match": {field: WORDS}}


def sub_queries(content: Any) -> dict[str, Any]:
    """Queries by feature: an object of them, or the feature set of the learning-to-rank plugin."""
    if isinstance(content, dict) and not any(key in content for key in PLUGIN_KEYS):
        queries = content
    else:
        queries = {one["name"]: one.get("template") for one in feature_list(content)}
    for name, query in queries.items():
        if not isinstance(query, dict | list) or not query:
            raise unfit(
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
    query = {"size": min(SHOWN, search.window), "retriever": {"linear": linear}}
    file, address = f"{options.name}.json", f"{ADDRESS}/YOUR_INDEX/_search"
    return Product(
        {file: as_json(query)}, search.notes, lambda folder: (curl("POST", address, folder, file),)
    )


def _retriever(query: Any) -> Any:
    """A retriever as it is, a query as one."""
    is_retriever = isinstance(query, dict) and len(query) == 1 and next(iter(query)) in RETRIEVERS
    return query if is_retriever else {"standard": {"query": query}}


OPENSEARCH = "OpenSearch's hybrid query"
MOST_CLAUSES = 5
LEAST = 0.001  # what the processor puts in the place of 0


def opensearch_hybrid(model: LinearModel, options: Options) -> Product:
    """A search pipeline with the weights, which sum to 1, and a hybrid query with the sub-queries."""
    _check_normalisation(model)
    search = hybrid(model, options, OPENSEARCH, match)
    if len(search.clauses) > MOST_CLAUSES:
        raise unfit(
            f"the model uses {len(search.clauses)} features, but {OPENSEARCH} takes at most {MOST_CLAUSES} "
            f"sub-queries; fit with `max_features={MOST_CLAUSES}`"
        )
    total = float(np.sum([clause.weight for clause in search.clauses]))
    clauses = {"pagination_depth": search.window, "queries": [clause.query for clause in search.clauses]}
    query = {"size": min(SHOWN, search.window), "query": {"hybrid": clauses}}
    files = {"pipeline.json": as_json(_pipeline(search, total)), "query.json": as_json(query)}
    note = (
        f"Scores are the model's divided by {total:.6g}, because weights must sum to 1; the least score of a "
        f"sub-query counts {LEAST:g} and not 0, so documents nearer than that may change places."
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
        f"whose z_score turns every score below the mean into {LEAST:g}"
        if kind == "query_z"
        else "which scales the scores of every sub-query within the result list"
    )
    raise unfit(
        f"the model's normalisation is {kind}, which does not fit {OPENSEARCH}, {reason}; fit with "
        f"`normalise={BY_RANGE!r}`"
    )


def _pipeline(search: Hybrid, total: float) -> dict[str, Any]:
    shares = [(clause.weight / total, safe(clause.name)) for clause in search.clauses]
    weights = [float32(share, f"the weight of {name}") for share, name in shares]
    processor = {
        "normalization": {"technique": "min_max"},
        "combination": {"technique": "arithmetic_mean", "parameters": {"weights": weights}},
    }
    return {"phase_results_processors": [{"normalization-processor": processor}]}


PIPELINE = "pipeline.json"


def mongodb(model: LinearModel, options: Options) -> Product:
    """An aggregation pipeline; query_min_max is its normalisation ``minMaxScaler``."""
    search = hybrid(model, options, "MongoDB's $scoreFusion", _text_search)
    names = told_apart([re.sub(r"[.$]", "_", clause.name) for clause in search.clauses])
    stages = [_stages(clause.query, search.window) for clause in search.clauses]
    weights = [clause.weight for clause in search.clauses]
    scaler = "minMaxScaler" if search.by_range else "none"
    fusion = {
        "input": {"pipelines": dict(zip(names, stages, strict=True)), "normalization": scaler},
        "combination": {"method": "avg", "weights": dict(zip(names, weights, strict=True))},
    }
    pipeline = [{"$scoreFusion": fusion}, {"$limit": min(SHOWN, search.window)}]
    note = f"Scores are the model's divided by {len(names)}: $scoreFusion takes the mean over its pipelines."
    return Product({PIPELINE: as_json(pipeline)}, (*search.notes, note), _load_aggregation)


def _text_search(field: str) -> Any:
    return {"$search": {"text": {"query": WORDS, "path": field}}}


def _stages(query: Any, window: int) -> list[Any]:
    """The stages of a pipeline unchanged; a single stage is followed by its limit."""
    stages = query if isinstance(query, list) else [query, {"$limit": window}]
    for stage in stages:
        if not (isinstance(stage, dict) and len(stage) == 1 and next(iter(stage)).startswith("$")):
            raise unfit(
                f"{str(stage)[:60]!r} is not a stage of a MongoDB pipeline; expected one such as "
                '{"$search": …} or a list of them'
            )
    return stages


def _load_aggregation(folder: str) -> tuple[str, ...]:
    file = json.dumps(str(PurePath(folder, PIPELINE)), ensure_ascii=False)
    read = f"JSON.parse(require('fs').readFileSync({file}, 'utf8'))"
    return (f"mongosh YOUR_DATABASE --eval {shlex.quote(f'db.YOUR_COLLECTION.aggregate({read})')}",)
