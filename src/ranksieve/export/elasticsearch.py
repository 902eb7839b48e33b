"""The learning-to-rank plugins of Elasticsearch and OpenSearch, which read the same files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

from ranksieve.export.base import NameRule, Options, Product, as_json
from ranksieve.export.lucene import (
    USER_QUERY,
    LuceneTerm,
    Normaliser,
    curl,
    feature_list,
    lucene_terms,
    lucene_trees,
    rescore_query,
    trim_features,
)
from ranksieve.export.trees import Node, Split

if TYPE_CHECKING:
    from ranksieve.model.linear import LinearModel

MODEL_NAME = NameRule(
    r"(?![_.-])[^\s\x00-\x1f\x7f-\x9f/\\?#%&\"'<>|*,:;$`!()\[\]{}]{1,200}",
    "the name becomes part of a URL: at most 200 characters, without spaces, quotes, backticks or any of "
    "/\\?#%&<>|*,:;$!()[]{}, and not beginning with _, - or .",
)
STORE_NAME = NameRule(
    r"(?!(features?|feature_?sets?|models?)$)[a-z0-9][a-z0-9_.-]{0,199}",
    "a store becomes an index: lower-case letters, digits, _, . and -, but not the word feature or model",
)
RESCORE_WINDOW = 1000
READS = "may, depending on the plugin's version, read"
ADDRESS = "http://localhost:9200"


def learning_to_rank_plugin(model: LinearModel, options: Options, engine: str) -> Product:
    """Model, trimmed feature set and example query for the plugin's ``_ltr`` API."""
    if options.store is not None:
        STORE_NAME.check("store", options.store)
    if model.has_curves:
        trees, constant, notes = lucene_trees(model, options, engine, READS)
        names = [tree.name for tree in trees]
        body = _trees([*((tree.name, tree.root) for tree in trees), *([("", constant)] if constant else [])])
    else:
        terms, notes = lucene_terms(model, options, engine)
        names, body = [term.name for term in terms], _linear(terms)
    files = {"model.json": as_json({"model": {"name": options.name, "model": body}})}
    features: list[dict[str, Any]] = []
    if options.featureset is not None:
        features = trim_features(feature_list(options.featureset), names)
        files["featureset.json"] = as_json(
            {"featureset": {"name": _set_name(options.name), "features": features}}
        )
    files["query.json"] = as_json(_query(names, features, options))
    return Product(files, notes, lambda folder: _load(folder, options))


def _linear(terms: Sequence[LuceneTerm]) -> dict[str, Any]:
    normalisers = {term.name: _normaliser(term.normaliser) for term in terms if term.normaliser is not None}
    definition = {term.name: term.weight for term in terms}
    body = {"feature_normalizers": normalisers} if normalisers else {}
    return {"type": "model/linear", **body, "definition": definition}


def _trees(trees: Sequence[tuple[str, Node]]) -> dict[str, Any]:
    """XGBoost's dump as text, which every version of the plugin accepts; features have their names."""
    definition = [_node(root, name, count(), 0) for name, root in trees]
    return {"type": "model/xgboost+json", "definition": json.dumps(definition, ensure_ascii=False)}


def _node(node: Node, name: str, numbers: Iterator[int], depth: int) -> dict[str, Any]:
    """``yes`` is the child of values < ``split_condition``; NaN goes to ``no``, whether or not the plugin
    reads ``missing``.
    """
    number = next(numbers)
    if not isinstance(node, Split):
        return {"nodeid": number, "leaf": node}
    left, right = (_node(child, name, numbers, depth + 1) for child in (node.left, node.right))
    yes, no = left["nodeid"], right["nodeid"]
    entries = {"nodeid": number, "depth": depth, "split": name, "split_condition": node.threshold}
    return {**entries, "yes": yes, "no": no, "missing": no, "children": [left, right]}


def _normaliser(normaliser: Normaliser) -> dict[str, Any]:
    if normaliser.kind == "standard":
        return {"standard": {"mean": normaliser.centre, "standard_deviation": normaliser.scale}}
    # The minimum comes first, because the plugin checks the maximum against it while reading.
    return {"min_max": {"minimum": normaliser.centre, "maximum": normaliser.maximum}}


def _query(names: Sequence[str], features: Sequence[dict[str, Any]], options: Options) -> dict[str, Any]:
    """Rescore the top hits by the model alone; without a trimmed feature set, list the active features."""
    parameters = dict.fromkeys(name for feature in features for name in feature.get("params", ()))
    sltr: dict[str, Any] = {
        "params": dict.fromkeys(parameters or ["keywords"], USER_QUERY),
        "model": options.name,
    }
    if options.store is not None:
        sltr["store"] = options.store
    if not features:
        sltr["active_features"] = list(names)
    return rescore_query({"match": {"YOUR_FIELD": USER_QUERY}}, RESCORE_WINDOW, {"sltr": sltr})


def _set_name(name: str) -> str:
    return f"{name}_features"


def _load(folder: str, options: Options) -> tuple[str, ...]:
    base = f"{ADDRESS}/_ltr" + (f"/{options.store}" if options.store else "")
    has_set = options.featureset is not None
    name = _set_name(options.name) if has_set else "YOUR_FEATURE_SET"
    create = (curl("POST", f"{base}/_featureset/{name}", folder, "featureset.json"),) if has_set else ()
    return (
        *create,
        curl("POST", f"{base}/_featureset/{name}/_createmodel", folder, "model.json"),
        curl("POST", f"{ADDRESS}/YOUR_INDEX/_search", folder, "query.json"),
    )
