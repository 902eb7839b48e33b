"""Curves as models of LightGBM and XGBoost, with one tree per feature."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve.export.base import NameRule, Options, Product, engine_names, float32, prepare_for_export
from ranksieve.export.lucene import tree_summands, warn_of_changed_pairs
from ranksieve.export.trees import LEAF, Node, Split, curve_trees, flattened

if TYPE_CHECKING:
    from ranksieve.model.linear import LinearModel

LIGHTGBM_NAME = NameRule(
    r"[^\s\x00-\x1f\x7f-\x9f\ud800-\udfff\",:\[\]{}=]+",
    "LightGBM accepts names without spaces, control characters, quotes and any of ,:[]{}=",
)
XGBOOST_NAME = NameRule(
    r"(?=.*\S)[^\x00-\x1f\x7f-\x9f\ud800-\udfff\[\]<]+",
    "XGBoost accepts names without control characters and any of []<",
)
NAN_GOES_RIGHT = 2 << 2  # LightGBM's decision_type: numerical, missing values are NaN, not to the left
NO_PARENT = 2**31 - 1


def lightgbm(model: LinearModel, options: Options) -> Product:
    """A model file of LightGBM, which scores in float64; its features are those in use, in this order."""
    model = prepare_for_export(model, "LightGBM")
    names = engine_names(model.names, options.names, LIGHTGBM_NAME, "LightGBM")
    roots = curve_trees(model, "LightGBM", single=False)
    trees = [_lightgbm_tree(root, j) for j, root in enumerate(roots)]
    if model.intercept:
        trees.append(_lightgbm_tree(model.intercept, 0))
    header = {
        "version": "v4",
        "num_class": 1,
        "num_tree_per_iteration": 1,
        "label_index": 0,
        "max_feature_idx": len(names) - 1,
        "objective": "regression",
        "feature_names": " ".join(names),
        "feature_infos": " ".join("[-inf:inf]" for _ in names),
    }
    blocks = [_lines({"Tree": k, **tree}) + "\n\n" for k, tree in enumerate(trees)]
    end = "end of trees\n\nparameters:\nend of parameters\n\npandas_categorical:null\n"
    return Product({f"{options.name}.txt": f"tree\n{_lines(header)}\n{''.join(blocks)}{end}"})


def _lines(entries: dict[str, Any]) -> str:
    return "".join(f"{name}={value}\n" for name, value in entries.items())


def _lightgbm_tree(root: Node, feature: int) -> dict[str, Any]:
    """Splits and leaves are numbered apart; leaf k is the child −1 − k. Values ≤ the threshold go left."""
    nodes = flattened(root)
    splits = [k for k, (node, _, _) in enumerate(nodes) if isinstance(node, Split)]
    leaves = [k for k, (node, _, _) in enumerate(nodes) if not isinstance(node, Split)]
    number = {k: n for n, k in enumerate(splits)} | {k: -1 - n for n, k in enumerate(leaves)}
    thresholds = [float(np.nextafter(nodes[k][0].threshold, -np.inf)) for k in splits]  # type: ignore[union-attr]
    columns: dict[str, Sequence[Any]] = {
        "split_feature": [feature] * len(splits),
        "split_gain": [1] * len(splits),
        "threshold": thresholds,
        "decision_type": [NAN_GOES_RIGHT] * len(splits),
        "left_child": [number[nodes[k][1]] for k in splits],
        "right_child": [number[nodes[k][2]] for k in splits],
        "leaf_value": [nodes[k][0] for k in leaves],
        "leaf_weight": [1] * len(leaves),
        "leaf_count": [1] * len(leaves),
        "internal_value": [0] * len(splits),
        "internal_weight": [0] * len(splits),
        "internal_count": [1] * len(splits),
    }
    texts = {name: " ".join(map(repr, values)) for name, values in columns.items()}
    return {"num_leaves": len(leaves), "num_cat": 0, **texts, "is_linear": 0, "shrinkage": 1}


def xgboost(model: LinearModel, options: Options) -> Product:
    """A model file of XGBoost, which scores in float32; its features are those in use, in this order."""
    model = prepare_for_export(model, "XGBoost")
    names = engine_names(model.names, options.names, XGBOOST_NAME, "XGBoost")
    roots = curve_trees(model, "XGBoost", single=True)
    trees = [_xgboost_tree(root, j, len(names)) for j, root in enumerate(roots)]
    intercept = float32(model.intercept, "the intercept")
    warn_of_changed_pairs(model, options.sample, "XGBoost", tree_summands(roots), intercept)
    booster = {
        "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(len(trees))},
        "iteration_indptr": list(range(len(trees) + 1)),
        "tree_info": [0] * len(trees),
        "trees": trees,
    }
    learner = {
        "attributes": {},
        "feature_names": names,
        "feature_types": ["float"] * len(names),
        "gradient_booster": {"model": booster, "name": "gbtree"},
        "learner_model_param": {
            "base_score": repr(intercept),
            "boost_from_average": "0",
            "num_class": "0",
            "num_feature": str(len(names)),
            "num_target": "1",
        },
        "objective": {"name": "reg:squarederror", "reg_loss_param": {"scale_pos_weight": "1"}},
    }
    content = {"learner": learner, "version": [2, 0, 0]}
    return Product({f"{options.name}.json": json.dumps(content, ensure_ascii=False) + "\n"})


def _xgboost_tree(root: Node, feature: int, n_features: int) -> dict[str, Any]:
    """Values < the condition go left, and NaN by ``default_left`` right; a leaf's condition is its value."""
    nodes = flattened(root)
    n = len(nodes)
    parents = [NO_PARENT] * n
    for k, (node, left, right) in enumerate(nodes):
        if isinstance(node, Split):
            parents[left] = parents[right] = k
    return {
        "base_weights": [0.0 if isinstance(node, Split) else node for node, _, _ in nodes],
        "categories": [],
        "categories_nodes": [],
        "categories_segments": [],
        "categories_sizes": [],
        "default_left": [0] * n,
        "id": feature,
        "left_children": [left for _, left, _ in nodes],
        "loss_changes": [0.0] * n,
        "parents": parents,
        "right_children": [right for _, _, right in nodes],
        "split_conditions": [node.threshold if isinstance(node, Split) else node for node, _, _ in nodes],
        "split_indices": [feature if left != LEAF else 0 for _, left, _ in nodes],
        "split_type": [0] * n,
        "sum_hessian": [1.0] * n,
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(n_features),
            "num_nodes": str(n),
            "size_leaf_vector": "1",
        },
    }
