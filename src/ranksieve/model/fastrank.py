"""fastrank models: JSON with one of the keys SingleFeature, Linear, DecisionTree, Ensemble."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ranksieve.errors import DataError, shown
from ranksieve.io.letor import LARGEST_INDEX
from ranksieve.model.score_functions import (
    ForeignModel,
    Linear,
    ScoreFunction,
    Scorer,
    TreeBuilder,
    WeightedSum,
    linear_model,
)


class Numbered(NamedTuple):
    """A part of a model whose features still have fastrank's numbers, and its place: Ensemble, model 2."""

    content: Any
    first: int
    place: str = ""

    def inside(self, content: Any, part: str) -> Numbered:
        return Numbered(content, self.first, f"{self.place}, {part}" if self.place else part)

    def error(self, reason: str) -> DataError:
        return DataError(None, None, f"{self.place}: {reason}" if self.place else reason)


def read_fastrank(content: Any, feature_names: Sequence[str] | None, first_feature: int | None) -> Scorer:
    """A fastrank model.

    fastrank numbers features from 1 (as the file does) if it was trained on a LETOR file, and from 0 if on
    arrays; the model does not say which. If ``first_feature`` is None, a feature 0 or as many weights as
    columns show the one, a feature with the number of columns or one weight more the other; else it is
    refused, because a guess would rank by the wrong features.
    """
    n_columns = None if feature_names is None else len(feature_names)
    first = _first_feature(content, n_columns) if first_feature is None else first_feature
    function = _function(Numbered(content, first))
    method = f"fastrank {next(iter(content))}"
    if isinstance(function, Linear):
        return linear_model(function.weight, method, feature_names)
    return ForeignModel(function, method, max(function.n_features, n_columns or 0))


def is_fastrank(content: Any) -> bool:
    """Whether a JSON value looks like a fastrank model."""
    return isinstance(content, dict) and len(content) == 1 and next(iter(content)) in KINDS


def _first_feature(content: Any, n_columns: int | None) -> int:
    fids = [one["fid"] for one in _parts_with(content, "fid")]
    linear = [one["Linear"] for one in _parts_with(content, "Linear") if isinstance(one["Linear"], dict)]
    lengths = [len(one["weights"]) for one in linear if isinstance(one.get("weights"), list)]
    from_zero = 0 in fids or n_columns in lengths
    from_one = n_columns is not None and (n_columns in fids or n_columns + 1 in lengths)
    if from_zero == from_one:
        reason = (
            "the model does not show whether features are numbered from 1, as after training on a LETOR "
            "file, or from 0, as on arrays; choose with `first_feature`"
        )
        raise DataError(None, None, reason)
    return int(from_one)


def _parts_with(content: Any, key: str) -> Iterator[Any]:
    """All objects inside a JSON value that have the key."""
    if isinstance(content, dict) and key in content:
        yield content
    inner = content.values() if isinstance(content, dict) else content if isinstance(content, list) else ()
    for part in inner:
        yield from _parts_with(part, key)


def _function(model: Numbered) -> ScoreFunction:
    if not is_fastrank(model.content):
        raise model.error(f"is not a model; expected one of {', '.join(KINDS)}")
    (kind, content), *_ = model.content.items()
    return KINDS[kind](model.inside(content, kind))


def _single_feature(model: Numbered) -> ScoreFunction:
    """dir · x[fid]."""
    weights = np.zeros(_feature(model) + 1)
    weights[-1] = _number(model.content.get("dir"), model, "dir")
    return Linear(weights)


def _linear(model: Numbered) -> ScoreFunction:
    """Σ weights[fid] · x[fid]."""
    weights = _list(model, "weights")
    return Linear(np.array([_number(w, model, "weight") for w in weights[model.first :]]))


def _decision_tree(model: Numbered) -> ScoreFunction:
    """x[fid] ≤ split goes to ``lhs``, else to ``rhs``."""
    builder = TreeBuilder()
    waiting: list[tuple[Any, int | None]] = [(model.content, None)]
    while waiting:
        content, parent = waiting.pop()
        node = builder.node(parent)
        split = content.get("FeatureSplit") if isinstance(content, dict) else None
        if split is None:
            leaf = content.get("LeafNode") if isinstance(content, dict) else None
            builder.number[node] = _number(leaf, model, "LeafNode")
            continue
        inner = model._replace(content=split)
        builder.feature[node] = _feature(inner)
        builder.number[node] = _number(split.get("split"), model, "split")
        waiting += [(split.get("rhs"), node), (split.get("lhs"), node)]
    return builder.tree()


def _ensemble(model: Numbered) -> ScoreFunction:
    """Σ weights[m] · models[m]."""
    weights, models = _list(model, "weights"), _list(model, "models")
    if len(weights) != len(models):
        raise model.error(f"has {len(weights)} weights for {len(models)} models")
    functions = [_function(model.inside(one, f"model {m}")) for m, one in enumerate(models, 1)]
    return WeightedSum(tuple(functions), tuple(_number(w, model, "weight") for w in weights))


KINDS: dict[str, Callable[[Numbered], ScoreFunction]] = {
    "SingleFeature": _single_feature,
    "Linear": _linear,
    "DecisionTree": _decision_tree,
    "Ensemble": _ensemble,
}


def _feature(model: Numbered) -> int:
    """The column (from 0) of the feature ``fid``."""
    fid = model.content.get("fid") if isinstance(model.content, dict) else None
    largest = LARGEST_INDEX - 1 + model.first
    if not isinstance(fid, int) or isinstance(fid, bool) or not model.first <= fid <= largest:
        raise model.error(f"fid is {shown(fid)}; expected an integer from {model.first} to {largest}")
    return fid - model.first


def _list(model: Numbered, key: str) -> list[Any]:
    values = model.content.get(key) if isinstance(model.content, dict) else None
    if not isinstance(values, list) or not values:
        raise model.error(f"has no list of {key}")
    return values


def _number(value: Any, model: Numbered, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise model.error(f"{what} is {shown(value)}; expected a finite number")
    return float(value)
