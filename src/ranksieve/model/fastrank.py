"""fastrank models: JSON with one of the keys SingleFeature, Linear, DecisionTree, Ensemble."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ranksieve.errors import DataError, short_repr
from ranksieve.io.letor import LARGEST_INDEX
from ranksieve.model.score_functions import (
    ForeignModel,
    Linear,
    ScoreFunction,
    Scorer,
    TreeBuilder,
    WeightedSum,
    linear_model_from_weights,
)


def read_fastrank(content: Any, feature_names: Sequence[str] | None, first_feature: int | None) -> Scorer:
    """Read a fastrank model.

    fastrank numbers features from 1 (as in the file) if it was trained on a LETOR file, and from 0 if on
    arrays; the model does not record which. If ``first_feature`` is None, it is inferred: 0 if there is a
    feature 0 or as many weights as columns, 1 if a feature has the number of columns or there is one weight
    more. Otherwise the model is refused, because a wrong guess would rank by the wrong features.
    """
    n_columns = None if feature_names is None else len(feature_names)
    first = _first_feature(content, n_columns) if first_feature is None else first_feature
    try:
        function = _function(content, first)
    except KeyError as error:
        raise DataError(None, None, f"damaged fastrank model (the entry {error} is missing)") from None
    except (AttributeError, TypeError):
        raise DataError(None, None, "damaged fastrank model (an entry has the wrong type)") from None
    method = f"fastrank {next(iter(content))}"
    if isinstance(function, Linear):
        return linear_model_from_weights(function.weight, method, feature_names)
    return ForeignModel(function, method, max(function.n_features, n_columns or 0))


def is_fastrank(content: Any) -> bool:
    """Whether a JSON value looks like a fastrank model."""
    return isinstance(content, dict) and len(content) == 1 and next(iter(content)) in FASTRANK_MODELS


def _first_feature(content: Any, n_columns: int | None) -> int:
    fids = [part["fid"] for part in _parts_with(content, "fid")]
    linear = [part["Linear"] for part in _parts_with(content, "Linear") if isinstance(part["Linear"], dict)]
    lengths = [len(part["weights"]) for part in linear if isinstance(part.get("weights"), list)]
    from_zero = 0 in fids or n_columns in lengths
    from_one = n_columns is not None and (n_columns in fids or n_columns + 1 in lengths)
    if from_zero == from_one:
        reason = (
            "cannot infer from the model whether its features are numbered from 1 (trained on a LETOR file) "
            "or from 0 (trained on arrays); set `first_feature`"
        )
        raise DataError(None, None, reason)
    return int(from_one)


def _parts_with(content: Any, key: str) -> Iterator[Any]:
    """Yield all objects inside a JSON value that have the key."""
    if isinstance(content, dict) and key in content:
        yield content
    children = content.values() if isinstance(content, dict) else content if isinstance(content, list) else ()
    for part in children:
        yield from _parts_with(part, key)


def _function(model: Any, first: int) -> ScoreFunction:
    if not is_fastrank(model):
        reason = f"{short_repr(model)} is not a fastrank model; expected one of {', '.join(FASTRANK_MODELS)}"
        raise DataError(None, None, reason)
    ((kind, content),) = model.items()
    return FASTRANK_MODELS[kind](content, first)


def _single_feature(content: Any, first: int) -> ScoreFunction:
    """dir · x[fid]."""
    weights = np.zeros(_column(content, first) + 1)
    weights[-1] = _number(content["dir"], "dir")
    return Linear(weights)


def _linear(content: Any, first: int) -> ScoreFunction:
    """Σ weights[fid] · x[fid]."""
    return Linear(np.array(_weights(content)[first:]))


def _decision_tree(content: Any, first: int) -> ScoreFunction:
    """x[fid] ≤ split goes to ``lhs``, else to ``rhs``."""
    builder = TreeBuilder()
    stack: list[tuple[Any, int | None]] = [(content, None)]
    while stack:
        part, parent = stack.pop()
        node, split = builder.node(parent), part.get("FeatureSplit")
        if split is None:
            builder.number[node] = _number(part["LeafNode"], "LeafNode")
            continue
        builder.feature[node] = _column(split, first)
        builder.number[node] = _number(split["split"], "split")
        stack += [(split["rhs"], node), (split["lhs"], node)]
    return builder.tree()


def _ensemble(content: Any, first: int) -> ScoreFunction:
    """Σ weights[m] · models[m]."""
    weights, models = _weights(content), content["models"]
    if len(weights) != len(models):
        raise DataError(None, None, f"an ensemble has {len(weights)} weights for {len(models)} models")
    return WeightedSum(tuple(_function(model, first) for model in models), tuple(weights))


FASTRANK_MODELS: dict[str, Callable[[Any, int], ScoreFunction]] = {
    "SingleFeature": _single_feature,
    "Linear": _linear,
    "DecisionTree": _decision_tree,
    "Ensemble": _ensemble,
}


def _column(content: Any, first: int) -> int:
    """The column (from 0) of the feature ``fid``."""
    fid, largest = content["fid"], LARGEST_INDEX - 1 + first
    if not isinstance(fid, int) or isinstance(fid, bool) or not first <= fid <= largest:
        reason = f"fid is {short_repr(fid)}; expected an integer from {first} to {largest}"
        raise DataError(None, None, reason)
    return fid - first


def _weights(content: Any) -> list[float]:
    weights = [_number(weight, "weight") for weight in content["weights"]]
    if not weights:
        raise DataError(None, None, "the list of weights is empty")
    return weights


def _number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise DataError(None, None, f"{what} is {short_repr(value)}; expected a finite number")
    return float(value)
