"""LightGBM's model text: checked line by line before LightGBM sees it, which trusts what it reads.

``tree``, lines of ``name=value``, then for each tree ``Tree=number`` and its own such lines, then ``end of
trees``; what follows does not concern scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from ranksieve._parallel import available_threads
from ranksieve._types import FloatArray
from ranksieve._util.messages import how_to_install

FIRST, LAST = "tree", "end of trees"
NOT_FOR_SCORES = ("tree_sizes", "objective")  # where trees begin is found by reading them one by one
DOCS_PER_THREAD = 4096  # with fewer, LightGBM's threads wait for one another longer than they work
CELLS_AT_ONCE = 2**22
CATEGORICAL = 1  # the bit of a decision_type


@dataclass(frozen=True)
class TextModel:
    """What was checked: the text for LightGBM, the names of its columns, the objective, columns in use."""

    text: str
    names: tuple[str, ...]
    objective: str
    used: frozenset[int]
    n_trees: int


def lightgbm_for(what: str) -> Any:
    """The module lightgbm, which something needs."""
    try:
        return import_module("lightgbm")
    except ImportError:
        raise ImportError(f"{what} needs lightgbm: {how_to_install('baselines')}") from None


def threads_for(n_docs: int) -> int:
    """How many threads are worth while."""
    return min(available_threads(), 1 + n_docs // DOCS_PER_THREAD)


def booster_of(text: str, what: str) -> Any:
    """The booster of a checked text."""
    return lightgbm_for(what).Booster(model_str=text)


def booster_scores(booster: Any, values: FloatArray) -> FloatArray:
    """Scores of rows, of which the booster's columns are given."""
    threads = threads_for(len(values))
    return np.asarray(booster.predict(values, raw_score=True, num_threads=threads, validate_features=False))


def is_lightgbm(text: str) -> bool:
    """Whether a text looks like a model of LightGBM."""
    lines = text.split("\n", 2)
    return len(lines) > 1 and lines[0].strip() == FIRST and lines[1].startswith("version=")


def read_text(text: str) -> TextModel:
    """The model if all that LightGBM will follow holds together, else a ValueError."""
    lines = [line.rstrip("\r") for line in text.split("\n")]
    if LAST not in lines:
        raise ValueError(f"the line {LAST!r} is missing, so it breaks off; write the file again")
    blocks = list(_blocks(lines[: lines.index(LAST)]))
    header = blocks[0]
    names = tuple(header.words("feature_names"))
    if header.whole("max_feature_idx") != len(names) - 1 or len(header.words("feature_infos")) != len(names):
        raise ValueError("max_feature_idx, feature_names and feature_infos are of different lengths")
    if header.whole("num_class") != 1 or header.whole("num_tree_per_iteration") != 1:
        raise ValueError("it gives several scores per document; expected num_class=1")
    used = frozenset[int]().union(*(_columns_of(tree, len(names)) for tree in blocks[1:]))
    kept = [line for line in lines[: lines.index(LAST)] if line.partition("=")[0] not in NOT_FOR_SCORES]
    objective = header.values.get("objective", "").partition(" ")[0]
    return TextModel("\n".join([*kept, LAST, ""]), names, objective, used, len(blocks) - 1)


@dataclass(frozen=True)
class Block:
    """The lines of the header or of a tree."""

    title: str
    values: dict[str, str]

    def words(self, name: str) -> list[str]:
        if name not in self.values:
            raise ValueError(f"{self.title} has no {name}")
        return self.values[name].split(" ") if self.values[name] else []

    def numbers(self, name: str, count: int, kind: Callable[[str], Any] = int) -> list[Any]:
        words = self.words(name)
        if len(words) != count:
            raise ValueError(f"{self.title} has {len(words)} of {name}; expected {count}")
        try:
            return [kind(word) for word in words]
        except ValueError:
            raise ValueError(f"{name} of {self.title} holds what is no number") from None

    def whole(self, name: str) -> int:
        return int(self.numbers(name, 1)[0])


def _blocks(lines: Sequence[str]) -> Iterator[Block]:
    """The header, then the trees, which must be numbered from 0."""
    title, n_trees = "the header", 0
    values: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition("=")
        if name == "Tree":
            yield Block(title, values)
            if value != str(n_trees):
                raise ValueError(f"Tree={value} stands where tree {n_trees} is expected")
            title, values, n_trees = f"tree {n_trees}", {}, n_trees + 1
        else:
            values[name] = value
    yield Block(title, values)


def _columns_of(tree: Block, n_columns: int) -> set[int]:
    """The columns that a tree splits on, after a look at all that a document may meet on its way down."""
    n_leaves = tree.whole("num_leaves")
    if n_leaves < 1 or tree.whole("is_linear") != 0:
        raise ValueError(f"{tree.title} has no leaf, or linear leaves, which are not supported here")
    if not all(map(math.isfinite, tree.numbers("leaf_value", n_leaves, float))):
        raise ValueError(f"{tree.title} has a leaf value that is not finite")
    n_splits = n_leaves - 1
    columns = tree.numbers("split_feature", n_splits)
    if any(not 0 <= column < n_columns for column in columns):
        raise ValueError(f"{tree.title} splits on a column outside 0..{n_columns - 1}")
    for side in ("left_child", "right_child"):
        children = tree.numbers(side, n_splits)
        if any(
            not (node < child < n_splits or 0 < -child <= n_leaves) for node, child in enumerate(children)
        ):
            raise ValueError(f"{side} of {tree.title} leads to no later split and to no leaf")
    _check_decisions(tree, n_splits)
    return set(columns)


def _check_decisions(tree: Block, n_splits: int) -> None:
    thresholds, kinds = tree.numbers("threshold", n_splits, float), tree.numbers("decision_type", n_splits)
    if any(math.isnan(threshold) for threshold in thresholds):
        raise ValueError(f"{tree.title} has a threshold that is no number")
    n_sets = tree.whole("num_cat")
    bounds = tree.numbers("cat_boundaries", n_sets + 1) if n_sets > 0 else [0]
    if n_sets < 0 or bounds[0] != 0 or sorted(bounds) != bounds:
        raise ValueError(f"num_cat and cat_boundaries of {tree.title} do not fit")
    if n_sets > 0:
        tree.numbers("cat_threshold", bounds[-1])
    sets = [threshold for threshold, kind in zip(thresholds, kinds, strict=True) if kind & CATEGORICAL]
    if any(not (0 <= number < n_sets and number == int(number)) for number in sets):
        raise ValueError(f"{tree.title} splits by a set of categories that it does not have")
