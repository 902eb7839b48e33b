"""What Elasticsearch, OpenSearch and Solr share: float32, normalisers, no intercept, no negative scores."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve.errors import safe, warn_caller
from ranksieve.export.base import (
    ANY_NAME,
    Options,
    columnwise,
    engine_names,
    exportable,
    float32,
    scale32,
    unfit,
    warn_of_means,
    weight32,
)

if TYPE_CHECKING:
    from ranksieve.data.dataset import Dataset
    from ranksieve.model.linear import LinearModel

MARGIN = 1.01  # of a shift, for rounding
FAITHFUL = 1e-6  # relative error of a range, beyond which (least, greatest) do not say it in float32


@dataclass(frozen=True)
class Normaliser:
    """x → (x − centre) / scale in float32: "standard" as it is, "min_max" by least and greatest value."""

    kind: str
    centre: float
    scale: float

    @property
    def greatest(self) -> float:
        return float32(self.centre + self.scale, "the greatest value of a feature")


@dataclass(frozen=True)
class LuceneTerm:
    """A feature in use as the engine gets it."""

    name: str
    weight: float
    normaliser: Normaliser | None


def lucene_terms(
    model: LinearModel, options: Options, engine: str
) -> tuple[tuple[LuceneTerm, ...], tuple[str, ...]]:
    """The features in use with float32 weights and normalisers that carry the constant, and what to tell."""
    model = exportable(model, engine)
    warn_of_means(model, engine)
    names = engine_names(model.names, options.names, ANY_NAME, engine)
    normalisers = _normalisers(model, names)
    shift, notes = shift_for(model, options.sample, engine)
    constant = model.intercept + shift
    if constant != 0:
        carrier = _carrier(model)
        normalisers[carrier] = _carrying(model, carrier, constant, names[carrier])
        notes = (
            *notes,
            f"The constant {constant:.6g} is in the normaliser of {safe(names[carrier])}: a linear model in "
            f"{engine} has no intercept.",
        )
    weights = [weight32(term.weight, name) for term, name in zip(model.terms, names, strict=True)]
    return tuple(map(LuceneTerm, names, weights, normalisers)), notes


def shift_for(model: LinearModel, sample: Dataset | None, engine: str) -> tuple[float, tuple[str, ...]]:
    """What to add to all scores so that none is negative, and why."""
    least = least_possible(model) if sample is None else float(np.min(model.predict(sample)))
    if least is None:
        warn_caller(
            f"{engine} rejects negative scores, which this model may give; give documents with `sample` to "
            "get a shift"
        )
        return 0.0, ()
    if least >= 0:
        return 0.0, ()
    shift = round_up(-least * MARGIN)
    known = "by its weights and scales" if sample is None else f"over {sample.n_docs} sample documents"
    return shift, (
        f"Scores are {shift:g} higher than the model's, whose least score {known} is {least:.6g}, because "
        f"{engine} must not see negative scores; the ranking is the same.",
    )


def least_possible(model: LinearModel) -> float | None:
    """The least score of features that are not negative; None if there is no least.

    A feature is the score of a query in Lucene, so it is not negative. With a positive weight it gives least
    at 0; with a negative one at its greatest training value, which only "min_max" knows.
    """
    centre, scale = columnwise(model)
    weights = model.weights / scale
    ranged = model.preparation.normalisation.kind == "min_max"
    if (weights < 0).any() and not ranged:
        return None
    at = np.where(weights < 0, centre + scale, 0.0)
    return float(model.intercept + np.sum(weights * (at - centre)))


def round_up(value: float) -> float:
    """The next number with three significant digits."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return float(f"{math.ceil(value / unit) * unit:.3g}")


def _normalisers(model: LinearModel, names: Sequence[str]) -> list[Normaliser | None]:
    kind = model.preparation.normalisation.kind
    if kind == "none":
        return [None] * len(names)
    ranged = kind == "min_max"
    return [_normaliser(ranged, c, s, name) for c, s, name in zip(*columnwise(model), names, strict=True)]


def _normaliser(ranged: bool, centre: float, scale: float, name: str) -> Normaliser:
    """In float32; "standard" also for a range that the difference of least and greatest would not give."""
    standard = Normaliser("standard", float32(centre, f"the centre of {safe(name)}"), scale32(scale, name))
    if not ranged:
        return standard
    by_range = replace(standard, kind="min_max")
    width = np.float32(by_range.greatest) - np.float32(by_range.centre)
    return by_range if abs(float(width) - scale) <= FAITHFUL * scale else standard


def _carrier(model: LinearModel) -> int:
    """The feature whose value must move least to move the score by one."""
    return int(np.argmax(np.abs(model.weights / columnwise(model)[1])))


def _carrying(model: LinearModel, carrier: int, constant: float, name: str) -> Normaliser:
    """w·(x − c')/s = w·(x − c)/s + constant with c' = c − constant·s/w."""
    centre, scale = (float(values[carrier]) for values in columnwise(model))
    return _normaliser(False, centre - constant * scale / model.terms[carrier].weight, scale, name)


def feature_list(content: Any) -> list[dict[str, Any]]:
    """The features of a feature set as an engine takes or returns it."""
    for key in ("_source", "featureset", "features"):
        if isinstance(content, dict) and key in content:
            content = content[key]
    features: list[Any] = content if isinstance(content, list) else [None]
    if not all(isinstance(one, dict) and isinstance(one.get("name"), str) for one in features):
        raise unfit(
            "a feature set must be a list of features with a name each, or an object that has such a list "
            "under features"
        )
    names = [one["name"] for one in features]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise unfit(f"the feature set defines {twice!r} twice; define each feature once")
    return features


def trimmed(features: Sequence[dict[str, Any]], wanted: Sequence[str]) -> list[dict[str, Any]]:
    """The features in use, in the order of the set, with those they are computed from."""
    by_name = {feature["name"]: feature for feature in features}
    check_defined(by_name, wanted, "the feature set lacks")
    kept: set[str] = set()
    open_names = list(wanted)
    while open_names:
        name = open_names.pop()
        if name not in kept:
            kept.add(name)
            open_names += _sources(by_name[name], by_name)
    return [feature for feature in features if feature["name"] in kept]


def check_defined(definitions: Collection[str], names: Sequence[str], problem: str) -> None:
    """Refuse a feature of the model without a definition."""
    if lacking := [name for name in names if name not in definitions]:
        raise unfit(
            f"{problem} {', '.join(map(safe, lacking))}, which the model uses; add them, or give `names` if "
            "they have other names there"
        )


DERIVED = ("derived_expression", "script_feature")


def _sources(feature: dict[str, Any], names: Collection[str]) -> list[str]:
    """Other features of the set that a derived feature may read."""
    if feature.get("template_language") not in DERIVED:
        return []
    text = json.dumps(feature.get("template", ""), ensure_ascii=False)
    return [name for name in names if name in text and name != feature["name"]]


def rescored(match: Any, window: int, by: Any) -> dict[str, Any]:
    """A search for ``match`` whose first hits are scored again, by the query ``by`` alone."""
    rescore = {"rescore_query": by, "query_weight": 0, "rescore_query_weight": 1}
    return {"query": match, "rescore": {"window_size": window, "query": rescore}}


def curl(method: str, address: str, folder: str, file: str) -> str:
    """The shell command that sends a JSON file of a folder to the engine."""
    body = shlex.quote(f"@{PurePath(folder, file)}")
    return f"curl -X {method} -H 'Content-Type: application/json' '{address}' --data-binary {body}"
