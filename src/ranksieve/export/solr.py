"""Solr's learning-to-rank module."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve.errors import printable
from ranksieve.export.base import FILE_NAME, Options, Product, as_json, not_exportable
from ranksieve.export.lucene import (
    USER_QUERY,
    LuceneTerm,
    LuceneTree,
    Normaliser,
    curl,
    feature_list,
    lucene_terms,
    lucene_trees,
    trim_features,
)
from ranksieve.export.trees import Node, Split

if TYPE_CHECKING:
    from ranksieve.model.linear import LinearModel

DEFAULT_STORE = "_DEFAULT_"
SOLR_RERANK_DOCS = 1000
SOLR_PACKAGE = "org.apache.solr.ltr"
SLACK = np.float32(1e-6)  # NODE_SPLIT_SLACK


def solr(model: LinearModel, options: Options) -> Product:
    """Model, trimmed features and example query for Solr."""
    store = options.store or DEFAULT_STORE
    FILE_NAME.check("store", store)
    place = {"name": options.name, "store": store}
    if model.has_curves:
        trees, constant, notes = lucene_trees(model, options, "Solr", "reads")
        names = [tree.name for tree in trees]
        body = _tree_model(trees, constant, place)
    else:
        terms, notes = lucene_terms(model, options, "Solr")
        names = [term.name for term in terms]
        body = _linear_model(terms, place)
    files = {"model.json": as_json(body)}
    features: list[dict[str, Any]] = []
    if options.featureset is not None:
        used = trim_features(feature_list(options.featureset), names)
        features = [{**feature, "store": store} for feature in used]
        files["features.json"] = as_json(features)
    files["query.json"] = as_json(_query(options.name, features))
    return Product(files, notes, lambda folder: _load(folder, bool(features)))


def _linear_model(terms: Sequence[LuceneTerm], place: dict[str, str]) -> dict[str, Any]:
    return {
        "class": f"{SOLR_PACKAGE}.model.LinearModel",
        **place,
        "features": [_feature(term) for term in terms],
        "params": {"weights": {term.name: term.weight for term in terms}},
    }


def _feature(term: LuceneTerm) -> dict[str, Any]:
    return {"name": term.name} | ({} if term.normaliser is None else {"norm": _norm(term.normaliser)})


def _tree_model(trees: Sequence[LuceneTree], constant: float, place: dict[str, str]) -> dict[str, Any]:
    roots = [_node(tree.root, tree.name) for tree in trees]
    if constant:
        roots.append(_node(constant, ""))
    return {
        "class": f"{SOLR_PACKAGE}.model.MultipleAdditiveTreesModel",
        **place,
        "features": [{"name": tree.name} for tree in trees],
        "params": {"trees": [{"weight": "1", "root": root} for root in roots]},
    }


def _node(node: Node, name: str) -> dict[str, Any]:
    if not isinstance(node, Split):
        return {"value": repr(node)}
    left, right = _node(node.left, name), _node(node.right, name)
    return {"feature": name, "threshold": _threshold(node, name), "left": left, "right": right}


def _threshold(split: Split, name: str) -> str:
    """Number that is ``last_left`` after Solr has added its slack in float32.

    At 0, below which float32 is finer than near the slack, it comes as near as possible: 1e-13.
    """
    last = np.float32(split.last_left)
    guess = last - SLACK
    for number in (guess, *(np.nextafter(guess, np.float32(end)) for end in (np.inf, -np.inf))):
        if number + SLACK == last or (split.threshold == 0 and -2e-13 < number + SLACK < 0):
            return str(number)
    raise not_exportable(
        f"the threshold {split.threshold:.9g} of {printable(name)} cannot be written for Solr, which adds "
        f"{SLACK:g} to every threshold; multiply the feature by 1000 before fitting"
    )


def _norm(normaliser: Normaliser) -> dict[str, Any]:
    """Numbers are strings, because Solr's setters take strings."""
    if normaliser.kind == "standard":
        kind, params = "StandardNormalizer", {"avg": repr(normaliser.centre), "std": repr(normaliser.scale)}
    else:
        kind, params = "MinMaxNormalizer", {"min": repr(normaliser.centre), "max": repr(normaliser.maximum)}
    return {"class": f"{SOLR_PACKAGE}.norm.{kind}", "params": params}


def _query(model_name: str, features: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Rerank the top hits; ``efi`` are the parameters that features use as ${…}."""
    parameters = dict.fromkeys(re.findall(r"\$\{(\w+)\}", json.dumps(features, ensure_ascii=False)))
    information = "".join(f" efi.{name}='{USER_QUERY}'" for name in parameters or ["user_query"])
    return {
        "query": USER_QUERY,
        "fields": "id,score",
        "params": {"rq": f"{{!ltr model={model_name} reRankDocs={SOLR_RERANK_DOCS}{information}}}"},
    }


def _load(folder: str, has_features: bool) -> tuple[str, ...]:
    base = "http://localhost:8983/solr/YOUR_COLLECTION"
    features = (curl("PUT", f"{base}/schema/feature-store", folder, "features.json"),) if has_features else ()
    return (
        *features,
        curl("PUT", f"{base}/schema/model-store", folder, "model.json"),
        curl("POST", f"{base}/query", folder, "query.json"),
    )
