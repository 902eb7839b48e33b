"""XGBoost's model files, the JSON of ``save_model``, parsed into our own trees or weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logit

from ranksieve.errors import DataError
from ranksieve.model.score_functions import LEAF, Linear, ScoreFunction, Tree, WeightedSum

LINKS: dict[str, Any] = {  # base_score is in units of the labels; other objectives have no link
    **dict.fromkeys(("binary:logistic", "reg:logistic"), logit),
    **dict.fromkeys(("count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft"), np.log),
}


@dataclass(frozen=True)
class XGBoostModel:
    """A parsed model: its raw score function, without a link function, and its metadata."""

    function: ScoreFunction
    intercept: float
    names: tuple[str, ...]
    n_features: int
    objective: str


def parse_xgboost(decoded: Mapping[str, Any]) -> XGBoostModel:
    """Parse a model; raise DataError if it is damaged or has several scores per document."""
    try:
        with np.errstate(all="ignore"):
            return _content(decoded["learner"])
    except DataError:
        raise
    except KeyError as error:
        raise DataError(None, None, f"the entry {error} is missing") from None
    except (TypeError, ValueError, AttributeError, IndexError, OverflowError):
        raise DataError(None, None, "an entry has the wrong type or is out of range") from None


def _content(learner: Mapping[str, Any]) -> XGBoostModel:
    sizes = learner["learner_model_param"]
    if int(sizes.get("num_class", 0)) > 1 or int(sizes.get("num_target", 1)) > 1:
        raise DataError(None, None, "the model has several scores per document; expected one")
    n_features, names = int(sizes["num_feature"]), tuple(map(str, learner.get("feature_names", ())))
    if len(names) not in (0, n_features):
        raise DataError(None, None, f"the model has {len(names)} names for {n_features} features")
    objective = str(learner["objective"]["name"])
    base = float(sizes["base_score"].strip("[]"))  # in brackets since XGBoost 3.1
    intercept = float(np.float32(LINKS.get(objective, float)(base)))
    if not np.isfinite(intercept):
        raise DataError(None, None, f"base_score is {base:g}, which makes all scores infinite or NaN")
    booster = learner["gradient_booster"]
    if booster["name"] == "gblinear":
        *weights, bias = np.array(booster["model"]["weights"], dtype=np.float64)
        if len(weights) != n_features:
            raise DataError(None, None, f"the model has {len(weights)} weights for {n_features} features")
        return XGBoostModel(Linear(np.array(weights)), intercept + bias, names, n_features, objective)
    rounds = int(learner.get("attributes", {}).get("best_iteration", -1)) + 1  # if training stopped early
    total = WeightedSum.plain([Tree.leaf(intercept), *_trees(booster, n_features, rounds)], np.float32)
    return XGBoostModel(total, intercept, names, n_features, objective)


def _trees(booster: Mapping[str, Any], n_features: int, rounds: int) -> list[Tree]:
    """The trees, only those of the first ``rounds`` if it is not 0, multiplied by the factors of dart."""
    if booster["name"] not in ("gbtree", "dart"):
        reason = f"the booster is {str(booster['name'])[:40]!r}; expected gbtree, dart or gblinear"
        raise DataError(None, None, reason)
    model = booster.get("gbtree", booster)["model"]
    contents, factors = model["trees"], booster.get("weight_drop")
    if rounds:
        parallel = int(model["gbtree_model_param"].get("num_parallel_tree", 1))
        bounds = model.get("iteration_indptr", range(0, len(contents) + 1, max(1, parallel)))
        contents = contents[: bounds[rounds]]
    return [
        _tree(content, n_features, number, 1.0 if factors is None else factors[number])
        for number, content in enumerate(contents)
    ]


def _tree(tree: Mapping[str, Any], n_features: int, number: int, factor: float) -> Tree:
    """XGBoost goes left if x < t in float32, that is, if x ≤ the float32 just below t."""
    left, right, columns, kinds = (
        np.array(tree.get(name, []) if name == "split_type" else tree[name], dtype=np.int64)
        for name in ("left_children", "right_children", "split_indices", "split_type")
    )
    numbers = np.array(tree["split_conditions"], dtype=np.float32)
    default = np.array(tree["default_left"], dtype=bool)
    if {part.shape for part in (left, right, columns, default)} != {(len(numbers),)} or not len(numbers):
        raise DataError(None, None, f"the arrays of tree {number} differ in length or are empty")
    if kinds.any():
        raise DataError(None, None, f"tree {number} has categorical splits, which are not supported")
    splits = left != LEAF
    children = np.concatenate([left[splits], right[splits]])
    if len(np.unique(children)) < len(children) or np.any((children < 1) | (children >= len(numbers))):
        raise DataError(None, None, f"tree {number} has a child node that does not exist or has two parents")
    columns[~splits] = LEAF
    if np.any(columns[splits] < 0) or np.any(columns >= n_features) or np.isnan(numbers).any():
        reason = f"tree {number} splits on a feature outside 0..{n_features - 1}, or contains NaN"
        raise DataError(None, None, reason)
    threshold = np.nextafter(numbers, np.float32(-np.inf))
    return Tree(columns, threshold, left, right, np.float32(factor) * numbers, nan_left=default)
