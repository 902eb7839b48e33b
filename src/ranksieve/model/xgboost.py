"""XGBoost's model files, JSON and UBJSON, decoded and checked."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ranksieve._util.files import converted
from ranksieve.errors import DataError
from ranksieve.io.text_files import NUMBER

NUMBERS = {"i": ">b", "U": ">B", "I": ">h", "l": ">i", "L": ">q", "d": ">f", "D": ">d"}
LENGTHS = "iUIlL"
CONSTANTS = {"T": True, "F": False, "Z": None}
DEEPEST = 64


class _Reader:
    """Reads values one after another; what does not fit is a ValueError that says where."""

    def __init__(self, content: bytes) -> None:
        self.content, self.place, self.depth = content, 0, 0

    def take(self, count: int) -> bytes:
        if not 0 <= count <= len(self.content) - self.place:
            raise DataError(None, None, f"it breaks off at byte {len(self.content)}; write the file again")
        self.place += count
        return self.content[self.place - count : self.place]

    def mark(self) -> str:
        return self.take(1).decode("latin-1")

    def next_is(self, mark: str) -> bool:
        """Whether a mark comes next, which is then taken."""
        found = self.content[self.place : self.place + 1] == mark.encode()
        self.place += found
        return found

    def length(self, kind: str) -> int:
        if kind not in LENGTHS:
            raise DataError(None, None, f"byte {self.place - 1} is {kind!r}; expected the type of a length")
        return int(self.number(kind))

    def number(self, kind: str) -> Any:
        form = NUMBERS[kind]
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def text(self, kind: str) -> str:
        try:
            return self.take(self.length(kind)).decode("utf-8")
        except UnicodeDecodeError:
            raise DataError(None, None, f"the text that ends at byte {self.place} is not UTF-8") from None

    def value(self, kind: str) -> Any:
        if kind in NUMBERS:
            return self.number(kind)
        if kind in CONSTANTS:
            return CONSTANTS[kind]
        if kind == "S":
            return self.text(self.mark())
        if kind not in "[{":
            raise DataError(None, None, f"byte {self.place - 1} is {kind!r}, which does not begin a value")
        self.depth += 1
        if self.depth > DEEPEST:
            raise DataError(None, None, "it is nested too deeply")
        found = self.array() if kind == "[" else self.object()
        self.depth -= 1
        return found

    def array(self) -> list[Any]:
        kind = self.mark() if self.next_is("$") else ""
        if self.next_is("#"):
            count = self.length(self.mark())
            if kind in NUMBERS:
                width = struct.calcsize(NUMBERS[kind])
                return list(struct.unpack(f">{count}{NUMBERS[kind][1]}", self.take(max(-1, count) * width)))
            return [self.value(self.mark()) for _ in range(self.at_most(count))]
        found = []
        while not self.next_is("]"):
            found.append(self.value(self.mark()))
        return found

    def at_most(self, count: int) -> int:
        """A number of values, each of which takes a byte at least."""
        if not 0 <= count <= len(self.content) - self.place:
            raise DataError(None, None, f"it announces {count} values but breaks off; write the file again")
        return count

    def object(self) -> dict[str, Any]:
        found = {}
        while not self.next_is("}"):
            name = self.text(self.mark())
            found[name] = self.value(self.mark())
        return found


def decode_ubjson(content: bytes) -> Any:
    """What the bytes say."""
    reader = _Reader(content)
    value = reader.value(reader.mark())
    if reader.place != len(content):
        raise DataError(None, None, f"something follows the end at byte {reader.place}")
    return value


WHOLE = re.compile("-?[0-9]{1,10}")
LEAF, NO_PARENT = -1, 2**31 - 1
NODES: dict[str, Any] = {
    "left_children": list[int], "right_children": list[int], "split_indices": list[int],
    "default_left": list[Any],
}  # fmt: skip

STATISTICS = ("base_weights", "loss_changes", "sum_hessian")  # of training: scores do without
CATEGORIES = ("categories", "categories_nodes", "categories_segments", "categories_sizes")


@dataclass(frozen=True)
class Content:
    """A model for XGBoost to load, and what it says of itself."""

    model: dict[str, Any]
    names: tuple[str, ...]
    n_features: int
    objective: str
    n_rounds: int


def read_content(decoded: Any) -> Content:
    """The model if it gives one score and all of its trees hold together, else a ValueError."""
    learner = _entry(decoded, "learner")
    shape = _entry(learner, "learner_model_param")
    if _whole(shape, "num_class") > 1 or _whole(shape, "num_target", 1) > 1:
        raise DataError(None, None, "it gives several scores per document; expected one")
    n_features = _whole(shape, "num_feature")
    names = converted(learner.get("feature_names", []), list[str], "feature_names")
    if len(names) not in (0, n_features):
        raise DataError(None, None, f"it has {len(names)} names for {n_features} features")
    objective = _entry(learner, "objective")
    attributes = _entry(learner, "attributes") if "attributes" in learner else {}
    booster = _booster(_entry(learner, "gradient_booster"), n_features)
    plain = {
        "attributes": {},
        "feature_names": [],
        "feature_types": [],
        "gradient_booster": booster,
        "learner_model_param": {
            "base_score": _base_score(shape),
            "boost_from_average": "1",
            "num_class": "0",
            "num_feature": str(n_features),
            "num_target": "1",
        },
        "objective": {name: _settings(value, name) for name, value in objective.items()},
    }
    model = {"learner": plain, "version": converted(decoded.get("version", [2, 0, 0]), list[int], "version")}
    rounds = _whole(attributes, "best_iteration", -1) + 1  # if training stopped early
    if rounds > len(booster.get("gbtree", booster)["model"].get("iteration_indptr", range(rounds + 1))) - 1:
        raise DataError(None, None, f"its best iteration, {rounds - 1}, does not exist")
    name = converted(objective.get("name"), str, "objective")
    return Content(model, tuple(names), n_features, name, rounds)


def _booster(booster: Mapping[str, Any], n_features: int) -> dict[str, Any]:
    kind = booster.get("name")
    if kind == "gblinear":
        weights = _numbers(_entry(booster, "model").get("weights"), "weights")
        if len(weights) != n_features + 1:
            raise DataError(None, None, f"it has {len(weights)} weights for {n_features} features")
        return {"name": kind, "model": {"boosted_rounds": 1, "weights": weights}}
    if kind == "gbtree":
        return {"name": kind, "model": _forest(_entry(booster, "model"), n_features)}
    if kind != "dart":
        raise DataError(None, None, f"the booster is {str(kind)[:40]!r}; expected gbtree, dart or gblinear")
    forest = _forest(_entry(_entry(booster, "gbtree"), "model"), n_features)
    weights = _numbers(booster.get("weight_drop"), "weight_drop")
    if len(weights) != len(forest["trees"]):
        raise DataError(None, None, f"it has {len(weights)} of weight_drop for {len(forest['trees'])} trees")
    return {"name": kind, "gbtree": {"name": "gbtree", "model": forest}, "weight_drop": weights}


def _forest(model: Mapping[str, Any], n_features: int) -> dict[str, Any]:
    trees = converted(model.get("trees"), list[dict[str, Any]], "trees")
    groups = converted(model.get("tree_info"), list[int], "tree_info")
    parallel = _whole(_entry(model, "gbtree_model_param"), "num_parallel_tree", 1)
    every = [*range(0, len(trees), max(1, parallel)), len(trees)]
    bounds = converted(model.get("iteration_indptr", every), list[int], "iteration_indptr")
    ends = [*bounds[:1], *bounds[-1:]]
    if groups != [0] * len(trees) or sorted(bounds) != bounds or ends != [0, len(trees)]:
        raise DataError(None, None, f"tree_info or iteration_indptr are not those of {len(trees)} trees")
    return {
        "gbtree_model_param": {"num_parallel_tree": str(parallel), "num_trees": str(len(trees))},
        "iteration_indptr": bounds,
        "tree_info": groups,
        "trees": [_tree(tree, n_features, number) for number, tree in enumerate(trees)],
    }


def _tree(tree: Mapping[str, Any], n_features: int, number: int) -> dict[str, Any]:
    """The nodes that a document can reach, numbered anew from the root."""
    nodes = {
        name: converted(tree.get(name), kind, f"{name} of tree {number}") for name, kind in NODES.items()
    }
    values = _numbers(tree.get("split_conditions"), f"split_conditions of tree {number}")
    if {len(part) for part in nodes.values()} != {len(values)}:
        raise DataError(None, None, f"tree {number} does not have one value of each kind per node")
    if any(converted(tree.get("split_type", []), list[Any], f"split_type of tree {number}")):
        raise DataError(None, None, f"tree {number} splits by categories, which cannot be read here")
    order, parents, left, right = [0], [NO_PARENT], [], []
    for place, node in enumerate(order):  # which grows on the way
        if not 0 <= node < len(values) or len(order) > len(values):
            raise DataError(None, None, f"tree {number} leads to node {node}, which is absent or was visited")
        split = nodes["left_children"][node] != LEAF
        left.append(len(order) if split else LEAF)
        right.append(len(order) + 1 if split else LEAF)
        if split:
            order += [nodes["left_children"][node], nodes["right_children"][node]]
            parents += [place, place]
    columns = [nodes["split_indices"][node] if s != LEAF else 0 for node, s in zip(order, left, strict=True)]
    if any(not 0 <= column < n_features for column in columns):
        raise DataError(None, None, f"tree {number} splits on a feature outside 0..{n_features - 1}")
    return {
        **{name: [0.0] * len(order) for name in STATISTICS},
        **{name: [] for name in CATEGORIES},
        "default_left": [int(bool(nodes["default_left"][node])) for node in order],
        "id": number,
        "left_children": left,
        "parents": parents,
        "right_children": right,
        "split_conditions": [values[node] for node in order],
        "split_indices": columns,
        "split_type": [0] * len(order),
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(n_features),
            "num_nodes": str(len(order)),
            "size_leaf_vector": "1",
        },
    }


# Single values


def _entry(content: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(content, dict) or name not in content:
        raise DataError(None, None, f"it has no {name}")
    return converted(content[name], dict[str, Any], name)


def _whole(content: Mapping[str, Any], name: str, default: int = 0) -> int:
    """A whole number from −1 on that fits into 32 bits; XGBoost writes it as text."""
    word = str(content.get(name, default))
    if WHOLE.fullmatch(word) is None or not -1 <= int(word) < NO_PARENT:
        raise DataError(None, None, f"{name} is {word[:40]!r}; expected an integer")
    return int(word)


def _numbers(values: Any, what: str) -> list[float]:
    numbers = converted(values, list[Any], what)
    if not all(type(one) in (int, float) and not math.isnan(one) for one in numbers):
        raise DataError(None, None, f"{what} holds a value that is not a number")
    return [float(one) for one in numbers]


def _base_score(shape: Mapping[str, Any]) -> str:
    """One number, since 3.1 in brackets."""
    word = str(shape.get("base_score", "0"))
    number = float(word.strip("[]")) if NUMBER.fullmatch(word.strip("[]")) else math.nan
    if not math.isfinite(number):
        raise DataError(None, None, f"base_score is {word[:40]!r}; expected a finite number")
    return repr(number)


def _settings(value: Any, name: str) -> Any:
    """The objective's name, or its settings, which are texts."""
    if isinstance(value, str):
        return value
    return converted(value, dict[str, str], name)
