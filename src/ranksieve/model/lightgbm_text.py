"""LightGBM's model text, parsed into our own trees, whose scores are bit-identical to LightGBM's.

The format: ``tree``, lines of ``name=value``, then for each tree ``Tree=number`` and lines of ``name=value``,
then ``end of trees``; the rest does not affect scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksieve._types import IntArray
from ranksieve.errors import DataError
from ranksieve.model.score_functions import LEAF, Tree

FIRST, LAST = "tree", "end of trees"
CATEGORICAL, DEFAULT_LEFT = 1, 2  # bits of a decision_type; the next two are the kind of missing values
MISSING_ZERO, MISSING_NAN = 1, 2  # for other kinds NaN is 0


@dataclass(frozen=True)
class LightGBMModel:
    """The names of the model's columns, its objective and its trees."""

    names: tuple[str, ...]
    objective: str
    trees: tuple[Tree, ...]


def is_lightgbm(text: str) -> bool:
    """Whether a text looks like a LightGBM model."""
    lines = text.split("\n", 2)
    return len(lines) > 1 and lines[0].strip() == FIRST and lines[1].startswith("version=")


def parse_lightgbm(text: str) -> LightGBMModel:
    body, end, _ = text.replace("\r", "").partition(f"\n{LAST}")
    if not end:
        raise DataError(None, None, f"the line {LAST!r} is missing: the file is truncated; write it again")
    head, *parts = body.split("\nTree=")
    header = ParameterBlock.of(head, "the header")
    names = tuple(header.words("feature_names"))
    if header.integer("max_feature_idx") != len(names) - 1:
        raise DataError(None, None, "max_feature_idx and feature_names differ in length")
    if header.integer("num_class") != 1 or header.integer("num_tree_per_iteration") != 1:
        raise DataError(None, None, "the model has several scores per document; expected num_class=1")
    trees = []
    for number, part in enumerate(parts):
        title, _, lines = part.partition("\n")
        if title != str(number):
            raise DataError(None, None, f"expected Tree={number}, got Tree={title[:40]}")
        trees.append(_tree(ParameterBlock.of(lines, f"tree {number}"), len(names)))
    return LightGBMModel(names, header.values.get("objective", "").partition(" ")[0], tuple(trees))


@dataclass(frozen=True)
class ParameterBlock:
    """Entries of the header or of a tree."""

    title: str
    values: dict[str, str]

    @classmethod
    def of(cls, lines: str, title: str) -> ParameterBlock:
        return cls(title, dict(line.partition("=")[::2] for line in lines.split("\n")))

    def words(self, name: str) -> list[str]:
        if name not in self.values:
            raise DataError(None, None, f"{self.title} has no {name}")
        return self.values[name].split(" ") if self.values[name] else []

    def numbers(self, name: str, count: int, kind: Callable[[str], Any] = int) -> list[Any]:
        words = self.words(name)
        if len(words) != count:
            raise DataError(None, None, f"{self.title} has {len(words)} values of {name}; expected {count}")
        try:
            return [kind(word) for word in words]
        except ValueError:
            reason = f"{name} of {self.title} contains a value that is not a number"
            raise DataError(None, None, reason) from None

    def integer(self, name: str) -> int:
        return int(self.numbers(name, 1)[0])


def _tree(block: ParameterBlock, n_columns: int) -> Tree:
    """Parse a tree; its nodes are the splits, followed by the leaves."""
    n_leaves = block.integer("num_leaves")
    if n_leaves < 1 or block.values.get("is_linear", "0") != "0":
        raise DataError(
            None, None, f"{block.title} has no leaf, or has linear leaves, which are not supported"
        )
    n_splits, leaves = n_leaves - 1, block.numbers("leaf_value", n_leaves, float)
    if not all(map(math.isfinite, leaves)):
        raise DataError(None, None, f"{block.title} has a leaf value that is not finite")
    columns = block.numbers("split_feature", n_splits)
    if any(not 0 <= column < n_columns for column in columns):
        raise DataError(None, None, f"{block.title} splits on a column outside 0..{n_columns - 1}")
    kinds = block.numbers("decision_type", n_splits)
    if any(not 0 <= kind < 16 for kind in kinds):
        raise DataError(None, None, f"{block.title} has an unknown decision_type; expected 0 to 15")
    threshold, kind = np.array(block.numbers("threshold", n_splits, float)), np.array(kinds, dtype=np.int64)
    missing, default, zero_left = kind >> 2, kind & DEFAULT_LEFT > 0, threshold >= 0.0
    categorical = kind & CATEGORICAL > 0
    nan_left = np.where((missing == MISSING_ZERO) | (missing == MISSING_NAN), default, zero_left)
    zeros = np.zeros(n_leaves, dtype=np.int64)
    return Tree(
        feature=np.array(columns + [LEAF] * n_leaves),
        threshold=np.append(threshold, zeros),
        left=np.append(_children(block, "left_child", n_splits), zeros),
        right=np.append(_children(block, "right_child", n_splits), zeros),
        value=np.append(np.zeros(n_splits), leaves),
        nan_left=nan_left & ~categorical,
        zero_left=np.where(missing == MISSING_ZERO, default, zero_left),
        categories=_categories(block, np.flatnonzero(categorical), threshold),
    )


def _children(block: ParameterBlock, side: str, n_splits: int) -> IntArray:
    """Nodes of the children: later splits, or leaves, written as ~number; so every path ends in a leaf."""
    children = block.numbers(side, n_splits)
    if not all(node < child < n_splits or 0 <= ~child <= n_splits for node, child in enumerate(children)):
        raise DataError(None, None, f"{side} of {block.title} leads neither to a later split nor to a leaf")
    return np.array([child if child >= 0 else n_splits + ~child for child in children], dtype=np.int64)


def _categories(block: ParameterBlock, nodes: IntArray, threshold: Any) -> dict[int, list[int]]:
    """Categories that go left at each node; the threshold of the node is the number of its bit set."""
    if not len(nodes):
        return {}
    n_sets = block.integer("num_cat")
    bounds = block.numbers("cat_boundaries", n_sets + 1)
    bits = block.numbers("cat_threshold", bounds[-1])
    if any(threshold[node] not in range(n_sets) for node in nodes) or sorted(bounds) != bounds or bounds[0]:
        raise DataError(None, None, f"{block.title} splits on a set of categories that is not defined")
    sets = {node: bits[bounds[k] : bounds[k + 1]] for node in nodes for k in (int(threshold[node]),)}
    return {
        int(node): [32 * i + bit for i, word in enumerate(words) for bit in range(32) if word >> bit & 1]
        for node, words in sets.items()
    }
