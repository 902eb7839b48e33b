"""Solr's learning-to-rank module."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ranksieve.export.base import FILE_NAME, Options, Product, as_json
from ranksieve.export.lucene import (
    USER_QUERY,
    LuceneTerm,
    Normaliser,
    curl,
    feature_list,
    lucene_terms,
    trim_features,
)

if TYPE_CHECKING:
    from ranksieve.model.linear import LinearModel

DEFAULT_STORE = "_DEFAULT_"
SOLR_RERANK_DOCS = 1000
SOLR_PACKAGE = "org.apache.solr.ltr"


def solr(model: LinearModel, options: Options) -> Product:
    """Model, trimmed features and example query for Solr."""
    store = options.store or DEFAULT_STORE
    FILE_NAME.check("store", store)
    terms, notes = lucene_terms(model, options, "Solr")
    files = {"model.json": as_json(_model(terms, options.name, store))}
    features: list[dict[str, Any]] = []
    if options.featureset is not None:
        used = trim_features(feature_list(options.featureset), [term.name for term in terms])
        features = [{**feature, "store": store} for feature in used]
        files["features.json"] = as_json(features)
    files["query.json"] = as_json(_query(options.name, features))
    return Product(files, notes, lambda folder: _load(folder, bool(features)))


def _model(terms: Sequence[LuceneTerm], name: str, store: str) -> dict[str, Any]:
    return {
        "class": f"{SOLR_PACKAGE}.model.LinearModel",
        "name": name,
        "store": store,
        "features": [_feature(term) for term in terms],
        "params": {"weights": {term.name: term.weight for term in terms}},
    }


def _feature(term: LuceneTerm) -> dict[str, Any]:
    return {"name": term.name} | ({} if term.normaliser is None else {"norm": _norm(term.normaliser)})


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
