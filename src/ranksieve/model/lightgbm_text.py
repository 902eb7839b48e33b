"""LightGBM's model text, which LightGBM trusts: read and checked here, and written anew for it.

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
from ranksieve.errors import DataError

FIRST, LAST = "tree", "end of trees"
AVERAGED = "average_output"  # a line of random forests
DOCS_PER_THREAD = 4096  # with fewer, LightGBM's threads wait for one another longer than they work
CELLS_AT_ONCE = 2**22
CATEGORICAL = 1  # the bit of a decision_type, of four
Numbers = list[int] | list[float]


@dataclass(frozen=True)
class TextModel:
    """What was read: the text for LightGBM, the names of its columns, the objective, the columns in use."""

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
        raise DataError(None, None, f"the line {LAST!r} is missing: it is truncated; write the file again")
    blocks = list(_blocks(lines[: lines.index(LAST)]))
    header = blocks[0]
    names = tuple(header.words("feature_names"))
    if header.whole("max_feature_idx") != len(names) - 1 or len(header.words("feature_infos")) != len(names):
        raise DataError(None, None, "max_feature_idx, feature_names and feature_infos differ in length")
    if header.whole("num_class") != 1 or header.whole("num_tree_per_iteration") != 1:
        raise DataError(None, None, "it gives several scores per document; expected num_class=1")
    trees = [_tree(block, len(names)) for block in blocks[1:]]
    return TextModel(
        _text(trees, len(names), AVERAGED in header.values),
        names,
        header.values.get("objective", "").partition(" ")[0],
        frozenset(int(column) for tree in trees for column in tree["split_feature"]),
        len(trees),
    )


def _text(trees: Sequence[dict[str, Numbers]], n_columns: int, averaged: bool) -> str:
    """The text of trees with nothing but what was checked."""
    lines = [
        FIRST,
        "version=v4",
        "num_class=1",
        "num_tree_per_iteration=1",
        "label_index=0",
        f"max_feature_idx={n_columns - 1}",
        "feature_names=" + " ".join(f"Column_{j}" for j in range(n_columns)),
        "feature_infos=" + " ".join(["none"] * n_columns),
        *([AVERAGED] if averaged else []),
        "",
    ]
    for number, tree in enumerate(trees):
        entries = (f"{name}={' '.join(map(repr, values))}" for name, values in tree.items())
        lines += [f"Tree={number}", *entries, "", ""]
    return "\n".join([*lines, LAST, ""])


@dataclass(frozen=True)
class Block:
    """The lines of the header or of a tree."""

    title: str
    values: dict[str, str]

    def words(self, name: str) -> list[str]:
        if name not in self.values:
            raise DataError(None, None, f"{self.title} has no {name}")
        return self.values[name].split(" ") if self.values[name] else []

    def numbers(self, name: str, count: int, kind: Callable[[str], Any] = int) -> list[Any]:
        words = self.words(name)
        if len(words) != count:
            raise DataError(None, None, f"{self.title} has {len(words)} of {name}; expected {count}")
        try:
            return [kind(word) for word in words]
        except ValueError:
            raise DataError(
                None, None, f"{name} of {self.title} holds a value that is not a number"
            ) from None

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
                raise DataError(None, None, f"Tree={value} stands where tree {n_trees} is expected")
            title, values, n_trees = f"tree {n_trees}", {}, n_trees + 1
        else:
            values[name] = value
    yield Block(title, values)


def _tree(block: Block, n_columns: int) -> dict[str, Numbers]:
    """What decides the way of a document, if it leads to a leaf in any case."""
    n_leaves = block.whole("num_leaves")
    if n_leaves < 1 or block.whole("is_linear") != 0:
        raise DataError(None, None, f"{block.title} has no leaf, or linear leaves, which are not supported")
    n_splits, leaves = n_leaves - 1, block.numbers("leaf_value", n_leaves, float)
    if not all(map(math.isfinite, leaves)):
        raise DataError(None, None, f"{block.title} has a leaf value that is not finite")
    columns = block.numbers("split_feature", n_splits)
    if any(not 0 <= column < n_columns for column in columns):
        raise DataError(None, None, f"{block.title} splits on a column outside 0..{n_columns - 1}")
    children = {side: _children(block, side, n_leaves) for side in ("left_child", "right_child")}
    decisions = _decisions(block, n_splits)
    return {"num_leaves": [n_leaves], **decisions, "split_feature": columns, **children, "leaf_value": leaves}


def _children(block: Block, side: str, n_leaves: int) -> Numbers:
    children = block.numbers(side, n_leaves - 1)
    onwards = (node < child < n_leaves - 1 or 0 < -child <= n_leaves for node, child in enumerate(children))
    if not all(onwards):
        raise DataError(None, None, f"{side} of {block.title} leads neither to a later split nor to a leaf")
    return children


def _decisions(block: Block, n_splits: int) -> dict[str, Numbers]:
    """Thresholds, or numbers of sets of categories, and of what kind each is."""
    thresholds, kinds = block.numbers("threshold", n_splits, float), block.numbers("decision_type", n_splits)
    if any(map(math.isnan, thresholds)) or any(not 0 <= kind < 16 for kind in kinds):
        raise DataError(None, None, f"{block.title} has a threshold or decision_type unknown to LightGBM")
    n_sets = block.whole("num_cat")
    sets = [threshold for threshold, kind in zip(thresholds, kinds, strict=True) if kind & CATEGORICAL]
    if any(number not in range(n_sets) for number in sets):
        raise DataError(None, None, f"{block.title} splits by a set of categories that it does not have")
    found = {"num_cat": [n_sets], "threshold": thresholds, "decision_type": kinds}
    return found | (_categories(block, n_sets) if n_sets else {})


def _categories(block: Block, n_sets: int) -> dict[str, Numbers]:
    bounds = block.numbers("cat_boundaries", n_sets + 1)
    if bounds[0] != 0 or sorted(bounds) != bounds:
        raise DataError(None, None, f"cat_boundaries of {block.title} do not ascend from 0")
    words = block.numbers("cat_threshold", bounds[-1])
    if any(not 0 <= word < 2**32 for word in words):
        raise DataError(
            None, None, f"cat_threshold of {block.title} holds a value that is not a set of categories"
        )
    return {"cat_boundaries": bounds, "cat_threshold": words}
