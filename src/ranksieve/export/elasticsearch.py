"""The Elasticsearch learning-to-rank plugin, and OpenSearch's, which takes the same files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ranksieve.export.base import NameRule, Options, Product, as_json
from ranksieve.export.lucene import (
    LuceneTerm,
    Normaliser,
    curl,
    feature_list,
    lucene_terms,
    rescored,
    trimmed,
)

if TYPE_CHECKING:
    from ranksieve.model.linear import LinearModel

MODEL_NAME = NameRule(
    r"(?![_.-])[^\s\x00-\x1f\x7f-\x9f/\\?#%&\"'<>|*,:;$`!()\[\]{}]{1,200}",
    "it becomes part of an address: at most 200 characters, no blanks, quotes, backticks or any of "
    "/\\?#%&<>|*,:;$!()[]{} and no _, - or . in front",
)
STORE_NAME = NameRule(
    r"(?!(features?|feature_?sets?|models?)$)[a-z0-9][a-z0-9_.-]{0,199}",
    "a store becomes an index: small letters, digits, _, . and -, but not the word feature or model",
)
RESCORED = 1000
ADDRESS = "http://localhost:9200"
YOUR_SET = "YOUR_FEATURE_SET"


def learning_to_rank_plugin(model: LinearModel, options: Options, engine: str) -> Product:
    """Model, trimmed feature set and example query for the plugin's interface ``_ltr``."""
    if options.store is not None:
        STORE_NAME.check("store", options.store)
    terms, notes = lucene_terms(model, options, engine)
    files = {"model.json": as_json(_model(terms, options.name))}
    features: list[dict[str, Any]] = []
    if options.featureset is not None:
        features = trimmed(feature_list(options.featureset), [term.name for term in terms])
        files["featureset.json"] = as_json(
            {"featureset": {"name": _set_name(options.name), "features": features}}
        )
    files["query.json"] = as_json(_query(terms, features, options))
    return Product(files, notes, lambda folder: _load(folder, options))


def _model(terms: Sequence[LuceneTerm], name: str) -> dict[str, Any]:
    normalisers = {term.name: _normaliser(term.normaliser) for term in terms if term.normaliser is not None}
    definition = {term.name: term.weight for term in terms}
    body = {"feature_normalizers": normalisers} if normalisers else {}
    return {"model": {"name": name, "model": {"type": "model/linear", **body, "definition": definition}}}


def _normaliser(given: Normaliser) -> dict[str, Any]:
    if given.kind == "standard":
        return {"standard": {"mean": given.centre, "standard_deviation": given.scale}}
    # The plugin checks the maximum as it reads it, against a minimum just above 0 unless that came first.
    return {"min_max": {"minimum": given.centre, "maximum": given.greatest}}


def _query(
    terms: Sequence[LuceneTerm], features: Sequence[dict[str, Any]], options: Options
) -> dict[str, Any]:
    """Rescore the first hits by the model alone; without a set of their own, compute no other features."""
    asked = dict.fromkeys(name for feature in features for name in feature.get("params", ()))
    sltr: dict[str, Any] = {
        "params": dict.fromkeys(asked or ["keywords"], "WORDS OF THE USER"),
        "model": options.name,
    }
    if options.store is not None:
        sltr["store"] = options.store
    if not features:
        sltr["active_features"] = [term.name for term in terms]
    return rescored({"match": {"YOUR_FIELD": "WORDS OF THE USER"}}, RESCORED, {"sltr": sltr})


def _set_name(name: str) -> str:
    return f"{name}_features"


def _load(folder: str, options: Options) -> tuple[str, ...]:
    base = f"{ADDRESS}/_ltr" + (f"/{options.store}" if options.store else "")
    own_set = options.featureset is not None
    name = _set_name(options.name) if own_set else YOUR_SET
    create = (curl("POST", f"{base}/_featureset/{name}", folder, "featureset.json"),) if own_set else ()
    return (
        *create,
        curl("POST", f"{base}/_featureset/{name}/_createmodel", folder, "model.json"),
        curl("POST", f"{ADDRESS}/YOUR_INDEX/_search", folder, "query.json"),
    )
