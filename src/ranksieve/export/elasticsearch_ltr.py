"""Curves for Elasticsearch's own learning to rank, a trained model with a rescorer, without a plugin."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve.export.base import (
    ANY_NAME,
    NameRule,
    Options,
    Product,
    as_json,
    engine_names,
    float32,
    prepare_for_export,
)
from ranksieve.export.elasticsearch import ADDRESS
from ranksieve.export.hybrid import sub_queries
from ranksieve.export.lucene import USER_QUERY, check_defined, curl, tree_summands, warn_of_changed_pairs
from ranksieve.export.trees import MISSING, Node, Split, curve_trees, differs_from_zero, flattened

if TYPE_CHECKING:
    from ranksieve.model.linear import LinearModel

MODEL_ID = NameRule(
    r"[a-z0-9]([a-z0-9_.-]{0,62}[a-z0-9])?",
    "the id of a trained model has at most 64 lower-case letters, digits, _, . and -, and begins and ends "
    "with a letter or digit",
)
LTR_NAME = NameRule(
    rf"(?!.*\{{\{{){ANY_NAME.pattern}",
    f"{ANY_NAME.description}, and without {{{{, which begins a parameter in Elasticsearch's queries",
)
LTR_WINDOW = 100


def elasticsearch_ltr(model: LinearModel, options: Options) -> Product:
    """A trained model with the queries whose scores are its features, and an example search."""
    engine = "Elasticsearch's learning to rank"
    model = prepare_for_export(model, engine)
    names = engine_names(model.names, options.names, LTR_NAME, engine)
    queries: dict[str, Any] = {name: {"match": {name: "{{query}}"}} for name in names}
    if options.featureset is not None:
        queries = sub_queries(options.featureset)
        check_defined(queries, names, "there is no query for")
    roots = curve_trees(model, engine, single=True)
    warn_of_changed_pairs(model, options.sample, engine, tree_summands(roots), model.intercept, np.float64)
    trees = [_tree(root, j, names) for j, root in enumerate(roots)]
    if model.intercept:
        trees.append(_tree(float32(model.intercept, "the intercept"), 0, names))
    ensemble = {
        "feature_names": names,
        "target_type": "regression",
        "trained_models": trees,
        "aggregate_output": {"weighted_sum": {}},
    }
    extractors = [
        {"query_extractor": {"feature_name": name, "query": queries[name]} | _default(model, j)}
        for j, name in enumerate(names)
    ]
    trained = {
        "inference_config": {"learning_to_rank": {"feature_extractors": extractors}},
        "definition": {"preprocessors": [], "trained_model": {"ensemble": ensemble}},
    }
    parameters = re.findall(r"\{\{\W*(\w+)\W*\}\}", json.dumps(extractors, ensure_ascii=False))
    rescore = {"model_id": options.name, "params": dict.fromkeys(parameters, USER_QUERY)}
    search = {
        "query": {"match": {"YOUR_FIELD": USER_QUERY}},
        "rescore": {"window_size": options.window, "learning_to_rank": rescore},
    }
    return Product(
        {"model.json": as_json(trained), "query.json": as_json(search)},
        (),
        lambda folder: (
            curl("PUT", f"{ADDRESS}/_ml/trained_models/{options.name}", folder, "model.json"),
            curl("POST", f"{ADDRESS}/YOUR_INDEX/_search", folder, "query.json"),
        ),
    )


def _default(model: LinearModel, term: int) -> dict[str, float]:
    """Score of documents that the query does not match, if the default 0 has another level."""
    return {"default_score": MISSING} if differs_from_zero(model.terms[term]) else {}


def _tree(root: Node, feature: int, names: list[str]) -> dict[str, Any]:
    nodes = [_node(k, *node, feature) for k, node in enumerate(flattened(root))]
    return {"tree": {"feature_names": names, "target_type": "regression", "tree_structure": nodes}}


def _node(k: int, node: Node, left: int, right: int, feature: int) -> dict[str, Any]:
    """Elasticsearch compares float32 scores in float64, so the threshold is the float32 number exactly."""
    if not isinstance(node, Split):
        return {"node_index": k, "leaf_value": node}
    return {
        "node_index": k,
        "decision_type": "lt",
        "threshold": float(np.float32(node.threshold)),
        "split_feature": feature,
        "default_left": False,
        "left_child": left,
        "right_child": right,
    }
