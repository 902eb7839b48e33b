"""Common parts for Elasticsearch, OpenSearch and Solr: float32, normalisers, nonnegative scores."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ranksieve._types import AnyArray, FloatArray
from ranksieve.errors import printable, warn_caller
from ranksieve.export.base import (
    ANY_NAME,
    Options,
    centre_and_scale,
    engine_names,
    fill_values,
    float32,
    not_exportable,
    prepare_for_export,
    scale32,
    warn_about_means,
    weight32,
)
from ranksieve.export.trees import MISSING, Node, curve_trees, lowest_score, notes_on_missing, tree_values

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from ranksieve.data.dataset import Dataset
    from ranksieve.data.queries import Queries
    from ranksieve.model.linear import LinearModel

SHIFT_MARGIN = 1.01  # for rounding
MAX_RANGE_ERROR = 1e-6  # relative error of maximum − minimum in float32
FAR = 10.0  # values this many times as far from 0 as their range get a centre
RARE = 1e-5  # share of pairs that float32 may change without a warning
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

    def values(self, x: AnyArray) -> AnyArray:
        """What the feature adds to the score, for float32 values and in float32."""
        weight, normaliser = np.float32(self.weight), self.normaliser
        if normaliser is None:
            return np.asarray(weight * x)
        centre, scale = np.float32(normaliser.centre), np.float32(normaliser.scale)
        if normaliser.kind == "min_max":
            scale = np.float32(normaliser.maximum) - centre
        return np.asarray(weight * ((x - centre) / scale))


def lucene_terms(
    model: LinearModel, options: Options, engine: str
) -> tuple[tuple[LuceneTerm, ...], tuple[str, ...]]:
    """Features in use, with float32 weights and normalisers that include the constant, and notes."""
    model = prepare_for_export(model, engine)
    warn_about_means(model, engine)
    names = engine_names(model.names, options.names, ANY_NAME, engine)
    normalisers, far = _normalisers(model, names), far_centres(model, options.sample)
    for k, value in far.items():
        normalisers[k] = Normaliser("standard", value, 1.0)
    shift, notes = score_shift(model, options.sample, engine, lower=bool(far))
    constant = model.intercept + shift + sum(model.terms[k].weight * value for k, value in far.items())
    if constant != 0:
        carrier = _carrier(model)
        normalisers[carrier] = _add_constant(model, carrier, constant, names[carrier], far.get(carrier))
        notes = (
            *notes,
            f"The constant {constant:.6g} is in the normaliser of {printable(names[carrier])}: a linear "
            f"model in {engine} has no intercept.",
        )
    weights = [weight32(term.weight, name) for term, name in zip(model.terms, names, strict=True)]
    terms = tuple(map(LuceneTerm, names, weights, normalisers))
    warn_of_changed_pairs(model, options.sample, engine, [term.values for term in terms])
    return terms, notes


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
    by_name = tuple(map(LuceneTree, names, trees))
    warn_of_changed_pairs(model, options.sample, engine, tree_summands(trees), constant)
    return by_name, constant, (*notes, *notes_on_missing(model, engine, reads))


def score_shift(
    model: LinearModel, sample: Dataset | None, engine: str, lower: bool = False
) -> tuple[float, tuple[str, ...]]:
    """Return a constant to add to all scores so that none is negative, and notes.

    With ``lower``, scores that are far from 0 become small, because large numbers lose digits in float32.
    """
    scores = None if sample is None else model.predict(sample)
    lowest = min_possible_score(model) if scores is None else float(np.min(scores))
    near = None if scores is None or not lower else near_zero(scores)
    if near is not None and near < 0:
        return near, (shift_note(near, engine),)
    if lowest is None:
        warn_caller(
            f"{engine} rejects negative scores, which this model may produce; pass documents as `sample` "
            "to get a shift"
        )
        return 0.0, ()
    if lowest >= 0:
        return 0.0, ()
    shift = near or round_up(-lowest * SHIFT_MARGIN)
    parts = "levels" if model.has_curves else "weights and scales"
    basis = f"by its {parts}" if sample is None else f"over {sample.n_docs} sample documents"
    return shift, (
        f"Scores are {shift:.12g} higher than the model's, whose lowest score {basis} is {lowest:.6g}, "
        f"because {engine} rejects negative scores; the ranking is the same.",
    )


def shift_note(shift: float, engine: str) -> str:
    """Note on a constant that keeps scores small."""
    change = f"are {shift:.12g} higher" if shift > 0 else f"lack the constant {-shift:.12g}"
    return (
        f"Scores {change}, because {engine} computes in 32-bit numbers, in which large scores lose digits; "
        "the ranking is the same."
    )


def centring(scores: FloatArray) -> float:
    """Constant to add to scores that are far from 0 for their range, else 0."""
    low, high = float(np.min(scores)), float(np.max(scores))
    return near_zero(scores) if high > low and abs(low + high) / 2 > FAR * (high - low) else 0.0


def near_zero(scores: FloatArray) -> float:
    """Constant that makes the lowest score 1 to 2 % of the range of scores."""
    low = float(np.min(scores))
    unit = 10.0 ** math.floor(math.log10(0.01 * (float(np.max(scores)) - low)))
    return -float(f"{math.floor(low / unit - 1) * unit:.12g}")


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


def far_centres(model: LinearModel, sample: Dataset | None) -> dict[int, float]:
    """Centres for terms without one whose values are far from 0 for their range, such as a time in seconds.

    In float32, the weighted value of such a feature is so large that the sum loses digits of the others.
    """
    if sample is None or _is_remote(sample) or model.preparation.normalisation.learns:
        return {}
    values = _sample_values(model, sample)
    low, high = values.min(axis=0), values.max(axis=0)
    middle = (low + high) / 2
    far = np.flatnonzero((np.abs(middle) > FAR * (high - low)) & (high > low))
    if not np.ptp(model.predict(sample)):
        return {}
    return {int(k): float32(float(middle[k]), "the centre of a feature") for k in far}


def _is_remote(sample: Dataset) -> bool:
    from ranksieve.data.parts import RemoteData

    return isinstance(sample, RemoteData)


def _sample_values(model: LinearModel, sample: Dataset) -> FloatArray:
    """Features in use, with missing values as an engine should have them: the default value or 0."""
    from ranksieve.data.matrix import dense_block

    matrix, columns = model.locate(sample)
    values = np.asarray(dense_block(matrix, slice(None), columns), dtype=np.float64)
    missing = np.isnan(values)
    if model.has_curves:
        return np.where(missing, MISSING, values)
    indicates = [name in model.preparation.missing.indicators for name in model.names]
    return np.where(missing, fill_values(model) or 0.0, np.where(indicates, 0.0, values))


Summand: TypeAlias = Callable[[AnyArray], AnyArray]
"""What a feature adds to the score, for its values in float32."""


def tree_summands(trees: Sequence[Node]) -> list[Summand]:
    """The level of each tree."""
    return [partial(tree_values, tree) for tree in trees]


def warn_of_changed_pairs(
    model: LinearModel,
    sample: Dataset | None,
    engine: str,
    summands: Sequence[Summand],
    constant: float = 0.0,
    dtype: DTypeLike = np.float32,
) -> None:
    """Warn if the engine ranks documents of the sample otherwise; it adds ``summands`` in ``dtype``."""
    if sample is None or _is_remote(sample):
        return
    values, ours = _sample_values(model, sample), model.predict(sample)
    with np.errstate(over="ignore", invalid="ignore"):
        single = values.astype(np.float32)
        theirs = np.zeros(len(values), dtype=dtype)
        for k, summand in enumerate(summands):
            theirs += summand(single[:, k]).astype(dtype)
        theirs += np.asarray(constant, dtype=dtype)
    pairs, changed = changed_pairs(ours, theirs, sample.queries)
    if not changed or changed <= RARE * pairs:
        return
    loss = np.max(np.abs(values - single), axis=0) * np.abs(model.weights / centre_and_scale(model)[1])
    name = printable(model.names[int(np.argmax(loss))])
    warn_caller(
        f"{engine} computes in 32-bit numbers, which change the order of {changed:,} of the {pairs:,} pairs "
        f"of documents of a query in `sample`, mostly because of {name}; give the engine {name} with a "
        "constant subtracted or in a larger unit"
    )


def changed_pairs(ours: FloatArray, theirs: AnyArray, queries: Queries) -> tuple[int, int]:
    """Pairs of documents of a query with different scores, and those that are tied or reversed in ``theirs``.

    Differences of ``ours`` below the rounding errors of float64 are ties.
    """
    from ranksieve.kernels.concordance import concordances

    size = float(np.max(np.abs(ours), initial=0.0)) or 1.0
    ours, other = queries.group(np.round(ours / size, 13)), queries.group(theirs)
    pairs = changed = 0
    for first, last in pairwise(queries.offsets.tolist()):
        a, b = (np.unique(part[first:last], return_inverse=True)[1] for part in (ours, other))
        total = np.zeros((2, 2), dtype=np.int64)
        concordances(np.stack([a, b]).astype(np.int64), total)
        tied = [_tied(np.bincount(ranks)) for ranks in (a, b, a * len(b) + b)]
        different = (last - first) * (last - first - 1) // 2 - tied[0] - tied[1] + tied[2]
        pairs += int(total[0, 0])
        changed += int(total[0, 0]) - (different + int(total[0, 1])) // 2
    return pairs, changed


def _tied(counts: AnyArray) -> int:
    return int(np.sum(counts * (counts - 1) // 2))


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


def _add_constant(
    model: LinearModel, carrier: int, constant: float, name: str, far: float | None
) -> Normaliser:
    """w·(x − c')/s = w·(x − c)/s + constant with c' = c − constant·s/w; ``far`` replaces c."""
    centre, scale = (float(values[carrier]) for values in centre_and_scale(model))
    centre = centre if far is None else far
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
