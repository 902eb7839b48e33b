"""XGBoost's model files, as ``save_model`` writes them: JSON or UBJSON with the key learner."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import numpy as np

from ranksieve._types import FloatArray
from ranksieve._util.json_values import checked
from ranksieve._util.messages import how_to_install
from ranksieve.foreign.boosters import BoosterModel
from ranksieve.foreign.ubjson import LENGTHS, decode_ubjson

KEY = "learner"
LEAF = -1
TREE = {"left_children": [int], "right_children": [int], "split_indices": [int]}
NODE_VALUES = (
    *TREE, "split_conditions", "split_type", "default_left", "parents", "base_weights", "sum_hessian",
    "loss_changes",
)  # fmt: skip


def is_ubjson(content: bytes) -> bool:
    """Whether bytes begin like XGBoost's binary model: { and the length of the first key."""
    return content[:1] == b"{" and content[1:2] in LENGTHS.encode() and KEY.encode() in content[:32]


def is_xgboost(content: Any) -> bool:
    """Whether a JSON value looks like a model of XGBoost."""
    return isinstance(content, dict) and KEY in content


def read_xgboost(content: Any, name: str) -> BoosterModel:
    """An XGBoost model, decoded or as UBJSON; XGBoost itself computes the scores, before any link function.

    It computes in float32. If training stopped early, the best iteration is the last that counts.
    """
    try:
        xgboost = import_module("xgboost")
    except ImportError:
        raise ImportError(f"{name}: an XGBoost model needs xgboost: {how_to_install('xgboost')}") from None
    booster = xgboost.Booster()
    try:
        decoded = decode_ubjson(content) if isinstance(content, bytes) else content
        n_features = _check(decoded[KEY])
        booster.load_model(bytearray(json.dumps(decoded).encode()))
        method = f"XGBoost {decoded[KEY]['objective']['name']}"
        best = booster.attr("best_iteration")
        rounds = (0, 0) if best is None else (0, int(best) + 1)
    except KeyError as error:
        raise ValueError(f"{name}: damaged XGBoost model (it has no {error.args[0]})") from None
    except (xgboost.core.XGBoostError, ValueError, TypeError, AttributeError) as error:
        reason = str(error).split("\n")[0].rpartition("] ")[2]
        raise ValueError(f"{name}: damaged XGBoost model ({reason})") from None

    def scores(values: FloatArray) -> FloatArray:
        rows = xgboost.DMatrix(values, missing=np.nan)
        found = booster.predict(rows, output_margin=True, iteration_range=rounds, validate_features=False)
        return np.asarray(found, dtype=np.float64)

    names = tuple(booster.feature_names or ())
    unnamed = names == tuple(f"f{j}" for j in range(len(names)))
    return BoosterModel(method, n_features, () if unnamed else names, scores)


# What XGBoost does not look for before it follows it


def _check(learner: dict[str, Any]) -> int:
    """The number of features, if the model gives one score and all of its trees hold together."""
    shape = learner["learner_model_param"]
    if int(shape["num_class"]) > 1 or int(shape.get("num_target", 1)) > 1:
        raise ValueError("it gives several scores per document; expected one")
    n_features, booster = int(shape["num_feature"]), learner["gradient_booster"]
    if len(learner.get("feature_names", [])) not in (0, n_features):
        raise ValueError(f"it has {len(learner['feature_names'])} names for {n_features} features")
    if booster["name"] == "gblinear":
        if len(booster["model"]["weights"]) != n_features + 1:
            raise ValueError(f"it has {len(booster['model']['weights'])} weights for {n_features} features")
        return n_features
    _check_trees((booster["gbtree"] if booster["name"] == "dart" else booster)["model"], n_features)
    return n_features


def _check_trees(model: dict[str, Any], n_features: int) -> None:
    trees = checked(model["trees"], [dict], "trees")
    bounds = checked(model.get("iteration_indptr", [0, len(trees)]), [int], "iteration_indptr")
    groups = checked(model["tree_info"], [int], "tree_info")
    if groups != [0] * len(trees) or sorted(bounds) != bounds or (bounds[0], bounds[-1]) != (0, len(trees)):
        raise ValueError(f"tree_info or iteration_indptr are not those of {len(trees)} trees")
    for number, tree in enumerate(trees):
        lengths = {len(checked(tree[name], list, name)) for name in NODE_VALUES if name in tree}
        if lengths != {int(tree["tree_param"]["num_nodes"])}:
            raise ValueError(f"tree {number} does not have one value of each kind per node")
        if any(tree.get("split_type", ())):
            raise ValueError(f"tree {number} splits by categories, which cannot be read here")
        _check_ways(checked({key: tree[key] for key in TREE}, TREE, f"tree {number}"), n_features, number)


def _check_ways(tree: dict[str, list[int]], n_features: int, number: int) -> None:
    """Every node that a document can reach is there, and is reached on one way only."""
    n_nodes, n_seen, waiting = len(tree["left_children"]), 0, [0]
    while waiting:
        node, n_seen = waiting.pop(), n_seen + 1
        if not 0 <= node < n_nodes or n_seen > n_nodes:
            raise ValueError(f"tree {number} leads to node {node}, which it does not have or had before")
        if tree["left_children"][node] == LEAF:
            continue
        if not 0 <= tree["split_indices"][node] < n_features:
            raise ValueError(f"tree {number} splits on a feature outside 0..{n_features - 1}")
        waiting += [tree["left_children"][node], tree["right_children"][node]]
