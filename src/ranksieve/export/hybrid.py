"""Hybrid search: a weighted sum of scores or reciprocal ranks of sub-queries, each of which is a feature.

Elasticsearch's retrievers ``linear`` and ``rrf``, OpenSearch's hybrid query with a
``normalization-processor`` or a ``score-ranker-processor``, and MongoDB's stage ``$scoreFusion``.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve.data.result_lists import list_scaling, rank_constant
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

HYBRID = "HybridRanker"  # the method of models whose features are clauses
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
    """A model as a hybrid search. ``kind``: normalisation of the scores within the result list."""

    clauses: tuple[Clause, ...]
    kind: str
    window: int
    notes: tuple[str, ...]


def hybrid(
    model: LinearModel,
    options: Options,
    engine: str,
    query_of: Callable[[str], Any],
    kinds: Collection[str] = (BY_RANGE, "query_min"),
    by_rank: bool = False,
) -> Hybrid:
    """Sub-queries of a model: those of the feature set, or else ``query_of`` the engine's field name.

    ``kinds`` are the normalisations, and policies for missing values, that the engine computes, and with
    ``by_rank`` also weighted reciprocal ranks. Scales of the training data are folded into the weights. A
    negative weight is refused. A document that a sub-query does not return gets 0 from it; after scaling by
    range that is the minimum of the query, so the engine implements missing="query_min".
    """
    kind = model.preparation.normalisation.kind
    by_range = kind == BY_RANGE
    within = [one for one in kinds if by_range or one != "query_min"]
    if by_rank and rank_constant(kind) is not None:
        within.append(kind)
    model = prepare_for_export(model, engine, within=within)
    if list_scaling(kind) is None:
        warn_about_means(model, engine, f"fit with `missing={'query_min' if by_range else 'zero'!r}`")
    folded = model if model.per_query else model.folded()
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
    notes = (*_notes(kind, options.window, queries), *intercept_note(folded.intercept, engine))
    return Hybrid(tuple(map(Clause, names, weights, queries)), kind, options.window, notes)


def _notes(kind: str, window: int, queries: Sequence[Any]) -> tuple[str, ...]:
    by_range = kind == BY_RANGE or kind.startswith("list_min_max")
    scaling = "their minimum and maximum scale its scores, and " if by_range else ""
    note = (
        f"Each sub-query returns its top {window} documents; {scaling}a document that it does not return "
        "gets 0 from it. Log the features of your training data in the same way."
    )
    ties: tuple[str, ...] = ()
    if rank_constant(kind) is not None:
        ties = (
            "The model gives documents with equal scores in a list the mean over their ranks; the engine "
            "orders them by index.",
        )
    parameters = dict.fromkeys(re.findall(r"\{\{\W*(\w+)\W*\}\}", json.dumps(queries, ensure_ascii=False)))
    if not parameters:
        return (note, *ties)
    replacing = f"Replace {', '.join(f'{{{{{name}}}}}' for name in parameters)} in the query by values."
    return note, *ties, replacing


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


NORMALISERS = {  # of Elasticsearch
    BY_RANGE: "minmax", "list_min_max": "minmax", "list_min_max@elasticsearch": "minmax",
    "list_l2": "l2_norm",
}  # fmt: skip


def elasticsearch_linear(model: LinearModel, options: Options) -> Product:
    """A search with one retriever per feature: ``rrf`` for weights of reciprocal ranks, else ``linear``.

    query_min_max and list_min_max are the normaliser ``minmax``.
    """
    k = rank_constant(model.preparation.normalisation.kind)
    engine = f"Elasticsearch's {'linear' if k is None else 'rrf'} retriever"
    search = hybrid(model, options, engine, match, (*NORMALISERS, "query_min"), by_rank=True)
    normaliser = NORMALISERS.get(search.kind, "none")
    scaled = {} if k is not None else {"normalizer": normaliser}
    retrievers = [
        {"retriever": _retriever(clause.query), "weight": clause.weight, **scaled}
        for clause in search.clauses
    ]
    combined = {"rank_window_size": search.window, "retrievers": retrievers}
    fusion = {"linear": combined} if k is None else {"rrf": {**combined, "rank_constant": k}}
    query = {"size": min(RESULT_SIZE, search.window), "retriever": fusion}
    notes, file, address = search.notes, f"{options.name}.json", f"{ADDRESS}/YOUR_INDEX/_search"
    if search.kind == "list_min_max":
        notes += (
            "Where all scores of a list are equal, Elasticsearch gives the score itself, the model 1; to fit "
            "with its arithmetic, use engine='elasticsearch'.",
        )
    if k is not None:
        notes += ("Weights of the rrf retriever need Elasticsearch 9.2 or later.",)
    if normaliser == "l2_norm":
        notes += ("The normaliser l2_norm needs Elasticsearch 9.1 or later.",)
    return Product({file: as_json(query)}, notes, lambda folder: (curl("POST", address, folder, file),))


def _retriever(query: Any) -> Any:
    """Return a retriever unchanged, and a query as a standard retriever."""
    is_retriever = isinstance(query, dict) and len(query) == 1 and next(iter(query)) in RETRIEVERS
    return query if is_retriever else {"standard": {"query": query}}


OPENSEARCH = "OpenSearch's hybrid query"
MAX_SUB_QUERIES = 5
OPENSEARCH_MIN_SCORE = 0.001  # the processor replaces 0 by it


TECHNIQUES = {  # of OpenSearch
    BY_RANGE: "min_max", "list_min_max": "min_max", "list_min_max@opensearch": "min_max", "list_l2": "l2",
    "list_z@opensearch": "z_score",
}  # fmt: skip


def opensearch_hybrid(model: LinearModel, options: Options) -> Product:
    """A search pipeline with the weights, which must sum to 1, and a hybrid query with the sub-queries.

    The pipeline normalises scores or, for weights of reciprocal ranks, ranks.
    """
    _check_normalisation(model)
    search = hybrid(model, options, OPENSEARCH, match, (*TECHNIQUES, "query_min"), by_rank=True)
    shares, total = _shares(search)
    k = rank_constant(search.kind)
    note = f"Scores are the model's divided by {total:.6g}, because weights must sum to 1"
    if k is not None:
        combination: dict[str, Any] = {"technique": "rrf", "rank_constant": k}
        if len(set(shares)) > 1:
            combination["parameters"] = {"weights": shares}
            note += ". Weights of reciprocal ranks need OpenSearch 3.1 or later."
        else:
            weight = search.clauses[0].weight
            note = f"Scores are the model's divided by {weight:.6g}, the weight of each clause."
        processor: Any = {"score-ranker-processor": {"combination": combination}}
    else:
        technique = TECHNIQUES[search.kind]
        combination = {"technique": "arithmetic_mean", "parameters": {"weights": shares}}
        normalisation = {"normalization": {"technique": technique}, "combination": combination}
        processor = {"normalization-processor": normalisation}
        note += _differences(search.kind)
    return _opensearch(search, options, processor, (note,))


def _differences(kind: str) -> str:
    """How scores in OpenSearch differ from those of the model, as the end of a note."""
    if kind == "list_z@opensearch":
        return ". The technique z_score needs OpenSearch 3.0 or later."
    if kind in ("list_l2", "list_min_max@opensearch"):
        return "."
    return (
        f"; the lowest score of a sub-query becomes {OPENSEARCH_MIN_SCORE:g} instead of 0, so documents with "
        "closer scores may change order."
    )


def _shares(search: Hybrid) -> tuple[list[float], float]:
    """(weights that sum to 1, their sum before); refuse more sub-queries than OpenSearch accepts."""
    if len(search.clauses) > MAX_SUB_QUERIES:
        raise not_exportable(
            f"the model uses {len(search.clauses)} features, but {OPENSEARCH} accepts at most "
            f"{MAX_SUB_QUERIES} sub-queries; fit with `max_features={MAX_SUB_QUERIES}`"
        )
    total = float(np.sum([clause.weight for clause in search.clauses]))
    shares = [(clause.weight / total, printable(clause.name)) for clause in search.clauses]
    return [float32(share, f"the weight of {name}") for share, name in shares], total


def _opensearch(search: Hybrid, options: Options, processor: Any, notes: tuple[str, ...]) -> Product:
    clauses = {"pagination_depth": search.window, "queries": [clause.query for clause in search.clauses]}
    query = {"size": min(RESULT_SIZE, search.window), "query": {"hybrid": clauses}}
    files = {
        "pipeline.json": as_json({"phase_results_processors": [processor]}), "query.json": as_json(query),
    }  # fmt: skip
    pipeline, index = f"{ADDRESS}/_search/pipeline/{options.name}", f"{ADDRESS}/YOUR_INDEX/_search"
    return Product(
        files,
        (*search.notes, *notes),
        lambda folder: (
            curl("PUT", pipeline, folder, "pipeline.json"),
            curl("POST", f"{index}?search_pipeline={options.name}", folder, "query.json"),
        ),
    )


def _check_normalisation(model: LinearModel) -> None:
    kind = model.preparation.normalisation.kind
    if kind == BY_RANGE or list_scaling(kind) is not None or not model.weights.any():
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


def mongodb(model: LinearModel, options: Options) -> Product:
    """An aggregation pipeline; query_min_max is its normalisation ``minMaxScaler``."""
    kinds = (BY_RANGE, "query_min", "list_min_max")
    search = hybrid(model, options, "MongoDB's $scoreFusion", _text_search, kinds)
    names = make_unique([re.sub(r"[.$]", "_", clause.name) for clause in search.clauses])
    stages = [_stages(clause.query, search.window) for clause in search.clauses]
    weights = [clause.weight for clause in search.clauses]
    scaler = "none" if search.kind not in kinds else "minMaxScaler"
    fusion = {
        "input": {"pipelines": dict(zip(names, stages, strict=True)), "normalization": scaler},
        "combination": {"method": "avg", "weights": dict(zip(names, weights, strict=True))},
    }
    pipeline = [{"$scoreFusion": fusion}, {"$limit": min(RESULT_SIZE, search.window)}]
    note = f"Scores are the model's divided by {len(names)}: $scoreFusion averages over its pipelines."
    notes = (*search.notes, note)
    if search.kind == "list_min_max":
        notes += ("Where all scores of a list are equal, MongoDB gives 0 instead of 1.",)
    return Product({"pipeline.json": as_json(pipeline)}, notes, _load_aggregation)


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
