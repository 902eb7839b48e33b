"""Common parts for Elasticsearch, OpenSearch and Solr: float32, normalisers, nonnegative scores."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve.errors import printable, warn_caller
from ranksieve.export.base import (
    ANY_NAME,
    Options,
    centre_and_scale,
    engine_names,
    float32,
    not_exportable,
    prepare_for_export,
    scale32,
    warn_about_means,
    weight32,
)
from ranksieve.export.trees import Node, curve_trees, lowest_score, notes_on_missing

if TYPE_CHECKING:
    from ranksieve.data.dataset import Dataset
    from ranksieve.model.linear import LinearModel

SHIFT_MARGIN = 1.01  # for rounding
MAX_RANGE_ERROR = 1e-6  # relative error of maximum − minimum in float32
USER_QUERY = "USER_QUERY"  # placeholder in example queries


@dataclass(frozen=True)
class Normaliser:
    """x → (x − centre) / scale in float32; "min_max" is written as minimum and maximum."""

    kind: str
    centre: float
    scale: float

    @property
    def maximum(self) -> float:
        return float32(self.centre + self.scale, "the maximum of a feature")


@dataclass(frozen=True)
class LuceneTerm:
    """A feature in use, in the form the engine takes."""

    name: str
    weight: float
    normaliser: Normaliser | None


def lucene_terms(
    model: LinearModel, options: Options, engine: str
) -> tuple[tuple[LuceneTerm, ...], tuple[str, ...]]:
    """Features in use, with float32 weights and normalisers that include the constant, and notes."""
    model = prepare_for_export(model, engine)
    warn_about_means(model, engine)
    names = engine_names(model.names, options.names, ANY_NAME, engine)
    normalisers = _normalisers(model, names)
    shift, notes = score_shift(model, options.sample, engine)
    constant = model.intercept + shift
    if constant != 0:
        carrier = _carrier(model)
        normalisers[carrier] = _add_constant(model, carrier, constant, names[carrier])
        notes = (
            *notes,
            f"The constant {constant:.6g} is in the normaliser of {printable(names[carrier])}: a linear "
            f"model in {engine} has no intercept.",
        )
    weights = [weight32(term.weight, name) for term, name in zip(model.terms, names, strict=True)]
    return tuple(map(LuceneTerm, names, weights, normalisers)), notes


@dataclass(frozen=True)
class LuceneTree:
    """A feature in use and its tree, in float32."""

    name: str
    root: Node


def lucene_trees(
    model: LinearModel, options: Options, engine: str, reads: str
) -> tuple[tuple[LuceneTree, ...], float, tuple[str, ...]]:
    """One tree per feature in use, a constant to add to their sum, and notes."""
    model = prepare_for_export(model, engine)
    names = engine_names(model.names, options.names, ANY_NAME, engine)
    trees = curve_trees(model, engine, single=True)
    shift, notes = score_shift(model, options.sample, engine)
    constant = float32(model.intercept + shift, "the intercept")
    return tuple(map(LuceneTree, names, trees)), constant, (*notes, *notes_on_missing(model, engine, reads))


def score_shift(model: LinearModel, sample: Dataset | None, engine: str) -> tuple[float, tuple[str, ...]]:
    """Return a constant to add to all scores so that none is negative, and notes."""
    lowest = min_possible_score(model) if sample is None else float(np.min(model.predict(sample)))
    if lowest is None:
        warn_caller(
            f"{engine} rejects negative scores, which this model may produce; pass documents as `sample` "
            "to get a shift"
        )
        return 0.0, ()
    if lowest >= 0:
        return 0.0, ()
    shift = round_up(-lowest * SHIFT_MARGIN)
    parts = "levels" if model.has_curves else "weights and scales"
    basis = f"by its {parts}" if sample is None else f"over {sample.n_docs} sample documents"
    return shift, (
        f"Scores are {shift:g} higher than the model's, whose lowest score {basis} is {lowest:.6g}, because "
        f"{engine} rejects negative scores; the ranking is the same.",
    )


def min_possible_score(model: LinearModel) -> float | None:
    """Lowest score for nonnegative features; None if it is unbounded.

    In Lucene a feature is the score of a query, so it is not negative. A term with a positive weight is
    lowest at 0, one with a negative weight at the feature's maximum in training, which only "min_max" stores.
    Curves are bounded.
    """
    if model.has_curves:
        return lowest_score(model)
    centre, scale = centre_and_scale(model)
    weights = model.weights / scale
    ranged = model.preparation.normalisation.kind == "min_max"
    if (weights < 0).any() and not ranged:
        return None
    at = np.where(weights < 0, centre + scale, 0.0)
    return float(model.intercept + np.sum(weights * (at - centre)))


def round_up(value: float) -> float:
    """Round up to three significant digits."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return float(f"{math.ceil(value / unit) * unit:.3g}")


def _normalisers(model: LinearModel, names: Sequence[str]) -> list[Normaliser | None]:
    kind = model.preparation.normalisation.kind
    if kind == "none":
        return [None] * len(names)
    ranged = kind == "min_max"
    return [
        _normaliser(ranged, c, s, name) for c, s, name in zip(*centre_and_scale(model), names, strict=True)
    ]


def _normaliser(ranged: bool, centre: float, scale: float, name: str) -> Normaliser:
    """In float32; "standard" also if maximum − minimum would not reproduce the range."""
    standard = Normaliser(
        "standard", float32(centre, f"the centre of {printable(name)}"), scale32(scale, name)
    )
    if not ranged:
        return standard
    by_range = replace(standard, kind="min_max")
    width = np.float32(by_range.maximum) - np.float32(by_range.centre)
    return by_range if abs(float(width) - scale) <= MAX_RANGE_ERROR * scale else standard


def _carrier(model: LinearModel) -> int:
    """Feature whose value must change least to change the score by one."""
    return int(np.argmax(np.abs(model.weights / centre_and_scale(model)[1])))


def _add_constant(model: LinearModel, carrier: int, constant: float, name: str) -> Normaliser:
    """w·(x − c')/s = w·(x − c)/s + constant with c' = c − constant·s/w."""
    centre, scale = (float(values[carrier]) for values in centre_and_scale(model))
    return _normaliser(False, centre - constant * scale / model.terms[carrier].weight, scale, name)


def feature_list(content: Any) -> list[dict[str, Any]]:
    """Features of a feature set, in any form that an engine accepts or returns."""
    for key in ("_source", "featureset", "features"):
        if isinstance(content, dict) and key in content:
            content = content[key]
    features: list[Any] = content if isinstance(content, list) else [None]
    if not all(isinstance(one, dict) and isinstance(one.get("name"), str) for one in features):
        raise not_exportable(
            "a feature set must be a list of features with a name each, or an object that has such a list "
            "under features"
        )
    names = [one["name"] for one in features]
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise not_exportable(f"the feature set defines {repeated!r} twice; define each feature once")
    return features


def trim_features(features: Sequence[dict[str, Any]], used: Sequence[str]) -> list[dict[str, Any]]:
    """Features in use and those they are computed from, in the order of the set."""
    by_name = {feature["name"]: feature for feature in features}
    check_defined(by_name, used, "the feature set lacks")
    needed: set[str] = set()
    stack = list(used)
    while stack:
        name = stack.pop()
        if name not in needed:
            needed.add(name)
            stack += _sources(by_name[name], by_name)
    return [feature for feature in features if feature["name"] in needed]


def check_defined(definitions: Collection[str], names: Sequence[str], problem: str) -> None:
    """Raise DataError if a feature of the model has no definition."""
    if lacking := [name for name in names if name not in definitions]:
        raise not_exportable(
            f"{problem} {', '.join(map(printable, lacking))}, which the model uses; add them, or set "
            "`names` if they are named differently there"
        )


DERIVED = ("derived_expression", "script_feature")


def _sources(feature: dict[str, Any], names: Collection[str]) -> list[str]:
    """Other features of the set that a derived feature may use."""
    if feature.get("template_language") not in DERIVED:
        return []
    text = json.dumps(feature.get("template", ""), ensure_ascii=False)
    return [name for name in names if name in text and name != feature["name"]]


def rescore_query(match: Any, window: int, query: Any) -> dict[str, Any]:
    """A search for ``match`` whose top hits are rescored by ``query`` alone."""
    rescore = {"rescore_query": query, "query_weight": 0, "rescore_query_weight": 1}
    return {"query": match, "rescore": {"window_size": window, "query": rescore}}


def curl(method: str, address: str, folder: str, file: str) -> str:
    """Shell command that sends a JSON file to the engine."""
    body = shlex.quote(f"@{PurePath(folder, file)}")
    return f"curl -X {method} -H 'Content-Type: application/json' '{address}' --data-binary {body}"
